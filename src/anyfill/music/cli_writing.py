"""The commands of ``anyfill music`` that write pieces: generate, harmonise, fill, continue and vary.

Pieces are written as OUTPUT/NAME-SEED-1.mid, .musicxml and .png, and so on, and a page that plays them all. Whether the
names are free is asked before anything is drawn, and again when a file is written.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from anyfill.interface.options import Force, Seed, Temperature, chosen_seed, command

if TYPE_CHECKING:
    from anyfill.music.request import Request

FORMATS = "MIDI or MusicXML (.mid .musicxml .mxl)"

Voice = Literal["soprano", "alto", "tenor", "bass"]
SOURCES = f"{FORMATS}, a piece of a JSB file (jsb.json:valid:3), or a name of music21's corpus (bwv66.6)."
MusicFile = Annotated[Path, typer.Argument(metavar="FILE", help=SOURCES)]
ModelFolder = Annotated[
    Path | None,
    typer.Option("--model", help="Folder of a model (anyfill music train); by default the one that ships."),
]


class Kind(StrEnum):
    """A kind of file that is written."""

    midi = "midi"
    musicxml = "musicxml"
    png = "png"
    html = "html"
    wav = "wav"
    svg = "svg"
    pdf = "pdf"


USUAL = (Kind.midi, Kind.musicxml, Kind.png, Kind.html)
KeyName = Annotated[
    str | None,
    typer.Option("--key", help='The key, as "D minor", in place of the one the file states.', show_default=False),
]
EndingName = Annotated[
    Literal["tonic", "half", "open"] | None,
    typer.Option("--ending", help="How it ends: tonic, half (on the dominant) or open.", show_default=False),
]


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
        typer.Option(help="Write this kind of file only; may be repeated.", show_default="midi musicxml png html"),
    ] = None
    wav: Annotated[bool, typer.Option("--wav", help="Write the sound, too.")] = False
    force: Force = False
    parallels: Annotated[bool, typer.Option("--parallels", help="Allow parallel fifths and octaves.")] = False
    temperature: Temperature = 1.0
    nucleus: Annotated[
        float, typer.Option(help="Top-p: draw from the likeliest pitches of this mass; 1 = from all.")
    ] = 0.99
    held: Annotated[bool, typer.Option("--held", help="Do not strike long notes again (models without onsets).")] = (
        False
    )
    model: ModelFolder = None


@command("Write new chorales.")
def generate(
    *,
    bars: Annotated[int, typer.Option(min=1, max=512, help="Length in bars of 4/4.")] = 8,
    key: Annotated[str | None, typer.Option(help='A key, as "D minor"; by default the nearest common one.')] = None,
    ending: EndingName = None,
    how: Drawing,
    as_drawn: Annotated[
        bool, typer.Option("--as-drawn", help="Keep pieces that hardly move, do not end, or are like another one.")
    ] = False,
) -> None:
    """Write new chorales: OUTPUT/chorale-SEED-1.mid, .musicxml and .png, and so on; chorale-SEED.html plays them.

    Up to 24 bars are one draw from the model that ships; longer pieces go on eight bars at a time, given the 16 before.
    (A model without onsets: 8 bars, and four given the four before.) With --key pieces are drawn until enough are in
    its mode, and transposed. A piece is drawn again if some voice changes its pitch less often than there are bars, or
    if it does not end on its tonic (--ending half: on its dominant); how often that was is said.
    """
    from anyfill.music.request import Request

    _write(Request.generate(bars, key, ending), "chorale", how, as_drawn=as_drawn)


@command("Put a tune in four parts.")
def harmonise(
    *,
    file: MusicFile,
    voice: Annotated[Voice, typer.Option(help="Which voice the tune is.")] = "soprano",
    tune: Annotated[
        str | None,
        typer.Option(
            help='Which part of FILE is the tune: top (the highest notes), "track 2", "channel 1", "part 3" or a name. '
            "Needed only where it is unclear: then what is in the file is listed.",
            show_default=False,
        ),
    ] = None,
    key: KeyName = None,
    ending: EndingName = None,
    others: Annotated[
        Literal["drop", "keep"], typer.Option(help="Leave the other parts of FILE out of the result, or keep them.")
    ] = "drop",
    style: Annotated[
        Path | None,
        typer.Option(help="In the style of a model that was trained on a folder of music.", show_default=False),
    ] = None,
    how: Drawing,
) -> None:
    """Put a tune in four parts, in several ways: OUTPUT/NAME-harmonised-SEED-1.mid and so on.

    The new parts are put into the file of the tune, which is otherwise kept as it is: words, fermatas, dynamics, slurs,
    chord symbols, signatures, tempos. A tune that does not lie in the range of its voice is moved into it for the model
    (by octaves if that helps), and everything is moved back.
    """
    from anyfill.checks import refuse
    from anyfill.music.request import Request

    if style is not None:
        if how.model is not None:
            raise refuse("--style", expected="a folder here or as --model", got="both")
        if style.is_dir() and not (style / "config.json").is_file():
            got = "a folder without one (anyfill music train FOLDER -o MODEL makes one of a folder of music)"
            raise refuse(f"--style {style}", expected="the folder of a model", got=got)
        how = replace(how, model=style)
    request = Request.harmonise(file, voice, choose=tune, key=key, ending=ending, others=others)
    _write(request, f"{_stem(file)}-harmonised", how)


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
    key: KeyName = None,
    ending: EndingName = None,
    how: Drawing,
) -> None:
    """Write some voices and bars of a piece anew, in several ways: OUTPUT/NAME-filled-SEED-1.mid and so on.

    What is not asked is locked: it is given to the model, and its notes keep onset and length; one that goes on into a
    written bar is kept as a whole. The result is the file itself with the new notes. A piece out of the range is moved
    into it as a whole (by octaves if that helps), and moved back.
    """
    from anyfill.music.request import Request

    _write(Request.fill(piece, ask, key=key, ending=ending), f"{_stem(piece)}-filled", how)


@command("Go on behind the end of a piece.")
def continue_(
    *,
    piece: MusicFile,
    bars: Annotated[int, typer.Option(min=1, max=512, help="How many bars more.")] = 4,
    key: KeyName = None,
    ending: EndingName = None,
    how: Drawing,
) -> None:
    """Go on behind the end of a piece, in several ways: OUTPUT/NAME-continued-SEED-1.mid and so on.

    All four voices go on; what was there is not changed. By default it ends on the tonic.
    """
    from anyfill.music.request import Request

    _write(Request.go_on(piece, bars, key=key, ending=ending), f"{_stem(piece)}-continued", how)


@command("Variations of a piece.")
def vary(
    *,
    piece: MusicFile,
    amount: Annotated[float, typer.Option(min=0.0, max=1.0, help="0 changes nothing, 1 may change everything.")] = 0.3,
    ask: Annotated[str | None, typer.Option(help="Vary these voices and bars only.", show_default=False)] = None,
    key: KeyName = None,
    how: Drawing,
) -> None:
    """Variations of a piece: OUTPUT/NAME-varied-SEED-1.mid and so on.

    SUNMASK's chain, begun with the piece: three times some of the notes are hidden, each time fewer, and written anew
    given all others. --amount is the share of the notes that is hidden at first.
    """
    from anyfill.music.request import Request

    _write(Request.vary(piece, amount, ask, key=key), f"{_stem(piece)}-varied", how)


def _write(request: "Request", name: str, how: Drawing, *, as_drawn: bool = False) -> None:
    """Say the seed, write each piece when it is done and say where, and at the end what was drawn again."""
    from anyfill.checks import refuse
    from anyfill.disk import write_bytes
    from anyfill.interface.output import require_new, say_remarks
    from anyfill.interface.progress import metered
    from anyfill.music.model import load
    from anyfill.music.piece import Piece
    from anyfill.music.player import page_of
    from anyfill.music.quantising import ONLY_COMMON
    from anyfill.music.sample import SamplingOptions

    seed = chosen_seed(how.seed)
    options = SamplingOptions(
        how.n, seed, how.best, how.temperature, how.nucleus, how.parallels, as_drawn, how.held
    )  # fmt: skip
    kinds = [*dict.fromkeys([*(how.only or USUAL), *([Kind.wav] if how.wav else [])])]
    page = how.output / f"{name}-{seed}.html" if Kind.html in kinds else None

    def targets(number: int) -> list[Path]:
        """Where the files of a piece go; refused where something is in the way."""
        own = [kind for kind in kinds if kind is not Kind.html]
        paths = [how.output / f"{name}-{seed}-{number}.{kind.replace('midi', 'mid')}" for kind in own]
        for path in paths:
            require_new(path, force=how.force, way="another --seed or -o leaves it alone")
        return paths

    if how.output.exists() and not how.output.is_dir():
        raise refuse(f"{how.output}", expected="a folder for the result", got="a file")
    for number in range(1, options.n + 1):
        targets(number)
    if page is not None:
        require_new(page, force=how.force, way="another --seed or -o leaves it alone")
    loaded = load(how.model)
    say_remarks([one for one in request.piece.remarks if not (loaded.onsets and one.endswith(ONLY_COMMON))])
    search = loaded.search(request, options, progress=metered)
    typer.echo(f"seed {seed}")
    made: list[Piece] = []
    for number, piece in enumerate(search.pieces(), 1):
        made.append(piece)
        for path in targets(number):
            piece.save(path)
            typer.echo(f"wrote {path}")
    if page is not None and made:
        write_bytes(page_of(made).encode("utf-8"), page)
        typer.echo(f"wrote {page}")
    for line in search.tally.lines(options):
        typer.echo(line)


def _stem(path: Path) -> str:
    """What names of results begin with: the file's name without its end; a corpus name as it is."""
    from anyfill.music.files import jsb_name

    return path.stem if path.exists() else jsb_name(path) or path.name
