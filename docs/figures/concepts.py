"""The picture of docs/concepts.md: a question, its rank, the one-pass token sequence, and the mask lattice.

The ranks and the lattice's edges are asked of anyfill itself, so the picture cannot say anything else than the code.

    python docs/figures/concepts.py            writes concepts.svg beside this file
    python docs/figures/concepts.py some.png   writes there instead, in the format the name says
"""

import sys
from itertools import combinations
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from anyfill.questions import Increasing, MacEdges, Question, chain_rank, enumerate_questions
from anyfill.rank import NEVER

WIDTH, HEIGHT = 900, 868  # pixels, at 100 per inch
LETTERS = "ANYORDER"
GIVEN, ASKED = (0, 2, 5), (1, 4, 6)
INK, FAINT, PAPER = "#22262e", "#6b7280", "#ffffff"
FILL = {"given": "#2f66a9", "asked": "#f3ae49", "ignored": "#eceef1", "start": "#ffffff"}
TEXT = {"given": "#ffffff", "asked": INK, "ignored": "#9aa1ac", "start": FAINT}
EDGE = {"given": "#24518a", "asked": "#d0892a", "ignored": "#d5d9df", "start": "#b6bcc6"}
WARN = "#b3372f"
LEFT = 168  # where the cells begin; labels stand to the left of it


def main() -> None:
    """Draw all three panels and write the file."""
    plt.rcParams.update({"svg.fonttype": "path", "svg.hashsalt": "anyfill", "font.family": "DejaVu Sans"})
    figure = plt.figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(HEIGHT, 0)  # y runs downwards, as on a page
    axes.axis("off")
    rank = question_panel(axes, top=24)
    rule(axes, 262)
    chain_panel(axes, rank, top=284)
    rule(axes, 592)
    lattice_panel(axes, top=614)
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("concepts.svg")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def kind_of(variable: int) -> str:
    """Given, asked or ignored."""
    return "given" if variable in GIVEN else "asked" if variable in ASKED else "ignored"


def question_panel(axes: Axes, top: float) -> list[int]:
    """The row with its holes and the rank under it; returns the rank."""
    title(axes, top, "1", "A question", "some values are given, some are asked, the rest is ignored")
    places = torch.arange(len(LETTERS))
    given = sum(places == place for place in GIVEN).bool()[None]
    asked = sum(places == place for place in ASKED).bool()[None]
    rank = chain_rank(Increasing(), Question(given, asked))[0].tolist()
    pitch, size, row = 86, 68, top + 62
    label(axes, row - 13, "place")
    label(axes, row + size / 2, "value")
    label(axes, row + size + 28, "rank")
    for place, letter in enumerate(LETTERS):
        kind, x = kind_of(place), LEFT + place * pitch
        note(axes, x + size / 2, row - 13, str(place), size=10.5, colour=FAINT)
        box(axes, x, row, size, size, kind)
        shown = {"given": letter, "asked": "?", "ignored": ""}[kind]
        note(axes, x + size / 2, row + size / 2, shown, size=24, colour=TEXT[kind], weight="bold")
        said = "NEVER" if rank[place] == NEVER else str(rank[place]).replace("-", "−")
        colour = FAINT if kind == "ignored" else INK
        note(axes, x + size / 2, row + size + 28, said, size=10 if kind == "ignored" else 13.5, colour=colour)
    x, y = LEFT, row + size + 66
    for kind, meaning in (
        ("given", "given: told to the model"),
        ("asked", "asked: wanted, answered by rank"),
        ("ignored", "ignored: left out"),
    ):
        box(axes, x, y - 8, 16, 16, kind, radius=3)
        axes.text(x + 24, y, meaning, va="center", fontsize=10.5, color=INK)
        x += {"given": 226, "asked": 300, "ignored": 0}[kind]
    return rank


def chain_panel(axes: Axes, rank: list[int], top: float) -> None:
    """The tokens a one-pass network reads, and what each of them answers."""
    title(axes, top, "2", "One pass", "read the given block, then the asked variables, in the order of the rank")
    order = sorted((variable for variable in range(len(rank)) if rank[variable] < NEVER), key=lambda v: rank[v])
    pitch, width, cell, row = 115, 97, 40, top + 46
    for line, name in enumerate(("value", "own place", "place to predict")):
        label(axes, row + cell * (line + 0.5), name)
    label(axes, row + 3 * cell + 45, "answer")
    for token, target in enumerate(order):
        x, middle = LEFT + token * pitch, LEFT + token * pitch + width / 2
        read = order[token - 1] if token else None
        kind = "start" if read is None else kind_of(read)
        box(axes, x, row, width, 3 * cell, "start")
        box(axes, x, row, width, 2 * cell, kind, radius=7)
        value = "start" if read is None else LETTERS[read]
        note(axes, middle, row + cell / 2 + 2, value, size=11 if read is None else 17, colour=TEXT[kind], weight="bold")
        note(axes, middle, row + cell * 1.5, "–" if read is None else str(read), size=12, colour=TEXT[kind])
        wanted = kind_of(target)
        box(axes, x + 30, row + 2 * cell + 7, width - 60, cell - 14, wanted, radius=5)
        note(axes, middle, row + cell * 2.5, str(target), size=12, colour=TEXT[wanted], weight="bold")
        arrow(axes, (middle, row + 3 * cell + 2), (middle, row + 3 * cell + 28), INK)
        told = r"\/".join(map(str, order[:token]))
        answer = f"$p(x_{target}\\,|\\,x_{{{told}}})$" if told else f"$p(x_{target})$"
        note(axes, middle, row + 3 * cell + 45, answer, size=11.5, colour=INK)
    brace = row + 3 * cell + 66
    for first, count, text in ((0, 3, r"log p(given)"), (3, 3, r"log p(asked | given)")):
        begin = LEFT + first * pitch + 4
        end = LEFT + (first + count - 1) * pitch + width - 4
        axes.plot([begin, begin, end, end], [brace, brace + 7, brace + 7, brace], color=FAINT, lw=1.1)
        note(axes, (begin + end) / 2, brace + 23, f"sum of logs = {text}", size=11, colour=INK, weight="bold")
    axes.text(
        LEFT,
        brace + 52,
        "A token sees itself and those to its left. N and R are the values being scored, or those just drawn.",
        va="center",
        fontsize=10.2,
        color=FAINT,
    )


