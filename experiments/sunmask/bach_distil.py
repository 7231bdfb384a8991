"""One network that follows several: the grid model of JSB train, distilled from an ensemble. One command, one GPU.

So few chorales are learnt by heart in some 1,200 steps. Networks of different seeds learn different things by heart, so
their mean law is far better than each; one network is then taught that law, on rows that never run out.

1. **Teachers** (``--teachers``, side by side, a process each): as ``bach_model`` trains, stopped by JSB valid, with the
   settings of ``SETTINGS`` in turn.
2. **Rows.** Each teacher draws chorales of eight bars from its own law: a third of them from nothing, a third goes on
   from the beginning of a training window, a third fills what a question of training leaves of one.
3. **Student.** ``FollowingLoss`` towards the teachers' mean law, on crops of the training pieces and of what was
   drawn. In every step ``--at-once`` teachers are drawn (``ensembles.SomeOf``), and each sees every row in a random key
   (``ensembles.InAnyKey``), its law moved back: the mean is over all teachers and keys. The network is one of the same
   size, asked in one pass; stopped by JSB valid.

Nothing but early stopping looks at JSB valid. The figures are those of ``bach_model``, of the weights as saved (8
bits); for comparison of each teacher, of their mean, and of their mean over three keys. Teachers make a number of
steps, however long those take: ones that a budget of seconds cooled too soon, on a device with other work, leave the
student little to learn. Those that are in --out already are not trained again, so that ``--only-teachers`` and the rest
can be two calls.

    python -m experiments.sunmask.bach_distil --out runs/bach_distil
    python -m experiments.sunmask.bach_distil --smoke --out runs/smoke          # a tiny one on a CPU
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anyfill.model import Model
from anyfill.music.chorale import BAR, Chorale, pitches_of
from anyfill.music.crops import Crops
from anyfill.music.files import read_jsb
from anyfill.music.model import one_pass_chorale, one_pass_chorale_model
from anyfill.music.windows import LONG_WINDOW, resized
from anyfill.networks import Averaged
from anyfill.objectives import FollowingLoss
from anyfill.questions import Question
from anyfill.samplers import CachedChain, sample
from anyfill.training import FitOptions, load_model, save_model
from benchmarks.common import environment
from experiments.sunmask.bach_model import STEPS, figures, fitted, held_out_rows, nats_per_cell
from experiments.sunmask.ensembles import InAnyKey, InKey, SomeOf, centered
from experiments.where import data_folder, shown

SETTINGS = ((0.4, 0.0), (0.3, 0.15), (0.4, 0.1), (0.35, 0.05))
"""Dropout and hidden values of the teachers, in turn."""
KEYS_ASKED = (-3, 0, 3)
"""Semitones by which the rows are moved when the teachers' mean over keys is measured."""
MADE_BY = "experiments/sunmask/bach_distil.py"


def fit_options(arguments: argparse.Namespace, **own: Any) -> FitOptions:
    """Settings that teachers and student share."""
    cuda = arguments.device == "cuda"
    return FitOptions(
        batch_size=arguments.batch, learning_rate=arguments.learning_rate, weight_decay=arguments.weight_decay,
        optimizer="muon", ema=arguments.ema, precision="bf16-mixed" if cuda else "32-true", compile=arguments.compile,
        report_every=50, validate_every=arguments.validate_every, device=arguments.device, **own,
    )  # fmt: skip


def train_pieces(arguments: argparse.Namespace) -> list[Chorale]:
    """JSB train, or the first few of it."""
    return read_jsb(arguments.data / "jsb_chorales" / "jsb16_train_valid.json", "train")[: arguments.pieces]


def network_of(arguments: argparse.Namespace, seed: int, dropout: float, value_dropout: float) -> Model:
    """Teachers and student are of one size."""
    return one_pass_chorale_model(
        arguments.window, width=arguments.width, depth=arguments.depth, heads=arguments.heads, dropout=dropout,
        value_dropout=value_dropout, seed=seed,
    )  # fmt: skip


@torch.no_grad()
def drawn_from(
    model: Model, source: Crops, count: int, *, seconds: float, rows: int, seed: int, device: str
) -> NDArray[np.int16]:
    """int16 (M, 4, L), up to ``count``: from nothing, from a beginning, and from what a question gives of a window."""
    generator = torch.Generator(device=device).manual_seed(seed)
    questions = one_pass_chorale(source.steps).questions
    found, begun = list[NDArray[np.int16]](), time.perf_counter()
    while len(found) < count and (not found or time.perf_counter() - begun < seconds):
        some = source.take(torch.randint(len(source), (4 * rows,), generator=generator, device=device))
        whole = some.present.all(1)
        x = some.x[whole][:rows]
        given = questions.sample(len(x), generator=generator).given
        kind = torch.arange(len(x), device=device).unsqueeze(1) % 3
        begins = torch.rand(len(x), 1, generator=generator, device=device) * 0.5 * source.variables
        beginning = torch.arange(source.variables, device=device) < begins
        given = torch.where(kind == 0, False, torch.where(kind == 1, beginning, given))
        try:
            made = sample(model, x, Question(given, ~given), policy=CachedChain(), generator=generator).x.cpu()
        except torch.OutOfMemoryError:  # others are on this device, too
            if rows < 64:
                raise
            rows //= 2
            torch.cuda.empty_cache()
            continue
        found += [pitches_of(row) for row in made]
    return np.stack(found[:count])


