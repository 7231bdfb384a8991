"""What `translate` costs a sentence on one CPU thread, and what makes it cheaper: frozen layers, one graph, rows.

    python -m experiments.gmlm.warm [--model en-de]

CPU milliseconds of the process, the shipped model, validation sentences of Multi30k, four passes. Alone, in turn:

    plain    as `translate` runs
    frozen   norms, queries, keys and values, positional scores worked out before (``anyfill.networks.frozen``)
    traced   frozen, and all layers as one graph where no row is padded (``anyfill.networks.traced``)

In a file: rows stop by themselves where nothing changes, or all go on until the last one stops (as it was).
"""

import argparse
import json
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyfill.disk import write_bytes
from anyfill.networks.encoder_decoder import SequenceToSequence
from anyfill.networks.frozen import freeze
from anyfill.networks.traced import trace_layers
from anyfill.samplers import RewriteAll
from anyfill.translation.model import Translator, load
from benchmarks.common import RESULTS, environment
from experiments.gmlm.translation import Plan, one_thread, validation_pairs
from experiments.where import data_folder


def network_of(model: Translator) -> SequenceToSequence:
    """What it translates with."""
    network = model.decoder.model.network
    if not isinstance(network, SequenceToSequence):
        raise TypeError(f"expected an encoder-decoder, got {type(network).__name__}")
    return network


def clocked(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds, and what came of it."""
    begun = time.process_time()
    found = work()
    return time.process_time() - begun, found


@contextmanager
def all_rows() -> Generator[None]:
    """Inside, rows go on until the last one stops."""
    own: Any = RewriteAll.going
    RewriteAll.going = lambda self, state, question: None  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        RewriteAll.going = own


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="en-de")
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--alone", type=int, default=30, help="sentences")
    parser.add_argument("--file", type=int, default=128, help="sentences")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "gmlm" / "warm.json")
    options = parser.parse_args(argv)
    one_thread()
    systems = {name: load(options.model) for name in ("plain", "frozen", "traced")}
    source, target = systems["plain"].languages
    plan = Plan(options.out.parent, options.data, source=source, target=target)
    texts = [pair[0] for pair in validation_pairs(plan, max(options.alone, options.file))]
    cost = {"freeze": 0.0, "trace": 0.0}
    for name in ("frozen", "traced"):
        cost["freeze"] = clocked(lambda name=name: freeze(network_of(systems[name])))[0]
    cost["trace"] = clocked(lambda: trace_layers(network_of(systems["traced"])))[0]
    rows: list[dict[str, Any]] = []
    for lengths in (1, 3):
        said: dict[str, list[str]] = {}
        for turn in range(options.turns + 1):  # the first one warms up
            for name, model in systems.items():
                seconds, made = clocked(
                    lambda model=model, lengths=lengths: [
                        model.translate(text, lengths=lengths).text for text in texts[: options.alone]
                    ]
                )
                said[name] = made
                if turn:
                    rows.append({"system": name, "lengths": lengths, "ms": 1000 * seconds / options.alone})
        for name in systems:
            mean = [row["ms"] for row in rows if (row["system"], row["lengths"]) == (name, lengths)]
            alike = sum(a == b for a, b in zip(said[name], said["plain"]))
            print(f"{name} L{lengths}: {sum(mean) / len(mean):.1f} ms, {alike} of {options.alone} as plain", flush=True)
    files: dict[str, Any] = {}
    some, model = texts[: options.file], systems["plain"]
    with all_rows():
        seconds, before = clocked(lambda: model.translate(some))
    files["all rows"] = {"ms": 1000 * seconds / len(some)}
    seconds, after = clocked(lambda: model.translate(some))
    files["rows stop"] = {"ms": 1000 * seconds / len(some), "passes": sum(one.passes for one in after) / len(some)}
    files["different"] = sum(a.text != b.text for a, b in zip(before, after))
    print(files, cost, flush=True)
    about = {"model": options.model, "alone": options.alone, "file": options.file, "seconds_once": cost}
    payload = {"name": "gmlm/warm", "environment": environment("cpu"), **about, "rows": rows, "in_a_file": files}
    write_bytes((json.dumps(payload, indent=1) + "\n").encode(), options.out)


if __name__ == "__main__":
    main()
