"""A corpus of 1 GB on the disk: how fast it is encoded, and how much memory encoding and training on it take.

    python -m benchmarks.text_memory [--megabytes 1000] [--steps 30] [--naive 32] [--seed 0]

corpus    words of text8's 27 symbols, drawn by Zipf's law, written into a temporary folder that is removed at the end.
encode    ``encode_corpus`` into a token file, in a process of its own: MB of text per second, peak resident memory.
naive     the usual way, on the first ``--naive`` MB: all of the text in one string, one look-up in a dict for each
          character, one tensor; in a process of its own. Its memory for the whole corpus is reckoned from that.
train     a small model on chunks of 128 characters at every offset (1 GB = 10^9 rows), in a process of its own: peak
          resident memory after the steps; and then again after reading every chunk once, end to end, in random order,
          so that every page of the file has been in memory. At the end of each, "anonymous" memory is what cannot be
          given back; "files" are pages of the corpus and of libraries, which the system drops when it needs the room.

The bar is 2 GB for all of it. Writes results/text_memory.json.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill.text.corpus import encode_corpus
from anyfill.text.recipes import text_model, text_objective
from anyfill.text.token_file import open_tokens
from anyfill.text.tokens import Chunks
from anyfill.text.vocabulary import TEXT8
from anyfill.training import FitOptions, fit
from benchmarks.common import ROOT, write_result

LENGTH, BATCH, BAR = 128, 16, 2e9


def write_corpus(path: Path, size: int, seed: int) -> None:
    """``size`` bytes of random words, made a few megabytes at a time."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(list(TEXT8.alphabet[1:]), rng.integers(1, 11))) + " " for _ in range(20_000)]
    letters = np.frombuffer("".join(words).encode("ascii"), dtype=np.uint8)
    lengths = np.array([len(word) for word in words])
    begins = np.cumsum(lengths) - lengths
    chance = np.cumsum(1 / np.arange(1, len(words) + 1))
    with path.open("wb") as file:
        left = size
        while left:
            drawn = np.searchsorted(chance, rng.random(2**19) * chance[-1])
            each = lengths[drawn]
            within = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
            block = letters[np.repeat(begins[drawn], each) + within][:left]
            file.write(block.data)
            left -= len(block)


