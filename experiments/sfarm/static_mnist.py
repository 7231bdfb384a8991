"""SFARM's Table 2, the long run: exact nats of static binarised MNIST by one one-pass model, in eight scans at once.

    python -m experiments.sfarm.static_mnist compile --out RUN                  a trial run that fills the caches
    python -m experiments.sfarm.static_mnist probe --out RUN --seconds 12       short runs of several settings
    python -m experiments.sfarm.static_mnist train --out RUN --seconds 400      one GPU; log and weights under RUN
    python -m experiments.sfarm.static_mnist targets --out RUN                  soft targets, ``static_mnist_targets``
    python -m experiments.sfarm.static_mnist keep --out RUN                     RUN/kept: one that goes on, in 8 bits
    python -m experiments.sfarm.static_mnist mix --out RUN --of RUN1 RUN2        means of weights, ``static_mnist_mix``
    python -m experiments.sfarm.static_mnist head --out RUN --of RUN1            its last layer, ``static_mnist_head``
    python -m experiments.sfarm.static_mnist score --out RUN                    all 10,000 test rows; RUN/score.json

``--until T`` (seconds since 1970) in place of ``--seconds``: training ends then, however long compiling took; scoring
leaves out what it does not begin before T, probing what would not end. ``--begin T``: it compiles and waits.

Tokens are pixels, patches of 2 x 2 pixels, or (the first long run, of 1,260 s) pixels with blanks for what is ignored.
With ``--shifts R`` training pictures are shifted by up to R pixels, with ``--shears N`` they are slanted by up to N
tenths, and the network is told how (``anyfill.images.shifts``); in the end it is settled that nothing is changed, and
the model takes no context. With ``--targets FILE`` a term of the loss is towards what all other pixels say of a pixel
(``SoftTargetLoss``), not towards the coin that was tossed for it; with ``--tossed P`` up to a share P of a picture's
coins is tossed anew by the same targets, each time it comes. Validation and scores are of the pixels as they are.

Data: Larochelle's file (50,000 / 10,000 / 10,000), packed bits, in ANYFILL_DATA. Validation rows choose the checkpoint,
by their exact nats in the raster order, and the weights of a mixture; the test rows are looked at once. With
``--valid-too`` those behind the first ``--valid-rows`` are trained on like the others (57,952 in all), and only the
first choose: a protocol of its own, which train.json names. Of the rows that follow a scan a share follows the raster
order (``--raster``), the others one of the other seven; the rest of the rows train any subset and rectangles, so that
the same model fills holes.
"""

import argparse
import gc
import json
import os
import shutil
import time
from contextlib import closing
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyfill import recipes
from anyfill.images.questions import PictureQuestions
from anyfill.images.shifts import ShiftedRows, at_rest, told_rest, told_width
from anyfill.likelihoods import Bernoulli
from anyfill.model import Model
from anyfill.networks import Discrete, OnePassTransformer
from anyfill.objectives import OnePassLoss, SoftTargetLoss, with_targets
from anyfill.questions import Increasing, Mixture, UniformSplits
from anyfill.questions.regions import Rectangles, scans
from anyfill.rows import Rows, RowSource
from anyfill.training import FitOptions, FitResult, JsonLines, fit_steps, load_model, save_model
from benchmarks.common import environment
from experiments.sfarm.static_mnist_options import options_of, said

SIDE = 28
SHAPE = (SIDE, SIDE)
LARGEST = 32e6
"""Bytes of weights to bring home: if 16 bits are more, it is 8."""


def read(part: str) -> Tensor:
    """int64 (rows, 784) of one part: train, valid or test."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("ANYFILL_DATA", default)) / "mnist_static_binarized"
    with np.load(folder / "binarized_mnist_packed.npz", allow_pickle=False) as packed:
        return torch.from_numpy(np.unpackbits(packed[part], axis=1)).long()


def device_of() -> torch.device:
    """Where it runs."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def patch_of(arguments: argparse.Namespace) -> tuple[int, int]:
    """Height and width of a token, in pixels."""
    return (2, 2) if arguments.tokens == "patches" else (1, 1)


