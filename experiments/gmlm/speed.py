"""How fast: PaDIR's passes beside autoregression in torch and in CTranslate2 with the same weights, in one run.

    python -m experiments.gmlm.speed --random --size base               # a CPU, untrained weights
    python -m experiments.gmlm.speed --device cuda --size base          # a GPU; with models of table1, BLEU beside it

Every system translates the same sources into targets of the references' lengths, so that untrained weights cost what
trained ones do (``anyfill.translation.latency``). Batch 1: p50, p90, p99 of a sentence; batch 64: sentences a second.
One thread on a CPU. CPU time of the process is what to compare on a machine that others use; wall time is beside it.

Must show 2: at d 512, one CPU thread, int8, one length, four passes at least 1.8 times as fast at p50 as CTranslate2
int8 with beam 1 on the same teacher, and 3 times as torch; the deep-shallow student honestly beside it.
"""

import json
import time
from pathlib import Path
from typing import Any

import torch

from anyfill.translation.latency import System, int8, one_by_one, parallel, peer, timed
from anyfill.translation.recipes import make_model
from anyfill.translation.vocabulary import Joint
from experiments.gmlm.translation import Job, Plan, arguments, corpus_of, one_thread, plans, test_pairs, trained, write


def systems(plan: Plan, vocabulary: Joint, *, random: bool, passes: list[int], beams: list[int]) -> dict[str, System]:
    """All of them by name."""

    def model(recipe: Any, name: str) -> Any:
        if random:
            return make_model(recipe, vocabulary.size, plan.length, plan.size, dropout=0.0).eval()
        return trained(plan, Job(name, recipe, 0.0))[0].decoder.model

    padir, teacher = model("padir", "padir-distilled"), model("autoregressive", "teacher")
    student = model("deep_shallow", "deep_shallow-distilled")
    made: dict[str, System] = {"torch AR fp32": one_by_one(teacher), "torch deep-shallow fp32": one_by_one(student)}
    for t in passes:
        made[f"PaDIR {t} passes fp32"] = parallel(padir, "padir", t)
    made[f"PaDIR {passes[-1]} passes fp32, 5 lengths"] = parallel(padir, "padir", passes[-1], lengths=5)
    if plan.device == "cuda":
        return made
    small = int8(padir)
    for t in passes:
        made[f"PaDIR {t} passes int8"] = parallel(small, "padir", t)
    made[f"PaDIR {passes[-1]} passes int8, 5 lengths"] = parallel(small, "padir", passes[-1], lengths=5)
    made["torch AR int8"] = one_by_one(int8(teacher))
    for kind in ("float32", "int8"):
        for beam in beams:
            made[f"CTranslate2 {kind} beam {beam}"] = peer(teacher, kind=kind, beam=beam)
    made["CTranslate2 deep-shallow int8 beam 1"] = peer(student, kind="int8", beam=1)
    return made


def quality(options: Any) -> dict[str, float]:
    """BLEU on Multi30k en-de of table1's systems, where that was run."""
    path = Path(__file__).parents[2] / "results" / "gmlm" / "table1.json"
    if options.random or not path.exists():
        return {}
    rows = json.loads(path.read_text())["systems"]
    return {row["system"]: row["bleu"] for row in rows if (row["direction"], row["test"]) == ("en-de", "multi30k")}


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = arguments(__doc__ or "", size="base")
    parser.add_argument("--random", action="store_true", help="untrained weights")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument(
        "--join", type=int, default=1, help="so many sentences in one source: 2 of Multi30k are WMT's 28"
    )
    parser.add_argument("--passes", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--batch-sentences", type=int, default=64, help="sentences of the throughput batch; 0 = none")
    options = parser.parse_args(argv)
    options.random = options.random or options.smoke
    plan = plans(options)[0]
    if plan.device == "cpu":
        one_thread()
    if plan.models is None:
        vocabulary, _ = corpus_of(plan, "raw", plan.vocabulary)
    else:
        vocabulary = trained(plan, Job("teacher", "autoregressive", 0.0))[0].vocabulary
    count = 5 if options.smoke else options.sentences
    tested = next(iter(test_pairs(plan).values()))[: count * options.join]
    pairs = [
        (" ".join(a for a, _ in some), " ".join(b for _, b in some))
        for some in (tested[i : i + options.join] for i in range(0, len(tested), options.join))
    ]
    codes = [tuple(vocabulary.encode(side)[: plan.length - 5] for side in pair) for pair in pairs]
    sources, lengths = [list(a) for a, _ in codes], [len(b) for _, b in codes]
    rows: list[dict[str, Any]] = []
    for name, system in systems(
        plan, vocabulary, random=options.random, passes=options.passes, beams=options.beams
    ).items():
        begun = time.perf_counter()
        row: dict[str, Any] = {"system": name, **timed(system, sources, lengths).summary()}
        if options.batch_sentences and not options.smoke:
            many = timed(system, sources, lengths, batch=options.batch_sentences, warmup=1)
            row["batch_cpu_ms"] = sum(many.cpu) / len(many.cpu)
            row["batch_wall_ms"] = sum(many.wall) / len(many.wall)
        rows.append(row)
        print(
            f"{name}: p50 {row['cpu_p50_ms']:.1f} ms CPU, {row['wall_p50_ms']:.1f} ms wall, "
            f"{time.perf_counter() - begun:.0f} s",
            flush=True,
        )
    by = {row["system"]: row for row in rows}
    last = max(options.passes)
    ratios = {}
    fast = by.get(f"PaDIR {last} passes int8")
    if fast is not None:
        for other in (
            "CTranslate2 int8 beam 1",
            "torch AR fp32",
            "torch AR int8",
            "CTranslate2 deep-shallow int8 beam 1",
        ):
            if other in by:
                ratios[other] = {
                    level: by[other][f"cpu_{level}_ms"] / fast[f"cpu_{level}_ms"] for level in ("p50", "p99")
                }
    payload = {
        "size": plan.size,
        "weights": "random, targets of the references' lengths" if options.random else "table1's",
        "codes": vocabulary.size,
        "sentences": len(sources),
        "source_pieces": sum(map(len, sources)) / len(sources),
        "target_pieces": sum(lengths) / len(lengths),
        "threads": torch.get_num_threads(),
        "systems": rows,
        f"times_as_fast_as_int8_{last}_passes": ratios,
        "bleu": quality(options),
    }
    payload["joined"] = options.join
    write("speed_cpu" if plan.device == "cpu" else "speed", payload, options, plan.device)


if __name__ == "__main__":
    main()
