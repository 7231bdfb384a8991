"""Decoding: sources as codes in, ranked hypotheses out, whatever the recipe; every one by the one sampling loop.

Models with a length decode several candidates side by side: the likeliest lengths under p(n | source), or all ways in
which a constraint can be met. The source is read once; all candidates share what was read. Ranking:

    mean    1/n sum_i log p(w_i | …) + r n + l log p(n | source), each word by the pass that wrote it (CMLM, fairseq):
            lengths compare fairly; r rewards words: repeated ones are dropped, so candidates tend to be short; l keeps
            lengths that the source does not suggest from winning by saying something sure again and again
    joint   log p(n | source) + sum_i log p(w_i | …): the likelihood that the model assigns, where it has one. Always so
            of templates and placeholders, what is fixed included: the mean of the others would be best where hardly any
            are left

Where phrases are kept, the mean is that of all words, theirs included. Such a phrase has e pieces beyond one a word,
and nobody knows whether the length that the source suggests counts them: for p(n | source) stands half of p(n) and half
of p(n - e). The joint would drop words there, each of which costs something.

Where words were dropped because they repeat the one before them (stutter), the others were written for a longer
translation: they go through the passes once more, at the length that is left, starting from what they are. The
candidate is still ranked by the length that the source suggested.

Autoregressive models decode greedily or by a beam and are ranked by their exact log-probability.
"""

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.questions.question import Question
from anyfill.samplers import Restricted, RewriteAll, repeated
from anyfill.translation.constraints import Fixed
from anyfill.translation.hypotheses import MOST, NOISY, Decoding, Hypothesis, Ways, padded
from anyfill.translation.recipes import layout_of, sampler_of
from anyfill.translation.rules import rules_of
from anyfill.translation.sequential import LeftToRight


@dataclass(frozen=True, slots=True)
class Candidate:
    """A translation that was decoded at one length.

    Attributes:
        row: of which source.
        length: n, at which it was decoded first.
        codes: its words.
        total: the log-probability of those that were asked.
        fit: that of those that were fixed.
        words: how many these are.
        dropped: how many were left out because they repeat the one before them.
        passes: of the network.
        history: the words after each pass, if they are wanted.
        extra: see ``Fixed``.
    """

    row: int
    length: int
    codes: tuple[int, ...]
    total: float
    fit: float
    words: int
    dropped: int
    passes: int
    history: tuple[tuple[int, ...], ...] = ()
    extra: int | None = None

    def judged(self, how: Decoding, log_lengths: Tensor, *, free: bool) -> tuple[Hypothesis, float]:
        """The hypothesis, and what it is ranked by: those of a template, which are not ``free``, jointly."""
        prior = _log_prior(log_lengths, self.length, self.extra or 0)
        mean, joint = self.total / max(self.words, 1), prior + self.fit + self.total
        count = len(self.codes)
        of_all = (self.fit + self.total) / max(count, 1) + how.reward * count + how.prior * prior
        by = of_all if how.rank == "mean" and (free or self.extra is not None) else joint
        shown = mean if how.rank == "mean" else joint
        return Hypothesis(self.codes, shown, joint, False, self.passes, self.history), by


