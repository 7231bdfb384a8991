"""Bach or mock: how unlike Bach's four-part chorales a piece is, by nine features (Fang et al., 2020).

Each feature is a histogram of the piece, compared with the chorales' by the distance of ``distances``; the grade is the
plain sum, and 0 would be a piece exactly like all chorales together. Lower is better. Features 1, 4 and 5 to 8 are
compared with the chorales in the mode of the key that was found. The third is a distance scaled by a rate,

    parallel_error = W1 · (errors / notes) / (the chorales' errors / notes),   0 without errors.

A piece without what a feature counts (no note, a voice of one note) is graded infinite.

Two protocols, of which ``anyfill.music.spelling`` says more: "paper" is the published one and depends on
the key a piece is in; "key-aware" does not. A grade means something beside real chorales graded through the same path:
what a grid or a MIDI file loses (repeated notes, names) costs real Bach, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from statistics import median, pstdev

from anyfill.checks import refuse
from anyfill.music.distances import length_distance, rank_distance
from anyfill.music.key_profile import Key
from anyfill.music.reference import BY_MODE, VOICES, Counts, Reference, counts_of, load
from anyfill.music.score import Score
from anyfill.music.spelling import Protocol, spell

FEATURES = ("note", "rhythm", "parallel_error", "harmonic_quality", *VOICES, "repeated_sequence")


@dataclass(frozen=True, slots=True)
class Grade:
    """Nine distances from Bach's chorales; 0 is none.

    Attributes:
        note: degrees of the scale.
        rhythm: lengths of notes and rests.
        parallel_error: parallel fifths and octaves.
        harmonic_quality: kinds of chord.
        soprano, alto, tenor, bass: melodic intervals.
        repeated_sequence: lengths of sequences a voice repeats.
        protocol: how notes got their names.
        key: the one found; None where nothing sounds.
    """

    note: float
    rhythm: float
    parallel_error: float
    harmonic_quality: float
    soprano: float
    alto: float
    tenor: float
    bass: float
    repeated_sequence: float
    protocol: Protocol
    key: Key | None

    @property
    def features(self) -> dict[str, float]:
        """The nine by name."""
        return {name: getattr(self, name) for name in FEATURES}

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


def grade(score: Score, *, protocol: Protocol, reference: Reference | None = None) -> Grade:
    """How unlike Bach's chorales a score of four voices is.

    Args:
        score: soprano, alto, tenor and bass, ties merged.
        protocol: "paper" or "key-aware"; see the module.
        reference: compare with this in place of Bach's chorales.
    """
    if len(score.voices) != len(VOICES):
        raise refuse("voices of the score", expected="four (soprano, alto, tenor, bass)", got=len(score.voices))
    bach, table = load()
    if not any(note.pitch is not None for voice in score.voices for note in voice):
        return Grade(*[inf] * len(FEATURES), protocol=protocol, key=None)
    piece = spell(score, protocol=protocol)
    distances = compare(counts_of(piece, table), piece.key, reference or bach)
    return Grade(**distances, protocol=protocol, key=piece.key)


def compare(own: Counts, key: Key, reference: Reference) -> dict[str, float]:
    """Feature -> distance of a piece's histograms from the reference's."""
    of_mode = reference.by_mode[key.mode]
    found = {name: _ranked(own.kinds[name], of_mode[name]) for name in BY_MODE}
    found["rhythm"] = _ranked(own.kinds["rhythm"], reference.rhythm)
    errors = own.kinds["parallel_error"]
    rate = sum(errors.values()) / max(own.notes, 1) / reference.parallels_per_note
    found["parallel_error"] = rank_distance(errors, reference.parallel_error) * rate if errors else 0.0
    found["repeated_sequence"] = length_distance(own.lengths, reference.repeated_sequence)
    return found


def grade_all(scores: Iterable[Score], *, protocol: Protocol, reference: Reference | None = None) -> tuple[Grade, ...]:
    """The grade of each score, in their order."""
    return tuple(grade(score, protocol=protocol, reference=reference) for score in scores)


def summary(grades: Sequence[Grade]) -> Summary:
    """Median and standard deviation of every feature and of the whole."""
    protocols = {one.protocol for one in grades}
    if len(protocols) != 1:
        raise refuse("grades", expected="one at least, all of one protocol", got=sorted(protocols) or "none")
    columns = {"overall": [one.overall for one in grades]}
    columns |= {name: [getattr(one, name) for one in grades] for name in FEATURES}
    return Summary(
        {name: median(values) for name, values in columns.items()},
        {name: pstdev(finite) if (finite := [*filter(isfinite, values)]) else nan for name, values in columns.items()},
        len(grades),
        sum(not isfinite(value) for value in columns["overall"]),
        grades[0].protocol,
    )


def _ranked(own: Mapping[str, int], reference: Mapping[str, int]) -> float:
    return rank_distance(own, reference) if own else inf