def is_told(arguments: argparse.Namespace) -> bool:
    """Whether training pictures are changed, and the network told how."""
    return bool(arguments.shifts or arguments.shears)


def fresh(arguments: argparse.Namespace) -> Model:
    """The model, untrained."""
    told = told_width(arguments.shifts, arguments.shears) if is_told(arguments) else 0
    sizes: dict[str, Any] = {
        "width": arguments.width,
        "depth": arguments.depth,
        "dropout": arguments.dropout,
        "context_width": told,
    }
    if arguments.tokens != "blanks":
        return recipes.one_pass.image_model(
            *(SHAPE, 2, Bernoulli()),
            patch=patch_of(arguments),
            neighbours=arguments.neighbours,
            seed=arguments.seed,
            **sizes,
        )
    torch.manual_seed(arguments.seed)
    network = OnePassTransformer(
        Discrete(2), SHAPE, 1, heads=arguments.width // 64, given="full", ignored="blank", **sizes
    )
    return Model(network, Bernoulli())


def prepared(arguments: argparse.Namespace, blocks: bool) -> Model:
    """The same, to be trained with attention in blocks, or by a mask."""
    model = fresh(arguments)
    model.network.prefers_blocks = blocks  # type: ignore[assignment]
    if arguments.start is not None:
        model.load_state_dict(load_model(arguments.start / "model").state_dict())
    return model


def settled(model: Model, arguments: argparse.Namespace) -> Model:
    """The model that is told for good that nothing is changed."""
    if not is_told(arguments):
        return model
    rest = told_rest(arguments.shifts, arguments.shears)
    network: Any = model.network
    own = network.settled(rest.to(next(model.parameters()).device))
    return Model(own, model.likelihood, order=model.order, factorizations=model.factorizations)


def objective(arguments: argparse.Namespace) -> OnePassLoss:
    """Scans, subsets, rectangles, and strokes; towards soft targets, where there are any."""
    chain = chains(arguments)
    if arguments.targets is None:
        return chain
    own = {one.name: getattr(chain, one.name) for one in fields(chain)}
    return SoftTargetLoss(**own, share=arguments.target_share)


def chains(arguments: argparse.Namespace) -> OnePassLoss:
    """The same, of the pixels as they are."""
    if arguments.tokens != "blanks":
        patch = patch_of(arguments)
        patches = patch != (1, 1)  # a batch takes as long as its longest row: there scans have batches of their own
        loss = recipes.one_pass.image_objective(
            SHAPE, patch=patch, joint_share=arguments.joint, joint_batches=patches, raster_share=arguments.raster
        )
        return replace(loss, questions=PictureQuestions(SIDE, SIDE)) if patches else loss
    questions = Mixture((UniformSplits(SIDE * SIDE), Rectangles(SIDE, SIDE)))
    joint = (Increasing(),) * 7 + scans(SIDE, SIDE)[1:]
    return OnePassLoss(questions, Increasing(), arguments.joint, 0.8, joint_orders=joint)


def raster(arguments: argparse.Namespace) -> OnePassLoss:
    """What is measured meanwhile: exact nats in the model's own order."""
    return replace(chains(arguments), joint_share=1.0, joint_orders=(), joint_batches=False)


def training_rows(arguments: argparse.Namespace) -> Tensor:
    """int64 (rows, 784): what is trained on; with --valid-too validation rows that are not looked at, as well."""
    count = arguments.train_rows or arguments.rows
    rows = read("train")[:count]
    return torch.cat([rows, read("valid")[arguments.valid_rows :][:count]]) if arguments.valid_too else rows


def held_out(arguments: argparse.Namespace) -> Tensor:
    """int64 (rows, 784): the validation rows that are looked at while something is trained."""
    return read("valid")[: min(arguments.valid_rows, arguments.rows or arguments.valid_rows)]


