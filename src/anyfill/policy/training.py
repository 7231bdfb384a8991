"""Train a model on demonstrations, into a folder it can be resumed from.

Whole trajectories are held out: they choose the checkpoint, and at the end every question the model answers is scored
on them, in nats for each asked variable (in deviations of its column; lower is better).
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import torch
from rich.console import Console

from anyfill.checks import refuse
from anyfill.interface.options import resumed
from anyfill.interface.output import require_place
from anyfill.interface.progress import clock
from anyfill.interface.runs import resumed_settings, run_in_words, watched_to_the_end
from anyfill.interface.threads import compute_device, free_threads, threads
from anyfill.objectives import Objective
from anyfill.policy.demonstrations import Demonstrations
from anyfill.policy.groups import Groups
from anyfill.policy.layout import Layout
from anyfill.policy.model import NOTES, PolicyModel, load, notes_of
from anyfill.policy.neighbour import NearestRow
from anyfill.policy.questions import question
from anyfill.policy.reading import read_demonstrations
from anyfill.policy.recipes import AT_ONCE, Sizes, optimizer_of, policy_model, policy_objective
from anyfill.policy.settings import Settings
from anyfill.questions import Factorization
from anyfill.rows import Rows
from anyfill.training import FitOptions, fit_steps, save_model

MADE_BY = "anyfill policy train"
_SCORED = 2048
"""Most held-out rows that are scored."""


@dataclass(frozen=True, slots=True, eq=False)
class PolicyRun:
    """All that a run is made of; nothing is left to choose in its settings."""

    train: Demonstrations
    held: Demonstrations | None
    layout: Layout
    settings: Settings
    device: Literal["cpu", "cuda"]

    @property
    def method(self) -> str:
        """How it is trained."""
        return self.settings.method or "joint"

    def model(self) -> PolicyModel:
        """Untrained."""
        s = self.settings
        network = cast('Literal["plain", "residual"]', s.network)
        of = (network, s.width or 256, s.depth or 3, s.components or 20, s.min_scale or 0.02, s.dropout or 0.0)
        return PolicyModel(
            policy_model(self.method, self.layout, Sizes(*of), seed=s.seed or 0), self.layout, self.method
        )

    def options(self, rows: int) -> FitOptions:
        """Of the training of so many rows."""
        s, cuda = self.settings, self.device == "cuda"
        batch = s.batch or 256
        steps = s.steps or 1 if s.epochs is None else max(1, round(s.epochs * rows / batch))
        often = max(1, min(500, steps // 5))
        return FitOptions(
            steps=steps,
            seconds=s.seconds,
            batch_size=batch,
            learning_rate=s.learning_rate or 5e-4,
            optimizer=optimizer_of(self.method),
            weight_decay=0.0,
            clip_norm=10.0,
            precision="bf16-mixed" if cuda else "32-true",
            report_every=20 if cuda else 5,
            validate_every=often,
            save_every=often,
            seed=s.seed or 0,
            device=self.device,
        )

    def notes(self) -> dict[str, Any]:
        """What is kept with the model."""
        return {**notes_of(self.layout, self.method, asdict(self.settings)), "made_by": MADE_BY}

    def lines(self) -> list[str]:
        """Demonstrations, model and training in words."""
        s, rows = self.settings, len(self.train) if self.layout.whole else self.train.steps
        held = "none held out" if self.held is None else f"{len(self.held):,} trajectories held out"
        weights = sum(parameter.numel() for parameter in self.model().model.parameters())
        o = self.options(rows)
        limit = "" if s.seconds is None else f", at most {clock(s.seconds)}"
        work = f"{o.steps:,} steps of {o.batch_size}{limit}, on {self.device}"
        return [
            f"demonstrations  {self.train.describe()}; {held}",
            f"model           {self.method}: {self.layout.variables} variables, {weights:,} weights",
            f"training        {'nothing to train, rows are kept' if self.method == 'neighbour' else work}",
        ]

    def fit(
        self,
        folder: Path | None,
        *,
        resume: bool = False,
        console: Console | None = None,
        objective: Objective | None = None,
    ) -> tuple[PolicyModel, list[str]]:
        """Train, by the method's own objective or another; the model, and what came of it in words."""
        made, rows = self.model(), self.layout.rows(self.train)
        held = None if self.held is None else some_rows(self.layout.rows(self.held), _SCORED)
        if self.method == "neighbour":
            made.model.network = cast(NearestRow, made.model.network).remember(rows)
            made.model.factorizations = [Factorization.ANY_ORDER]
            if folder is not None:
                save_model(made.model, folder, notes=self.notes())
            return made, [f"{len(rows):,} rows are kept"]
        keep: dict[str, Any] = {"folder": folder, "resume": resume, "notes": self.notes(), "validation": held}
        if folder is None:
            keep = {"validation": held}
        objective = policy_objective(self.method, self.layout) if objective is None else objective
        options = self.options(len(rows))
        with threads(free_threads() if self.device == "cpu" else torch.get_num_threads()):
            reports = fit_steps(made.model, rows, objective, options, **keep)
            last = watched_to_the_end(reports, options.steps, f"training {self.method}", console=console)
            return made, [run_in_words(last), *([] if held is None else scores(made, held))]


