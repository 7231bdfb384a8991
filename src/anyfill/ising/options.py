"""Options that the commands of the Ising lab share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Graph(StrEnum):
    """Which spins are coupled."""

    complete = "complete"
    clique = "clique"
    lattice = "lattice"
    random = "random"


class PairCount(StrEnum):
    """How often the exponent counts a pair."""

    once = "once"
    twice = "twice"


class Descent(StrEnum):
    """How a fit descends."""

    lbfgs = "lbfgs"
    newton = "newton"
    gradient = "gradient"


GraphName = Annotated[Graph | None, typer.Option(help="Which spins are coupled.", show_default=False)]
Variables = Annotated[int | None, typer.Option(min=1, help="Number of spins N.", show_default=False)]
CliqueSize = Annotated[
    int | None, typer.Option("--clique", min=1, help="Spins that are coupled to each other.", show_default=False)
]
Height = Annotated[int | None, typer.Option(min=1, help="Rows of a lattice.", show_default=False)]
Width = Annotated[int | None, typer.Option(min=1, help="Columns of a lattice.", show_default=False)]
Periodic = Annotated[bool, typer.Option("--periodic", help="The lattice is a torus.")]
Coupling = Annotated[
    float | None, typer.Option(help="J of every pair; of a random graph their scale.", show_default=False)
]
Field = Annotated[
    float | None, typer.Option(help="h of every spin; of a random graph their scale.", show_default=False)
]
Pairs = Annotated[PairCount, typer.Option(help="How often the exponent counts a pair.")]
ModelFile = Annotated[
    Path | None,
    typer.Option("--model", help='Instead: JSON file {"couplings": [[...]], "fields": [...]}.', show_default=False),
]
Ks = Annotated[str | None, typer.Option("--k", help="Sizes of the blocks: 1,2,4 or 1-4.", show_default=False)]
FixedFields = Annotated[bool, typer.Option("--fixed-fields", help="The fields are known: couplings alone are fitted.")]
Sampled = Annotated[bool, typer.Option("--sampled", help="Estimate from draws: for more spins than can be listed.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document; null is infinite or not known.")]
Plot = Annotated[Path | None, typer.Option(help="Also draw a picture: FILE.png, .svg or .pdf.", show_default=False)]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
