"""How far a model of text disagrees with itself: total variation between its two readings of a blank.

    python -m benchmarks.text_consistency --sentences deu-eng.tsv.gz [--model FOLDER] [--blanks 200] [--fit-on 100]
                                           [--fill FOLDER | --spans]

Blanks of one and of two codes, as many of each, at places drawn with the seed in held-out sentences (those of
``benchmarks.cloze``); what is compared stands in ``anyfill.text.consistency``. Writes results/text_consistency.json.

That is the network. With ``--fill FOLDER`` the library is asked instead, as users ask it: how far the shares of all
fills that ``fill`` compares are from the posterior of p(text) (``benchmarks.text_reference``, kept in the folder), what
is not compared counted as missing. Writes results/text_fill_consistency.json.

With ``--spans`` one text is read in two ways, left to right and a span of 1, 2, 4 or 8 codes last, given both sides:

    gap   log p(text) - log p(around) - log p(span | around)                    nats; 0 for a true joint

Writes results/text_span_consistency.json.

With ``--fit-on`` as many blanks of each number of codes are asked in sentences of the fitting part that are not among
the others, to tell what the gap is made of. There powers of greatest mean log share of the right answer are fitted: of
the direct answer D alone, of the joint J alone, and of both together (the pool D^d J^j). And powers of least median
variation, from a list. All of them are then applied to the blanks that are asked.
"""

import argparse
import random
import statistics
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anyfill import text
from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.questions import Question
from anyfill.text.consistency import BlankReadings, blank_readings
from anyfill.text.encoding import boundary, encode_text
from benchmarks.cloze import fitted_weights, is_for_fitting, is_held_out, read_sentences
from benchmarks.common import spread, write_result
from benchmarks.text_fill_law import FillLaw, fill_law, summary

POWERS = (0.25, 0.35, 0.5, 0.7, 1.0)
SPANS = (1, 2, 4, 8)


class Asked(NamedTuple):
    """A blank of ``size`` codes at ``start`` of codes (L,)."""

    codes: Tensor
    start: int
    size: int


class Answered(NamedTuple):
    """Both readings, and the number of the right answer among theirs; None = it was not listed."""

    said: BlankReadings
    right: int | None


def answered(model: Model, one: Asked) -> Answered:
    """Both readings of a blank."""
    said = blank_readings(model, one.codes, one.start, one.size)
    same = (said.answers == one.codes[one.start : one.start + one.size]).all(1).nonzero().flatten().tolist()
    return Answered(said, same[0] if same else None)


def fitted(some: list[Answered]) -> dict[str, list[float]]:
    """Powers d and j that fit these blanks, of each way."""
    known = [(torch.stack([one.said.direct, one.said.joint]), one.right) for one in some if one.right is not None]
    direct = fitted_weights([(each[:1], right) for each, right in known])
    joint = fitted_weights([(each[1:], right) for each, right in known])
    nearest = min(product(POWERS, POWERS), key=lambda way: statistics.median(one.said.variation(*way) for one in some))
    return {"each fitted": [*direct, *joint], "pool": fitted_weights(known), "nearest": list(nearest)}


def measured(some: list[Answered], powers: dict[str, list[float]]) -> dict[str, Any]:
    """How far apart the readings are, as they are and at these powers; how much the right answer has of each."""
    found = [one.said.variation() for one in some]
    quarters = statistics.quantiles(found, n=4)
    results: dict[str, Any] = {
        "blanks": len(found),
        "median": statistics.median(found),
        "quartiles": [quarters[0], quarters[2]],
        "mean": statistics.mean(found),
        "covered": statistics.mean(float(one.said.direct.exp().sum()) for one in some),
        "right_listed": sum(one.right is not None for one in some),
        "log_share_of_right": {"direct": _right(some, 1.0, 0.0), "joint": _right(some, 0.0, 1.0)},
    }
    for name, (direct, joint) in powers.items():
        if name == "pool":
            said = {"log_share_of_right": _right(some, direct, joint)}
        else:
            said = {
                "median": statistics.median(one.said.variation(direct, joint) for one in some),
                "log_share_of_right": {"direct": _right(some, direct, 0.0), "joint": _right(some, 0.0, joint)},
            }
        results[name] = {"powers": [direct, joint], **said}
    return results


def _right(some: list[Answered], direct: float, joint: float) -> float:
    """The mean log share of the right answer by D^direct J^joint, where it is listed."""
    laws = [(one.right, direct * one.said.direct + joint * one.said.joint) for one in some]
    return statistics.mean(float(law.log_softmax(0)[right]) for right, law in laws if right is not None)


