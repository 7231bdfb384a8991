"""Training a model of chorales: files into rows, and a folder from which the run can be resumed.

**Rows.** Every crop of every piece in every transposition, each with a number. A crop of L steps begins with a bar, so
that the place of a step in its bar (t modulo 16) means the same in every row: a piece with a pickup begins late in its
first bar. What a crop has before the beginning or behind the end of its piece is missing: never given and never asked.
A transposition is left out where it would leave the range of the codes.

**Run.** Ctrl-C leaves a checkpoint: the folder then holds the best model so far, which can be used, and all that
``--resume`` needs to go on as if nothing had happened.
"""

import json
from collections.abc import Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.interface.output import require_place
from anyfill.interface.progress import watch
from anyfill.music.chorale import BAR, HIGHEST, LOWEST, REST, Chorale
from anyfill.music.files import read_chorale, read_jsb
from anyfill.music.recipe import one_pass_chorale, one_pass_chorale_model
from anyfill.music.request import WINDOW
from anyfill.music.score import VOICES
from anyfill.rows import Rows
from anyfill.training import FitOptions, fit_steps

TRANSPOSITIONS = tuple(range(-6, 6))


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

    def to(self, device: torch.device | str) -> "Crops":
        """The same crops on another device."""
        moved = copy(self)
        for name in ("_codes", "_index", "_shift"):
            setattr(moved, name, getattr(self, name).to(device))
        return moved


def whole_windows(pieces: Sequence[Chorale], steps: int = 128) -> list[Chorale]:
    """Windows as the SUNMASK paper cuts its examples: one after the other, strictly before the end, none with a rest.

    On JSB train and valid these are 413, which in 12 transpositions are its 4956 training examples.
    """
    cut = [piece.cut(at, at + steps) for piece in pieces for at in range(0, piece.steps - steps, steps)]
    return [window for window in cut if bool((window.pitch != REST).all())]


def read_pieces(sources: Sequence[str | Path]) -> tuple[list[Chorale], list[Chorale]]:
    """Pieces to train on and pieces to stop by: a JSB file has both, files of music are all trained on."""
    train: list[Chorale] = []
    valid: list[Chorale] = []
    for source in map(Path, sources):
        if source.suffix.lower() != ".json":
            train.append(read_chorale(source))
            continue
        train += read_jsb(source, "train")
        if "valid" in json.loads(source.read_bytes()):
            valid += read_jsb(source, "valid")
    if not train:
        raise refuse("pieces", expected="one at least to train on", got="none")
    return train, valid


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """What was trained on: pieces, pieces held out to stop by, crops with their transpositions; and the folder."""

    pieces: int
    held_out: int
    crops: int
    folder: Path

    def __str__(self) -> str:
        behind = f", stopped by {self.held_out} others" if self.held_out else ", nothing held out to stop by"
        return f"trained on {self.pieces} pieces ({self.crops:,} crops of 8 bars with transpositions){behind}"


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
        sources: a JSB file of chorales, or files of music.
        folder: for the model; new, or with a run to be resumed.
        steps: of the optimizer; a GPU does the default in minutes.
        batch: crops of 8 bars in each step.
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
        if (folder / "config.json").exists():
            raise refuse(
                f"{folder}", expected="a new folder, or --resume to go on with its run", got="one with a model"
            )
    pieces, held_out = read_pieces([sources] if isinstance(sources, str | Path) else sources)
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
    return TrainingReport(len(pieces), len(held_out), len(crops), folder)
