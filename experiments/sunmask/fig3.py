"""SUNMASK's Figures 3 to 5: what a mask controls. "Ode to Joy" in the soprano, the other voices drawn.

    A   the whole soprano is given: fixed, and marked as trusted
    B   its left half is given; its right half is held: fixed too, but not marked, so that the model need not follow it
    C   its left half is given; its right half is asked, and rewritten with the other voices

Only a model that is shown what stands in untrusted cells can tell B from the right half not being there at all, which
is the paper's point. So for each setting, beside a picture: how often the soprano's right half is kept, and how well
the lower voices fit the tune there: nats per cell of the lower voices of one half given the whole tune and the other
half, under the one-pass model that ships with anyfill (lower = fits better).

The paper's model is far larger (417.5 M parameters) and was trained for hours; ours here is a small U-Net trained on a
CPU by ``experiments/sunmask/models.py --model smc_time --keep-given --width 32 --depth 2 --batch 16 --crop 64
--seconds 1500``.

    python -m experiments.sunmask.fig3 --model FOLDER
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.music import model as music_model
from anyfill.music.chorale import REST, VOICES, Chorale, pitches_of
from anyfill.music.piano_roll import Panel, draw_piano_roll
from anyfill.music.request import resized
from anyfill.questions import Question
from anyfill.recipes import sunmask
from anyfill.samplers import sample
from anyfill.training import load_model
from benchmarks.common import write_result

STEPS = 64
# Beethoven, 9th symphony, last movement, the first four bars: (MIDI pitch, sixteenths).
TUNE = [
    *[(64, 4), (64, 4), (65, 4), (67, 4), (67, 4), (65, 4), (64, 4), (62, 4)],
    *[(60, 4), (60, 4), (62, 4), (64, 4), (64, 6), (62, 2), (62, 8)],
]
SETTINGS = {
    "A": "A: whole tune given",
    "B": "B: left half given, right half held",
    "C": "C: left half given, right half asked",
}


def tune() -> Chorale:
    """The tune in the soprano, the other voices silent."""
    pitch = np.full((len(VOICES), STEPS), REST, dtype=np.int16)
    pitch[0] = np.repeat([note for note, _ in TUNE], [length for _, length in TUNE])
    onset = np.zeros(pitch.shape, dtype=np.bool_)
    onset[0, np.cumsum([0, *[length for _, length in TUNE[:-1]]])] = True
    return Chorale(pitch, onset, title="Ode to Joy")


def masks(setting: str) -> tuple[Tensor, Tensor, Tensor]:
    """given, held, asked: bool (4 T,) each."""
    soprano = torch.zeros(STEPS, len(VOICES), dtype=torch.bool)
    soprano[:, 0] = True
    right = (torch.arange(STEPS) >= STEPS // 2).unsqueeze(1) & soprano
    given = soprano if setting == "A" else soprano & ~right
    held = right if setting == "B" else torch.zeros_like(right)
    return given.flatten(), held.flatten(), ~(given | held).flatten()


def nats_below(judge: Model, rows: Tensor, codes: Tensor) -> tuple[float, float]:
    """Nats per cell of the lower voices of the left and of the right half, each given the tune and the other half."""
    x = rows.clone().reshape(len(rows), STEPS, len(VOICES))
    x[:, :, 0] = codes.reshape(STEPS, len(VOICES))[:, 0]
    halves: list[float] = []
    for half in (slice(0, STEPS // 2), slice(STEPS // 2, STEPS)):
        asked = torch.zeros_like(x, dtype=torch.bool)
        asked[:, half, 1:] = True
        question = Question(~asked.flatten(1), asked.flatten(1))
        value = log_prob(judge, x.flatten(1), question).value
        halves.append(float(-value.mean() / int(asked[0].sum())))
    return halves[0], halves[1]


def main() -> None:
    """Draw the three settings, measure, write JSON and PNG."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder of a trained SUNMASK model")
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=512)
    parser.add_argument("--variant", default="T")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="sunmask/fig3")
    arguments = parser.parse_args()
    model = resized(load_model(arguments.model).float().eval(), STEPS)
    judge = resized(music_model.load_network().eval(), STEPS)
    piece = tune()
    codes = piece.codes()
    policy, draw = sunmask.sampler(arguments.variant, voices=4, rounds=arguments.rounds)
    found: dict[str, Any] = {}
    panels: list[Panel] = []
    for setting, title in SETTINGS.items():
        given, held, asked = (mask.expand(arguments.samples, -1) for mask in masks(setting))
        generator = torch.Generator().manual_seed(arguments.seed)
        rows = sample(
            model,
            codes.expand(arguments.samples, -1).clone(),
            Question(given, asked),
            policy=policy,
            draw=draw,
            held=held,
            generator=generator,
            allow_untrained=True,
        ).x
        soprano = rows.reshape(len(rows), STEPS, -1)[:, STEPS // 2 :, 0] == codes.reshape(STEPS, -1)[STEPS // 2 :, 0]
        left, right = nats_below(judge, rows, codes)
        found[setting] = {
            "setting": title,
            "right half of the tune kept": float(soprano.double().mean()),
            "nats per cell below, left": left,
            "nats per cell below, right": right,
        }
        print(found[setting], flush=True)
        locked = ~masks(setting)[2].numpy().reshape(-1, len(VOICES)).T
        filled = Chorale(pitches_of(rows[0]), np.where(locked, piece.onset, False))
        panels.append(Panel(filled, title, locked=locked))
    shown = {key: value for key, value in vars(arguments).items() if key != "model"}
    path = write_result(arguments.name, {"arguments": shown, "settings": found, "protocol": __doc__})
    draw_piano_roll(panels, path.with_suffix(".png"), title="SUNMASK: what a mask controls")


if __name__ == "__main__":
    main()