def span_gap(model: Model, one: Asked) -> tuple[float, float]:
    """log p of a text from left to right less that of it with a span last, and log p of the span so, nats."""
    x = torch.zeros(1, model.variables, dtype=torch.int64)
    x[0, : len(one.codes)] = one.codes
    place = torch.arange(model.variables).unsqueeze(0)
    text_, span = place < len(one.codes), (place >= one.start) & (place < one.start + one.size)
    around, nothing = text_ & ~span, torch.zeros_like(text_)
    questions = (Question(nothing, text_), Question(nothing, around), Question(around, span))
    whole, outside, inside = (float(log_prob(model, x, question).value) for question in questions)
    return whole - outside - inside, inside


def span_summary(gaps: list[tuple[float, float]], size: int) -> dict[str, Any]:
    """Of spans of one size: how far both ways are apart, and which is the likelier."""
    found = [gap for gap, _ in gaps]
    quarters = statistics.quantiles([abs(gap) for gap in found], n=4)
    return {
        "spans": len(found),
        "median_gap": quarters[1],
        "quartiles": [quarters[0], quarters[2]],
        "mean_left_to_right_less_span_last": statistics.mean(found),
        "stderr": statistics.stdev(found) / len(found) ** 0.5,
        "nats_a_code_given_both_sides": -statistics.mean(inside for _, inside in gaps) / size,
    }


def _asked_of_fill(loaded: text.TextModel, folder: Path, one: tuple[int, Asked]) -> FillLaw:
    return fill_law(loaded, folder, one[0], *one[1])


def main() -> None:
    """All blanks of one code, then all of two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--model", type=Path, help="folder; by default the model that ships")
    parser.add_argument("--blanks", type=int, default=200)
    parser.add_argument("--fit-on", type=int, default=0, help="blanks of each number of codes")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fill", type=Path, metavar="FOLDER", help="ask fill; references are kept in the folder")
    parser.add_argument("--spans", action="store_true", help="left to right against a span last, instead")
    parser.add_argument("--name")
    arguments = parser.parse_args()
    if (arguments.fill is not None) + bool(arguments.fit_on) + arguments.spans > 1:
        parser.error("--fit-on is for the network's two readings of a blank, --fill asks fill, --spans reads texts")
    kind = "" if arguments.fill is None else "_fill"
    arguments.name = arguments.name or f"text{'_span' if arguments.spans else kind}_consistency"
    sizes = SPANS if arguments.spans else (1, 2)
    torch.set_num_threads(1)
    loaded = text.load(arguments.model)
    chosen = sorted(one for one in read_sentences(arguments.sentences) if is_held_out(one) and len(one.split()) >= 5)
    source = random.Random(arguments.seed)
    source.shuffle(chosen)
    edge = boundary(loaded.vocabulary)
    parts: dict[str, list[Asked]] = {"asked": [], "fit": []}
    used = set[str]()
    for part, count in (("asked", arguments.blanks // len(sizes)), ("fit", arguments.fit_on)):
        for size in sizes:
            some = (one for one in chosen if part == "asked" or (is_for_fitting(one) and one not in used))
            blanks: list[Asked] = []
            for sentence in some:
                codes = torch.cat([edge, encode_text(loaded.vocabulary, sentence.strip()), edge])
                if len(blanks) < count and 4 + size <= len(codes) <= loaded.length:
                    blanks.append(Asked(codes, source.randrange(2, len(codes) - size - 1), size))
                    used |= {sentence} if part == "asked" else set()
            parts[part] += blanks
    results: dict[str, Any] = {}
    seconds = 0.0
    folder: Path | None = arguments.fill
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for size in (1, 2):
            own = [*enumerate(one for one in parts["asked"] if one.size == size)]
            laws, each = spread(partial(_asked_of_fill, loaded, folder), own, arguments.processes)
            seconds += each * len(own)
            results[f"{size}"] = summary(laws)
            print(f"{size} codes:", results[f"{size}"], flush=True)
    for size in sizes if arguments.spans else ():
        own_spans = [one for one in parts["asked"] if one.size == size]
        gaps, each = spread(partial(span_gap, loaded.model), own_spans, arguments.processes)
        seconds += each * len(own_spans)
        results[f"{size}"] = span_summary(gaps, size)
        print(f"{size} codes:", results[f"{size}"], flush=True)
    for size in (1, 2) if folder is None and not arguments.spans else ():
        found: dict[str, list[Answered]] = {}
        for part, blanks in parts.items():
            own = [one for one in blanks if one.size == size]
            found[part], each = spread(partial(answered, loaded.model), own, arguments.processes)
            seconds += each * len(own)
        powers = fitted(found["fit"]) if found["fit"] else {}
        results[f"{size}"] = measured(found["asked"], powers)
        print(f"{size} codes:", results[f"{size}"], flush=True)
    said = {key: value.name if isinstance(value, Path) else value for key, value in vars(arguments).items()}
    about = {"arguments": said, "model": loaded.name if arguments.model is None else arguments.model.name}
    write_result(arguments.name, {**about, "cpu_seconds": seconds, "results": results})


if __name__ == "__main__":
    main()
