"""The sampling loop: tell, answer, draw, write (SFARM algorithm 2, with the policy in place of p(z_i | z_{i-1})).

    x ~ p(x | told),   x_written <- x at the variables the policy writes,   until nothing is left to write

``trace`` yields a ``State`` before the first step and after every step, so that a progress bar or a page can watch.
Given values never change and ignored ones stay as they were, NaN included; nothing that stands in an unknown place is
ever read. A one-pass network is told in the order in which values became known, the given block first: then
``Follow(model.order)`` draws from exactly the chain whose log-probability ``anyfill.evaluation.log_prob`` computes.

There are two kinds of lock. A *given* value is fixed, and the network is told to trust it. A *held* value is fixed, but
the network takes it for one of those that stand in unknown places: a corruption that shows them (Uniform) shows it,
one that blanks them (Absorbing) does not.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_shape
from anyfill.likelihoods.marginals import Marginals
from anyfill.model import Model
from anyfill.questions.question import Order, Question, chain_rank
from anyfill.questions.supported import completed
from anyfill.rank import NEVER
from anyfill.samplers.draw import Draw
from anyfill.samplers.policy import Answer, Forgetful, Policy, State


def trace(
    model: Model,
    x: Tensor,
    question: Question,
    policy: Policy,
    *,
    draw: Draw | None = None,
    context: Tensor | None = None,
    generator: Generator,
    allow_untrained: bool = False,
    held: Tensor | None = None,
) -> Iterator[State]:
    """Sample p(asked | given), a ``State`` at a time.

    Args:
        model: what answers.
        x: values (B, N); read where given, kept where ignored.
        question: B questions.
        policy: what is told and what is written at each step.
        draw: how a value is drawn from its distribution; default: as it is.
        context: optional side information (B, ...).
        generator: the source of all randomness.
        allow_untrained: True = use conditionals that the model was not trained on instead of raising ValueError.
        held: optional bool (B, N), neither given nor asked: values of x that are kept without being trusted.

    A model trained for INPAINTING only, asked about a part of what is not given, samples all of it and returns the
    part: the others are summed out exactly.
    """
    policy = policy.along(model.order)
    answered = prepare(
        model, x, question, order=policy.order, parallel=policy.parallel, allow_untrained=allow_untrained
    )
    if held is not None:
        _check_held(model, x, question, held)
        answered = Question(answered.given, answered.asked & ~held)
    states = _states(model, x, answered, policy, Draw() if draw is None else draw, context, generator, held)
    return (shown(state, x, question) for state in states)


def _check_held(model: Model, x: Tensor, question: Question, held: Tensor) -> None:
    """ValueError unless held (B, N) is apart from the question and its values are values."""
    require_shape("held", held, tuple(x.shape))
    if bool((held & (question.given | question.asked)).any()):
        raise refuse("held", expected="values that are neither given nor asked", got="some that are")
    model.check_given(x, held)


def prepare(
    model: Model, x: Tensor, question: Question, *, order: Order | None, parallel: bool, allow_untrained: bool
) -> Question:
    """The question to sample, once shapes, disjointness and the model's licence have been checked."""
    model.check_rows(x)
    require_shape("given", question.given, tuple(x.shape))
    question = question.checked()
    model.check_given(x, question.given)
    if allow_untrained:
        return question
    return completed(model.factorizations, question, model.order, order=order, parallel=parallel)


class Steps(Protocol):
    """The states of a decoder on a question that has been prepared."""

    def __call__(
        self,
        model: Model,
        x: Tensor,
        question: Question,
        order: Order,
        draw: Draw,
        context: Tensor | None,
        generator: Generator,
    ) -> Iterator[State]: ...


def decode(
    steps: Steps,
    model: Model,
    x: Tensor,
    question: Question,
    *,
    order: Order | None,
    draw: Draw | None,
    context: Tensor | None,
    generator: Generator,
    allow_untrained: bool,
) -> Iterator[State]:
    """What every one-by-one decoder does around its own steps: check, fill in defaults, show what was asked."""
    order = model.order if order is None else order
    answered = prepare(model, x, question, order=order, parallel=False, allow_untrained=allow_untrained)
    states = steps(model, x, answered, order, Draw() if draw is None else draw, context, generator)
    return (shown(state, x, question) for state in states)


