"""Decoding from left to right: one word after another or a beam, and rows that hold both sides, drawn from a cache.

Hypotheses are ranked by their exact log-probability; beams by log p / ((5 + length) / 6)^a.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.evaluation import log_prob
from anyfill.networks.encoder_decoder import END
from anyfill.questions.question import Question
from anyfill.samplers import CachedChain, beam_search
from anyfill.translation.constraints import Fixed
from anyfill.translation.hypotheses import MOST, Coded, Decoding, Hypothesis, Ways, padded
from anyfill.translation.recipes import sampler_of
from anyfill.translation.rules import rules_of
from anyfill.translation.vocabulary import FIRST


@dataclass(frozen=True, slots=True)
class LeftToRight(Coded):
    """A model that is read from left to right, target behind source."""

    def one_by_one(self, sources: Sequence[Sequence[int]], how: Decoding) -> list[list[Hypothesis]]:
        """For each source its beams, best first."""
        return [one for context, beams in self.beams(sources, how) for one in self._scored(beams, context)]

    def best_beams(self, sources: Sequence[Sequence[int]], how: Decoding) -> list[tuple[int, ...]]:
        """The best translation of each source, and nothing about it."""
        found: list[tuple[int, ...]] = []
        for _, beams in self.beams(sources, how):
            for row in torch.stack([beam[0] for beam in beams]).tolist():
                ended = row[: row.index(END)] if END in row else row[:-1]  # the last place is that of END
                found.append(tuple(code for code in ended if code >= FIRST))
        return found

    def beams(self, sources: Sequence[Sequence[int]], how: Decoding) -> Iterator[tuple[Tensor, list[Tensor]]]:
        """Some sources at a time: they themselves (B, S), and for each its rows (W, N + 1), best first."""
        share = max(1, self.rows_at_once // how.beam)
        for start in range(0, len(sources), share):
            context = padded(sources[start : start + share], self.device)
            # Twice the source and a few more is all that a sensible target has.
            width = min(2 * context.shape[1] + 10, self.length) + 1
            x = torch.zeros(len(context), width, dtype=torch.long, device=self.device)
            most = 2 * (context != 0).sum(1, keepdim=True) + 11
            asked = torch.arange(width, device=self.device) < most
            question = Question(torch.zeros_like(asked), asked)
            if how.beam == 1:
                policy, draw = sampler_of(self.recipe, 1)
                last = self._states(policy, draw, x, question, context, how.seed)[-1]
                beams = [row.unsqueeze(0) for row in last.x]
            else:
                options: dict[str, Any] = {"context": context, "end": END, "length_penalty": how.length_penalty}
                beams = beam_search(self.model, x, question, width=how.beam, **options)
            yield context, beams

    def _scored(self, beams: Sequence[Tensor], context: Tensor) -> list[list[Hypothesis]]:
        """Hypotheses of rows (W, N + 1) for each source, with their exact log-probabilities, in their order."""
        rows = torch.cat(list(beams))
        index = torch.repeat_interleave(torch.arange(len(beams)), torch.tensor([len(one) for one in beams]))
        ends = rows == END
        count = torch.where(ends.any(1), ends.to(torch.uint8).argmax(1), rows.shape[1] - 1)
        asked = torch.arange(rows.shape[1], device=rows.device) <= count.unsqueeze(1)
        rows = torch.where(asked, rows, 0)
        value = log_prob(
            self.model, rows, Question(torch.zeros_like(asked), asked), context=context[index.to(context.device)]
        )
        found: list[list[Hypothesis]] = [[] for _ in beams]
        for owner, n, nats, row in zip(index.tolist(), count.tolist(), value.value.tolist(), rows.tolist()):
            codes = tuple(code for code in row[:n] if code >= FIRST)
            found[owner].append(Hypothesis(codes, nats / (n + 1), nats, True, n + 1))
        return found

    def joined(self, sources: Sequence[Sequence[int]], how: Decoding, ways: Ways | None) -> list[list[Hypothesis]]:
        """The same where source and target are one row; ``ways`` = what must stand in the target."""
        half, found = self.length + 1, list[list[Hypothesis]]()
        longest = max((len(one) for one in sources), default=0)
        if longest > self.length:  # it would run into the target's half of the row
            raise refuse("source", expected=f"at most {self.length} pieces", got=longest)
        share = 1 if ways is not None else max(1, self.rows_at_once // 8)  # both sides are in a row, uncut
        for start in range(0, len(sources), share):
            some = sources[start : start + share]
            fixed = [] if ways is None else ways(self._near_free_length(some[0], how))[:MOST]
            if ways is not None and not fixed:
                raise refuse("constraint", expected=f"words that fit into {self.length} places", got="more of them")
            owners = some if ways is None else [some[0]] * len(fixed)
            x, told, asked = self.joined_rows(owners, fixed or [None] * len(some))
            question = Question(told, asked & ~told)
            policy, draw = sampler_of(self.recipe, 1, speculative=how.speculative)
            if fixed:  # the places are counted: no END may cut off what is given behind a blank
                never = self.never(some[0]).to(self.device).expand(len(fixed), -1)
                rules = rules_of(fixed, never, self.vocabulary, self.length + 1, first=half)
                policy = CachedChain(veto=rules, min_mass=0.0)
            last = self._states(policy, draw, x, question, None, how.seed)[-1]
            each = self._scored_joined(last.x, owners, last.row_passes.tolist())
            found += [[one] for one in each] if ways is None else [sorted(each, key=lambda one: -one.score)]
        return found

    def _near_free_length(self, source: Sequence[int], how: Decoding) -> Tensor:
        """(N,): what lengths 1 … N are tried by: the nearer to that of the translation without constraints the better.

        Such a model predicts no length; which of those that are tried is best its exact scores say.
        """
        free = self.joined([source], how, None)[0][0]
        return -(torch.arange(1, self.length + 1) - len(free.codes)).abs().double()

    def joined_rows(
        self, sources: Sequence[Sequence[int]], options: Sequence[Fixed | None]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """x, given and asked (R, 2 (N + 1)) of sources, each under its option; None = nothing is fixed."""
        half = self.length + 1
        rows = torch.zeros(len(options), 2 * half, dtype=torch.long)
        told, asked = torch.zeros_like(rows, dtype=torch.bool), torch.zeros_like(rows, dtype=torch.bool)
        for row, (source, fixed) in enumerate(zip(sources, options)):
            rows[row, : len(source)] = torch.tensor(list(source))
            rows[row, len(source)] = END
            told[row, : len(source) + 1] = True
            if fixed is None:
                asked[row, half:] = True
                continue
            asked[row, half : half + fixed.length] = True
            rows[row, half + fixed.length], told[row, half + fixed.length] = END, True
            for place, code in fixed.codes.items():
                rows[row, half + place - 1], told[row, half + place - 1] = code, True
        return rows.to(self.device), told.to(self.device), asked.to(self.device)

    def joined_beams(self, source: Sequence[int], how: Decoding) -> list[Hypothesis]:
        """The beams of one source where it is in one row with its target, best first."""
        x, told, asked = self.joined_rows([source], [None])
        options: dict[str, Any] = {"end": END, "length_penalty": how.length_penalty}
        (rows,) = beam_search(self.model, x, Question(told, asked), width=how.beam, **options)
        return self._scored_joined(rows, [source] * len(rows), None)

    def _scored_joined(
        self, rows: Tensor, sources: Sequence[Sequence[int]], passes: Sequence[int] | None
    ) -> list[Hypothesis]:
        """Hypotheses of rows (R, 2 (N + 1)), with their exact log p(words, END | source); None = a pass for each."""
        half = self.length + 1
        target = rows[:, half:]
        ends = target == END
        count = torch.where(ends.any(1), ends.to(torch.uint8).argmax(1), target.shape[1] - 1)
        place = torch.arange(rows.shape[1], device=rows.device)
        given = place < torch.tensor([len(one) + 1 for one in sources], device=rows.device).unsqueeze(1)
        asked = (place >= half) & (place <= half + count.unsqueeze(1))
        value = log_prob(self.model, torch.where(given | asked, rows, 0), Question(given, asked)).value.tolist()
        made: list[Hypothesis] = []
        for row, n in enumerate(count.tolist()):
            codes = tuple(code for code in target[row, :n].tolist() if code >= FIRST)
            own = n + 1 if passes is None else passes[row]
            made.append(Hypothesis(codes, value[row] / (n + 1), value[row], True, own))
        return made
