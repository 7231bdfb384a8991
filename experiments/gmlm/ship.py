# ruff: noqa: E501 (a card has long lines)
"""Put models of a sitting into the package, each with a card that says how it does.

    python -m experiments.gmlm.ship MODELS --table results/gmlm/table1.json --step longer --ways de-en en-de
    python -m experiments.gmlm.ship MODELS --table results/gmlm/table1_all.json --step one-pass

MODELS holds STEP-DIRECTION (``experiments.gmlm.sitting``, ``third`` and ``table1_all`` pack them, in 8 bits); the
numbers of the card are those of the table (``experiments.gmlm.scores``, ``table1_all_scores``). A model may also be the
mean of the weights of others (``experiments.gmlm.soup``): --story says how it was made after the second sitting.
One-pass models stand beside them: they score.
"""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from anyfill.translation.model import load
from benchmarks.common import RESULTS

HOME = Path(__file__).parents[2] / "src" / "anyfill" / "models"
LANGUAGES = {"de": "German", "en": "English"}

CARD = """# Model card: translation-{way}

PaDIR: {source} to {target} in a few passes, each of which writes every word anew; the length is predicted first.

| | |
|---|---|
| Made by | `experiments/gmlm/sitting.py first` and `second` on one H200, then `experiments/gmlm/ship.py`: an autoregressive teacher ({teacher_seconds:.0f} s, {teacher_steps:,} steps, then {tuned_seconds:.0f} s on Multi30k alone), its translations with beam 4 of {distilled:,} sources, then this model from the teacher's weights ({seconds:.0f} s, {steps:,} steps of {batch:,} pairs; {more_seconds:.0f} s, {more_steps:,} steps of {more_batch:,} pairs){story}; record in `results/gmlm/table1.json` |
| Network | `EncoderDecoder`, 5 + 5 layers of width 256, positional attention, {weights:,} weights in 8 bits with a scale for each row, {size:.1f} MB |
| Data | Multi30k (29,000 captions of pictures, each three times) and Tatoeba (166,000 everyday sentences, CC BY 2.0), targets as the teacher wrote them{raw} |
| Codes | 8,000 pieces for both languages (unigram), at most 64 a sentence; longer ones are cut |
| Licence | None of the sentences is in this folder; Multi30k is for research use. The weights are Apache-2.0, as the rest of anyfill |

## How it does

SacreBLEU (13a tokens, mixed case) with 95 % bootstrap intervals, five lengths or a beam of five:

| test | teacher | 1 pass | 2 | 4 | 10 |
|---|---|---|---|---|---|
{rows}

What is empty was not measured for these weights. The Tatoeba sentences are held out by their English side; near-duplicates of some remain in the training pairs, so the test is easier than
it looks.

## Limits

It was trained for minutes on captions and short everyday sentences. On other text (news, law, interfaces, long sentences) it is poor:
words it never met come out wrong or are left out. Fluent is not right; nothing that matters should rest on it. It has the biases of its
sources. It has no likelihood: `score` needs a model of another kind.
"""

ONE_PASS = """# Model card: translation-one-pass-{way}

One-pass: {source} and {target} sentences in one row, {source} first. Exact log-probabilities of any part given any other in one pass; blanks. It scores for `{way}`, which has no likelihood.

| | |
|---|---|
| Made by | `experiments/gmlm/table1_all.py` on one H200 (`experiments/runs/translation_and_sunmask.sh`): {seconds:.0f} s, {steps:,} steps of {batch:,} pairs, {epochs:.1f} epochs, from nothing; then `experiments/gmlm/ship.py`; record in `results/gmlm/table1_all.json` |
| Network | one-pass transformer, 6 layers of width 256, {weights:,} weights in 8 bits with a scale for each row, {size:.1f} MB |
| Data | Multi30k ({multi30k:,} captions, each three times), Tatoeba ({tatoeba:,} sentences, CC BY 2.0), catalogues and help of LibreOffice and GCC ({catalogues:,} segments, MPL-2.0 and GPL-3) |
| Codes | 8,000 pieces for both languages (unigram), at most 40 a sentence; longer ones are refused |
| Licence | None of the sentences is in this folder; Multi30k is for research use. The weights are Apache-2.0, as the rest of anyfill |

## How it does

| | this model | an autoregressive one, as many seconds |
|---|---|---|
| exact nats a piece of Multi30k's test 2016 | {own_nats:.3f} ({sentences} sentences) | {other_nats} |
| pieces of holes of three that come out right, with the source / with another's | {holes:.2f} / {other_holes:.2f} | |
| BLEU there, word by word, greedily | {own_bleu:.1f} | {other_bleu:.1f} |
| BLEU on 500 held-out sentences of Tatoeba, of catalogues | {own_tatoeba:.1f}, {own_catalogues:.1f} | {other_tatoeba:.1f}, {other_catalogues:.1f} (beam 5) |

## Limits

Half a minute of training: its scores rank captions and short phrases well, rare words and long sentences less surely. For translating, the PaDIR model beside it is far better. Nothing that
matters should rest on it. It has the biases of its sources.
"""


