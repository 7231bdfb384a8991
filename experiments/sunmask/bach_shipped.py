"""The model that ships, as anyone who has it can draw from it: grades, endings, repeats and copies.

200 unselected pieces of eight bars, drawn from the weights that ship on a CPU (``bach_model.drawn``: told 4/4 and the
end, neither key nor fermatas), once as the commands draw and once as the model samples by itself. Graded under both
protocols as in ``table2``, with what the grade does not see. Beside them, through the same path: windows of eight bars
of chorales held out (those of ``bach_corpus`` in 4/4).

**Copies.** A bar counts as copied if the pitches of all its 64 cells equal a bar of some training piece in some of the
12 transpositions, wherever notes begin.

    python -m experiments.sunmask.bach_shipped [--corpus FOLDER]     # results/sunmask/bach_shipped.json
"""

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from anyfill.music import model as music_model
from anyfill.music.chorale import BAR, REST, Chorale
from anyfill.music.crops import whole_windows
from benchmarks.common import write_result
from experiments.sunmask.bach_choose import told
from experiments.sunmask.bach_corpus import PARTS, corpus_parts, pieces_in
from experiments.sunmask.bach_model import drawn
from experiments.where import data_folder


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


def in_four(chorales: list[Chorale]) -> list[Chorale]:
    """Those in bars of 4/4, from their first whole bar on."""
    return [one.cut(one.pickup, one.steps) for one in chorales if one.bar == BAR]


def main() -> None:
    """Draw, grade, compare with the training pieces, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder() / "jsb_chorales")
    parser.add_argument("--corpus", type=Path, help="the folder that bach_corpus made; else music21's own is read")
    parser.add_argument("--model", type=Path, help="another model")
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--draws", nargs="+", default=["p0.99v", "p0.99", "p0.95", "t1"], help="see bach_model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--name", default="sunmask/bach_shipped")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = music_model.load_network(options.model)
    start = time.process_time()
    each = {name: drawn(model, options.samples, device="cpu", name=name, seed=options.seed) for name in options.draws}
    seconds = time.process_time() - start
    files = (
        {part: pieces_in(options.corpus / part) for part in PARTS} if options.corpus
        else corpus_parts(options.data / "jsb16_train_valid.json")
    )  # fmt: skip
    parts = {part: in_four([piece.chorale for piece in pieces.values()]) for part, pieces in files.items()}
    windows = whole_windows(parts["valid"])
    sets = {**each, "real Bach": np.stack([np.stack([one.pitch, one.onset.astype(np.int16)]) for one in windows])}
    with ProcessPoolExecutor(options.processes) as pool:
        graded = dict(zip(sets, pool.map(told, sets.values())))
    train = [one.pitch for one in parts["train"]]
    drawn_pitches = {name: [cells[0] for cells in pieces] for name, pieces in sets.items()}
    copies = {
        f"{bars} bars": {name: copied(pieces, train, bars) for name, pieces in drawn_pitches.items()}
        for bars in (1, 2, 4)
    }
    payload = {
        "samples": options.samples, "seed": options.seed, "cpu_seconds": seconds, "graded": graded,
        "copied_bars": copies, "protocol": __doc__,
    }  # fmt: skip
    print(f"wrote {write_result(options.name, payload)}")
    for name, one in graded.items():
        medians = {protocol: round(one[protocol]["median"], 2) for protocol in ("key-aware", "paper")}
        print(name, json.dumps(medians), json.dumps(one["habits"]), flush=True)
    print(json.dumps(copies, indent=1))


if __name__ == "__main__":
    main()
