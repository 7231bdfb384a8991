"""Several answers for one sentence: other translations, fillings of a template, a draft that was changed.

A sentence with more placeholders than there are symbols goes in passages, as every text does (``texts.py``). Each has
its answers, best first, and one of the sentence is one of each: the fewer better ones stand before them, the better. A
template and a draft are cut where the placeholders of one passage end and those of the next begin; a stretch of them
without a blank, or without a word to change, is written as it is.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from anyfill.checks import refuse
from anyfill.translation.adapt import adapted, words_at
from anyfill.translation.constraints import Fixed, has_blank, parse_template
from anyfill.translation.hypotheses import Decoding, Hypothesis
from anyfill.translation.keeping import all_with_placeholders, placeholders_once
from anyfill.translation.marks import quoted
from anyfill.translation.placeholders import has_words, invented, passages_like, protected, restored
from anyfill.translation.sentences import is_open, opened
from anyfill.translation.texts import Passage, Texts
from anyfill.translation.vocabulary import plain

_BLANK_END = re.compile(r"(?:_{2,}|\[\d{1,3}\])\s*$")
"""A blank at the end of a template."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer for a passage, or for several that follow one another.

    Attributes:
        text: spelt out.
        score: mean log-probability of a piece, nats.
        pieces: how many the network wrote; none = it was written as it is.
        passes: of the network, the most over passages.
    """

    text: str
    score: float = 0.0
    pieces: int = 0
    passes: int = 0

    def __add__(self, other: "Choice") -> "Choice":
        pieces = self.pieces + other.pieces
        share = other.pieces / max(pieces, 1)
        score = self.score * (1.0 - share) + other.score * share
        return Choice(self.text + other.text, score, pieces, max(self.passes, other.passes))


def put_together(choices: Iterable[tuple[Sequence[Choice], str]], n: int) -> list[Choice]:
    """The best ``n`` answers for a sentence, whose passages have these, best first, and that behind them."""
    found = [(0, Choice(""))]
    for some, glue in choices:
        both = [
            (better + place, one + replace(other, text=other.text + glue))
            for better, one in found
            for place, other in enumerate(some[:n])
        ]
        found = sorted(both, key=lambda each: each[0])[:n]
    return [one for _, one in found]


def others(model: Texts, text: str, n: int, ways: Sequence[Decoding]) -> list[Choice]:
    """Up to ``n`` different translations, of all that these ways of decoding find.

    One that has a placeholder of its own making, a ``%c`` that nothing stands for, is left out if there are others.
    """

    def of(passage: Passage) -> list[Choice]:
        if not has_words(passage.text, protect=False):  # which symbols are not
            return [Choice(restored(passage.text, passage.kept))]
        source, found = passage.parts[0], dict[str, Hypothesis]()
        for how in ways:
            several = model.decoder.several(source, how)
            for one in all_with_placeholders(model.decoder, source, several, how) if passage.kept else several:
                written = model.written(passage, [one])
                if written not in found or found[written].score < one.score:
                    found[written] = one
        sound = {written: one for written, one in found.items() if not invented(written, passage.kept)}
        return [_choice(*item) for item in sorted((sound or found).items(), key=lambda item: -item[1].score)]

    cut = model.sentence_passages(text)
    return [
        replace(one, text=cut[0].lead + one.text)
        for one in put_together(((of(passage), passage.glue) for passage in cut), n)
    ]


def fillings(model: Texts, text: str, template: str, n: int, how: Decoding) -> list[Choice]:
    """Up to ``n`` ways to fill a template."""
    opens, inside, closes = quoted(plain(template))
    cut, hidden = _beside(model, text, inside, "template")
    if not any(map(has_blank, hidden)):
        raise refuse("template", expected="a blank in it, ___ or [2]", got=repr(template[:60]))

    def of(passage: Passage, given: str) -> list[Choice]:
        if not has_blank(given):
            return [Choice(restored(given, passage.kept))]
        stop = passage.stop and is_open(_BLANK_END.sub("x", given))  # then it gets one, too, and loses it again
        blanks = parse_template(given.rstrip() + "." * stop, model.vocabulary)

        def ways(log_lengths: Tensor) -> list[Fixed]:
            fits = blanks.fixed(model.decoder.length)
            return sorted(fits, key=lambda one: -float(log_lengths[one.length - 1]))

        found: dict[str, Hypothesis] = {}
        for one in model.decoder.decode([passage.parts[0]], how, ways=ways)[0]:
            found.setdefault(_spelt(model, passage, one, stop), one)
        return [_choice(*item) for item in found.items()]

    made = put_together(((of(passage, given), _glue(given)) for passage, given in zip(cut, hidden)), n)
    return [replace(one, text=opens + one.text + closes) for one in made]


def edited(model: Texts, text: str, draft: str, change: Mapping[str, str], how: Decoding) -> Choice:
    """A draft with other words in it, and the rest adapted to them."""
    _require_mapping(change)
    opens, inside, closes = quoted(plain(draft))
    cut, hidden = _beside(model, text, inside, "draft")
    changes = [dict[str, str]() for _ in cut]
    for old, new in change.items():
        wanted = [protected(plain(old), one.kept) for one in cut]
        there = [i for i, (given, words) in enumerate(zip(hidden, wanted)) if words_at(given, words)]
        if not there:
            within = f", within one of its {len(cut)} parts" if len(cut) > 1 else ""
            raise refuse("change", expected=f"words of the draft {draft!r}{within}", got=repr(old))
        for i in there:
            changes[i][wanted[i]] = new

    def of(passage: Passage, given: str, own: Mapping[str, str]) -> list[Choice]:
        if len(cut) > 1 and not own:
            return [Choice(restored(given, passage.kept))]
        stop = passage.stop and is_open(given)
        best = adapted(model.decoder, passage.parts[0], given.rstrip() + "." * stop, own, how)
        return [_choice(_spelt(model, passage, best, stop), best)]

    made = [(of(passage, given, own), _glue(given)) for passage, given, own in zip(cut, hidden, changes)]
    best = put_together(made, 1)[0]
    return replace(best, text=opens + best.text + closes)


def _require_mapping(change: object) -> None:
    if not isinstance(change, Mapping):
        raise refuse("change", expected="a mapping of words to others, {old: new}", got=repr(change)[:60])


def _beside(model: Texts, text: str, other: str, name: str) -> tuple[list[Passage], list[str]]:
    """The passages of a sentence, and for each the stretch of the other, plain text, with symbols for placeholders."""
    cut = model.sentence_passages(text)
    stretches = passages_like(other, [one.kept for one in cut], name)
    return cut, [protected(stretch, one.kept) for one, stretch in zip(cut, stretches)]


def _choice(text: str, found: Hypothesis) -> Choice:
    return Choice(text, found.score, len(found.codes), found.passes)


def _spelt(model: Texts, passage: Passage, found: Hypothesis, stop: bool) -> str:
    written = model.vocabulary.decode(placeholders_once(found).codes)
    return restored(opened(written) if stop else written, passage.kept)


def _glue(stretch: str) -> str:
    return " " if stretch.endswith(" ") else ""
