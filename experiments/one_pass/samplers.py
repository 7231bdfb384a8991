"""One harness for every sampler of text, at equal passes and at equal seconds: what does it cost, and how good is it?

Models are those of ``text8.py`` (length 250); the samplers are in ``samplers_ways.py``. Three tasks:

    free     whole chunks from nothing. Bits per character under the left-to-right model, the judge. Low is not good by
             itself: a text that repeats itself is cheap. Good is near the judge's bits of held-out text, with a
             Self-BLEU-4 and distinct-2 (over words) near held-out text's too; these depend on the number of rows, so
             compare only what has as many. Also the entropy of words, and the share of words that the training has.
    blanks   held-out chunks with about 15 % of their words blanked, lengths known: the share of words restored exactly,
             and the bits per character of the true letters where the sampler has a law.
    text     bits per character of held-out chunks under the law of the sampler itself, where it has one: the one number
             that neither repetition nor noise can better.

Held-out text is the second half of the last 0.5 M characters: no model was trained or stopped on it. Judging its own
samples, the left-to-right model has the entropy of its law as bits: that line is a bound for nothing.

Cost: passes one after another, mean over rows of the passes in which a row was still being answered, and seconds for
all rows, the least of up to three runs (one where it takes longer than 0.2 s). On a GPU values are drawn in bfloat16
(autocast), uncompiled; judge and laws are in 32 bits with fast products. The GPU may be shared: before each measurement
a yardstick (three passes of the judge over the same number of rows) is timed, and the report says how far it varied.

    python -m experiments.one_pass.samplers measure --models DIR --out runs/samplers --minutes 1.6
    python -m experiments.one_pass.samplers report --out runs/samplers        # from the recorded lines alone, anywhere
"""

import argparse
import json
import os
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from anyfill.samplers.drafts import NgramDraft
from anyfill.text.vocabulary import TEXT8
from anyfill.training import load_model
from anyfill.training.checkpoint import read_config
from benchmarks.common import RESULTS, environment
from experiments.common import data_folder, read_lines
from experiments.mac.text8_common import read_parts, shown, spread, turn, write_json
from experiments.one_pass.samplers_bench import Bench
from experiments.one_pass.samplers_plot import document_of, draw, table
from experiments.one_pass.samplers_ways import BOUNDS, BUDGETS, JUDGE, MODELS, Way, ways


