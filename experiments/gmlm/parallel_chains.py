"""Propositions 2 and 3 and remark 8 of the GMLM paper: which Markov chains a parallel-decoding transformer can be.

A transformer that answers all positions at once and draws them independently is a Markov chain with transitions

    Q(x, y) = prod_i q_i(y_i | x)                                                                    (eq. I.62)

Proposition 3 (10 in appendix I): it can be exactly the chains whose transitions are such products. For any chain P the
best product has the marginals of P, and falls short by the total correlation of a step,

    floor = mean_x KL( P(x, .), prod_i P_i(x, .) ),         0 if and only if P is a product,

which no network can pass, and a network large enough reaches. Both sides are seen here by training: for every chain, on
all 2^N states, the excess of a small transformer over its floor, and the law its chain settles to.

    deterministic       a random map of states (proposition 2: argmax decoding must follow it for any number of steps)
    independent         independent parallel, y_i ~ p(. | x_-i): a product
    1-Gibbs, scan i     one fixed position is redrawn: a product
    1-Gibbs             a position drawn at random is redrawn: NOT a product, two positions never change together
    2-Gibbs, N-Gibbs    blocks redrawn jointly: not products
    denoise all         remark 8: y_i ~ p(x_i = y_i | x~ = x), where x~ is x ~ p with each position replaced by noise
                        with probability r: what SUNDAE and the paper's own models are trained for. A product, but of
                        other conditionals than independent parallel's: x_i itself is looked at, too

The section after proposition 3 says that "the standard 1-Gibbs sampler ... encodes a product distribution for each
transition". That holds for a fixed scan and not for a random position; the floor of that line is its size.

    python -m experiments.gmlm.parallel_chains     # two minutes on one core; writes results/gmlm/parallel_chains.json
"""

import argparse
import time
from typing import Any

import torch
from torch import Generator, Tensor

from anyfill.evaluation.mixing import stationary_law
from anyfill.ising.blocks import k_blocks
from anyfill.ising.dynamics import transition_matrix
from anyfill.ising.model import Ising
from anyfill.ising.spectra import independent_parallel_matrix
from anyfill.model import seeded
from anyfill.networks.embed import Discrete
from anyfill.networks.exact import all_codes
from anyfill.networks.transformer import Transformer
from benchmarks.common import write_result

N = 4
NOISE = 0.3


def product_of(marginals: Tensor) -> Tensor:
    """float64 (S, S): the chain that draws positions independently, from marginals (S, N, 2)."""
    codes = all_codes(N)
    matrix = torch.ones(len(codes), len(codes), dtype=torch.float64)
    for i in range(N):
        matrix = matrix * marginals[:, i].double()[:, codes[:, i]]
    return matrix


def marginals_of(matrix: Tensor) -> Tensor:
    """float64 (S, N, 2): the law of each position after a step of a chain (S, S)."""
    return torch.einsum("sy,ynv->snv", matrix, torch.nn.functional.one_hot(all_codes(N), 2).double())


def floor_of(matrix: Tensor) -> float:
    """Mean over states of the total correlation of a step, nats."""
    product = product_of(marginals_of(matrix))
    terms = torch.where(matrix > 0, matrix * (matrix / torch.where(matrix > 0, product, 1.0)).log(), 0.0)
    return float(terms.sum(1).mean())


def denoise_all(law: Tensor, noise: float) -> Tensor:
    """The chain that draws each position from p(x_i | x~), x~ being x ~ law (S,) with noise."""
    codes = all_codes(N)
    same = (codes.unsqueeze(1) == codes).sum(-1)  # (S clean, S noisy)
    shown = (1 - noise / 2) ** same * (noise / 2) ** (N - same)
    posterior = (law.unsqueeze(1) * shown).T  # (S noisy, S clean)
    return product_of(marginals_of(posterior / posterior.sum(1, keepdim=True)))


