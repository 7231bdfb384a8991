"""What ``text8.py`` found, condensed, as a table and as a picture. Reads numbers only: no model, no data.

python -m experiments.mac.text8_plot results/mac/text8.json
"""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LABELS = {
    "one_pass": "one-pass",
    "mac_rest": "MAC, all the rest",
    "mac_next": "MAC, next variable",
    "ardm": "ARDM",
    "left_to_right": "left to right",
    "sunmask": "SUNMASK",
    "sundae": "SUNDAE",
}
COLORS = {
    "one_pass": "#1b6ca8",
    "mac_rest": "#d1843a",
    "mac_next": "#e3b27a",
    "ardm": "#8f8f8f",
    "left_to_right": "#222222",
    "sunmask": "#3a8f5c",
    "sundae": "#7d5ba6",
}
QUESTIONS = ("joint", "marginal", "conditional")
SUMMED = ("ardm", "one_pass", "left_to_right", "sundae")
"""Recipes whose loss is nats of a whole row; the others' is that of one character."""
PUBLISHED = (
    ("autoregressive transformer", "1.23", ""),
    ("EDLM", "1.24", ""),
    ("MD4", "1.37", ""),
    ("SEDD", "1.39", ""),
    ("MAC, 3000 epochs", "1.40", "1.09"),
    ("MDLM", "1.40", ""),
    ("ARDM, 14000 epochs", "1.43", ""),
    ("D3PM, absorbing", "1.45", ""),
    ("ARDM, 3000 epochs (in MAC)", "1.48", "1.12"),
)
"""text8's test part, models trained on its 90 M characters; bits per character, most of them upper bounds."""


def document_of(runs: Mapping[str, Mapping[str, Any]], length: int) -> dict[str, Any]:
    """All that is kept of the runs: records, answers, curves in bits per character, and one-pass against the others."""
    kept: dict[str, Any] = {}
    for name, run in runs.items():
        asked = {unit: _without_each(answer) for unit, answer in run["asked"].items()}
        if "samples" in asked:
            asked["samples"] = asked["samples"] | {"texts": asked["samples"]["texts"][:4]}
        curve = condensed(run["curve"], length if run["recipe"] in SUMMED else 1)
        kept[name] = {key: value for key, value in run.items() if key not in ("curve", "asked")} | {
            "asked": asked,
            "curve": curve,
        }
    return {"length": length, "runs": kept, "against_one_pass": _against(runs)}


