"""Seconds for BLEU-5 and Self-BLEU-5 beside NLTK and fast-bleu, on EMNLP2017 News; and that the values are the same.

    python -m benchmarks.bleu [--peers-python PYTHON] [--data FOLDER] [--rounds 5]

bleu         sentences of valid.txt against as many of test.txt, or all of it
self_bleu    sentences of test.txt, each against all the others

Timed is the way from lists of words to the score of each sentence: ours gives BLEU-1 … BLEU-5, the others BLEU-5 only.
Seconds are CPU seconds of the process, on one thread each (wall seconds are written beside them): so a busy machine
slows none of them more than another. Medians over rounds that alternate; one round only where NLTK takes part.

    whole     everybody does the same job to its end: 200 sentences (NLTK and fast-bleu), 10,000 (fast-bleu)
    sample    NLTK would take hours at 10,000: it scores 10 sentences against all, and the rest is taken to last as long

Values are compared sentence by sentence. The folder has emnlp2017_news/{test,valid}.txt.gz; without it nothing is
written. A peer that is not installed here runs under --peers-python, and is reported as not installed if it is not
there either. Writes results/bleu.json.
"""

import argparse
import gzip
import os
import statistics
import time
from pathlib import Path

import numpy as np

from anyfill.text.metrics import bleu, self_bleu
from anyfill.text.ngram_tables import NgramTable, Sentences
from benchmarks.common import ROOT, write_result
from benchmarks.peers_apart import Measured, Peer, find_peers

PEERS = ("nltk", "fast_bleu")
SMALL, SAMPLE = 200, 10
JOBS = ("bleu", "self_bleu")


def ours(job: str, sentences: Sentences, references: Sentences) -> tuple[Measured, np.ndarray]:
    """Seconds of one job of ours, and BLEU-5 of each sentence."""
    cpu, wall = time.process_time(), time.perf_counter()
    scores = bleu(sentences, references) if job == "bleu" else self_bleu(sentences)
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}, scores[:, 4]


def theirs(peer: Peer, job: str, sentences: Sentences, references: Sentences, only: int | None = None) -> Measured:
    """The same of a peer."""
    if job == "bleu":
        return peer.ask(job=job, sentences=sentences[:only], references=references)
    return peer.ask(job=job, sentences=sentences, **({} if only is None else {"only": only}))


def summary(rounds: list[Measured]) -> Measured:
    return {clock: statistics.median(each[clock] for each in rounds) for clock in ("cpu", "wall")}


def whole(job: str, sentences: Sentences, references: Sentences, peers: dict[str, Peer], rounds: int) -> Measured:
    """Everybody's seconds for one whole job, and how far apart the scores are."""
    times: dict[str, list[Measured]] = {"anyfill": [], **{name: [] for name in peers}}
    apart: dict[str, float] = {}
    ours(job, sentences, references)
    for _ in range(rounds):
        took, scores = ours(job, sentences, references)
        times["anyfill"].append(took)
        for name, peer in peers.items():
            reply = theirs(peer, job, sentences, references)
            apart[name] = float(np.abs(np.array(reply.pop("scores")) - scores).max())
            times[name].append(reply)
    mine = summary(times["anyfill"])
    report: Measured = {"sentences": len(sentences), "references": len(references) - (job == "self_bleu")}
    for name, each in times.items():
        took = summary(each)
        report[name] = {f"{clock}_seconds": took[clock] for clock in took}
        if name in peers:
            report[name] |= {
                **{f"anyfill_is_faster_by_{clock}": took[clock] / mine[clock] for clock in took},
                "largest_difference": apart[name],
            }
        faster = f", {took['cpu'] / mine['cpu']:.1f} times ours" if name in peers else ""
        print(f"{job:10s} {len(sentences):6d} sentences  {name:10s} {took['cpu']:8.3f} s{faster}", flush=True)
    return report


def sampled(job: str, sentences: Sentences, references: Sentences, peer: Peer, whole_of_ours: Measured) -> Measured:
    """NLTK's seconds for some sentences against all, and what they come to for all sentences."""
    _, scores = ours(job, sentences, references)
    reply = theirs(peer, job, sentences, references, SAMPLE)
    factor = len(sentences) / SAMPLE
    report: Measured = {
        "sentences_scored": SAMPLE,
        "references": len(references) - (job == "self_bleu"),
        "largest_difference": float(np.abs(np.array(reply["scores"]) - scores[:SAMPLE]).max()),
    }
    for clock in ("cpu", "wall"):
        for_all = reply[clock] * factor
        report |= {
            f"{clock}_seconds": reply[clock],
            f"{clock}_seconds_for_all_extrapolated": for_all,
            f"anyfill_is_faster_by_{clock}_extrapolated": for_all / whole_of_ours["anyfill"][f"{clock}_seconds"],
        }
    hours, ratio = reply["cpu"] * factor / 3600, report["anyfill_is_faster_by_cpu_extrapolated"]
    print(f"{job:10s} {len(sentences):6d} sentences  nltk       {hours:8.2f} h extrapolated, {ratio:.0f} times ours")
    return report


def scores_by_number(sentences: Sentences, references: Sentences) -> list[Measured]:
    """Mean scores of real text: Self-BLEU is a matter of how many sentences are compared."""
    table = NgramTable.of(references)
    return [
        {
            "sentences": n,
            "bleu_2_to_5": bleu(sentences[:n], table).mean(0)[1:].tolist(),
            "self_bleu_2_to_5": self_bleu(sentences[:n]).mean(0)[1:].tolist(),
        }
        for n in (500, 1000, 2000, 5000, len(sentences))
    ]


def read(folder: Path, name: str) -> list[list[str]]:
    with gzip.open(folder / "emnlp2017_news" / f"{name}.txt.gz", "rt", encoding="utf-8") as lines:
        return [line.split() for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers-python", help="an interpreter that has nltk and fast-bleu")
    parser.add_argument("--data", default=os.environ.get("ANYFILL_DATA", str(ROOT.parent / "shared" / "data")))
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    try:
        valid, test = (read(Path(arguments.data), name) for name in ("valid", "test"))
    except FileNotFoundError as error:
        print(f"no EMNLP2017 News ({error.filename}): name its folder with --data; nothing measured")
        return
    peers, missing = find_peers(Path(__file__).with_name("bleu_peers.py"), PEERS, arguments.peers_python)
    for name, why in missing.items():
        print(f"{name}: {why}")
    quick = {name: peer for name, peer in peers.items() if name != "nltk"}
    report: Measured = {job: {} for job in JOBS}
    try:
        for job in JOBS:
            full = valid if job == "bleu" else test
            small = whole(job, full[:SMALL], test[:SMALL], peers, 1 if "nltk" in peers else arguments.rounds)
            large = whole(job, full, test, quick, arguments.rounds)
            report[job] = {"whole": [small, large]}
            if "nltk" in peers:
                report[job]["sample"] = {"nltk": sampled(job, full, test, peers["nltk"], large)}
    finally:
        for peer in peers.values():
            peer.close()
    payload = {
        "arguments": {"rounds": arguments.rounds},
        "counted": "seconds from lists of words to the score of each sentence",
        "peers": {**{name: peer.version for name, peer in peers.items()}, **missing},
        "protocol": __doc__,
        **report,
        "scores_of_valid_against_test": scores_by_number(valid, test),
    }
    print(f"wrote {write_result('bleu', payload)}")


if __name__ == "__main__":
    main()
