"""The posterior of p(text) for a blank of one or two codes, computed without the search that ``fill`` does.

    p(b | s, t) = p(s b t) / sum over b' of p(s b' t)

One code: of all V codes. p(s b t) is at most p(s b t_1 … t_j), so what is behind a blank is read in three stages, and
a code goes no further once that bound is e^-14 of what has been found; the bounds of all that stopped are added up.

Two codes: all pairs of ``FIRSTS`` first codes by each of three laws, that of s alone, the direct answer and the
geometric mean of both, with all V second codes; of these the ``PAIRS`` pairs of greatest law, by each of the three, are
read in the same way. What the others have is estimated by importance sampling, from the geometric mean: pairs of those
first codes that were not read, and pairs with other first codes, ``DRAWS`` of each.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from anyfill.evaluation import Beginning, read_beginning, shared_prefix_log_prob
from anyfill.model import Model
from anyfill.questions.question import Question
from anyfill.text.consistency import SecondCode, opened_blank
from anyfill.text.word_proposals import code_log_probs

FIRSTS, PAIRS, DRAWS = 512, 2048, 64
_REACH = 14.0
_ROWS = 256


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What the joint says of a blank.

    Attributes:
        answers: int64 (A, size), the codes of all answers that were read.
        log_prob: float64 (A,), log p of the text with each; -inf for those that stopped early.
        log_total: of the sum over all answers there are: those, and for two codes an estimate of the others.
        bounded: at most this share is with answers that stopped early.
    """

    answers: Tensor
    log_prob: Tensor
    log_total: float
    bounded: float

    @property
    def shares(self) -> Tensor:
        """float64 (A,): the posterior of each; together 1 - ``missing``."""
        return (self.log_prob - self.log_total).exp()

    @property
    def missing(self) -> float:
        """The share of all answers that were not read, estimated; 0 for one code."""
        return max(0.0, 1.0 - float(self.shares.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class _Blank:
    """A text of codes (L,) with a blank of ``size`` codes at ``start``, and what was read of what stands before."""

    model: Model
    codes: Tensor
    start: int
    size: int
    before: Beginning

    def joint(self, answers: Tensor, stop: int | None = None) -> Tensor:
        """float64 (A,): log p of the text with each of the answers (A, size), up to ``stop``."""
        if not len(answers):
            return torch.zeros(0, dtype=torch.float64)
        x = torch.zeros(len(answers), self.model.variables, dtype=torch.int64)
        x[:, : len(self.codes)] = self.codes
        x[:, self.start : self.start + self.size] = answers
        sizes = torch.full((len(x),), len(self.codes) if stop is None else stop)
        how = {"beginning": self.before, "rows_per_pass": _ROWS}
        return torch.cat([*shared_prefix_log_prob(self.model, x, sizes, **how)])  # pyright: ignore[reportArgumentType]

    def behind(self, second: SecondCode, pairs: Tensor) -> Tensor:
        """float64 (A,): log p of the first code behind each of the pairs (A, 2), given them and all before."""
        network, values = second.network, list[Tensor]()
        with self.model.evaluating():
            for part in pairs.split(_ROWS):  # sorted by their first code
                firsts, number = part[:, 0].unique(return_inverse=True)
                _, cache = network.extend(firsts, network.select(second.cache, torch.zeros_like(firsts)))
                params, _ = network.extend(part[:, 1].contiguous(), network.select(cache, number))
                values.append(
                    code_log_probs(self.model, params, self.start + 2)[:, self.codes[self.start + 2]].double()
                )
        return torch.cat(values)


def reference(model: Model, codes: Tensor, start: int, size: int) -> Reference:
    """The posterior of the blank at ``start`` of 1 or 2 codes in a text of codes (L,), at most a row."""
    x = torch.zeros(1, model.variables, dtype=torch.int64)
    x[0, : len(codes)] = codes
    place = torch.arange(model.variables).unsqueeze(0)
    asked = (place >= start) & (place < start + size)
    direct, behind_direct = opened_blank(model, x, Question((place < len(codes)) & ~asked, asked), start)
    left, behind_left = opened_blank(model, x, Question(place < start, (place >= start) & (place < len(codes))), start)
    before = read_beginning(model, codes[:start], len(codes) + 1)
    blank = _Blank(model, codes, start, size, before)
    begin = float(blank.joint(direct.topk(1).indices.unsqueeze(1).expand(1, size), start))
    tail = torch.zeros(0, dtype=torch.float64)
    if size == 1:
        answers, law = torch.arange(len(direct)).unsqueeze(1), (left + direct) / 2
    else:
        table = _Table.of(left, direct, behind_left, behind_direct)
        answers, left, law = table.likely()
        tail = torch.cat([tail, *(blank.joint(drawn) - weight for drawn, weight in table.unread(answers))])
        left = left + blank.behind(behind_left, answers)  # the first code behind, read with what pairs share
    value, stopped = _read(blank, answers, begin + left, law)
    total = value.logsumexp(0)
    if len(tail):  # the mean of each half is an estimate of one part
        total = torch.logaddexp(total, tail.logsumexp(0) - math.log(DRAWS))
    bounded = float((stopped.logsumexp(0) - total).exp()) if len(stopped) else 0.0
    return Reference(answers, value, float(total), bounded)


def kept_reference(path: Path, model: Model, codes: Tensor, start: int, size: int) -> Reference:
    """The same, from this file if it has been kept there, else computed and kept."""
    asked = torch.tensor([*codes.tolist(), start, size])
    if path.is_file():
        stored = load_file(path)
        if torch.equal(stored["asked"], asked):
            total, bounded = stored["numbers"].tolist()
            return Reference(stored["answers"], stored["log_prob"], total, bounded)
    made = reference(model, codes, start, size)
    numbers = torch.tensor([made.log_total, made.bounded], dtype=torch.float64)
    parts = {"asked": asked, "answers": made.answers.contiguous(), "log_prob": made.log_prob, "numbers": numbers}
    save_file(parts, path)
    return made


def _read(blank: _Blank, answers: Tensor, bound: Tensor, law: Tensor) -> tuple[Tensor, Tensor]:
    """log p (A,) of the text with each answer, -inf for those that stopped, and the bounds of these."""
    value = torch.full((len(answers),), -torch.inf, dtype=torch.float64)
    first = law.topk(min(32, len(law))).indices
    value[first] = blank.joint(answers[first])
    least = float(value.logsumexp(0)) - _REACH
    alive = torch.ones(len(answers), dtype=torch.bool)
    alive[first] = False
    stopped = [bound[alive & (bound < least)]]
    alive &= bound >= least
    behind = blank.start + blank.size
    stages = (1, 3) if blank.size == 1 else (3,)  # of two codes one has been read
    for stop in sorted({min(behind + more, len(blank.codes)) for more in (*stages, len(blank.codes))}):
        number = alive.nonzero().flatten()
        known = blank.joint(answers[number], stop)
        if stop == len(blank.codes):
            value[number] = known
            continue
        stopped.append(known[known < least])
        alive[number] = known >= least
    return value, torch.cat(stopped)


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Of F first codes (F,) all V second codes: the law of s alone (F, V) and the direct answer, logarithms."""

    firsts: Tensor
    left: Tensor
    direct: Tensor
    first_law: Tensor
    """(V,): the geometric mean of both laws of the first code."""
    first_left: Tensor
    first_direct: Tensor
    behind_left: SecondCode
    behind_direct: SecondCode

    @classmethod
    def of(cls, left: Tensor, direct: Tensor, behind_left: SecondCode, behind_direct: SecondCode) -> "_Table":
        law = (left + direct) / 2
        firsts = torch.cat([one.topk(min(FIRSTS, len(one))).indices for one in (left, direct, law)]).unique()
        parts = firsts.split(_ROWS)
        both = [left[part].unsqueeze(1) + behind_left(part) for part in parts]
        given = [direct[part].unsqueeze(1) + behind_direct(part) for part in parts]
        return cls(firsts, torch.cat(both), torch.cat(given), law, left, direct, behind_left, behind_direct)

    @property
    def law(self) -> Tensor:
        """(F * V,): the geometric mean of both."""
        return ((self.left + self.direct) / 2).flatten()

    def pairs(self, number: Tensor) -> Tensor:
        """int64 (any, 2): the codes of those numbers (any,)."""
        codes = self.left.shape[1]
        return torch.stack([self.firsts[number.div(codes, rounding_mode="floor")], number % codes], 1)

    def likely(self) -> tuple[Tensor, Tensor, Tensor]:
        """The pairs (A, 2) that are read, the law of s alone (A,), and the geometric mean (A,)."""
        law = self.law
        laws = (self.left.flatten(), self.direct.flatten(), law)
        kept = torch.cat([one.topk(min(PAIRS, len(one))).indices for one in laws]).unique()
        return self.pairs(kept), self.left.flatten()[kept], law[kept]

    def unread(self, answers: Tensor) -> list[tuple[Tensor, Tensor]]:
        """``DRAWS`` pairs of those first codes that are not among the answers, and as many with others; and log q."""
        generator = torch.Generator().manual_seed(0)
        codes, found = self.left.shape[1], list[tuple[Tensor, Tensor]]()
        inside = self.law
        inside[torch.searchsorted(self.firsts, answers[:, 0].contiguous()) * codes + answers[:, 1]] = -torch.inf
        if bool(inside.isfinite().any()):
            log_q = inside.log_softmax(0)
            drawn = _drawn(log_q, DRAWS, generator)
            found.append((self.pairs(drawn), log_q[drawn]))
        outside = self.first_law.clone()
        outside[self.firsts] = -torch.inf
        if bool(outside.isfinite().any()):
            log_q = outside.log_softmax(0)
            first = _drawn(log_q, DRAWS, generator)
            second = ((self.behind_left(first) + self.behind_direct(first)) / 2).log_softmax(1)
            code = torch.cat([_drawn(one, 1, generator) for one in second])
            found.append((torch.stack([first, code], 1), log_q[first] + second[torch.arange(len(code)), code]))
        return found


def _drawn(log_q: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """int64 (count,): numbers drawn from a law of however many (torch.multinomial takes 2^24), by its sum."""
    places = torch.rand(count, dtype=torch.float64, generator=generator)
    return torch.searchsorted(log_q.exp().cumsum(0), places).clamp(max=len(log_q) - 1)
