"""The picture of docs/text.md: a text in the colours of its surprise under the shipped model, character by character.

python docs/figures/text.py            writes text_surprise.png beside this file
python docs/figures/text.py some.png   writes there instead, in the format the name says
"""

import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.patches import Rectangle

from anyfill.text.model import load
from anyfill.text.reading import Source
from anyfill.text.scoring import Scorer, Totals

TEXT = (
    "The first railway between Liverpool and Manchester opened in 1830. Its trains were pulled by steam locomotives, "
    "and a purple elephant sold the tickets."
)
COLUMNS, MOST = 60, 8.0
COLOURS = LinearSegmentedColormap.from_list("surprise", ["#ffffff", "#f9dcae", "#f3ae49", "#b3372f"])


def surprises() -> list[tuple[str, float]]:
    """Each character as the model sees it, and its bits."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        path.write_text(TEXT)
        scorer = Scorer(load())
        tokens = [token for some, _ in scorer.tokens(Source("text", path), Totals()) for token in some]
    return [(token.text, token.bits) for token in tokens]


def broken(found: list[tuple[str, float]]) -> list[list[tuple[str, float]]]:
    """Lines of at most so many columns, broken behind spaces."""
    lines: list[list[tuple[str, float]]] = [[]]
    word: list[tuple[str, float]] = []
    for each in [*found, (" ", 0.0)]:
        word.append(each)
        if each[0] == " ":
            if len(lines[-1]) + len(word) > COLUMNS:
                lines.append([])
            lines[-1] += word
            word = []
    lines[-1].pop()
    return lines


def main() -> None:
    """Draw and write."""
    lines = broken(surprises())
    norm = Normalize(0.0, MOST)
    figure, axis = plt.subplots(figsize=(9.0, 0.44 * len(lines) + 0.55), layout="constrained")
    for row, line in enumerate(lines):
        for column, (character, bits) in enumerate(line):
            colour = COLOURS(norm(bits))
            axis.add_patch(Rectangle((column, row), 1, 0.86, facecolor=colour, edgecolor="none"))
            ink = "#ffffff" if bits > 0.8 * MOST else "#22262e"
            axis.text(column + 0.5, row + 0.45, character, ha="center", va="center", family="monospace", color=ink)
    axis.set_xlim(0, COLUMNS)
    axis.set_ylim(len(lines), 0)
    axis.axis("off")
    scale = plt.cm.ScalarMappable(norm, COLOURS)
    bar = figure.colorbar(scale, ax=axis, location="bottom", aspect=60, shrink=0.6, pad=0.02)
    bar.set_label("bits of surprise, given all characters before", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("text_surprise.png")
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
