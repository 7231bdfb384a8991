"""The commands ``anyfill music``: generate, harmonise, fill, continue, vary, score, grade, show and train.

Thin: each reads its options, calls what does the work, and says in a few words what came of it. Results go to stdout,
progress and remarks to stderr. Everything is imported when a command runs.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from anyfill.checks import MAX_SEED
from anyfill.interface.options import AsJson, Device, Force, OnDevice, Resume, add_commands, command, new_group
from anyfill.music.cli_writing import (
    FORMATS,
    SOURCES,
    ModelFolder,
    MusicFile,
    continue_,
    fill,
    generate,
    harmonise,
    vary,
)

MusicFiles = Annotated[list[Path], typer.Argument(metavar="FILE...", help=SOURCES)]


@command("How likely a piece is, and where it surprises.")
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
    --parallels --ending open, not what the commands draw by default. A piece out of the model's range is moved into it.
    """
    from anyfill.checks import refuse
    from anyfill.interface.output import json_text, say_remarks
    from anyfill.music.files import read
    from anyfill.music.model import load

    if png is not None:
        if len(files) > 1:
            raise refuse("--png", expected="one FILE", got=len(files))
        _require_picture(png, force)
    pieces = [read(file) for file in files]
    loaded, found = load(model), list[dict[str, object]]()
    for file, piece in zip(files, pieces):
        scored = loaded.score(piece)
        found.append({"file": str(file), **scored.summary(most), "remarks": list(piece.remarks)})
        if not as_json:
            say_remarks(piece.remarks)
            typer.echo(f"{file}\n{scored.describe(most)}")
        if png is not None:
            scored.save(png, title=piece.chorale.title or file.name)
            typer.echo(f"wrote {png}", err=as_json)
    if as_json:
        typer.echo(json_text(found))


@command("How near pieces are to Bach, by nine features.")
def grade(files: MusicFiles, as_json: AsJson = False) -> None:
    """How near pieces are to Bach's chorales, by nine features and two protocols, beside real Bach.

    Each feature is a distance; 0 would be a piece like all chorales together. Protocol paper is the published grade,
    which depends on the key a piece is in; protocol key-aware does not. Names of notes in MusicXML count only in the
    line that says so: a piece has the same grade in every format. Several files: median ± standard deviation.
    """
    from anyfill.interface.output import json_text
    from anyfill.music import grade_tables, grades

    graded = [grades.grade(file) for file in files]
    if as_json:
        typer.echo(json_text(grade_tables.grade_document(graded)))
    else:
        grade_tables.print_tables(grade_tables.grade_tables(graded))


@command("Draw a piece as a piano roll.")
def show(
    piece: MusicFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="The picture: FILE.png.")],
    force: Force = False,
) -> None:
    """Draw a piece as a piano roll."""
    from anyfill.interface.output import say_remarks
    from anyfill.music.files import read_piece

    _require_picture(output, force)
    read = read_piece(piece)
    say_remarks(read.remarks)
    replace(read, title=read.chorale.title or piece.name).save(output)
    typer.echo(f"wrote {output}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """The network, and how it is trained."""

    steps: Annotated[int, typer.Option(min=1, help="Optimizer steps; a GPU does these in minutes.")] = 6000
    batch: Annotated[int, typer.Option(min=1, help="Crops in each step.")] = 64
    width: Annotated[int, typer.Option(min=8, help="Width of the network.")] = 256
    depth: Annotated[int, typer.Option(min=1, help="Its layers.")] = 8
    heads: Annotated[int, typer.Option(min=1, help="Its heads.")] = 8
    dropout: Annotated[float, typer.Option(min=0.0, max=0.95, help="Rate of dropout.")] = 0.4
    resume: Resume = False
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of everything random.")] = 0
    device: OnDevice = Device.auto


@command("Train a model of your own.")
def train(
    *,
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="JSB.json | FILE...", help=f"A JSB file of chorales, or files and folders: {FORMATS}."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model.")],
    fitting: Fitting,
) -> None:
    """Train a model of four-part music, for --model of the other commands.

    From files and folders of music a model learns where notes begin, and is told metre, fermatas, key and the distance
    to the end. What cannot be read is left out and listed at the end. Loss is in nats per note.

    Ctrl-C leaves a checkpoint: the folder can be used as it is, and --resume with the same options goes on.
    """
    from anyfill.music import training

    try:
        report = training.train(sources, output, **asdict(fitting))
    except KeyboardInterrupt:
        if (output / "config.json").exists():
            typer.echo(f"what was learnt so far is in {output}; the same command with --resume goes on", err=True)
        raise
    typer.echo(f"{report}\nmodel saved in {output}")


def _require_picture(path: Path, force: bool) -> None:
    from anyfill.interface.output import require_new
    from anyfill.music.piano_roll import require_png

    require_png(path)
    require_new(path, force=force)


def register(app: typer.Typer) -> None:
    """Add ``music`` and its commands to the application."""
    own = add_commands(new_group(), generate, harmonise, fill, continue_, vary, score, grade, show, train)
    app.add_typer(own, name="music", help="Four-part music in the manner of Bach's chorales.")