def row_of(systems: list[dict[str, Any]], way: str, test: str, name: str) -> str:
    """BLEU with its interval, or nothing where it was not measured."""
    for row in systems:
        if (row["direction"], row["test"], row["system"]) == (way, test, name):
            return f"{row['bleu']:.1f} [{row['bleu_low']:.1f}, {row['bleu_high']:.1f}]"
    return ""


def named(systems: list[dict[str, Any]], way: str, test: str, step: str, passes: int) -> str:
    """What the row of five lengths is called; ranked as is the default now, where that was measured."""
    rows = [
        row
        for row in systems
        if (row["direction"], row["test"], row["step"], row["passes"], row["lengths"]) == (way, test, step, passes, 5)
    ]
    return max(rows, key=lambda row: row["reward"])["system"] if rows else ""


def card(way: str, table: dict[str, Any], folder: Path, step: str = "longer", story: str = "") -> str:
    """The card's text."""
    systems, training = table["systems"], table["training"]
    own, more, teacher, tuned = (training[f"{name} {way}"] for name in ("shipped", "longer", "teacher", "tuned"))
    by = tuned["distillation"]["multi30k_by"]
    rows: list[str] = []
    for test, label, who in (
        ("multi30k", "Multi30k test 2016", by),
        ("tatoeba", "Tatoeba, 2,000 sentences", "teacher"),
    ):
        names = [f"{who} beam 5", *(named(systems, way, test, step, t) for t in (1, 2, 4, 10))]
        rows.append(f"| {label} | " + " | ".join(row_of(systems, way, test, name) for name in names) + " |")
    source, target = way.split("-")
    return CARD.format(
        way=way,
        story=f", then {story}" if story else "",
        raw=" (of Tatoeba last as people did)" if story else "",
        source=LANGUAGES[source],
        target=LANGUAGES[target],
        teacher_seconds=teacher["seconds"],
        teacher_steps=teacher["steps"],
        tuned_seconds=tuned["seconds"],
        distilled=tuned["distillation"]["distilled"],
        seconds=own["seconds"],
        steps=own["steps"],
        batch=own["batch"],
        more_seconds=more["seconds"],
        more_steps=more["steps"],
        more_batch=more["batch"],
        weights=own["weights"],
        size=sum(path.stat().st_size for path in folder.iterdir()) / 1e6,
        rows="\n".join(rows),
    )


def card_of_one_pass(way: str, table: dict[str, Any], folder: Path) -> str:
    """The card's text of a one-pass model."""
    found = table[way]
    bleu = {(row["test"], row["system"]): row["bleu"] for row in found["systems"]}
    told, other = found["told"]["one-pass"], found["told"].get("teacher-all", {}).get("likelihood")
    own = told["likelihood"]
    source, target = way.split("-")
    training = found["training"]["one-pass"]
    return ONE_PASS.format(
        way=way,
        source=LANGUAGES[source],
        target=LANGUAGES[target],
        **{key: training[key] for key in ("seconds", "steps", "batch", "epochs", "weights")},
        size=sum(path.stat().st_size for path in folder.iterdir()) / 1e6,
        own_nats=own["nats_per_piece"],
        other_nats="not measured" if other is None else f"{other['nats_per_piece']:.3f}",
        holes=told["holes"]["right_source"]["pieces_right"],
        other_holes=told["holes"]["other_source"]["pieces_right"],
        **{name: table["data"]["fitting"][name] for name in ("multi30k", "tatoeba", "catalogues")},
        sentences=own["sentences"],
        own_bleu=bleu["multi30k", "one-pass"],
        other_bleu=bleu["multi30k", "teacher-all beam 1"],
        own_tatoeba=bleu["tatoeba", "one-pass"],
        own_catalogues=bleu["catalogues", "one-pass"],
        other_tatoeba=bleu["tatoeba", "teacher-all beam 5"],
        other_catalogues=bleu["catalogues", "teacher-all beam 5"],
    )


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path)
    parser.add_argument("--table", type=Path, default=RESULTS / "gmlm" / "table1.json")
    parser.add_argument("--home", type=Path, default=HOME)
    parser.add_argument("--step", default="longer")
    parser.add_argument("--ways", nargs="+", default=["de-en", "en-de"])
    parser.add_argument("--story", default="", help="how the model was made after the second sitting")
    options = parser.parse_args(argv)
    table = json.loads(options.table.read_text(encoding="utf-8"))
    one_pass = options.step == "one-pass"
    for way in options.ways:
        folder = options.home / (f"translation-one-pass-{way}" if one_pass else f"translation-{way}")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(options.models / f"{options.step}-{way}", folder)
        text = (
            card_of_one_pass(way, table, folder) if one_pass else card(way, table, folder, options.step, options.story)
        )
        (folder / "README.md").write_text(text, encoding="utf-8")
        model = load(folder)
        print(f"{folder}: {model!r}")


if __name__ == "__main__":
    main()
