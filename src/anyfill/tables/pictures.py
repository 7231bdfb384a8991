"""Pictures of a report: SVG written by hand, in the colours of the page they stand in, light or dark.

Every function returns one ``<svg>`` as text. Sizes are in units of the drawing; the page scales it to the room it has.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyfill.tables.columns import Floats

STYLE = """
<style>
svg { display: block; max-width: 100%; height: auto; }
svg text { font: 11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--faint); }
svg .seen { fill: var(--faint); fill-opacity: .3; stroke: var(--faint); stroke-width: 1; }
svg .made { fill: var(--accent); fill-opacity: .25; stroke: var(--accent); stroke-width: 1.5; }
svg .hole { fill: var(--accent); } svg .there { fill: var(--line); }
svg .axis { stroke: var(--line); stroke-width: 1; } svg .band { fill: var(--tint); }
svg .line { fill: none; stroke: var(--accent); stroke-width: 2; } svg .other { fill: none; stroke: var(--faint);
  stroke-width: 1.5; stroke-dasharray: 4 3; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: 1.4rem; margin: 1.2rem 0; }
.grid figure { margin: 0; } .grid svg { width: 100%; }
.bar { grid-template-columns: minmax(6.5rem, 11rem) minmax(3rem, 1fr) 4rem; } .bar span { overflow-wrap: anywhere; }
 figcaption { font-size: .88rem; margin-bottom: .2rem; overflow-wrap: anywhere; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 2rem; margin: 1.2rem 0; }