def some_rows(rows: Rows, most: int) -> Rows:
    """At most so many rows, evenly spread."""
    count = min(most, len(rows))
    return rows.take(torch.arange(count) * len(rows) // count)


def scores(model: PolicyModel, held: Rows) -> list[str]:
    """Nats of every question that needs no further word, on held-out rows."""
    if model.method in AT_ONCE:
        return []
    lines: list[str] = []
    for name in model.questions:
        if name in ("sensors", "safe", "lost", "complete"):
            continue
        asked = question(model.layout, name)
        nats, count = model.nats_of(held, asked)
        lines.append(f"{name:<8} {nats:8.3f} nats for each of {count:,} values held out")
    return lines


def train(
    source: str | Path | Demonstrations,
    output: str | Path,
    *,
    groups: str | Path | Mapping[str, Any] | Groups | None = None,
    device: str = "auto",
    resume: bool = False,
    **settings: Any,
) -> PolicyModel:
    """Train a model of demonstrations, with progress on stderr, and load it.

    Args:
        source: a file or folder (``read_demonstrations``), or demonstrations.
        output: folder for the model; a new one, or that of the run to be resumed.
        groups: which columns are what.
        device: "cpu", "cuda", or "auto" for CUDA if it is there.
        resume: go on with the run in the folder; begin it if there is none.
        settings: method, history, chunk, points and so on, see ``Settings``.
    """
    found = source if isinstance(source, Demonstrations) else read_demonstrations(source, groups)
    train_in_words(found, Path(output), Settings(**settings), device=device, resume=resume)
    return load(output)


def train_in_words(
    found: Demonstrations,
    folder: Path,
    wanted: Settings,
    *,
    device: str = "auto",
    resume: bool = False,
    say: Callable[[str], None] | None = None,
) -> list[str]:
    """Train, with progress on stderr; lines about what came of it. ``say`` is called with what was chosen."""
    wanted.refuse_idle()
    require_place(folder)
    saved = resumed_settings(folder, resume, MADE_BY, NOTES, Settings)
    run = prepared(found, wanted if saved is None else resumed(wanted, saved), compute_device(device))
    if say is not None:
        for line in run.lines():
            say(line)
    return run.fit(folder, resume=resume, console=Console(stderr=True))[1]


def prepared(found: Demonstrations, wanted: Settings, device: Literal["cpu", "cuda"] = "cpu") -> PolicyRun:
    """A run with everything chosen that was not said."""
    cuda, wide = device == "cuda", 512 if wanted.method == "one-pass" else 2048
    unending = wanted.steps is None and (wanted.seconds is not None or wanted.epochs is not None)
    usual: dict[str, Any] = {
        "method": "joint",
        "history": 1,
        "chunk": 1,
        "goals": True,
        "network": "residual",
        "width": wide if cuda else 128 if wanted.method == "one-pass" else 256,
        "depth": 8 if cuda else 3,
        "components": 20,
        "min_scale": 0.02,
        "dropout": 0.0,
        "steps": 1_000_000 if unending else 10_000 if cuda else 2_000,
        "batch": 4096 if cuda else 256,
        "learning_rate": 5e-4,
        "valid_share": 0.1,
        "seed": 0,
    }
    s = replace(wanted, **{name: value for name, value in usual.items() if getattr(wanted, name) is None})
    if s.points and s.method not in ("joint", "one-pass", "neighbour"):
        raise refuse("--method", expected="joint, one-pass or neighbour for whole trajectories", got=s.method)
    told = found.without(goal=not s.goals)
    train_on, held = told.split(s.valid_share or 0.0)
    layout = Layout.of(train_on, history=s.history or 1, chunk=s.chunk or 1, points=s.points or 0)
    return PolicyRun(train_on, held, layout, s, device)
