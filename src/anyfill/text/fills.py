"""The fills of a text, best first: their probabilities, how they were found, how they are shown.

``log2_probability`` is what ``score`` says of the filled text, to the last digit: one definition
(``anyfill.text.scoring``). Ranking and ``share`` may go by more: in a vocabulary without boundaries of its own, by what
closes a blank at the edge of the text; for a word, by the model's direct answer and by counts, too
(``anyfill.text.word_search``). ``posterior`` goes by p(text) alone, so that of two fills of a whole text that ends
behind the blank the ratio is that of ``score``.
"""

import html
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, overload

from anyfill.text.candidates import Tried
from anyfill.text.sampling import SamplingOptions
from anyfill.text.template import Template


@dataclass(frozen=True, slots=True)
class Fill:
    """A text with its blanks filled.

    Attributes:
        text: all of it, what was given exactly as it was.
        answers: what stands in each blank.
        log2_probability: of the text, in bits, below 0; the same number that ``score`` gives.
        share: its part of all fills that were compared, by what they are ranked by.
        posterior: its part of them by p(text) alone, which ``score`` gives, too.
    """

    text: str
    answers: tuple[str, ...]
    log2_probability: float
    share: float
    posterior: float


@dataclass(frozen=True, slots=True, repr=False)
class Fills(Sequence[Fill]):
    """The best fills of a text, best first, and how they were found.

    Attributes:
        fills: at most as many as were asked for.
        template: the text with its blanks.
        n: how many were asked for.
        sampling: how they were drawn, the seed included.
        model: its name.
        candidates: how many different ones there were (along the best way, where there are several groups).
        groups: how many groups of blanks were answered one after another.
        whole: one window held all of the text, so that the ranking is by ``log2_probability``.
        complete: all fills there are were compared, so that shares are probabilities given the text around.
        tried: what was tried for the group with the most combinations of lengths.
        covered: which part of the probability of all fills there are those that were compared have, estimated; None =
            not known, as where words are searched for and where fills are drawn.
        notes: what the model made of the given text: how it was folded, which words of it are unknown.
    """

    fills: tuple[Fill, ...]
    template: Template
    n: int
    sampling: SamplingOptions
    model: str
    candidates: int
    groups: int
    whole: bool
    complete: bool
    tried: Tried
    covered: float | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.fills)

    @overload
    def __getitem__(self, index: int) -> Fill: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Fill, ...]: ...
    def __getitem__(self, index: int | slice) -> Fill | tuple[Fill, ...]:
        return self.fills[index]

    def __repr__(self) -> str:
        return "\n".join(self.lines(lambda fill: fill.text))

    def lines(self, show: Callable[[Fill], str]) -> list[str]:
        """The fills as a table, each shown in this way; shares by p(text) alone are told where others go by more."""
        is_more = any(abs(one.share - one.posterior) > 1e-9 for one in self.fills)
        plain = [f" {one.posterior:8.2%}" if is_more else "" for one in self.fills]
        numbers = (f"{one.share:7.2%}{by} {one.log2_probability:9.2f}" for one, by in zip(self.fills, plain))
        rows = (f"{said}  {show(one)}" for said, one in zip(numbers, self.fills))
        return [self.heading, f"  share{'  by text' if is_more else ''}    log2 p  text", *rows]

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><td>{one.share:.2%}</td><td>{one.log2_probability:.2f}</td><td>{self._marked(one)}</td></tr>"
            for one in self.fills
        ]
        return f"<table><tr><th>share<th>log2 p<th>text</tr>{''.join(rows)}</table>"

    def _marked(self, fill: Fill) -> str:
        shown = replace(self.template, stretches=tuple(map(html.escape, self.template.stretches)))
        return shown.filled(tuple(f"<b>{html.escape(answer)}</b>" for answer in fill.answers))

    @property
    def heading(self) -> str:
        """What the fills are the best of: all there are, nearly all, or what this seed found."""
        if self.covered is not None and not self.complete:
            return f"{self.candidates:,} fills compared, with about {self.covered:.0%} of the probability of all"
        if not self.complete:
            return f"seed {self.sampling.seed}"
        return f"all {self.candidates:,} fills compared" if self.candidates > 1 else "the only fill there is"

    @property
    def remarks(self) -> list[str]:
        """What a user should know about how the fills were found."""
        said = list(self.notes)
        tried = self.tried
        if tried.tried < tried.combinations:
            said.append(
                f"{tried.tried} of {tried.combinations:,} combinations of lengths were tried, drawn at random "
                "(stated lengths or a smaller --lengths leave fewer)"
            )
        if not self.whole:
            steps = f"its blanks were filled in {self.groups} steps, " if self.groups > 1 else ""
            said.append(
                f"the text is longer than the model sees at a time: {steps}ranked by what stands around them "
                "(log2 p is that of the whole text, read from left to right)"
            )
        if len(self) < self.n and not self.complete and tried.draws:
            fills = "1 fill was" if len(self) == 1 else f"{len(self)} different fills were"
            said.append(f"only {fills} found ({self.sampling.more} may find more)")
        return said

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        tried = self.tried
        return {
            "model": self.model,
            "seed": self.sampling.seed,
            "fills": [asdict(one) for one in self.fills],
            "candidates": self.candidates,
            "groups": self.groups,
            "whole": self.whole,
            "all_compared": self.complete,
            "covered": 1.0 if self.complete else self.covered,
            "combinations": {
                "all": tried.combinations,
                "tried": tried.tried,
                "all_compared": tried.listed,
                "draws_each": tried.draws,
            },
            "remarks": self.remarks,
        }
