"""Speculative sampling of text against one by one from the cache: passes per character, wall-clock, and the same law.

    python -m benchmarks.speculative [--model FOLDER] [--device cuda] [--batches 1 16 64] [--repeats 5]
    python -m benchmarks.speculative --train --size 6M --seconds 120 --device cuda

one by one   CachedChain: one pass, of one token per row, for each character
own          Speculative(): the network drafts, two passes a round
counts       Speculative(draft=NgramDraft.of(training text)): counts draft, one pass a round

    joint    250 characters out of nothing
    holes    4 stretches of 16 characters of held-out text, given the rest

The ways take turns, in float32, on the same seeds; the ratio is of median seconds, above 1 where speculation wins.
Passes are those a row needed, drafts included. The law is the same (tests prove it by chi-square on enumerated laws),
so the bits per character of what was drawn, under the model itself, must agree within their standard errors: ``z`` is
the difference in units of that. Without --model it is the shipped model; with --train, or if none ships, one is trained
here. Counting n-grams is done once and timed apart. Writes results/speculative.json.
"""

import argparse
import math
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.questions import Factorization, Question
from anyfill.samplers import CachedChain, Sampler, Speculative, sample
from anyfill.samplers.drafts import NgramDraft
from anyfill.text.recipes import TEXT_SIZES, TextSize, text_model, text_objective
from anyfill.text.tokens import Windows
from anyfill.text.vocabulary import TEXT8
from anyfill.training import FitOptions, fit
from benchmarks.common import write_result
from benchmarks.text_likelihood import LENGTH, default_text8, given_model, read_text8, recorded

RECIPE = "one_pass_spans"
HOLES, HOLE = 4, 16


def trained(tokens: Tensor, size: TextSize, seconds: float, device: torch.device, seed: int) -> Model:
    """A model trained here."""
    model, objective = text_model(RECIPE, LENGTH, TEXT8.size, size=size), text_objective(RECIPE, LENGTH)
    is_cuda = device.type == "cuda"
    options = FitOptions(
        steps=10_000_000,  # the seconds end the run
        seconds=seconds,
        batch_size=256 if is_cuda else 16,
        learning_rate=3e-3,
        warmup_steps=100 if is_cuda else 20,
        optimizer="muon",
        betas=(0.9, 0.95),
        weight_decay=0.1,
        precision="bf16-mixed" if is_cuda else "32-true",
        compile=is_cuda,
        seed=seed,
    )
    fit(model.to(device), Windows(tokens.to(device), LENGTH), objective, options)
    plain = text_model(RECIPE, LENGTH, TEXT8.size, size=size)  # without what was compiled for training
    plain.load_state_dict(model.state_dict())
    plain.factorizations = model.factorizations
    return plain


def questions(chunks: Tensor) -> dict[str, Question]:
    """The joint, and 4 holes of 16 characters, one in each quarter, at other places in every chunk (B, 250)."""
    nothing = torch.zeros(chunks.shape, dtype=torch.bool, device=chunks.device)
    holes = torch.zeros_like(nothing)
    quarter = LENGTH // HOLES
    for row in range(len(chunks)):
        for hole in range(HOLES):
            start = quarter * hole + (7 * row + 13 * hole) % (quarter - HOLE)
            holes[row, start : start + HOLE] = True
    return {"joint": Question(nothing, ~nothing), "holes": Question(~holes, holes)}


def bits_of(bits: Tensor, others: Tensor) -> dict[str, float | int]:
    """Mean, standard error, and the difference to one by one in standard errors; of rows (R,) each."""
    squared = [float(part.var()) / len(part) if len(part) > 1 else math.inf for part in (bits, others)]
    return {
        "rows": len(bits),
        "bits_per_character": float(bits.mean()),
        "bits_stderr": math.sqrt(squared[0]) if squared[0] < math.inf else -1.0,
        "z": float(bits.mean() - others.mean()) / math.sqrt(max(sum(squared), 1e-30)),
    }


@dataclass(slots=True)
class Run:
    """What one way did on one question and batch: seconds of each repeat, passes and bits of each row."""

    seconds: list[float]
    passes: list[Tensor]
    bits: list[Tensor]

    def figures(self, base: "Run", asked: int) -> dict[str, Any]:
        """Against one by one."""
        passes = torch.cat(self.passes).double()
        return {
            "seconds": statistics.median(self.seconds),
            "seconds_of_each": self.seconds,
            "ratio": statistics.median(base.seconds) / statistics.median(self.seconds),
            "passes_per_row": passes.mean().item(),
            "passes_per_character": passes.mean().item() / asked,
            **bits_of(torch.cat(self.bits), torch.cat(base.bits)),
        }


