"""Score what a sitting translated: BLEU, chrF, stutter, intervals, differences; results/gmlm/table1.json and a plot.

    python -m experiments.gmlm.scores RESULTS... --tests FOLDER [--onto table1.json]

RESULTS are folders or files of ``experiments.gmlm.sitting`` (results/NAME.DIRECTION.json), FOLDER has its tests. With
``--onto`` rows of an earlier table that are not scored anew stay as they are. Beside SacreBLEU's own (13a tokens, mixed
case) stands ``bleu_published``: of lower-cased text in Moses's tokens, as the published small transformers on Multi30k
are scored. Differences are by paired bootstrap over sentences, 500 resamples: every system against the teacher that
distilled its test's kind of sentences and against the tiny teachers, and in each group of equal
seconds against PaDIR at 4 passes.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from sacremoses import MosesPunctNormalizer, MosesTokenizer

from anyfill.disk import write_bytes
from anyfill.translation.metrics import compared, evaluated, sacrebleu_metrics
from benchmarks.common import RESULTS, environment

MAIN = "padir-distilled T4 L5"
"""What the others of the comparison are set against: PaDIR at 4 passes, with five lengths."""


TINY = ("tiny", "tutor")
"""Teachers of Multi30k alone, of the third and the fourth sitting."""
ABOUT = ("step", "recipe", "data", "corpus", "direction", "training", "validation", "distillation")
"""What a note says of all its translations."""


def in_published_tokens(texts: list[str], language: str) -> list[str]:
    """Normalised, lower-cased, cut into Moses's tokens."""
    normal, tokens = MosesPunctNormalizer(lang=language), MosesTokenizer(lang=language)
    return [" ".join(tokens.tokenize(normal.normalize(text.lower()), escape=False)) for text in texts]


def published(texts: list[str], references: list[str], language: str) -> float:
    """BLEU of lower-cased text in Moses's tokens."""
    bleu = sacrebleu_metrics().BLEU(tokenize="none", force=True)
    return bleu.corpus_score(in_published_tokens(texts, language), [in_published_tokens(references, language)]).score


