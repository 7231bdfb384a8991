"""Train the model of chorales on a JSB file, or on files of music, into a folder from which the run can be resumed.

Ctrl-C leaves a checkpoint: the folder then holds the best model so far, which can be used, and all that ``--resume``
needs to go on as if nothing had happened.
"""

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import torch

from anyfill.checks import refuse
from anyfill.interface.output import require_place
from anyfill.interface.progress import watch
from anyfill.music.chorale import Chorale
from anyfill.music.chorales import Crops, read_jsb
from anyfill.music.files import read_chorale
from anyfill.music.recipe import one_pass_chorale, one_pass_chorale_model
from anyfill.music.windows import BAR, WINDOW
from anyfill.rows import Rows
from anyfill.training import FitOptions, fit_steps


def read_pieces(sources: Sequence[Path]) -> tuple[list[Chorale], list[Chorale]]:
    """Pieces to train on and pieces to stop by: a JSB file has both, files of music are all trained on."""
    train: list[Chorale] = []
    valid: list[Chorale] = []
    for source in sources:
        if source.suffix.lower() != ".json":
            train.append(read_chorale(source))
            continue
        train += read_jsb(source, "train")
        if "valid" in json.loads(source.read_bytes()):
            valid += read_jsb(source, "valid")
    if not train:
        raise refuse("pieces", expected="one at least to train on", got="none")
    return train, valid


def train(
    sources: Sequence[Path],
    folder: Path,
    *,
    steps: int,
    batch: int,
    width: int,
    depth: int,
    heads: int,
    dropout: float,
    seed: int,
    resume: bool,
    device: str,
) -> str:
    """Train, with progress on stderr; a sentence about what was trained on."""
    if not resume:
        require_place(folder)
        if (folder / "config.json").exists():
            raise refuse(
                f"{folder}", expected="a new folder, or --resume to go on with its run", got="one with a model"
            )
    pieces, held_out = read_pieces(sources)
    crops = Crops(pieces, WINDOW, stride=BAR)
    valid: Rows | None = Crops(held_out, WINDOW, stride=WINDOW, transpositions=(0,)).rows() if held_out else None
    model = one_pass_chorale_model(WINDOW, width=width, depth=depth, heads=heads, dropout=dropout, seed=seed)
    cuda = device == "cuda" or (device == "auto" and torch.cuda.is_available())
    options = FitOptions(
        steps=steps,
        batch_size=batch,
        learning_rate=1e-3,
        weight_decay=0.1,
        ema=0.999 if steps > 2_000 else None,
        precision="bf16-mixed" if cuda else "32-true",
        validate_every=max(1, min(500, steps // 4)),
        save_every=max(1, min(500, steps // 10)),
        seed=seed,
        device="cuda" if cuda else "cpu",
    )
    notes = {"made_by": "anyfill music train"}
    objective = one_pass_chorale(WINDOW)
    reports = fit_steps(model, crops, objective, options, validation=valid, folder=folder, resume=resume, notes=notes)
    with closing(watch(reports, steps, "training")) as watched:
        for _ in watched:
            pass
    behind = f", stopped by {len(held_out)} others" if held_out else ", nothing held out to stop by"
    return f"trained on {len(pieces)} pieces ({len(crops):,} crops of 8 bars with transpositions){behind}"
