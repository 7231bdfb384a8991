"""SUNMASK's Figure 2: negative BLEU against Self-BLEU, one curve for each model, one point for each temperature.

Low temperatures give good sentences that are all alike, high ones varied nonsense; a model is better if its curve runs
further to the left and below. Bars are 95 % intervals (``emnlp_errors``). ``sweep`` makes the points of a curve from
anything that draws sentences at a temperature, ``draw_sweep`` draws curves, ``self_bleu_at`` reads a curve off at a
given BLEU, so that models can be compared in one number. BLEU and Self-BLEU are those of ``anyfill.text.metrics``.

Self-BLEU grows with the number of sentences, so the figure says how many there are, and curves of unequal numbers say
it each for itself. The published points are GansFallingShort's, of 10,000 sentences and models trained on 200,000.

    python -m experiments.sunmask.emnlp_plot FILE.json [--out FILE.png]   # {"curves": {name: [point, ...]}}
    python -m experiments.sunmask.emnlp_plot --demo --out demo.png        # Markov chains of made-up text, in seconds
"""

import argparse
import json
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from anyfill.text.metrics import grade_text
from anyfill.text.ngram_tables import NgramTable, Sentences
from experiments.sunmask.emnlp_errors import half_interval, standard_error

COLORS = ("#1b6ca8", "#c0392b", "#3a8f5c", "#d1843a", "#7d5ba6", "#4d4d4d", "#17a2b8", "#b0588a")
SHOWN = {
    "left_to_right": "left to right", "one_pass": "one-pass", "sundae": "SUNDAE", "sunmask": "SUNMASK",
    "sunmask-typical": "SUNMASK, typical words", "sunmask-untrusted": "SUNMASK, trusted words kept",
    "chain1": "Markov chain, first order", "chain2": "Markov chain, second order",
    "chain3": "Markov chain, third order",
}  # fmt: skip
"""What recipes are called."""


@dataclass(frozen=True, slots=True)
class Point:
    """Scores of the sentences of one model at one temperature, both for n-grams of up to n words.

    Attributes:
        bleu, self_bleu: the scores.
        sentences: how many.
        temperature: at which they were drawn, if one was.
        rounds: of the chain that drew them, where a curve goes through several.
        without: both scores without each group of the sentences, for errors (``emnlp_errors``).
    """

    bleu: float
    self_bleu: float
    sentences: int
    temperature: float | None = None
    rounds: int | None = None
    without: dict[str, list[float]] | None = None

    def bar(self, score: str) -> float:
        """Half of the 95 % interval of "bleu" or "self_bleu"; 0 if it is not known."""
        left = None if self.without is None else self.without[score]
        return 0.0 if left is None else half_interval(standard_error(left), len(left))


PUBLISHED: dict[str, tuple[Point, ...]] = {
    "MLE": (Point(0.19, 0.21, 10_000), Point(0.27, 0.33, 10_000), Point(0.38, 0.52, 10_000)),
    "SeqGAN": (Point(0.09, 0.27, 10_000),),
    "LeakGAN": (Point(0.27, 0.51, 10_000),),
    "training text": (Point(0.23, 0.24, 10_000),),
}


def sweep(
    draw: Callable[[float], Sentences], temperatures: Sequence[float], references: Sentences | NgramTable, *, n: int = 5
) -> list[Point]:
    """A point for each temperature, of the sentences that ``draw(temperature)`` gives."""
    table = references if isinstance(references, NgramTable) else NgramTable.of(references, n)
    points: list[Point] = []
    for temperature in temperatures:
        grade = grade_text(draw(temperature), table, max_n=n)
        points.append(Point(grade.bleu[-1], grade.self_bleu[-1], grade.sentences, temperature))
    return points


