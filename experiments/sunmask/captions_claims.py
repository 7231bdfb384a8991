"""The claims of SUNMASK's Figure 2 and Table 3 on captions, tested by what was drawn.

Curves are compared by Self-BLEU-5 at the same BLEU-5 (lower is more varied at equal quality), points of other settings
by how far above a curve they lie at their own BLEU-5. Both sides are sets of sentences of their own, so their squared
jackknife errors add up; "confirmed" and "refuted" mean more than two errors on one side of 0 at every level, "not
decided" anything else. One training of each model is behind all of it.

    python -m experiments.sunmask.captions_claims   # results/sunmask/captions*.json -> captions_claims.json
"""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS, write_result
from experiments.sunmask.emnlp_errors import standard_error
from experiments.sunmask.emnlp_plot import Point, self_bleu_at, self_bleu_error

LEVELS = (0.4, 0.5, 0.6)
ERRORS = 2.0
BETTER: dict[str, tuple[str, str]] = {
    "SUNMASK beats left to right": ("sunmask", "left_to_right"),
    "SUNMASK beats SUNDAE, trained as long": ("sunmask", "sundae"),
    "SUNMASK beats a Markov chain of second order": ("sunmask", "chain2"),
    "SUNMASK that keeps what it trusts beats SUNMASK": ("sunmask-untrusted", "sunmask"),
    "SUNMASK that keeps what it trusts beats SUNDAE": ("sunmask-untrusted", "sundae"),
    "SUNMASK that keeps what it trusts beats left to right": ("sunmask-untrusted", "left_to_right"),
    "SUNMASK that keeps given words in training beats SUNMASK": ("sunmask-kept", "sunmask"),
    "SUNMASK that keeps given words in training and trusted ones in its chain beats SUNDAE": (
        "sunmask-kept-untrusted",
        "sundae",
    ),
    "typical sampling helps SUNMASK (Figure 2)": ("sunmask-typical", "sunmask"),
    "SUNDAE beats left to right": ("sundae", "left_to_right"),
    "SUNMASK is better when trained for longer": ("sunmask", "sunmask, 42 s"),
    "SUNDAE is better when trained for longer": ("sundae", "sundae, 42 s"),
}
"""Curves: the first lies below the second."""


def judged(differences: Sequence[Mapping[str, float | None]]) -> str:
    """Of differences that the claim says are below 0, each with its error."""
    if not differences or any(one["difference"] is None or one["stderr"] is None for one in differences):
        return "not decided"
    signs = {math.copysign(1, one["difference"] or 0.0) for one in differences}
    if len(signs) > 1 or any(abs(one["difference"] or 0.0) <= ERRORS * (one["stderr"] or 0.0) for one in differences):
        return "not decided"
    return "confirmed" if signs == {-1.0} else "refuted"


def between(one: Sequence[Point], other: Sequence[Point], level: float) -> dict[str, float | None]:
    """Self-BLEU of one curve less that of another, at a level of BLEU, and its standard error."""
    here, there = self_bleu_at(one, level), self_bleu_at(other, level)
    errors = self_bleu_error(one, level), self_bleu_error(other, level)
    return {
        "bleu_5": level,
        "difference": None if here is None or there is None else here - there,
        "stderr": None if None in errors else math.hypot(*(error or 0.0 for error in errors)),
    }


def above(point: Point, curve: Sequence[Point]) -> dict[str, float | None]:
    """How far a point lies above a curve in Self-BLEU, at the point's own BLEU, and the standard error of that.

    Without each group of the point's sentences both its scores move, so it is read against another place of the curve.
    """
    there, error = self_bleu_at(curve, point.bleu), self_bleu_error(curve, point.bleu)
    own: list[float] = []
    for bleu, self_bleu in zip(*(point.without or {"bleu": [], "self_bleu": []}).values()):
        at = self_bleu_at(curve, bleu)
        if at is not None:
            own.append(self_bleu - at)
    whole = point.without is not None and len(own) == len(point.without["bleu"])
    return {
        "bleu_5": point.bleu,
        "difference": None if there is None else point.self_bleu - there,
        "stderr": math.hypot(standard_error(own), error) if whole and error is not None else None,
    }


