"""The sampling loop (SFARM algorithm 2, with the policy in place of p(z_i | z_{i-1})).

    x ~ p(x | visible),   x_committed <- x at the variables the policy commits,   until nothing is left

``trace`` yields a ``State`` before the first step and after every step, so that a progress bar or a page can watch;
``sample`` runs it to its end. Given values never change and ignored ones stay as they were, NaN included; nothing that
stands in an unknown place is ever read. A one-pass network reads values in the order in which they became known, the
given block first: then ``Follow(model.order)`` draws from exactly the chain whose log-probability
``anyfill.evaluation.log_prob`` computes.

There are two kinds of lock. A *given* value is fixed, and the network may trust it. A *held* value is fixed, but
the network takes it for one of those that stand in unknown places: a corruption that shows them (Uniform) shows it,
one that blanks them (Absorbing) does not.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Required, TypedDict, Unpack

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_keywords, require_shape
from anyfill.model import Model
from anyfill.networks.network import Cached
from anyfill.questions.question import Question, chain_rank
from anyfill.questions.supported import completed
from anyfill.rank import NEVER
from anyfill.samplers.cached import CachedChain
from anyfill.samplers.draw import Draw
from anyfill.samplers.planned import Follow
from anyfill.samplers.policy import Policy, Sampler, State, Task


@dataclass(frozen=True, slots=True)
class Sample:
    """What came out.

    Attributes:
        x: (B, N), the asked variables drawn, everything else as it was.
        passes: network passes made one after another.
        row_passes: int64 (B,), in how many of them each row was still being answered.
    """

    x: Tensor
    passes: int
    row_passes: Tensor


class SampleOptions(TypedDict, total=False):
    """How to sample, beside the policy.

    Attributes:
        draw: how a value is drawn from its distribution; default: as it is.
        context: optional side information (B, ...).
        generator: the source of all randomness.
        allow_untrained: True = use conditionals that the model was not trained on instead of raising ValueError.
        held: optional bool (B, N), neither given nor asked: values of x that are kept without being trusted.
    """

    draw: Draw | None
    context: Tensor | None
    generator: Required[Generator]
    allow_untrained: bool
    held: Tensor | None


class TraceOptions(SampleOptions, total=False):
    """How to sample; the policy is as for ``trace``."""

    policy: Sampler | None


def trace(
    model: Model, x: Tensor, question: Question, policy: Sampler | None = None, **options: Unpack[SampleOptions]
) -> Iterator[State]:
    """Sample p(asked | given), a ``State`` at a time.

    Args:
        model: what answers.
        x: values (B, N); read where given, kept where ignored.
        question: B questions.
        policy: the sampler; by default one by one in the model's order, from the cache if the network has one: exact.
        options: the generator, and what else ``SampleOptions`` has.

    A model trained for INPAINTING only, asked about a part of what is not given, samples all of it and returns the
    part: the others are summed out exactly.
    """
    require_keywords(options, SampleOptions)
    held = options.get("held")
    if policy is None:
        policy = CachedChain() if isinstance(model.network, Cached) and held is None else Follow()
    sampler = policy.along(model.order)
    model.check_rows(x)
    require_shape("given", question.given, tuple(x.shape))
    answered = question.checked()
    model.check_given(x, question.given)
    if not options.get("allow_untrained", False):
        answered = completed(
            model.factorizations, question, model.order, order=sampler.order, parallel=sampler.parallel
        )
    if held is not None:
        if not isinstance(sampler, Policy):
            raise refuse("held", expected="a policy that goes with it", got=f"a {type(policy).__name__}")
        require_shape("held", held, tuple(x.shape))
        if bool((held & (question.given | question.asked)).any()):
            raise refuse("held", expected="values that are neither given nor asked", got="some that are")
        model.check_given(x, held)
        answered = Question(answered.given, answered.asked & ~held)
    draw = options.get("draw") or Draw()
    task = Task(model, x, answered, draw, options.get("context"), options["generator"], held)
    return (_outside(state, x, question) for state in run(sampler, task))


watch = trace
"""The states ``sample`` goes through, for whoever wants to look on."""


def sample(model: Model, x: Tensor, question: Question, **options: Unpack[TraceOptions]) -> Sample:
    """Draw the asked variables given the given ones; arguments as for ``trace``."""
    last = deque(trace(model, x, question, **options), maxlen=1).pop()
    return Sample(last.x, last.passes, last.row_passes)


def run(sampler: Sampler, task: Task, first: State | None = None) -> Iterator[State]:
    """The states of a sampler on a task that has been checked, from the first one on."""
    step = sampler.begin(task)  # refuses a model that it cannot serve before the first state is asked for

    def states() -> Iterator[State]:
        state = _start(task) if first is None else first
        yield state
        for _ in range(sampler.steps(task.question)):
            if sampler.done(state, task.question):
                return
            state = step(replace(state, plan=sampler.plan(state, task.question, generator=task.generator)))
            yield state

    return states()


def _start(task: Task) -> State:
    """The state before the first step: given values, in the order of w, held ones, and the corruption's fill."""
    model, given = task.model, task.question.given
    kept = given if task.held is None else given | task.held
    x = model.corruption.fill(task.x, kept, generator=task.generator)
    return State.first(x, chain_rank(model.order, Question(given, torch.zeros_like(given)), generator=task.generator))


def _outside(state: State, x: Tensor, question: Question) -> State:
    """The state as it looks from outside: ignored variables as they were, and not known."""
    rank = torch.where(question.ignored, NEVER, state.rank)
    return replace(state, x=torch.where(question.ignored, x, state.x), rank=rank)