def self_bleu_at(points: Sequence[Point], bleu: float) -> float | None:
    """Self-BLEU where a curve has this BLEU, on the lines between its points; None if it never has.

    A curve may turn back, when a low temperature leaves only short or odd sentences: the lowest place counts.
    """
    found: list[float] = []
    for one, other in pairwise(sorted(points, key=lambda point: point.temperature or 0.0)):
        low, high = sorted((one, other), key=lambda point: point.bleu)
        if low.bleu <= bleu <= high.bleu:
            found.append(float(np.interp(bleu, [low.bleu, high.bleu], [low.self_bleu, high.self_bleu])))
    return min(found, default=None)


def self_bleu_error(points: Sequence[Point], bleu: float) -> float | None:
    """The standard error of ``self_bleu_at``: the curve is read again without each group of sentences.

    None where that is not known of some point, or a curve without a group never has this BLEU.
    """
    known = [point for point in points if point.without is not None]
    if len(known) < len(points) or not points:
        return None
    found: list[float] = []
    for pairs in zip(*(zip(*(point.without or {}).values()) for point in points), strict=True):
        curve = [replace(point, bleu=b, self_bleu=own) for point, (b, own) in zip(points, pairs)]
        at = self_bleu_at(curve, bleu)
        if at is None:
            return None
        found.append(at)
    return standard_error(found)


