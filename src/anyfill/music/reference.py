"""What the chorales are like: histograms of every feature over Bach's four-part chorales, and the table of chords.

The file holds counts and names only, no music. scripts/bach_reference.py writes it from the corpus that music21 carries
(351 four-part chorales, ties merged, the names of the source).
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from anyfill.music.chords import chord_kinds
from anyfill.music.features import (
    count_notes,
    interval_counts,
    note_counts,
    parallel_counts,
    rhythm_counts,
)
from anyfill.music.key_profile import Mode
from anyfill.music.sequences import repeated_sequences
from anyfill.music.spelling import Piece

VOICES = ("soprano", "alto", "tenor", "bass")
BY_MODE = ("note", "harmonic_quality", *VOICES)
"""Features with a reference for each mode."""


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


@dataclass(slots=True)
class Counts:
    """The features of one piece before they are compared.

    Attributes:
        kinds: feature -> kind -> count, of all features that have kinds.
        lengths: of repeated sequences.
        notes: how many.
    """

    kinds: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    lengths: Counter[int] = field(default_factory=Counter[int])
    notes: int = 0


def counts_of(piece: Piece, table: Mapping[str, str]) -> Counts:
    """All histograms of a piece."""
    kinds = {
        "note": note_counts(piece),
        "rhythm": rhythm_counts(piece),
        "parallel_error": parallel_counts(piece),
        "harmonic_quality": chord_kinds(piece, table),
    }
    kinds.update((name, interval_counts(piece, voice)) for voice, name in enumerate(VOICES))
    return Counts(kinds, repeated_sequences(piece), count_notes(piece))


def gather(pieces: Iterable[Piece], table: Mapping[str, str]) -> Reference:
    """The reference that these pieces make together."""
    modes: Sequence[Mode] = ("major", "minor")
    by_mode: dict[Mode, dict[str, Counter[str]]] = {mode: {name: Counter() for name in BY_MODE} for mode in modes}
    rhythm: Counter[str] = Counter()
    parallels: Counter[str] = Counter()
    lengths: Counter[int] = Counter()
    notes = count = 0
    for piece in pieces:
        own = counts_of(piece, table)
        for name in BY_MODE:
            by_mode[piece.key.mode][name].update(own.kinds[name])
        rhythm.update(own.kinds["rhythm"])
        parallels.update(own.kinds["parallel_error"])
        lengths.update(own.lengths)
        notes += own.notes
        count += 1
    return Reference(
        {mode: {name: falling(counts) for name, counts in by_mode[mode].items()} for mode in modes},
        falling(rhythm),
        falling(parallels),
        notes,
        dict(sorted(lengths.items())),
        count,
    )


def falling(counts: Mapping[str, int]) -> dict[str, int]:
    """Most frequent first, equals by name."""
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


@cache
def load() -> tuple[Reference, dict[str, str]]:
    """The reference that ships with the package, and its table of chords."""
    text = resources.files("anyfill.music").joinpath("bach_reference.json").read_text("utf-8")
    held: dict[str, Any] = json.loads(text)
    lengths = {int(length): count for length, count in held["repeated_sequence"].items()}
    figures = {name: held[name] for name in ("by_mode", "rhythm", "parallel_error", "notes", "pieces")}
    table = {chord: kind for kind, chords in held["chords"].items() for chord in chords}
    return Reference(repeated_sequence=lengths, **figures), table
