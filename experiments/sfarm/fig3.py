"""SFARM's Figure 3: completion at 5 to 90 % missing by VAE, MIWAE, DDPM with RePaint, SFARM and one-pass.

    python -m experiments.sfarm.fig3 --out RUN --seconds 300 --test-rows 200

The picture, and for every rate: mean squared error of missing pixels (levels 0 to 1), the spread of the draws,
whether a classifier still gives the right label (28 x 28 with labels), seconds a draw. Bits of the missing pixels,
for those who have them, stand in Figure 4's numbers. What a method drew is kept beside its model, in
RUN/METHOD/fig3_ROWS_DRAWS.npz: where that is there, no model is needed. Seconds are what that took, whatever ran beside
it; "alone" are those of a completion that was timed by itself.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill.model import Model
from experiments.sfarm.picture_fills import as_pixels, features_for, filled, grid_picture, masked_pixels
from experiments.sfarm.picture_scores import RATES, structured
from experiments.sfarm.pictures import Data, load, parser_of, timed, trained, write

Drawn = dict[str, tuple[torch.Tensor, float]]


def kept_at(method: str, data: Data, arguments: argparse.Namespace) -> Path:
    """Where the draws of a method are kept."""
    return arguments.out / method / f"fig3_{len(data.test)}_{arguments.draws}.npz"


def completed(method: str, model: Model | None, data: Data, arguments: argparse.Namespace) -> Drawn:
    """By rate: codes (draws, B, N) of the test rows with the missing pixels drawn, and seconds; kept, or made now."""
    path = kept_at(method, data, arguments)
    if path.exists():
        with np.load(path, allow_pickle=False) as held:
            names = [name for name in held.files if not name.startswith("seconds")]
            return {
                name: (torch.from_numpy(held[name]).long(), float(held[f"seconds, {name}"])) for name in names
            }  # fmt: skip
    if model is None:
        raise ValueError(f"{path}: what {method} drew is not there, and no model to draw it")
    masks = structured(data.shape, len(data.test), seed=arguments.seed)
    source = torch.Generator(next(model.parameters()).device).manual_seed(arguments.seed)
    found: Drawn = {}
    for rate in RATES:
        asked, _ = masks[f"random {rate} %"]

        def work(asked: torch.Tensor = asked) -> torch.Tensor:
            return filled(
                method, model, data, data.test, asked,
                draws=arguments.draws, steps=arguments.fill_steps, generator=source,
            )  # fmt: skip

        found[f"{rate} %"] = timed(work)
    arrays: dict[str, Any] = {name: drawn.to(torch.uint8).numpy() for name, (drawn, _) in found.items()}
    np.savez_compressed(path, **arrays, **{f"seconds, {name}": np.array(one[1]) for name, one in found.items()})
    return found


def time_alone(method: str, model: Model, data: Data, arguments: argparse.Namespace) -> None:
    """Seconds of one completion of all test rows with half of the pixels missing, while nothing else is running."""
    asked, _ = structured(data.shape, len(data.test), seed=arguments.seed)["random 50 %"]
    source = torch.Generator(next(model.parameters()).device).manual_seed(arguments.seed)
    steps = arguments.fill_steps
    _, seconds = timed(
        lambda: filled(method, model, data, data.test, asked, draws=arguments.draws, steps=steps, generator=source)
    )
    about = {"missing": "50 %", "pictures": len(data.test), "draws": arguments.draws, "seconds": seconds}
    _alone(arguments, method).write_text(json.dumps(about) + "\n")


def _alone(arguments: argparse.Namespace, method: str) -> Path:
    return arguments.out / method / "fig3_seconds.json"


def trained_as(record: Path) -> dict[str, Any]:
    """Where, how long and with what seed a method was trained."""
    about = json.loads(record.read_text()) if record.exists() else {}
    found = {name: about.get(name) for name in ("seconds", "steps", "parameters", "device", "commit")}
    return found | {"seed": about.get("options", {}).get("seed")}


def add_options(parser: argparse.ArgumentParser) -> None:
    """How completions are drawn."""
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--fill-steps", type=int, default=64)


def main() -> None:
    methods = ("vae", "miwae", "ddpm", "sfarm", "one-pass")
    parser = parser_of(__doc__, sets=("mnist", "fashion", "static"), methods=methods)
    add_options(parser)
    arguments = parser.parse_args()
    from anyfill.images.metrics import completion

    data = load(arguments)
    name, _, classify = features_for(data, arguments)
    masks = structured(data.shape, len(data.test), seed=arguments.seed)
    truth = as_pixels(data.test, data)
    labels = None if data.labels is None or classify is None else data.labels.numpy()
    right = None if labels is None or classify is None else float((classify(truth).numpy() == labels).mean())
    found: dict[str, dict[str, dict[str, float | None]]] = {}
    first = torch.zeros(len(RATES), dtype=torch.int64)
    every = torch.stack([masks[f"random {rate} %"][0][0] for rate in RATES])
    lines = [("input", masked_pixels(data.test[first], every, data))]
    for method in arguments.methods:
        kept = kept_at(method, data, arguments).exists()
        drawn_at = completed(method, None if kept else trained(method, data, arguments), data, arguments)
        for rate, (drawn, seconds) in drawn_at.items():
            asked, _ = masks[f"random {rate}"]
            erased = asked.view(-1, *data.shape[:2]).numpy()
            judge = classify if labels is not None else None
            score = completion(as_pixels(drawn, data), truth, erased, labels=labels, classify=judge)
            found.setdefault(method, {})[rate] = {
                "label_kept": score.label_kept, "mse": score.error, "spread": score.spread,
                "seconds_a_draw": seconds / arguments.draws / len(data.test),
            }  # fmt: skip
        shown = [as_pixels(drawn[0, :1], data) for drawn, _ in drawn_at.values()]
        lines.append((method, np.concatenate(shown)))
        print(f"{method}: {found[method]['50 %']}", flush=True)
        about = {"classifier": name, "right_on_originals": right, "pictures": len(data.test), "methods": found}
        alone = {each: _alone(arguments, each) for each in found}
        about |= {"alone": {each: json.loads(path.read_text()) for each, path in alone.items() if path.exists()}}
        about |= {"trained": {each: trained_as(arguments.out / each / "run.json") for each in found}}
        write(arguments, f"fig3_{arguments.set}", about)
    grid_picture(lines, arguments.out / f"fig3_{arguments.set}.png", columns=[f"{rate} %" for rate in RATES])


if __name__ == "__main__":
    main()
