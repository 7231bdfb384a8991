"""FrankaKitchen, the robotics experiment of MAC, on human demonstrations: tasks done, and nats of seven questions.

    train      every method, --seeds trainings each, into MODELS/METHOD-SEED
    rollouts   tasks completed per episode of 280 steps: 100 episodes a method and training with everything working, 40
               with 10, 30 and 60 % of the sensors lost and with each of --motors off, told and untold; 100 of the four
               tasks of kitchen-mixed chained as goals, for methods that know goals
    nats       nats per variable of held-out demonstrations for the seven questions: one model against seven
               specialists, trained for the same seconds together
    summary    means and 95 % intervals of what is there, into results/mac/kitchen.json

Every cell is written when it ends and skipped when it is there, so the command may be stopped and given again. The
paper's size is ``plain``, 8 x 2048, 20 Gaussians, Adam 5e-4, 300 epochs of batches of 4096.

    python -m experiments.mac.kitchen all --data demos.npz --models runs/kitchen
    python -m experiments.mac.kitchen all --smoke      # minutes; writes to a temporary folder

``--smoke`` moves the robot at random and pretends tasks: it shows that everything runs, and measures nothing.
"""

import argparse
import json
import math
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anyfill.policy import Demonstrations, PolicyModel, load, read_demonstrations
from anyfill.policy.kitchen import MIXED, MOTORS, TASKS
from anyfill.policy.questions import SEVEN, NamedQuestions
from anyfill.policy.recipes import specialist_objective
from anyfill.policy.rollouts import Conditions, rollout
from anyfill.policy.settings import Settings
from anyfill.policy.simulator import Kitchen
from anyfill.policy.training import prepared, some_rows
from benchmarks.common import RESULTS, write_result
from experiments.common import data_folder, read_lines

