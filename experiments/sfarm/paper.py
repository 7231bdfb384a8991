"""SFARM's own network of MNIST for its 300 epochs on the static file, and what its published 78.12 nats may have been.

    python -m experiments.sfarm.paper --out RUN --data DATA --until TIME --scoring 25      TIME: seconds since 1970
    python -m experiments.sfarm.paper --out RUN --data DATA --ask --orders 64              K orders of one that is over
    python -m experiments.sfarm.paper --out RUN --data DATA --report                       results/sfarm/paper.json

0.33 M weights, Adam at 2e-4, batches of 128, 117,187 steps of a constant rate, no average of the weights (the paper
names neither). It counts steps, so it may be stopped and continued while others have the GPU; killed, it goes on from
its last checkpoint (every 5,000 steps). Every 5,000 steps the bound over random orders of 2,000 validation rows is
written to RUN/sfarm-paper/epochs.jsonl. Training ends at its steps, at SIGTERM, or ``--scoring`` seconds before
--until; then, most valuable first and as far as time allows, by the weights with the best validation loss:

    bound            random mode, all test rows, 8 stratified passes; of 2,000 rows that were trained on, too
    modes            the bound in each of the seven modes, 8 random steps a row; their mean is what is trained (eq. 8)
    orders           K whole random orders of some test rows, evenly spread, each 784 passes: the mean (K = 1, in
                     expectation the bound), and log-mean-exp of K, as eq. 14 has it; K is not stated in the paper.
                     8 unless --orders says more; with --ask no step is made, and these alone are asked
"""

import argparse
import json
import math
import signal
import time
from contextlib import closing
from io import BytesIO
from pathlib import Path
from types import FrameType
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from anyfill.disk import write_bytes
from anyfill.evaluation import log_prob, mean_of
from anyfill.model import Model
from anyfill.objectives.modal import ModalLoss, modal_rank
from anyfill.questions import Modes, Question
from anyfill.questions.modes import MODES
from anyfill.recipes.sfarm import in_mode
from anyfill.rows import Rows
from anyfill.training import FitOptions, JsonLines, fit_steps, load_model
from benchmarks.common import environment
from experiments.sfarm.picture_scores import in_halves, rows_per_pass, scored
from experiments.sfarm.pictures import Data, load, made, options_of, parser_of, said, spread

METHOD = "sfarm-paper"
RESULTS = Path(__file__).resolve().parents[2] / "results" / "sfarm"
EVERY = 5_000
"""Steps between validations and checkpoints."""
ORDERS, AT_ONCE = 8, 20
"""K unless it is said, and how many test rows are asked between two looks at the clock."""


