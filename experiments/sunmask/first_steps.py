"""Why the U-Net over (time, pitch) learned so slowly: how it starts. Small ones on a CPU, six starts, the same rows.

SMc reached 1.24 nats a cell after 1,622 steps on an H200, where SMt had 0.46 after 500. Suspects: the last layer (P x
P, zero at first, behind a small kernel), the first one (a known cell lights one place of its note's image
and all P of its flag's), kernels that smear each note over all pitches, and a way up that grows fainter:

    as it was          last layer 0, all kernels as torch starts them
    identity           the last layer starts as the identity
    notes              kernels of the notes start sqrt(P) times as large
    both               identity and notes
    places             both, and half of what a kernel passes on comes from its own place: ``PitchUNet`` now
    even               places, and orthogonal weights around layers that join channels, which keep what goes in as loud

Means of the loss (nats a cell that is asked, as in training, one step) over 40 steps each; AdamW 1e-3, 8 crops of half
a bar a step, width 8, two levels of --repeats blocks, no attention. The same rows, questions and noise for all; one
seed.

    python -m experiments.sunmask.first_steps
    python -m experiments.sunmask.first_steps --repeats 3 --starts both places even --name sunmask/first_steps_deep
"""

import argparse
import math
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from anyfill.music.chorale import CODES, VOICES
from anyfill.music.crops import Crops
from anyfill.music.files import read_jsb
from anyfill.networks.embed import Discrete
from anyfill.networks.pitch_unet import PitchUNet, start_evenly
from anyfill.networks.unet_parts import ResidualBlock
from benchmarks.common import write_result
from experiments.where import data_folder, shown

STARTS: dict[str, tuple[str, ...]] = {
    "as it was": (),
    "identity": ("identity",),
    "notes": ("notes",),
    "both": ("identity", "notes"),
    "places": ("identity", "notes", "places"),
    "even": ("identity", "notes", "places", "even"),
}
STEPS, EVERY, BATCH = 8, 40, 8


def started(kind: str, seed: int, repeats: int) -> PitchUNet:
    """A fresh network that starts like this."""
    torch.manual_seed(seed)
    net = PitchUNet(
        Discrete(CODES), (STEPS, len(VOICES)), CODES, width=8, repeats=repeats, multipliers=(1, 2), attention_at=()
    )
    has = STARTS[kind]
    blocks = [block for block in net.modules() if isinstance(block, ResidualBlock)]
    with torch.no_grad():
        if "places" not in has:
            for kernel in (net.enter, *(block.first for block in blocks)):
                kernel.inner.reset_parameters()
            net.enter.inner.weight[:, : len(VOICES)] *= math.sqrt(CODES) if "notes" in has else 1.0
        if "identity" not in has:
            net.head.weight.zero_()
    if "even" in has:
        start_evenly(net)
    return net


def main() -> None:
    """Train all side by side, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--starts", nargs="+", choices=list(STARTS), default=list(STARTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="sunmask/first_steps")
    arguments = parser.parse_args()
    pieces = read_jsb(arguments.data / "jsb_chorales" / "jsb16_train_valid.json", "train")
    source = Crops(pieces, STEPS, stride=STEPS)
    nets = {kind: started(kind, arguments.seed, arguments.repeats) for kind in arguments.starts}
    optimizers = {kind: torch.optim.AdamW(net.parameters(), 1e-3, betas=(0.9, 0.99)) for kind, net in nets.items()}
    losses: dict[str, list[float]] = {kind: [] for kind in nets}
    generator = torch.Generator().manual_seed(arguments.seed + 1)
    start = time.process_time()
    for step in range(1, arguments.steps + 1):
        rows = source.take(torch.randint(len(source), (BATCH,), generator=generator))
        noise = torch.rand(BATCH, 1, generator=generator)
        known = (torch.rand(rows.x.shape, generator=generator) >= noise) & rows.present
        shown_x = torch.where(known, rows.x, torch.randint(CODES, rows.x.shape, generator=generator))
        asked = ~known & rows.present
        for kind, net in nets.items():
            law = net(shown_x, known).log_softmax(-1)
            nats = -law.gather(-1, rows.x.unsqueeze(-1)).squeeze(-1)
            loss = ((nats * asked).sum(1) / (1 + asked.sum(1))).mean()
            optimizers[kind].zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizers[kind].step()
            losses[kind].append(float(loss.detach()))
        if step % EVERY == 0:
            print(step, {kind: round(sum(one[-EVERY:]) / EVERY, 3) for kind, one in losses.items()}, flush=True)
    means: dict[str, Any] = {
        kind: [round(sum(one[first : first + EVERY]) / EVERY, 4) for first in range(0, len(one), EVERY)]
        for kind, one in losses.items()
    }
    found = {"every": EVERY, "means": means, "cpu_seconds": time.process_time() - start, "protocol": __doc__}
    write_result(arguments.name, {"arguments": shown(vars(arguments)), **found})


if __name__ == "__main__":
    main()
