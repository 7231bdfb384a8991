"""The command line of ``static_mnist``: one list of options for all that it does."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anyfill.images.shifts import MAX_SHEARS


def said(arguments: argparse.Namespace) -> dict[str, Any]:
    """The command line, without folders."""
    return {name: _said(value) for name, value in vars(arguments).items()}


def _said(value: Any) -> Any:
    if isinstance(value, list):
        return [_said(one) for one in value]
    return value.name if isinstance(value, Path) else value


def options_of(words: Sequence[str] | None = None, *, text: str | None = None) -> argparse.Namespace:
    """The command line, or these words; ``text`` is what --help begins with."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("compile", "probe", "targets", "train", "keep", "mix", "head", "score"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--begin", type=float, default=0.0, help="seconds since 1970: training waits for it, compiled")
    parser.add_argument("--until", type=float, help="seconds since 1970: when training, or scoring, is to end")
    parser.add_argument("--validate-every", type=int, default=1000)
    parser.add_argument("--save-every", type=int, default=10**9, help="steps between checkpoints to go on from")
    parser.add_argument("--question-rows", type=int, help="of scoring: so many rows for questions, evenly spread")
    parser.add_argument(
        "--weight-rows", type=int, default=2000, help="of scoring: of the --valid-rows, how many choose weights"
    )
    parser.add_argument(
        "--scans", type=int, choices=range(1, 9), default=8, metavar="K",
        help="of scoring: the first K of the eight scans; fewer than eight are all that is scored",
    )  # fmt: skip
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--tokens", choices=("pixels", "patches", "blanks"), default="pixels")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--decay", type=float, default=0.1)
    parser.add_argument("--ema", type=float, default=0.999)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--neighbours", type=int, default=0, help="pixels around one that its head reads, if known")
    parser.add_argument("--joint", type=float, default=0.7, help="share of rows that follow a scan")
    parser.add_argument("--raster", type=float, default=0.5, help="share of these that follow the raster order, about")
    parser.add_argument("--shifts", type=int, default=0, help="told shifts of training pictures, by so many pixels")
    parser.add_argument(
        "--shears", type=int, default=0, choices=range(MAX_SHEARS + 1), metavar="N",
        help="told shears of training pictures, by so many tenths: row r moves right by round(k / 10 (r - 13.5)) "
        "pixels, k from -N to N, and columns down likewise",
    )  # fmt: skip
    parser.add_argument("--still", type=float, default=1 / 3, help="share of the pictures that are not changed, about")
    parser.add_argument("--targets", type=Path, help="soft targets of the training rows, a file of the command targets")
    parser.add_argument(
        "--target-share", type=float, help="what of each term they are, the pixel the rest; 0.5 by default"
    )
    parser.add_argument(
        "--tossed", type=float, default=0.0, help="up to what share of a picture's pixels is tossed anew from --targets"
    )
    parser.add_argument("--restore-steps", type=int, default=4000, help="of targets: steps of the U-Net, at most")
    parser.add_argument("--restore-seconds", type=float, help="of targets: seconds of its training")
    parser.add_argument("--restore-eager", action="store_true", help="of targets: not compiled, which begins sooner")
    parser.add_argument("--restore-batch", type=int, default=256, help="of targets: rows of a step")
    parser.add_argument("--restore-width", type=int, default=64, help="of targets: channels of its first level")
    parser.add_argument("--restore-only", action="store_true", help="of targets: train the U-Net, and ask it nothing")
    parser.add_argument("--valid-too", action="store_true", help="train on validation rows behind --valid-rows, too")
    parser.add_argument(
        "--no-trial", dest="trial", action="store_false", help="no trial run: what it compiles is there"
    )
    parser.add_argument(
        "--start", type=Path, help="begin with the weights of this run, of the same sizes, shifts and shears"
    )
    parser.add_argument(
        "--of", type=Path, nargs="+", help="of mix: runs, whose weights it is the mean of; of head: one"
    )
    parser.add_argument("--rows", type=int, help="so many rows only, for a trial")
    parser.add_argument("--train-rows", type=int, help="so many rows to train on only")
    parser.add_argument("--valid-rows", type=int, default=2048, help="validation rows that are looked at in training")
    parser.add_argument("--only", nargs="+", help="of probing: these settings alone, in this order")
    parser.add_argument("--seed", type=int, default=0)
    found = parser.parse_args(words)
    if found.target_share is not None and found.targets is None and found.command in ("compile", "probe", "train"):
        parser.error("--target-share: there are no --targets to have a share")
    if found.tossed and found.targets is None and found.command in ("compile", "probe", "train"):
        parser.error("--tossed: there are no --targets to toss from")
    if (found.command in ("mix", "head")) != (found.of is not None):
        parser.error("--of: the runs to mix, or the run whose head is trained anew, for mix and head and nothing else")
    if found.command == "head" and len(found.of) != 1:
        parser.error(f"--of: one run whose head is trained anew, got {len(found.of)}")
    if found.tossed and not (found.shifts or found.shears):
        parser.error("--tossed goes with --shifts or --shears")
    found.target_share = 0.5 if found.target_share is None else found.target_share
    return found
