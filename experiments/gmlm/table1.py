"""GMLM Table 1 at our size: PaDIR and its rivals at T = 1, 2, 4, 10 passes beside an autoregressive teacher.

    python -m experiments.gmlm.table1 --directions en-de de-en --sets multi30k tatoeba

For each direction: a teacher, its distilled pairs, then CMLM, DisCo, SUNDAE and PaDIR on raw and on distilled pairs,
the one-pass transformer on raw ones, a deep-shallow student on distilled ones; equal seconds each. Decoding as in the
paper: five lengths, or a beam of five. BLEU with sacrebleu's signature, chrF, stutter, bootstrap intervals; the order
of the methods by paired bootstrap on the same sentences. The paper's numbers are of WMT and not comparable; what is to
be compared is the gap to the teacher, raw and distilled, and 4 passes against 10.
"""

from typing import Any

from anyfill.translation.hypotheses import Decoding
from anyfill.translation.metrics import compared
from experiments.gmlm.translation import Job, Plan, arguments, distilled, plans, test_pairs, trained, translated, write

PARALLEL = ("padir", "cmlm", "disco", "sundae")
PASSES = (1, 2, 4, 10)


def direction(plan: Plan, seconds: float, teacher_seconds: float, seed: int) -> dict[str, Any]:
    """All systems of one direction."""
    tests, rows, runs = test_pairs(plan), list[dict[str, Any]](), list[dict[str, Any]]()
    kept: dict[tuple[str, str], list[str]] = {}

    def measure(name: str, translator: Any, how: Decoding) -> None:
        for test, pairs in tests.items():
            outputs, found = translated(plan, name, translator, pairs, how, test)
            rows.append(found)
            kept[f"{name} T{how.passes}" if name.split("-")[0] in PARALLEL else name, test] = outputs

    teacher, found = trained(plan, Job("teacher", "autoregressive", teacher_seconds, seed=seed))
    runs.append(found)
    for beam in (1, 5):
        measure("teacher" if beam == 5 else "teacher-greedy", teacher, Decoding(beam=beam))
    distilled(plan, teacher)
    for data in ("raw", "distilled"):
        for recipe in PARALLEL:
            model, found = trained(plan, Job(f"{recipe}-{data}", recipe, seconds, data, seed=seed))
            runs.append(found)
            for passes in PASSES:
                measure(f"{recipe}-{data}", model, Decoding(passes=passes, lengths=5))
    model, found = trained(plan, Job("deep_shallow-distilled", "deep_shallow", seconds, "distilled", seed=seed))
    runs.append(found)
    measure("deep_shallow-distilled", model, Decoding(beam=1))
    model, found = trained(plan, Job("one_pass-raw", "one_pass", seconds, seed=seed))
    runs.append(found)
    measure("one_pass-raw", model, Decoding())
    gaps = []
    for test, pairs in tests.items():
        references = [pair[1] for pair in pairs]
        for name in sorted({key for key, on in kept if on == test and key != "teacher"}):
            gap = compared(kept[name, test], kept["teacher", test], references)
            gaps.append({"test": test, "system": name, "against": "teacher", **gap})
        pair = ("padir-distilled T4", "padir-distilled T10")
        gaps.append(
            {"test": test, "system": pair[0], "against": pair[1]} | compared(*(kept[k, test] for k in pair), references)
        )
    return {"direction": f"{plan.source}-{plan.target}", "systems": rows, "training": runs, "gaps": gaps}


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    options = arguments(__doc__ or "", seconds=150.0, teacher=240.0, directions=["en-de", "de-en"]).parse_args(argv)
    found = [direction(plan, options.seconds, options.teacher_seconds, options.seed) for plan in plans(options)]
    write("table1", {"directions": found}, options, plans(options)[0].device)


if __name__ == "__main__":
    main()