def condensed(lines: Sequence[Mapping[str, Any]], characters: int, *, points: int = 60) -> dict[str, list[list[float]]]:
    """[seconds, bits per character] of every validation, and of training at so many points at most."""
    scale = characters * math.log(2)
    valid = [line for line in lines if line["validation_loss"] is not None]
    some = lines[:: max(1, len(lines) // points)]
    return {
        "validation": [[round(line["seconds"], 2), round(line["validation_loss"] / scale, 5)] for line in valid],
        "training": [[round(line["seconds"], 2), round(line["loss"] / scale, 5)] for line in some],
    }


def _without_each(answer: Any) -> Any:
    if not isinstance(answer, Mapping):
        return answer
    return {key: _without_each(value) for key, value in answer.items() if key != "each"}


def _against(runs: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """For each other run and question: its bits less one-pass's on the same chunks, with the standard error of that."""
    own = runs.get("one_pass", {}).get("asked", {}).get("answers", {})
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, run in runs.items():
        theirs = run["asked"].get("answers", {})
        for question in QUESTIONS:
            one, other = (answers.get(question, {}).get("each", []) for answers in (own, theirs))
            if name == "one_pass" or len(one) != len(other) or len(one) < 2:
                continue
            apart = [b - a for a, b in zip(one, other)]
            mean = sum(apart) / len(apart)
            deviation = math.sqrt(sum((each - mean) ** 2 for each in apart) / (len(apart) - 1))
            stderr = deviation / math.sqrt(len(apart))
            found.setdefault(name, {})[question] = {"bits_more": mean, "stderr": stderr, "chunks": len(apart)}
    return found


def label(name: str) -> str:
    """What a run is called in tables and pictures."""
    recipe, _, tag = name.partition("-")
    return LABELS.get(recipe, recipe) + (f" ({tag})" if tag else "")


def table(document: Mapping[str, Any]) -> list[str]:
    """Lines: a row for each run that was asked."""
    counts = (f"score {_count(document, 'score'):,}", f"draw {_count(document, 'samples')}")
    columns = ("seconds", "steps", *QUESTIONS, "passes", *counts, "drawn, bits")
    lines = [f"{'bits per character':26s}" + "".join(f"{column:>13s}" for column in columns)]
    for name, run in document["runs"].items():
        asked = run["asked"]
        cells = [f"{run['seconds']:.0f}", f"{run['steps']:,}"]
        for question in QUESTIONS:
            answer = asked.get("answers", {}).get(question)
            mark = "" if answer is None or answer["trained"] else "*"
            cells.append("-" if answer is None else f"{answer['bits']:.3f}{mark}")
        cells.append(f"{asked['answers']['joint']['passes']}" if "answers" in asked else "-")
        scored, drawn, judged = (asked.get(key) for key in ("score", "samples", "samples_under_left_to_right"))
        cells.append("-" if scored is None else f"{'~' if scored['scaled'] else ''}{scored['seconds']:.3g} s")
        cells.append("-" if drawn is None else f"{drawn['seconds']:.2f} s")
        cells.append("-" if judged is None else f"{judged['bits']:.3f}")
        lines.append(f"{label(name):26s}" + "".join(f"{cell:>13s}" for cell in cells))
    lines.append("* read directly, which this recipe is not trained for   ~ measured on fewer chunks and scaled")
    for name, questions in document["against_one_pass"].items():
        each = [f"{q} {v['bits_more']:+.3f} ± {v['stderr']:.3f}" for q, v in questions.items()]
        lines.append(f"{label(name)} against one-pass, same chunks: " + ", ".join(each))
    joints = {name: _bits(run, "joint") for name, run in document["runs"].items()}
    if joints.get("one_pass") and joints.get("left_to_right"):
        share = joints["one_pass"] / joints["left_to_right"] - 1
        lines.append(f"one-pass joint {share:+.1%} of left to right's")
    return lines


def published() -> list[str]:
    """Lines: the papers' own figures, for orientation."""
    lines = [
        "Published, NOT comparable (text8's test part, trained on 90 M characters; ours: 11.5 M, its own held-out)"
    ]
    lines += [
        f"  {name:28s} joint {joint}" + (f", marginal {other}" if other else "") for name, joint, other in PUBLISHED
    ]
    return [*lines, "  (MAC's released code divides a marginal by all 250 characters, we by those that are asked)"]


def _count(document: Mapping[str, Any], unit: str) -> int:
    """How many chunks were scored or drawn."""
    return next((run["asked"][unit]["chunks"] for run in document["runs"].values() if unit in run["asked"]), 0)


def _bits(run: Mapping[str, Any], question: str) -> float | None:
    answer = run["asked"].get("answers", {}).get(question)
    return None if answer is None else answer["bits"]


def draw(document: Mapping[str, Any], path: Path) -> None:
    """Above: the three questions. Below: joint bits against the time to score and to draw; validation over time."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    runs = document["runs"]
    figure, axes = plt.subplots(2, 3, figsize=(12, 7.2), layout="constrained")
    for axis, question in zip(axes[0], QUESTIONS):
        _bars(axis, runs, question)
    _against_seconds(
        axes[1][0], runs, "score", f"seconds to score {_count(document, 'score'):,} chunks (hollow: scaled from fewer)"
    )
    _against_seconds(axes[1][1], runs, "samples", f"seconds to draw {_count(document, 'samples')} chunks")
    _curves(axes[1][2], runs)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    seconds = sorted({round(run["seconds"]) for name, run in runs.items() if "-" not in name})
    shown = " to ".join(str(each) for each in dict.fromkeys((seconds[:1] or [0]) + seconds[-1:]))
    figure.suptitle(f"text8, {shown} s of training each: bits per character by question, lower is better")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _bars(axis: Any, runs: Mapping[str, Any], question: str) -> None:
    """A bar for each run, and the joint of plain autoregression as a line."""
    bound = runs.get("left_to_right", {"asked": {}})
    known = {name: run for name, run in runs.items() if name != "left_to_right" and _bits(run, question) is not None}
    values = [_bits(run, question) for run in known.values()]
    errors = [run["asked"]["answers"][question]["stderr"] or 0.0 for run in known.values()]
    colors = [COLORS.get(name.split("-")[0], "#555555") for name in known]
    bars = axis.bar(range(len(known)), values, yerr=errors, color=colors)
    answers = {name: run["asked"]["answers"] for name, run in known.items()}
    for place, (bar, found) in enumerate(zip(bars, answers.values())):
        bar.set_hatch(None if found[question]["trained"] else "//")
        bar.set_edgecolor("white")
        if not found[question]["trained"] and "difference" in found:
            axis.scatter(place, found["difference"]["bits"], marker="_", s=500, color="black", zorder=3)
    axis.bar_label(bars, fmt="%.2f", padding=2, fontsize=9)
    names = [label(name).replace(", ", ",\n").replace(" (", "\n(") for name in known]
    axis.set_xticks(range(len(known)), names, fontsize=7)
    hatched = any(not found[question]["trained"] for found in answers.values())
    note = "\nhatched: untrained for it; line: log p(all) - log p(given)"
    axis.set_title(question + (note if hatched else ""), fontsize=9)
    if question == "joint" and (line := _bits(bound, question)) is not None:
        axis.axhline(
            line, color=COLORS["left_to_right"], linestyle="--", linewidth=1, label=f"left to right {line:.2f}"
        )
        axis.legend(frameon=False, loc="upper right", fontsize=8)


def _against_seconds(axis: Any, runs: Mapping[str, Any], unit: str, title: str) -> None:
    """Joint bits against seconds, each point with the passes it took."""
    points: list[tuple[float, float, str]] = []
    for name, run in runs.items():
        bits, cost = _bits(run, "joint"), run["asked"].get(unit)
        if bits is None or cost is None:
            continue
        color = COLORS.get(name.split("-")[0], "#555555")
        face = "none" if cost.get("scaled") else color
        axis.scatter(cost["seconds"], bits, s=45, facecolors=face, edgecolors=color, zorder=3)
        passes = cost.get("passes", run["asked"]["answers"]["joint"]["passes"])
        one, many = ("cached step", "cached steps") if cost.get("policy") == "CachedChain" else ("pass", "passes")
        points.append((cost["seconds"], bits, f"{label(name)}, {passes} {one if passes == 1 else many}"))
    axis.set_xscale("log")
    axis.margins(0.25, 0.2)
    axis.set_xlabel(title, fontsize=8)
    axis.set_ylabel("joint", fontsize=8)
    seconds = [point[0] for point in points]
    if not points:
        return
    if max(seconds) < 20 * min(seconds):  # too narrow for the ticks of a logarithmic axis
        axis.set_xscale("linear")
    middle = (
        math.sqrt(min(seconds) * max(seconds)) if axis.get_xscale() == "log" else sum((min(seconds), max(seconds))) / 2
    )
    low, high = axis.get_ylim()
    for on_left in (True, False):  # labels point inwards, one above the other
        lowest = -math.inf
        for x, y, note in sorted(
            (point for point in points if (point[0] <= middle) == on_left), key=lambda each: each[1]
        ):
            lowest = max(y, lowest + 0.06 * (high - low))
            shift = {"xytext": (8 if on_left else -8, 0), "ha": "left" if on_left else "right", "va": "center"}
            axis.annotate(note, (x, lowest), textcoords="offset points", fontsize=7, **shift)


def _curves(axis: Any, runs: Mapping[str, Any]) -> None:
    """Validation over time, each recipe by its own objective."""
    for name, run in runs.items():
        points = run["curve"]["validation"]
        if points:
            style = "--" if "-" in name else "-"
            color = COLORS.get(name.split("-")[0], "#555555")
            axis.plot(*zip(*points), style, marker=".", color=color, label=label(name), linewidth=1.2)
    axis.set_xlabel("seconds of training; validation, each by its own objective", fontsize=8)
    axis.set_ylabel("bits per character", fontsize=8)
    if runs:
        axis.legend(frameon=False, fontsize=7)


def main() -> None:
    """Draw the picture again beside the results file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    arguments = parser.parse_args()
    document = json.loads(arguments.results.read_text())
    draw(document, arguments.results.with_suffix(".png"))
    print("\n".join([*table(document), "", *published()]))


if __name__ == "__main__":
    main()
