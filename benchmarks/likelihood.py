"""log p of a random half of 250 variables given the other half: one pass against |asked| passes of the same network.

    python -m benchmarks.likelihood [--device cpu] [--rows 8] [--repeats 1] [--seed 0]

one pass      log_prob(model, x, question): every term of the chain from one causal pass
many passes   each term asked for on its own, as a masked network must: 125 passes. Each reads only what is known at
              that step and nothing else, which is the cheapest that asking one by one can be.

Both use the same weights and must agree; the largest difference in nats is written beside the ratio.
Writes results/likelihood.json.
"""

import argparse

import torch
from torch import Tensor

from anyfill.evaluation import log_prob
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import Discrete, OnePassTransformer
from anyfill.questions import Factorization, Question, chain_rank
from anyfill.rank import NEVER
from benchmarks.common import median_seconds, write_result

VARIABLES, SYMBOLS = 250, 27


def random_model(width: int, depth: int, seed: int) -> Model:
    """A one-pass model with random weights everywhere: agreement is then tested hardest, and speed is the same."""
    torch.manual_seed(seed)
    network = OnePassTransformer(Discrete(SYMBOLS), (VARIABLES,), SYMBOLS, width, depth, heads=width // 32)
    for parameter in network.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.05)
    return Model(network, Categorical(SYMBOLS), factorizations=[Factorization.INPAINTING]).eval()


@torch.no_grad()
def one_by_one(model: Model, x: Tensor, question: Question) -> Tensor:
    """float64 (B,): the same terms, one network pass for each asked variable."""
    rank = chain_rank(model.order, question)
    total = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    for step in range(int(question.asked.sum(1).max())):
        known = torch.where(rank < step, rank - VARIABLES, NEVER)  # strictly given, in the same order
        marginals = model.chain(x, torch.where(rank == step, 0, known))
        total += torch.where(rank == step, marginals.log_prob(x).double(), 0.0).sum(1)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    model = random_model(arguments.width, arguments.depth, arguments.seed).to(device)
    generator = torch.Generator().manual_seed(arguments.seed)
    x = torch.randint(SYMBOLS, (arguments.rows, VARIABLES), generator=generator).to(device)
    asked = (torch.rand(x.shape, generator=generator).argsort(1) < VARIABLES // 2).to(device)
    question = Question(~asked, asked)
    answer = log_prob(model, x, question)
    apart = (answer.value - one_by_one(model, x, question)).abs().max().item()
    fast = median_seconds(lambda: log_prob(model, x, question), repeats=max(9, arguments.repeats), device=device)
    slow = median_seconds(lambda: one_by_one(model, x, question), repeats=arguments.repeats, warm_up=0, device=device)
    ratio = slow / fast
    print(f"one pass {fast * 1e3:9.1f} ms   ({answer.kind}, {answer.passes} pass)")
    print(f"{VARIABLES // 2} passes {slow * 1e3:7.1f} ms")
    print(f"ratio    {ratio:9.1f} x   largest difference {apart:.1e} nats")
    payload = {
        "arguments": vars(arguments),
        "one_pass_seconds": fast,
        "many_passes_seconds": slow,
        "ratio": ratio,
        "largest_difference_nats": apart,
    }
    print(f"wrote {write_result('likelihood', payload, device=device)}")


if __name__ == "__main__":
    main()
