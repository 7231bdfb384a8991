"""Scores of ``experiments.gmlm.table1_all``: results/gmlm/table1_all.json, and tables.

    python -m experiments.gmlm.table1_all_scores OUT --data DATA [--json FILE]

OUT has results.WAY.tar.gz of both directions, DATA what ``table1_all_data`` made. For each direction:

    systems       every test and way of decoding: BLEU with its interval, chrF, stutter, length, passes that rows took
    order         the methods by BLEU, for each test, kind of pairs and number of passes, each with its distance to the
                  one behind it
    to_teacher    every row less the teacher's with its beam of 5, on the same test
    distillation  each method on distilled pairs less the same on raw ones
    told          exact log p of references, holes, lossless speculation
    training      updates, seconds, pairs, by step

Differences are by paired bootstrap over sentences, 500 resamples. "published_bleu" is of lower-cased text in Moses's
tokens, of Multi30k.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from anyfill.disk import write_bytes
from anyfill.translation.metrics import compared, evaluated
from benchmarks.common import RESULTS, environment
from experiments.gmlm.ablation import notes_in
from experiments.gmlm.methods_scores import KINDS, TOLD, summed
from experiments.gmlm.schedule import PASSES
from experiments.gmlm.table1_all import ONE_PASS, PARALLEL, TEACHER, TESTS
from experiments.gmlm.table1_all_data import WAYS

Row = dict[str, Any]


def name_of(step: str, one: Row) -> str:
    """What a row is called on its test."""
    if step == ONE_PASS:
        return step
    if step.startswith(("autoregressive", TEACHER)):
        return f"{step} beam {one['beam']}"
    return f"{step} T{one['passes']} L{one['lengths']}"


def system_at(method: str, kind: str, passes: int) -> str:
    """A method's main row: five lengths, or a beam of five; the one-pass model's, greedily, is of raw pairs."""
    if method == "autoregressive":
        return f"{TEACHER} beam 5" if kind == "raw" else "autoregressive-distilled beam 5"
    if method == ONE_PASS:
        return ONE_PASS if kind == "raw" else ""
    return f"{method}-{kind} T{passes} L5"


def scored(notes: dict[str, Row], tests: dict[str, list[list[str]]], language: str) -> Row:
    """Everything of one direction."""
    from experiments.gmlm.scores import published

    texts: dict[str, dict[str, list[str]]] = {test: {} for test in TESTS}
    systems: list[Row] = []
    for step, note in notes.items():
        for one in note.get("translations", []):
            references = [pair[1] for pair in tests[one["test"]]][: len(one["texts"])]
            name = name_of(step, one)
            texts[one["test"]][name] = one["texts"]
            keys = ("test", "passes", "lengths", "beam", "length_penalty", "mean_passes", "seconds")
            row = {"system": name, "step": step, **{key: one[key] for key in keys}}
            row |= evaluated(one["texts"], references)
            if one["test"] == "multi30k":
                row["published_bleu"] = published(one["texts"], references, language)
            systems.append(row)
            print(f"{language} {one['test']:10} {name:32} {row['bleu']:.2f}", flush=True)
    found: Row = {"systems": systems, "order": {}, "to_teacher": [], "distillation": []}
    bleu = {(row["test"], row["system"]): row["bleu"] for row in systems}
    for test, made in texts.items():
        references = [pair[1] for pair in tests[test]][: len(next(iter(made.values()), []))]
        found["order"] |= ordered(test, made, bleu, references)
        teacher = system_at("autoregressive", "raw", 4)
        if teacher in made:
            found["to_teacher"] += [
                {"test": test, "system": name, **compared(some, made[teacher], references)}
                for name, some in made.items()
                if name != teacher
            ]
        for method in (*PARALLEL, "autoregressive"):
            for passes in PASSES if method in PARALLEL else (0,):
                raw, own = (system_at(method, kind, passes) for kind in KINDS)
                if raw in made and own in made:
                    gap = compared(made[own], made[raw], references)
                    found["distillation"].append({"test": test, "method": method, "passes": passes, **gap})
    found["told"] = {step: summed(note) for step, note in notes.items() if any(key in note for key in TOLD)}
    about = ("validation", "distillation", "multi30k_valid", "better_than")
    found["training"] = {
        step: {"recipe": note["recipe"], "data": note["data"], **note.get("training", {})}
        | {key: note[key] for key in about if key in note}
        for step, note in notes.items()
    }
    return found


def ordered(test: str, made: dict[str, list[str]], bleu: dict[tuple[str, str], float], references: list[str]) -> Row:
    """The methods by BLEU, of one test."""
    found: Row = {}
    for kind in KINDS:
        for passes in PASSES:
            names = [system_at(one, kind, passes) for one in (*PARALLEL, "autoregressive", ONE_PASS)]
            names = sorted((name for name in names if name in made), key=lambda name: -bleu[test, name])
            here: list[Row] = [{"system": name, "bleu": bleu[test, name]} for name in names]
            for one, name, behind in zip(here, names, names[1:]):
                one["above_the_next"] = compared(made[name], made[behind], references)
            if here:
                found[f"{test} {kind} T{passes}"] = here
    return found


def between(gap: Row | None) -> str:
    """A difference and its interval."""
    return "" if gap is None else f"{gap['difference']:+.1f} [{gap['low']:+.1f}, {gap['high']:+.1f}]"


def table(way: str, found: Row) -> str:
    """Markdown: Multi30k by kind of pairs, then the other tests, distillation, and what was told."""
    rows = {(row["test"], row["system"]): row for row in found["systems"]}
    lines: list[str] = []
    for kind in KINDS:
        lines += [f"\n| {way}, {kind} pairs, Multi30k | updates | 1 pass | 2 | 4 | 10 | above the next at 4 | chrF |"]
        lines[-1] += " stutter % | length | rows took | Tatoeba, 4 | catalogues, 4 |"
        lines.append("|" + "---|" * 13)
        for one in found["order"].get(f"multi30k {kind} T4", []):
            row = rows["multi30k", one["system"]]
            cells = [row["step"], f"{found['training'][row['step']].get('steps', 0):,}"]
            for passes in PASSES:
                name = one["system"].replace(" T4 ", f" T{passes} ")
                at = rows.get(("multi30k", name)) if name != one["system"] or passes == 4 else None
                cells.append("" if at is None else f"{at['bleu']:.2f} [{at['bleu_low']:.2f}, {at['bleu_high']:.2f}]")
            cells += [between(one.get("above_the_next")), f"{row['chrf']:.1f}", f"{row['stutter']:.2f}"]
            cells += [f"{row['length_ratio']:.2f}", f"{row['mean_passes']:.1f}"]
            for test in TESTS[1:]:
                at = rows.get((test, one["system"]))
                cells.append("" if at is None else f"{at['bleu']:.2f} [{at['bleu_low']:.2f}, {at['bleu_high']:.2f}]")
            lines.append("| " + " | ".join(cells) + " |")
    lines.append(f"\n{way}, distilled less raw:")
    for one in found["distillation"]:
        at = f"{one['test']} {one['method']}" + (f" T{one['passes']}" if one["passes"] else "")
        lines.append(f"  {at:32} {between(one)}")
    for name, one in found["told"].items():
        if "likelihood" in one:
            told = one["likelihood"]
            lines.append(f"{name}: {told['nats_per_piece']:.3f} nats a piece of {told['sentences']} references")
        if "speculative" in one:
            guess = one["speculative"]
            lines.append(f"{name}: speculation {guess['mean_passes']:.1f} passes of {guess['one_by_one']:.1f}, ")
            lines[-1] += f"{guess['same']:.3f} the same"
        if "holes" in one:
            both = [one["holes"][key] for key in ("right_source", "other_source")]
            said = ", ".join(f"{s['pieces_right']:.3f} [{s['low']:.3f}, {s['high']:.3f}]" for s in both)
            lines.append(f"{name}: pieces of holes right, with the source and with another's: {said}")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder of results.WAY.tar.gz")
    parser.add_argument("--data", type=Path, required=True, help="folder that table1_all_data made")
    parser.add_argument("--prefix", default="", help="of the files' names")
    parser.add_argument("--json", type=Path, default=RESULTS / "gmlm" / "table1_all.json")
    options = parser.parse_args(argv)
    document: Row = {"name": "gmlm/table1_all", "scored_on": environment("cpu"), "trained_on": "one NVIDIA H200"}
    document["data"] = json.loads((options.data / "data.json").read_text(encoding="utf-8"))
    for way in WAYS:
        path = options.out / f"{options.prefix}results.{way}.tar.gz"
        if not path.exists():
            print(f"{way}: nothing came back")
            continue
        tests = json.loads((options.data / f"tests-{way}.json").read_text(encoding="utf-8"))
        notes = notes_in([path])
        latency = notes.pop("latency", None)
        document[way] = scored(notes, tests, way.split("-")[1])
        if latency is not None:
            document["latency"] = latency
        print(table(way, document[way]), flush=True)
    write_bytes((json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode(), options.json)


if __name__ == "__main__":
    main()
