"""What the commands of ``anyfill translate`` share: options, and how results are written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from anyfill.checks import MAX_SEED

ModelFolder = Annotated[
    Path | None,
    typer.Option("--model", help="Folder of a model (anyfill translate train); by default the one that ships."),
]
To = Annotated[str | None, typer.Option("--to", help="The language to translate to, as en.", show_default=False)]
Passes = Annotated[
    int | None, typer.Option(min=1, max=1000, help="Passes of models that decode in parallel.", show_default="4")
]
Seed = Annotated[
    int | None, typer.Option(min=0, max=MAX_SEED, help="Of the noise that some models start from.", show_default="0")
]
Columns = Annotated[
    str | None,
    typer.Option(help="Languages of the columns of TSV files, as en,de.", show_default="--from,--to"),
]


Int8 = Annotated[
    bool, typer.Option("--int8", help="Round matrices to 8 bits, quicker on a CPU; not of one-pass models.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """Options: how to decode."""

    passes: Passes = None
    lengths: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Lengths that models in parallel try side by side.", show_default="3"),
    ] = None
    beam: Annotated[
        int | None, typer.Option(min=1, max=64, help="Beams of autoregressive models; 1 = greedy.", show_default="4")
    ] = None
    length_penalty: Annotated[
        float | None,
        typer.Option(min=0.0, max=5.0, help="Of beams: more likes longer translations.", show_default="1"),
    ] = None
    speculative: Annotated[
        bool,
        typer.Option("--speculative", help="One-pass models guess several words at a time: the same, in fewer passes."),
    ] = False
    seed: Seed = None
    protect: Annotated[
        bool, typer.Option("--protect/--no-protect", help="Placeholders (%s, {name}, <b>) come out as they went in.")
    ] = True


def say_unused_seed(seed: int | None, recipe: str) -> None:
    """Say on stderr that a model decodes in one way, whatever the seed, if one was stated."""
    from anyfill.translation.hypotheses import NOISY

    if seed is not None and recipe not in NOISY:
        typer.echo(f"note: --seed changes nothing: models of the recipe {recipe} start from no noise", err=True)


def put(content: str, output: Path | None, force: bool) -> None:
    """Write a text to a file, or to stdout."""
    from anyfill.disk import write_bytes
    from anyfill.interface.output import require_new, unwritable

    if output is None:
        typer.echo(content, nl=False)
        return
    require_new(output, force=force)
    try:
        write_bytes(content.encode(), output)
    except OSError as error:
        raise unwritable(output, error) from None
    typer.echo(f"wrote {output}", err=True)


def as_text(content: object) -> str:
    """JSON, a line at the end."""
    from anyfill.interface.output import json_text

    return json_text(content, ascii=False) + "\n"