def scan(truth: Ising, position: int) -> Tensor:
    """1-Gibbs at one fixed position: the only block, of k-Gibbs' blocks of one."""
    codes, law = all_codes(N), truth.log_joint().detach().exp()
    others = torch.arange(N) != position
    agree = (codes[:, others].unsqueeze(1) == codes[:, others]).all(-1).double()
    matrix = agree * law
    return matrix / matrix.sum(1, keepdim=True)


def chains_of(truth: Ising, *, generator: Generator) -> dict[str, Tensor]:
    """Transition matrices (S, S) by name."""
    log_p = truth.log_joint().detach()
    states = 2**N
    following = torch.randint(states, (states,), generator=generator)
    return {
        "deterministic": torch.nn.functional.one_hot(following, states).double(),
        "independent": independent_parallel_matrix(truth),
        "1-Gibbs, scan 0": scan(truth, 0),
        "1-Gibbs": transition_matrix(log_p, k_blocks(N, 1)),
        "2-Gibbs": transition_matrix(log_p, k_blocks(N, 2)),
        "N-Gibbs": transition_matrix(log_p, k_blocks(N, N)),
        "denoise all": denoise_all(log_p.exp(), NOISE),
    }


def learned(matrix: Tensor, steps: int, seed: int) -> Tensor:
    """float64 (S, N, 2): what a transformer answers after training on every state of a chain, alike."""
    codes = all_codes(N)
    everything, wanted = torch.ones_like(codes, dtype=torch.bool), marginals_of(matrix).float()
    with seeded(seed):
        network = Transformer(Discrete(2), (N,), 2, width=32, depth=3, heads=2, positions="learned")
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        (-(wanted * network(codes, everything).log_softmax(-1)).sum((1, 2)).mean()).backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        return network(codes, everything).double().softmax(-1)


def judge(name: str, matrix: Tensor, law: Tensor, steps: int, seed: int) -> dict[str, Any]:
    """How near a transformer comes to one chain."""
    answers = learned(matrix, steps, seed)
    wanted = marginals_of(matrix)
    per_position = torch.where(wanted > 0, wanted * (wanted.clamp(min=1e-300) / answers).log(), 0.0)
    found: dict[str, Any] = {"chain": name, "floor": floor_of(matrix), "excess": float(per_position.sum((1, 2)).mean())}
    if name == "deterministic":
        best = (answers.argmax(-1) * 2 ** torch.arange(N - 1, -1, -1)).sum(1)
        goal, now, then = matrix.argmax(1), torch.arange(len(matrix)), torch.arange(len(matrix))
        right: list[float] = []
        for _ in range(64):  # argmax decoding, again and again, against the map itself
            now, then = best[now], goal[then]
            right.append(float((now == then).double().mean()))
        return {**found, "states_right_after_1_to_64_steps": min(right)}
    settled = stationary_law(product_of(answers))
    found["network_stationary_tv"] = 0.5 * float((settled - law).abs().sum())
    if name != "1-Gibbs, scan 0":  # alone it never leaves the other positions
        found["chain_stationary_tv"] = 0.5 * float((stationary_law(matrix) - law).abs().sum())
    return found


def main() -> None:
    """Every chain for every truth: print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truths", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    start = time.process_time()
    records: list[dict[str, Any]] = []
    for number in range(arguments.truths):
        generator = Generator().manual_seed(arguments.seed + number)
        truth = Ising.random(N, generator=generator, coupling_scale=0.6, field_scale=0.3)
        law = truth.log_joint().detach().exp()
        for name, matrix in chains_of(truth, generator=generator).items():
            records.append({"truth": number, **judge(name, matrix, law, arguments.steps, arguments.seed + number)})
            print(records[-1], flush=True)
    write_result(
        "gmlm/parallel_chains",
        {"arguments": vars(arguments), "cpu_seconds": time.process_time() - start, "records": records},
    )


if __name__ == "__main__":
    main()