def memory() -> dict[str, float]:
    """MB of this process: the most that was ever resident; anonymous and of files now (Linux says all three)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    sizes = {line.split(":")[0]: float(line.split()[1]) * 1024 / 1e6 for line in lines if line.endswith("kB")}
    return {"peak_mb": sizes["VmHWM"], "anonymous_mb": sizes["RssAnon"], "files_mb": sizes["RssFile"]}


def run_encode(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    before = memory()
    start = time.perf_counter()
    for report in encode_corpus(folder / "corpus.txt", folder / "corpus.tokens", TEXT8):
        last = report
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "mb_per_second": last.total / 1e6 / seconds, "before": before, "after": memory()}


def run_naive(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    before = memory()
    start = time.perf_counter()
    with (folder / "corpus.txt").open(encoding="utf-8") as file:
        text = file.read(arguments.naive * 10**6)
    table = {character: code for code, character in enumerate(TEXT8.alphabet)}
    codes = torch.tensor([table[character] for character in text], dtype=torch.uint8)
    seconds = time.perf_counter() - start
    megabytes = len(codes) / 1e6
    after = memory()
    return {
        "megabytes": megabytes,
        "seconds": seconds,
        "mb_per_second": megabytes / seconds,
        "before": before,
        "after": after,
        "peak_mb_per_mb": (after["peak_mb"] - before["peak_mb"]) / megabytes,
    }


def run_train(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    tokens = open_tokens(folder / "corpus.tokens", TEXT8)
    train, _ = tokens.split((0.01,))
    rows = Chunks(train, LENGTH, stride=1)
    model = text_model("one_pass", LENGTH, TEXT8.size, size="1M", seed=arguments.seed)
    options = FitOptions(steps=arguments.steps, batch_size=BATCH, seed=arguments.seed, device="cpu")
    start = time.perf_counter()
    done = fit(model, rows, text_objective("one_pass", LENGTH), options)
    seconds = time.perf_counter() - start
    after_training = memory()
    start, total = time.perf_counter(), 0
    chunks = Chunks(tokens, LENGTH)
    order = torch.randperm(len(chunks), generator=torch.Generator().manual_seed(arguments.seed))
    for index in order.split(4096):
        total += int(chunks.take(index).x.sum())
    return {
        "rows": len(rows),
        "steps": done.steps,
        "rows_per_second": done.steps * BATCH / seconds,
        "bits_per_character": done.loss / LENGTH / float(np.log(2)),
        "after_training": after_training,
        "whole_corpus_read": {
            "seconds": time.perf_counter() - start,
            "chunks": len(chunks),
            "mean_code": total / (len(chunks) * LENGTH),
            **memory(),
        },
    }


PARTS = {"encode": run_encode, "naive": run_naive, "train": run_train}


def apart(part: str, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """A part in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, "-m", "benchmarks.text_memory", "--part", part, "--folder", str(folder)]
    command += [f"--{name}={getattr(arguments, name)}" for name in ("megabytes", "steps", "naive", "seed")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{part} failed: {done.stderr.strip()[-800:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the corpus")
    parser.add_argument("--steps", type=int, default=30, help="training steps")
    parser.add_argument("--naive", type=int, default=32, help="megabytes that the naive way encodes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", choices=list(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.part:
        print(json.dumps(PARTS[arguments.part](arguments.folder, arguments)))
        return
    size = arguments.megabytes * 10**6
    with tempfile.TemporaryDirectory(prefix="text_memory_") as name:
        folder = Path(name)
        free = shutil.disk_usage(folder).free
        if free < 3 * size:
            raise SystemExit(f"text_memory needs {3 * size / 1e9:.1f} GB of disk, {free / 1e9:.1f} GB are free")
        write_corpus(folder / "corpus.txt", size, arguments.seed)
        print(f"wrote a corpus of {size / 1e6:,.0f} MB", flush=True)
        found = {part: apart(part, folder, arguments) for part in PARTS}
    encoded, naive, train = found["encode"], found["naive"], found["train"]
    ratio = encoded["mb_per_second"] / naive["mb_per_second"]
    whole = naive["peak_mb_per_mb"] * arguments.megabytes
    peak = max(encoded["after"]["peak_mb"], train["whole_corpus_read"]["peak_mb"])
    after, read = train["after_training"], train["whole_corpus_read"]
    print(
        f"encode     {encoded['mb_per_second']:7.1f} MB/s, peak {encoded['after']['peak_mb']:,.0f} MB\n"
        f"naive      {naive['mb_per_second']:7.1f} MB/s on {naive['megabytes']:.0f} MB ({ratio:.0f} x slower), "
        f"would need about {whole:,.0f} MB for all of it\n"
        f"train      peak {after['peak_mb']:,.0f} MB after {train['steps']} steps; then "
        f"{after['anonymous_mb']:,.0f} MB anonymous, {after['files_mb']:,.0f} MB of files\n"
        f"all read   peak {read['peak_mb']:,.0f} MB; then "
        f"{read['anonymous_mb']:,.0f} MB anonymous, {read['files_mb']:,.0f} MB of files\n"
        f"peak of all {peak:,.0f} MB: {'under' if peak * 1e6 < BAR else 'OVER'} the bar of {BAR / 1e6:,.0f} MB"
    )
    payload: dict[str, Any] = {
        "arguments": {key: getattr(arguments, key) for key in ("megabytes", "steps", "naive", "seed")},
        "corpus_bytes": size,
        **found,
        "speed_ratio": ratio,
        "naive_whole_corpus_mb": whole,
        "peak_mb": peak,
        "bar_mb": BAR / 1e6,
        "is_under_the_bar": peak * 1e6 < BAR,
    }
    path = write_result("text_memory", payload)
    print(f"wrote {path.parent.name}/{path.name}")


if __name__ == "__main__":
    main()
