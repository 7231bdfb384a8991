"""The commands ``anyfill music``: generate, harmonise and fill here, and those of ``anyfill.music.use``.

Thin: each reads its options, calls a function that does the work, and says in a few words what came of it. Results go
to stdout, progress and remarks to stderr. Everything is imported when a command runs.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anyfill.interface.options import Seed, Temperature
from anyfill.music.options import (
    AsDrawn,
    Best,
    Count,
    Force,
    Kind,
    ModelFolder,
    MusicFile,
    Nucleus,
    Only,
    Output,
    Parallels,
    Voice,
)
from anyfill.music.use import grade, remark, score, show, train

if TYPE_CHECKING:
    from anyfill.music.choose import Tally, Wanted
    from anyfill.music.output import Targets, Written


def register(app: typer.Typer) -> None:
    """Add ``music`` and its commands to the application."""
    settings = {"help_option_names": ["-h", "--help"]}
    music = typer.Typer(no_args_is_help=True, rich_markup_mode=None, context_settings=settings)
    for command, short in (
        (generate, "Write new chorales."),
        (harmonise, "Put a tune in four parts."),
        (fill, "Write some voices and bars of a piece anew."),
        (score, "How likely a piece is, and where it surprises."),
        (grade, "How near pieces are to Bach, by nine features."),
        (show, "Draw a piece as a piano roll."),
        (train, "Train a model of your own."),
    ):
        music.command(name=command.__name__, short_help=short)(command)
    app.add_typer(music, name="music", help="Four-part music in the manner of Bach's chorales.")


def generate(
    bars: Annotated[int, typer.Option(min=1, max=512, help="Length in bars of 4/4.")] = 8,
    n: Count = 4,
    key: Annotated[str | None, typer.Option(help='A key, as "D minor"; by default the nearest common one.')] = None,
    seed: Seed = None,
    output: Output = Path("out"),
    best: Best = 1,
    only: Only = None,
    force: Force = False,
    parallels: Parallels = False,
    temperature: Temperature = 1.0,
    nucleus: Nucleus = 0.95,
    as_drawn: AsDrawn = False,
    model: ModelFolder = None,
) -> None:
    """Write new chorales: OUTPUT/chorale-SEED-1.mid, .musicxml and .png, and so on.

    Up to 8 bars are one draw from the model; longer pieces go on four bars at a time, given the four before. With --key
    pieces are drawn until enough are in its mode, and transposed. A piece is drawn again if some voice changes
    its pitch less often than there are bars; how often that was is said.
    """
    from anyfill.music.generate import generate as write
    from anyfill.music.keys import parse_key
    from anyfill.music.model import load

    named = None if key is None else parse_key(key)
    wanted = _wanted(n, seed, best, parallels, temperature, nucleus, as_drawn)
    targets, loaded = _targets(output, "chorale", wanted, only, force), load(model)
    _write(lambda tally: write(loaded, bars, wanted, key=named, tally=tally), targets, wanted)


def harmonise(
    tune: MusicFile,
    voice: Annotated[Voice, typer.Option(help="Which voice the tune is.")] = Voice.soprano,
    n: Count = 4,
    seed: Seed = None,
    output: Output = Path("out"),
    best: Best = 1,
    only: Only = None,
    force: Force = False,
    parallels: Parallels = False,
    temperature: Temperature = 1.0,
    nucleus: Nucleus = 0.95,
    model: ModelFolder = None,
) -> None:
    """Put a tune in four parts, in several ways: OUTPUT/NAME-harmonised-SEED-1.mid and so on.

    The tune itself is never changed; rests, repeated notes, tempo and title are kept. One that does not lie in the
    range of its voice is moved into it for the model (by octaves if that helps), and everything is moved back.
    """
    from anyfill.music.chorale import VOICES
    from anyfill.music.harmonise import harmonise as write
    from anyfill.music.harmonise import read_tune
    from anyfill.music.model import load

    wanted = _wanted(n, seed, best, parallels, temperature, nucleus)
    read = read_tune(tune, VOICES.index(voice.value))
    remark(read.remarks)
    targets, loaded = _targets(output, f"{_stem(tune)}-harmonised", wanted, only, force), load(model)
    _write(lambda tally: write(loaded, read, wanted, tally=tally), targets, wanted)


def fill(
    piece: MusicFile,
    ask: Annotated[
        str | None,
        typer.Option(
            help='What to write, as "alto 3-6, tenor 5" or "all 3-4": bars from 1, a pickup is 0, a voice alone means '
            "all its bars. By default the voices that the file does not have."
        ),
    ] = None,
    n: Count = 4,
    seed: Seed = None,
    output: Output = Path("out"),
    best: Best = 1,
    only: Only = None,
    force: Force = False,
    parallels: Parallels = False,
    temperature: Temperature = 1.0,
    nucleus: Nucleus = 0.95,
    model: ModelFolder = None,
) -> None:
    """Write some voices and bars of a piece anew, in several ways: OUTPUT/NAME-filled-SEED-1.mid and so on.

    What is not asked is locked: it is told to the model and never changed. A piece out of the model's range is moved
    into it as a whole (by octaves if that helps), and moved back.
    """
    from anyfill.music.fill import fill as write
    from anyfill.music.fill import question_of
    from anyfill.music.model import load
    from anyfill.music.whole import read_whole

    wanted = _wanted(n, seed, best, parallels, temperature, nucleus)
    read = read_whole(piece)
    remark(read.piece.remarks)
    question = question_of(read.piece, ask)
    targets, loaded = _targets(output, f"{_stem(piece)}-filled", wanted, only, force), load(model)
    _write(
        lambda tally: write(loaded, question, wanted, source=read.source, shift=read.shift, tally=tally),
        targets,
        wanted,
    )


def _wanted(
    n: int,
    seed: int | None,
    best: int,
    parallels: bool,
    temperature: float,
    nucleus: float,
    as_drawn: bool = False,
) -> "Wanted":
    import secrets

    from anyfill.music.choose import Wanted
    from anyfill.music.draws import Manner

    manner = Manner(temperature, nucleus, parallels)
    _ = manner.draw  # refuses what cannot be
    return Wanted(n, best, manner, secrets.randbelow(100_000) if seed is None else seed, as_drawn)


def _targets(folder: Path, name: str, wanted: "Wanted", only: Sequence[Kind] | None, force: bool) -> "Targets":
    from anyfill.music.output import KINDS, Targets

    names = {Kind.midi: "mid", Kind.musicxml: "musicxml", Kind.png: "png"}
    kinds = KINDS if not only else tuple(dict.fromkeys(names[kind] for kind in only))
    targets = Targets(folder, f"{name}-{wanted.seed}", wanted.count, kinds, force)
    targets.require_free()
    return targets


def _write(pieces: "Callable[[Tally], Iterator[Written]]", targets: "Targets", wanted: "Wanted") -> None:
    """Say the seed, write each piece when it is done and say where, and at the end what was drawn again."""
    from anyfill.music.choose import Tally

    tally = Tally()
    typer.echo(f"seed {wanted.seed}")
    for number, piece in enumerate(pieces(tally), 1):
        for path in targets.write(number, piece):
            typer.echo(f"wrote {path}")
    for line in tally.lines(wanted):
        typer.echo(line)


def _stem(path: Path) -> str:
    """What names of results begin with: the file's name without its end; a corpus name as it is."""
    from anyfill.music.files import jsb_name

    return path.stem if path.exists() else jsb_name(path) or path.name
