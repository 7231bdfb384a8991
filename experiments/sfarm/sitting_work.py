"""What one method does in its own process of a sitting: compile, wait for its turn, train, score.

--compile-only   a trial run, nothing else
--train-only     no scores; what static jobs take to complete pictures (--fills), alone on the GPU, is measured
--score-only     of models that are there: nothing is trained
"""

import argparse
import time
from pathlib import Path

import torch

from experiments.sfarm import fig3, fig4, table3
from experiments.sfarm.picture_scores import joint_scores, structured
from experiments.sfarm.pictures import fewer, load, parser_of, trained
from experiments.sfarm.sitting_jobs import LONGEST, MARGINAL_ROWS, TINY, Job


def options_of(job: Job, arguments: argparse.Namespace) -> list[str]:
    """The command line that all scripts share, for a job."""
    common = ["--out", str(runs(arguments) / job.set), "--set", job.set, "--data", str(arguments.data)]
    common += ["--seconds", str(getattr(arguments, job.seconds)), "--seed", str(arguments.seed), *job.options]
    if arguments.tiny:
        common += [*TINY, "--steps", "3"] + (["--side", "16"] if job.set == "cifar10" else [])
    return common


def runs(arguments: argparse.Namespace) -> Path:
    return arguments.runs or arguments.out / "runs"


def work(job: Job, arguments: argparse.Namespace) -> None:
    """One method in this process: compile, wait for the word, train, score."""
    parser = parser_of(None, sets=("static", "dynamic", "fashion", "cifar10"), methods=(job.method,))
    fig3.add_options(parser)
    mine = parser.parse_args(options_of(job, arguments))
    flag = runs(arguments) / f"{job.name}.ready"

    def ready() -> None:
        flag.touch()
        if torch.cuda.is_available():
            print(f"ready, with up to {torch.cuda.max_memory_reserved() / 2**30:.1f} GiB", flush=True)
        if arguments.compile_only:
            raise SystemExit(0)
        while not flag.with_suffix(".go").exists():
            time.sleep(0.02)

    if arguments.compile_only:
        mine.graphs = False  # they take memory, and compile nothing
        if torch.cuda.is_available():
            share = job.memory * 2**30 / torch.cuda.get_device_properties(0).total_memory
            torch.cuda.set_per_process_memory_fraction(min(share, 1.0))
    data = load(mine)
    if arguments.score_only and not (mine.out / job.method / "run.json").exists():
        raise SystemExit(f"{job.name} was not trained")
    model = trained(job.method, data, mine, ready=ready)
    mine.draws = 2
    mine.seed = 0  # what is asked is the same, whatever seed a model was trained with
    fills = arguments.fills if job.set == "static" and job.method != "sfarm-paper" else 0
    if arguments.train_only:
        if fills:
            fig3.time_alone(job.method, model, fewer(data, fills), mine)
        flag.with_suffix(".done").touch()
        return
    if job.method != "ddpm":
        scores = joint_scores(job.method, model, data, mine)
        print(
            f"{job.name}: {scores['nats']:.3f} +- {scores['stderr']:.3f} nats, {scores['bits_per_dim']:.4f} bits",
            flush=True,
        )
    if job.set == "cifar10" and job.method != "sfarm":
        table3.marginals(job.method, model, data, mine, MARGINAL_ROWS, LONGEST)
    if fills:
        fig3.completed(job.method, model, fewer(data, fills), mine)
    if job.masks and job.set not in arguments.no_masks:
        mine.passes = min(job.mask_passes, 4) if arguments.tiny else job.mask_passes
        some = fewer(data, job.masks)
        fig4.bits_of(job.method, model, some, structured(data.shape, len(some.test), seed=mine.seed), mine)