def start(model: Model, x: Tensor, question: Question, generator: Generator, held: Tensor | None = None) -> State:
    """The state before the first step: given values, in the order of w, held ones, and the corruption's fill."""
    nothing = torch.zeros_like(question.asked)
    kept = question.given if held is None else question.given | held
    return State(
        x=model.corruption.fill(x, kept, generator=generator),
        rank=chain_rank(model.order, Question(question.given, nothing), generator=generator),
        score=torch.zeros(x.shape, dtype=torch.float64, device=x.device),
        plan=torch.full_like(question.asked, NEVER, dtype=torch.int64),
        step=0,
        passes=0,
        row_passes=torch.zeros(len(x), dtype=torch.int64, device=x.device),
    )


def shown(state: State, x: Tensor, question: Question) -> State:
    """The state as it looks from outside: ignored variables as they were, and not known."""
    rank = torch.where(question.ignored, NEVER, state.rank)
    return replace(state, x=torch.where(question.ignored, x, state.x), rank=rank)


def as_values(drawn: Tensor, x: Tensor) -> Tensor:
    """Drawn values in the dtype of the rows; ValueError where that would cut off fractions."""
    if drawn.is_floating_point() and not x.is_floating_point():
        raise refuse("dtype of x", expected="a floating-point type for this likelihood", got=x.dtype)
    return drawn.to(x.dtype)


def _states(
    model: Model,
    x: Tensor,
    question: Question,
    policy: Policy,
    draw: Draw,
    context: Tensor | None,
    generator: Generator,
    held: Tensor | None,
) -> Iterator[State]:
    state = start(model, x, question, generator, held)
    forgetful = policy if isinstance(policy, Forgetful) else None
    yield state
    for _ in range(policy.steps(question)):
        if policy.done(state, question):
            return
        state = replace(state, plan=policy.plan(state, question, generator=generator))
        told = policy.tell(state, question, generator=generator) & state.known
        if forgetful is not None:
            forgotten = forgetful.forget(state, question, told, generator=generator)
            state = (
                state if forgotten is None else _without(model, state, forgotten & question.asked & ~told, generator)
            )
        with model.evaluating():
            marginals = _answers(model, state, told, question, context)
            value = as_values(draw(marginals, generator=generator), x)
            answer = Answer(told, marginals, value, marginals.log_prob(value).double())
            written = policy.write(state, question, answer, generator=generator) & question.asked
        state = replace(
            state,
            x=torch.where(written, answer.value, state.x),
            rank=torch.where(written, state.step, state.rank),
            score=torch.where(written, answer.score, state.score),
            step=state.step + 1,
            passes=state.passes + 1,
            row_passes=state.row_passes + (question.asked & ~told).any(1),
        )
        yield state


def _without(model: Model, state: State, forgotten: Tensor, generator: Generator) -> State:
    """The state with the values ``forgotten`` (B, N) replaced by the corruption's fill, and unknown."""
    x = model.corruption.fill(state.x, ~forgotten, generator=generator)
    score = torch.where(forgotten, 0.0, state.score)
    return replace(state, x=x, rank=torch.where(forgotten, NEVER, state.rank), score=score)


def _answers(model: Model, state: State, told: Tensor, question: Question, context: Tensor | None) -> Marginals:
    """p(x_j | told) for every asked j."""
    rank = _told_rank(state, told, question) if model.is_one_pass else None
    return model.likelihood(model.params(state.x, told, rank=rank, context=context))


def _told_rank(state: State, told: Tensor, question: Question) -> Tensor:
    """int64 (B, N): what is told in the order in which it became known, the given block first."""
    variables = state.x.shape[1]
    rank = torch.where(question.asked, variables, NEVER)  # all tied: each is answered given what is told, no more
    # What was answered at once is told one by one, in order of index.
    turn = torch.where(told & (state.rank >= 0), state.rank, NEVER).argsort(dim=1, stable=True).argsort(dim=1)
    return torch.where(told, torch.where(state.rank < 0, state.rank, turn), rank)
