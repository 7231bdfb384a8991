"""A chorale as a picture: time from left to right, pitch upward, a bar of colour for every note.

Each voice has a colour, each note its own rounded bar, so a note struck again can be told from one that is held. Thin
lines are beats, thicker ones bars, which are numbered (a pickup is not). Where cells are *locked* (True: given to the
model, never changed) a note is filled, and where the model wrote it is hollow with a coloured edge; the strip below the
notes says the same of every voice and time. Several panels of the same piece, as before and after, stand one above the
other with the same axes.

A piece that was scored is drawn with surprise as its colours: pale notes were expected, dark ones were not.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch, Rectangle
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.disk import write_bytes
from anyfill.music.chorale import REST, STEP, Chorale
from anyfill.music.score import VOICES

if TYPE_CHECKING:
    from anyfill.music.scoring import Scored

COLOURS = ("#c2410c", "#b8860b", "#0f766e", "#3730a3")
"""Of soprano, alto, tenor and bass."""
_TEXT, _FAINT, _BEAT, _BAR, _KEYS = "#1d1f23", "#6d7178", "#e9e7e2", "#b9b6ae", "#f5f3ef"
_STRIP = 3.6  # the height of the strip of asked cells, in semitones
_NAMES = {0: "C", 4: "E", 7: "G"}
_MAX_STEPS = 2_048
_MIN_SCALE = 3.0
"""Nats at the dark end of the colours, at least."""


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One chorale of a picture.

    Attributes:
        chorale: what is drawn.
        title: above it.
        locked: bool (4, T), True where the music was given; None = there is no difference to show.
        present: bool (4, T), False where there is nothing yet (drawn as empty space); None = all is there.
    """

    chorale: Chorale
    title: str = ""
    locked: NDArray[np.bool_] | None = None
    present: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        for name, cells in (("locked", self.locked), ("present", self.present)):
            if cells is not None and cells.shape != self.chorale.pitch.shape:
                raise refuse(f"shape of {name}", expected=f"{self.chorale.pitch.shape}, as pitch", got=cells.shape)


def draw_piano_roll(panels: Chorale | Panel | Sequence[Panel], path: str | Path, *, title: str = "") -> None:
    """Write a PNG, as a whole or not at all (see ``piano_roll``)."""
    write_png(piano_roll(panels, title=title), path)


def piano_roll(panels: Chorale | Panel | Sequence[Panel], *, title: str = "") -> bytes:
    """A PNG.

    Args:
        panels: what to draw, from top to bottom.
        title: over all panels.
    """
    shown = [Panel(panels)] if isinstance(panels, Chorale) else [panels] if isinstance(panels, Panel) else list(panels)
    if not shown:
        raise refuse("panels", expected="one at least", got="none")
    steps = max(panel.chorale.steps for panel in shown)
    if steps > _MAX_STEPS:
        raise refuse("piano roll", expected=f"at most {_MAX_STEPS:,} steps", got=f"{steps:,}")
    low, high = _range(np.concatenate([panel.chorale.pitch[panel.chorale.pitch != REST] for panel in shown]))
    height = 0.6 + len(shown) * (0.7 + 0.082 * (high - low + 1)) + (0.3 if title else 0)
    figure = Figure(figsize=(_width(steps), height), facecolor="white", layout="constrained")
    grid: Any = figure.subplots(len(shown), 1, sharex=True, squeeze=False)
    for axes, panel in zip(grid[:, 0], shown):
        _draw(axes, panel, low, high, steps)
    grid[-1, 0].set_xlabel("bar", color=_FAINT, fontsize=8)
    if title:
        figure.suptitle(title, color=_TEXT, fontsize=12, x=0.01, ha="left")
    _legend(figure, shown)
    return _png(figure)


def surprise_roll(scored: "Scored", *, title: str = "") -> bytes:
    """A PNG: every note coloured by its -log p in nats."""
    chorale = scored.chorale
    low, high = _range(chorale.pitch[chorale.pitch != REST] - scored.shift)
    figure = Figure(figsize=(_width(chorale.steps), 0.9 + 0.082 * (high - low + 1)), layout="constrained")
    axes: Any = figure.subplots()
    _bar_lines(axes, chorale)
    notes = [note for note in scored.notes() if note.note != "rest"]
    scale, colours = Normalize(0, max([_MIN_SCALE, *(note.nats for note in notes)])), colormaps["YlOrRd"]
    for note in notes:
        pitch = int(chorale.pitch[VOICES.index(note.voice), note.step]) - scored.shift
        colour = colours(scale(note.nats))
        corner = (note.step + 0.1, pitch - 0.4)
        axes.add_patch(Rectangle(corner, note.steps - 0.2, 0.8, fc=colour, ec=_FAINT, lw=0.5, zorder=2))
    axes.set_ylim(low - 0.5, high + 0.5)
    _frame(axes, chorale, chorale.steps, _labels(low, high))
    axes.set_xlabel("bar", color=_FAINT, fontsize=8)
    if title:
        axes.set_title(title, loc="left", fontsize=10)
    bar = figure.colorbar(ScalarMappable(scale, colours), ax=axes, pad=0.01, aspect=30)
    bar.set_label("surprise of a note, nats", fontsize=8, color=_FAINT)
    bar.ax.tick_params(labelsize=7, length=0, colors=_FAINT)
    return _png(figure)


def require_png(path: str | Path) -> None:
    """Refuse a name that is not that of a picture."""
    if not Path(path).name.lower().endswith(".png"):
        raise refuse(f"file {path}", expected="a name that ends in .png", got=Path(path).name)


def write_png(picture: bytes, path: str | Path) -> None:
    """Write a picture, as a whole or not at all."""
    require_png(path)
    write_bytes(picture, path)


