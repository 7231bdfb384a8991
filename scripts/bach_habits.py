"""Write src/anyfill/music/bach_habits.json: endings, repeated notes, density, crossing and range of Bach's chorales.

The four-part chorales of music21's corpus (the folder bach), as notated, read by our own reader. Figures only, no
music. Also says what the rule of ``anyfill.music.strikes`` makes of the same chorales once their repeated notes have
been merged, as in a grid: with the soprano given, and with all voices written (results/sunmask/bach_strikes.json).

    python -m scripts.bach_habits
"""

import json
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np

from anyfill.music.chorale import Chorale
from anyfill.music.files import read_music
from anyfill.music.habits import Habits, habits, summary
from anyfill.music.quantising import quantise
from anyfill.music.strikes import beat_of, strike_again
from benchmarks.common import write_result

TARGET = Path(__file__).resolve().parents[1] / "src" / "anyfill" / "music" / "bach_habits.json"


def main() -> None:
    with resources.as_file(resources.files("music21").joinpath("corpus", "bach")) as folder:
        files = sorted(path for path in folder.iterdir() if path.suffix in (".mxl", ".xml"))
        found: dict[str, list[Habits]] = {
            name: [] for name in ("bach", "merged", "rule, tune given", "rule, all written")
        }
        for file in files:
            try:
                parsed = read_music(file)
                piece = quantise(parsed, source=file.name)
            except ValueError:
                continue
            if len(parsed.score.voices) != 4 or not piece.present.all():
                continue
            chorale, beat = piece.chorale, beat_of(piece)
            lower = np.zeros(chorale.pitch.shape, dtype=np.bool_)
            lower[1:] = True
            plain = Chorale.of(chorale.pitch, bar=chorale.bar, pickup=chorale.pickup)
            tune = replace(plain, onset=np.where(lower, plain.onset, chorale.onset))
            found["bach"].append(habits(parsed.score))
            found["merged"].append(habits(tune.score()))
            found["rule, tune given"].append(habits(strike_again(tune, lower, beat=beat).score()))
            found["rule, all written"].append(habits(strike_again(plain, np.ones_like(lower), beat=beat).score()))
    TARGET.write_text(json.dumps(summary(found["bach"]), indent=1) + "\n")
    written = write_result("sunmask/bach_strikes", {name: summary(one) for name, one in found.items()})
    print(written.read_text())


if __name__ == "__main__":
    main()
