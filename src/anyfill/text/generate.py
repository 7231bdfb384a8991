"""New text, from nothing or behind a beginning.

What fits into a row of N codes is one draw of the model: p(what comes | the beginning). Longer text goes on in windows:
each is given the last codes written, half a row of them (more, if less than the other half is still to be written), and
writes on to its end.

A model of lines writes lines. If its vocabulary has an end code, a line goes on until it is drawn; otherwise the line's
length is drawn from those of the lines that the model was trained on, and only so many places are asked.

The unknown word or character is not drawn, unless it is asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Generator, Tensor
from torch.nn import functional

from anyfill.checks import refuse, require_count
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.network import Network
from anyfill.questions.question import Question
from anyfill.samplers import watch
from anyfill.text.bpe import Bpe
from anyfill.text.encoding import decode_text, encode_prompt, require_letters, written
from anyfill.text.model import ROWS, TextModel
from anyfill.text.sampling import SamplingOptions
from anyfill.text.sentencepieces import Pieces
from anyfill.text.words import Words

LENGTH = 200
"""Codes that are written where nobody says how many and the model is not one of lines."""


@dataclass(frozen=True, slots=True, eq=False)
class Writer:
    """Writes texts.

    Attributes:
        loaded: the model.
        length: codes to write behind the prompt; None = ``LENGTH``, or as long as a line turns out.
        prompt: how each text begins.
        sampling: how to draw.
        unknown: the unknown word or character may be drawn, too.
    """

    loaded: TextModel
    length: int | None = None
    prompt: str = ""
    sampling: SamplingOptions = field(default_factory=SamplingOptions)
    unknown: bool = False

    def __post_init__(self) -> None:
        if self.length is not None:
            require_count("--length", self.length)
        if self.unknown and self.loaded.vocabulary.unknown_code is None:
            raise refuse("--unknown", expected="a model that has a code for unknown words", got="one that has none")
        require_letters(self.loaded.vocabulary, self.prompt, "--prompt")

    def texts(self, n: int) -> Iterator[tuple[list[str], float]]:
        """Draw n texts: those that are done since the last time (often none), and the share of all work that is done.

        Raises:
            ValueError: the prompt has characters that the model does not know, a line would be longer than a row, or
                the model was not trained to go on from a beginning.
        """
        require_count("--n", n)
        generator = self.sampling.generator()
        for first in range(0, n, ROWS):
            rows = min(ROWS, n - first)
            x, given, sizes = self._begun(rows, generator)
            for _, done in self._write(x, given, sizes, generator):
                yield [], 0.999 * (first + rows * done) / n
            texts = [self._joined(row[given:size]) for row, size in zip(x, sizes.tolist())]
            yield texts, (first + rows) / n

    def pieces(self) -> Iterator[tuple[str, float]]:
        """The text that ``texts(1)`` draws, a piece at a time as it is drawn, each with the share that is done."""
        generator, shown = self.sampling.generator(), ""
        x, given, sizes = self._begun(1, generator)
        for sure, done in self._write(x, given, sizes, generator):
            text = self._joined(x[0, given : min(sure, int(sizes))])
            text = text.rstrip("\ufffd")  # the bytes of a character that has not come to its end
            yield text[len(shown) :], 0.999 * done
            shown = text
        yield self._joined(x[0, given : int(sizes)])[len(shown) :], 1.0

    def _begun(self, rows: int, generator: Generator) -> tuple[Tensor, int, Tensor]:
        """int64 (B, T): rows that begin with the prompt; its length; and how long each of them shall be, at most T."""
        prompt = encode_prompt(self.loaded.vocabulary, self.prompt, lines=self.loaded.lines)
        sizes = self._sizes(len(prompt), rows, generator)
        x = torch.zeros(rows, int(sizes.max()), dtype=torch.int64)
        x[:, : len(prompt)] = prompt
        return x, len(prompt), sizes

    def _sizes(self, given: int, rows: int, generator: Generator) -> Tensor:
        """int64 (rows,): how many codes each text shall have, those of the prompt included."""
        units, limit, asked = self.loaded.vocabulary.units, self.loaded.length, self.length
        if not self.loaded.lines:
            return torch.full((rows,), given + (LENGTH if asked is None else asked))
        if given + (asked or 1) > limit:
            expected = f"a line of at most {limit} {units} with its prompt, as the model was trained on"
            raise refuse("text", expected=expected, got=given + (asked or 1))
        if asked is not None:
            return torch.full((rows,), given + asked)
        if not self.loaded.lengths:
            return torch.full((rows,), limit)
        counts = torch.tensor(self.loaded.lengths[: limit + 1], dtype=torch.float64)
        counts[: given + 1] = 0
        if not bool(counts.sum() > 0):
            expected = f"a beginning of a line, of at most {len(self.loaded.lengths) - 2} {units}"
            raise refuse("--prompt", expected=expected, got=given)
        return torch.multinomial(counts, rows, replacement=True, generator=generator)

    def _write(self, x: Tensor, given: int, sizes: Tensor, generator: Generator) -> Iterator[tuple[int, float]]:
        """Write into x (B, T) all that stands behind the first ``given`` codes; row i is asked up to its size (B,).

        Yields how many codes of the first row are written without a gap, and the share of all that is done.
        """
        model, length, total, begun = self._model(), self.loaded.length, x.shape[1], given
        while given < total:
            back = min(given, max(length // 2, length - (total - given)))
            start, stop = given - back, min(total, given - back + length)
            place = torch.arange(length).expand(len(x), length)
            question = Question(place < back, (place >= back) & (start + place < sizes.unsqueeze(1)))
            expected = "a model that can go on from the beginning of a text"
            self.sampling.require_supported(model, question, "generating", expected)
            row = functional.pad(x[:, start:stop], (0, length - (stop - start)))
            steps = stop - given
            policy = self.sampling.policy(model, steps)
            states = watch(model, row, question, policy=policy, draw=self.sampling.draw, generator=generator)
            state = next(states)
            for state in states:
                x[:, given:stop] = state.x[:, back : stop - start]
                sure = int(state.known[0, back:].long().cumprod(0).sum())
                yield given + sure, (given - begun + min(state.step, steps)) / (total - begun)
            x[:, given:stop] = state.x[:, back : stop - start]
            given = stop

    def _model(self) -> Model:
        """The model, less the unknown code: p(code | it is a known one)."""
        model, unknown = self.loaded.model, self.loaded.vocabulary.unknown_code
        if self.unknown or unknown is None:
            return model
        likelihood = Categorical(self.loaded.vocabulary.size, (unknown,))
        parts: Any = {"corruption": model.corruption, "order": model.order, "factorizations": model.factorizations}
        return Model(cast(Network, model.network), likelihood, **parts).train(model.training)

    def _joined(self, codes: Tensor) -> str:
        """The prompt and what was written behind it (L,); of a line, up to its end."""
        vocabulary, prompt = self.loaded.vocabulary, self.prompt
        text = written(vocabulary, codes) if self.loaded.lines else decode_text(vocabulary, codes)
        match vocabulary.plain:
            case Words():
                return f"{prompt} {text}" if prompt and not prompt[-1].isspace() else prompt + text
            case Pieces() | Bpe():
                return prompt + (text.removeprefix(" ") if prompt.endswith(" ") else text)
            case _:
                return prompt + text
