"""New text, from nothing or behind a beginning.

What fits into a row of N codes is one draw of the model: p(what comes | the beginning). Longer text goes on in windows:
each is told the last codes written, half a row of them (more, if less than the other half is still to be written), and
writes on to its end.

A model of lines writes lines. If its vocabulary has an end code, a line goes on until it is drawn; otherwise the line's
length is drawn from those of the lines that the model was trained on, and only so many places are asked.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor
from torch.nn import functional

from anyfill.checks import refuse, require_count
from anyfill.model import Model
from anyfill.questions.question import Question
from anyfill.questions.supported import completed
from anyfill.samplers import watch
from anyfill.text.alphabet import decode, encode_prompt, plain, unit
from anyfill.text.manner import ROWS, Manner, generator_of, trained_for
from anyfill.text.model import TextModel
from anyfill.text.pieces import Pieces
from anyfill.text.words import Words

LENGTH = 200
"""Codes that are written where nobody says how many and the model is not one of lines."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted.

    Attributes:
        count: how many texts.
        length: codes to write behind the prompt; None = ``LENGTH``, or as long as a line turns out.
        prompt: how each text begins.
        manner: how to draw.
        seed: of everything random.
    """

    count: int = 1
    length: int | None = None
    prompt: str = ""
    manner: Manner = field(default_factory=Manner)
    seed: int = 0

    def __post_init__(self) -> None:
        require_count("--n", self.count)
        if self.length is not None:
            require_count("--length", self.length)


def generate(loaded: TextModel, wanted: Wanted) -> Iterator[tuple[list[str], float]]:
    """Draw texts: those that are done since the last time (often none), and the share of all work that is done.

    Raises:
        ValueError: the prompt has characters that the model does not know, a line would be longer than a row, or the
            model was not trained to go on from a beginning.
    """
    generator = generator_of(wanted.seed)
    prompt = encode_prompt(loaded.vocabulary, wanted.prompt, lines=loaded.lines)
    for first in range(0, wanted.count, ROWS):
        rows = min(ROWS, wanted.count - first)
        sizes = _sizes(loaded, wanted, len(prompt), rows, generator)
        x = _begun(prompt, sizes)
        for _, done in _write(loaded.model, x, len(prompt), sizes, wanted.manner, generator):
            yield [], 0.999 * (first + rows * done) / wanted.count
        written = [row[len(prompt) : size] for row, size in zip(x, sizes.tolist())]
        yield [_joined(loaded, wanted.prompt, codes) for codes in written], (first + rows) / wanted.count


def stream(loaded: TextModel, wanted: Wanted) -> Iterator[tuple[str, float]]:
    """The one text that ``generate`` draws, a piece at a time as it is drawn, each with the share that is done.

    The pieces are the text, put together. ``wanted.count`` must be 1; raises as ``generate``.
    """
    if wanted.count != 1:
        raise refuse("--n", expected="1, for one text at a time comes in pieces", got=wanted.count)
    generator = generator_of(wanted.seed)
    prompt = encode_prompt(loaded.vocabulary, wanted.prompt, lines=loaded.lines)
    sizes = _sizes(loaded, wanted, len(prompt), 1, generator)
    x, shown = _begun(prompt, sizes), ""
    for sure, done in _write(loaded.model, x, len(prompt), sizes, wanted.manner, generator):
        text = _joined(loaded, wanted.prompt, x[0, len(prompt) : min(sure, int(sizes))])
        text = text.rstrip("\ufffd")  # the bytes of a character that has not come to its end
        yield text[len(shown) :], 0.999 * done
        shown = text
    yield _joined(loaded, wanted.prompt, x[0, len(prompt) : int(sizes)])[len(shown) :], 1.0


def _begun(prompt: Tensor, sizes: Tensor) -> Tensor:
    """int64 (B, the greatest size): rows that begin with the prompt."""
    x = torch.zeros(len(sizes), int(sizes.max()), dtype=torch.int64)
    x[:, : len(prompt)] = prompt
    return x


def _sizes(loaded: TextModel, wanted: Wanted, told: int, rows: int, generator: Generator) -> Tensor:
    """int64 (rows,): how many codes each text shall have, those of the prompt included."""
    units, length = unit(loaded.vocabulary), loaded.length
    if not loaded.lines:
        return torch.full((rows,), told + (LENGTH if wanted.length is None else wanted.length))
    if told + (wanted.length or 1) > length:
        expected = f"a line of at most {length} {units} with its prompt, as the model was trained on"
        raise refuse("text", expected=expected, got=told + (wanted.length or 1))
    if wanted.length is not None:
        return torch.full((rows,), told + wanted.length)
    if not loaded.lengths:
        return torch.full((rows,), length)
    counts = torch.tensor(loaded.lengths[: length + 1], dtype=torch.float64)
    counts[: told + 1] = 0
    if not bool(counts.sum() > 0):
        expected = f"a beginning of a line, of at most {len(loaded.lengths) - 2} {units}"
        raise refuse("--prompt", expected=expected, got=told)
    return torch.multinomial(counts, rows, replacement=True, generator=generator)


def _write(
    model: Model, x: Tensor, told: int, sizes: Tensor, manner: Manner, generator: Generator
) -> Iterator[tuple[int, float]]:
    """Write into x (B, T) all that stands behind the first ``told`` codes; row i is asked up to its size (B,).

    Yields how many codes of the first row are written without a gap, and the share of all that is done.
    """
    length, total, begun = model.variables, x.shape[1], told
    while told < total:
        back = min(told, max(length // 2, length - (total - told)))
        start, stop = told - back, min(total, told - back + length)
        place = torch.arange(length).expand(len(x), length)
        question = Question(place < back, (place >= back) & (start + place < sizes.unsqueeze(1)))
        _require_supported(model, question, manner)
        row = functional.pad(x[:, start:stop], (0, length - (stop - start)))
        steps = stop - told
        policy = manner.policy(model, steps)
        states = watch(model, row, question, policy=policy, draw=manner.draw, generator=generator)
        state = next(states)
        for state in states:
            x[:, told:stop] = state.x[:, back : stop - start]
            sure = int(state.known[0, back:].long().cumprod(0).sum())
            yield told + sure, (told - begun + min(state.step, steps)) / (total - begun)
        x[:, told:stop] = state.x[:, back : stop - start]
        told = stop


def _require_supported(model: Model, question: Question, manner: Manner) -> None:
    """ValueError, in the words of this command, if the model was not trained for it."""
    if manner.sampler in ("exact", "speculative"):
        try:
            completed(model.factorizations, question, model.order, order=model.order)
        except ValueError:
            expected = "a model that can go on from the beginning of a text"
            raise refuse("generating", expected=expected, got=trained_for(model)) from None


def _joined(loaded: TextModel, prompt: str, codes: Tensor) -> str:
    """The prompt and what was written behind it (L,); of a line, up to its end."""
    vocabulary = loaded.vocabulary
    text = vocabulary.decode(codes) if loaded.lines else decode(vocabulary, codes)
    match plain(vocabulary):
        case Words():
            return f"{prompt} {text}" if prompt and not prompt[-1].isspace() else prompt + text
        case Pieces():
            return prompt + (text.removeprefix(" ") if prompt.endswith(" ") else text)
        case _:
            return prompt + text
