"""What ``samplers.py`` reports, from its recorded lines: tables at equal passes and equal seconds, and the picture.

Nothing is interpolated: at a budget of passes or seconds a sampler stands for its costliest measurement within it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

Record = Mapping[str, Any]
PASSES = (8, 16, 32, 64, 128, 250)
SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
COLOURS = {
    "one_pass": "#1b6ca8",
    "ardm": "#c8642b",
    "mac_rest": "#6a8f3c",
    "sunmask": "#8a4fa3",
    "sundae": "#b0477a",
    "left_to_right": "#444444",
}
STYLES = {
    "one by one": ("*", "none"),
    "speculative": ("P", "none"),
    "speculative, n-grams": ("p", "none"),
    "random groups": ("o", "-"),
    "consecutive groups": ("s", ":"),
    "confidence, cosine": ("^", "--"),
    "confidence, linear": ("v", ":"),
    "confidence, as answered": ("<", ":"),
    "entropy-bounded": ("D", "-."),
    "remasking": ("X", "-"),
    "remasking, unlikely": ("x", ":"),
    "annealed Gibbs": ("h", "--"),
    "fill, then Gibbs": ("+", ":"),
    "chain": ("o", "-"),
    "chain, balanced": ("s", ":"),
    "chain, re-noised": ("v", ":"),
}
PLAIN = "as it is"


def document_of(lines: Sequence[Record]) -> dict[str, Any]:
    """All that is known: of every measurement the last, of the references those of the last run."""
    runs = [line for line in lines if "references" in line]
    latest: dict[str, Record] = {}
    for line in lines:
        if "key" in line:
            latest[" | ".join(str(line["key"][name]) for name in ("model", "sampler", "setting", "draw", "task"))] = (
                line
            )
    rows = list(latest.values())
    sticks = [row["yardstick"] for row in rows]
    return {
        "runs": [{name: value for name, value in run.items() if name != "references"} for run in runs],
        "references": runs[-1]["references"] if runs else [],
        "yardstick": {"least": min(sticks), "median": median(sticks), "most": max(sticks)} if sticks else None,
        "rows": rows,
        "equal_passes": at_most(rows, "passes", PASSES),
        "equal_seconds": at_most(rows, "seconds", SECONDS),
    }


def named(record: Record) -> str:
    """A line's name."""
    key = record["key"]
    return f"{key['model']}: {key['sampler']}" + ("" if key["draw"] == PLAIN else f", {key['draw']}")


def at_most(rows: Sequence[Record], cost: str, budgets: Sequence[float]) -> dict[str, dict[str, dict[str, Any]]]:
    """Budget and task -> for each line its costliest measurement within the budget."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for task, measure in (("free", judge_bits), ("blanks", exact_words)):
        for budget in budgets:
            best: dict[str, Record] = {}
            for row in rows:
                if row["key"]["task"] != task or row[cost] > budget:
                    continue
                name = named(row)
                if name not in best or row[cost] > best[name][cost]:
                    best[name] = row
            found[f"{task}, {budget} {cost}"] = {
                name: {"setting": row["key"]["setting"], cost: row[cost], "value": measure(row)}
                for name, row in sorted(best.items())
            }
    return found


def judge_bits(row: Record) -> float:
    """Bits per character under the judge."""
    return row["judge"]["bits"]


def exact_words(row: Record) -> float:
    """Share of the blanked words that are as they were."""
    return row["words"]


def own_bits(row: Record) -> float | None:
    """Bits per character of the truth under the sampler's own law."""
    return row["law"]["bits"] if "law" in row else None


def table(document: Mapping[str, Any]) -> Iterator[str]:
    """One line for each way: both costs and all grades; then how steady the clock was."""
    tasks: dict[tuple[str, str], dict[str, Record]] = {}
    for row in document["rows"]:
        tasks.setdefault((named(row), str(row["key"]["setting"])), {})[row["key"]["task"]] = row
    yield f"{'':44}{'whole chunks from nothing':^52}{'blanked words':^36}{'text':>7}"
    heads = ("passes", "seconds", "bits", "SBLEU4", "dist-2", "spelt", "passes", "seconds", "exact", "law", "law")
    yield f"{'':44}" + "".join(f"{head:>8}" for head in heads)
    for reference in document["references"]:
        yield _line(reference["reference"], "", {reference["task"]: reference}, known=True)
    for (name, setting), found in sorted(tasks.items(), key=_by_line):
        yield _line(name, setting, found)
    if document["yardstick"]:
        stick = document["yardstick"]
        yield f"yardstick: {stick['least']:.3f} to {stick['most']:.3f} s, median {stick['median']:.3f}"
    yield "? = asked, in one task at least, for conditionals that the model was not trained on"


def _by_line(item: tuple[tuple[str, str], Any]) -> tuple[str, float]:
    (name, setting), _ = item
    return name, float(setting) if setting != "None" else 0.0


def _line(name: str, setting: str, found: Mapping[str, Record], *, known: bool = False) -> str:
    free, blanks, text = (found.get(task, {}) for task in ("free", "blanks", "text"))
    cells = [
        *(_cell(free.get(each)) for each in ("passes", "seconds")),
        _cell(free["judge"]["bits"] if free else None),
        *(_cell(free.get(each)) for each in ("self_bleu_4", "distinct_2", "spelt")),
        *(_cell(blanks.get(each)) for each in ("passes", "seconds", "words")),
        *(_cell(own_bits(each)) for each in (blanks, text)),
    ]
    unsure = "" if known or all(row.get("licensed", True) for row in found.values()) else "?"
    return f"{name} {'' if setting in ('', 'None') else setting}{unsure}"[:44].ljust(44) + "".join(cells)


