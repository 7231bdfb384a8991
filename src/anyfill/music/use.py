"""The commands ``anyfill music score | grade | show | train``; see ``anyfill.music.cli``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from anyfill.interface.options import AsJson
from anyfill.music.options import FORMATS, Force, ModelFolder, MusicFile, MusicFiles


def score(
    files: MusicFiles,
    most: Annotated[int, typer.Option(min=0, help="List so many of the most surprising notes.")] = 10,
    as_json: AsJson = False,
    png: Annotated[
        Path | None, typer.Option(help="Also draw the piece, coloured by surprise (one FILE).", show_default=False)
    ] = None,
    force: Force = False,
    model: ModelFolder = None,
) -> None:
    """How likely a piece is under the model's own law, exactly, and where it surprises: bar, beat and voice.

    Log-likelihoods are in nats, a natural logarithm: -0.7 is a choice between two. Per cell means per sixteenth of each
    voice. A note's surprise is minus its log-probability, given all that came before. The law is that of --nucleus 1
    --parallels, not of the commands' default drawing. A piece out of the model's range is moved into it.
    """
    from anyfill.checks import refuse
    from anyfill.interface.output import jsonable
    from anyfill.interface.threads import threads
    from anyfill.music.model import load
    from anyfill.music.output import require_new
    from anyfill.music.scoring import score_piece
    from anyfill.music.show import score_lines
    from anyfill.music.whole import read_whole

    if png is not None:
        if len(files) > 1:
            raise refuse("--png", expected="one FILE", got=len(files))
        _require_png(png)
        require_new(png, force=force)
    pieces = [read_whole(file) for file in files]
    found: list[dict[str, object]] = []
    loaded = load(model)
    with threads(1):
        for file, read in zip(files, pieces):
            piece = read.piece
            scored = score_piece(loaded, piece, shift=read.shift)
            found.append({"file": str(file), **scored.summary(most), "remarks": list(piece.remarks)})
            if not as_json:
                remark(piece.remarks)
                typer.echo(score_lines(str(file), scored, most))
            if png is not None:
                from anyfill.music.surprise import draw_surprise

                draw_surprise(scored, png, title=piece.chorale.title or file.name)
                typer.echo(f"wrote {png}", err=as_json)
    if as_json:
        _json(jsonable(found))


def grade(files: MusicFiles, as_json: AsJson = False) -> None:
    """How near pieces are to Bach's chorales, by nine features and two protocols, beside real Bach.

    Each feature is a distance; 0 would be a piece like all chorales together. Protocol paper is the published grade,
    which depends on the key a piece is in; protocol key-aware does not. Names of notes in MusicXML count only in the
    line that says so: a piece has the same grade in every format. Several files: median ± standard deviation.
    """
    from anyfill.interface.output import jsonable
    from anyfill.music.grading import document, each, grade_file, tables
    from anyfill.music.show import print_tables

    graded = [grade_file(file) for file in files]
    if as_json:
        _json(jsonable(document(graded)))
        return
    print_tables([*tables(graded), *([each(graded)] if len(graded) > 1 else [])])


def show(
    piece: MusicFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="The picture: FILE.png.")],
    force: Force = False,
) -> None:
    """Draw a piece as a piano roll."""
    from anyfill.music.files import read_piece
    from anyfill.music.output import require_new
    from anyfill.music.piano_roll import Panel, draw_piano_roll

    _require_png(output)
    require_new(output, force=force)
    read = read_piece(piece)
    remark(read.remarks)
    draw_piano_roll(Panel(read.chorale, read.chorale.title or piece.name, present=read.present), output)
    typer.echo(f"wrote {output}")


def train(
    sources: Annotated[
        list[Path], typer.Argument(metavar="JSB.json | FILE...", help=f"A JSB file of chorales, or files: {FORMATS}.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model.")],
    steps: Annotated[int, typer.Option(min=1, help="Optimizer steps; a GPU does these in minutes.")] = 6000,
    batch: Annotated[int, typer.Option(min=1, help="Crops of 8 bars in each step.")] = 64,
    width: Annotated[int, typer.Option(min=8, help="Width of the network.")] = 256,
    depth: Annotated[int, typer.Option(min=1, help="Its layers.")] = 8,
    heads: Annotated[int, typer.Option(min=1, help="Its heads.")] = 8,
    dropout: Annotated[float, typer.Option(min=0.0, max=0.95, help="Rate of dropout.")] = 0.4,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
) -> None:
    """Train a model of four-part music, for --model of the other commands.

    Ctrl-C leaves a checkpoint: the folder can be used as it is, and --resume with the same options goes on.
    """
    from anyfill.checks import refuse
    from anyfill.music.training import train as learn

    if device not in ("cpu", "cuda", "auto"):
        raise refuse("--device", expected="cpu, cuda or auto", got=repr(device))
    try:
        about = learn(
            sources,
            output,
            steps=steps,
            batch=batch,
            width=width,
            depth=depth,
            heads=heads,
            dropout=dropout,
            seed=seed,
            resume=resume,
            device=device,
        )
    except KeyboardInterrupt:
        if (output / "config.json").exists():
            typer.echo(f"what was learnt so far is in {output}; the same command with --resume goes on", err=True)
        raise
    typer.echo(f"{about}\nmodel saved in {output}")


def _require_png(path: Path) -> None:
    from anyfill.checks import refuse

    if path.suffix.lower() != ".png" or path.is_dir():
        raise refuse(f"{path}", expected="the name of a file that ends in .png", got=path.name)


def remark(remarks: Sequence[str]) -> None:
    """Say on stderr what was changed on the way."""
    for remark in remarks:
        typer.echo(f"note: {remark}", err=True)


def _json(value: object) -> None:
    import json

    typer.echo(json.dumps(value, indent=2, allow_nan=False))
