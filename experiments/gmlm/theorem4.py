"""Theorem 4 of the GMLM paper in numbers: its bound on the total variation of a learned joint, with C_AT of that joint.

    D_TV(p^, p) < sqrt( C_AT(p^) / 2 · (L^ + B ln 1/beta + epsilon) ) + C

for k-pseudolikelihood fits of n rows of N = 8 spins, one mask each, parameters in [-3, 3], probability 0.95. C_AT is a
supremum over laws: between ``tensorization_constant`` (found by search, a lower bound) and ``tensorization_bound``
(proved). The bound is stated with the proved one; ``at_least`` says what it would be with the other. "Needed" is one
pair of rows and masks for which the bound would fall below 1 had the right model been found; there C_AT is that of the
true law, since the learned law is then the true one.

    python -m experiments.gmlm.theorem4          # some minutes on one core; writes results/gmlm/theorem4.json
"""

import argparse
import math
import time
from dataclasses import replace
from typing import Any, get_args

import torch
from torch import Generator, Tensor

from anyfill.evaluation.mixing import learned_transition, stationary_law
from anyfill.ising.asymptotics import ising_information, ising_variance
from anyfill.ising.blocks import k_blocks
from anyfill.ising.estimation import fit_ising
from anyfill.ising.generalisation import Kind, generalisation_bound, log_covering
from anyfill.ising.model import Ising
from anyfill.ising.tensorization import tensorization_constant
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.exact import all_codes
from benchmarks.common import write_result

N, RADIUS = 8, 3.0
KINDS: tuple[Kind, ...] = get_args(Kind)


def truth_of(seed: int) -> Ising:
    """Where the data come from: all pairs coupled, strengths of both signs."""
    return Ising.random(N, generator=Generator().manual_seed(seed), coupling_scale=0.3, field_scale=0.3)


def apart(law: Tensor, log_p: Tensor) -> dict[str, float]:
    """KL(truth, law) and their total variation, from law (2^N,) and log_p (2^N,)."""
    p = log_p.exp()
    return {"kl": float((p * (log_p - law.log())).sum()), "tv": 0.5 * float((p - law).abs().sum())}


def theory(truth: Ising, ks: list[int], rows: Tensor, seed: int) -> list[dict[str, Any]]:
    """What is known without training: Poincare and tensorisation constants, the floor, the terms of theorem 4."""
    log_p = truth.log_joint().detach()
    exact = Model(truth, Categorical(2))
    fisher = ising_information(truth)
    answers: list[dict[str, Any]] = []
    for k in ks:
        blocks = k_blocks(N, k)
        found = tensorization_constant(log_p, blocks, starts=1, steps=60, generator=Generator().manual_seed(seed))
        fitted = fit_ising(Ising.complete(N, 0.0), rows, k=k, ridge=1e-3, generator=Generator().manual_seed(seed)).ising
        # The theorem asks for C_AT of the learned law.
        own = tensorization_constant(
            fitted.log_joint().detach(), blocks, starts=1, steps=60, generator=Generator().manual_seed(seed)
        )
        bound = generalisation_bound(fitted, blocks, rows, tensorization=own.bound, radius=RADIUS)
        # What would be needed if the right model were found and its loss known: nothing in excess, the best epsilon.
        codes = all_codes(N)
        least = -sum(
            float((log_p.exp() * truth.block_log_prob(codes, block.expand_as(codes)).detach()).sum())
            for block in blocks.subsets
        ) / len(blocks.subsets)
        ideal = [
            replace(
                bound,
                tensorization=found.bound,
                loss=least,
                entropy=least,
                epsilon=10.0**-power,
                log_covering=log_covering(truth, blocks, radius=RADIUS, epsilon=10.0**-power),
            )
            for power in range(1, 8)
        ]
        needed = {kind: min((i.needed(1.0, kind) for i in ideal), key=lambda pair: pair[0] * pair[1]) for kind in KINDS}
        answers.append(
            {
                "k": k,
                "poincare": found.poincare,
                "tensorization_at_least": found.constant,
                "tensorization_at_most": found.bound,
                "learned": {"poincare": own.poincare, "at_least": own.constant, "at_most": own.bound},
                "kl_times_n": 0.5 * float((fisher * ising_variance(truth, blocks)).sum()),
                "factorised_floor": apart(stationary_law(learned_transition(exact, k, inside="independent")), log_p),
                "bound": {
                    "n": len(rows),
                    "fitted": apart(fitted.log_joint().detach().exp(), log_p),
                    "loss": bound.loss,
                    "entropy": bound.entropy,
                    "log10_covering": bound.log_covering / math.log(10.0),
                    "log_margin": bound.log_margin,
                    **{kind: bound.terms(kind) for kind in KINDS},
                    "log10_needed_rows_and_masks": {
                        kind: [_log10(number) for number in numbers] for kind, numbers in needed.items()
                    },
                    "floor_for_the_right_model": {kind: ideal[-1].floor(kind) for kind in KINDS},
                    "at_least": {kind: replace(bound, tensorization=own.constant).total(kind) for kind in KINDS},
                },
            }
        )
    return answers


def _log10(number: float) -> float | None:
    return math.log10(number) if math.isfinite(number) else None


def main() -> None:
    """Every truth: print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=7500)
    parser.add_argument("--ks", type=int, nargs="+", default=[1, 2, 4, 6, 8])
    parser.add_argument("--truths", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    start = time.process_time()
    found: list[dict[str, Any]] = []
    for seed in range(arguments.seed, arguments.seed + arguments.truths):
        truth = truth_of(seed)
        rows = truth.sample(arguments.rows, generator=Generator().manual_seed(seed))
        for line in theory(truth, arguments.ks, rows, seed):
            found.append({"truth": seed, **line})
            totals = {kind: f"{line['bound'][kind]['total']:.3g}" for kind in KINDS}
            print(seed, line["k"], line["tensorization_at_most"], line["learned"], totals, flush=True)
    cpu = time.process_time() - start
    write_result("gmlm/theorem4", {"arguments": vars(arguments), "cpu_seconds": cpu, "lines": found})


if __name__ == "__main__":
    main()
