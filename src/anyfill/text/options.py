"""Options that the commands for text share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Sampler(StrEnum):
    """A way to draw; see ``anyfill.text.manner``."""

    exact = "exact"
    speculative = "speculative"
    confidence = "confidence"
    entropy_bounded = "entropy-bounded"


Nucleus = Annotated[float | None, typer.Option(help="Draw from the likeliest codes of this mass, above 0 and up to 1.")]
TopK = Annotated[int | None, typer.Option("--top-k", min=1, help="Draw from the so many likeliest codes.")]
Typical = Annotated[float | None, typer.Option(help="Draw from the most typical codes of this mass.")]
HowToDraw = Annotated[
    Sampler,
    typer.Option(
        "--sampler",
        help="exact: one by one; speculative: the same law in fewer passes; the others need a model of any order.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]
ModelFolder = Annotated[
    Path | None,
    typer.Option("--model", help="Folder of a model (anyfill text train); by default the one that ships."),
]
