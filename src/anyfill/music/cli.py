"""The commands ``anyfill music``: generate, harmonise, fill, score, grade, show and train.

Thin: each reads its options, calls what does the work, and says in a few words what came of it. Results go to stdout,
progress and remarks to stderr. Everything is imported when a command runs.

Pieces are written as OUTPUT/NAME-SEED-1.mid, .musicxml and .png, and so on. Whether the names are free is asked before
anything is drawn, and again when a file is written.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from anyfill.interface.options import (
    AsJson,
    Device,
    Force,
    OnDevice,
    Seed,
    Temperature,
    add_commands,
    chosen_seed,
    command,
    new_group,
)

if TYPE_CHECKING:
    from anyfill.music.grades import GradedPiece
    from anyfill.music.request import Request

FORMATS = "MIDI or MusicXML (.mid .musicxml .mxl)"
_MAX_WIDTH = 120


AS_WRITTEN = "overall, names as written"
Voice = Literal["soprano", "alto", "tenor", "bass"]
Table = tuple[str, list[str], list[list[str]]]
"""Title, columns and rows."""
SOURCES = f"{FORMATS}, a piece of a JSB file (jsb.json:valid:3), or a name of music21's corpus (bwv66.6)."
MusicFile = Annotated[Path, typer.Argument(metavar="FILE", help=SOURCES)]
MusicFiles = Annotated[list[Path], typer.Argument(metavar="FILE...", help=SOURCES)]
ModelFolder = Annotated[
    Path | None,
    typer.Option("--model", help="Folder of a model (anyfill music train); by default the one that ships."),
]


class Kind(StrEnum):
    """A kind of file that is written."""

    midi = "midi"
    musicxml = "musicxml"
    png = "png"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """How many alternatives are drawn, how, by which model, and where they go."""

    n: Annotated[int, typer.Option("-n", "--n", min=1, max=1000, help="How many alternatives.")] = 4
    seed: Seed = None
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the result.")] = Path("out")
    best: Annotated[
        int, typer.Option(min=1, max=100, help="Draw so many times as many and keep the best by the grade.")
    ] = 1
    only: Annotated[
        list[Kind] | None,
        typer.Option(help="Write this kind of file only; may be repeated.", show_default="all three"),
    ] = None
    force: Force = False
    parallels: Annotated[bool, typer.Option("--parallels", help="Allow parallel fifths and octaves.")] = False
    temperature: Temperature = 1.0
    nucleus: Annotated[float, typer.Option(help="Draw from the likeliest pitches of this mass; 1 = from all.")] = 0.95
    model: ModelFolder = None


@command("Write new chorales.")
def generate(
    *,
    bars: Annotated[int, typer.Option(min=1, max=512, help="Length in bars of 4/4.")] = 8,
    key: Annotated[str | None, typer.Option(help='A key, as "D minor"; by default the nearest common one.')] = None,
    how: Drawing,
    as_drawn: Annotated[
        bool, typer.Option("--as-drawn", help="Keep pieces that hardly move, or are like another one.")
    ] = False,
) -> None:
    """Write new chorales: OUTPUT/chorale-SEED-1.mid, .musicxml and .png, and so on.

    Up to 8 bars are one draw from the model; longer pieces go on four bars at a time, given the four before. With --key
    pieces are drawn until enough are in its mode, and transposed. A piece is drawn again if some voice changes
    its pitch less often than there are bars; how often that was is said.
    """
    from anyfill.music.request import Request

    _write(Request.generate(bars, key), "chorale", how, as_drawn=as_drawn)


@command("Put a tune in four parts.")
def harmonise(
    *,
    tune: MusicFile,
    voice: Annotated[Voice, typer.Option(help="Which voice the tune is.")] = "soprano",
    how: Drawing,
) -> None:
    """Put a tune in four parts, in several ways: OUTPUT/NAME-harmonised-SEED-1.mid and so on.

    The tune itself is never changed; rests, repeated notes, tempo and title are kept. One that does not lie in the
    range of its voice is moved into it for the model (by octaves if that helps), and everything is moved back.
    """
    from anyfill.music.request import Request

    _write(Request.harmonise(tune, voice), f"{_stem(tune)}-harmonised", how)


@command("Write some voices and bars of a piece anew.")
def fill(
    *,
    piece: MusicFile,
    ask: Annotated[
        str | None,
        typer.Option(
            help='What to write, as "alto 3-6, tenor 5" or "all 3-4": bars from 1, a pickup is 0, a voice alone means '
            "all its bars. By default the voices that the file does not have."
        ),
    ] = None,
    how: Drawing,
) -> None:
    """Write some voices and bars of a piece anew, in several ways: OUTPUT/NAME-filled-SEED-1.mid and so on.

    What is not asked is locked: it is given to the model and never changed. A piece out of the model's range is moved
    into it as a whole (by octaves if that helps), and moved back.
    """
    from anyfill.music.request import Request

    _write(Request.fill(piece, ask), f"{_stem(piece)}-filled", how)


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
    --parallels, not of the commands' default how. A piece out of the model's range is moved into it.
    """
    from anyfill.checks import refuse
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
            _remark(piece.remarks)
            typer.echo(f"{file}\n{scored.describe(most)}")
        if png is not None:
            scored.save(png, title=piece.chorale.title or file.name)
            typer.echo(f"wrote {png}", err=as_json)
    if as_json:
        _print_json(found)