class Paper:
    """The run: training that counts steps, and what the network scores."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.folder: Path = arguments.out / METHOD
        self.folder.mkdir(parents=True, exist_ok=True)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.data: Data = load(arguments)
        self.model, self.objective = made(METHOD, self.data, arguments)
        self.plain = made(METHOD, self.data, arguments)[0].to(self.device)  # never compiled: asked in many shapes
        self.plain.factorizations = self.model.factorizations | self.objective.factorizations
        self.told = False
        self.written = "scores"
        """What scores are called."""
        self.begun = time.perf_counter()

    def options(self) -> FitOptions:
        """As the paper has it; validated and kept every so many steps."""
        arguments, found = self.arguments, options_of(METHOD, len(self.data.train), self.arguments, self.device)
        every = min(EVERY, max(1, found.steps // 4))
        values = {name: getattr(found, name) for name in found.__dataclass_fields__}
        values |= {
            "validate_every": every,
            "save_every": every,
            "report_every": 50 if self.device.type == "cuda" else 1,
        }
        values["seed"] = arguments.seed
        return FitOptions(**values)

    def train(self) -> dict[str, Any]:
        """To the end of the steps or of the time; what became of it."""
        options = self.options()
        signal.signal(signal.SIGTERM, self._tell)
        train = cast(Rows, self.data.train)
        held = self.data.valid.take(torch.arange(min(2048, len(self.data.valid))))
        rows = train.to(self.device) if self.device.type == "cuda" else train
        metrics = [JsonLines(self.folder / "train.jsonl")]
        steps, done = 0, False
        run = fit_steps(
            *(self.model, rows, self.objective, options),
            validation=held, folder=self.folder, resume=True, metrics=metrics,
        )  # fmt: skip
        with closing(run):
            while True:
                try:
                    report = next(run)
                except StopIteration as end:
                    steps, done = end.value.steps, True
                    break
                steps = report.step
                if report.validation_loss is not None:
                    self._validated(steps, report.validation_loss, report.loss)
                if self.told or time.time() > self.arguments.until - self.arguments.scoring:
                    break
        batch = options.batch_size
        about = {
            "method": METHOD,
            "steps": steps,
            "of": options.steps,
            "epochs": steps * batch / len(train),
            "ended": "steps" if done else "time",
            "seconds": time.perf_counter() - self.begun,
            "parameters": sum(one.numel() for one in self.model.parameters()),
            "arguments": said(self.arguments),
            **environment(self.device),
        }
        (self.folder / "run.json").write_text(json.dumps(about, indent=1) + "\n")
        print(f"{steps} steps of {options.steps}, {about['epochs']:.1f} epochs", flush=True)
        return about

    def _tell(self, number: int, frame: FrameType | None) -> None:
        """A signal says that training is to end."""
        self.told = True

    def _validated(self, step: int, loss: float, train_loss: float) -> None:
        """The bound of validation rows by the weights of now, which the model holds."""
        x = self.data.valid.x
        value = self._bound(self.model, x[spread(len(x), 2000)])
        mean = mean_of(-value)
        line = {
            "step": step,
            "epochs": step * 128 / len(self.data.train),
            "nats": mean.value,
            "stderr": mean.stderr,
            "validation_loss": loss,
            "train_loss": train_loss,
            "at": time.perf_counter() - self.begun,
        }
        with (self.folder / "epochs.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)

    def _bound(self, model: Model, x: Tensor, passes: int = 8) -> Tensor:
        """float64 (B,): log p in the random mode, at least; the same questions each time."""
        self.plain.load_state_dict(model.state_dict())
        return scored(METHOD, in_mode(self.plain.eval()), x, None, 1, passes=passes)

    def score(self) -> dict[str, Any]:
        """All that time allows for, written whenever a part is there."""
        test, found = self.data.test, dict[str, Any]()
        rows: dict[str, Tensor] = {"bound": self._bound(self.model, test)}
        self._keep(found, "bound, random mode, 8 passes", rows["bound"], rows)
        learnt = cast(Rows, self.data.train).x
        learnt = learnt[spread(len(learnt), 2000)]
        self._keep(found, "the same, rows trained on", self._bound(self.model, learnt), rows)
        by_mode = []
        for number, mode in enumerate(MODES):
            if time.time() > self.arguments.until - 4:
                return found
            rows[mode] = self._in_mode(number, test)
            by_mode.append(float(-rows[mode].mean()))
            self._keep(found, f"bound, mode {mode}, 8 random steps", rows[mode], rows)
        found["mean of the modes' bounds"] = sum(by_mode) / len(by_mode)
        self._orders(found, rows)
        return found

    def ask(self) -> None:
        """Of a run that is over: K orders, in files of their own (asked.json, asked.npz)."""
        with np.load(self.folder / "scores.npz", allow_pickle=False) as kept:
            rows = {"bound": torch.from_numpy(kept["bound"])}
        self.plain.load_state_dict(load_model(self.folder).state_dict())
        self.plain.eval()
        self.written = "asked"
        self._orders({"environment": environment(self.device)}, rows)

    def _in_mode(self, number: int, x: Tensor, draws: int = 8) -> Tensor:
        """float64 (B,): single random steps of a mode, weighted; their mean is its bound on log p, without bias."""
        loss = cast(ModalLoss, self.objective)
        family = Modes(*self.data.shape[:2], modes=(MODES[number],))
        source = torch.Generator(self.device).manual_seed(0)
        total = torch.zeros(len(x), dtype=torch.float64)
        with torch.no_grad(), in_halves(self.plain):
            for _ in range(draws):
                for part in torch.arange(len(x)).split(rows_per_pass(x.to(self.device)) or 64):
                    question, _ = family.draw(len(part), generator=source)
                    rank = modal_rank(question, torch.full((len(part),), number, device=self.device))
                    shown = Rows.from_values(x[part]).to(self.device)
                    total[part] -= loss.loss(self.plain, shown, rank, generator=source).double().cpu()
        return total / draws

    def _orders(self, found: dict[str, Any], rows: dict[str, Tensor]) -> None:
        """K random orders of as many rows as there is time for."""
        test = self.data.test
        where = spread(len(test), self.arguments.order_rows)
        chosen, orders = test[where], self.arguments.orders or ORDERS
        chosen = chosen[torch.randperm(len(chosen), generator=torch.Generator().manual_seed(0))]
        asked, parts = in_mode(self.plain), list[Tensor]()
        source = torch.Generator(self.device).manual_seed(0)
        took = 0.0
        for some in chosen.split(AT_ONCE):
            begun = time.time()
            if begun + 1.2 * took > self.arguments.until - 2:
                break
            some = some.to(self.device)
            question = Question.of(some.shape[1], batch=len(some))
            question = Question(question.given.to(self.device), question.asked.to(self.device))
            size = rows_per_pass(some)
            with in_halves(asked):
                each = [
                    log_prob(asked, some, question, orders=1, generator=source, rows_per_pass=size).value
                    for _ in range(orders)
                ]
            parts.append(torch.stack(each).cpu())
            rows["orders"] = torch.cat(parts, 1)  # (K, rows)
            found["orders"] = orders_of(rows["orders"])
            self._write(found, rows)
            took = time.time() - begun
        if parts:
            order = torch.randperm(len(where), generator=torch.Generator().manual_seed(0))
            same = rows["bound"].cpu()[where[order][: rows["orders"].shape[1]]]
            found["orders"]["the bound of these rows"] = {"nats": float(-same.mean())}
            self._write(found, rows)

    def _keep(self, found: dict[str, Any], name: str, value: Tensor, rows: dict[str, Tensor]) -> None:
        mean = mean_of(-value)
        found[name] = {"nats": mean.value, "stderr": mean.stderr, "rows": len(value)}
        print(f"{name}: {mean.value:.3f} +- {mean.stderr:.3f}", flush=True)
        self._write(found, rows)

    def _write(self, found: dict[str, Any], rows: dict[str, Tensor]) -> None:
        write_bytes((json.dumps(found, indent=1) + "\n").encode(), self.folder / f"{self.written}.json")
        arrays, whole = {name: value.cpu().numpy() for name, value in rows.items()}, BytesIO()
        np.savez_compressed(whole, **arrays)  # pyright: ignore[reportArgumentType]
        write_bytes(whole.getvalue(), self.folder / f"{self.written}.npz")


def orders_of(values: Tensor) -> dict[str, Any]:
    """What log p of K orders (K, B) come to: the mean, and log-mean-exp of the first 1, 2, 4 … K."""
    found: dict[str, Any] = {"rows": values.shape[1], "K": len(values)}
    found["mean of the orders"] = {"nats": float(-values.mean())}
    number = 1
    while number <= len(values):
        mixed = values[:number].logsumexp(0) - math.log(number)
        mean = mean_of(-mixed)
        gain = mean_of(mixed - values.mean(0))
        found[f"log-mean-exp of {number}"] = {
            "nats": mean.value, "stderr": mean.stderr,
            "less than the mean of the orders": gain.value, "stderr of that": gain.stderr,
        }  # fmt: skip
        number *= 2
    return found


def report(folder: Path, results: Path) -> None:
    """One small JSON of a run that is over, or cut off."""
    held = folder / METHOD
    log = held / "epochs.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    by_step = {line["step"]: line for line in lines}  # a run that was resumed may have made some twice
    found = {
        "published": 78.12,
        "run": json.loads((held / "run.json").read_text()) if (held / "run.json").exists() else None,
        "scores": json.loads((held / "scores.json").read_text()) if (held / "scores.json").exists() else None,
        "asked": json.loads((held / "asked.json").read_text()) if (held / "asked.json").exists() else None,
        "validation": [by_step[step] for step in sorted(by_step)],
    }
    (results / "paper.json").write_text(json.dumps(found, indent=1) + "\n")
    print(f"written: {results / 'paper.json'}", flush=True)


def main() -> None:
    parser = parser_of(__doc__, sets=("static",), methods=(METHOD,))
    parser.add_argument("--until", type=float, default=math.inf, help="seconds since 1970 by which all is written")
    parser.add_argument("--scoring", type=float, default=25.0, help="seconds of that which are kept for scores")
    parser.add_argument("--compile-only", action="store_true", help="a few steps, so that all is in the caches")
    parser.add_argument("--ask", action="store_true", help="no step more: K orders of a run that is over")
    parser.add_argument("--report", action="store_true", help="write results/sfarm/paper.json of what is there")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.report:
        report(arguments.out, arguments.results)
        return
    torch.set_float32_matmul_precision("high")
    paper = Paper(arguments)
    if arguments.compile_only:
        arguments.steps, arguments.until = 24, math.inf
        paper.train()
        return
    if arguments.ask:
        paper.ask()
        return
    paper.train()
    paper.score()


if __name__ == "__main__":
    main()
