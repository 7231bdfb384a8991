"""Which chorales of music21's corpus are the same music as a piece of JSB train or valid: no other is trained on.

The corpus has what the grid lacks (onsets, metres, fermatas, keys, pickups), but it also has the pieces of JSB's test
part. Those are kept aside and not at hand, so the rule is the safe one: a chorale belongs to a part if it is the same
music as a piece of that part, and whatever belongs to none is left alone.

**The same music.** The chords of a piece are its columns of four pitches, one for each change. With G the set of its
runs of three chords, each taken from its first pitch (so that a transposed piece is the same), a chorale is a piece if

    |G(chorale) ∩ G(piece)| / |G(chorale)|  >=  0.6.

Repeats that are written out in one and not in the other change nothing. No chorale of the corpus lies between 0.50 and
0.63: two harmonisations of one tune share few runs in four voices.

    python -m experiments.sunmask.bach_corpus --out FOLDER      # copies the files to FOLDER/train and FOLDER/valid
"""

import argparse
import json
import shutil
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anyfill.music.chorale import REST, Chorale
from anyfill.music.files import read_jsb, read_music
from anyfill.music.piece import Piece
from anyfill.music.quantising import whole_of
from experiments.where import data_folder

RUN, SAME = 3, 0.6
PARTS = ("train", "valid")


def runs(pitch: NDArray[np.int16]) -> set[bytes]:
    """G: every run of ``RUN`` chords of a piece (4, T), from its first pitch."""
    changes = np.concatenate([[True], (np.diff(pitch, axis=1) != 0).any(0)])
    chords = pitch[:, changes].astype(np.int16)
    found: set[bytes] = set()
    for start in range(chords.shape[1] - RUN + 1):
        run = chords[:, start : start + RUN]
        sounding = run[run != REST]
        if len(sounding):
            found.add(np.where(run == REST, -100, run - sounding[0]).astype(np.int16).tobytes())
    return found


def share(own: set[bytes], pieces: Sequence[set[bytes]]) -> float:
    """The greatest share of its own runs that one of the pieces has."""
    return max((len(own & other) for other in pieces), default=0) / max(len(own), 1)


def part_of(chorale: Chorale, parts: dict[str, list[set[bytes]]]) -> str | None:
    """The part that a chorale belongs to; None where it belongs to none, or to both."""
    own = runs(chorale.pitch)
    there = [part for part, pieces in parts.items() if share(own, pieces) >= SAME]
    return there[0] if len(there) == 1 else None


def pieces_in(folder: Path, limit: int | None = None) -> dict[Path, Piece]:
    """The four-part pieces in a folder, as our reader reads them."""
    found: dict[Path, Piece] = {}
    for file in sorted(path for path in folder.iterdir() if path.suffix in (".mxl", ".xml")):
        try:
            piece = whole_of(read_music(file), source=file.name, strict=True)
        except ValueError:
            continue
        if piece.present.all():
            found[file] = piece
        if len(found) == limit:
            break
    return found


def corpus_parts(jsb: Path, limit: int | None = None) -> dict[str, dict[Path, Piece]]:
    """The chorales of music21's corpus that belong to JSB train, and to valid."""
    parts = {part: [runs(grid.pitch) for grid in read_jsb(jsb, part)] for part in PARTS}
    found: dict[str, dict[Path, Piece]] = {part: {} for part in PARTS}
    with resources.as_file(resources.files("music21").joinpath("corpus", "bach")) as folder:
        for file, piece in pieces_in(folder, limit).items():
            part = part_of(piece.chorale, parts)
            if part is not None:
                found[part][file] = piece
    return found


def main() -> None:
    """Copy the files, and say how many."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder() / "jsb_chorales")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found = corpus_parts(options.data / "jsb16_train_valid.json")
    for part, pieces in found.items():
        folder = options.out / part
        folder.mkdir(parents=True, exist_ok=True)
        for file in pieces:
            shutil.copy(file, folder)
    print(json.dumps({part: len(pieces) for part, pieces in found.items()}))


if __name__ == "__main__":
    main()
