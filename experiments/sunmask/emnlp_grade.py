"""Sentences of the EMNLP2017 News models graded against the test file, and the report (commands of ``emnlp.py``).

Self-BLEU grows with the number of sentences: grades are kept for each number, and a report shows one number only.
"""

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from anyfill.text.metrics import grade_text
from anyfill.text.ngram_tables import NgramTable
from benchmarks.common import write_result
from experiments.sunmask import emnlp_common as news
from experiments.sunmask import emnlp_plot
from experiments.sunmask.emnlp_errors import left_out

LEVELS = tuple(n / 20 for n in range(2, 14))
"""BLEU-5 at which curves are compared, 0.1 to 0.65."""
TEXTS = {"news": "EMNLP2017 News, 9,000 sentences", "captions": "Image COCO captions, 59,000 sentences"}


def grade_sentences(
    sentences: list[list[str]], table: NgramTable, training: set[tuple[str, ...]], length: int = news.LENGTH
) -> dict[str, Any]:
    """The sheet of ``grade_text``, mean length, and which share of the sentences stands in the training part.

    ``without`` are BLEU-5 and Self-BLEU-5 without each of 20 groups of the sentences, for errors; None of a few.
    """
    lengths = Counter(map(len, sentences))
    return {
        **asdict(grade_text(sentences, table)),
        "without": left_out(sentences, table),
        "copied": sum(tuple(sentence) in training for sentence in sentences) / len(sentences),
        "words": sum(length * times for length, times in lengths.items()) / len(sentences),
        "without_end": lengths[length] / len(sentences),
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
        if grades.get(key, {}).get("sha256") == mark and "without" in grades[key]:
            continue
        sentences = news.read_sentences(out / one["file"])[:count]
        kept = {name: one[name] for name in ("label", "recipe", "temperature", "passes", "seconds", "rounds")}
        found = grade_sentences(sentences, table, training, corpus.length)
        grades[key] = {**kept, "sha256": mark, **found, "examples": list(map(" ".join, sentences[:3]))}
        news.write_json(path, grades)
        bleu, own = found["bleu"][-1], found["self_bleu"][-1]
        print(f"{key}: BLEU-5 {bleu:.4f}, Self-BLEU-5 {own:.4f}, copied {found['copied']:.4f}", flush=True)
    for count in {one["sentences"] for one in grades.values()}:
        if f"real@{count}" not in grades:
            real = [*corpus.train, *corpus.valid][:count]
            grades[f"real@{count}"] = {"label": "real text", **grade_sentences(real, table, set(), corpus.length)}
            news.write_json(path, grades)


def report(arguments: argparse.Namespace) -> None:
    """results/sunmask/emnlp.json and its picture, of files of one number of sentences."""
    out, before = arguments.out, Before(arguments.before, arguments.mark)
    grades = before.grades(json.loads((out / "grades.json").read_text()))
    drawn = [one for one in grades.values() if one["label"] != "real text"]
    times = Counter(one["sentences"] for one in drawn)
    count = arguments.sentences or max(times, key=lambda number: (times[number], number))
    curves = curves_of([one for one in drawn if one["sentences"] == count])
    marks = {"real text": (point_of(grades[f"real@{count}"]),)}
    if (
        arguments.set == "news" and count == emnlp_plot.PUBLISHED["MLE"][0].sentences
    ):  # beside another number their Self-BLEU would say nothing
        marks |= {f"{name} (other training data)": points for name, points in emnlp_plot.PUBLISHED.items()}
    found = {
        "what": f"models of {TEXTS[arguments.set]}: not comparable with published points",
        "sentences": count,
        "bits_per_word": before.records(_by_label(out, "bits"), "bits"),
        "training": before.records(_by_label(out, "train"), "train"),
        "draws": [*before.draws(all_draws(out)), *all_draws(out)],
        "self_bleu_5_at_bleu_5": read_off(curves, emnlp_plot.self_bleu_at),
        "its_standard_error": read_off(curves, emnlp_plot.self_bleu_error),
        "curves": {name: [asdict(point) for point in points] for name, points in curves.items()},
        "marks": {name: [asdict(point) for point in points] for name, points in marks.items()},
        "grades": {  # what errors are computed from stands with the curves
            key: {name: value for name, value in one.items() if name != "without"}
            for key, one in grades.items()
            if one["sentences"] == count
        },
    }
    path = write_result(arguments.name, found)
    title = f"{TEXTS[arguments.set]} to learn from: quality against variety"
    emnlp_plot.draw_sweep(curves, path.with_suffix(".png"), marks=marks, title=title)
    for name, points in curves.items():
        for point in points:
            bleu, own = (f"{getattr(point, one):.4f} ± {point.bar(one):.4f}" for one in ("bleu", "self_bleu"))
            at = f"t {point.temperature:g}" if point.rounds is None else f"{point.rounds} rounds"
            print(f"{name:>16} {at:<10} BLEU-5 {bleu}  Self-BLEU-5 {own}")
    print(f"wrote {path.name} and {path.with_suffix('.png').name} to {path.parent}/")


@dataclass(frozen=True, slots=True)
class Before:
    """Records of an earlier run that are shown beside those of a new one; labels that both have are marked there.

    Attributes:
        folder: of the earlier run, or None.
        mark: what stands behind such a label.
    """

    folder: Path | None
    mark: str = "before"

    def _named(self, label: str, new: Container[str]) -> str:
        return f"{label}, {self.mark}" if label in new else label

    def grades(self, new: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Those of the new run with the earlier ones."""
        if self.folder is None:
            return new
        labels = {one["label"] for one in new.values()} - {"real text"}
        old: dict[str, dict[str, Any]] = json.loads((self.folder / "grades.json").read_text())
        marked = {
            f"{self.mark}: {key}" if one["label"] in labels else key: {
                **one,
                "label": self._named(one["label"], labels),
            }
            for key, one in old.items()
        }
        return marked | new

    def records(self, new: dict[str, Any], what: str) -> dict[str, Any]:
        """Likewise, LABEL.WHAT.json."""
        old = {} if self.folder is None else _by_label(self.folder, what)
        return {self._named(label, new): one for label, one in old.items()} | new

    def draws(self, new: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """What is recorded of earlier files."""
        labels = {one["label"] for one in new}
        old = [] if self.folder is None else all_draws(self.folder)
        return [{**one, "label": self._named(one["label"], labels)} for one in old]


def point_of(one: dict[str, Any]) -> emnlp_plot.Point:
    """A grade as a point of a curve."""
    return emnlp_plot.Point(
        one["bleu"][-1], one["self_bleu"][-1], one["sentences"], one.get("temperature"), None, one.get("without")
    )


def curves_of(grades: Sequence[dict[str, Any]]) -> dict[str, list[emnlp_plot.Point]]:
    """A curve through the temperatures of each label; one through the rounds of a temperature, if there are many.

    The label's own number of rounds is among the latter.
    """
    curves: dict[str, list[emnlp_plot.Point]] = {}
    several: dict[str, list[emnlp_plot.Point]] = {}
    own = {(one["label"], one["temperature"]): one for one in grades}
    for one in sorted(grades, key=lambda one: (one["recipe"] in news.MARKOV, one["label"], -one["temperature"])):
        rounds, label = one["rounds"], one["label"].rpartition("_")[0]
        if rounds is None or one["label"] != news.label_of(label, rounds):
            curves.setdefault(one["label"], []).append(point_of(one))
            continue
        name, usual = f"{label}, t = {one['temperature']:g}", own.get((label, one["temperature"]))
        first = [] if usual is None else [replace(point_of(usual), rounds=usual["rounds"])]
        several.setdefault(name, first).append(replace(point_of(one), rounds=rounds))
    rising = {name: sorted(points, key=lambda point: point.rounds or 0) for name, points in several.items()}
    return curves | rising


def read_off(
    curves: dict[str, list[emnlp_plot.Point]], reading: Callable[[Sequence[emnlp_plot.Point], float], float | None]
) -> dict[str, dict[str, float | None]]:
    """What is read off every curve through temperatures at every level."""
    return {
        name: {f"{level:g}": reading(points, level) for level in LEVELS}
        for name, points in curves.items()
        if all(point.rounds is None for point in points)
    }


def all_draws(out: Path) -> list[dict[str, Any]]:
    """What is recorded of each file of sentences."""
    return [one for lines in sorted(out.glob("*.draws.jsonl")) for one in news.recorded(lines)]


def _by_label(out: Path, what: str) -> dict[str, Any]:
    """LABEL.WHAT.json of each label."""
    end = f".{what}.json"
    return {path.name.removesuffix(end): json.loads(path.read_text()) for path in sorted(out.glob(f"*{end}"))}
