"""How likely a text is, token by token: exact, one pass for each window of a one-pass model.

A row has N places, a text has L codes. Two protocols turn p over rows into p over texts, both products of conditionals
and so distributions over all texts of L codes:

    half   p(first N) · prod of p(the next N - N//2 | the N//2 before them): beyond the first window a code is given at
           least half a row of what comes before it
    none   prod of p(N codes) over disjoint chunks, as papers score text8

Text for ``anyfill text generate`` beyond a row is drawn by the law of ``half``. A model of lines scores each line from
its beginning; in lines longer than its rows the same two protocols go on within the line.

One definition of log p(text), for ``score`` and for ``fill``: the product over all codes of the text, and

    text8's symbols    a text is whole words: the space before the first is given, the one behind the last is asked
                       (not in chunks on their own, ``none``, which papers cut anywhere)
    lines              the end code, if there is one; else p(length), the share of lines that are so long altogether
    anything else      nothing is added

    order        models                          log p of a window
    increasing   all that have likelihoods       exact: the sum of log p(token | those before it)
    decreasing   trained for any order (ardm)    exact under the model in that order
    shuffled     trained for any order           from K orders a bound, mean of log p, and an estimate, log of mean p

Bits of a text are the sum over its windows; errors of independent windows add in squares. A token's surprise is -log2
of its own term; under shuffled orders its mean over them, so that surprises sum to the bound.

"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_member
from anyfill.evaluation import log_prob, shared_prefix_log_prob, terms
from anyfill.interface.threads import compute_device
from anyfill.model import Model
from anyfill.questions import Decreasing, Increasing, Order, Question, Shuffled, chain_rank
from anyfill.questions.supported import step_factorization
from anyfill.text.encoding import boundary, encode_text
from anyfill.text.folding import as_text8
from anyfill.text.model import TextModel
from anyfill.text.reading import Source, stretches
from anyfill.text.sampling import trained_for
from anyfill.text.surprises import Token as Token
from anyfill.text.words import Words

_CELLS, _LOGITS = 2**14, 2**22
"""Tokens, and tokens times codes, of one call of the network."""
_ORDERS: dict[str, Order] = {"increasing": Increasing(), "decreasing": Decreasing(), "shuffled": Shuffled()}
_SIDE_BY_SIDE = 96
"""Texts that share what they begin with, read in one call."""


Seen = dict[tuple[tuple[int, ...], ...], Tensor]
"""What was read of windows side by side, each as how many codes of it are given, and its codes: (K, B, N) log p of each
code. Texts that differ in a few words share most of theirs; the same ones side by side give the same digits."""


class TextWindow(NamedTuple):
    """Some codes of a text: int64 (at most N,), the first ``given`` of them given, the others asked."""

    codes: Tensor
    given: int


def text_windows(
    parts: Iterable[tuple[Tensor, bool]], length: int, *, half: bool, opening: int = 0
) -> Iterator[TextWindow]:
    """The windows of texts, in order, each code asked once; a part is some codes (L,) and whether a text begins.

    The first ``opening`` codes of every text are given.
    """
    back = length // 2 if half else 0
    held, given = torch.zeros(0, dtype=torch.int64), 0
    for codes, is_new in parts:
        if is_new:
            if len(held) > given:
                yield TextWindow(held, given)
            held, given = codes, opening
        else:
            held = torch.cat([held, codes])
        while len(held) >= length:
            yield TextWindow(held[:length], given)
            held, given = held[length - back :], back
    if len(held) > given:
        yield TextWindow(held, given)


def rows_of(windows: Sequence[TextWindow], length: int) -> tuple[Tensor, Question]:
    """int64 (B, N): the windows as rows, each from place 0 on, and what is given and asked of them."""
    x = torch.zeros(len(windows), length, dtype=torch.int64)
    for row, window in enumerate(windows):
        x[row, : len(window.codes)] = window.codes
    place, given = torch.arange(length), torch.tensor([[window.given] for window in windows])
    sizes = torch.tensor([[len(window.codes)] for window in windows])
    return x, Question(place < given, (place >= given) & (place < sizes))


def text_log_prob(model: Model, codes: Tensor) -> float:
    """log p of codes (L,), in nats: exact, by the protocol ``half``, nothing added."""
    x, question = rows_of([*text_windows([(codes, True)], model.variables, half=True)], model.variables)
    return float(log_prob(model, x, question).value.sum())


def log_prob_of(loaded: TextModel, text: str, *, seen: Seen | None = None) -> float:
    """log p of a text, in nats, as ``score`` has it; what was ``seen`` of it is not read again, the rest goes there."""
    totals = Totals()
    for _ in Scorer(loaded, seen=seen).tokens(Source("text", text=text), totals):
        pass
    return totals.nats


def log_probs_of(loaded: TextModel, texts: list[str]) -> list[float]:
    """log p of texts, in nats, as ``score`` has it; side by side where each fits in a row, but for models of lines."""
    if not texts:
        return []
    edge = boundary(loaded.vocabulary)
    said = [as_text8(text).strip() for text in texts] if len(edge) else texts
    codes = [torch.cat([edge, encode_text(loaded.vocabulary, text), edge]) for text in said]
    sizes = torch.tensor([len(one) for one in codes])
    if loaded.lines or not all(said) or int(sizes.min()) == 0 or int(sizes.max()) > loaded.length:
        seen: Seen = {}
        return [log_prob_of(loaded, text, seen=seen) for text in texts]
    x = torch.zeros(len(codes), loaded.length, dtype=torch.int64)
    for row, one in enumerate(codes):
        x[row, : len(one)] = one
    order = sizes.argsort(stable=True)
    value = torch.cat([*shared_prefix_log_prob(loaded.model, x[order], sizes[order], rows_per_pass=_SIDE_BY_SIDE)])
    # What a text begins behind is given: its own probability is taken off again.
    return (value[order.argsort()] - (text_log_prob(loaded.model, edge) if len(edge) else 0.0)).tolist()


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
        context: "half" or "none", see the top of this file.
        order: "increasing", "decreasing" or "shuffled".
        orders: K, of shuffled ones.
        seed: of shuffled ones.
        device: "cpu", "cuda", or "auto" for CUDA if it is there.
        seen: windows that have been read and need not be again; None = all are read, none kept.
    """

    text: TextModel
    context: str = "half"
    order: str = "increasing"
    orders: int = 4
    seed: int = 0
    device: str = "cpu"
    seen: Seen | None = None

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

    @property
    def gap(self) -> str:
        """What stands between tokens: a space between words, else nothing."""
        return " " if isinstance(self.text.vocabulary.plain, Words) else ""

    def tokens(self, source: Source, totals: Totals) -> Iterator[tuple[list[Token], float]]:
        """The tokens of a text with their surprise, some at a time, each time with the share of it that is done.

        ``totals`` is added up on the way.
        """
        waiting: deque[tuple[int, str, bool, float]] = deque()
        share = 0.0
        edge = boundary(self.text.vocabulary) if self.context == "half" and not self.text.lines else None
        edge = edge if edge is not None and len(edge) else None

        def read() -> Iterator[tuple[Tensor, bool]]:
            nonlocal share
            place = 0
            for stretch in stretches(source, self.text.vocabulary, lines=self.text.lines):
                below = stretch.is_new and totals.texts > 0 and self.text.vocabulary.end is None
                places = enumerate(zip(stretch.offsets, stretch.texts))
                waiting.extend((offset, text, below and not number, 0.0) for number, (offset, text) in places)
                if self.text.lines and self.text.lengths:  # its share of bits is said with the last token of the line
                    log_share = self.text.length_log_share(len(stretch.codes))
                    waiting[-1] = (*waiting[-1][:3], -log_share / math.log(2))
                    totals.nats += log_share
                    totals.estimate += log_share
                place = stretch.offsets[-1] if stretch.offsets else place
                totals.characters += stretch.characters
                totals.words += stretch.words
                totals.unknown += stretch.unknown
                totals.texts += stretch.is_new
                share = stretch.share
                opened = stretch.codes if edge is None or not stretch.is_new else torch.cat([edge, stretch.codes])
                yield opened, stretch.is_new
            if edge is not None:
                waiting.append((place, "", False, 0.0))
                yield edge, False

        generator = torch.Generator(self._device).manual_seed(self.seed)
        batch, held = list[TextWindow](), list[Token]()
        half, opening = self.context == "half", 0 if edge is None else len(edge)
        for window in chain(text_windows(read(), self.text.length, half=half, opening=opening), [None]):
            if window is not None:
                batch.append(window)
            if batch and (window is None or len(batch) == self.rows):
                for bits in self._bits(batch, totals, generator):
                    offset, text, below, more = waiting.popleft()
                    if text or not held:
                        held.append(Token(offset, text, bits + more, below))
                    else:
                        held[-1] = held[-1]._replace(bits=held[-1].bits + bits + more)
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
        model = self.text.model
        x, question = rows_of(batch, self.text.length)
        asked = question.asked.to(self._device)
        name = tuple((window.given, *window.codes.tolist()) for window in batch)
        draws = None if self.seen is None or self.order == "shuffled" else self.seen.get(name)
        if draws is None:
            draws = self._terms(x.to(self._device), Question(question.given.to(self._device), asked), generator)
            if self.seen is not None:
                self.seen[name] = draws
        self._add(totals, draws.sum(2))
        count = int(asked.sum())
        totals.tokens += count
        totals.windows += len(batch)
        totals.cut += sum(window.given > 0 for window in batch)
        totals.passes += self.draws * (len(batch) if model.is_one_pass else count)
        return (-draws.mean(0)[asked] / math.log(2)).tolist()

    def _terms(self, x: Tensor, question: Question, generator: Generator) -> Tensor:
        """(K, B, N): log p of every asked token of rows x (B, N), under each of K orders."""
        order, found = _ORDERS[self.order], list[Tensor]()
        for _ in range(self.draws):
            rank = chain_rank(order, question, generator=generator if order.random else None)
            found.append(terms(self.text.model, x, rank, generator=generator, rows_per_pass=self.rows))
        return torch.stack(found)

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