def sources(arguments: argparse.Namespace, device: torch.device, *, targets: bool = True) -> tuple[RowSource, Rows]:
    """Rows to train on, and to validate on. Not ``targets``: values stand for them."""
    train = Rows.from_values(training_rows(arguments).to(device))
    valid = Rows.from_values(held_out(arguments).to(device))
    soft = None
    if arguments.targets is not None:
        soft = read_targets(arguments.targets, train.x.device) if targets else train.x.half()
    if not is_told(arguments):
        return train if soft is None else with_targets(train, soft), valid
    told = ShiftedRows(
        *(train, SHAPE, arguments.shifts), shears=arguments.shears, still=arguments.still, targets=soft,
        tossed=arguments.tossed,
    )  # fmt: skip
    return told, at_rest(valid, arguments.shifts, arguments.shears)


def read_targets(path: Path, device: torch.device, wait: float = 600.0) -> Tensor:
    """float16 (R, N): the soft targets of all rows; waits for the file, which may be written meanwhile."""
    end = time.time() + wait
    while not path.is_file() and time.time() < end:
        time.sleep(0.5)
    return torch.from_numpy(np.load(path, allow_pickle=False)).to(device)


def fit_options(arguments: argparse.Namespace, device: torch.device) -> FitOptions:
    """How it is trained."""
    cuda = device.type == "cuda"
    return FitOptions(
        steps=arguments.steps,
        seconds=None if arguments.until is not None else arguments.seconds,
        batch_size=arguments.batch,
        learning_rate=arguments.rate,
        warmup_steps=200,
        optimizer="muon",
        betas=(0.9, 0.95),
        weight_decay=arguments.decay,
        ema=arguments.ema,
        precision="bf16-mixed" if cuda else "32-true",
        compile=cuda,
        graphs=cuda and arguments.tokens != "blanks",
        report_every=100,
        save_every=arguments.save_every,
        validate_every=arguments.validate_every,
        seed=arguments.seed,
    )


def fitted(
    model: Model, rows: tuple[RowSource, Rows], loss: OnePassLoss, measure: OnePassLoss, options: FitOptions,
    *, say: str | None = None, **further: Any,
) -> FitResult:  # fmt: skip
    """Train; what validation found is said as it comes, if a run has a name."""
    reports = fit_steps(model, rows[0], loss, options, validation=rows[1], validation_objective=measure, **further)
    with closing(reports):
        while True:
            try:
                report = next(reports)
            except StopIteration as end:
                return end.value
            if say is not None and report.validation_loss is not None:
                print(
                    f"{say}: step {report.step}, {report.seconds:.0f} s, {report.rows_per_second:.0f} rows/s, "
                    f"loss {report.loss:.3f}, valid raster {report.validation_loss:.3f}",
                    flush=True,
                )


def trial(arguments: argparse.Namespace, rows: tuple[RowSource, Rows], options: FitOptions) -> bool:
    """A few steps that are forgotten, so that everything is compiled; True = attention in blocks works here."""
    patches, scans_alone = arguments.tokens == "patches", arguments.joint > 0.999
    # Questions about patches are of several lengths: most of a short trial must ask them, where they come at all.
    loss = replace(objective(arguments), joint_share=0.4) if patches and not scans_alone else objective(arguments)
    steps = 3 if scans_alone else {"pixels": 3, "patches": 24, "blanks": 40}[arguments.tokens]
    warm = replace(options, steps=steps, seconds=None, validate_every=steps)
    blocks = True
    for attempt in range(8):
        try:
            fitted(prepared(arguments, blocks), rows, loss, raster(arguments), warm)
            break
        except torch.OutOfMemoryError:  # others are on this device: wait
            print(f"attempt {attempt}: out of memory", flush=True)
            _forget()
            time.sleep(5.0)
        except Exception as error:  # attention in blocks cannot be compiled here: then by a mask
            print(f"no blocks: {type(error).__name__}: {str(error)[-800:]}", flush=True)
            if not blocks:
                raise
            blocks = False
    _forget()
    return blocks