def measure(
    model: Model, chunks: Tensor, question: Question, ways: dict[str, Sampler], arguments: argparse.Namespace
) -> dict[str, Run]:
    """Every way on these chunks (B, 250), taking turns."""
    device, asked = chunks.device, int(question.asked.sum(1)[0])
    runs = {name: Run([], [], []) for name in ways}
    for repeat in range(-1, arguments.repeats):  # the first is not counted
        for name, way in ways.items():
            generator = torch.Generator(device).manual_seed(arguments.seed + 1000 * repeat)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            began = time.perf_counter()
            drawn = sample(model, chunks, question, policy=way, generator=generator)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            took = time.perf_counter() - began
            if repeat >= 0:
                runs[name].seconds.append(took)
                runs[name].passes.append(drawn.row_passes.cpu())
                bits = -log_prob(model, drawn.x, question).value / (asked * math.log(2))
                runs[name].bits.append(bits.cpu())
    return runs


def main() -> None:
    """Every question and batch, each written as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="folder of a saved one-pass model of 250 characters")
    parser.add_argument("--train", action="store_true", help="train a model here, whatever ships")
    parser.add_argument("--size", default="6M", choices=list(TEXT_SIZES), help="of the model trained here")
    parser.add_argument("--seconds", type=float, default=120.0, help="of training")
    parser.add_argument("--text8", type=Path, default=default_text8(), help="text8 prefix, plain or .gz")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--questions", nargs="+", default=["joint", "holes"], choices=["joint", "holes"])
    parser.add_argument("--order", type=int, default=6, help="of the n-grams")
    parser.add_argument("--window", type=int, default=16)
    parser.add_argument("--price", type=float, help="of one more guess; default: the sampler's own")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="speculative", help="results/NAME.json")
    arguments = parser.parse_args()
    torch.set_float32_matmul_precision("highest")
    device = torch.device(arguments.device)
    tokens, chunks = read_text8(arguments.text8)
    model = None if arguments.train else given_model(arguments.model)
    source = "given" if model is not None else "trained here"
    if model is None:
        model = trained(tokens, arguments.size, arguments.seconds, device, arguments.seed)
    model = model.to(device).eval()
    began = time.perf_counter()
    draft = NgramDraft.of(tokens, TEXT8.size, order=arguments.order).to(device)
    counting = time.perf_counter() - began
    settings = {"window": arguments.window, "price": arguments.price}
    ways: dict[str, Sampler] = {
        "one by one": CachedChain(),
        "own": Speculative(**settings),
        "counts": Speculative(draft=draft, **settings),
    }
    asked = {"joint": LENGTH, "holes": HOLES * HOLE}
    if model.factorizations == {Factorization.PREFIX}:
        del asked["holes"]  # a left-to-right model is not trained for it
    posed = [name for name in arguments.questions if name in asked]
    if not posed or not arguments.batches:
        parser.error("a left-to-right model can be asked for the joint only, and of one batch at least")
    results: dict[str, dict[str, object]] = {}
    for name in posed:
        every: dict[str, list[Tensor]] = {way: [] for way in ways}
        results[name] = {"asked": asked[name]}
        for batch in arguments.batches:
            rows = chunks[torch.arange(batch) * (len(chunks) // batch)].to(device)
            runs = measure(model, rows, questions(rows)[name], ways, arguments)
            found = {way: run.figures(runs["one by one"], asked[name]) for way, run in runs.items()}
            for way, figures in found.items():
                every[way] += runs[way].bits
                print(
                    f"{name:6s} batch {batch:3d}  {way:11s} {figures['seconds']:8.3f} s  "
                    f"ratio {figures['ratio']:5.2f}  {figures['passes_per_character']:.3f} passes per character  "
                    f"{figures['bits_per_character']:.3f} ± {figures['bits_stderr']:.3f} bits (z {figures['z']:+.1f})",
                    flush=True,
                )
            results[name][f"batch {batch}"] = found
            results[name]["all batches"] = law = {
                way: bits_of(torch.cat(bits), torch.cat(every["one by one"])) for way, bits in every.items()
            }
            payload = {
                "arguments": recorded(arguments),
                "model": source,
                "parameters": sum(parameter.numel() for parameter in model.parameters()),
                "counting_seconds": counting,
                "contexts": len(draft.table),
                "results": results,
            }
            path = write_result(arguments.name, payload, device=device)
        line = ", ".join(f"{way} {one['bits_per_character']:.3f} (z {one['z']:+.1f})" for way, one in law.items())
        print(f"{name:6s} bits per character over all batches: {line}", flush=True)
    print(f"wrote {path.name} to {path.parent.name}/")


if __name__ == "__main__":
    main()
