"""How fast are training masks drawn? The exact sampler against the paper's 100-fold resampling, in one run.

    python -m benchmarks.masks [--device cpu] [--threads 1] [--repeats 9] [--seed 0]

Three ways to draw B edges of the mask lattice over N variables with cardinality reweighting:

exact       MacEdges(N): the closed form, O(N) for each row, no sort
resample    Edges(UniformCardinality(N, "nothing"), reweight="resample"): 100 candidates for each kept edge, no sort
paper       the procedure of MAC, appendix B, in plain torch: a sort for each of 100 candidates, then a multinomial

The ratio is against the faster of the last two. Rounds interleave the three, so that a busy machine slows all of them.
Writes results/masks.json.
"""

import argparse
import statistics
from collections.abc import Callable

import torch
from torch import Generator, Tensor

from anyfill.questions import Edges, MacEdges, UniformCardinality
from benchmarks.common import median_seconds, write_result

SIZES = ((512, 250), (180, 250), (24, 3072))
CANDIDATES = 100


def paper_edges(batch: int, variables: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Known (B, N) and asked (B, 1): draw 100 B test masks, cut each path at a uniform step, keep B by weight s + 1."""
    rows, device = batch * CANDIDATES, generator.device
    place = torch.rand(rows, variables, generator=generator, device=device).argsort(1)
    size = torch.randint(1, variables + 1, (rows, 1), generator=generator, device=device)
    step = (torch.rand(rows, 1, generator=generator, device=device) * size).long()
    # The cheapest order of work for it: the weights need only the steps, so candidates that are dropped are never cut.
    kept = torch.multinomial((step.squeeze(1) + 1).float(), batch, generator=generator)
    test, step = place[kept] < size[kept], step[kept]
    upto = test.cumsum(1)
    return test & (upto <= step), (test & (upto == step + 1)).long().argmax(1, keepdim=True)


def measure(batch: int, variables: int, *, device: str, repeats: int, seed: int) -> dict[str, object]:
    """Median seconds of each way at one size."""
    generator = torch.Generator(device).manual_seed(seed)
    exact = MacEdges(variables)
    resample = Edges(UniformCardinality(variables, "nothing"), reweight="resample", oversample=CANDIDATES)
    # A fast call is repeated within a round, so that the clock and a busy neighbour weigh little.
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "exact": (lambda: exact.sample(batch, generator=generator), 20),
        "resample": (lambda: resample.sample(batch, generator=generator), 1),
        "paper": (lambda: paper_edges(batch, variables, generator), 1),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, (way, calls) in ways.items():
            times[name].append(median_seconds(way, repeats=calls, warm_up=1 if calls > 1 else 0, device=device))
    seconds = {name: statistics.median(rounds[1:] or rounds) for name, rounds in times.items()}  # first round: warm-up
    fastest = min(seconds["resample"], seconds["paper"])
    return {
        "batch": batch,
        "variables": variables,
        "seconds": seconds,
        "ratio_to_faster": fastest / seconds["exact"],
        "ratio_to_paper": seconds["paper"] / seconds["exact"],
        "rounds": times,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="torch threads on the CPU (default: 1)")
    parser.add_argument("--repeats", type=int, default=9, help="rounds; the first does not count (default: 9)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    settings = {"device": options.device, "repeats": options.repeats, "seed": options.seed}

    print(f"{'B':>5} {'N':>5} {'exact ms':>9} {'resample ms':>12} {'paper ms':>9} {'ratio':>7}")
    table: list[dict[str, object]] = []
    for batch, variables in SIZES:
        row = measure(batch, variables, **settings)
        table.append(row)
        ms = {name: 1e3 * value for name, value in row["seconds"].items()}  # type: ignore[union-attr]
        print(
            f"{batch:>5} {variables:>5} {ms['exact']:>9.2f} {ms['resample']:>12.1f} {ms['paper']:>9.1f}"
            f" {row['ratio_to_faster']:>6.0f}x"
        )
    path = write_result("masks", {**settings, "candidates": CANDIDATES, "sizes": table}, device=options.device)
    print(f"written: {path}")


if __name__ == "__main__":
    main()
