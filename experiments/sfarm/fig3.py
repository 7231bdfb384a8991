"""SFARM's Figure 3: completion at 5 to 90 % missing by VAE, MIWAE, DDPM with RePaint, SFARM and one-pass.

    python -m experiments.sfarm.fig3 --out RUN --seconds 300 --test-rows 200

The picture, and for every rate: mean squared error of missing pixels (levels 0 to 1), the spread of the draws,
whether a classifier still gives the right label (28 x 28 with labels), seconds a draw. Bits of the missing pixels,
for those who have them, stand in Figure 4's numbers.
"""

import numpy as np
import torch

from experiments.sfarm.picture_fills import as_pixels, features_for, filled, grid_picture, masked_pixels
from experiments.sfarm.picture_scores import RATES, structured
from experiments.sfarm.pictures import load, parser_of, timed, trained, write


def main() -> None:
    methods = ("vae", "miwae", "ddpm", "sfarm", "one-pass")
    parser = parser_of(__doc__, sets=("mnist", "fashion", "static"), methods=methods)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--fill-steps", type=int, default=64)
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
        model = trained(method, data, arguments)
        source = torch.Generator(next(model.parameters()).device).manual_seed(arguments.seed)
        shown = []
        for rate in RATES:
            asked, _ = masks[f"random {rate} %"]

            def work(method=method, model=model, asked=asked, source=source):  # type: ignore[no-untyped-def]
                return filled(
                    method, model, data, data.test, asked,
                    draws=arguments.draws, steps=arguments.fill_steps, generator=source,
                )  # fmt: skip

            drawn, seconds = timed(work)
            erased = asked.view(-1, *data.shape[:2]).numpy()
            judge = classify if labels is not None else None
            score = completion(as_pixels(drawn, data), truth, erased, labels=labels, classify=judge)
            found.setdefault(method, {})[f"{rate} %"] = {
                "label_kept": score.label_kept, "mse": score.error, "spread": score.spread,
                "seconds_a_draw": seconds / arguments.draws / len(data.test),
            }  # fmt: skip
            shown.append(as_pixels(drawn[0, :1], data))
        lines.append((method, np.concatenate(shown)))
        print(f"{method}: {found[method]['50 %']}", flush=True)
        write(arguments, f"fig3_{arguments.set}", {"classifier": name, "right_on_originals": right, "methods": found})
    grid_picture(lines, arguments.out / f"fig3_{arguments.set}.png", columns=[f"{rate} %" for rate in RATES])


if __name__ == "__main__":
    main()