@command("How near pieces are to Bach, by nine features.")
def grade(files: MusicFiles, as_json: AsJson = False) -> None:
    """How near pieces are to Bach's chorales, by nine features and two protocols, beside real Bach.

    Each feature is a distance; 0 would be a piece like all chorales together. Protocol paper is the published grade,
    which depends on the key a piece is in; protocol key-aware does not. Names of notes in MusicXML count only in the
    line that says so: a piece has the same grade in every format. Several files: median ± standard deviation.
    """
    from anyfill.music import grades

    graded = [grades.grade(file) for file in files]
    if as_json:
        _print_json(grade_document(graded))
    else:
        _print_tables(grade_tables(graded))


def grade_document(graded: "Sequence[GradedPiece]") -> dict[str, Any]:
    """Everything, for JSON."""
    from anyfill.music.features import PROTOCOLS
    from anyfill.music.grades import real_bach, summary

    summaries = {protocol: summary([one.grades[protocol] for one in graded]) for protocol in PROTOCOLS}
    return {
        "files": [
            {
                "file": one.name,
                "key": str(one.key),
                **{protocol: {"overall": found.overall, **found.features} for protocol, found in one.grades.items()},
                "paper_names_as_written": None if one.as_written is None else one.as_written.overall,
            }
            for one in graded
        ],
        "median": {protocol: dict(found.median) for protocol, found in summaries.items()},
        "deviation": {protocol: dict(found.deviation) for protocol, found in summaries.items()},
        "real_bach": real_bach(),
    }


def grade_tables(graded: "Sequence[GradedPiece]") -> list[Table]:
    """For each protocol the nine features and their sum, beside real Bach; then several files, best first."""
    from anyfill.music.features import PROTOCOLS
    from anyfill.music.grades import in_figures, real_bach, summary

    def both(median: float, deviation: float) -> str:
        return f"{in_figures(median)} ± {in_figures(deviation)}"

    sets, many, shown = real_bach(), len(graded) > 1, list[Table]()
    own = f"these {len(graded)} files" if many else "this file"
    what = "median ± standard deviation" if many else "its grade; Bach's: median ± standard deviation"
    for protocol in PROTOCOLS:
        found = summary([one.grades[protocol] for one in graded])
        named = {"notated": ", with its names"} if protocol == "paper" else {}
        columns = [protocol, own, *(f"Bach: {sets[name]['about']}{named.get(name, '')}" for name in sets)]
        rows: list[list[str]] = []
        for row, median in found.median.items():
            mine = both(median, found.deviation[row]) if many else in_figures(median)
            real = (held[protocol] for held in sets.values())
            rows.append([row.replace("_", " "), mine, *(both(o["median"][row], o["deviation"][row]) for o in real)])
        written = [one.as_written for one in graded if one.as_written is not None]
        if protocol == "paper" and len(written) == len(graded):
            mine = in_figures(summary(written).median["overall"])
            rows.append([AS_WRITTEN, mine, *(rows[0][2 + n] if s == "notated" else "" for n, s in enumerate(sets))])
        shown.append((f"Protocol {protocol}: distance from Bach, lower is nearer ({what})", columns, rows))
    if many:
        best = sorted(graded, key=lambda one: one.overall)
        each = [[one.name, str(one.key), *(in_figures(one.grades[p].overall) for p in PROTOCOLS)] for one in best]
        shown.append(("Overall", ["file", "key", *PROTOCOLS], each))
    return shown


