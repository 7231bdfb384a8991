"""Training a model of chorales: files into rows, and a folder from which the run can be resumed.

**Rows.** Every crop of every piece in every transposition, each with a number. A crop of L steps begins with a bar, so
that the place of a step in its bar (t modulo 16) means the same in every row: a piece with a pickup begins late in its
first bar. What a crop has before the beginning or behind the end of its piece is missing: never given and never asked.
A transposition is left out where it would leave the range of the codes.

**Files.** A JSB file has no onsets and trains a model of the grid. Files of music, and folders of them, train a model
with onsets that is told the form of a piece (``anyfill.music.form``); crops begin with every bar, and each is there in
several versions that are told more or less, so that the model can do with what a user knows. What cannot be read is
left out and listed. Where there are ten pieces or more, every tenth is held out to stop by: so little music is soon
learnt by heart.

**Run.** Ctrl-C leaves a checkpoint: the folder then holds the best model so far, which can be used, and all that
``--resume`` needs to go on as if nothing had happened.
"""

import json
from collections.abc import Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from anyfill.checks import refuse, require_count
from anyfill.interface.output import require_place
from anyfill.interface.progress import watch
from anyfill.interface.runs import require_new_or_resumed
from anyfill.interface.threads import compute_device
from anyfill.model import Model
from anyfill.music.chorale import BAR, CODES, HIGHEST, LOWEST, REST, Chorale
from anyfill.music.files import read_jsb, read_music
from anyfill.music.form import FEATURES, GROUPS, Form, per_cell, transposed_features
from anyfill.music.model import one_pass_chorale, one_pass_chorale_model, onset_chorale_model
from anyfill.music.piece import Piece
from anyfill.music.quantising import whole_of
from anyfill.music.score import VOICES
from anyfill.music.windows import LONG_WINDOW, WINDOW
from anyfill.music.writing import SUFFIXES
from anyfill.rows import Rows
from anyfill.training import FitOptions, fit_steps

TRANSPOSITIONS = tuple(range(-6, 6))
HOLD_OUT = 10
"""Of so many pieces one is held out to stop by."""


TOLD = ((True, True, True), (False, True, True), (False, True, False), (False, False, True))
"""What versions of a crop are told: fermatas, the end, the key."""


class Crops:
    """All crops of these pieces; a source of rows (``RowSource``) of 4 L variables."""

    def __init__(
        self,
        pieces: Sequence[Chorale],
        steps: int = 128,
        stride: int = BAR,
        transpositions: Sequence[int] = TRANSPOSITIONS,
    ) -> None:
        """Cut the pieces.

        Args:
            pieces: the chorales.
            steps: L.
            stride: steps between the beginnings of two crops of a piece.
            transpositions: in semitones.
        """
        require_count("steps", steps)
        require_count("stride", stride, maximum=steps)
        self.steps = steps
        codes: list[Tensor] = []
        shifts: list[tuple[int, int]] = []
        for piece in pieces:
            sounding = piece.pitch[piece.pitch != REST]
            low, high = (int(sounding.min()), int(sounding.max())) if len(sounding) else (LOWEST, HIGHEST)
            fitting = [shift for shift in transpositions if low + shift >= LOWEST and high + shift <= HIGHEST]
            before = -piece.pickup % piece.bar
            row = torch.nn.functional.pad(piece.codes().reshape(-1, len(VOICES)), (0, 0, before, steps), value=-1)
            for start in range(0, max(before + piece.steps - steps, 0) + stride, stride):
                shifts += [(len(codes), shift) for shift in fitting]
                codes.append(row[start : start + steps].reshape(-1))
        if not shifts:
            raise refuse("pieces", expected="one at least that fits the range of pitches", got="none")
        self._codes = torch.stack(codes)  # -1: not there
        self._index, self._shift = torch.tensor(shifts).unbind(1)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def variables(self) -> int:
        return self.steps * len(VOICES)

    def take(self, index: Tensor) -> Rows:
        """The crops of these numbers."""
        place = index.to(self._index.device)
        codes = self._codes[self._index[place]]
        moved = torch.where(codes > 0, codes + self._shift[place].unsqueeze(1), 0)
        return Rows(moved, codes >= 0)

    def rows(self) -> Rows:
        """All of them."""
        return self.take(torch.arange(len(self)))

    @property
    def notes_in_a_row(self) -> float:
        """How many notes a row has on average, as far as a grid shows them."""
        grid = self._codes.reshape(len(self._codes), -1, len(VOICES))
        begins = grid > 0
        begins[:, 1:] &= grid[:, 1:] != grid[:, :-1]
        return float(begins.flatten(1).sum(1).float()[self._index].mean())

    def to(self, device: torch.device | str) -> "Crops":
        """The same crops on another device."""
        moved = copy(self)
        for name in ("_codes", "_index", "_shift"):
            setattr(moved, name, getattr(self, name).to(device))
        return moved


