"""Samples of the model that ships, drawn from its 16-bit weights on a CPU, for ``experiments/sunmask/table2.py``.

Whoever has anyfill can run it: no data, no accelerator. Also says how much of what is drawn stands in the training data
(``--data``), bar for bar: a bar counts as copied if all 64 cells equal a bar of some training piece in some of the 12
transpositions.

    python -m experiments.sunmask.bach_shipped
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from anyfill.music import model as music_model
from anyfill.music.chorale import REST
from anyfill.music.files import read_jsb
from benchmarks.common import RESULTS, environment
from experiments.sunmask.bach_model import drawn
from experiments.where import data_folder

BAR = 16


def shapes(pitch: NDArray[np.int16], bars: int) -> list[bytes]:
    """Every run of so many bars of a piece (4, T), relative to its first sounding pitch: equal if transposed."""
    found: list[bytes] = []
    for start in range(0, pitch.shape[1] - bars * BAR + 1, BAR):
        cells = pitch[:, start : start + bars * BAR]
        sounding = cells[cells != REST]
        if len(sounding):
            found.append(np.where(cells == REST, -100, cells - sounding[0]).astype(np.int16).tobytes())
    return found


def copied(pieces: list[NDArray[np.int16]], source: list[NDArray[np.int16]], bars: int) -> float:
    """Share of the runs of so many bars in ``pieces`` that stand in ``source``, at a bar line of either."""
    known = {shape for pitch in source for shape in shapes(pitch, bars)}
    own = [shape for pitch in pieces for shape in shapes(pitch, bars)]
    return sum(shape in known for shape in own) / max(len(own), 1)


def main() -> None:
    """Draw, compare with the training pieces, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--draws", nargs="+", default=["p0.95v", "t1"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS / "sunmask" / "logs" / "table2" / "shipped")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = music_model.load_network()
    start = time.process_time()
    each = {
        name: drawn(model, arguments.samples, device="cpu", name=name, seed=arguments.seed) for name in arguments.draws
    }
    seconds = time.process_time() - start
    np.savez_compressed(arguments.out.with_suffix(".npz"), **each)
    path = arguments.data / "jsb_chorales" / "jsb16_train_valid.json"
    parts = {part: [piece.pitch[:, piece.pickup :] for piece in read_jsb(path, part)] for part in ("train", "valid")}
    seen = parts["train"] + parts["valid"]
    copies = {
        f"{bars} bars": {
            **{name: copied(list(pieces), seen, bars) for name, pieces in each.items()},
            "valid, in train": copied(parts["valid"], parts["train"], bars),
        }
        for bars in (1, 2, 4)
    }
    shown = {name: value for name, value in vars(arguments).items() if name not in ("data", "out")}
    valid = {"copied_bars": copies, "cpu_seconds": seconds}
    record = {"arguments": shown, "valid": valid, "environment": environment()}
    arguments.out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(valid, indent=1))


if __name__ == "__main__":
    main()
