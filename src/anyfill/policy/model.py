"""A model of a robot (or of any trajectories) and what can be asked of it.

    model = policy.load("model")
    model.ask(demonstrations, "inverse", trajectory=3, step=40, n=5)
    model.nats(demonstrations, "forward")

Answers are in the user's units. Any-order methods draw the asked variables one after another; behaviour cloning and
the nearest neighbour answer for actions, and with one value.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.evaluation.chain import terms
from anyfill.model import Model
from anyfill.policy.demonstrations import Columns, Demonstrations
from anyfill.policy.layout import Layout
from anyfill.policy.mixture import draw_jointly, joint_log_prob, mixtures
from anyfill.policy.questions import askable, question
from anyfill.policy.recipes import ACTIONS_ONLY, AT_ONCE, METHODS
from anyfill.questions import Question
from anyfill.questions.question import chain_rank
from anyfill.rows import Rows
from anyfill.samplers import Draw, sample
from anyfill.training import load_model, load_notes

NOTES = "policy"
_ACTIONS = ("policy", "goal", "safe", "lost")
_ROWS = 4096


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered about one row.

    Attributes:
        names: of the asked variables.
        values: n lists of their values: numbers in the user's units, or words for codes.
        recorded: what the file has there; None = nothing.
    """

    names: tuple[str, ...]
    values: tuple[tuple[float | str, ...], ...]
    recorded: tuple[float | str | None, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PolicyModel:
    """A trained model.

    Attributes:
        model: p(asked | given) over the variables of a row.
        layout: what these are.
        method: how it was trained, one of ``recipes.METHODS``.
        name: what to call it.
    """

    model: Model
    layout: Layout
    method: str
    name: str = "model"

    def __repr__(self) -> str:
        b = self.layout.blocks
        groups = f"{b.observation} observed, {b.goal} goals, {b.action} actions, {b.next} foreseen"
        return f"PolicyModel({self.name}: {self.method}, {groups})"

    @property
    def questions(self) -> tuple[str, ...]:
        """The names of the questions that it answers."""
        names = askable(self.layout)
        return tuple(name for name in names if name in _ACTIONS) if self.method in ACTIONS_ONLY else names

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        found = next(chain(self.model.parameters(), self.model.buffers()), None)
        return torch.device("cpu") if found is None else found.device

    def question(
        self, name: str, *, missing: Collection[str] = (), held: Collection[str] = (), shown: Sequence[int] = ()
    ) -> Question:
        """One question (1, N) by name; ValueError if the model was not trained for it."""
        if name in askable(self.layout) and name not in self.questions:
            expected = f"{', '.join(self.questions)}, as {self.method} answers for actions only"
            raise refuse("question", expected=expected, got=repr(name))
        return question(self.layout, name, missing=missing, held=held, shown=shown)

    def answer(self, x: Tensor, asked: Question, *, temperature: float = 1.0, generator: Generator) -> Tensor:
        """Values (B, N) with those that are asked answered; 0 is the mode."""
        x, asked = x.to(self.device), Question(asked.given.to(self.device), asked.asked.to(self.device))
        if self.method in AT_ONCE:
            with self.model.evaluating():
                found = self.model.marginals(x, asked.given).mode().to(x.dtype)
            return torch.where(asked.asked, found, x)
        if self.method == "bc-mixture":
            place, actions = self.layout.blocks.place("action"), torch.zeros(x.shape[1], dtype=torch.bool)
            actions[place] = True
            options: dict[str, Any] = {"temperature": temperature, "generator": generator}
            return draw_jointly(self.model, x, asked, actions.to(self.device), **options)
        # The paper's MAC promises nothing beyond actions given observations, and is asked nothing else (``question``).
        draw, untrained = Draw(temperature=temperature), self.method == "mac"
        drawn = sample(self.model, x, asked, draw=draw, generator=generator, allow_untrained=untrained)
        return drawn.x.to(x.dtype)

    def ask(
        self,
        demonstrations: Demonstrations,
        name: str,
        *,
        trajectory: int = 0,
        step: int = 0,
        n: int = 1,
        missing: Collection[str] = (),
        held: Mapping[str, float] | None = None,
        shown: Sequence[int] = (),
        goal: str | None = None,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> Answer:
        """One step of a trajectory, asked by name.

        Args:
            demonstrations: where the given values come from.
            name: the question, one of ``self.questions``.
            trajectory, step: which row; a whole trajectory has no step.
            n: how many answers.
            missing: sensors that are not read.
            held: actions that are given, with their values.
            shown: of a whole trajectory the points that are given.
            goal: another goal than that of the file, by name.
            temperature: 1 draws, 0 is the mode; methods with one value have no other.
            seed: of the draws.
        """
        require_count("n", n)
        require_count("--trajectory", trajectory, minimum=0, maximum=len(demonstrations) - 1)
        one = demonstrations.take([trajectory])
        require_count("--step", step, minimum=0, maximum=0 if self.layout.whole else one.steps - 1)
        held = {} if held is None else held
        asked = self.question(name, missing=missing, held=held, shown=shown)
        rows = self.layout.rows(one).take(torch.tensor([step]))
        numbers = self.layout.restore(rows.x).float()
        names = self.layout.names
        for action, value in held.items():
            numbers[0, names.index(action)] = value
        x, present = self.layout.standardise(numbers), rows.present.clone()
        for action in held:
            present[0, names.index(action)] = True
        if goal is not None:
            x[0, self._goal_place()] = float(self._goal_code(goal))
            present[0, self._goal_place()] = True
        possible = Question(asked.given & present, asked.asked)
        batch = Question(possible.given.repeat(n, 1), possible.asked.repeat(n, 1))
        self._check_temperature(temperature, n)
        source = torch.Generator().manual_seed(seed)
        drawn = self.answer(x.repeat(n, 1), batch, temperature=temperature, generator=source).cpu()
        wanted = asked.asked[0].nonzero().squeeze(1).tolist()
        values = tuple(tuple(self._said(row, j) for j in wanted) for row in drawn)
        recorded = tuple(self._said(rows.x[0], j) if bool(rows.present[0, j]) else None for j in wanted)
        return Answer(tuple(names[j] for j in wanted), values, recorded)

    def nats(self, demonstrations: Demonstrations, name: str, **how: Any) -> tuple[float, int]:
        """Mean nats for each asked variable of the file, in deviations of its column, and of how many that is."""
        return self.nats_of(self.layout.rows(demonstrations), self.question(name, **how))

    def nats_of(self, rows: Rows, asked: Question) -> tuple[float, int]:
        """Mean nats for each asked variable of rows (B, N) under questions (B, N) or one (1, N), and of how many."""
        if self.method in AT_ONCE:
            raise refuse("nats", expected="a method with distributions", got=self.method)
        total, count = 0.0, 0
        for begin in range(0, len(rows), _ROWS):
            part = rows.take(torch.arange(begin, min(begin + _ROWS, len(rows)))).to(self.device)
            both = (one if len(one) == 1 else one[begin : begin + _ROWS] for one in (asked.given, asked.asked))
            given, wanted = (one.to(self.device).expand_as(part.present) for one in both)
            own = Question(given & part.present, wanted & part.present)
            with self.model.evaluating():
                if self.method == "bc-mixture":
                    total -= float(joint_log_prob(mixtures(self.model, part.x, own.given), part.x, own.asked).sum())
                else:
                    found = terms(self.model, part.x, chain_rank(self.model.order, own))
                    total -= float(torch.where(own.asked, found, 0.0).sum())
            count += int(own.asked.sum())
        if not count:
            raise refuse("question", expected="values in the file to be scored", got="none")
        return total / count, count

    def _check_temperature(self, temperature: float, n: int) -> None:
        if self.method in AT_ONCE and (temperature not in (0.0, 1.0) or n > 1):
            raise refuse(
                "--temperature and -n", expected=f"none, as {self.method} has one answer", got=f"{temperature}, {n}"
            )

    def _goal_place(self) -> int:
        place = self.layout.blocks.place("goal")
        if place.stop - place.start != 1 or not self.layout.columns.categories[0]:
            raise refuse("--goal", expected="a model of one goal with names", got=f"{place.stop - place.start} goals")
        return place.start

    def _goal_code(self, goal: str) -> int:
        self._goal_place()
        names = self.layout.columns.categories[0]
        if goal not in names:
            raise refuse("--goal", expected=", ".join(names), got=repr(goal))
        return names.index(goal)

    def _said(self, row: Tensor, j: int) -> float | str:
        if self.layout.sizes[j]:
            place = j - self.layout.blocks.place("goal").start
            return self.layout.columns.categories[place][int(row[j])]
        return float(self.layout.restore(row)[j])


def notes_of(layout: Layout, method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept with a model."""
    return {NOTES: {"layout": asdict(layout), "method": method, "settings": dict(settings)}}


def load(folder: str | Path) -> PolicyModel:
    """A model that ``anyfill policy train`` made, ready to be asked."""
    path = Path(folder)
    if not (path / "config.json").is_file():
        raise refuse("MODEL", expected="the folder of a model (anyfill policy train)", got=f"{folder}")
    noted: Any = load_notes(path).get(NOTES)
    if not isinstance(noted, Mapping) or "layout" not in noted:
        raise refuse(
            f"{folder}", expected="a model of trajectories (anyfill policy train)", got="one of something else"
        )
    known: dict[str, Any] = dict(noted["layout"])
    c: dict[str, Any] = {name: _tuples(value) for name, value in known.pop("columns").items()}
    layout = Layout(Columns(**c), **{name: _tuples(value) for name, value in known.items()})
    method = str(noted["method"])
    if method not in METHODS:
        raise refuse(f"{folder}", expected=f"a model by {', '.join(METHODS)}", got=method)
    return PolicyModel(load_model(path).float(), layout, method, path.name)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list | tuple) else value
