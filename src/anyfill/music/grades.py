"""Bach or mock: how unlike Bach's four-part chorales a piece is, by nine features (Fang et al., 2020).

Each feature (``features``) is a histogram of the piece, compared with the chorales' by the least mass · distance that
turns one into the other,

    W1 = integral of |F - G|,   F and G the two cumulative shares.

Lengths lie where they are. Kinds (of chord, of interval …) have no places, so they get ranks: 0 for the one that is
most frequent in the chorales, then down; kinds the chorales never have come behind, the piece's rarest first.

The grade is the plain sum, and 0 would be a piece exactly like all chorales together. Lower is better. Features 1, 4
and 5 to 8 are compared with the chorales in the mode of the key that was found. The third is scaled by a rate,

    parallel_error = W1 · (errors / notes) / (the chorales' errors / notes),   0 without errors.

A piece without what a feature counts (no note, a voice of one note) is graded infinite.

The reference file holds counts and names only, no music: histograms of every feature over Bach's four-part chorales,
and the table of chords. scripts/bach_reference.py writes it from the corpus that music21 carries (351 four-part
chorales, ties merged, the names of the source).

Two protocols, of which ``anyfill.music.spelling`` says more: "paper" is the published one and depends on
the key a piece is in; "key-aware" does not. A grade means something beside real chorales graded through the same path:
what a grid or a MIDI file loses (repeated notes, names) costs real Bach, too.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import accumulate, pairwise
from math import inf, isfinite, nan
from statistics import median, pstdev
from typing import Any, get_args

from anyfill.checks import refuse
from anyfill.music.features import (
    chord_kinds,
    count_notes,
    interval_counts,
    note_counts,
    parallel_counts,
    repeated_sequences,
    rhythm_counts,
)
from anyfill.music.keys import Key, Mode
from anyfill.music.score import VOICES, Score
from anyfill.music.spelling import Protocol, SpelledPiece, spell

BY_MODE = ("note", "harmonic_quality", *VOICES)
"""Features with a reference for each mode."""
FEATURES = ("note", "rhythm", "parallel_error", "harmonic_quality", *VOICES, "repeated_sequence")
"""Degrees of the scale; lengths of notes and rests; parallel fifths and octaves; kinds of chord; melodic intervals of
each voice; lengths of sequences a voice repeats."""


@dataclass(frozen=True, slots=True)
class Grade:
    """Nine distances from Bach's chorales; 0 is none.

    Attributes:
        features: by their names, in the order of ``FEATURES``.
        protocol: how notes got their names.
        key: the one found; None where nothing sounds.
    """

    features: Mapping[str, float]
    protocol: Protocol
    key: Key | None

    @property
    def overall(self) -> float:
        """Their sum."""
        return sum(self.features.values())


@dataclass(frozen=True, slots=True)
class Summary:
    """Many grades in a few figures.

    Attributes:
        median: of each feature and of "overall", over all grades.
        deviation: the standard one, over the finite ones (NaN where there are none).
        count: how many grades.
        infinite: how many of them are infinite.
        protocol: theirs.
    """

    median: Mapping[str, float]
    deviation: Mapping[str, float]
    count: int
    infinite: int
    protocol: Protocol

    def __str__(self) -> str:
        rows = [f"{name:<18}{self.median[name]:8.2f} ± {self.deviation[name]:.2f}" for name in self.median]
        head = f"{self.count} pieces, protocol {self.protocol}"
        return "\n".join([head + (f", {self.infinite} infinite" if self.infinite else ""), *rows])


@dataclass(frozen=True, slots=True)
class Reference:
    """Histograms of the features over many pieces.

    Attributes:
        by_mode: mode -> feature -> kind -> count, most frequent first.
        rhythm, parallel_error: kind -> count, most frequent first, over both modes.
        notes: how many there are, for the rate of parallels.
        repeated_sequence: length in sixteenths -> count.
        pieces: how many.
    """

    by_mode: Mapping[Mode, Mapping[str, Mapping[str, int]]]
    rhythm: Mapping[str, int]
    parallel_error: Mapping[str, int]
    notes: int
    repeated_sequence: Mapping[int, int]
    pieces: int

    @property
    def parallels_per_note(self) -> float:
        return sum(self.parallel_error.values()) / self.notes


@dataclass(frozen=True, slots=True)
class Counts:
    """The features of one piece before they are compared.

    Attributes:
        kinds: feature -> kind -> count, of all features that have kinds.
        lengths: of repeated sequences.
        notes: how many.
    """

    kinds: dict[str, Counter[str]]
    lengths: Counter[int]
    notes: int


def counts_of(piece: SpelledPiece, table: Mapping[str, str]) -> Counts:
    """All histograms of a piece."""
    kinds = {
        "note": note_counts(piece),
        "rhythm": rhythm_counts(piece),
        "parallel_error": parallel_counts(piece),
        "harmonic_quality": chord_kinds(piece, table),
    }
    kinds.update((name, interval_counts(piece, voice)) for voice, name in enumerate(VOICES))
    return Counts(kinds, repeated_sequences(piece), count_notes(piece))


def gather(pieces: Iterable[SpelledPiece], table: Mapping[str, str]) -> Reference:
    """The reference that these pieces make together."""
    found = [(piece.key.mode, counts_of(piece, table)) for piece in pieces]

    def together(name: str, *modes: Mode) -> dict[str, int]:
        return falling(sum((own.kinds[name] for mode, own in found if mode in modes), Counter[str]()))

    lengths = sum((own.lengths for _, own in found), Counter[int]())
    return Reference(
        {mode: {name: together(name, mode) for name in BY_MODE} for mode in get_args(Mode)},
        together("rhythm", *get_args(Mode)),
        together("parallel_error", *get_args(Mode)),
        sum(own.notes for _, own in found),
        dict(sorted(lengths.items())),
        len(found),
    )


def falling(counts: Mapping[str, int]) -> dict[str, int]:
    """Most frequent first, equals by name."""
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


@cache
def bach_reference() -> tuple[Reference, dict[str, str]]:
    """The reference that ships with the package, and its table of chords."""
    text = resources.files("anyfill.music").joinpath("bach_reference.json").read_text("utf-8")
    held: dict[str, Any] = json.loads(text)
    lengths = {int(length): count for length, count in held["repeated_sequence"].items()}
    figures = {name: held[name] for name in ("by_mode", "rhythm", "parallel_error", "notes", "pieces")}
    table = {chord: kind for kind, chords in held["chords"].items() for chord in chords}
    return Reference(repeated_sequence=lengths, **figures), table


def grade(score: Score, *, protocol: Protocol, reference: Reference | None = None) -> Grade:
    """How unlike Bach's chorales a score of four voices is.

    Args:
        score: soprano, alto, tenor and bass, ties merged.
        protocol: "paper" or "key-aware"; see the module.
        reference: compare with this in place of Bach's chorales.
    """
    if len(score.voices) != len(VOICES):
        raise refuse("voices of the score", expected="four (soprano, alto, tenor, bass)", got=len(score.voices))
    bach, table = bach_reference()
    if score.last_pitch is None:
        return Grade(dict.fromkeys(FEATURES, inf), protocol, None)
    piece = spell(score, protocol=protocol)
    return Grade(compare(counts_of(piece, table), piece.key, reference or bach), protocol, piece.key)


def compare(own: Counts, key: Key, reference: Reference) -> dict[str, float]:
    """Feature -> distance of a piece's histograms from the reference's."""
    of_mode = reference.by_mode[key.mode]
    found = {name: _ranked(own.kinds[name], of_mode[name]) for name in BY_MODE}
    found["rhythm"] = _ranked(own.kinds["rhythm"], reference.rhythm)
    errors = own.kinds["parallel_error"]
    rate = sum(errors.values()) / max(own.notes, 1) / reference.parallels_per_note
    found["parallel_error"] = rank_distance(errors, reference.parallel_error) * rate if errors else 0.0
    found["repeated_sequence"] = length_distance(own.lengths, reference.repeated_sequence)
    return {name: found[name] for name in FEATURES}


def grade_all(scores: Iterable[Score], *, protocol: Protocol, reference: Reference | None = None) -> tuple[Grade, ...]:
    """The grade of each score, in their order."""
    return tuple(grade(score, protocol=protocol, reference=reference) for score in scores)


def summary(grades: Sequence[Grade]) -> Summary:
    """Median and standard deviation of every feature and of the whole."""
    protocols = {one.protocol for one in grades}
    if len(protocols) != 1:
        raise refuse("grades", expected="one at least, all of one protocol", got=sorted(protocols) or "none")
    columns = {"overall": [one.overall for one in grades]}
    columns |= {name: [one.features[name] for one in grades] for name in FEATURES}
    return Summary(
        {name: median(values) for name, values in columns.items()},
        {name: pstdev(finite) if (finite := [*filter(isfinite, values)]) else nan for name, values in columns.items()},
        len(grades),
        sum(not isfinite(value) for value in columns["overall"]),
        grades[0].protocol,
    )


def _ranked(own: Mapping[str, int], reference: Mapping[str, int]) -> float:
    return rank_distance(own, reference) if own else inf


def rank_distance(own: Mapping[str, float], reference: Mapping[str, float]) -> float:
    """W1 over ranks of the histogram ``own``, from ``reference`` in falling order; neither need sum to 1."""
    unseen = sorted(mass for kind, mass in own.items() if kind not in reference)
    mine = [own.get(kind, 0.0) for kind in reference] + unseen
    theirs = [*reference.values(), *([0.0] * len(unseen))]
    total, all_of_it = sum(mine), sum(theirs)
    return sum(abs(f / total - g / all_of_it) for f, g in zip(accumulate(mine), accumulate(theirs)))


def length_distance(own: Mapping[int, float], reference: Mapping[int, float]) -> float:
    """W1 of two histograms over numbers; an empty ``own`` has all its mass at 0."""
    mine: Mapping[int, float] = own or {0: 1.0}
    places: Sequence[int] = sorted({*mine, *reference})
    total, all_of_it = sum(mine.values()), sum(reference.values())
    f = g = work = 0.0
    for place, following in pairwise(places):
        f += mine.get(place, 0.0)
        g += reference.get(place, 0.0)
        work += abs(f / total - g / all_of_it) * (following - place)
    return work
