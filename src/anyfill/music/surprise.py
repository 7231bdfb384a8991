"""A piano roll whose colours are surprise: pale notes were expected, dark ones were not."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from anyfill.disk import write_bytes
from anyfill.music.chorale import REST, VOICES
from anyfill.music.scoring import Scored

_FAINT, _BEAT, _BAR = "#6d7178", "#e9e7e2", "#b9b6ae"
_LEAST, _MAX_WIDTH = 3.0, 60.0


def draw_surprise(scored: Scored, path: Path, *, title: str = "") -> None:
    """Write a PNG: every note coloured by its -log p in nats."""
    chorale = scored.chorale
    sounding = chorale.pitch[chorale.pitch != REST] - scored.shift
    low, high = (int(sounding.min()) - 2, int(sounding.max()) + 2) if len(sounding) else (48, 72)
    figure = Figure(figsize=(min(max(1.4 + chorale.steps * 0.072, 6.5), _MAX_WIDTH), 0.9 + 0.082 * (high - low + 1)))
    figure.set_layout_engine("constrained")
    canvas = FigureCanvasAgg(figure)
    axes: Any = figure.subplots()
    for step in range(chorale.steps + 1):
        place = (step - chorale.pickup) % chorale.bar
        if place % 4 == 0:
            axes.axvline(step, color=_BEAT if place else _BAR, lw=0.9 if place == 0 else 0.6, zorder=1)
    notes = [note for note in scored.notes() if note.note != "rest"]
    top = max([_LEAST, *(note.nats for note in notes)])
    scale, colours = Normalize(0, top), colormaps["YlOrRd"]
    for note in notes:
        pitch = int(chorale.pitch[VOICES.index(note.voice), note.step]) - scored.shift
        axes.add_patch(
            Rectangle(
                (note.step + 0.1, pitch - 0.4),
                note.steps - 0.2,
                0.8,
                facecolor=colours(scale(note.nats)),
                edgecolor=_FAINT,
                linewidth=0.5,
                zorder=2,
            )
        )
    axes.set_xlim(0, chorale.steps)
    axes.set_ylim(low - 0.5, high + 0.5)
    bars = np.arange(chorale.pickup, chorale.steps, chorale.bar)
    axes.set_xticks(bars, [str(number + 1) for number in range(len(bars))], color=_FAINT, fontsize=8, ha="left")
    named = [pitch for pitch in range(low, high + 1) if pitch % 12 in (0, 4, 7)]
    axes.set_yticks(named, [f"{'CEG'[(0, 4, 7).index(p % 12)]}{p // 12 - 1}" for p in named], color=_FAINT, fontsize=7)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_color(_BAR)
        side.set_linewidth(0.6)
    axes.set_xlabel("bar", color=_FAINT, fontsize=8)
    if title:
        axes.set_title(title, loc="left", fontsize=10)
    bar = figure.colorbar(ScalarMappable(scale, colours), ax=axes, pad=0.01, aspect=30)
    bar.set_label("surprise of a note, nats", fontsize=8, color=_FAINT)
    bar.ax.tick_params(labelsize=7, length=0, colors=_FAINT)
    picture = io.BytesIO()
    canvas.print_png(picture, metadata={"Software": None})
    write_bytes(picture.getvalue(), path)