def measure(arguments: argparse.Namespace) -> None:
    """Whatever is not recorded yet, until the minutes are over; each line is written as soon as it is there."""
    there = [name for name in MODELS if (arguments.models / name / "config.json").exists()]
    print(f"models: {', '.join(there)}; missing: {', '.join(sorted(set(MODELS) - set(there))) or 'none'}", flush=True)
    if JUDGE not in there:
        raise SystemExit(f"{arguments.models}: expected the judge, a model in the folder {JUDGE!r}, got none")
    lines = arguments.out / "rows.jsonl"
    weights = {name: read_config(arguments.models / name)["digest"][:12] for name in there}
    common = {name: getattr(arguments, name) for name in ("rows", "blank_rows", "seed", "bfloat16")}
    setting = {**common, "device": torch.device(arguments.device).type}
    done = [record["key"] for record in read_lines(lines) if "key" in record]
    left: list[tuple[Way, dict[str, Any]]] = []
    parts = read_parts(arguments.data)
    text = parts.train[: arguments.characters]
    draft = NgramDraft.of(text.to(arguments.device), TEXT8.size, order=arguments.grams)
    for way in ways(arguments.budgets, arguments.bounds, draft):
        if way.model in there and (arguments.only is None or arguments.only in f"{way.model} {way.sampler}"):
            key = {**way.key, **setting, "weights": weights[way.model], "judge": weights[JUDGE]}
            if key not in done:
                left.append((way, key))
    models = {name: load_model(arguments.models / name) for name in there}
    torch.set_float32_matmul_precision("high")
    length = models[JUDGE].variables
    held = parts.report.flatten()[: parts.report.numel() // length * length].view(-1, length)
    with turn(arguments.turn):
        start = time.perf_counter()
        bench = Bench(
            models,
            spread(held, arguments.rows),
            spread(held, arguments.blank_rows),
            TEXT8.decode(text),
            device=torch.device(arguments.device),
            seed=arguments.seed,
            bfloat16=arguments.bfloat16,
        )
        run = {
            "run": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "environment": environment(arguments.device),
            "arguments": shown(arguments),
            "missing": sorted(set(MODELS) - set(there)),
            "references": bench.references(),
        }
        append(lines, run)
        for number, (way, key) in enumerate(left, 1):
            spent = time.perf_counter() - start
            if spent > 60 * arguments.minutes:
                print(f"{len(left) - number + 1} of {len(left)} not begun: no time left", flush=True)
                break
            try:
                record = {"key": key, "run": run["run"], **bench.measured(way)}
            except (RuntimeError, ValueError):  # the others can still be measured; this one is tried again next time
                print(f"failed: {way.key}\n{traceback.format_exc()}", flush=True)
                continue
            append(lines, record)
            print(f"[{number}/{len(left)}, {spent:.0f} s] {told(record)}", flush=True)


def told(record: Mapping[str, Any]) -> str:
    """One line of one measurement."""
    key = record["key"]
    name = f"{key['task']:6} {key['model']}, {key['sampler']}, {key['setting']}, {key['draw']}:"
    parts = [f"{record['passes']} passes, {record['seconds']:.3f} s"] if "passes" in record else []
    parts += [f"judge {record['judge']['bits']:.3f}"] if "judge" in record else []
    parts += [f"words {record['words']:.3f}"] if "words" in record else []
    parts += [f"law {record['law']['bits']:.3f}"] if "law" in record else []
    return f"{name} {', '.join(parts)}"


def append(path: Path, record: Mapping[str, Any]) -> None:
    """One line more, on the disk before the next is measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(record, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def report(out: Path, results: Path) -> dict[str, Any]:
    """samplers.json, samplers.png and a copy of the lines in ``results``, from the lines in ``out`` alone."""
    lines = out / "rows.jsonl"
    document = {"name": "samplers", "environment": environment(), "protocol": __doc__, **document_of(read_lines(lines))}
    copy = results / "logs" / "samplers" / "rows.jsonl"
    copy.parent.mkdir(parents=True, exist_ok=True)
    if lines.resolve() != copy.resolve():
        copy.write_text(lines.read_text())
    write_json(results / "samplers.json", document, indent=1)
    draw(document, results / "samplers.png")
    print("\n".join(table(document)))
    return document


def parser() -> argparse.ArgumentParser:
    """measure, report."""
    whole = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = whole.add_subparsers(dest="command", required=True)
    one = commands.add_parser("measure")
    one.add_argument("--models", type=Path, required=True, help="folder of the models that text8.py trained")
    one.add_argument("--data", type=Path, default=data_folder())
    one.add_argument("--rows", type=int, default=64, help="chunks drawn from nothing")
    one.add_argument("--blank-rows", type=int, default=128, help="chunks with blanks")
    one.add_argument("--device", default="auto")
    one.add_argument("--precision", choices=["auto", "bf16", "fp32"], default="auto", help="of what is drawn")
    one.add_argument("--minutes", type=float, default=1e9, help="no measurement is begun after so many")
    one.add_argument("--budgets", type=int, nargs="+", default=list(BUDGETS))
    one.add_argument("--bounds", type=float, nargs="+", default=list(BOUNDS))
    one.add_argument("--only", help="only ways whose model and sampler have this in their name")
    one.add_argument("--characters", type=int, default=11_500_000, help="of the training text, to count")
    one.add_argument("--grams", type=int, default=6, help="length of the n-grams that draft")
    one.add_argument("--turn", type=Path, help="a lock file: measure while no one else who minds it is at work")
    one.add_argument("--seed", type=int, default=0)
    two = commands.add_parser("report")
    two.add_argument("--results", type=Path, default=RESULTS / "one_pass")
    lines = RESULTS / "one_pass" / "logs" / "samplers"
    for each in (one, two):
        each.add_argument("--out", type=Path, default=lines, help="where rows.jsonl is")
    return whole


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, or report."""
    arguments = parser().parse_args(argv)
    if arguments.command == "report":
        report(arguments.out, arguments.results)
        return
    if arguments.device == "auto":
        arguments.device = "cuda" if torch.cuda.is_available() else "cpu"
    cuda = torch.device(arguments.device).type == "cuda"
    arguments.bfloat16 = arguments.precision == "bf16" or (arguments.precision == "auto" and cuda)
    measure(arguments)


if __name__ == "__main__":
    main()
