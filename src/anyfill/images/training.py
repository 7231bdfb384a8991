"""Train a model of pictures on a folder (or idx, CIFAR records, a sheet, npz), into a folder it can be resumed from.

What the user does not say is chosen by the pictures and the device, and said. The last pictures, after a fixed shuffle,
are held out: they choose the checkpoint, and at the end they are scored exactly, beside the counting baseline that
every pixel is drawn by itself.

A run may begin with the weights of a model of pictures of the same size, colours and levels (``start``): one that
ships, or that of a run that is over and shall go on.

Ctrl-C leaves a checkpoint: the folder then holds the best model so far, which can be used, and all that ``--resume``
needs to go on as if nothing had happened.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from rich.console import Console
from torch import Tensor

from anyfill.checks import refuse
from anyfill.evaluation import log_prob
from anyfill.images.about import NOTES, About
from anyfill.images.model import SHIPPED, ImageModel, load
from anyfill.images.reading import PictureRows, Pictures, read_pictures
from anyfill.images.recipes import picture_model, picture_objective
from anyfill.images.settings import Settings, parse_size
from anyfill.interface.options import resumed
from anyfill.interface.output import require_place
from anyfill.interface.progress import clock, in_bits
from anyfill.interface.runs import resumed_settings, run_in_words, watched_to_the_end
from anyfill.interface.threads import best_threads, compute_device, threads
from anyfill.model import Model
from anyfill.questions.question import Question
from anyfill.training import FitOptions, fit_steps
from anyfill.training.state import OtherConditionsError

MADE_BY = "anyfill image train"
SCORED = 128
"""Most held-out pictures that are scored, on a CPU."""
UNENDING = 1_000_000
"""Steps of a run that only a clock ends, whose settings have none."""
_SPLIT_SEED = 5
Numbers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class ImageRun:
    """All that a run is made of; nothing is left to choose in its settings."""

    pictures: Pictures
    settings: Settings
    about: About
    device: Literal["cpu", "cuda"]
    start: Model | None = None

    @property
    def held_out(self) -> int:
        """How many pictures are held out."""
        return len(split(len(self.pictures), self.settings.valid_share or 0.0)[1])

    def rows(self) -> tuple[PictureRows, PictureRows | None]:
        """To train on, and held out."""
        train, valid = split(len(self.pictures), self.settings.valid_share or 0.0)

        def of(numbers: Numbers) -> PictureRows:
            chosen = Pictures(self.pictures.pixels[numbers], self.pictures.name)
            how: Any = self.about.binary
            return PictureRows(chosen, self.about.levels, how, seed=self.settings.seed or 0)

        return of(train), of(valid) if len(valid) else None

    def model(self) -> Model:
        """Untrained, or as it begins."""
        if self.start is not None:
            return deepcopy(self.start)
        s = self.settings
        heads = max(1, (s.width or 96) // 32)
        sizes: dict[str, int] = {"width": s.width or 96, "depth": s.depth or 4}
        return picture_model(self.about, heads=heads, dropout=s.dropout or 0.0, seed=s.seed or 0, **sizes)

    def options(self) -> FitOptions:
        """Of the training."""
        s, cuda = self.settings, self.device == "cuda"
        steps = s.steps or UNENDING
        often = max(1, min(500 if cuda else 100, steps // 5))
        return FitOptions(
            steps=steps,
            seconds=s.seconds,
            batch_size=s.batch or 16,
            learning_rate=s.learning_rate or 0.015,
            warmup_steps=min(30, steps // 10),
            schedule="linear",
            optimizer="muon",
            betas=(0.9, 0.95),
            weight_decay=0.1,
            ema=0.998 if cuda else 0.98,
            precision="bf16-mixed" if cuda else "32-true",
            compile=cuda,
            report_every=20 if cuda else 1,
            validate_every=often,
            save_every=often,
            seed=s.seed or 0,
            device=self.device,
        )

    def notes(self) -> dict[str, Any]:
        """What is kept with the model."""
        return {NOTES: asdict(self.about) | {"settings": asdict(self.settings)}, "made_by": MADE_BY}

    def lines(self, *, resume: bool) -> list[str]:
        """Pictures, model and training in words."""
        s, count = self.settings, len(self.pictures)
        model = self.model()
        weights, network = sum(parameter.numel() for parameter in model.parameters()), model.network
        begun = "" if s.start is None else f", begun with {s.start}"
        times = (s.steps or 0) * (s.batch or 0) / max(1, count - self.held_out)
        held = f"{self.held_out} of them held out" if self.held_out else "none held out"
        limit = "" if s.seconds is None else f", at most {clock(s.seconds)}"
        steps = f"{s.steps or 0:,} steps of {s.batch}, {times:.2g} times through them{limit}"
        if s.steps is None and s.seconds is not None:
            steps = f"{clock(s.seconds)} in steps of {s.batch}"
        verb = "resumed" if resume else "training"
        return [
            f"pictures  {self.pictures.name}: {count:,} of {self.about}; {held}",
            f"model     {weights:,} weights, width {network.width}, depth {network.depth}{begun}",
            f"{verb:<9} {steps}, on {self.device}",
            "loss      in bits per dimension, of which those that are given cost nothing",
        ]

    def fit(self, folder: Path, resume: bool, console: Console) -> list[str]:
        """Train; what came of it."""
        train, valid = self.rows()
        model, objective = self.model(), picture_objective(self.about)
        held = None if valid is None else valid.rows(1024 if self.device == "cuda" else SCORED)
        count = self._fastest_threads() if self.device == "cpu" else torch.get_num_threads()
        keep: dict[str, Any] = {"folder": folder, "resume": resume, "notes": self.notes(), "validation": held}
        if held is not None:  # chains choose the checkpoint: of so few batches one asked alone would outweigh them
            keep["validation_objective"] = replace(objective, alone_share=0.0)
        with threads(count):
            reports = in_bits(fit_steps(model, train, objective, self.options(), **keep), self.about.dimensions)
            last = watched_to_the_end(reports, self.settings.steps, "training", console=console)
            done = run_in_words(last) + (
                "" if last else f" with --start {folder if len(folder.parts) > 1 else f'./{folder}'}"
            )
            if held is None:
                return [done]
            place = next(model.parameters()).device
            asked = torch.ones_like(held.present)
            found = log_prob(model, held.x.to(place), Question(~asked.to(place), asked.to(place)))
        nats, counted = -found.value.cpu(), -counting(train.rows().x, held.x, self.about.levels)
        unit = 1 / self.about.dimensions / math.log(2)
        ours, theirs = float(nats.mean()) * unit, float(counted.mean()) * unit
        which = f"{len(held)} held-out pictures"
        if self.settings.start not in (None, *SHIPPED):
            which += f" (if {self.settings.start} was not trained on them)"
        return [done, f"{ours:.4f} bits per dimension on {which} ({found.kind}); each pixel by itself: {theirs:.4f}"]

    def _fastest_threads(self) -> int:
        if torch.get_num_threads() == 1:
            return 1
        model, objective, (train, _) = self.model(), picture_objective(self.about), self.rows()
        rows = train.take(torch.arange(self.settings.batch or 16) % len(train))

        def step() -> None:
            source = torch.Generator().manual_seed(0)
            objective(model, rows, generator=source).mean().backward()

        return best_threads(step, repeats=1)


def split(count: int, share: float) -> tuple[Numbers, Numbers]:
    """The numbers of the pictures to train on, and of those held out (of any share one at least, if there are two)."""
    order = np.random.default_rng(_SPLIT_SEED).permutation(count)
    cut = count - (max(1, round(share * count)) if share and count > 1 else 0)
    return order[:cut], order[cut:]


def counting(learnt: Tensor, rows: Tensor, levels: int) -> Tensor:
    """float64 (B,): log p of rows (B, N) if each variable is drawn by itself, as often as in learnt (R, N).

    Where pictures are few most levels of a variable were never seen; then it is much like all variables together. With
    n_jv of R rows of level v and q_v the share of v among all variables (each level once more), p_j(v) is

        (n_jv + a q_v) / (R + a),

    a of a few powers of 4 chosen by what each row of learnt is worth if all others are known.
    """
    size = torch.arange(learnt.shape[1]) * levels
    counts = torch.bincount((learnt + size).flatten(), minlength=learnt.shape[1] * levels).double()
    counts = counts.view(-1, levels)
    share = (counts.sum(0) + 1) / (counts.sum() + levels)

    def left_out(weight: float) -> float:
        own = counts * ((counts - 1 + weight * share).clamp(min=1e-300) / (len(learnt) - 1 + weight)).log()
        return float(torch.where(counts > 0, own, 0.0).sum())

    weight = max((4.0**power for power in range(-1, 8)), key=left_out)
    log_prob = ((counts + weight * share) / (len(learnt) + weight)).log()
    return log_prob.flatten()[rows + size].sum(1)


def train(
    source: str | Path, output: str | Path, *, device: str = "auto", resume: bool = False, **settings: Any
) -> ImageModel:
    """Train a model of pictures, with progress on stderr, and load it.

    Args:
        source: a folder of pictures, or a file that ``read_pictures`` reads.
        output: folder for the model; a new one, or that of the run to be resumed.
        device: "cpu", "cuda", or "auto" for CUDA if it is there.
        resume: go on with the run in the folder; begin it if there is none.
        settings: start, size, grey, levels, binary, width, depth, steps, batch, learning_rate, dropout, seconds,
            valid_share and seed, see ``Settings``; what is not said is chosen by the pictures and the device.
    """
    train_in_words(source, Path(output), Settings(**settings), device=device, resume=resume)
    return load(Path(output))


def train_in_words(
    source: str | Path,
    folder: Path,
    wanted: Settings,
    *,
    device: str = "auto",
    resume: bool = False,
    say: Callable[[str], None] | None = None,
) -> list[str]:
    """Train, with progress on stderr; lines about what came of it. ``say`` is called with what was chosen."""
    require_place(folder)
    saved = resumed_settings(folder, resume, MADE_BY, NOTES, Settings)
    settings, start = wanted if saved is None else resumed(wanted, saved), None
    if settings.start is not None:
        if saved is None and settings.start not in SHIPPED and not Path(settings.start).exists():
            raise refuse("--start", expected=f"{', '.join(SHIPPED)}, or the folder of a model", got=settings.start)
        start = load(settings.start if saved is None else folder)
        settings = as_begun(settings, start)
    pictures = read_pictures(source, size=parse_size(settings.size), grey=settings.grey)
    place = compute_device(device)
    made = settings if saved is not None else chosen(settings, pictures, cuda=place == "cuda")
    run = ImageRun(pictures, made, about_of(pictures, made), place, None if start is None else start.model)
    if start is not None and (run.about.shape, run.about.levels) != (start.about.shape, start.about.levels):
        raise refuse("--start", expected=f"a model of {run.about}", got=f"{start.name}, which is of {start.about}")
    if len(pictures) < 2:
        raise refuse(f"{source}", expected="two pictures at least", got=len(pictures))
    if say is not None:
        for line in (*(f"note: {remark}" for remark in pictures.remarks), *run.lines(resume=saved is not None)):
            say(line)
    try:
        return run.fit(folder, resume, Console(stderr=True))
    except OtherConditionsError as error:
        if error.name.startswith("rows") or settings.start is not None:
            raise
        # All that people can say agrees: what a run is made of has changed since.
        here = folder if len(folder.parts) > 1 else f"./{folder}"
        expected = "a run that was begun by this version of anyfill, and on this device"
        got = f"one with another {error.name} (--start {here} goes on with its weights in another folder)"
        raise refuse(f"{folder}", expected=expected, got=got) from None


def as_begun(wanted: Settings, start: ImageModel) -> Settings:
    """Settings of a run that begins with this model: what is not said of its pictures is as it has it."""
    about = start.about
    own = {"size": f"{about.width}x{about.height}", "grey": about.channels == 1}
    if wanted.binary is None and wanted.levels in (None, about.levels):
        own |= {"levels": about.levels} if about.binary is None else {"binary": about.binary}
    return replace(wanted, **{name: value for name, value in own.items() if getattr(wanted, name) is None})


def chosen(wanted: Settings, pictures: Pictures, *, cuda: bool) -> Settings:
    """Everything that was not said, by the pictures and the device."""
    pixels = pictures.pixels
    is_two = bool(((pixels == 0) | (pixels == 255)).all())  # already: static, as the file has them
    levels = 2 if wanted.binary is not None or (wanted.levels is None and is_two) else wanted.levels or 256
    binary = "static" if is_two else "threshold"
    unending, begun = wanted.steps is None and wanted.seconds is not None, wanted.start is not None
    usual: dict[str, Any] = {
        "grey": pixels.shape[3] == 1,
        "size": f"{pixels.shape[2]}x{pixels.shape[1]}",
        "levels": levels,
        "binary": binary if levels == 2 else None,
        "width": None if begun else 256 if cuda else 96,
        "depth": None if begun else 8 if cuda else 4,
        "steps": None if unending else 5_000 if cuda else 500,
        "batch": 128 if cuda else 16,
        "learning_rate": (0.005 if cuda else 0.015) / (3 if begun else 1),
        "dropout": None if begun else 0.1,
        "valid_share": 0.1,
        "seed": 0,
    }
    return replace(wanted, **{name: value for name, value in usual.items() if getattr(wanted, name) is None})


def about_of(pictures: Pictures, settings: Settings) -> About:
    """What the model is of."""
    _, height, width, channels = pictures.pixels.shape
    edge = np.ones((height, width), dtype=bool)
    edge[1:-1, 1:-1] = False
    border = round(float(pictures.pixels[:, edge].mean()), 2)
    return About(height, width, channels, settings.levels or 256, settings.binary, border)
