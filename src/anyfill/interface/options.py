"""Options that commands of several subjects share."""

import secrets
from enum import StrEnum
from typing import Annotated

import typer

Seed = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=2**63 - 1,
        help="Seed of everything random; a new one each time, which is printed.",
        show_default=False,
    ),
]
Temperature = Annotated[float, typer.Option(min=0.0, max=5.0, help="Below 1 is safer, above 1 bolder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]


class Device(StrEnum):
    """Where to compute."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


OnDevice = Annotated[Device, typer.Option(help="Where to compute; auto takes CUDA if it is there.")]


def chosen_seed(seed: int | None) -> int:
    """The seed, or a new one where none is stated."""
    return secrets.randbelow(100_000) if seed is None else seed