class FormCrops:
    """All crops of pieces with onsets, in every version of ``TOLD``; a source of rows of 4 L variables with a context.

    A crop begins with every bar that leaves four bars of its piece at least, or with the first.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        steps: int,
        *,
        transpositions: Sequence[int] = TRANSPOSITIONS,
        told: Sequence[tuple[bool, bool, bool]] = TOLD,
        every_bar: bool = True,
    ) -> None:
        """Cut the pieces.

        Args:
            pieces: as they were read.
            steps: L.
            transpositions: in semitones.
            told: versions of what is told.
            every_bar: crops begin with every bar; else one after the other.
        """
        require_count("steps", steps)
        self.steps = steps
        codes, forms, index = list[Tensor](), list[Tensor](), list[tuple[int, int, int]]()
        for piece in pieces:
            chorale = piece.chorale
            sounding = chorale.pitch[chorale.pitch != REST]
            low, high = (int(sounding.min()), int(sounding.max())) if len(sounding) else (LOWEST, HIGHEST)
            fitting = [shift for shift in transpositions if low + shift >= LOWEST and high + shift <= HIGHEST]
            row = functional.pad(chorale.codes(onsets=True).reshape(-1, len(VOICES)), (0, 0, 0, steps), value=-1)
            row = torch.where(torch.from_numpy(_padded(piece.present, steps).T), row, -1)
            form = functional.pad(Form.of(piece).features(), (0, 0, 0, steps))
            first = chorale.pickup or chorale.bar
            last = max(chorale.steps - 4 * chorale.bar, 1)
            starts = [0, *range(first, last, chorale.bar)] if every_bar else [*range(0, chorale.steps, steps)]
            for start in starts:
                index += [(len(codes), shift, version) for shift in fitting for version in range(len(told))]
                codes.append(row[start : start + steps].reshape(-1))
                forms.append(form[start : start + steps])
        if not index:
            raise refuse("pieces", expected="one at least that fits the range of pitches", got="none")
        self._codes, self._forms = torch.stack(codes), torch.stack(forms)
        self._crop, self._shift, self._version = torch.tensor(index).unbind(1)
        self._hidden = torch.stack([_hidden(version) for version in told])

    def __len__(self) -> int:
        return len(self._crop)

    @property
    def variables(self) -> int:
        return self.steps * len(VOICES)

    def take(self, index: Tensor) -> Rows:
        """The crops of these numbers."""
        place = index.to(self._crop.device)
        crop, shift = self._crop[place], self._shift[place]
        codes, form = self._codes[crop], transposed_features(self._forms[crop], shift)
        moved = torch.where(codes > 0, codes + shift.unsqueeze(1), 0)
        form = torch.where(self._hidden[self._version[place]].unsqueeze(1), 0.0, form)
        return Rows(moved, codes >= 0, per_cell(form))

    def rows(self) -> Rows:
        """All of them."""
        return self.take(torch.arange(len(self)))

    @property
    def notes_in_a_row(self) -> float:
        """How many notes a row has on average."""
        begins = (self._codes > 0) & (self._codes < CODES)
        return float(begins.sum(1).float()[self._crop].mean())

    def to(self, device: torch.device | str) -> "FormCrops":
        """The same crops on another device."""
        moved = copy(self)
        for name in ("_codes", "_forms", "_crop", "_shift", "_version", "_hidden"):
            setattr(moved, name, getattr(self, name).to(device))
        return moved


def _hidden(told: tuple[bool, bool, bool]) -> Tensor:
    """bool (F,): the features that are not told."""
    hidden = torch.zeros(FEATURES, dtype=torch.bool)
    for group, there in zip(GROUPS, told):
        hidden[group] = not there
    return hidden


def _padded(cells: NDArray[np.bool_], steps: int) -> NDArray[np.bool_]:
    return np.pad(cells, ((0, 0), (0, steps)))


def whole_windows(pieces: Sequence[Chorale], steps: int = 128) -> list[Chorale]:
    """Windows as the SUNMASK paper cuts its examples: one after the other, strictly before the end, none with a rest.

    On JSB train and valid these are 413, which in 12 transpositions are its 4956 training examples.
    """
    cut = [piece.cut(at, at + steps) for piece in pieces for at in range(0, piece.steps - steps, steps)]
    return [window for window in cut if bool((window.pitch != REST).all())]


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