def draw_sweep(
    curves: Mapping[str, Sequence[Point]],
    path: Path,
    *,
    n: int = 5,
    marks: Mapping[str, Sequence[Point]] | None = None,
    title: str = "EMNLP2017 News: quality against variety",
) -> None:
    """Draw curves, and ``marks`` (points of others, real text) in grey; temperatures stand at the ends and at 1.

    "NAME, more" has the colour of NAME: a curve through several numbers of rounds is dotted and says each of them, any
    other (of an earlier run) is dashed and says nothing.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    marks = marks or {}
    sizes = {point.sentences for points in (*curves.values(), *marks.values()) for point in points}

    def named(name: str, points: Sequence[Point]) -> str:
        counts = sorted({f"{point.sentences:,}" for point in points})
        base, comma, more = name.partition(",")
        name = SHOWN.get(base, base) + comma + more
        return name if len(sizes) == 1 else f"{name} ({', '.join(counts)} sentences)"

    def bars(points: Sequence[Point]) -> dict[str, Any]:
        return {"xerr": [point.bar("bleu") for point in points], "yerr": [point.bar("self_bleu") for point in points]}

    figure, axis = plt.subplots(figsize=(9, 6.6), layout="constrained")
    for (name, points), shape in zip(marks.items(), "sDv^P*X" * (len(marks) // 7 + 1)):
        x, y = [-point.bleu for point in points], [point.self_bleu for point in points]
        style: dict[str, Any] = {"color": "#9a9a9a", "marker": shape, "markersize": 6, "linewidth": 1, "zorder": 1}
        line = ":" if len(points) > 1 else "none"
        axis.errorbar(x, y, linestyle=line, label=named(name, points), **bars(points), **style)
    bases = list(dict.fromkeys(name.partition(",")[0] for name in curves))
    for name, points in curves.items():
        base, more, _ = name.partition(",")
        color, own = COLORS[bases.index(base) % len(COLORS)], not more or base not in curves
        x, y = [-point.bleu for point in points], [point.self_bleu for point in points]
        style = {"color": color, "marker": "o", "markersize": 4, "linewidth": 1.4, "elinewidth": 1, "capsize": 2}
        by_rounds = any(point.rounds is not None for point in points)
        line = ":" if by_rounds else "-" if own else "--"
        axis.errorbar(x, y, linestyle=line, label=named(name, points), **bars(points), **style)
        temperatures = [point.temperature for point in points if point.temperature is not None]
        told = {1.0, *([min(temperatures), max(temperatures)] if temperatures else [])}
        for point in points:
            if by_rounds or (own and point.temperature in told):
                spot, shift = (-point.bleu, point.self_bleu), (-50, -4) if by_rounds else (6, 5)
                text = f"{point.rounds} rounds" if by_rounds else f"t = {point.temperature:g}"
                axis.annotate(text, spot, shift, textcoords="offset points", color=color, fontsize=7)
    counted = f", {next(iter(sizes)):,} sentences" if len(sizes) == 1 else ""
    axis.set(xlabel=f"negative BLEU-{n}{counted}     (left: better)", ylabel=f"Self-BLEU-{n}     (below: more varied)")
    axis.set_title(title)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25)
    axis.legend(frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


class Chain:
    """Words given the last ``order`` words, as often as in the sentences it learned from; its end is a word too."""

    def __init__(self, sentences: Sequence[Sequence[int]], order: int) -> None:
        self.order = order
        followers: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for sentence in sentences:
            padded = [-1] * order + [*sentence, -1]
            for end in range(order, len(padded)):
                followers[tuple(padded[end - order : end])][padded[end]] += 1
        self.followers = dict(followers)

    def draw(self, count: int, temperature: float, seed: int, *, longest: int = 40) -> list[list[int]]:
        """Sentences of at most ``longest`` words, drawn with every count to the power of 1 / temperature."""
        random, tables = Random(seed), {}
        found: list[list[int]] = []
        for _ in range(count):
            sentence = [-1] * self.order
            while len(sentence) < self.order + longest:
                past = tuple(sentence[-self.order :])
                if past not in tables:
                    words = self.followers[past]
                    most = max(words.values())  # so that no power overflows
                    powers = [(times / most) ** (1 / temperature) for times in words.values()]
                    tables[past] = list(words), list(accumulate(powers))
                words, up_to = tables[past]
                word = words[min(bisect(up_to, random.random() * up_to[-1]), len(words) - 1)]
                if word == -1:
                    break
                sentence.append(word)
            found.append(sentence[self.order :])
        return found


def made_up_text(count: int, seed: int, words: int = 60) -> list[list[int]]:
    """Sentences of a chain of second order: a word follows two others by Zipf's law, in an order of those two's own."""
    random = Random(seed)
    up_to = list(accumulate((rank + 1) ** -1.7 for rank in range(words)))
    found: list[list[int]] = []
    for _ in range(count):
        sentence = [0, 0]
        for _ in range(random.randint(12, 28)):
            rank = bisect(up_to, random.random() * up_to[-1])
            sentence.append((rank * 7 + 31 * sentence[-1] + 17 * sentence[-2]) % words)
        found.append(sentence[2:])
    return found


def demo(path: Path, *, count: int = 1000) -> dict[str, list[Point]]:
    """Chains of first and second order on made-up text of the second: the second must do better."""
    learned, references = made_up_text(20_000, 1), NgramTable.of(made_up_text(2000, 2))
    temperatures = (0.4, 0.6, 0.8, 1.0, 1.3, 2.0)
    curves: dict[str, list[Point]] = {}
    for order in (1, 2):
        chain = Chain(learned, order)
        curves[f"chain of order {order}"] = sweep(lambda t, c=chain: c.draw(count, t, 3), temperatures, references)
    real = sweep(lambda _: learned[:count], (1.0,), references)
    draw_sweep(curves, path, marks={"the text itself": real}, title="Made-up text: quality against variety")
    return curves


def main() -> None:
    """Draw a file of points, or the demonstration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("points", type=Path, nargs="?", help='JSON with {"curves": {name: [point, ...]}}')
    parser.add_argument("--out", type=Path, help="the picture; beside the JSON if not said")
    parser.add_argument("--demo", action="store_true")
    arguments = parser.parse_args()
    if arguments.demo:
        if arguments.out is None:
            parser.error("--demo needs --out")
        for name, points in demo(arguments.out).items():
            print(name, *(asdict(point) for point in points), sep="\n  ")
        return
    if arguments.points is None:
        parser.error("name a file of points, or --demo")
    stored = json.loads(arguments.points.read_text())["curves"]
    curves = {name: [Point(**point) for point in points] for name, points in stored.items()}
    draw_sweep(curves, arguments.out or arguments.points.with_suffix(".png"), marks=PUBLISHED)


if __name__ == "__main__":
    main()