@command("Draw a piece as a piano roll.")
def show(
    piece: MusicFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="The picture: FILE.png.")],
    force: Force = False,
) -> None:
    """Draw a piece as a piano roll."""
    from anyfill.music.files import read_piece

    _require_picture(output, force)
    read = read_piece(piece)
    _remark(read.remarks)
    replace(read, title=read.chorale.title or piece.name).save(output)
    typer.echo(f"wrote {output}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """The network, and how it is trained."""

    steps: Annotated[int, typer.Option(min=1, help="Optimizer steps; a GPU does these in minutes.")] = 6000
    batch: Annotated[int, typer.Option(min=1, help="Crops of 8 bars in each step.")] = 64
    width: Annotated[int, typer.Option(min=8, help="Width of the network.")] = 256
    depth: Annotated[int, typer.Option(min=1, help="Its layers.")] = 8
    heads: Annotated[int, typer.Option(min=1, help="Its heads.")] = 8
    dropout: Annotated[float, typer.Option(min=0.0, max=0.95, help="Rate of dropout.")] = 0.4
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0
    device: OnDevice = Device.auto


@command("Train a model of your own.")
def train(
    *,
    sources: Annotated[
        list[Path], typer.Argument(metavar="JSB.json | FILE...", help=f"A JSB file of chorales, or files: {FORMATS}.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model.")],
    fitting: Fitting,
) -> None:
    """Train a model of four-part music, for --model of the other commands.

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


def _write(request: "Request", name: str, how: Drawing, *, as_drawn: bool = False) -> None:
    """Say the seed, write each piece when it is done and say where, and at the end what was drawn again."""
    from anyfill.checks import refuse
    from anyfill.interface.output import require_new
    from anyfill.interface.progress import metered
    from anyfill.music.model import load
    from anyfill.music.sample import SamplingOptions

    seed = chosen_seed(how.seed)
    options = SamplingOptions(how.n, seed, how.best, how.temperature, how.nucleus, how.parallels, as_drawn)
    _remark(request.piece.remarks)

    def targets(number: int) -> list[Path]:
        """Where the files of a piece go; refused where something is in the way."""
        kinds = dict.fromkeys(how.only or Kind)
        paths = [how.output / f"{name}-{seed}-{number}.{kind.replace('midi', 'mid')}" for kind in kinds]
        for path in paths:
            require_new(path, force=how.force, way="another --seed or -o leaves it alone")
        return paths

    if how.output.exists() and not how.output.is_dir():
        raise refuse(f"{how.output}", expected="a folder for the result", got="a file")
    for number in range(1, options.n + 1):
        targets(number)
    search = load(how.model).search(request, options, progress=metered)
    typer.echo(f"seed {seed}")
    for number, piece in enumerate(search.pieces(), 1):
        for path in targets(number):
            piece.save(path)
            typer.echo(f"wrote {path}")
    for line in search.tally.lines(options):
        typer.echo(line)


def _stem(path: Path) -> str:
    """What names of results begin with: the file's name without its end; a corpus name as it is."""
    from anyfill.music.files import jsb_name

    return path.stem if path.exists() else jsb_name(path) or path.name


def _require_picture(path: Path, force: bool) -> None:
    from anyfill.interface.output import require_new
    from anyfill.music.piano_roll import require_png

    require_png(path)
    require_new(path, force=force)


def _remark(remarks: Sequence[str]) -> None:
    """Say on stderr what was changed on the way."""
    for remark in remarks:
        typer.echo(f"note: {remark}", err=True)


def _print_json(value: object) -> None:
    import json

    from anyfill.interface.output import jsonable

    typer.echo(json.dumps(jsonable(value), indent=2, allow_nan=False))


def _print_tables(tables: Sequence[Table]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as Shown

    width = None if Console().is_terminal else _MAX_WIDTH
    console = Console(highlight=False, markup=False, width=width)
    for title, columns, rows in tables:
        shown = Shown(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, title_style="bold")
        for place, name in enumerate(columns):
            shown.add_column(name, justify="left" if place == 0 else "right", overflow="fold")
        for row in rows:
            shown.add_row(*row)
        console.print(shown)


def register(app: typer.Typer) -> None:
    """Add ``music`` and its commands to the application."""
    own = add_commands(new_group(), generate, harmonise, fill, score, grade, show, train)
    app.add_typer(own, name="music", help="Four-part music in the manner of Bach's chorales.")
