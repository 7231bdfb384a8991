"""How harmonisations of Bach's own sopranos end, and how often they repeat notes, beside Bach.

Sopranos of chorales of music21's corpus that are the same music as a piece of JSB valid (``bach_onsets.same_music``),
with their onsets and stated keys, are harmonised once each by the model that ships, as the command does by default, and
with the rules for endings and for notes struck again switched off. Drawn once, nothing selected. That model was trained
on JSB train and valid, so these sopranos are not new to it: this is about endings and onsets, not about quality.

    python -m experiments.sunmask.bach_endings          # results/sunmask/bach_endings.json
"""

import argparse
from dataclasses import replace
from pathlib import Path

from anyfill.music import load
from anyfill.music.files import read_jsb
from anyfill.music.habits import Habits, ending_of, habits, summary
from benchmarks.common import write_result
from experiments.common import data_folder
from experiments.sunmask.bach_onsets import corpus_pieces, same_music


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder() / "jsb_chorales")
    parser.add_argument("--pieces", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    grids = read_jsb(options.data / "jsb16_train_valid.json", "valid")
    model, found = load(), dict[str, list[Habits]](bach=[], rules=[], plain=[])
    for piece in corpus_pieces():
        if piece.source is None or not any(same_music(piece.chorale, grid) for grid in grids):
            continue
        tune = replace(piece.source, voices=piece.source.voices[:1], names=("soprano",), document=None)
        found["bach"].append(habits(piece.source))
        for name, how in (("rules", {}), ("plain", {"ending": "open", "held": True})):
            (made,) = model.harmonise(tune, n=1, seed=options.seed, **how)
            found[name].append(habits(made.score))
        print(len(found["bach"]), ending_of(piece.source), *(one[-1].ending for one in found.values()), flush=True)
        if len(found["bach"]) == options.pieces:
            break
    payload = {"seed": options.seed, **{name: summary(one) for name, one in found.items()}}
    print(write_result("sunmask/bach_endings", payload).read_text())


if __name__ == "__main__":
    main()
