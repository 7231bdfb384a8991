"""How likely a text is, token by token: exact, one pass for each window of a one-pass model.

A model sees N tokens at a time, a text has L. Two protocols turn p over windows into p over texts, both products of
conditionals and so distributions over all texts of L tokens:

    half   p(first N) · prod of p(the next N - N//2 | the N//2 before them): beyond the first window a token is given at
           least half a row of what comes before it
    none   prod of p(N tokens) over disjoint chunks, as papers score text8

Text for ``anyfill text generate`` beyond a row is drawn by the law of ``half``. A model of lines scores each line from
its beginning; in lines longer than its rows the same two protocols go on within the line.

    order        models                          log p of a window
    increasing   all that have likelihoods       exact: the sum of log p(token | those before it)
    decreasing   trained for any order (ardm)    exact under the model in that order
    shuffled     trained for any order           from K orders a bound, mean of log p, and an estimate, log of mean p

Bits of a text are the sum over its windows; errors of independent windows add in squares. A token's surprise is -log2
of its own term; under shuffled orders its mean over them, so that surprises sum to the bound.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.evaluation.chain import terms
from anyfill.questions.order import Decreasing, Increasing, Shuffled
from anyfill.questions.question import Order, Question, chain_rank
from anyfill.questions.supported import step_factorization
from anyfill.text.manner import trained_for
from anyfill.text.model import TextModel
from anyfill.text.stream import Source, Stretch, stretches

_CELLS, _LOGITS = 2**14, 2**22
"""Tokens, and tokens times codes, of one call of the network."""
_ORDERS: dict[str, Order] = {"increasing": Increasing(), "decreasing": Decreasing(), "shuffled": Shuffled()}


@dataclass(frozen=True, slots=True)
class Protocol:
    """How a text is scored; see the top of this file.

    Attributes:
        context: "half" or "none".
        order: "increasing", "decreasing" or "shuffled".
        orders: K, of shuffled ones.
        seed: of shuffled ones.
    """

    context: Literal["half", "none"] = "half"
    order: Literal["increasing", "decreasing", "shuffled"] = "increasing"
    orders: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        if self.context not in ("half", "none"):
            raise refuse("--context", expected="half or none", got=repr(self.context))
        if self.order not in _ORDERS:
            raise refuse("--order", expected=" or ".join(_ORDERS), got=repr(self.order))
        require_count("--orders", self.orders)

    @property
    def draws(self) -> int:
        """Orders that are asked for each window."""
        return self.orders if self.order == "shuffled" else 1


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


class Window(NamedTuple):
    """Some tokens of a text: codes int64 (at most N,), the first ``told`` of them given, the others asked."""

    codes: Tensor
    told: int


def windows(found: Iterable[Stretch], length: int, *, half: bool) -> Iterator[Window]:
    """The windows of texts, in order: each token is asked once."""
    back = length // 2 if half else 0
    held, told = torch.zeros(0, dtype=torch.int64), 0
    for stretch in found:
        if stretch.is_new:
            if len(held) > told:
                yield Window(held, told)
            held, told = stretch.codes, 0
        else:
            held = torch.cat([held, stretch.codes])
        while len(held) >= length:
            yield Window(held[:length], told)
            held, told = held[length - back :], back
    if len(held) > told:
        yield Window(held, told)


@dataclass(frozen=True, slots=True, eq=False)
class Scorer:
    """Scores texts under a model; ValueError if the model was not trained for the protocol's order.

    Attributes:
        text: the model and its vocabulary.
        protocol: how.
        device: "cpu", "cuda", or "auto" for CUDA if it is there.
    """

    text: TextModel
    protocol: Protocol = field(default_factory=Protocol)
    device: str = "cpu"

    def __post_init__(self) -> None:
        model = self.text.model
        if self.device == "cuda" and not torch.cuda.is_available():
            raise refuse("--device", expected="cpu (torch finds no CUDA device here)", got="cuda")
        if model.corruption.shows_unknown:
            expected = "a model that has likelihoods (anyfill text train --recipe one_pass_spans)"
            raise refuse(self.text.name, expected=expected, got="one that reads noise (sunmask, sundae)")
        nothing = torch.zeros(1, model.variables, dtype=torch.bool)
        whole = Question(nothing, ~nothing)
        if step_factorization(model.factorizations, whole, model.order, order=self.order) is None:
            own = "increasing" if model.order == Increasing() else repr(model.order)
            expected = f"{own}, the only order of this model (one of --recipe ardm has any order)"
            if self.protocol.order == "increasing":
                expected = "a model that scores from left to right (anyfill text train)"
            got = trained_for(model) if self.protocol.order == "increasing" else self.protocol.order
            raise refuse("--order" if got == self.protocol.order else self.text.name, expected=expected, got=got)
        model.to("cuda" if self.device != "cpu" and torch.cuda.is_available() else "cpu")

    @property
    def order(self) -> Order:
        """The order that is asked."""
        return _ORDERS[self.protocol.order]

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
        return "bound" if self.protocol.order == "shuffled" else "exact"

    def tokens(self, source: Source, totals: Totals) -> Iterator[tuple[list[Token], float]]:
        """The tokens of a text with their surprise, some at a time, each time with the share of it that is done.

        ``totals`` is added up on the way.
        """
        waiting: deque[tuple[int, str, bool]] = deque()
        share = 0.0

        def read() -> Iterator[Stretch]:
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
                yield stretch

        generator = torch.Generator(self._device).manual_seed(self.protocol.seed)
        half, held = self.protocol.context == "half", list[Token]()
        batch: list[Window] = []
        for window in _then_none(windows(read(), self.text.length, half=half)):
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

    def _bits(self, batch: list[Window], totals: Totals, generator: Generator) -> list[float]:
        """The surprise of every asked token of the windows, in order."""
        x = torch.zeros(len(batch), self.text.length, dtype=torch.int64)
        sizes = torch.tensor([[len(window.codes)] for window in batch])
        told = torch.tensor([[window.told] for window in batch])
        for row, window in enumerate(batch):
            x[row, : len(window.codes)] = window.codes
        place = torch.arange(self.text.length)
        asked = ((place >= told) & (place < sizes)).to(self._device)
        question = Question((place < told).to(self._device), asked)
        x, model = x.to(self._device), self.text.model
        draws: list[Tensor] = []
        for _ in range(self.protocol.draws):
            rank = chain_rank(self.order, question, generator=generator if self.order.random else None)
            draws.append(terms(model, x, rank, generator=generator, rows_per_pass=self.rows))
        self._add(totals, torch.stack(draws).sum(2))
        count = int(asked.sum())
        totals.tokens += count
        totals.windows += len(batch)
        totals.cut += sum(window.told > 0 for window in batch)
        totals.passes += self.protocol.draws * (len(batch) if model.is_one_pass else count)
        mean = torch.stack(draws).mean(0)
        return (-mean[asked] / math.log(2)).tolist()

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


def _then_none(found: Iterator[Window]) -> Iterator[Window | None]:
    yield from found
    yield None