.pair figure { margin: 0; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: .15em; margin: 0 .35em 0 .9em; }
.key.seen { background: var(--faint); opacity: .5; margin-left: 0; } .key.made { background: var(--accent); }
p.command { white-space: pre-wrap; }
</style>
"""
MAP_ROWS = 200


def missing_map(present: NDArray[np.bool_], names: Sequence[str]) -> str:
    """Which cells (rows, columns) are there: rows with the same holes side by side, most complete first."""
    keys = [present[:, j] for j in reversed(range(len(names)))]
    order = np.lexsort((*(~key for key in keys), (~present).sum(1)))
    rows = order[np.linspace(0, len(order) - 1, min(MAP_ROWS, len(order))).round().astype(int)]
    cells = present[rows]
    wide, high = min(84.0, max(6.0, 640 / len(names))), 240 / len(rows)
    longest = max(len(name) for name in names)
    labelled = len(names) <= 40
    top = min(6.2 * min(longest, 18) * 0.8 + 14, 100) if labelled else 4
    pieces: list[str] = []
    for j, name in enumerate(names):
        left = j * wide
        pieces.append(_rect("there", left, f"{top:.0f}", wide - 1, 240))
        pieces += [
            _rect("hole", left, top + begin * high, wide - 1, f"{(end - begin) * high:.2f}")
            for begin, end in _runs(~cells[:, j])
        ]
        if labelled:
            x, y = left + wide / 2, top - 6
            text = escape(_cut(name, 18))
            pieces.append(f'<text x="{x:.1f}" y="{y:.0f}" transform="rotate(-45 {x:.1f} {y:.0f})">{text}</text>')
    width = len(names) * wide + (70 if labelled else 0)
    return _svg(width, top + 244, pieces, f"Missing cells of {len(names)} columns")


def histograms(observed: Floats, filled: Floats, ends: tuple[str, str]) -> str:
    """Densities of observed numbers, and over them those of filled ones (may be none); ``ends`` label the axis."""
    low, high = (float(np.quantile(observed, q)) for q in (0.002, 0.998)) if len(observed) else (0.0, 1.0)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, (25 if len(observed) >= 300 else 13))
    heights = [_heights(values, edges) for values in (observed, filled)]
    maximum = max(float(h.max(initial=0.0)) for h in heights) or 1.0
    pieces = [_steps(h / maximum, "seen" if i == 0 else "made") for i, h in enumerate(heights) if h.any()]
    return _small([*pieces, *_ends(*ends)], "Observed and filled values")


def shares(levels: Sequence[tuple[str, float, float]], with_filled: bool) -> str:
    """Bars for levels: the share among observed and among filled cells."""
    maximum = max([max(a, b) for _, a, b in levels] + [1e-9])
    step = 110 / max(len(levels), 1)
    pieces: list[str] = []
    for i, (name, seen, made) in enumerate(levels):
        y = 4 + i * step
        tall = min(step * 0.8, 22.0) / (2 if with_filled else 1)
        pieces.append(_rect("seen", 84, y, 130 * seen / maximum, tall))
        if with_filled:
            pieces.append(_rect("made", 84, y + tall, 130 * made / maximum, tall))
        middle = y + tall * (1 if with_filled else 0.5) + 4
        pieces.append(f'<text x="78" y="{middle:.1f}" text-anchor="end">{escape(_cut(name, 12))}</text>')
    return _small(pieces, "Shares of levels")


def pit_histogram(pit: Floats, bins: int = 10) -> str:
    """Where true values fall in their predicted distributions: flat if these are right; the band holds 95 %."""
    count = np.histogram(pit, bins, (0.0, 1.0))[0]
    expected = len(pit) / bins
    spread = 1.96 * np.sqrt(expected * (1 - 1 / bins))
    maximum = max(float(count.max(initial=1)), expected + spread) * 1.1
    left, right, top, bottom = 34, 330, 8, 210

    def y(value: float) -> float:
        return bottom - (bottom - top) * max(value, 0.0) / maximum

    wide = (right - left) / bins
    low, high = y(expected - spread), y(expected + spread)
    pieces = [
        _rect("band", left, high, right - left, low - high),
        *(_rect("made", left + i * wide + 2, y(n), wide - 4, bottom - y(n)) for i, n in enumerate(count.tolist())),
        _axis(left, right, bottom, bottom),
        *_below(left, 182, right, ("0", "rank of the truth", "1")),
        _label(left - 5, y(expected) + 4, f"{expected:.0f}"),
    ]
    return _svg(340, 232, pieces, "Ranks of true values in their predicted distributions")


def coverage_curve(levels: Floats, covered: Floats) -> str:
    """The share of true values within central intervals of each level, against the level."""

    def place(a: float, b: float) -> str:
        return f"{44 + 286 * a:.1f},{210 - 202 * b:.1f}"

    points = " ".join(place(float(a), float(b)) for a, b in zip(levels, covered))
    pieces = [
        f'<polyline class="other" points="{place(0, 0)} {place(1, 1)}"/>',
        f'<polyline class="line" points="{points}"/>',
        _axis(44, 330, 210, 210),
        _axis(44, 44, 8, 210),
        *_below(44, 187, 330, ("0 %", "level of interval", "100 %")),
        _label(40, 16, "100 %"),
        _label(40, 212, "0"),
    ]
    return _svg(340, 232, pieces, "Coverage of intervals")


def learning_curve(points: Sequence[tuple[float, float]]) -> str:
    """How a loss fell with the steps of training; the scale begins at its least value."""
    left, right, top, bottom = 60, 520, 12, 200
    steps, losses = np.array(points).T
    low, high = float(losses.min()), float(np.quantile(losses, 0.98))
    across = (steps - steps[0]) / max(steps[-1] - steps[0], 1)
    down = np.clip((high - losses) / max(high - low, 1e-9), 0.0, 1.0)
    places = zip(left + (right - left) * across, top + (bottom - top) * down)
    pieces = [
        _axis(left, right, bottom, bottom),
        _axis(left, left, top, bottom),
        f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>',
        _label(left - 6, top + 4, f"{high:.4g}"),
        _label(left - 6, bottom + 4, f"{low:.4g}"),
        _label(left, bottom + 16, f"{steps[0]:.0f}", "start"),
        _label((left + right) / 2, bottom + 16, "steps", "middle"),
        _label(right, bottom + 16, f"{steps[-1]:.0f}"),
    ]
    return _svg(560, bottom + 24, pieces, "Loss by step")


def draw_means(lines: Sequence[tuple[str, Sequence[float], Sequence[float]]]) -> str:
    """For each column the means of its filled cells, one mark for each draw, and their spreads, in observed units.

    Each line is a name, means as (mean - observed mean) / observed deviation, and deviations over the observed one.
    """
    step, left, right = 22, 130, 520
    reach = max(1.0, *(abs(value) for _, means, _ in lines for value in means)) * 1.05

    def x(value: float) -> float:
        return (left + right) / 2 + (right - left) / 2 * value / reach

    pieces = [f'<line class="axis" x1="{x(0):.1f}" x2="{x(0):.1f}" y1="4" y2="{6 + step * len(lines)}"/>']
    for number, (name, means, spreads) in enumerate(lines):
        y = 16 + step * number
        pieces.append(_label(left - 8, y + 4, _cut(name, 18)))
        pieces += [f'<circle class="made" cx="{x(mean):.1f}" cy="{y}" r="3.5"/>' for mean in means]
        pieces.append(_label(right + 10, y + 4, f"{np.mean(spreads):.2f}", "start"))
    bottom = 16 + step * len(lines)
    pieces += [_label(x(0), bottom + 12, "observed mean", "middle"), _label(right + 10, bottom + 12, "spread", "start")]
    pieces += [_label(x(end), bottom + 12, f"{end:+.1f}", "middle") for end in (-reach / 1.05, reach / 1.05)]
    return _svg(600, bottom + 20, pieces, "Means of filled cells, draw by draw")


def line_curves(curves: Mapping[str, Sequence[float]], x_label: str) -> str:
    """Curves over 0, 1, 2 …, the first one in colour."""
    steps = max(len(curve) for curve in curves.values()) - 1
    maximum = max(max(curve) for curve in curves.values()) or 1.0
    left, right, top, bottom = 44, 520, 12, 240
    pieces = [_axis(left, right, bottom, bottom), _axis(left, left, top, bottom)]
    ends: list[tuple[float, str]] = []
    for i, (name, curve) in enumerate(curves.items()):
        at = [
            (left + (right - left) * t / max(steps, 1), bottom - (bottom - top) * v / (1.05 * maximum))
            for t, v in enumerate(curve)
        ]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        pieces.append(f'<polyline class="{"line" if i == 0 else "other"}" points="{points}"/>')
        ends.append((at[-1][1] + 4, name))
    ends.sort()
    for y, (_, name) in zip(_apart([y for y, _ in ends], bottom + 4), ends):
        pieces.append(_label(right + 8, y, name, "start"))
    pieces += [
        _label(left + (right - left) * t / max(steps, 1), bottom + 16, str(t), "middle")
        for t in range(0, steps + 1, max(1, steps // 8))
    ]
    pieces.append(_label((left + right) / 2, bottom + 32, x_label, "middle"))
    pieces += [
        _label(left - 6, bottom - (bottom - top) / 1.05 + 4, f"{maximum:.2g}"),
        _label(left - 6, bottom + 4, "0"),
    ]
    return _svg(640, bottom + 40, pieces, "Curves")


def _apart(places: Sequence[float], maximum: float, gap: float = 15.0) -> list[float]:
    """Rising places moved so that neighbours are ``gap`` apart, in the same order, and none is beyond ``maximum``."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + gap) if moved else place)
    for i in reversed(range(len(moved))):
        moved[i] = min(moved[i], maximum - gap * (len(moved) - 1 - i))
    return moved


