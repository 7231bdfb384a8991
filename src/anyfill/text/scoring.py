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
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.evaluation import terms
from anyfill.interface.threads import compute_device
from anyfill.questions.order import Decreasing, Increasing, Shuffled
from anyfill.questions.question import Order, Question, chain_rank
from anyfill.questions.supported import step_factorization
from anyfill.text.model import TextModel
from anyfill.text.reading import Source
from anyfill.text.sampling import trained_for
from anyfill.text.stream import stretches
from anyfill.text.windows import TextWindow, rows_of, text_windows

_CELLS, _LOGITS = 2**14, 2**22
"""Tokens, and tokens times codes, of one call of the network."""
_ORDERS: dict[str, Order] = {"increasing": Increasing(), "decreasing": Decreasing(), "shuffled": Shuffled()}


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
        if self.context not in ("half", "none"):
            raise refuse("--context", expected="half or none", got=repr(self.context))
        if self.order not in _ORDERS:
            raise refuse("--order", expected=" or ".join(_ORDERS), got=repr(self.order))
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
