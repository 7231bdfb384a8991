"""SFARM's Figure 4 in numbers: structured masks, bits per missing pixel, ARDM, SFARM, MAC, one-pass; and the picture.

    python -m experiments.sfarm.fig4 --out RUN --seconds 300      models that RUN has (of table2) are not trained again

Six regions (halves, inside, outside), strokes, six random rates; the same rows and masks for every method. One-pass
answers exactly in one pass; ARDM and SFARM by the stratified bound over random orders of what is asked, MAC by some
steps of its chain. SFARM is asked in the mode that has the region, and in the random mode. Differences from ARDM are
paired over rows, with 95 % bootstrap intervals.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from anyfill.evaluation import mean_of
from anyfill.model import Model
from experiments.sfarm.picture_fills import as_pixels, filled, grid_picture, masked_pixels
from experiments.sfarm.picture_scores import asked_model, question_of, scored, structured
from experiments.sfarm.pictures import Data, load, parser_of, trained, write


def bits_of(
    method: str, model: Model, data: Data, masks: dict[str, tuple[Tensor, str]], arguments: argparse.Namespace
) -> dict[str, dict[str, Tensor]]:
    """Bits per missing pixel of each row, by label and question; kept beside the model."""
    path: Path = arguments.out / method / f"fig4_{len(data.test)}_{arguments.passes}.npz"
    if path.exists():
        return kept_bits(path)
    found: dict[str, dict[str, Tensor]] = {}
    device = next(model.parameters()).device
    for name, (asked, mode) in masks.items():
        question = question_of(asked, data.shape[2], device)
        modes = {mode, "random"} if method.startswith("sfarm") else {"random"}
        for each in sorted(modes):
            told = method.startswith("sfarm") and each != mode
            label = f"{method}, random mode" if told else method
            value = scored(
                method, asked_model(method, model, each), data.test, question, data.shape[2],
                passes=arguments.passes, seed=arguments.seed,
            )  # fmt: skip
            missing = question.asked.sum(1)
            found.setdefault(label, {})[name] = (-value / (missing * math.log(2))).cpu()
    kept = {f"{label}|{name}": value.numpy() for label, each in found.items() for name, value in each.items()}
    np.savez_compressed(path, **kept)
    return found


def kept_bits(path: Path) -> dict[str, dict[str, Tensor]]:
    """What ``bits_of`` has kept."""
    found: dict[str, dict[str, Tensor]] = {}
    with np.load(path, allow_pickle=False) as held:
        for key in held.files:
            label, name = key.split("|")
            found.setdefault(label, {})[name] = torch.from_numpy(held[key])
    return found


def compared(bits: dict[str, dict[str, Tensor]]) -> dict[str, dict[str, dict[str, float | list[float]]]]:
    """By question and label: the mean over rows, and paired differences from ARDM and from SFARM's random mode."""
    found: dict[str, dict[str, dict[str, float | list[float]]]] = {}
    for label, each in bits.items():
        for name, value in each.items():
            mean = mean_of(value)
            line: dict[str, float | list[float]] = {"bits_per_missing": mean.value, "stderr": mean.stderr}
            for words, other in (("ardm", "ardm"), ("random mode", f"{label}, random mode")):
                if other != label and name in bits.get(other, {}):
                    gap = value - bits[other][name]
                    line[f"less {words}"], line[f"less {words}, 95 %"] = float(gap.mean()), interval(gap)
            found.setdefault(name, {})[label] = line
    return found


def interval(gap: Tensor, *, draws: int = 2000) -> list[float]:
    """The 95 % bootstrap interval of the mean of paired differences (B,)."""
    source = torch.Generator().manual_seed(0)
    means = gap[torch.randint(len(gap), (draws, len(gap)), generator=source)].mean(1).numpy()
    return [float(np.quantile(means, share)) for share in (0.025, 0.975)]


def main() -> None:
    parser = parser_of(
        __doc__, sets=("static", "fashion", "cifar10"), methods=("one-pass", "ardm", "mac-inpainting", "sfarm")
    )
    parser.add_argument("--fill-steps", type=int, default=64, help="groups in which U-Nets fill the picture")
    arguments = parser.parse_args()
    data = load(arguments)
    masks = structured(data.shape, len(data.test), seed=arguments.seed)
    models = {method: trained(method, data, arguments) for method in arguments.methods}
    bits: dict[str, dict[str, Tensor]] = {}
    for method, model in models.items():
        bits |= bits_of(method, model, data, masks, arguments)
    found = compared(bits)
    write(arguments, f"fig4_{arguments.set}", {"rows": len(data.test), "questions": found})
    _picture(arguments, data, models, masks)


def _picture(arguments, data, models, masks) -> None:  # type: ignore[no-untyped-def]
    names = [name for name in masks if not name.startswith("random")] + ["random 50 %"]
    rows = torch.arange(len(names)) * max(1, len(data.test) // len(names)) % len(data.test)
    x = data.test[rows]
    asked = torch.stack([masks[name][0][row] for name, row in zip(names, rows.tolist())])
    lines = [("original", as_pixels(x, data)), ("masked", masked_pixels(x, asked, data))]
    source = torch.Generator(next(iter(models.values())).parameters().__next__().device).manual_seed(arguments.seed)
    for method, model in models.items():
        drawn = x.clone()
        modes = [masks[name][1] if method.startswith("sfarm") else "random" for name in names]
        for mode in sorted(set(modes)):
            at = torch.tensor([number for number, one in enumerate(modes) if one == mode])
            drawn[at] = filled(
                method, model, data, x[at], asked[at], mode=mode, steps=arguments.fill_steps, generator=source
            )[0]
        lines.append((method, as_pixels(drawn, data)))
    grid_picture(lines, arguments.out / f"fig4_{arguments.set}.png", columns=names)


if __name__ == "__main__":
    main()