def _svg(width: float, height: float, pieces: Sequence[str], title: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img" aria-label="{escape(title)}">'
        f"{''.join(pieces)}</svg>"
    )


def _small(pieces: Sequence[str], title: str) -> str:
    return _svg(220, 136, pieces, title)


def _label(x: float, y: float, text: str, anchor: str = "end") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _rect(style: str, x: Any, y: Any, width: Any, height: Any) -> str:
    """A rectangle; floats with one decimal, whole numbers and text as they are."""
    x, y, width, height = (f"{v:.1f}" if isinstance(v, float) else v for v in (x, y, width, height))
    return f'<rect class="{style}" x="{x}" y="{y}" width="{width}" height="{height}"/>'


def _axis(x1: int, x2: int, y1: int, y2: int) -> str:
    return f'<line class="axis" x1="{x1}" x2="{x2}" y1="{y1}" y2="{y2}"/>'


def _below(left: float, middle: float, right: float, words: tuple[str, str, str]) -> list[str]:
    """Labels below a figure: at its left end, in the middle, at its right end."""
    places = zip((left, middle, right), words, ("start", "middle", "end"))
    return [_label(x, 226, text, anchor) for x, text, anchor in places]


def _ends(low: str, high: str) -> list[str]:
    return [_axis(0, 220, 116, 116), _label(0, 131, low, "start"), _label(220, 131, high)]


def _heights(values: Floats, edges: Floats) -> Floats:
    """Shares per bin; what lies outside counts for the outermost ones."""
    if not len(values):
        return np.zeros(len(edges) - 1)
    return np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / len(values)


def _steps(heights: Floats, style: str) -> str:
    wide = 220 / len(heights)
    points = ["0,116"]
    for i, height in enumerate(heights.tolist()):
        y = 116 - 110 * height
        points += [f"{i * wide:.1f},{y:.1f}", f"{(i + 1) * wide:.1f},{y:.1f}"]
    return f'<polygon class="{style}" points="{" ".join([*points, "220,116"])}"/>'


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Begin and end of each run of True."""
    edges: NDArray[Any] = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def _cut(text: str, maximum: int) -> str:
    return text if len(text) <= maximum else text[: maximum - 1] + "…"
