"""Options that commands of several subjects share."""

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
