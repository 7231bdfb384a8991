"""Writes how real chorales are graded, for ``anyfill music grade`` to show beside other music: figures, no music.

    python scripts/real_bach_grades.py --jsb jsb16.json            # src/anyfill/music/real_bach.json

    notated   the 351 four-part chorales of music21's corpus, as they are notated (needs music21: anyfill[music])
    grid      the same, as grids of sixteenths: repeated notes become long ones, names are lost
    bars      8 bars, as grids, from the part ``valid`` of a JSB file: cut every 128 steps, where nobody rests
    struck    8 bars with their repeated notes, of chorales in 4/4 that ``experiments.sunmask.bach_corpus`` holds out

Without music21 the first two, and without ``--corpus`` the last, are kept from the file there is.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from anyfill.music.chorale import BAR, Chorale
from anyfill.music.crops import whole_windows
from anyfill.music.files import read_jsb, read_music
from anyfill.music.grades import grade_all, summary
from anyfill.music.quantising import quantise, whole_of
from anyfill.music.score import Score

TARGET = Path(__file__).parents[1] / "src/anyfill/music/real_bach.json"
STEPS = 128


def figures(about: str, scores: Iterable[Score]) -> dict[str, Any]:
    """Median and standard deviation of every feature under both protocols."""
    pieces = list(scores)
    found: dict[str, Any] = {"about": about, "count": len(pieces)}
    for protocol in ("key-aware", "paper"):
        of_all = summary(grade_all(pieces, protocol=protocol))
        found[protocol] = {
            "median": {name: round(value, 3) for name, value in of_all.median.items()},
            "deviation": {name: round(value, 3) for name, value in of_all.deviation.items()},
            "infinite": of_all.infinite,
        }
    return found


def eight_bars(path: Path) -> list[Score]:
    """Windows of 128 steps, as the SUNMASK paper cuts them."""
    return [Chorale.of(window.pitch).score() for window in whole_windows(read_jsb(path, "valid"), STEPS)]


def struck_bars(folder: Path) -> list[Score]:
    """The same of files, notes struck again as they are; from the first whole bar on."""
    chorales = (whole_of(read_music(file), source=file.name, strict=True).chorale for file in sorted(folder.iterdir()))
    return [
        window.score()
        for one in chorales
        if one.bar == BAR
        for window in whole_windows([one.cut(one.pickup, one.steps)])
    ]


def main() -> None:
    """Grade, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jsb", type=Path, required=True, help="JSB file with a part valid")
    parser.add_argument("--corpus", type=Path, help="the folder that experiments.sunmask.bach_corpus made")
    arguments = parser.parse_args()
    held = json.loads(TARGET.read_text()) if TARGET.exists() else {}
    try:
        from bach_reference import four_part_chorales

        notated = list(four_part_chorales())
    except ModuleNotFoundError:
        print("music21 is not installed: the figures of whole chorales are kept as they are")
    else:
        held["notated"] = figures("whole, as notated", notated)
        grids = [quantise(score).chorale for score in notated]
        held["grid"] = figures("whole, as grid", [Chorale.of(one.pitch).score() for one in grids])
    held["bars"] = figures("8 bars, as grid", eight_bars(arguments.jsb))
    if arguments.corpus is not None:
        held["struck"] = figures("8 bars, with onsets", struck_bars(arguments.corpus / "valid"))
    shown = {name: held[name] for name in ("bars", "struck", "grid", "notated") if name in held}
    TARGET.write_text(json.dumps(shown, indent=1) + "\n")
    for name, one in shown.items():
        print(name, one["count"], {p: one[p]["median"]["overall"] for p in ("key-aware", "paper")})


if __name__ == "__main__":
    main()
