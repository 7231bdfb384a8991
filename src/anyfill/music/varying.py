"""Variations of a piece: SUNMASK's chain, begun with the piece itself in the place of noise, by whole notes.

SUNMASK's sampler hides what it does not trust, draws it anew and trusts more from round to round. Here a round n of N
hides each note that may change with probability

    alpha_n = amount · (1 - n / N),      n = 0 … N - 1,

and draws all that is hidden, given the rest, from p(hidden | rest). A note is hidden as a whole: of a single sixteenth
inside a long note its neighbours leave no doubt. And it is drawn cell after cell, from the model's own chain, under the
same rules as any other answer: cells that are drawn side by side do not know of one another, and notes fall to pieces.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Generator, Tensor

from anyfill.model import Model
from anyfill.music.chorale import CODES, plain
from anyfill.music.score import VOICES
from anyfill.questions.question import Question
from anyfill.samplers import Draw, Sampler, trace
from anyfill.samplers.policy import State

ROUNDS = 3
"""N."""


def variations(
    model: Model,
    x: Tensor,
    question: Question,
    amount: float,
    *,
    onsets: bool,
    policy: Sampler,
    draw: Draw,
    context: Tensor | None,
    generator: Generator,
) -> Iterator[State]:
    """The states of the chain, the last of which has the variations.

    Args:
        model: of chorales.
        x: int64 (B, N), the piece.
        question: what is given, and what may change.
        amount: how much of it, 0 to 1.
        onsets: whether codes say where notes begin.
        policy, draw: how cells are drawn.
        context: what the model is told of the form.
        generator: of which notes are hidden, and of what is drawn.
    """
    state = State.first(x, torch.where(question.given, -1, 0))
    yield state
    for n in range(ROUNDS):
        hidden = question.asked & whole_notes(x, question.asked, amount * (1 - n / ROUNDS), onsets, generator)
        if not hidden.any():
            continue
        one, before = Question((question.given | question.asked) & ~hidden, hidden), state.step
        for now in trace(model, x, one, policy=policy, draw=draw, context=context, generator=generator):
            state = replace(now, step=before + now.step)
            yield state
        x = torch.where(hidden, state.x, x)
        state = replace(state, x=x)
        yield state


def whole_notes(x: Tensor, asked: Tensor, share: float, onsets: bool, generator: Generator) -> Tensor:
    """bool (B, N): the cells of notes (or rests) of x that are chosen, each on its own; all of a note must be asked."""
    grid, free = x.unflatten(1, (-1, len(VOICES))), asked.unflatten(1, (-1, len(VOICES)))
    pitch, step = plain(grid), torch.arange(grid.shape[1]).view(1, -1, 1)
    begins = torch.ones_like(free)
    begins[:, 1:] = pitch[:, 1:] != pitch[:, :-1]
    if onsets:
        begins[:, 1:] |= (grid[:, 1:] < CODES) & (grid[:, 1:] > 0)
    first = torch.where(begins, step, 0).cummax(1).values
    locked = torch.zeros(grid.shape).scatter_add(1, first, (~free).float()).gather(1, first) > 0
    chosen = torch.rand(grid.shape, generator=generator).gather(1, first) < share
    return (chosen & ~locked).flatten(1)
