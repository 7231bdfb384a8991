"""Scores of ``experiments.gmlm.methods``: rows with intervals, the order of the methods, what distillation is worth.

    systems       BLEU (published tokens) with its interval, chrF, stutter, length error, distinct, of every decoding
    gaps          of every system to PaDIR at 4 passes on raw and on distilled pairs, and to the teacher
    order         the methods by BLEU for each kind of pairs and each number of passes, with the difference of each to
                  the one behind it
    distillation  each method on distilled pairs less the same on raw ones, for each number of passes
    control       BLEU of the small one-pass model's translations, each against the reference of the sentence before it
    likelihood    nats a piece of references where a model has a likelihood; holes: pieces of references filled right

Differences are by paired bootstrap over sentences, 500 resamples.
"""

from typing import Any

import numpy as np

from anyfill.translation.metrics import compared, evaluated
from benchmarks.common import environment
from experiments.gmlm.ablation import TEACHER, name_of, scored
from experiments.gmlm.schedule import PASSES

KINDS = ("raw", "distilled")
METHODS = ("padir", "cmlm", "disco", "sundae")
TOLD = ("likelihood", "speculative", "holes")
ONE_PASS = ("one-pass", "one-pass-on")
ON_CPU = "one-pass-cpu"
"""Of ``experiments.gmlm.methods_cpu``: has a row, and no place in the order."""


def system_at(method: str, kind: str, passes: int) -> str:
    """What a method's row with five lengths is called; autoregression's, with its beam of 5, whatever the passes."""
    if method == "autoregressive":
        return TEACHER if kind == "raw" else "autoregressive-distilled beam 5"
    if method in ONE_PASS:
        return method if kind == "distilled" else ""
    return f"{method}-{kind} T{passes} L5"


