"""Sampling: the key-value cache against recomputing, and speculative decoding against one by one, in one run.

    python -m benchmarks.sampling [--device cpu] [--rows 16] [--seconds 30] [--repeats 3] [--seed 0]

cached       250 variables drawn one by one, each step reads one token per row
prefix       the same, each step reads everything known so far again: the least that recomputing can do
full         the same, each step is a whole pass over 250 tokens, as a network without a cache does

speculative  on a model trained here for some seconds on scikit-learn's digits (64 pixels, 17 levels): passes per row
             and bits per pixel of its own samples, beside one-by-one sampling. The law is the same (tests prove it by
             chi-square on enumerated laws), so the bits must agree within their standard errors.

Writes results/sampling.json.
"""

import argparse
import math
from collections.abc import Callable

import torch
from sklearn.datasets import load_digits
from torch import Tensor

from anyfill import recipes
from anyfill.evaluation import log_prob
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import Discrete, OnePassTransformer
from anyfill.questions import Question, chain_rank
from anyfill.rank import NEVER
from anyfill.rows import Rows
from anyfill.samplers import CachedChain, Speculative, sample
from anyfill.training import FitOptions, fit
from benchmarks.common import median_seconds, write_result
from benchmarks.likelihood import SYMBOLS, VARIABLES, random_model


def everything(rows: int, variables: int, device: torch.device) -> Question:
    """Nothing given, all asked."""
    nothing = torch.zeros(rows, variables, dtype=torch.bool, device=device)
    return Question(nothing, ~nothing)


@torch.no_grad()
def recompute(model: Model, x: Tensor, question: Question, seed: int, *, full: bool) -> Tensor:
    """Draw one by one, without a cache."""
    generator = torch.Generator(x.device).manual_seed(seed)
    rank, x = chain_rank(model.order, question), torch.zeros_like(x)
    for step in range(x.shape[1]):
        known = rank if full else torch.where(rank <= step, rank, NEVER)
        drawn = model.chain(x, known, strict=full).sample(generator=generator)
        x = torch.where(rank == step, drawn, x)
    return x


def cache_against_recomputing(arguments: argparse.Namespace, device: torch.device) -> dict[str, float]:
    """Seconds of each way and the ratios."""
    model = random_model(256, 4, arguments.seed).to(device)
    x = torch.zeros(arguments.rows, VARIABLES, dtype=torch.int64, device=device)
    question = everything(arguments.rows, VARIABLES, device)

    def cached() -> Tensor:
        generator = torch.Generator(device).manual_seed(arguments.seed)
        return sample(model, x, question, policy=CachedChain(), generator=generator, allow_untrained=True).x

    ways: dict[str, Callable[[], Tensor]] = {
        "cached": cached,
        "prefix": lambda: recompute(model, x, question, arguments.seed, full=False),
        "full": lambda: recompute(model, x, question, arguments.seed, full=True),
    }
    # The slow ways take a minute or more: once is enough to tell.
    repeats = {"cached": arguments.repeats}
    seconds = {
        name: median_seconds(way, repeats=repeats.get(name, 1), warm_up=0, device=device) for name, way in ways.items()
    }
    for name, each in seconds.items():
        print(f"{name:8s} {each:8.2f} s   {each / seconds['cached']:6.1f} x")
    ratios = {f"{name}_over_cached": seconds[name] / seconds["cached"] for name in ("prefix", "full")}
    return {**{f"{name}_seconds": each for name, each in seconds.items()}, **ratios}


def speculation(arguments: argparse.Namespace, device: torch.device) -> dict[str, object]:
    """Passes and bits per pixel of speculative and one-by-one samples of a trained model."""
    pixels = torch.tensor(load_digits().images.reshape(-1, 64), dtype=torch.int64)
    torch.manual_seed(arguments.seed)
    model = Model(OnePassTransformer(Discrete(17), (8, 8), 17, width=96, depth=3, heads=3), Categorical(17)).to(device)
    options = FitOptions(steps=10**6, seconds=arguments.seconds, batch_size=128, optimizer="muon", learning_rate=3e-3)
    fit(model, Rows(pixels, torch.ones_like(pixels, dtype=torch.bool)), recipes.one_pass.objective(64), options)
    rows = 256
    x, question = torch.zeros(rows, 64, dtype=torch.int64, device=device), everything(rows, 64, device)
    result: dict[str, object] = {"variables": 64, "rows": rows}
    for name, way in {"one by one": CachedChain(), "speculative": Speculative()}.items():
        generator = torch.Generator(device).manual_seed(arguments.seed)
        drawn = sample(model, x, question, policy=way, generator=generator)
        bits = -log_prob(model, drawn.x, question).value / (64 * math.log(2))
        passes = drawn.row_passes.double().mean().item()
        error = (bits.std() / math.sqrt(rows)).item()
        result[name] = {"passes_per_row": passes, "bits": bits.mean().item(), "stderr": error}
        print(f"{name:12s} {passes:6.1f} passes per row of 64 pixels, {bits.mean():.3f} ± {error:.3f} bits per pixel")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    payload = {
        "arguments": vars(arguments),
        "variables": VARIABLES,
        "symbols": SYMBOLS,
        "cache": cache_against_recomputing(arguments, device),
        "speculative": speculation(arguments, device),
    }
    print(f"wrote {write_result('sampling', payload, device=device)}")


if __name__ == "__main__":
    main()
