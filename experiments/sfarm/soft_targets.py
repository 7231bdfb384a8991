"""What soft targets bring where rows are few: the same network, steps and seed towards pixels and towards targets.

    python -m experiments.sfarm.soft_targets --out RUN                 results/sfarm/soft_targets.json, a CPU will do
    python -m experiments.sfarm.soft_targets --out FEW --rows 500 --valid 512 --width 128 --steps 1000 --shifts 2 \\
        --shares 0.5 --tossed 0 0.5 --results results/sfarm/tossed_coins.json

Further words are options of ``static_mnist``, for all curves: --shears 2, say.

Static binarised MNIST, its first 1,000 training rows. A U-Net of these rows restores left-out pixels
(``static_mnist_targets``); then a small one-pass network over patches of 2 x 2 pixels, with 95 % of its batches in the
raster order, is trained with targets that are a share s of each term: 0 is the pixels as they are. With ``--tossed`` up
to a share of each picture's coins is tossed anew by the targets, too (``ShiftedRows``). Exact nats of 1,024
validation rows, on which neither network was trained (they choose the U-Net's checkpoint), every so many steps.
"""

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any

from anyfill.training import FitOptions, fit_steps
from benchmarks.common import environment
from experiments.sfarm import static_mnist, static_mnist_targets

RESULTS = Path(__file__).resolve().parents[2] / "results" / "sfarm"
SHARES = (0.0, 0.5, 1.0)


def curve(arguments: argparse.Namespace, share: float, tossed: float = 0.0) -> list[dict[str, Any]]:
    """Step, times through the rows, and exact nats of validation rows, of one training."""
    changed = {"target_share": share, "tossed": tossed, "targets": arguments.out / "targets.npy"}
    own = argparse.Namespace(**{**vars(arguments), **changed})
    device = static_mnist.device_of()
    rows, valid = static_mnist.sources(own, device)
    options = FitOptions(
        steps=own.steps, batch_size=own.batch, learning_rate=own.rate, warmup_steps=50, optimizer="muon",
        betas=(0.9, 0.95), weight_decay=own.decay, ema=0.99, report_every=own.validate_every,
        validate_every=own.validate_every, save_every=10**9, seed=own.seed,
    )  # fmt: skip
    found: list[dict[str, Any]] = []
    for report in fit_steps(
        *(static_mnist.fresh(own), rows, static_mnist.objective(own), options),
        validation=valid, validation_objective=static_mnist.raster(own),
    ):  # fmt: skip
        if report.validation_loss is not None:
            epochs = report.step * own.batch / own.train_rows
            found.append({"step": report.step, "epochs": epochs, "nats": report.validation_loss})
            print(
                f"share {share:g}, tossed {tossed:g}: step {report.step}, {epochs:.1f} epochs, "
                f"{report.validation_loss:.3f}",
                flush=True,
            )
    return found


def main() -> None:
    """Targets, then a training for each share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--restore-steps", type=int, default=500)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--tossed", type=float, nargs="+", default=(0.0,), help="each with each of the shares")
    parser.add_argument("--shifts", type=int, default=0)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--valid", type=int, default=1024)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--results", type=Path, default=RESULTS / "soft_targets.json")
    asked, further = parser.parse_known_args()
    words = (
        f"train --out {asked.out} --tokens patches --batch 32 --width {asked.width} --depth 3 --dropout 0.1 "
        f"--raster 1.0 "
        f"--train-rows {asked.rows} --valid-rows {asked.valid} --steps {asked.steps} --validate-every {asked.every} "
        f"--restore-steps {asked.restore_steps} --restore-width 16 --restore-batch 64 --joint 0.95 --rate 0.003 "
        f"--shifts {asked.shifts}"
    )
    arguments = static_mnist.options_of([*words.split(), *further])
    static_mnist_targets.write_targets(arguments)
    curves: dict[str, list[dict[str, Any]]] = {}
    for share, tossed in product(asked.shares, asked.tossed):
        name = f"{share:g}" + f", tossed {tossed:g}" * (asked.tossed != (0.0,))
        curves[name] = line = curve(arguments, share, tossed)
        found = {
            "training_rows": asked.rows,
            "validation_rows": asked.valid,
            "arguments": static_mnist.said(arguments),
            "restorer": json.loads((asked.out / "targets.json").read_text()),
            "curves": curves,
            "environment": environment(static_mnist.device_of()),
        }
        asked.results.write_text(json.dumps(found, indent=1) + "\n")
        best = min(line, key=lambda one: one["nats"])
        print(f"{name}: best {best['nats']:.2f} after {best['epochs']:.0f} epochs, last {line[-1]['nats']:.2f}")


if __name__ == "__main__":
    main()