def read(paths: list[Path]) -> list[dict[str, Any]]:
    """What was translated: one note for each system, test and way of decoding; the last file that has it counts."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for path in paths:
        for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
            note = json.loads(file.read_text(encoding="utf-8"))
            every = note.get("translations") or ([note] if "texts" in note else [])
            for one in every:
                about = {key: note.get(key) for key in ABOUT}
                row = about | one | {key: one.get(key, note.get(key, 0.0)) for key in ("reward", "prior")}
                keys = ("step", "direction", "test", "passes", "lengths", "beam", "reward", "prior")
                found[tuple(row[key] for key in keys)] = row
    return list(found.values())


def name_of(row: dict[str, Any]) -> str:
    """What a row is called."""
    if row["recipe"] in ("autoregressive", "deep_shallow"):
        return f"{row['step']} beam {row['beam']}"
    ranked = "".join(f" {key} {row[key]}" for key in ("reward", "prior") if row[key])
    return f"{row['step']} T{row['passes']} L{row['lengths']}{ranked}"


def scored(rows: list[dict[str, Any]], tests: Path) -> dict[str, Any]:
    """Systems with their scores, and differences on the same sentences."""
    systems: list[dict[str, Any]] = []
    outputs: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    trained: dict[str, Any] = {}
    references: dict[tuple[str, str], list[str]] = {}
    distilled_by = {
        row["direction"]: row["distillation"].get("multi30k_by", "teacher") for row in rows if row.get("distillation")
    }
    for row in rows:
        at = (row["direction"], row["test"])
        pairs = json.loads((tests / f"tests-{row['direction']}.json").read_text(encoding="utf-8"))[row["test"]]
        references[at] = [pair[1] for pair in pairs]
        outputs.setdefault(at, {})[name_of(row)] = row
        kept = ("step", "direction", "test", "passes", "lengths", "beam", "reward", "prior", "mean_passes", "seconds")
        score = evaluated(row["texts"], references[at])
        score["bleu_published"] = published(row["texts"], references[at], row["direction"][-2:])
        systems.append({"system": name_of(row)} | {key: row[key] for key in kept} | score)
        if row.get("training"):
            about = {key: row[key] for key in ("data", "validation", "distillation") if row.get(key)}
            trained[f"{row['step']} {row['direction']}"] = row["training"] | about
    gaps: list[dict[str, Any]] = []
    for at, by in outputs.items():
        named = f"{distilled_by.get(at[0], 'teacher') if at[1] == 'multi30k' else 'teacher'} beam 5"
        teacher = by.get(named)
        main = by.get(MAIN)
        others = {named: teacher, MAIN: main} | {f"{one} beam 5": by.get(f"{one} beam 5") for one in TINY}
        for name, row in by.items():
            for against, other in others.items():
                small = row.get("corpus") == "multi30k"
                if other is None or other is row or (other is main and not small):
                    continue
                gap = compared(row["texts"], other["texts"], references[at])
                gaps.append({"direction": at[0], "test": at[1], "system": name, "against": against} | gap)
    return {"systems": systems, "gaps": gaps, "training": trained}


def onto(earlier: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """An earlier table with what was found now; a row with the same name gives way."""
    merged: dict[str, Any] = {"training": earlier["training"] | found["training"]}
    for part, keys in (
        ("systems", ("system", "direction", "test")),
        ("gaps", ("system", "direction", "test", "against")),
    ):
        rows = {tuple(row[key] for key in keys): row for row in (*earlier[part], *found[part])}
        merged[part] = list(rows.values())
    return merged


def plot(found: dict[str, Any], path: Path) -> None:
    """BLEU on Multi30k against passes, with intervals; teachers as lines."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ways = sorted({row["direction"] for row in found["systems"]}, reverse=True)
    figure, axes = plt.subplots(1, len(ways), figsize=(5.2 * len(ways), 5), squeeze=False, constrained_layout=True)
    for axis, way in zip(axes[0], ways):
        here = [row for row in found["systems"] if row["direction"] == way and row["test"] == "multi30k"]
        names = dict.fromkeys(row["step"] for row in here if row["step"] not in ("teacher", "tuned", *TINY))
        for name in names:
            own = [row for row in here if row["step"] == name and row["lengths"] == 5]
            every = max((row["reward"] for row in own), default=0.0)
            reward = max((row["reward"] for row in own if row["passes"] == 1), default=every)
            own = sorted((row for row in own if row["reward"] == reward), key=lambda row: row["passes"])
            if not own or "beam" in own[0]["system"]:
                continue
            low = [row["bleu"] - row["bleu_low"] for row in own]
            high = [row["bleu_high"] - row["bleu"] for row in own]
            known = {
                "longer": "PaDIR, second sitting",
                "shipped": "PaDIR, first sitting",
                "third": "PaDIR, third sitting",
                "fourth": "PaDIR, fourth sitting",
                "mean": "PaDIR, mean of sittings' weights",
                "mean-shortened": "the same, written anew after repeats",
            }
            label = known.get(name, name)
            x = [row["passes"] for row in own]
            axis.errorbar(x, [row["bleu"] for row in own], [low, high], marker="o", capsize=2, label=label)
        for row in here:
            if row["system"] in ("teacher beam 5", "tuned beam 5", "tiny beam 5", "tutor beam 5"):
                style = {"teacher": ":", "tuned": "--", "tiny": "-.", "tutor": "-"}[row["step"]]
                axis.axhline(row["bleu"], color="0.4", linestyle=style, label=f"{row['step']} (AR), beam 5")
        axis.set(xscale="log", xticks=[1, 2, 4, 10], xticklabels=["1", "2", "4", "10"], xlabel="passes", title=way)
        axis.set_ylabel("BLEU, Multi30k test 2016")
        axis.minorticks_off()
        axis.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    figure.savefig(path, dpi=130)


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--tests", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=RESULTS / "gmlm" / "table1.json")
    parser.add_argument("--onto", type=Path, help="an earlier table whose rows stay")
    options = parser.parse_args(argv)
    found = scored(read(options.results), options.tests)
    if options.onto is not None:
        found = onto(json.loads(options.onto.read_text(encoding="utf-8")), found)
    document = {"name": "gmlm/table1", "scored_on": environment("cpu"), "trained_on": "one NVIDIA H200", **found}
    write_bytes((json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode(), options.out)
    plot(found, options.out.with_suffix(".png"))
    for row in found["systems"]:
        name = f"{row['direction']} {row['test']:9} {row['system']:36}"
        interval = f"{row['bleu']:.2f} [{row['bleu_low']:.2f}, {row['bleu_high']:.2f}]"
        other = f"published tokens {row['bleu_published']:.2f} chrF {row['chrf']:.1f} stutter {row['stutter']:.2f}"
        print(name, interval, other, f"length {row['length_ratio']:.2f}")


if __name__ == "__main__":
    main()
