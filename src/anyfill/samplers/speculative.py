"""Speculative sampling for one-pass networks: the law of one-by-one sampling, in fewer passes than variables.

Any-subset speculative decoding, for a batch in which every row advances on its own. With the variables of a row in
order and the first f of them answered, repeat

    draft    guess x_f, x_{f+1}, …, each from a distribution p_i that may depend on the guesses before it
    verify   one pass over the guesses:  q_i = p(x_i | answered, guessed x_f … x_{i-1}), also for the one behind them
    accept   x_f, x_{f+1}, … while u_i < q_i(x_i) / p_i(x_i), u_i uniform
    correct  the next one is drawn from (q_i - p_i)^+, renormalised: q_i itself, if all guesses were accepted

A value is kept with probability min(p, q) and replaced with the mass that is missing, so it has law q_i given all
before it: the output is exactly a draw from the chain, whatever p is, and whether or not the network's conditionals fit
together. How many variables are guessed at a time depends on what was accepted so far, which changes nothing of this.
Temperature, top-k, nucleus and typical reshape q (and p, for better guesses): all of it is then true of the reshaped
law.

Drafts come from the network itself, in one pass with the open variables tied, p_i = p(x_i | answered): then p_f = q_f,
the first guess always stands, and a pair of passes answers two variables at least. Or they come from a ``Draft``, such
as an ``NgramDraft`` counted from training text, and every pass verifies. ``anyfill.samplers.readers`` makes the passes.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor
from torch.nn import functional

from anyfill.checks import refuse, require_count
from anyfill.likelihoods.discrete import sample_codes
from anyfill.likelihoods.marginals import uniform
from anyfill.questions.question import Question
from anyfill.samplers.drafts import Draft
from anyfill.samplers.draw import reshape_log_probs
from anyfill.samplers.policy import Ordered, State, Step, Task, all_ended, as_values, most
from anyfill.samplers.readers import Guess, Work, checked, reader


@dataclass(frozen=True, slots=True)
class Speculative(Ordered):
    """Guesses several variables, verifies them in one pass. One-pass networks and discrete likelihoods only.

    Attributes:
        order: None = the model's own.
        draft: what guesses; None = the network itself.
        window: the most variables guessed at a time, at least 1.
        price: what one more guess costs, beside a pass over one token per row; at least 0. As many are guessed as then
            bring the most answers for their price, by the share of guesses accepted so far. None = 0.05 on a GPU or for
            single rows, more for many rows on a processor that must work through them one after another.
        end: the code that ends a line, as of ``CachedChain``.
    """

    draft: Draft | None = None
    window: int = 16
    price: float | None = None
    end: int | None = None

    def __post_init__(self) -> None:
        require_count("window", self.window)
        if self.price is not None and (isinstance(self.price, bool) or not 0.0 <= self.price < math.inf):
            raise refuse("price", expected="None, or a number of at least 0", got=repr(self.price))

    def done(self, state: State, question: Question) -> bool:
        return state.complete(question) or all_ended(state, question, self.end)

    def begin(self, task: Task) -> Step:
        _ = task.model.one_pass  # refuse before the first state is asked for
        if task.model.likelihood.shrinks_scales and not task.draw.filters and task.draw.temperature not in (0.0, 1.0):
            # Tables of probabilities are held against each other here: p^(1/T), another law than exact draws have.
            expected = "1 or 0 with the speculative sampler, where values are numbers or grey levels"
            raise refuse("temperature", expected=expected, got=task.draw.temperature)
        return _Speculation(self, task)


@dataclass(frozen=True, slots=True)
class _Luck:
    """How often guesses were accepted so far; it begins as if 3 of 4 had been."""

    accepted: int = 3
    tried: int = 4

    def width(self, window: int, price: float) -> int:
        """The number of guesses d that is best on average: the most of (1 + r + … + r^d) / (1 + d price)."""
        rate = self.accepted / self.tried
        answers = [(1 - rate ** (d + 1)) / (1 - rate) if rate < 1 else d + 1.0 for d in range(1, window + 1)]
        return 1 + max(range(window), key=lambda i: answers[i] / (1 + (i + 1) * price))


def _price(rows: int, device: torch.device) -> float:
    """Measured with 1 M and 6 M parameters: a processor is busy with one token of each of about 200 rows."""
    return 0.05 if device.type != "cpu" else 0.05 + rows / (rows + 150)


class _Speculation:
    """The step of a run: it keeps the rows that are worked on, what the network has read, and its luck."""

    def __init__(self, speculative: Speculative, task: Task) -> None:
        self.speculative, self.task = speculative, task
        self.read = reader(task.model, speculative.draft, task.draw, task.generator)
        self.luck = _Luck()
        self.rows = task.question.asked.any(1).nonzero().squeeze(1)  # finished rows leave the batch
        self.longest = most(task.question.asked)
        self.work: Work | None = None

    def __call__(self, state: State) -> State:
        task, read, rows, window = self.task, self.read, self.rows, self.speculative.window
        work = self.work
        if work is None:
            context = None if task.context is None else task.context[rows]
            work = Work.of(state.x[rows], state.plan[rows], context)
        price = _price(len(rows), state.x.device) if self.speculative.price is None else self.speculative.price
        with task.model.evaluating():
            guess = checked(read.propose(work, state.known[rows], self.luck.width(window, price), self.longest))
            value, count = _settled(guess, reshape_log_probs(guess.target, task.draw), task.generator)
            score = guess.target.gather(-1, value.unsqueeze(-1)).squeeze(-1).double()
        left = work.left
        stands = torch.minimum(count, left)
        state = _written(state, rows, work, as_values(value, task.x), score, stands, guess)
        read.accept(as_values(value, task.x), count)
        certain, drafts = read.certain, guess.value.shape[1]
        accepted = torch.minimum(count - 1, left)
        tried = accepted + (accepted < left.clamp(max=drafts))
        some = (left > certain) & (drafts > certain)
        active = left > stands
        hits, tries, self.longest, going = torch.stack(
            [
                torch.where(some, accepted - certain, 0).sum(),
                torch.where(some, tried - certain, 0).sum(),
                (left - stands).max(),
                active.sum(),
            ]
        ).tolist()
        self.luck = _Luck(self.luck.accepted + hits, self.luck.tried + tries)
        self.work = work.with_answers(state.x[rows], work.answered + stands)
        if going < len(rows) and going <= read.share * len(rows):
            kept = active.nonzero().squeeze(1)
            self.rows, self.work = rows[kept], self.work.rows(kept)
            read.keep(kept)
        return state


def _settled(guess: Guess, target: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    """What stands of D guesses.

    Args:
        guess: the guesses with the distributions they were drawn from.
        target: (B, D + 1, K), the log-probabilities they should have been drawn with, and those of the next variable.
        generator: the source of all randomness.

    Returns:
        value: int64 (B, D + 1), the accepted guesses and, right behind them, a value drawn in place of the next.
        count: int64 (B,), how many values stand: the accepted ones and that one.
    """
    at = guess.value.unsqueeze(-1)
    ratio = (target[:, :-1].gather(-1, at) - guess.log_probs.gather(-1, at)).squeeze(-1).exp()
    stands = uniform(ratio.shape, generator=generator, device=ratio.device) < ratio
    accepted = stands.long().cumprod(1).sum(1)
    row = torch.arange(len(accepted), device=accepted.device)
    q = target[row, accepted].exp()
    # Behind the last guess nothing was guessed: p = 0 there, and what is missing is all of q.
    missing = (q - functional.pad(guess.log_probs.exp(), (0, 0, 0, 1))[row, accepted]).clamp(min=0.0)
    # Rounding may leave nothing of the missing mass; p and q are then equal to rounding, and q will do.
    missing = torch.where(missing.sum(-1, keepdim=True) > 0, missing, q)
    fresh = sample_codes(missing.log(), generator=generator)
    value = functional.pad(guess.value, (0, 1)).scatter(1, accepted.unsqueeze(1), fresh.unsqueeze(1))
    return value, accepted + 1


def _written(
    state: State, rows: Tensor, work: Work, value: Tensor, score: Tensor, stands: Tensor, guess: Guess
) -> State:
    """The state with the first ``stands`` (B,) of the values (B, D + 1) of these rows in their places."""
    step = torch.arange(value.shape[1], device=value.device)
    place = torch.where(step < stands.unsqueeze(1), work.next(value.shape[1]), state.x.shape[1])

    def put(into: Tensor, new: Tensor) -> Tensor:
        wide = functional.pad(into[rows], (0, 1))  # the last column takes what does not stand
        return into.index_copy(0, rows, wide.scatter(1, place, new.to(into.dtype))[:, :-1])

    return replace(
        state,
        x=put(state.x, value),
        rank=put(state.rank, torch.full_like(place, state.step)),
        score=put(state.score, score),
        step=state.step + 1,
        passes=state.passes + guess.passes,
        row_passes=state.row_passes.index_add(0, rows, guess.row_passes),
    )
