"""Chorales as a page sends them: notes by voice, in sixteenths.

A page sends all of a piece with every question: the server keeps none.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

BAR = 16
"""Sixteenths in a bar of 4/4."""
MAX_STEPS = 128 * BAR
MAX_BAR = 4 * BAR
MAX_NOTES = 4_000
TEMPOS = (20.0, 300.0)
"""The slowest and the fastest."""
MAX_TITLE = 200
Step = Annotated[int, Field(ge=0, le=MAX_STEPS)]
Pitch = Annotated[int, Field(ge=0, le=127)]
Voice = Literal["soprano", "alto", "tenor", "bass"]


class WireNote(BaseModel):
    """A note: where it begins, how long it is, in sixteenths, and its MIDI number."""

    start: Step
    length: Annotated[int, Field(ge=1, le=MAX_STEPS)]
    pitch: Pitch


class Region(BaseModel):
    """Some cells of one voice."""

    voice: Annotated[int, Field(ge=0, le=3)]
    start: Step
    stop: Step


class WirePiece(BaseModel):
    """A piece of four voices, soprano first; its time signature has so many of a ``unit`` as fill a bar.

    No key = the one that it seems to be in.
    """

    voices: Annotated[list[Annotated[list[WireNote], Field(max_length=MAX_NOTES)]], Field(min_length=4, max_length=4)]
    steps: Annotated[int, Field(ge=1, le=MAX_STEPS)]
    bar: Annotated[int, Field(ge=1, le=MAX_BAR)] = BAR
    pickup: Annotated[int, Field(ge=0, lt=MAX_BAR)] = 0
    unit: Literal[1, 2, 4, 8, 16, 32, 64] = 4
    key: Annotated[str, Field(max_length=30)] = ""
    tempo: Annotated[float, Field(ge=TEMPOS[0], le=TEMPOS[1])] = 80.0
    title: Annotated[str, Field(max_length=MAX_TITLE)] = ""
