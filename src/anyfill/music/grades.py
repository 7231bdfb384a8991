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

Two protocols, of which ``features`` says more: "paper" is the published one and depends on the key a piece is in;
"key-aware" does not. A grade means something beside real chorales graded through the same path: what a grid or a MIDI
file loses (repeated notes, names) costs real Bach, too. ``real_bach.json`` (by scripts/real_bach_grades.py) has how
real chorales are graded: as they are notated, and as grids of sixteenths (where a repeated note becomes a long one, as
in all that a model of ours writes), whole and in eight bars.

The same piece gets the same grade from MIDI and from MusicXML: names of notes, which only the latter has, and how rests
are cut into bars are left out, so protocol paper names notes as those of a MIDI file. Where a file names all its notes
one more figure is the overall grade with these names. Bach as notated was graded with his names.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib import resources
from itertools import accumulate, pairwise
from math import inf, isfinite, nan
from pathlib import Path
from statistics import median, pstdev
from typing import Any

from anyfill.checks import refuse
from anyfill.music import features
from anyfill.music.features import BY_MODE, FEATURES, PROTOCOLS, Protocol, SpelledPiece, spell
from anyfill.music.files import Music, parse
from anyfill.music.habits import Habits, habits
from anyfill.music.keys import Key, Mode
from anyfill.music.quantising import quantise, sounding_lines
from anyfill.music.score import VOICES, Note, Score


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
        """Parallels of every kind, for each note."""
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
        "note": features.note_counts(piece),
        "rhythm": features.rhythm_counts(piece),
        "parallel_error": features.parallel_counts(piece),
        "harmonic_quality": features.chord_kinds(piece, table),
        **{name: features.interval_counts(piece, voice) for voice, name in enumerate(VOICES)},
    }
    return Counts(kinds, features.repeated_sequences(piece), features.count_notes(piece))


def _held(name: str) -> dict[str, Any]:
    """A file of figures that ships with the package."""
    return json.loads(resources.files("anyfill.music").joinpath(name).read_text("utf-8"))


@cache
def bach_reference() -> tuple[Reference, dict[str, str]]:
    """The reference that ships with the package, and its table of chords."""
    held = _held("bach_reference.json")
    lengths = {int(length): count for length, count in held["repeated_sequence"].items()}
    figures = {name: held[name] for name in ("by_mode", "rhythm", "parallel_error", "notes", "pieces")}
    table = {chord: kind for kind, chords in held["chords"].items() for chord in chords}
    return Reference(repeated_sequence=lengths, **figures), table


def grade_score(score: Score, *, protocol: Protocol, reference: Reference | None = None) -> Grade:
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
    return tuple(grade_score(score, protocol=protocol, reference=reference) for score in scores)


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


@dataclass(frozen=True, slots=True)
class GradedPiece:
    """A piece with its grade under each protocol.

    Attributes:
        name: of the file.
        grades: by protocol, without names of notes.
        as_written: protocol paper with the names in the file; None where a note has none.
        habits: what the grade does not see: endings, repeated notes, notes a bar, crossing, range.
    """

    name: str
    grades: dict[Protocol, Grade]
    as_written: Grade | None = None
    habits: Habits | None = None

    @property
    def overall(self) -> float:
        """The key-aware grade: the sum of nine distances from Bach's chorales; lower is nearer."""
        return self.grades["key-aware"].overall

    @property
    def key(self) -> Key | None:
        """The key that was found; None where nothing sounds."""
        return self.grades["key-aware"].key

    def __repr__(self) -> str:
        bach = real_bach()["notated"]["key-aware"]["median"]
        own = {"overall": self.overall, **self.grades["key-aware"].features}
        rows = [f"  {row.replace('_', ' '):<18}{in_figures(own[row]):>8}{in_figures(bach[row]):>8}" for row in own]
        return "\n".join([f"<Grade of {self.name}, {self.key}: distance from Bach's chorales, beside real Bach", *rows])


@cache
def real_bach() -> dict[str, Any]:
    """Set -> protocol -> {"median": {...}, "deviation": {...}, "count": n}, beside "about" of each set."""
    return _held("real_bach.json")


def grade(music: Music) -> GradedPiece:
    """How near a piece is to Bach's chorales, by nine features and two protocols.

    Args:
        music: of four voices: a file, a name in music21's corpus, a ``Piece``, ``Score`` or ``Chorale``. ValueError
            if it has fewer.
    """
    parsed, source = parse(music)
    score, count = parsed.score, len(sounding_lines(parsed.score))
    if count < len(VOICES):
        raise refuse(source, expected="four voices to grade", got=count)
    name = str(music) if isinstance(music, str | Path) else score.title or "score"
    if len(score.voices) != len(VOICES):  # only then are the exact times lost
        score = quantise(parsed, source=source).chorale.score()
    plain = unnamed(score)
    return GradedPiece(
        name,
        {protocol: grade_score(plain, protocol=protocol) for protocol in PROTOCOLS},
        grade_score(score, protocol="paper") if score.is_named else None,
        None if score.last_pitch is None else habits(score),
    )


def unnamed(score: Score) -> Score:
    """The score without names and without rests, but for one at the end: what a MIDI file says of it."""
    voices = [
        [replace(note, name=None, octave=None) for note in voice if note.pitch is not None] for voice in score.voices
    ]
    last = max((voice[-1].end for voice in voices if voice), default=Fraction(0))
    if last < score.length:
        start = voices[0][-1].end if voices[0] else Fraction(0)
        voices[0].append(Note(start, score.length - start, None))
    return replace(score, voices=tuple(tuple(voice) for voice in voices))


def in_figures(value: float) -> str:
    """As reports have it."""
    return f"{value:.2f}" if isfinite(value) else "-" if value != value else "infinite"