def lattice_panel(axes: Axes, top: float) -> None:
    """All sets of three variables, and the steps between them that an increasing order takes."""
    title(axes, top, "3", "The mask lattice", "what is known, one variable at a time; here N = 3, w = increasing")
    variables = 3
    taken = {(edge.given, edge.asked[0]) for edge in enumerate_questions(MacEdges(variables))}
    sets = [known for size in range(variables + 1) for known in combinations(range(variables), size)]
    place = {}
    for known in sets:
        level = [other for other in sets if len(other) == len(known)]
        place[known] = (64 + len(known) * 138, top + 136 + (level.index(known) - (len(level) - 1) / 2) * 78)
    direct = ((2,), 0)
    for known in sets:
        for j in set(range(variables)) - set(known):
            begin, end = place[known], place[tuple(sorted((*known, j)))]
            if (known, j) in taken:
                arrow(axes, begin, end, INK, width=1.9, gap=35)
            elif (known, j) == direct:
                arrow(axes, begin, end, WARN, width=2.0, gap=35, style=(0, (4, 2.5)))
            else:
                arrow(axes, begin, end, "#b9bfc9", width=1.3, gap=35, style=(0, (1.2, 2.6)))
    for known, (x, y) in place.items():
        box(axes, x - 34, y - 15, 68, 30, "given" if known else "start", radius=15)
        name = "{" + ", ".join(map(str, known)) + "}" if known else "{ }"
        note(axes, x, y, name, size=9.5, colour=TEXT["given" if known else "start"], weight="bold")
    x, y = 544, top + 58
    for style, colour, lines in (
        (
            "-",
            INK,
            (
                "Seven steps add a variable later than all",
                "known ones. They suffice for log p of any",
                "subset. MacEdges trains these alone.",
            ),
        ),
        (
            (0, (1.2, 2.6)),
            "#9aa1ac",
            ("Five steps go against w. An any-order", "network learns them as well."),
        ),
        (
            (0, (4, 2.5)),
            WARN,
            (
                r"$p(x_0\,|\,x_2)$ read directly is such a step.",
                r"As a difference, $\log p(x_0, x_2) - \log p(x_2)$,",
                "it takes solid steps only.",
            ),
        ),
    ):
        axes.plot([x, x + 30], [y, y], color=colour, lw=2, ls=style, solid_capstyle="butt")
        for line in lines:
            axes.text(x + 42, y, line, va="center", fontsize=10.2, color=INK)
            y += 18.5
        y += 13


def title(axes: Axes, y: float, number: str, name: str, rest: str) -> None:
    axes.text(24, y + 8, number, va="center", fontsize=13, color=FAINT, weight="bold")
    drawn = axes.text(46, y + 8, name, va="center", fontsize=14, color=INK, weight="bold")
    renderer = axes.figure.canvas.get_renderer()  # type: ignore[attr-defined]
    end = axes.transData.inverted().transform(drawn.get_window_extent(renderer).get_points())[1][0]
    axes.text(end + 12, y + 9, rest, va="center", fontsize=11.2, color=FAINT)


def rule(axes: Axes, y: float) -> None:
    axes.plot([24, WIDTH - 24], [y, y], color="#e3e6ea", lw=1)


def label(axes: Axes, y: float, text: str) -> None:
    axes.text(LEFT - 22, y, text, ha="right", va="center_baseline", fontsize=10.5, color=FAINT)


def note(axes: Axes, x: float, y: float, text: str, *, size: float, colour: str, weight: str = "normal") -> None:
    axes.text(x, y, text, ha="center", va="center_baseline", fontsize=size, color=colour, weight=weight)


def box(axes: Axes, x: float, y: float, width: float, height: float, kind: str, radius: float = 8) -> None:
    shape = f"round,pad=0,rounding_size={radius}"
    patch = FancyBboxPatch((x, y), width, height, boxstyle=shape, fc=FILL[kind], ec=EDGE[kind], lw=1.2)
    axes.add_patch(patch)


def arrow(
    axes: Axes,
    begin: tuple[float, float],
    end: tuple[float, float],
    colour: str,
    *,
    width: float = 1.3,
    gap: float = 0,
    style: str | tuple[float, tuple[float, ...]] = "-",
) -> None:
    """An arrow from point to point, kept ``gap`` pixels off both."""
    properties = {"arrowstyle": "-|>,head_length=0.45,head_width=0.2", "color": colour, "lw": width, "ls": style}
    shrink = gap * 72 / 100
    axes.annotate("", end, begin, arrowprops={**properties, "shrinkA": shrink, "shrinkB": shrink})


if __name__ == "__main__":
    main()