def teacher(arguments: argparse.Namespace) -> None:
    """Train one, draw from it, write all."""
    number, device, begun = arguments.teacher, arguments.device, time.perf_counter()
    folder = arguments.out / f"teacher_{number}"
    folder.mkdir(parents=True, exist_ok=True)
    dropout, value_dropout = SETTINGS[number % len(SETTINGS)]
    source = Crops(train_pieces(arguments), arguments.window).to(device)
    held_out = held_out_rows(arguments.data / "jsb_chorales" / "jsb16_train_valid.json", arguments.window)
    model = network_of(arguments, arguments.seed + number, dropout, value_dropout)
    options = fit_options(
        arguments, steps=arguments.teacher_steps, seconds=arguments.teacher_seconds, seed=arguments.seed + number
    )
    objective = one_pass_chorale(arguments.window, joint_share=arguments.joint_share)
    log = fitted(model, source, objective, options, held_out[arguments.window])
    model.to(device).eval()
    trained = time.perf_counter() - begun
    made = drawn_from(
        model, source, arguments.drawn, seconds=arguments.draw_seconds, rows=arguments.draw_rows,
        seed=arguments.seed + number, device=device,
    )  # fmt: skip
    np.savez_compressed(folder / "drawn.npz", pitch=made)
    save_model(model.cpu(), folder / "model", notes={"made_by": MADE_BY}, eight_bit=True)
    record = {"dropout": dropout, "value_dropout": value_dropout, "drawn": len(made), "trained_seconds": trained,
              "seconds": time.perf_counter() - begun, "log": log}  # fmt: skip
    (folder / "run.json").write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps({name: one for name, one in record.items() if name != "log"}), flush=True)


def teachers(arguments: argparse.Namespace) -> list[Path]:
    """Train all, side by side; the folders of those that were done."""
    folders = [arguments.out / f"teacher_{number}" for number in range(arguments.teachers)]
    running = list[subprocess.Popen[bytes]]()
    for number, folder in enumerate(folders):
        if (folder / "run.json").is_file():
            continue  # of an earlier call
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "log.txt").open("wb") as log:
            command = [sys.executable, "-m", "experiments.sunmask.bach_distil", *sys.argv[1:], "--teacher", str(number)]
            running.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT))
    for process in running:
        process.wait()
    done = [folder for folder in folders if (folder / "run.json").is_file()]
    for folder in folders:
        if folder not in done:
            print(f"{folder.name} failed:", (folder / "log.txt").read_text()[-1500:], flush=True)
    if not done:
        raise RuntimeError("no teacher was trained")
    return done