def captions_claims(found: Mapping[str, Any], emphases: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What is claimed, as far as it was drawn.

    Args:
        found: results/sunmask/captions.json.
        emphases: results of ``emnlp_emphasis`` on captions, by the chain that drew.
    """
    curves = {name: [Point(**point) for point in points] for name, points in found["curves"].items()}
    said: dict[str, dict[str, Any]] = {}
    for claim, (one, other) in BETTER.items():
        if one in curves and other in curves:
            gaps = [between(curves[one], curves[other], level) for level in LEVELS]
            gaps = [gap for gap in gaps if gap["difference"] is not None]
            said[claim] = {"at": gaps, "verdict": judged(gaps)}
    for name, points in curves.items():
        label = name.rpartition(", t = ")[0]
        if label not in curves or any(point.rounds is None for point in points):
            continue
        usual = {one["rounds"] for one in found["draws"] if one["label"] == label}
        for point in points:
            if point.rounds in usual:
                continue
            gap = above(replace(point, temperature=None), curves[label])
            more = point.rounds is not None and point.rounds > max(usual)
            claim = f"{label}: {point.rounds} rounds are {'better' if more else 'worse'} than {max(usual)}"
            lower = None if gap["difference"] is None else gap["difference"] * (1 if more else -1)
            said[claim] = {"at": [gap], "verdict": judged([{**gap, "difference": lower}])}
    for chain, study in emphases.items():
        said[f"emphasis (Table 3), {chain}"] = emphasis(study["pairs"])
    return said


def emphasis(pairs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How many pairs lean towards the word that is trusted; the mean over pairs, with an error over pairs."""
    each = {" / ".join(pair["words"]): pair["emphasis"] for pair in pairs}
    means = [one["mean"] for one in each.values()]
    mean = sum(means) / len(means)
    error = math.sqrt(sum((one - mean) ** 2 for one in means) / (len(means) - 1) / len(means)) if means[1:] else None
    clear = [one for one in each.values() if one["stderr"] is not None and abs(one["mean"]) > ERRORS * one["stderr"]]
    right = sum(one["mean"] > 0 for one in clear)
    gap = {"difference": -mean, "stderr": error}
    counts = {"pairs": len(each), "towards the trusted word": right, "towards the other": len(clear) - right}
    return {"mean": mean, "stderr": error, **counts, "each": each, "verdict": judged([gap])}


def line_of(claim: str, one: Mapping[str, Any]) -> str:
    """A claim in one line."""

    def number(value: float | None) -> str:
        return "?" if value is None else f"{value:+.4f}"

    if "pairs" in one:
        error = "?" if one["stderr"] is None else f"{one['stderr']:.3f}"
        at = f"{one['mean']:+.3f} ± {error}; {one['towards the trusted word']} of {one['pairs']} pairs, "
        at += f"{one['towards the other']} the other way"
    else:
        at = "; ".join(
            f"{number(gap['difference'])} ± {(number(gap['stderr'])).lstrip('+')} at {gap['bleu_5']:.2f}"
            for gap in one["at"]
        )
    return f"{claim}: {at}: {one['verdict']}"


def main() -> None:
    """Read, judge, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS / "sunmask")
    parser.add_argument("--name", default="sunmask/captions_claims")
    arguments = parser.parse_args()
    files = {
        "the paper's chain": "captions_emphasis.json",
        "only untrusted places accept": "captions_emphasis_untrusted.json",
    }
    there = {chain: arguments.results / name for chain, name in files.items() if (arguments.results / name).exists()}
    emphases = {chain: json.loads(path.read_text()) for chain, path in there.items()}
    said = captions_claims(json.loads((arguments.results / "captions.json").read_text()), emphases)
    for claim, one in said.items():
        print(line_of(claim, one))
    path = write_result(arguments.name, {"claims": said})
    print(f"wrote {path.name} to {path.parent}/")


if __name__ == "__main__":
    main()