def _forget() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def train(arguments: argparse.Namespace) -> None:
    """Train against the clock, save the best by validation; ``compile``: make the trial run alone."""
    device = device_of()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows, options = sources(arguments, device, targets=False), fit_options(arguments, device)
    compiles = arguments.command == "compile"
    blocks = trial(arguments, rows, options) if compiles or (device.type == "cuda" and arguments.trial) else True
    if compiles:
        print(f"compiled, {'blocks' if blocks else 'mask'}", flush=True)
        return
    if arguments.targets is not None:
        rows = sources(arguments, device)
    time.sleep(max(0.0, arguments.begin - time.time()))
    start, log, resumed = time.perf_counter(), arguments.out / "train.jsonl", (arguments.out / "model").is_dir()
    (arguments.out / "arguments.json").write_text(json.dumps(said(arguments), indent=1) + "\n")
    for attempt in range(4):
        if arguments.until is not None:
            options = replace(options, seconds=max(1.0, arguments.until - time.time()))
        model = prepared(arguments, blocks)
        if not resumed:
            log.unlink(missing_ok=True)
        try:
            done = fitted(
                *(model, rows, objective(arguments), raster(arguments), options), say=arguments.tokens,
                folder=arguments.out / "model", resume=True, metrics=[JsonLines(log)],
            )  # fmt: skip
            break
        except torch.OutOfMemoryError:  # others are on this device: from the start, in what is left
            print(f"attempt {attempt}: out of memory", flush=True)
            del model
            _forget()
            shutil.rmtree(arguments.out / "model", ignore_errors=True)
            resumed = False
            time.sleep(5.0)
    else:
        raise RuntimeError("out of memory, again and again")
    bring_home(model.cpu(), arguments)
    record = {
        "arguments": said(arguments),
        "trained_on": "training rows"
        + f", and validation rows behind the first {arguments.valid_rows:,}" * arguments.valid_too,
        "train_rows": len(rows[0].rows if isinstance(rows[0], ShiftedRows) else rows[0]),
        "weights": "the best by validation",
        "steps": done.steps,
        "best_step": done.best_step,
        "best_validation": done.best_validation_loss,
        "seconds": time.perf_counter() - start,
        "parameters": sum(one.numel() for one in settled(model, arguments).parameters()),
        "options": asdict(options),
        "environment": environment(device),
    }
    (arguments.out / "train.json").write_text(json.dumps(record, indent=1) + "\n")
    print(f"{done.steps} steps, best after {done.best_step}: {done.best_validation_loss}", flush=True)


def keep(arguments: argparse.Namespace) -> None:
    """Of a run that goes on, its last checkpoint, to be scored (--out RUN/kept) or begun with (--start RUN/kept)."""
    save_model(load_model(arguments.out / "model"), arguments.out / "kept" / "model", eight_bit=True)


def bring_home(model: Model, arguments: argparse.Namespace) -> None:
    """The weights of a run that is over: of 16 bits, or of 8 where these were too many; of what was told, settled."""
    model = settled(model, arguments)
    small = sum(one.numel() for one in model.parameters()) * 2 <= LARGEST
    if not small:
        save_model(model, arguments.out / "model_8", eight_bit=True)
        return
    halved = settled(fresh(arguments), arguments)
    halved.load_state_dict(model.state_dict())
    halved.factorizations = model.factorizations
    save_model(halved.bfloat16(), arguments.out / "model_16")


def main() -> None:
    """What the command line says."""
    arguments = options_of(text=__doc__)
    if arguments.command == "score":
        from experiments.sfarm.static_mnist_score import score

        score(arguments)
    elif arguments.command == "targets":
        from experiments.sfarm.static_mnist_targets import write_targets

        write_targets(arguments)
    elif arguments.command == "probe":
        from experiments.sfarm.static_mnist_probe import probe

        probe(arguments)
    elif arguments.command == "mix":
        from experiments.sfarm.static_mnist_mix import mix

        mix(arguments)
    elif arguments.command == "head":
        from experiments.sfarm.static_mnist_head import retrain_head

        retrain_head(arguments)
    elif arguments.command == "keep":
        keep(arguments)
    else:
        train(arguments)


if __name__ == "__main__":
    main()
