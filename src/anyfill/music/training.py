"""Training a model of chorales: files into rows, and a folder from which the run can be resumed.

**Files.** A JSB file has no onsets and trains a model of the grid. Files of music, and folders of them, train a model
with onsets that is told the form of a piece (``anyfill.music.form``). Rows are crops of the pieces
(``anyfill.music.crops``). What cannot be read is left out and listed. Where there are ten pieces or more, every tenth
is held out to stop by: so little music is soon learnt by heart.

**Run.** Ctrl-C leaves a checkpoint: the folder then holds the best model so far, which can be used, and all that
``--resume`` needs to go on as if nothing had happened.
"""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anyfill.checks import refuse
from anyfill.interface.output import require_place
from anyfill.interface.progress import watch
from anyfill.interface.runs import require_new_or_resumed
from anyfill.interface.threads import compute_device
from anyfill.model import Model
from anyfill.music.chorale import BAR, Chorale
from anyfill.music.crops import TOLD, Crops, FormCrops
from anyfill.music.files import read_jsb, read_music
from anyfill.music.model import one_pass_chorale, one_pass_chorale_model, onset_chorale_model
from anyfill.music.piece import Piece
from anyfill.music.quantising import whole_of
from anyfill.music.windows import LONG_WINDOW, WINDOW
from anyfill.music.writing import SUFFIXES
from anyfill.training import FitOptions, fit_steps

HOLD_OUT = 10
"""Of so many pieces one is held out to stop by."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What there is to train on.

    Attributes:
        train, valid: pieces to train on, and to stop by.
        skipped: files that could not be read, and why.
        onsets: whether the pieces say where notes begin.
    """

    train: list[Piece]
    valid: list[Piece]
    skipped: list[tuple[str, str]]
    onsets: bool


def read_sources(sources: Sequence[str | Path]) -> Sources:
    """Pieces of JSB files, or of files and folders of music; refused where nothing is left, or both are mixed."""
    paths = [*map(Path, sources)]
    grids = [path for path in paths if path.suffix.lower() == ".json" and not path.is_dir()]
    if grids:
        if len(grids) < len(paths):
            raise refuse("pieces", expected="JSB files (no onsets) or files of music, not both", got="both")
        train, valid = read_pieces(grids)
        return Sources(*([_grid(one) for one in part] for part in (train, valid)), skipped=[], onsets=False)
    files: list[Path] = []
    for path in paths:
        inside = sorted(one for one in path.rglob("*") if one.suffix.lower() in SUFFIXES) if path.is_dir() else [path]
        if path.is_dir() and not inside:
            raise refuse(f"{path}", expected=f"files of music in the folder ({' '.join(SUFFIXES)})", got="none")
        files += inside
    found, skipped = list[Piece](), list[tuple[str, str]]()
    for file in files:
        try:
            found.append(whole_of(read_music(file), source="it", strict=True))
        except (ValueError, OSError) as error:
            skipped.append((str(file), str(error).removeprefix(f"file {file}").lstrip(":, ")))  # named once
    if not found:
        why = f"none: {skipped[0][1]}" if len(skipped) == 1 else f"none of {len(skipped)} files"
        raise refuse("pieces", expected="one at least to train on", got=why)
    held = [n % HOLD_OUT == HOLD_OUT - 1 for n in range(len(found))]
    return Sources(
        [one for one, aside in zip(found, held) if not aside], [one for one, aside in zip(found, held) if aside],
        skipped, onsets=True,
    )  # fmt: skip


def _grid(chorale: Chorale) -> Piece:
    return Piece(chorale, np.ones(chorale.pitch.shape, dtype=np.bool_))


