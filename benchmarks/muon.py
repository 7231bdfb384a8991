"""Muon: ours, all matrices of a shape at once, against ``torch.optim.Muon``, one after another, in one run.

    python -m benchmarks.muon [--device cpu] [--repeats 7] [--steps 150] [--seed 0]

step    seconds of one optimizer step over the hidden matrices of two networks, the gradients given
loss    a residual MLP on scikit-learn's digits: nats per digit on held-out rows after equal steps from equal weights,
        Muon on the hidden matrices and AdamW on the rest, mean over three seeds

Ratios are torch's over ours: above 1, ours is the faster (``step``) or the better (``loss``). Sharded weights
(FSDP) are no part of it: torch's Muon multiplies ``DTensor``s there, a message a product; ours gathers a shape at once.
Writes results/muon.json, on CUDA results/muon_cuda.json.
"""

import argparse
from collections.abc import Callable, Iterable
from functools import partial

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, relu

from anyfill.training.optimizers import Muon
from benchmarks.common import median_seconds, write_result

NETWORKS = {"table": (4, 64, 1), "chorale": (4, 128, 4)}
"""(blocks, width, how often wider inside), about of the size that the recipes of tables and music make on a CPU."""
WAYS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "ours": Muon,
    "torch": partial(torch.optim.Muon, adjust_lr_fn="match_rms_adamw"),
}


def matrices(blocks: int, width: int, wider: int, device: torch.device) -> list[Tensor]:
    """The hidden matrices of so many blocks, with gradients."""
    shapes = [(width, width)] * 4 + [(wider * width, width), (width, wider * width)]
    made = [nn.Parameter(torch.randn(shape, device=device)) for _ in range(blocks) for shape in shapes]
    for matrix in made:
        matrix.grad = torch.randn_like(matrix)
    return list[Tensor](made)


def seconds_of_a_step(device: torch.device, repeats: int) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for name, (blocks, width, wider) in NETWORKS.items():
        each = {way: make(matrices(blocks, width, wider, device), lr=1e-3).step for way, make in WAYS.items()}
        ours, theirs = (median_seconds(step, repeats=repeats, device=device) for step in each.values())
        found[name] = {"ours": ours, "torch": theirs, "torch_over_ours": theirs / ours}
        print(f"step  {name:8s} ours {ours:.4f} s   torch {theirs:.4f} s   {theirs / ours:.2f} x")
    return found


class Digits(nn.Module):
    """64 pixels -> 10 classes through residual blocks."""

    def __init__(self, width: int = 64, depth: int = 3) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(64, width), nn.Linear(width, 10)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        for block in self.blocks:
            h = h + relu(block(h))
        return self.last(h)


def loss_after(way: str, steps: int, seed: int, device: torch.device) -> float:
    """Held-out nats per digit."""
    torch.manual_seed(seed)
    pixels, digits = load_digits(return_X_y=True)
    x, y = torch.tensor(pixels / 16, dtype=torch.float32, device=device), torch.tensor(digits, device=device)
    network = Digits().to(device)
    hidden = [matrix for matrix in network.blocks.parameters() if matrix.dim() == 2]
    rest: Iterable[Tensor] = [p for p in network.parameters() if all(p is not matrix for matrix in hidden)]
    optimizers = [WAYS[way](hidden, lr=3e-3, weight_decay=0.01), torch.optim.AdamW(rest, lr=3e-3)]
    for _ in range(steps):
        index = torch.randint(1400, (128,))
        loss = cross_entropy(network(x[index]), y[index])
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    with torch.no_grad():
        return float(cross_entropy(network(x[1400:]), y[1400:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    torch.manual_seed(arguments.seed)
    step = seconds_of_a_step(device, arguments.repeats)
    seeds = range(arguments.seed, arguments.seed + 3)
    loss = {way: sum(loss_after(way, arguments.steps, seed, device) for seed in seeds) / len(seeds) for way in WAYS}
    loss["torch_over_ours"] = loss["torch"] / loss["ours"]
    print(f"loss  ours {loss['ours']:.4f}   torch {loss['torch']:.4f}   {loss['torch_over_ours']:.3f} x")
    settings = {"networks": NETWORKS, "repeats": arguments.repeats, "steps": arguments.steps, "seed": arguments.seed}
    name = "muon" if device.type == "cpu" else f"muon_{device.type}"
    print(write_result(name, {"settings": settings, "seconds_of_a_step": step, "loss_after": loss}, device=device))


if __name__ == "__main__":
    main()
