"""Options that the commands for music share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

FORMATS = "MIDI or MusicXML (.mid .musicxml .mxl)"


class Voice(StrEnum):
    """A voice of a chorale."""

    soprano = "soprano"
    alto = "alto"
    tenor = "tenor"
    bass = "bass"


class Kind(StrEnum):
    """A kind of file that is written."""

    midi = "midi"
    musicxml = "musicxml"
    png = "png"


SOURCES = f"{FORMATS}, a piece of a JSB file (jsb.json:valid:3), or a name of music21's corpus (bwv66.6)."
MusicFile = Annotated[Path, typer.Argument(metavar="FILE", help=SOURCES)]
MusicFiles = Annotated[list[Path], typer.Argument(metavar="FILE...", help=SOURCES)]
Output = Annotated[Path, typer.Option("-o", "--output", help="Folder for the result.")]
Count = Annotated[int, typer.Option("-n", "--n", min=1, max=1000, help="How many alternatives.")]
Best = Annotated[int, typer.Option(min=1, max=100, help="Draw so many times as many and keep the best by the grade.")]
Only = Annotated[
    list[Kind] | None,
    typer.Option(help="Write this kind of file only; may be repeated.", show_default="all three"),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]
Parallels = Annotated[bool, typer.Option("--parallels", help="Allow parallel fifths and octaves.")]
AsDrawn = Annotated[bool, typer.Option("--as-drawn", help="Keep pieces that hardly move, or are like another one.")]
Nucleus = Annotated[float, typer.Option(help="Draw from the likeliest pitches of this mass; 1 = from all.")]
ModelFolder = Annotated[
    Path | None,
    typer.Option("--model", help="Folder of a model (anyfill music train); by default the one that ships."),
]