def _png(figure: Figure) -> bytes:
    picture = io.BytesIO()
    FigureCanvasAgg(figure).print_png(picture, metadata={"Software": None})  # the same picture, the same bytes
    return picture.getvalue()


def _width(steps: int) -> float:
    return min(max(1.4 + steps * 0.072, 6.5), 60)


def _range(pitches: NDArray[np.int16]) -> tuple[int, int]:
    """The pitches of the axis: all that sound, and a little more."""
    return (int(pitches.min()) - 2, int(pitches.max()) + 2) if len(pitches) else (48, 72)


def _labels(low: int, high: int) -> dict[float, str]:
    """Names on the axis of pitches."""
    return {pitch: f"{_NAMES[pitch % 12]}{pitch // 12 - 1}" for pitch in range(low, high + 1) if pitch % 12 in _NAMES}


def _bar_lines(axes: Any, chorale: Chorale) -> None:
    for step in range(chorale.steps + 1):
        from_bar = (step - chorale.pickup) % chorale.bar
        if from_bar == 0:
            axes.axvline(step, color=_BAR, lw=0.9, zorder=1)
        elif from_bar % int(1 / STEP) == 0:
            axes.axvline(step, color=_BEAT, lw=0.6, zorder=1)


def _frame(axes: Any, chorale: Chorale, steps: int, labels: dict[float, str]) -> None:
    """Numbers of bars, names of pitches, and a thin border."""
    axes.set_xlim(0, steps)
    bars = range(chorale.pickup, chorale.steps, chorale.bar)
    axes.set_xticks(list(bars), [str(number + 1) for number in range(len(bars))], color=_FAINT, fontsize=8, ha="left")
    axes.set_yticks(list(labels), list(labels.values()), color=_FAINT, fontsize=7)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_color(_BAR)
        side.set_linewidth(0.6)


def _draw(axes: Any, panel: Panel, low: int, high: int, steps: int) -> None:
    for pitch in range(low, high + 1):
        if pitch % 12 in (1, 3, 6, 8, 10):  # the black keys
            axes.axhspan(pitch - 0.5, pitch + 0.5, color=_KEYS, lw=0, zorder=0)
    _bar_lines(axes, panel.chorale)
    for voice in range(len(VOICES)):
        _voice(axes, panel, voice)
    asked, labels, strip = _asked(panel), _labels(low, high), 0.0
    for voice in range(len(VOICES)):
        for start, end in _runs(asked[voice]):
            at = low - 1.1 - 0.8 * voice
            axes.plot((start + 0.2, end - 0.2), (at, at), color=COLOURS[voice], lw=2.2, solid_capstyle="butt")
    if asked.any():
        strip, labels = _STRIP, {low - 2.3: "asked", **labels}
        axes.axhline(low - 0.5, color=_BAR, lw=0.6)
    axes.set_ylim(low - 0.5 - strip, high + 0.5)
    _frame(axes, panel.chorale, steps, labels)
    if panel.title:
        axes.set_title(panel.title, loc="left", color=_TEXT, fontsize=10)


def _voice(axes: Any, panel: Panel, voice: int) -> None:
    """The notes of one voice; lower voices are drawn a little thinner, so that a unison shows both."""
    chorale, thick = panel.chorale, 0.86 - 0.1 * voice
    present = np.ones(chorale.steps, dtype=np.bool_) if panel.present is None else panel.present[voice]
    locked = np.ones(chorale.steps, dtype=np.bool_) if panel.locked is None else panel.locked[voice]
    # A note goes on to the next beginning, or to where it stops being given, or being there.
    cuts = chorale.onset[voice].copy()
    cuts[1:] |= (present[1:] != present[:-1]) | (locked[1:] != locked[:-1])
    starts = np.flatnonzero(cuts).tolist()
    for start, end in zip(starts, [*starts[1:], chorale.steps]):
        pitch = int(chorale.pitch[voice, start])
        if pitch == REST or not present[start]:
            continue
        left = start + 0.14 * bool(chorale.onset[voice, start])
        right = end - 0.14 * bool(end == chorale.steps or chorale.onset[voice, end])
        bar = FancyBboxPatch(
            (left, pitch - thick / 2),
            right - left,
            thick,
            boxstyle="round,pad=0,rounding_size=0.18",
            facecolor=COLOURS[voice] if locked[start] else "white",
            edgecolor=COLOURS[voice],
            linewidth=0.6 if locked[start] else 1.5,
            zorder=3 + voice,
        )
        axes.add_patch(bar)


def _asked(panel: Panel) -> NDArray[np.bool_]:
    """bool (4, T): what is to be filled, or was."""
    asked = np.zeros(panel.chorale.pitch.shape, dtype=np.bool_)
    for cells in (panel.locked, panel.present):
        if cells is not None:
            asked |= ~cells
    return asked


def _runs(cells: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(first, behind the last) of every stretch of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], cells, [False])).astype(np.int8))).tolist()
    return list(zip(edges[::2], edges[1::2]))


def _legend(figure: Figure, panels: Sequence[Panel]) -> None:
    entries: list[Patch] = [Patch(facecolor=colour, label=name) for name, colour in zip(VOICES, COLOURS)]
    if any(panel.locked is not None for panel in panels):
        entries.append(Patch(facecolor=_FAINT, edgecolor=_FAINT, label="given"))
        entries.append(Patch(facecolor="white", edgecolor=_FAINT, linewidth=1.5, label="written by the model"))
    figure.legend(
        handles=entries, loc="outside lower left", ncols=len(entries), frameon=False, fontsize=8, labelcolor=_TEXT
    )