def _cell(value: float | None) -> str:
    if value is None:
        return f"{'':>8}"
    return f"{value:>8}" if isinstance(value, int) else f"{value:>8.3f}"


def draw(document: Mapping[str, Any], path: Path) -> None:
    """Quality against passes and against seconds; and bits against variety, where repetition shows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    rows: list[Record] = document["rows"]
    real = {(each["reference"], each["task"]): each for each in document["references"]}
    text = real.get(("held-out text", "free"))
    word = real.get(("commonest word of the length", "blanks"))
    figure, axes = plt.subplots(2, 3, figsize=(17, 9.5), layout="constrained")
    for column, cost in enumerate(("passes", "seconds")):
        _lines(axes[0, column], rows, "free", cost, judge_bits)
        _lines(axes[1, column], rows, "blanks", cost, exact_words)
        axes[0, column].set_ylabel("bits per character under the judge")
        axes[1, column].set_ylabel("share of words restored exactly")
        if text:
            axes[0, column].axhline(text["judge"]["bits"], color="black", linewidth=1, linestyle=(0, (5, 3)))
        if word:
            axes[1, column].axhline(word["words"], color="black", linewidth=1, linestyle=(0, (1, 2)))
        for axis, task in zip(axes[:, column], ("whole chunks", "blanks")):
            axis.set_xscale("log")
            axis.set_xlabel(f"{cost}, {task}" + (" (all rows together)" if cost == "seconds" else ""))
    _scatter(axes[0, 2], rows)
    if text:
        axes[0, 2].plot(text["judge"]["bits"], text["self_bleu_4"], "k*", markersize=15)
        place = (text["judge"]["bits"], text["self_bleu_4"])
        axes[0, 2].annotate("held-out text", place, (6, 6), textcoords="offset points")
    axes[0, 2].set_xlabel("bits per character under the judge")
    axes[0, 2].set_ylabel("Self-BLEU-4 (high: it repeats itself)")
    _lines(axes[1, 2], _with_passes(rows), "text", "passes", own_bits)
    axes[1, 2].set_xscale("log")
    axes[1, 2].set_xlabel("passes, whole chunks")
    axes[1, 2].set_ylabel("bits per character of held-out text\nunder the sampler's own law")
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.2)
        axis.set_visible(axis.has_data())
        if axis.get_xscale() == "log":
            axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_minor_formatter(NullFormatter())
    handles: dict[str, Any] = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    names = sorted(handles)
    figure.legend([handles[name] for name in names], names, loc="outside right center", fontsize=7.5, frameon=False)
    figure.suptitle(
        f"Samplers of text8, {len(rows)} measurements: dashed = held-out text, "
        "dotted = the commonest word of the length, "
        "hollow = conditionals the model was not trained on, T = sharper draws"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _with_passes(rows: Sequence[Record]) -> list[Record]:
    """Measurements of laws with the passes that sampling by the same way takes: what they are drawn against."""
    passes = {_same(row): row["passes"] for row in rows if row["key"]["task"] == "free"}
    laws = [row for row in rows if row["key"]["task"] == "text" and _same(row) in passes]
    return [{**row, "passes": passes[_same(row)]} for row in laws]


def _same(row: Record) -> tuple[Any, ...]:
    return tuple(row["key"][name] for name in ("model", "sampler", "setting", "draw"))


def _lines(axis: Any, rows: Sequence[Record], task: str, cost: str, measure: Callable[[Record], float | None]) -> None:
    """One line for each sampler, drawn as it is."""
    found: dict[tuple[str, str], list[Record]] = {}
    for row in rows:
        if row["key"]["task"] == task and row["key"]["draw"] == PLAIN and measure(row) is not None:
            found.setdefault((row["key"]["model"], row["key"]["sampler"]), []).append(row)
    for (model, sampler), points in sorted(found.items()):
        points = sorted(points, key=lambda row: row[cost])
        marker, style = STYLES[sampler]
        axis.plot(
            [row[cost] for row in points],
            [measure(row) for row in points],
            marker=marker,
            markersize=11 if style == "none" else 5,
            linestyle=style,
            linewidth=1.2,
            color=COLOURS[model],
            markerfacecolor=COLOURS[model] if all(row["licensed"] for row in points) else "white",
            label=f"{model}: {sampler}",
        )


def _scatter(axis: Any, rows: Sequence[Record]) -> None:
    """Every measurement of whole chunks, sharper draws included: bits against Self-BLEU-4."""
    for row in rows:
        if row["key"]["task"] != "free":
            continue
        colour, plain = COLOURS[row["key"]["model"]], row["key"]["draw"] == PLAIN
        axis.plot(
            judge_bits(row),
            row["self_bleu_4"],
            marker=STYLES[row["key"]["sampler"]][0] if plain else "$T$",
            markersize=6 if plain else 7,
            color=colour,
            alpha=0.8,
            linestyle="none",
        )
