"""What matters for PaDIR: the components that the paper calls critical, which it does not tabulate, one by one.

    python -m experiments.gmlm.ablation

Multi30k en-de, tiny models, equal seconds: stages 1, 2, 3; right words in the first input 0, .15, .5, U(0, 1); noise or
masks to start from; positional attention; 2k, 8k, 16k pieces; raw or distilled pairs. Length candidates 1, 3, 5, 9 are
a matter of decoding and are asked of the same model. Differences from the base by paired bootstrap.
"""

from typing import Any

from anyfill.translation.hypotheses import Decoding
from anyfill.translation.metrics import compared
from anyfill.translation.recipes import Options
from experiments.gmlm.translation import Job, Plan, arguments, distilled, plans, test_pairs, trained, translated, write

VARIANTS: dict[str, dict[str, Any]] = {
    "base": {},
    "stages-1": {"options": Options(stages=1)},
    "stages-3": {"options": Options(stages=3)},
    "kept-0": {"options": Options(kept=0.0)},
    "kept-50": {"options": Options(kept=0.5)},
    "kept-uniform": {"options": Options(kept=-1.0)},
    "start-mask": {"options": Options(start="mask")},
    "no-positional": {"options": Options(positional=False)},
    "pieces-2k": {"vocabulary": 2000},
    "pieces-16k": {"vocabulary": 16_000},
    "raw": {"data": "raw"},
}


def study(plan: Plan, seconds: float, teacher_seconds: float, seed: int, names: list[str]) -> dict[str, Any]:
    """All variants on distilled pairs, but "raw"."""
    (test, pairs), *_ = test_pairs(plan).items()
    references = [pair[1] for pair in pairs]
    teacher, found = trained(plan, Job("teacher", "autoregressive", teacher_seconds, seed=seed))
    distilled(plan, teacher)
    runs, rows, outputs = [found], list[dict[str, Any]](), dict[str, list[str]]()
    for name in names:
        change = VARIANTS[name]
        job = Job(f"padir-{name}", "padir", seconds, **({"data": "distilled"} | change), seed=seed)
        model, found = trained(plan, job)
        runs.append(found)
        for passes in (1, 4):
            made, row = translated(plan, job.name, model, pairs, Decoding(passes=passes, lengths=5), test)
            rows.append({"variant": name, **row})
            outputs[f"{name} T{passes}"] = made
        if name == "base":
            for lengths in (1, 3, 9):
                made, row = translated(plan, job.name, model, pairs, Decoding(passes=4, lengths=lengths), test)
                rows.append({"variant": f"lengths-{lengths}", **row})
                outputs[f"lengths-{lengths} T4"] = made
    gaps = [
        {"variant": name, **compared(made, outputs["base T4"], references)}
        for name, made in outputs.items()
        if "base T4" in outputs and name.endswith("T4") and name != "base T4"
    ]
    return {"variants": rows, "training": runs, "gaps_to_base": gaps}


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = arguments(__doc__ or "", seconds=60.0, teacher=120.0, size="tiny")
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    options = parser.parse_args(argv)
    plan = plans(options)[0]
    names = options.variants[:2] if options.smoke else options.variants
    write("ablation", study(plan, options.seconds, options.teacher_seconds, options.seed, names), options, plan.device)


if __name__ == "__main__":
    main()
