"""How harmonisations of Bach's own sopranos end, and how often they repeat notes, beside Bach.

Sopranos of chorales of music21's corpus that are the same music as a piece of JSB valid (``bach_corpus``), with their
onsets, stated keys and fermatas, are harmonised once each, as the command does by default, and with the rules for
endings (and, for a model without onsets, for notes struck again) switched off. Drawn once, nothing selected. How a
piece ends is told in the key of Bach's chorale. Held out: a model of ``bach_onsets`` was not trained on these pieces,
only stopped by them.

    python -m experiments.sunmask.bach_endings          # results/sunmask/bach_endings.json, of the model that ships
"""

import argparse
import json
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from anyfill.music import load
from anyfill.music.habits import ENDINGS, Habits, habits, summary
from anyfill.music.keys import find_key
from anyfill.music.model import ChoraleModel
from anyfill.music.piece import Piece
from benchmarks.common import environment, write_result
from experiments.sunmask.bach_corpus import corpus_parts, pieces_in
from experiments.where import data_folder

HOW = {"rules": {}, "plain": {"ending": "open", "held": True}}


@cache
def _model(folder: Path | None) -> ChoraleModel:
    torch.set_num_threads(1)
    return load(folder)


def harmonised(folder: Path | None, piece: Piece, seed: int, ways: tuple[str, ...]) -> dict[str, Habits]:
    """The habits of a piece and of harmonisations of its soprano."""
    if piece.source is None:
        raise ValueError("a piece without a file")
    key = find_key(piece.source)  # of Bach's chorale: a harmonisation of its tune is in that key, or ends elsewhere
    tune = replace(piece.source, voices=piece.source.voices[:1], names=("soprano",), document=None)
    found = {"bach": habits(piece.source, key)}
    for name in ways:
        (made,) = _model(folder).harmonise(tune, n=1, seed=seed, **HOW[name])
        found[name] = habits(made.score, key)
    return found


def main() -> None:
    """Harmonise, count, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder() / "jsb_chorales")
    parser.add_argument("--corpus", type=Path, help="the folder that bach_corpus made; else music21's own is read")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--pieces", type=int, default=200, help="at most so many")
    parser.add_argument("--ways", nargs="+", default=[*HOW], choices=[*HOW])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a file; by default results/sunmask/bach_endings.json")
    options = parser.parse_args()
    pieces = (
        pieces_in(options.corpus / "valid") if options.corpus
        else corpus_parts(options.data / "jsb16_train_valid.json")["valid"]
    )  # fmt: skip
    payload: dict[str, object] = {}
    each: dict[str, list[Habits]] = {"bach": [], **{name: [] for name in options.ways}}
    with ProcessPoolExecutor(options.processes) as pool:
        wanted = [*pieces.values()][: options.pieces]
        work = [pool.submit(harmonised, options.model, piece, options.seed, tuple(options.ways)) for piece in wanted]
        for done in as_completed(work):
            for name, one in done.result().items():
                each[name].append(one)
            if options.out is not None or len(each["bach"]) == len(wanted):
                payload = {"seed": options.seed, **{name: summary(one) for name, one in each.items()}}
                if options.out is not None:
                    record = {**payload, "environment": environment()}
                    options.out.write_text(json.dumps(record, indent=1) + "\n")
    if options.out is None:
        write_result("sunmask/bach_endings", payload)
    for name, one in each.items():
        told = summary(one)
        closed = sum(told["ending"][kind] for kind in ENDINGS[:2]) / len(one)
        shown = {name: round(told[name], 3) for name in ("repeats_inner", "repeats", "notes_a_bar")}
        print(f"{name:6} {closed:.0%} tonic or dominant", shown, flush=True)


if __name__ == "__main__":
    main()
