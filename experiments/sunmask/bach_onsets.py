"""Train a model of chorales with onsets, on music21's corpus: one command for one accelerator.

    python -m experiments.sunmask.bach_onsets --data ../shared/data/jsb_chorales --output runs/bach_onsets
    python -m experiments.sunmask.bach_onsets --smoke          # a tiny one on a CPU, to see that everything runs

**Pieces.** Only chorales of the corpus that are the same music as a piece of JSB train (to train on) or JSB valid (to
stop by): in all voices nearly the same melodic intervals (``same_music``). All others may belong to the test part and
are not touched. What the corpus adds to the grid: onsets, metres, fermatas, keys, pickups.

**Rows.** Crops of 24 bars of 4/4 (384 steps) that begin with every bar, in 12 transpositions, told more or less of the
form (``training.TOLD``). So few pieces are learnt by heart from some 500 steps on: dropout and weight decay are high,
and the best weights by JSB valid are kept (``--patience`` validations without a new best end the run).

**Figures.** Nats per note and per cell of the pieces held out, told metre, end and key, in one pass each, exact. Writes
results/sunmask/bach_onsets.json; the model goes to --output, for ``anyfill music ... --model``.
"""

import argparse
import json
import time
from difflib import SequenceMatcher
from importlib import resources
from pathlib import Path

import numpy as np
import torch

from anyfill.model import Model
from anyfill.music.chorale import REST, Chorale
from anyfill.music.files import read_jsb, read_music
from anyfill.music.model import one_pass_chorale, onset_chorale_model
from anyfill.music.piece import Piece, whole_of
from anyfill.music.request import LONG_WINDOW
from anyfill.music.scoring import score_piece
from anyfill.music.training import TOLD, FormCrops
from anyfill.training import FitOptions, fit
from benchmarks.common import write_result
from experiments.common import data_folder, shown

SAME, SAME_VOICE = 0.93, 0.85
"""How alike the melodic intervals of the four voices must be on average, and each voice's; two harmonisations of one
tune are far below in the lower voices."""


def melody(chorale: Chorale, voice: int) -> tuple[int, ...]:
    """The melodic intervals of a voice, repeated notes and rests left out."""
    pitch = chorale.pitch[voice]
    pitch = pitch[pitch != REST]
    moves = np.diff(pitch.astype(int))
    return tuple(moves[moves != 0].tolist())


def same_music(first: Chorale, second: Chorale) -> bool:
    """Whether two chorales are the same in all voices, in whatever key and rhythm."""
    alike: list[float] = []
    for voice in (0, 3, 1, 2):
        mine, other = melody(first, voice), melody(second, voice)
        most = 2 * min(len(mine), len(other)) / max(len(mine) + len(other), 1)
        if most >= SAME_VOICE:
            most = 1.0 if mine == other else SequenceMatcher(None, mine, other, autojunk=False).ratio()
        if most < SAME_VOICE:
            return False
        alike.append(most)
    return sum(alike) / len(alike) >= SAME


def matched(pieces: list[Piece], grids: list[Chorale]) -> list[Piece]:
    """The pieces that are the same music as one of the grids."""
    return [piece for piece in pieces if any(same_music(piece.chorale, grid) for grid in grids)]


def corpus_pieces(limit: int | None = None) -> list[Piece]:
    """The four-part chorales of music21's corpus, as our reader reads them."""
    found: list[Piece] = []
    with resources.as_file(resources.files("music21").joinpath("corpus", "bach")) as folder:
        for file in sorted(path for path in folder.iterdir() if path.suffix in (".mxl", ".xml")):
            try:
                piece = whole_of(read_music(file), source=file.name, strict=True)
            except ValueError:
                continue
            if piece.present.all():
                found.append(piece)
            if len(found) == limit:
                break
    return found


def figures(model: Model, pieces: list[Piece]) -> dict[str, float]:
    """Nats per note and per cell over these pieces."""
    scored = [score_piece(model.cpu(), piece) for piece in pieces]
    notes = sum(int((one.chorale.onset & (one.chorale.pitch != REST)).sum()) for one in scored)
    total = -sum(one.total for one in scored)
    return {"nats_per_note": total / notes, "nats_per_cell": total / sum(one.cells for one in scored), "notes": notes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=data_folder() / "jsb_chorales", help="jsb16_train_valid.json is there"
    )
    parser.add_argument("--output", type=Path, default=Path("runs/bach_onsets"))
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--dropout", type=float, default=0.4)
    parser.add_argument("--weight-decay", type=float, default=0.2)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--joint-share", type=float, default=0.4)
    parser.add_argument("--transpositions", type=int, default=12, help="how many semitones, around 0")
    parser.add_argument("--patience", type=int, default=12, help="validations without a new best")
    parser.add_argument("--validate-every", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--smoke", action="store_true", help="a tiny model, few pieces, a few steps")
    options = parser.parse_args()
    jsb = options.data / "jsb16_train_valid.json"
    if options.smoke:
        options.steps, options.batch, options.width, options.depth, options.heads = 4, 2, 32, 1, 2
        options.validate_every, options.device = 2, "cpu"
    pieces = corpus_pieces(40 if options.smoke else None)
    train, valid = (matched(pieces, read_jsb(jsb, part)) for part in ("train", "valid"))
    print(f"{len(pieces)} chorales of the corpus: {len(train)} are in JSB train, {len(valid)} in valid", flush=True)
    low = -(options.transpositions // 2)
    shifts = tuple(range(low, low + options.transpositions))
    crops = FormCrops(train, LONG_WINDOW, transpositions=shifts)
    aside = FormCrops(valid[:4] if options.smoke else valid, LONG_WINDOW, transpositions=(0,), told=TOLD[1:2],
                      every_bar=False)  # fmt: skip
    model = onset_chorale_model(
        width=options.width, depth=options.depth, heads=options.heads, dropout=options.dropout, seed=options.seed
    )
    begun = time.perf_counter()
    cuda = torch.cuda.is_available() and options.device != "cpu"
    settings = FitOptions(
        steps=options.steps, batch_size=options.batch, learning_rate=options.learning_rate,
        weight_decay=options.weight_decay, ema=0.995 if options.steps > 500 else None, optimizer="muon",
        precision="bf16-mixed" if cuda else "32-true", validate_every=options.validate_every,
        patience=options.patience, seed=options.seed, device=options.device,
    )  # fmt: skip
    objective = one_pass_chorale(LONG_WINDOW, joint_share=options.joint_share)
    fit(model, crops, objective, settings, validation=aside.rows(), folder=options.output)
    found = figures(model.float().eval(), valid[:2] if options.smoke else valid)
    print(json.dumps(found), flush=True)
    if not options.smoke:
        payload = {
            "options": shown(vars(options)), "train": len(train), "valid": len(valid), "crops": len(crops),
            "seconds": time.perf_counter() - begun, **found,
        }  # fmt: skip
        write_result("sunmask/bach_onsets", payload, device="cuda" if cuda else "cpu")


if __name__ == "__main__":
    main()