def texts_of(notes: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Translations by the name of their row."""
    return {name_of(note, one): one["texts"] for note in notes.values() for one in note.get("translations", [])}


def ordered(rows: dict[str, dict[str, Any]], texts: dict[str, list[str]], references: list[str]) -> dict[str, Any]:
    """The methods by BLEU, for each kind of pairs and each number of passes."""
    found: dict[str, Any] = {}
    for kind in KINDS:
        for passes in PASSES:
            names = [system_at(one, kind, passes) for one in (*METHODS, "autoregressive", *ONE_PASS)]
            names = sorted((name for name in names if name in rows), key=lambda name: -rows[name]["bleu"])
            here: list[dict[str, Any]] = [{"system": name, "bleu": rows[name]["bleu"]} for name in names]
            for one, name, behind in zip(here, names, names[1:]):
                one["above_the_next"] = compared(texts[name], texts[behind], references, tokenize="none")
            found[f"{kind} T{passes}"] = here
    return found


def by_distillation(texts: dict[str, list[str]], references: list[str]) -> list[dict[str, Any]]:
    """Distilled less raw."""
    found: list[dict[str, Any]] = []
    for method in (*METHODS, "autoregressive"):
        for passes in PASSES if method in METHODS else (0,):
            raw, distilled = (system_at(method, kind, passes) for kind in KINDS)
            if raw in texts and distilled in texts:
                gap = compared(texts[distilled], texts[raw], references, tokenize="none")
                found.append({"method": method, "passes": passes, "system": distilled, "against": raw, **gap})
    return found


def summed(note: dict[str, Any]) -> dict[str, Any]:
    """Log p and holes of a model, with 95 % bootstrap intervals over sentences instead of single sentences."""
    random = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for name in TOLD:
        if name in note:
            found[name] = {key: value for key, value in note[name].items() if key != "nats"}
    for name in ("right_source", "other_source"):
        if "holes" in note:
            each = np.array(note["holes"][name]["each"], dtype=np.float64) / note["holes"]["pieces"]
            means = each[random.integers(len(each), size=(500, len(each)))].mean(1)
            low, high = np.quantile(means, [0.025, 0.975]).tolist()
            own = {key: value for key, value in note["holes"][name].items() if key != "each"}
            found["holes"][name] = own | {"low": low, "high": high}
    return found


def document(notes: dict[str, dict[str, Any]], references: list[str]) -> dict[str, Any]:
    """Everything that is kept."""
    against = (*(system_at("padir", kind, 4) for kind in KINDS), TEACHER)
    found = scored(notes, references, against)
    texts, rows = texts_of(notes), {row["system"]: row for row in found["systems"]}
    found |= {"order": ordered(rows, texts, references), "distillation": by_distillation(texts, references)}
    found["told"] = {name: summed(note) for name, note in notes.items() if any(key in note for key in TOLD)}
    if ON_CPU in texts:  # how much of it is what any caption shares with any other
        shifted = [*texts[ON_CPU][1:], texts[ON_CPU][0]]
        found["control"] = {
            "system": f"{ON_CPU}, of the next sentence",
            **evaluated(shifted, references, tokenize="none"),
        }
    where = {name: "one thread of a CPU" if name == ON_CPU else "one NVIDIA H200" for name in notes}
    return {"name": "gmlm/table1_small", "scored_on": environment("cpu"), "trained_on": where, **found}


def table(found: dict[str, Any]) -> str:
    """A table for each kind of pairs, ordered by BLEU at 4 passes, and what else was told."""
    rows = {row["system"]: row for row in found["systems"]}
    lines: list[str] = []
    for kind in KINDS:
        lines += [f"\n| {kind} pairs | updates | 1 pass | 2 | 4 | 10 | above the next at 4 | chrF | stutter % |"]
        lines[-1] += " length error | distinct |"
        lines.append("|" + "---|" * 11)
        for one in found["order"][f"{kind} T4"]:
            row = rows[one["system"]]
            cells = [row["step"], f"{found['training'][row['step']].get('steps', 0):,}"]
            for passes in PASSES:
                at = (
                    rows.get(system_at(row["step"].removesuffix(f"-{kind}"), kind, passes))
                    if "T4" in row["system"]
                    else None
                )
                at = row if passes == 4 else at
                cells.append("" if at is None else f"{at['bleu']:.2f}")
            cells[4] += f" [{row['bleu_low']:.2f}, {row['bleu_high']:.2f}]"
            gap = one.get("above_the_next")
            cells.append("" if gap is None else f"{gap['difference']:+.1f} [{gap['low']:+.1f}, {gap['high']:+.1f}]")
            cells += [
                f"{row['chrf']:.1f}",
                f"{row['stutter']:.2f}",
                f"{row['length_error']:.2f}",
                f"{row['distinct']:.3f}",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    if ON_CPU in rows:
        row = rows[ON_CPU]
        said = f"{row['bleu']:.2f} [{row['bleu_low']:.2f}, {row['bleu_high']:.2f}], chrF {row['chrf']:.1f}"
        lines.append(f"\n{ON_CPU}: {said}, {found['training'][ON_CPU].get('steps', 0):,} updates")
        lines.append(f"{found['control']['system']}: {found['control']['bleu']:.2f}")
    lines.append("\ndistilled less raw:")
    for one in found["distillation"]:
        at = f"{one['method']} T{one['passes']}" if one["passes"] else one["method"]
        lines.append(f"  {at:16} {one['difference']:+.2f} [{one['low']:+.2f}, {one['high']:+.2f}]")
    for name, one in found["told"].items():
        if "likelihood" in one:
            told = one["likelihood"]
            lines.append(f"{name}: {told['nats_per_piece']:.3f} nats a piece of {told['sentences']} references")
        if "speculative" in one:
            guessed = one["speculative"]
            lines.append(
                f"{name}: speculative {guessed['mean_passes']:.1f} passes of {guessed['one_by_one']:.1f}, "
                f"{guessed['same']:.3f} of the translations the same"
            )
        if "holes" in one:
            shares = [one["holes"][key] for key in ("right_source", "other_source")]
            said = ", ".join(f"{s['pieces_right']:.3f} [{s['low']:.3f}, {s['high']:.3f}]" for s in shares)
            lines.append(f"{name}: pieces of holes right, with the source and with another's: {said}")
    return "\n".join(lines)
