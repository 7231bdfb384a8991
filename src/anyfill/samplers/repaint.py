"""DDPM's sampler, and RePaint (Lugmayr et al. 2022): a picture completed by a model that was only taught to denoise.

A reverse step takes x_t to x_(t-1) with the network's guess of the noise (DDPM eq. 6, 7, 11):

    x^0 = (x_t - sqrt(1 - a_t) e^) / sqrt(a_t)
    x_(t-1) ~ N( [sqrt(a_(t-1)) b_t x^0 + sqrt(1 - b_t) (1 - a_(t-1)) x_t] / (1 - a_t),  b_t (1 - a_(t-1)) / (1 - a_t) )

What is given is put in at its own noise, x_t = sqrt(a_t) x + sqrt(1 - a_t) e, before each call of the network but the
first (which sees noise alone). Once is too little, because what was put in does not know what stands around it:
RePaint goes back ``jump`` times, x_(t+1) = sqrt(1 - b) x_t + sqrt(b) e, and down again, ``resamplings`` times in all at
every ``jump``-th time. 250 times with jumps of 10 and 10 resamplings are 2,410 calls.

With few calls in place of the schedule's thousand, times are spread evenly and their noise recomputed.
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from anyfill.checks import refuse, require_counts
from anyfill.corruption import NoiseSchedule
from anyfill.likelihoods.marginals import normal
from anyfill.questions.question import Question
from anyfill.samplers.policy import Sampler, State, Step, Task


@dataclass(frozen=True, slots=True)
class RePaint(Sampler):
    """Draws everything that is not given by denoising; with ``resamplings=1`` and nothing given this is DDPM.

    Attributes:
        schedule: that of training.
        times: how many of its times are used.
        jump: how far to go back.
        resamplings: how often each stretch is gone through.
        clip: cut the guess x^0 off at -1 and 1, as for pictures.
    """

    schedule: NoiseSchedule = field(default_factory=NoiseSchedule)
    times: int = 250
    jump: int = 10
    resamplings: int = 10
    clip: bool = False

    def __post_init__(self) -> None:
        require_counts(self, "times", "jump", "resamplings")
        if self.times > self.schedule.times:
            raise refuse("times", expected=f"at most {self.schedule.times}, as the schedule has", got=self.times)

    def calls(self) -> list[tuple[int, int]]:
        """For every call of the network its time, and how many re-noisings come before it."""
        back = dict.fromkeys(range(0, self.times - self.jump, self.jump), self.resamplings - 1)
        found, time, renoised = list[tuple[int, int]](), self.times - 1, 0
        while time >= 0:
            found.append((time, renoised))
            time, renoised = time - 1, 0
            if back.get(time, 0) > 0:
                back[time] -= 1
                time, renoised = time + self.jump, self.jump
        return found

    def steps(self, question: Question) -> int:
        return len(self.calls())

    def done(self, state: State, question: Question) -> bool:
        return False  # the number of steps is known beforehand

    def begin(self, task: Task) -> Step:
        if not task.x.is_floating_point():
            raise refuse("dtype of x", expected="a floating-point type to denoise", got=task.x.dtype)
        calls, number = self.calls(), self.schedule.spread(self.times)
        kept = self.schedule.kept()[number].tolist()
        before = [1.0, *kept[:-1]]
        model, given = task.model, task.question.given
        open_ = ~given

        def noise() -> Tensor:
            return normal(task.x.shape, generator=task.generator, device=task.x.device).to(task.x.dtype)

        def step(state: State) -> State:
            time, renoised = calls[state.step]
            x = state.x if state.step else torch.where(given, state.x, noise())
            for back in range(renoised):
                beta = 1 - kept[time - renoised + 1 + back] / before[time - renoised + 1 + back]
                x = torch.where(given, x, (1 - beta) ** 0.5 * x + beta**0.5 * noise())
            a, b = kept[time], 1 - kept[time] / before[time]
            shown = a**0.5 * task.x + (1 - a) ** 0.5 * noise() if state.step else noise()
            noisy = torch.where(given, shown, x)
            told = self.schedule.told(number[time].to(x.device).expand(len(x)))
            with model.evaluating():
                guess = model.likelihood(model.network(noisy, torch.ones_like(given), told)).mean().to(x.dtype)
            clean = (noisy - (1 - a) ** 0.5 * guess) / a**0.5
            clean = clean.clamp(-1, 1) if self.clip else clean
            earlier = before[time]
            mean = (earlier**0.5 * b * clean + (1 - b) ** 0.5 * (1 - earlier) * noisy) / (1 - a)
            value = mean + (b * (1 - earlier) / (1 - a)) ** 0.5 * noise()
            x = torch.where(given, task.x, value)
            last = state.step + 1 == len(calls)
            where = task.question.asked if last else torch.zeros_like(given)
            return replace(state.committed(where, x, torch.zeros_like(state.score), open_.any(1)), x=x)

        return step
