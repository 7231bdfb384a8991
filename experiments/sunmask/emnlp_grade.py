"""Sentences of the EMNLP2017 News models graded against the test file, and the report (commands of ``emnlp.py``).

Self-BLEU grows with the number of sentences: grades are kept for each number, and a report shows one number only.
"""

import argparse
import hashlib
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from anyfill.text.metrics import grade_text
from anyfill.text.ngram_tables import NgramTable
from benchmarks.common import write_result
from experiments.sunmask import emnlp_common as news
from experiments.sunmask import emnlp_plot

LEVELS = (0.10, 0.15, 0.20, 0.25, 0.30)
"""BLEU-5 at which curves are compared."""
TEXTS = {"news": "EMNLP2017 News, 9,000 sentences", "captions": "Image COCO captions, 59,000 sentences"}


def grade_sentences(sentences: list[list[str]], table: NgramTable, training: set[tuple[str, ...]]) -> dict[str, Any]:
    """The sheet of ``grade_text``, mean length, and which share of the sentences stands in the training part."""
    lengths = Counter(map(len, sentences))
    return {
        **asdict(grade_text(sentences, table)),
        "copied": sum(tuple(sentence) in training for sentence in sentences) / len(sentences),
        "words": sum(length * times for length, times in lengths.items()) / len(sentences),
        "without_end": lengths[news.LENGTH] / len(sentences),
    }


def grade(arguments: argparse.Namespace) -> None:
    """Every file of sentences, and as many real ones."""
    out, corpus = arguments.out, news.load_news(arguments.data, arguments.set)
    path = out / "grades.json"
    grades: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    table, training = NgramTable.of(corpus.test), {tuple(sentence) for sentence in corpus.train}
    for one in all_draws(out):
        if not (out / one["file"]).exists():
            continue
        count = min(arguments.first or one["sentences"], one["sentences"])
        mark = hashlib.sha256((out / one["file"]).read_bytes()).hexdigest()[:16]
        key = f"{one['file']}@{count}"
        if grades.get(key, {}).get("sha256") == mark:
            continue
        sentences = news.read_sentences(out / one["file"])[:count]
        kept = {name: one[name] for name in ("label", "recipe", "temperature", "passes", "seconds", "rounds")}
        found = grade_sentences(sentences, table, training)
        grades[key] = {**kept, "sha256": mark, **found, "examples": list(map(" ".join, sentences[:3]))}
        news.write_json(path, grades)
        bleu, own = found["bleu"][-1], found["self_bleu"][-1]
        print(f"{key}: BLEU-5 {bleu:.4f}, Self-BLEU-5 {own:.4f}, copied {found['copied']:.4f}", flush=True)
    for count in {one["sentences"] for one in grades.values()}:
        if f"real@{count}" not in grades:
            real = [*corpus.train, *corpus.valid][:count]
            grades[f"real@{count}"] = {"label": "real text", **grade_sentences(real, table, set())}
            news.write_json(path, grades)


def report(arguments: argparse.Namespace) -> None:
    """results/sunmask/emnlp.json and its picture, of files of one number of sentences."""
    out = arguments.out
    grades: dict[str, dict[str, Any]] = json.loads((out / "grades.json").read_text())
    drawn = [one for one in grades.values() if one["label"] != "real text"]
    times = Counter(one["sentences"] for one in drawn)
    count = arguments.sentences or max(times, key=lambda number: (times[number], number))
    curves: dict[str, list[emnlp_plot.Point]] = {}
    for one in sorted(drawn, key=lambda one: (one["recipe"] in news.MARKOV, one["label"], -one["temperature"])):
        if one["sentences"] == count:
            point = emnlp_plot.Point(one["bleu"][-1], one["self_bleu"][-1], count, one["temperature"])
            curves.setdefault(one["label"], []).append(point)
    real = grades[f"real@{count}"]
    marks = {"real text": (emnlp_plot.Point(real["bleu"][-1], real["self_bleu"][-1], count),)}
    if (
        arguments.set == "news" and count == emnlp_plot.PUBLISHED["MLE"][0].sentences
    ):  # beside another number their Self-BLEU would say nothing
        marks |= {f"{name} (other training data)": points for name, points in emnlp_plot.PUBLISHED.items()}
    found = {
        "what": f"models of {TEXTS[arguments.set]}: not comparable with published points",
        "sentences": count,
        "bits_per_word": _by_label(out, "bits"),
        "training": _by_label(out, "train"),
        "draws": all_draws(out),
        "self_bleu_5_at_bleu_5": {
            name: {f"{level:g}": emnlp_plot.self_bleu_at(points, level) for level in LEVELS}
            for name, points in curves.items()
        },
        "curves": {name: [asdict(point) for point in points] for name, points in curves.items()},
        "marks": {name: [asdict(point) for point in points] for name, points in marks.items()},
        "grades": {key: one for key, one in grades.items() if one["sentences"] == count},
    }
    path = write_result(arguments.name, found)
    title = f"{TEXTS[arguments.set]} to learn from: quality against variety"
    emnlp_plot.draw_sweep(curves, path.with_suffix(".png"), marks=marks, title=title)
    for name, points in curves.items():
        for point in points:
            print(f"{name:>16} t {point.temperature:<5g} BLEU-5 {point.bleu:.4f}  Self-BLEU-5 {point.self_bleu:.4f}")
    print(f"wrote {path.name} and {path.with_suffix('.png').name} to {path.parent}/")


def all_draws(out: Path) -> list[dict[str, Any]]:
    """What is recorded of each file of sentences."""
    return [one for lines in sorted(out.glob("*.draws.jsonl")) for one in news.recorded(lines)]


def _by_label(out: Path, what: str) -> dict[str, Any]:
    """LABEL.WHAT.json of each label."""
    end = f".{what}.json"
    return {path.name.removesuffix(end): json.loads(path.read_text()) for path in sorted(out.glob(f"*{end}"))}
