"""Writes what Bach's chorales are like, for the grade: histograms and a table of chords, no music.

    pip install "anyfill[music]"
    python scripts/bach_reference.py                    # src/anyfill/music/bach_reference.json
    python scripts/bach_reference.py --check            # writes nothing; how real Bach is graded by the file there is

The chorales are those of music21's corpus, numbers 1 to 371, as far as they have four parts (351). Ties are merged;
fermatas and everything else but notes is left. The same chorales are then graded, as the published grade was.
"""

import argparse
import itertools
import json
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

from anyfill.music.features import entry
from anyfill.music.grades import gather, grade_all, summary
from anyfill.music.keys import LETTERS
from anyfill.music.score import Note, Score
from anyfill.music.spelling import spell

TARGET = Path(__file__).parents[1] / "src/anyfill/music/bach_reference.json"
SPAN = 14
"""Places on the line of fifths from a chord's flattest to its sharpest note, at most, in the table of chords."""


def four_part_chorales() -> Iterator[Score]:
    """Chorales 1 to 371 of music21's corpus that have four parts."""
    from music21 import corpus

    for work in corpus.chorales.Iterator(1, 371):
        if len(work.parts) == 4:
            yield score_of(work)


def score_of(work: Any) -> Score:
    """A music21 score with its ties merged."""
    merged = work.stripTies()
    voices = tuple(tuple(map(_note, part.flatten().notesAndRests)) for part in merged.parts)
    bars = tuple(Fraction(bar.offset) for bar in merged.parts[0].getElementsByClass("Measure"))
    return Score(voices, bars)


def _note(one: Any) -> Note:
    start, length = Fraction(one.offset), Fraction(one.quarterLength)
    if one.isRest:
        return Note(start, length, None)
    pitch = one.pitches[-1]
    return Note(start, length, int(pitch.midi), pitch.name, pitch.octave)


def chord_table() -> dict[str, list[str]]:
    """Kind -> the chords that music21 finds to be of it, of up to four names, as ``chords.entry`` writes them."""
    from music21.chord import Chord
    from music21.harmony import chordSymbolFigureFromChord

    kinds: dict[str, list[str]] = defaultdict(list)
    done: set[str] = set()
    sets = (((0, *more)) for size in range(4) for more in itertools.combinations(range(1, SPAN + 1), size))
    for places in sets:
        for order in itertools.permutations(places):
            code = entry(list(order))
            if code in done:
                continue
            done.add(code)
            names = [_name(place - 5) + str(octave) for place, octave in zip(order, (2, 3, 4, 5))]
            if len(order) == 1:
                names.append(names[0][:-1] + "3")  # one name in two octaves; a single pitch is a pedal
            kind = chordSymbolFigureFromChord(Chord(names), True)[1]
            if kind:
                kinds[kind].append(code)
    return {kind: sorted(kinds[kind]) for kind in sorted(kinds)}


def _name(place: int) -> str:
    sharps, letter = divmod(place + 1, 7)
    return LETTERS[letter] + ("#" * sharps or "-" * -sharps)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="write nothing, only grade the chorales")
    options.add_argument("-o", "--output", type=Path, default=TARGET)
    asked = options.parse_args()
    warnings.simplefilter("ignore")
    chorales = list(four_part_chorales())
    if not asked.check:
        chords = chord_table()
        table = {code: kind for kind, codes in chords.items() for code in codes}
        reference = gather((spell(score, protocol="paper") for score in chorales), table)
        asked.output.write_text(json.dumps({**asdict(reference), "chords": chords}, indent=0) + "\n", "utf-8")
    print(summary(grade_all(chorales, protocol="paper")))


if __name__ == "__main__":
    main()