def read_pieces(sources: Sequence[str | Path]) -> tuple[list[Chorale], list[Chorale]]:
    """Pieces to train on and pieces to stop by, of JSB files."""
    train: list[Chorale] = []
    valid: list[Chorale] = []
    for source in map(Path, sources):
        train += read_jsb(source, "train")
        if "valid" in json.loads(source.read_bytes()):
            valid += read_jsb(source, "valid")
    if not train:
        raise refuse("pieces", expected="one at least to train on", got="none")
    return train, valid


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """What came of a run.

    Attributes:
        pieces, held_out: trained on, and held out to stop by.
        crops: of the pieces, with transpositions.
        folder: of the model.
        skipped: files that could not be read, and why.
        nats_per_note: of the pieces held out, at the best step; None where none were, or the run was cut off before.
        bars: of a crop.
    """

    pieces: int
    held_out: int
    crops: int
    folder: Path
    skipped: tuple[tuple[str, str], ...] = ()
    nats_per_note: float | None = None
    bars: int = 8

    def __str__(self) -> str:
        behind = f", stopped by {self.held_out} others" if self.held_out else ", nothing held out to stop by"
        said = [
            f"trained on {self.pieces} pieces ({self.crops:,} crops of {self.bars} bars with transpositions){behind}"
        ]
        if self.nats_per_note is not None:
            said.append(f"{self.nats_per_note:.3f} nats per note on those")
        if self.skipped:
            said.append(f"left out {len(self.skipped)} that could not be read:")
            said += [f"  {file}: {why}" for file, why in self.skipped]
        return "\n".join(said)


def train(
    sources: str | Path | Sequence[str | Path],
    folder: str | Path,
    *,
    steps: int = 6000,
    batch: int = 64,
    width: int = 256,
    depth: int = 8,
    heads: int = 8,
    dropout: float = 0.4,
    resume: bool = False,
    seed: int = 0,
    device: str = "auto",
) -> TrainingReport:
    """Train a model of four-part music into a folder, for ``music.load(folder)``; progress goes to stderr.

    Args:
        sources: a JSB file of chorales, or files and folders of music; what cannot be read is left out and listed.
        folder: for the model; new, or with a run to be resumed.
        steps: of the optimizer; a GPU does the default in minutes.
        batch: crops in each step, of 8 bars of a JSB file and of 24 otherwise.
        width, depth, heads, dropout: of the network.
        resume: go on with the run in the folder.
        seed: of everything random.
        device: "cpu", "cuda" or "auto".
    """
    if device not in ("cpu", "cuda", "auto"):
        raise refuse("--device", expected="cpu, cuda or auto", got=repr(device))
    folder = Path(folder)
    if not resume:
        require_place(folder)
        require_new_or_resumed(folder, resume)
    found = read_sources([sources] if isinstance(sources, str | Path) else sources)
    sizes = {"width": width, "depth": depth, "heads": heads, "dropout": dropout, "seed": seed}
    crops, valid, model, size = _prepared(found, sizes)
    place = compute_device(device)
    options = FitOptions(
        steps=steps,
        batch_size=batch,
        learning_rate=1e-3,
        weight_decay=0.1,
        ema=0.999 if steps > 2_000 else None,
        precision="bf16-mixed" if place == "cuda" else "32-true",
        validate_every=max(1, min(500, steps // 4)) if not found.onsets else max(1, min(100, steps // 4)),
        patience=10 if found.onsets and found.valid else None,
        save_every=max(1, min(500, steps // 10)),
        seed=seed,
        device=place,
    )
    notes = {"made_by": "anyfill music train"}
    objective = one_pass_chorale(size)
    rows = None if valid is None else valid.rows()
    reports = fit_steps(model, crops, objective, options, validation=rows, folder=folder, resume=resume, notes=notes)
    best: float | None = None
    per_note = crops.notes_in_a_row, (valid or crops).notes_in_a_row
    with closing(watch(reports, steps, "training", per=(*per_note, "nats per note"))) as watched:
        for report in watched:
            if report.validation_loss is not None:
                loss = report.validation_loss / max(per_note[1], 1.0)
                best = loss if best is None else min(best, loss)
    return TrainingReport(
        len(found.train), len(found.valid), len(crops), folder, tuple(found.skipped), best, size // BAR
    )


def _prepared(found: Sources, sizes: dict[str, Any]) -> tuple[Crops | FormCrops, Crops | FormCrops | None, Model, int]:
    """Rows to train on and to stop by, an untrained model of its kind, and steps of a row."""
    if found.onsets:
        size = LONG_WINDOW
        own = FormCrops(found.train, size)
        aside = (
            FormCrops(found.valid, size, transpositions=(0,), told=TOLD[1:2], every_bar=False) if found.valid else None
        )
        return own, aside, onset_chorale_model(size, **sizes), size
    train, valid = ([one.chorale for one in part] for part in (found.train, found.valid))
    crops = Crops(train, WINDOW, stride=BAR)
    aside = Crops(valid, WINDOW, stride=WINDOW, transpositions=(0,)) if valid else None
    return crops, aside, one_pass_chorale_model(WINDOW, **sizes), WINDOW
