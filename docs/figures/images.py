"""The figures of docs/images.md: `python docs/figures/images.py [--own FOLDER MODEL]`, from the repository.

Digits are scikit-learn's, enlarged (``anyfill.cli.demo_digits``); with --own the landscapes of
experiments/sfarm/own_pictures.py in FOLDER, filled by a model that was trained on them (they are the held-out ones).
"""

import argparse
from pathlib import Path

import numpy as np

from anyfill import images
from anyfill.cli.demo_digits import enlarged
from anyfill.cli.examples import digits
from anyfill.images.sheets import coloured, hatched, laid_out
from anyfill.images.training import split

HERE = Path(__file__).parent
SHOWN = 4
"""Landscapes in the figure: the first that are held out."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--own", nargs=2, metavar=("FOLDER", "MODEL"))
    own = parser.parse_args().own
    model, examples = images.load("digits"), enlarged(digits())
    model.fill(examples[0], "bottom", n=6, seed=0).sheet().save(HERE / "images_fill.png")
    smudged = examples[3].copy()
    smudged[4:7, 20:24] = 255
    model.score(images.Picture(smudged, name="with a smudge")).save(HERE / "images_surprise.png")
    if own is None:
        return
    read, model = images.read_pictures(own[0]), images.load(own[1])
    _, held_out = split(len(read), 0.1)
    cells = []
    for number in held_out[:SHOWN]:
        fills = model.fill(read[int(number)], "5,3,8,10", n=4, seed=0)
        hole = fills.given.erased
        cells += [("original", read[int(number)].pixels, None), ("given", hatched(fills.given), hole)]
        cells += [(f"drawn {place}", coloured(one.pixels), hole) for place, one in enumerate(fills, 1)]
    laid_out([(title, np.ascontiguousarray(pixels), hole) for title, pixels, hole in cells], "own", 6).save(
        HERE / "images_own.png"
    )


if __name__ == "__main__":
    main()