def student(arguments: argparse.Namespace, folders: list[Path], begun: float) -> None:
    """Load the teachers, measure them, train the one that follows them, measure and write it."""
    device = arguments.device
    path = arguments.data / "jsb_chorales" / "jsb16_train_valid.json"
    held_out = held_out_rows(path, STEPS, arguments.window, LONG_WINDOW)
    models = [load_model(folder / "model").to(device).eval() for folder in folders]
    pieces = train_pieces(arguments)
    cells = torch.cat([piece.codes() for piece in pieces])
    center = float(cells[cells > 0].float().mean())
    made = [centered(pitch, center) for folder in folders for pitch in np.load(folder / "drawn.npz")["pitch"]]
    real, others = (len(Crops(some, arguments.window)) for some in (pieces, made))
    often = max(round(arguments.real_share / (1.0 - arguments.real_share) * others / real), 1)
    source = Crops([*pieces * often, *made], arguments.window).to(device)

    def nats(each: list[Model], keys: Sequence[int] = (0,)) -> float:
        networks = [InKey(resized(one, STEPS).network, key) for one in each for key in keys]
        ensemble = Model(Averaged(networks), models[0].likelihood, order=models[0].order,
                         factorizations=models[0].factorizations)  # fmt: skip
        return nats_per_cell(ensemble, held_out[STEPS], device=device, given_share=0.0)

    found: dict[str, Any] = {
        "teachers": [nats([one]) for one in models], "mean_law": nats(models),
        "mean_law_in_keys": nats(models, KEYS_ASKED),
        "pieces": len(pieces), "drawn": len(made), "rows": len(source), "of_pieces": often * real,
    }  # fmt: skip
    print(json.dumps(found), flush=True)
    for one in models:
        for block in one.network.blocks:  # type: ignore[union-attr]
            block.dropout = 0.0  # teachers differ in it, and each would be compiled anew
    seen = [InAnyKey(one.network, center) if arguments.any_key else one.network for one in models]
    some = SomeOf(seen, arguments.at_once)
    ensemble = Model(some, models[0].likelihood, order=models[0].order).to(device).eval()
    if arguments.compile:
        some.compile_parts()
    model = network_of(arguments, arguments.seed + 1000, arguments.dropout, 0.0)
    if arguments.from_teacher:
        model.load_state_dict(models[0].state_dict())
    rule = one_pass_chorale(arguments.window, joint_share=arguments.student_joint_share)
    objective = FollowingLoss(rule.questions, rule.order, rule.joint_share, teacher=ensemble, share=arguments.share)
    options = fit_options(arguments, steps=arguments.steps, seconds=arguments.seconds, seed=arguments.seed + 1000)
    if arguments.student_rate is not None:
        options = replace(options, learning_rate=arguments.student_rate)
    log = fitted(model, source, objective, options, held_out[arguments.window])
    save_model(model.cpu(), arguments.out / "student", notes={"made_by": MADE_BY}, eight_bit=True)
    model = load_model(arguments.out / "student").to(device).eval()
    found |= {
        **figures(model, held_out, device), "parameters": sum(one.numel() for one in model.parameters()),
        "seconds": time.perf_counter() - begun,
    }  # fmt: skip
    print(json.dumps(found), flush=True)
    runs = [json.loads((folder / "run.json").read_text()) for folder in folders]
    record = {"arguments": shown(vars(arguments)), "valid": found, "log": log, "teachers": runs,
              "environment": environment(device)}  # fmt: skip
    (arguments.out / "run.json").write_text(json.dumps(record, indent=1) + "\n")


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--teachers", type=int, default=4)
    parser.add_argument("--teacher", type=int, help="train this one alone")
    parser.add_argument("--teacher-steps", type=int, default=1400)
    parser.add_argument("--teacher-seconds", type=float, help="if given, teachers cool by then, steps or not")
    parser.add_argument("--only-teachers", action="store_true")
    parser.add_argument("--drawn", type=int, default=1536, help="chorales that each teacher draws at most")
    parser.add_argument("--draw-seconds", type=float, default=10.0)
    parser.add_argument("--draw-rows", type=int, default=512)
    parser.add_argument("--steps", type=int, default=8000, help="of the student, at most")
    parser.add_argument("--seconds", type=float, default=120.0, help="of the student's training")
    parser.add_argument("--pieces", type=int, help="train on the first few only")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--dropout", type=float, default=0.1, help="of the student")
    parser.add_argument("--share", type=float, default=1.0, help="what of each term the teachers' law is")
    parser.add_argument("--real-share", type=float, default=0.25, help="share of rows that are of the pieces, about")
    parser.add_argument("--from-scratch", dest="from_teacher", action="store_false", help="not from the first teacher")
    parser.add_argument("--student-rate", type=float, help="learning rate of the student; as the teachers' by default")
    parser.add_argument("--at-once", type=int, default=2, help="teachers asked in a step of the student")
    parser.add_argument("--same-key", dest="any_key", action="store_false", help="teachers see rows as they are")
    parser.add_argument("--weight-decay", type=float, default=0.2)
    parser.add_argument("--learning-rate", type=float, default=6e-3)
    parser.add_argument("--joint-share", type=float, default=0.6)
    parser.add_argument("--student-joint-share", type=float, default=0.7)
    parser.add_argument("--ema", type=float, default=0.995)
    parser.add_argument("--window", type=int, default=STEPS, help="steps of a crop")
    parser.add_argument("--validate-every", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--smoke", action="store_true", help="tiny networks, few pieces, a few steps")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.teachers, arguments.teacher_steps, arguments.steps, arguments.pieces = 2, 3, 3, 4
        arguments.batch, arguments.width, arguments.depth, arguments.heads, arguments.window = 2, 32, 1, 2, BAR
        arguments.drawn, arguments.draw_rows, arguments.validate_every = 6, 6, 2
        arguments.compile, arguments.device = False, "cpu"
    return arguments


def main() -> None:
    """Teachers, then the student."""
    begun = time.perf_counter()
    arguments = options()
    if arguments.device == "cpu":
        torch.set_num_threads(1)
    if arguments.teacher is not None:
        teacher(arguments)
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    folders = teachers(arguments)
    print(json.dumps({"teachers_seconds": time.perf_counter() - begun}), flush=True)
    if not arguments.only_teachers:
        student(arguments, folders, begun)


if __name__ == "__main__":
    main()