METHODS: dict[str, dict[str, Any]] = {
    "joint": {"method": "joint"},
    "one-pass": {"method": "one-pass", "width": 256, "depth": 6},
    "mac": {"method": "mac", "goals": False},
    "bc": {"method": "bc", "goals": False},
    "bc-mixture": {"method": "bc-mixture", "goals": False},
    "bc-dropout": {"method": "bc-dropout", "goals": False},
    "bc-goal": {"method": "bc", "goals": True},
    "neighbour": {"method": "neighbour", "goals": False},
}
CHAINED = ("joint", "one-pass", "bc-goal")
LOST = (0.1, 0.3, 0.6)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run, and where it goes."""

    data: Path
    models: Path
    lines: Path
    settings: Settings
    methods: tuple[str, ...]
    seeds: int
    episodes: int
    fewer: int
    motors: tuple[str, ...]
    temperatures: tuple[float, ...]
    steps: int
    workers: int
    device: Any

    def done(self) -> dict[str, Any]:
        """Cells that are there, by name."""
        return {line["cell"]: line for line in read_lines(self.lines)} if self.lines.exists() else {}

    def note(self, cell: str, found: dict[str, Any]) -> None:
        self.lines.parent.mkdir(parents=True, exist_ok=True)
        with self.lines.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"cell": cell, **found}) + "\n")
        shown = {key: found[key] for key in ("of_four", "of_seven", "nats") if key in found}
        print(cell, json.dumps(shown), flush=True)


def train(plan: Plan) -> None:
    """Every method, every seed."""
    found = read_demonstrations(plan.data)
    for seed in range(plan.seeds):
        for name in plan.methods:
            folder = plan.models / f"{name}-{seed}"
            if _finished(folder).exists() or (name == "neighbour" and seed):
                continue
            own = {**METHODS[name]}
            settings = replace(plan.settings, **own, seed=seed)
            if plan.settings.width is not None and plan.settings.width < own.get("width", 0):
                settings = replace(settings, width=plan.settings.width, depth=plan.settings.depth)
            _, lines = prepared(found, settings, plan.device).fit(folder, resume=True)
            print(folder.name, *lines, sep="\n  ", flush=True)
            _finished(folder).touch()


def _finished(folder: Path) -> Path:
    """The mark beside a model that was trained to its end."""
    return folder.with_name(f"{folder.name}.finished")


def rollouts(plan: Plan) -> None:
    """Every cell that is not there."""
    conditions = [Conditions()]
    conditions += [Conditions(lost, None, told) for lost in LOST for told in (True, False)]
    conditions += [Conditions(0.0, motor, told) for motor in plan.motors for told in (True, False)]
    for seed in range(plan.seeds):
        for name in plan.methods:
            folder = plan.models / f"{name}-{0 if name == 'neighbour' else seed}"
            if not _finished(folder).exists():
                continue
            model = load(folder)
            model = replace(model, model=model.model.to(plan.device))
            at_once = model.method in ("bc", "bc-dropout", "neighbour")
            for temperature in (0.0,) if at_once else plan.temperatures:
                for fails in conditions:
                    count = plan.episodes if fails == Conditions() else plan.fewer
                    _cell(plan, name, seed, model, fails, None, temperature, count)
                if name in CHAINED:
                    _cell(plan, name, seed, model, Conditions(), ",".join(MIXED), temperature, plan.episodes)


def _cell(
    plan: Plan,
    name: str,
    seed: int,
    model: PolicyModel,
    fails: Conditions,
    goal: str | None,
    temperature: float,
    count: int,
) -> None:
    words = f"lost={fails.lost:g} off={fails.motor} told={fails.told} goal={'four' if goal else None} T={temperature:g}"
    cell = f"rollouts {name} {seed} {words}"
    if cell in plan.done():
        return
    options: dict[str, Any] = {"steps": plan.steps, "workers": plan.workers, "progress": True}
    found = rollout(
        model, goal=goal, episodes=count, seed=1000 * seed, temperature=temperature, conditions=fails, **options
    )
    key = {"method": name, "training": seed, "conditions": words}
    plan.note(cell, {**key, **found.summary()})


def nats(plan: Plan) -> None:
    """One model against seven specialists, the same seconds together."""
    found = read_demonstrations(plan.data)
    seconds = plan.settings.seconds or 700.0
    for seed in range(plan.seeds):
        base = replace(plan.settings, method="joint", goals=True, seed=seed, epochs=None, steps=None)
        kinds: list[tuple[str, str | None, float]] = [("one model", None, seconds)]
        kinds += [("specialist", name, seconds / len(SEVEN)) for name in SEVEN]
        for kind, name, budget in kinds:
            cell = f"nats {kind} {name} {seed}"
            if cell in plan.done():
                continue
            run = prepared(found, replace(base, seconds=budget), plan.device)
            objective = None if name is None else specialist_objective(run.layout, name)
            model, _ = run.fit(None, objective=objective)
            if run.held is None:
                raise ValueError("nats: expected held-out demonstrations, got none")
            wanted = SEVEN if name is None else (name,)
            plan.note(cell, {"kind": kind, "seconds": budget, "nats": held_out(model, run.held, wanted)})


def held_out(model: PolicyModel, held: Demonstrations, names: tuple[str, ...]) -> dict[str, float]:
    """Nats per variable of each question, missing sensors and held motors drawn for every row by one seed."""
    rows = some_rows(model.layout.rows(held), 8192)
    found: dict[str, float] = {}
    for name in names:
        source = torch.Generator().manual_seed(0)
        questions = NamedQuestions(model.layout.blocks, (name,), len(model.layout.columns.observation))
        found[name] = model.nats_of(rows, questions.sample(len(rows), generator=source))[0]
    return found


def summary(plan: Plan, name: str) -> None:
    """Means over episodes of all trainings, with 95 % intervals over both."""
    cells: dict[str, list[dict[str, Any]]] = {}
    scores: dict[str, list[dict[str, float]]] = {}
    for line in plan.done().values():
        if "conditions" in line:
            cells.setdefault(f"{line['method']} {line['conditions']}", []).append(line)
        else:
            scores.setdefault(line["kind"], []).append(line["nats"])
    table = {}
    for key, lines in sorted(cells.items()):
        table[key] = {"trainings": len(lines), "episodes": sum(line["episodes"] for line in lines)}
        for of in ("of_four", "of_seven"):
            means = [line[of]["mean"] for line in lines]
            within = [line[of]["stderr"] ** 2 / len(lines) for line in lines]
            between = np.var(means, ddof=1) / len(means) if len(means) > 1 else 0.0
            error = math.sqrt(max(float(np.mean(within)), float(between)))
            table[key][of] = {"mean": float(np.mean(means)), "plus_minus": 1.96 * error}
    questions = {
        kind: {
            one: float(np.mean([line[one] for line in lines if one in line]))
            for one in SEVEN
            if any(one in line for line in lines)
        }
        for kind, lines in scores.items()
    }
    payload = {"rollouts": table, "nats_per_variable": questions}
    if plan.lines.is_relative_to(RESULTS):
        print("wrote", write_result(name, payload))
    else:
        print(json.dumps(payload, indent=1))


def record_random_motions(path: Path, *, trajectories: int, steps: int) -> None:
    """Move the robot at random and pretend tasks: a file of the right form that teaches nothing."""
    source = np.random.default_rng(0)
    kitchen, positions, actions = Kitchen(), [], []
    for number in range(trajectories):
        here, action = kitchen.reset(number), np.zeros(9, dtype=np.float32)
        for _ in range(steps):
            action = np.clip(0.85 * action + source.normal(0, 0.35, 9), -1, 1).astype(np.float32)
            positions.append(here)
            actions.append(action)
            here, _ = kitchen.step(action)
    when = np.where(source.random((trajectories, 7)) < 0.4, source.integers(0, steps, (trajectories, 7)), -1)
    length = np.full(trajectories, steps)
    words = np.array(["random motions"] * trajectories)
    np.savez(
        path, qpos=positions, act=actions, length=length, tasks=np.array(TASKS), when=when, folder=words, log=words
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phase", choices=("train", "rollouts", "nats", "summary", "all"))
    parser.add_argument("--data", type=Path, default=data_folder() / "kitchen" / "human_demos.npz")
    parser.add_argument("--models", type=Path, default=Path("runs/kitchen"))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--fewer", type=int, default=40, help="episodes of a cell where something fails")
    parser.add_argument("--motors", default=",".join(MOTORS[:7:3]), help="motors that are off, one at a time")
    parser.add_argument("--temperatures", default="1,0")
    parser.add_argument("--network", default="plain")
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--epochs", type=float, default=300)
    parser.add_argument("--seconds", type=float, help="of each training; for nats of all specialists together")
    parser.add_argument("--steps", type=int, default=280, help="of an episode")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--smoke", action="store_true", help="random motions, tiny networks, a temporary folder")
    o = parser.parse_args()
    where = Path(tempfile.mkdtemp(prefix="kitchen-smoke-")) if o.smoke else None
    if where is not None:
        o.data, o.models, o.width, o.depth, o.batch = where / "random_motions.npz", where / "models", 32, 2, 64
        o.seeds, o.episodes, o.fewer, o.steps, o.epochs, o.seconds = 1, 2, 1, 4, 2, 7.0
        o.motors, o.temperatures = MOTORS[0], "1"
        record_random_motions(o.data, trajectories=6, steps=20)
    if not o.data.exists():
        raise SystemExit(f"{o.data}: not there; --data names the demonstrations, --smoke tries everything without them")
    settings = Settings(
        network=o.network, width=o.width, depth=o.depth, batch=o.batch, epochs=o.epochs, seconds=o.seconds
    )
    lines = (RESULTS / "mac" / "logs" if where is None else where) / "kitchen.jsonl"
    chosen = tuple(o.methods.split(","))
    heats = tuple(float(word) for word in o.temperatures.split(","))
    counts = (o.seeds, o.episodes, o.fewer)
    motors = tuple(o.motors.split(","))
    where_to = (o.data, o.models, lines, settings, chosen)
    plan = Plan(*where_to, *counts, motors, heats, o.steps, o.workers, o.device)
    phases = ("train", "rollouts", "nats", "summary") if o.phase == "all" else (o.phase,)
    for phase in phases:
        if phase == "summary":
            summary(plan, "mac/kitchen")
        else:
            {"train": train, "rollouts": rollouts, "nats": nats}[phase](plan)


if __name__ == "__main__":
    main()