@dataclass(frozen=True, slots=True)
class Decoder(LeftToRight):
    """A model that translates codes, whatever its recipe."""

    def decode(
        self,
        sources: Sequence[Sequence[int]],
        how: Decoding,
        *,
        ways: Ways | None = None,
        history: bool = False,
    ) -> list[list[Hypothesis]]:
        """For each source its hypotheses, best first.

        Args:
            sources: codes, none empty, none longer than ``length``.
            how: see ``Decoding``.
            ways: what must stand where; models that are read from left to right take none.
            history: keep the row after each pass.
        """
        layout = layout_of(self.recipe)
        if layout == "length":
            found: list[list[Hypothesis]] = []
            share = max(1, self.rows_at_once // (how.lengths if ways is None else MOST))
            for start in range(0, len(sources), share):
                found += self._parallel(sources[start : start + share], how, ways, history)
            return found
        if layout == "joined":
            return self.joined(sources, how, ways)
        if ways is not None:
            raise refuse(
                "constraint",
                expected="a model that takes words at any place",
                got=f"one of the recipe {self.recipe}, from left to right",
            )
        return self.one_by_one(sources, how)

    def several(self, source: Sequence[int], how: Decoding) -> list[Hypothesis]:
        """Different translations of a source, best first: of other lengths, or beams."""
        return self.joined_beams(source, how) if layout_of(self.recipe) == "joined" else self.decode([source], how)[0]

    def _parallel(
        self, sources: Sequence[Sequence[int]], how: Decoding, ways: Ways | None, history: bool
    ) -> list[list[Hypothesis]]:
        context = padded(sources, self.device)
        with self.model.evaluating():
            memory: Any = self.model.read(context)
            log_lengths = memory.lengths.double().log_softmax(-1).cpu()
        tried: list[tuple[int, Fixed]] = []
        for row, each in enumerate(log_lengths):
            options = likeliest_lengths(each, how.lengths) if ways is None else ways(each)[:MOST]
            if not options:
                raise refuse("constraint", expected=f"words that fit into {self.length} places", got="more of them")
            tried += [(row, fixed) for fixed in options]
        made = self._candidates(tried, sources, memory, how, history)
        for _ in range(how.shorten if ways is None else 0):
            again = [number for number, one in enumerate(made) if one.dropped and one.codes]
            if not again:
                break
            shorter = self._candidates(
                [(made[i].row, Fixed(len(made[i].codes), {}, frozenset())) for i in again],
                sources,
                memory,
                how,
                history,
                begun=[made[i].codes for i in again],
            )
            for number, one in zip(again, shorter):
                before = made[number]
                passes, seen = before.passes + one.passes, (*before.history, *one.history[1:])
                # Its length is still the one that the source suggested.
                made[number] = replace(one, length=before.length, passes=passes, history=seen)
        found: list[list[Hypothesis]] = [[] for _ in sources]
        ranked: list[list[float]] = [[] for _ in sources]
        for one in made:
            hypothesis, by = one.judged(how, log_lengths[one.row], free=ways is None)
            found[one.row].append(hypothesis)
            ranked[one.row].append(by)
        return [_by_rank(some, by) for some, by in zip(found, ranked)]

    def _candidates(
        self,
        tried: Sequence[tuple[int, Fixed]],
        sources: Sequence[Sequence[int]],
        memory: Any,
        how: Decoding,
        history: bool,
        *,
        begun: Sequence[Sequence[int]] = (),
    ) -> list[Candidate]:
        """Decode sources, by number, under what is fixed, side by side; from words that were ``begun``, if any."""
        x, told, asked = self.rows([fixed for _, fixed in tried])
        if begun:
            x[:, 1:] = padded(begun, self.device)
        policy, draw = sampler_of(self.recipe, how.passes, stutter=how.stutter)
        index = torch.tensor([row for row, _ in tried], device=self.device)
        never = torch.stack([self.never(source) for source in sources]).to(self.device)[index]
        rules = rules_of([fixed for _, fixed in tried], never, self.vocabulary, x.shape[1])
        ruled = Restricted(temperature=draw.temperature, forbidden=rules.everywhere())
        options: dict[str, Any] = {"all_of_them": history, "begun": bool(begun)}
        if not begun and self.model.corruption.shows_unknown and isinstance(policy, RewriteAll):
            keys = [_key(sources[row], fixed.length, how.seed) for row, fixed in tried]
            options["keys"] = torch.tensor(keys, device=self.device)
        states = self._states(policy, ruled, x, Question(told, asked), memory.rows(index), how.seed, **options)
        last = states[-1]
        dropped = torch.zeros_like(asked)
        if how.stutter and self.recipe in NOISY:
            dropped = repeated(last.x) & asked
            for number, (_, fixed) in enumerate(tried):
                if fixed.counted:  # an accelerator waits for each
                    dropped[number, [place for place in fixed.counted if place <= fixed.length]] = False
        counted = asked & ~dropped
        total = torch.where(counted, last.score, 0.0).sum(1).tolist()
        fit = self._fit(last.x, told, memory.rows(index)).tolist()
        words, left, passes = counted.sum(1).tolist(), dropped.sum(1).tolist(), last.row_passes.tolist()
        kept = ((told | asked) & ~dropped).tolist()
        rows = [state.x.tolist() for state in states]
        made: list[Candidate] = []
        for number, (row, fixed) in enumerate(tried):
            n = fixed.length
            codes = tuple(itertools.compress(rows[-1][number][1 : n + 1], kept[number][1 : n + 1]))
            seen = tuple(tuple(one[number][1 : n + 1]) for one in rows) if history else ()
            made.append(
                Candidate(
                    *(row, n, codes, total[number], fit[number], words[number], left[number], passes[number], seen),
                    extra=fixed.extra,
                )
            )
        return made

    def _fit(self, x: Tensor, told: Tensor, memory: Any) -> Tensor:
        """float64 (R,): how well the words that are fixed in rows fit where they stand: their log-probability.

        A model that predicts every word from all that stands there says it of the finished row; one that is told which
        words are known, before it knows any of them. Without it nothing would tell one place for a word from another.
        """
        words = told & (torch.arange(x.shape[1], device=x.device) > 0)
        if not bool(words.any()):
            return torch.zeros(len(x), dtype=torch.float64, device=x.device)
        known = torch.ones_like(told) if self.recipe in NOISY else told & ~words
        with self.model.evaluating():
            value = self.model.marginals(x, known, memory).log_prob(x).double()
        return torch.where(words, value, 0.0).sum(1)

    def rows(self, fixed: Sequence[Fixed]) -> tuple[Tensor, Tensor, Tensor]:
        """x, given and asked (R, L + 1) of candidates."""
        longest = max(one.length for one in fixed)
        x = torch.zeros(len(fixed), longest + 1, dtype=torch.long)
        told = torch.zeros_like(x, dtype=torch.bool)
        told[:, 0] = True
        for row, one in enumerate(fixed):
            x[row, 0] = one.length
            for place, code in one.codes.items():
                x[row, place], told[row, place] = code, True
        asked = (torch.arange(longest + 1) <= x[:, :1]) & ~told
        return x.to(self.device), told.to(self.device), asked.to(self.device)

    def best_codes(self, sources: Sequence[Sequence[int]], how: Decoding) -> list[tuple[int, ...]]:
        """The best translation of each source, and nothing about it: quicker where many are wanted (distillation)."""
        if layout_of(self.recipe) != "end":
            return [one[0].codes for one in self.decode(sources, how)]
        return self.best_beams(sources, how)


def _log_prior(log_lengths: Tensor, length: int, extra: int) -> float:
    """log of p(n) and p(n - extra), half of each; log p(n) of n = 1 … N."""
    usual = float(log_lengths[length - 1])
    if extra == 0:
        return usual
    shorter = float(log_lengths[length - 1 - extra]) if length > extra else -math.inf
    return float(torch.logaddexp(torch.tensor(usual), torch.tensor(shorter))) - math.log(2.0)


def _by_rank(some: Sequence[Hypothesis], by: Sequence[float]) -> list[Hypothesis]:
    return [some[i] for i in sorted(range(len(some)), key=lambda i: -by[i])]


def _key(source: Sequence[int], length: int, seed: int) -> int:
    """63 bits from a source, a length and a seed."""
    text = f"{seed}:{length}:{','.join(map(str, source))}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def likeliest_lengths(log_lengths: Tensor, count: int, *, least: int = 1) -> list[Fixed]:
    """The ``count`` likeliest lengths from ``least`` on, nothing fixed; log p(n) of n = 1 … N."""
    allowed = log_lengths.clone()
    allowed[: least - 1] = -torch.inf
    best = allowed.topk(min(count, len(allowed) - least + 1)).indices
    return [Fixed(int(n) + 1, {}, frozenset()) for n in best]
