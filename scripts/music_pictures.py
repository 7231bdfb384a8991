"""Draws the pictures of docs/music.md: a tune in four parts, some of it written anew, and where a piece surprises.

python scripts/music_pictures.py                   # docs/figures/music_*.png, with the model that ships
python scripts/music_pictures.py --model DIR -o DIR

music_harmonised.png   "Ode to Joy": the tune, and the best of 16 harmonisations by the grade
music_filled.png       bars 3 to 6 of two of its voices erased, and two ways to fill them
music_surprise.png     the harmonisation again, coloured by surprise
"""

import argparse
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from anyfill import music
from anyfill.music import Note, Score
from anyfill.music.piano_roll import Panel, draw_piano_roll
from anyfill.music.request import Request

PITCHES = {"G": 67, "A": 69, "B": 71, "C": 72, "D": 74}
WORDS = "B B C D | D C B A | G G A B | B. A' A: | B B C D | D C B A | G G A B | A. G' G:"
LENGTHS = {".": Fraction(3, 2), "'": Fraction(1, 2), ":": Fraction(2)}
ASK = "alto 3-6, tenor 3-6"


def ode_to_joy() -> Score:
    """The first eight bars of Beethoven's tune."""
    notes: list[Note] = []
    at = Fraction(0)
    for word in WORDS.replace("|", "").split():
        name, length = word.rstrip(".':"), LENGTHS.get(word[-1], Fraction(1))
        notes.append(Note(at, length, PITCHES[name], name, PITCHES[name] // 12 - 1))
        at += length
    return Score((tuple(notes),), tuple(Fraction(4 * n) for n in range(8)), ("soprano",), 100.0, "Ode to Joy")


def main() -> None:
    """Harmonise, erase, fill, score, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="folder of a model; by default the one that ships")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parents[1] / "docs/figures")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    model, folder, seed = music.load(arguments.model), arguments.output, arguments.seed

    tune = music.read(ode_to_joy())
    (best,) = model.harmonise(ode_to_joy(), n=1, best=16, seed=seed)
    panels = [
        Panel(tune.chorale, "Ode to Joy: the tune", present=tune.present),
        replace(best.panel(), title="in four parts"),
    ]
    draw_piano_roll(panels, folder / "music_harmonised.png")

    asked = Request.fill(best, ASK).asked
    ways = model.fill(best, ask=ASK, n=2, seed=seed)
    after = [replace(way.panel(), title=f"after: {n} of 2") for n, way in enumerate(ways, 1)]
    before = Panel(best.chorale, f'before: --ask "{ASK}"', present=~asked)
    draw_piano_roll([before, *after], folder / "music_filled.png")

    model.score(best).save(folder / "music_surprise.png", title="Ode to Joy, harmonised")


if __name__ == "__main__":
    main()
