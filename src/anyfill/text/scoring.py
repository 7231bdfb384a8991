"""How likely a text is, token by token: exact, one pass for each window of a one-pass model.

Text longer than a row is cut by one of the two protocols of ``anyfill.text.windows``, "half" or "none".
Text for ``anyfill text generate`` beyond a row is drawn by the law of ``half``. A model of lines scores each line from
its beginning; in lines longer than its rows the same two protocols go on within the line.

    order        models                          log p of a window
    increasing   all that have likelihoods       exact: the sum of log p(token | those before it)
    decreasing   trained for any order (ardm)    exact under the model in that order
    shuffled     trained for any order           from K orders a bound, mean of log p, and an estimate, log of mean p

Bits of a text are the sum over its windows; errors of independent windows add in squares. A token's surprise is -log2
of its own term; under shuffled orders its mean over them, so that surprises sum to the bound.

A file streams by, and memory does not grow with it. Text for a model of text8's 27 symbols is folded on the way
(``as_text8``), block by block with the same result as at once: where two spaces meet between blocks, one is dropped.
Offsets count characters of the text as the model sees it. The ends of lines that such a text ends with are how files
end, and no space. For a model of lines each line is a text of its own: blank ones are left out, what ends a line is no
text, and the vocabulary's end code, if it has one, stands for it. A token that writes nothing of its own (the second
byte of a character) stands for "".
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_member
from anyfill.evaluation import terms
from anyfill.interface.threads import compute_device
from anyfill.questions.order import Decreasing, Increasing, Shuffled
from anyfill.questions.question import Order, Question, chain_rank
from anyfill.questions.supported import step_factorization
from anyfill.text.alphabet import is_folded, plain
from anyfill.text.encoding import MAX_LINE
from anyfill.text.model import TextModel, trained_for
from anyfill.text.reading import Source
from anyfill.text.vocabulary import Characters, Vocabulary, as_text8
from anyfill.text.windows import TextWindow, rows_of, text_windows

_BLOCK = 2**16
"""Bytes of text read at a time."""
_CELLS, _LOGITS = 2**14, 2**22
"""Tokens, and tokens times codes, of one call of the network."""
_ORDERS: dict[str, Order] = {"increasing": Increasing(), "decreasing": Decreasing(), "shuffled": Shuffled()}


class Stretch(NamedTuple):
    """Some tokens of a text.

    Attributes:
        codes: int64 (L,).
        texts: L, the characters that each token stands for.
        offsets: L, where they begin in the text.
        is_new: a text begins here, of which nothing comes before.
        characters, words, unknown: how many there are of each.
        share: of the whole work that is done when these are.
    """

    codes: Tensor
    texts: list[str]
    offsets: list[int]
    is_new: bool
    characters: int
    words: int
    unknown: int
    share: float


def stretches(source: Source, vocabulary: Vocabulary, *, lines: bool = False, block: int = _BLOCK) -> Iterator[Stretch]:
    """The tokens of a text, a stretch at a time; ValueError if it has none, or a character without a code."""
    found = _lines(source, vocabulary, block) if lines else _text(source, vocabulary, block)
    words = tokens = 0
    for stretch in found:
        words, tokens = words + stretch.words, tokens + len(stretch.codes)
        yield stretch
    if not tokens or (is_folded(vocabulary) and not words):
        expected = "text with letters from a to z" if is_folded(vocabulary) else "text"
        raise refuse(source.name, expected=expected, got="none")


def _text(source: Source, vocabulary: Vocabulary, block: int) -> Iterator[Stretch]:
    waiting, offset, is_new, in_word, ends_in_space, end = "", 0, True, False, False, ""
    for part in source.blocks(block):
        text = part.text
        if is_folded(vocabulary):
            text = end + text
            lines = text.rstrip("\r\n")
            end = "\n" if len(lines) < len(text) else ""  # folded it is one space, if more text comes
            text = as_text8(lines)
            text = text[1:] if ends_in_space and text.startswith(" ") else text
            ends_in_space = text.endswith(" ") if text else ends_in_space
        text = waiting + text
        place = len(text) if part.is_last else vocabulary.cut(text)
        text, waiting = text[:place], text[place:]
        if text:
            words = len(text.split()) - (in_word and not text[0].isspace())
            in_word = not text[-1].isspace()
            yield _stretch(source, vocabulary, text, offset, is_new, words, part.read / max(part.total, 1))
            offset, is_new = offset + len(text), False


def _lines(source: Source, vocabulary: Vocabulary, block: int) -> Iterator[Stretch]:
    waiting, offset = "", 0
    for part in source.blocks(block):
        *whole, waiting = (waiting + part.text).split("\n")
        if part.is_last:
            whole.append(waiting)
        elif len(waiting) > MAX_LINE:
            got = f"a longer one at character {offset:,}"
            raise refuse(source.name, expected=f"lines of at most {MAX_LINE:,} characters", got=got)
        for line in whole:
            text = line.removesuffix("\r")
            text = as_text8(text).strip() if is_folded(vocabulary) else text
            if text.strip():
                yield _line(source, vocabulary, text, offset, part.read / max(part.total, 1))
            offset += (len(text) if is_folded(vocabulary) else len(line)) + 1


def _line(source: Source, vocabulary: Vocabulary, text: str, offset: int, share: float) -> Stretch:
    stretch = _stretch(source, vocabulary, text, offset, True, len(text.split()), share)
    if vocabulary.end is None:
        return stretch
    codes = torch.cat([stretch.codes, torch.tensor([vocabulary.end])])
    texts, offsets = [*stretch.texts, "\n"], [*stretch.offsets, offset + len(text)]
    return stretch._replace(codes=codes, texts=texts, offsets=offsets, characters=stretch.characters + 1)


def _stretch(
    source: Source, vocabulary: Vocabulary, text: str, offset: int, is_new: bool, words: int, share: float
) -> Stretch:
    inner = plain(vocabulary)
    try:
        codes = inner.encode(text).long()
    except ValueError as error:
        place = next((i for i, one in enumerate(text) if not _has_code(inner, one)), 0)
        raise ValueError(f"{source.name}, offset {offset + place:,}: {str(error).removeprefix('text: ')}") from None
    texts, offsets = inner.spell(text, codes)
    unknown = inner.unknown_code
    count = 0 if unknown is None else int((codes == unknown).sum())
    if isinstance(inner, Characters) and unknown is not None:
        count -= text.count(inner.unknown)  # it may stand for itself
    return Stretch(codes, texts, [offset + place for place in offsets], is_new, len(text), words, count, share)


def _has_code(vocabulary: Vocabulary, character: str) -> bool:
    try:
        vocabulary.encode(character)
    except ValueError:
        return False
    return True


class Token(NamedTuple):
    """A token and its surprise.

    Attributes:
        offset: where it begins in the text that the model sees, in characters.
        text: what it stands for.
        bits: -log2 of its probability.
        is_below: a line begins with it below another, and no token says so.
    """

    offset: int
    text: str
    bits: float
    is_below: bool = False


@dataclass(slots=True)
class Totals:
    """What is known when all tokens of a text are scored; nats and counts."""

    nats: float = 0.0
    estimate: float = 0.0
    variance: float = 0.0
    estimate_variance: float = 0.0
    tokens: int = 0
    characters: int = 0
    words: int = 0
    unknown: int = 0
    texts: int = 0
    windows: int = 0
    cut: int = 0
    passes: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Scorer:
    """Scores texts under a model; ValueError if the model was not trained for the order.

    Attributes:
        text: the model and its vocabulary.
        context: "half" or "none", see ``anyfill.text.windows``.
        order: "increasing", "decreasing" or "shuffled".
        orders: K, of shuffled ones.
        seed: of shuffled ones.
        device: "cpu", "cuda", or "auto" for CUDA if it is there.
    """

    text: TextModel
    context: str = "half"
    order: str = "increasing"
    orders: int = 4
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        require_member("--context", self.context, ("half", "none"))
        require_member("--order", self.order, _ORDERS)
        require_count("--orders", self.orders)
        device, model = compute_device(self.device), self.text.model
        if model.corruption.shows_unknown:
            expected = "a model that has likelihoods (anyfill text train --recipe one_pass_spans)"
            raise refuse(self.text.name, expected=expected, got="one that reads noise (sunmask, sundae)")
        nothing = torch.zeros(1, model.variables, dtype=torch.bool)
        whole = Question(nothing, ~nothing)
        if step_factorization(model.factorizations, whole, model.order, order=_ORDERS[self.order]) is None:
            if self.order == "increasing":
                expected = "a model that scores from left to right (anyfill text train)"
                raise refuse(self.text.name, expected=expected, got=trained_for(model))
            own = "increasing" if model.order == Increasing() else repr(model.order)
            expected = f"{own}, the only order of this model (one of --recipe ardm has any order)"
            raise refuse("--order", expected=expected, got=self.order)
        model.to(device)

    @property
    def draws(self) -> int:
        """Orders that are asked for each window."""
        return self.orders if self.order == "shuffled" else 1

    @property
    def rows(self) -> int:
        """Windows that are scored side by side."""
        length, codes = self.text.length, self.text.vocabulary.size
        return max(1, min(_CELLS // length, _LOGITS // (length * codes)))

    @property
    def kind(self) -> Literal["exact", "bound", "estimate"]:
        """What kind of number the bits are."""
        if not self.text.model.is_exact:
            return "estimate"
        return "bound" if self.order == "shuffled" else "exact"

    def tokens(self, source: Source, totals: Totals) -> Iterator[tuple[list[Token], float]]:
        """The tokens of a text with their surprise, some at a time, each time with the share of it that is done.

        ``totals`` is added up on the way.
        """
        waiting: deque[tuple[int, str, bool]] = deque()
        share = 0.0

        def read() -> Iterator[tuple[Tensor, bool]]:
            nonlocal share
            for stretch in stretches(source, self.text.vocabulary, lines=self.text.lines):
                below = stretch.is_new and totals.texts > 0 and self.text.vocabulary.end is None
                places = enumerate(zip(stretch.offsets, stretch.texts))
                waiting.extend((offset, text, below and not place) for place, (offset, text) in places)
                totals.characters += stretch.characters
                totals.words += stretch.words
                totals.unknown += stretch.unknown
                totals.texts += stretch.is_new
                share = stretch.share
                yield stretch.codes, stretch.is_new

        generator = torch.Generator(self._device).manual_seed(self.seed)
        batch, held = list[TextWindow](), list[Token]()
        for window in chain(text_windows(read(), self.text.length, half=self.context == "half"), [None]):
            if window is not None:
                batch.append(window)
            if batch and (window is None or len(batch) == self.rows):
                for bits in self._bits(batch, totals, generator):
                    offset, text, below = waiting.popleft()
                    if text or not held:
                        held.append(Token(offset, text, bits, below))
                    else:
                        held[-1] = held[-1]._replace(bits=held[-1].bits + bits)
                batch = []
                if len(held) > 1:  # the last one may still grow
                    yield held[:-1], min(share, 0.999)
                    held = held[-1:]
        yield held, 1.0

    @property
    def _device(self) -> torch.device:
        return next(self.text.model.parameters()).device

    def _bits(self, batch: list[TextWindow], totals: Totals, generator: Generator) -> list[float]:
        """The surprise of every asked token of the windows, in order."""
        model, order = self.text.model, _ORDERS[self.order]
        x, question = rows_of(batch, self.text.length)
        x, asked = x.to(self._device), question.asked.to(self._device)
        question = Question(question.given.to(self._device), asked)
        draws: list[Tensor] = []
        for _ in range(self.draws):
            rank = chain_rank(order, question, generator=generator if order.random else None)
            draws.append(terms(model, x, rank, generator=generator, rows_per_pass=self.rows))
        self._add(totals, torch.stack(draws).sum(2))
        count = int(asked.sum())
        totals.tokens += count
        totals.windows += len(batch)
        totals.cut += sum(window.given > 0 for window in batch)
        totals.passes += self.draws * (len(batch) if model.is_one_pass else count)
        return (-torch.stack(draws).mean(0)[asked] / math.log(2)).tolist()

    def _add(self, totals: Totals, values: Tensor) -> None:
        """Add the log-probabilities (K, B) of windows under K orders."""
        draws = len(values)
        estimate = values.logsumexp(0) - math.log(draws)
        totals.nats += float(values.mean(0).sum())
        totals.estimate += float(estimate.sum())
        if draws > 1:
            relative = (values - estimate).exp()
            totals.variance += float((values.var(0) / draws).sum())
            totals.estimate_variance += float((relative.var(0) / draws).sum())
