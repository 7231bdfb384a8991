"""The settings of ``anyfill image train``: what the user says; what is left is chosen by the pictures and the device.

All of them are noted with the model. A run that is resumed takes them from there; one that is said again must agree.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from anyfill.checks import MAX_SEED, refuse, refuse_given, require_count, require_positive, require_seed
from anyfill.interface.options import option_name

Binary = Literal["threshold", "dynamic", "static"]
BINARY: tuple[Binary, ...] = ("threshold", "dynamic", "static")
MAX_SIDE = 64
"""Of pictures that are taken as they are; larger ones are shrunk unless a size is stated."""


def _said(help: str, default: str | bool = False, **limits: Any) -> Any:
    return typer.Option(help=help, show_default=default, **limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a run as they are said, which are options of the command; None = to be chosen (or no limit)."""

    start: Annotated[
        str | None,
        _said("Begin with the weights of this model: digits, fashion or a folder; its size, colours and levels hold."),
    ] = None
    size: Annotated[str | None, _said("Crop and shrink pictures to WIDTHxHEIGHT.", "as they are, at most 64x64")] = None
    grey: Annotated[bool | None, _said("Without colours, or with them.", "as most pictures are")] = None
    levels: Annotated[
        int | None, _said("Of a pixel's channel.", "256; 2 if all are black and white", min=2, max=256)
    ] = None
    binary: Annotated[
        str | None,
        _said("How two levels are made: threshold, dynamic or static.", "threshold; static if all are black and white"),
    ] = None
    width: Annotated[int | None, _said("Width of the network.", "96, CUDA 256", min=16)] = None
    depth: Annotated[int | None, _said("Its layers.", "4, CUDA 8", min=1)] = None
    steps: Annotated[int | None, _said("Optimizer steps.", "500, CUDA 5,000", min=1)] = None
    batch: Annotated[int | None, _said("Pictures in each step.", "16, CUDA 128", min=1)] = None
    learning_rate: Annotated[
        float | None, _said("Peak learning rate (Muon).", "0.015, CUDA 0.005; a third with --start")
    ] = None
    dropout: Annotated[float | None, _said("Rate of dropout.", "0.1", min=0.0, max=0.95)] = None
    seconds: Annotated[float | None, _said("Stop when so much time is over.")] = None
    valid_share: Annotated[float | None, _said("Share of the pictures to hold out.", "0.1")] = None
    seed: Annotated[int | None, _said("Seed of everything random.", "0", min=0, max=MAX_SEED)] = None

    def __post_init__(self) -> None:
        for name in ("width", "depth", "steps", "batch", "levels"):
            if getattr(self, name) is not None:
                require_count(f"--{name}", getattr(self, name))
        for name in ("learning_rate", "seconds"):
            if getattr(self, name) is not None:
                require_positive(option_name(name), getattr(self, name))
        if self.valid_share is not None and not 0.0 <= self.valid_share <= 0.5:
            raise refuse("--valid-share", expected="a share from 0 (nothing is held out) to 0.5", got=self.valid_share)
        if self.binary is not None and self.binary not in BINARY:
            raise refuse("--binary", expected=", ".join(BINARY), got=repr(self.binary))
        if self.binary is not None and self.levels not in (None, 2):
            raise refuse("--levels", expected="2 with --binary", got=self.levels)
        if self.width is not None and self.width % 16:
            raise refuse("--width", expected="a multiple of 16", got=self.width)
        if self.seed is not None:
            object.__setattr__(self, "seed", require_seed("--seed", self.seed))
        parse_size(self.size)
        if self.start is not None:
            own = {"--width": self.width, "--depth": self.depth, "--dropout": self.dropout}
            refuse_given("with --start, whose network is trained on", own)


def parse_size(words: str | None) -> tuple[int, int] | None:
    """(height, width) from WIDTHxHEIGHT."""
    if words is None:
        return None
    found = re.fullmatch(r"(\d+)x(\d+)", words.strip().lower())
    if found is None or not all(1 <= int(side) <= MAX_SIDE for side in found.groups()):
        raise refuse("--size", expected=f"WIDTHxHEIGHT, sides from 1 to {MAX_SIDE}", got=words)
    return int(found[2]), int(found[1])
