"""The demo's model of a table, one held-out row of which is asked many ways.

Every answer says what kind of number it is and what it cost. The network is a small MLP trained on every column given
every subset of the others (ARDM), so a row may be scored in one order (exact, in that order) or averaged over random
ones (a bound, an estimate). Densities are in the table's own units (per millimetre, per gram).
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from anyfill import recipes
from anyfill.cli.demo_digits import OPTIONS, Watch
from anyfill.cli.examples import Penguins
from anyfill.conditional import Conditional
from anyfill.evaluation import log_prob
from anyfill.interface.threads import threads
from anyfill.likelihoods import FiniteMarginals, MixedMarginals
from anyfill.model import Model
from anyfill.questions import Question
from anyfill.tables.recipes import mlp_model
from anyfill.tables.table import Category, Number
from anyfill.training import fit_steps

STEPS = 600
UNITS = {"bill_length_mm": "mm", "bill_depth_mm": "mm", "flipper_length_mm": "mm", "body_mass_g": "g"}
ROW = 1
"""The held-out penguin that is asked about: an Adelie with the long bill of a Chinstrap."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One question and its answer.

    Attributes:
        asked: what is wanted, in the table's words.
        given: what the model is given; empty = nothing.
        answer: for people.
        truth: what is so in the data, if that can be compared.
        kind: exact, bound or estimate.
        cost: passes or draws.
        shares: value and probability, for answers that are a distribution over categories or candidates.
    """

    asked: str
    given: tuple[str, ...]
    answer: str
    truth: str = ""
    kind: str = "exact"
    cost: str = "1 pass"
    shares: tuple[tuple[str, float], ...] = ()


def train_penguins(penguins: Penguins, seed: int, watch: Watch, *, steps: int = STEPS) -> Model:
    """A model of the table. A fixed number of steps: the same seed gives the same model."""
    model = mlp_model(penguins.table, seed=seed)
    objective = recipes.ardm.objective(model.variables)
    options = replace(OPTIONS, steps=steps, batch_size=64, learning_rate=5e-3, weight_decay=0.1, seed=seed)
    with threads(1):  # too small for more
        for _ in watch(fit_steps(model, penguins.train, objective, options), steps, "penguins"):
            pass
    return model


def held_out_nats(model: Model, penguins: Penguins) -> tuple[float, float]:
    """- log p of a held-out row in nats (own units), everything that is present asked: mean and standard error."""
    rows = penguins.test
    answer = log_prob(model, rows.x, Question(torch.zeros_like(rows.present), rows.present))
    nats = -penguins.table.in_own_units(answer.value, rows.x, rows.present)
    return float(nats.mean()), float(nats.std() / math.sqrt(len(nats)))


def ask_penguin(model: Model, penguins: Penguins, seed: int, *, draws: int = 200, orders: int = 32) -> list[Answer]:
    """The questions of the page, about one held-out row."""
    one = _Penguin(model, penguins)
    bill, body = ("bill_length_mm", "flipper_length_mm"), ("species", "sex")
    informative, best = one.information("species", bill, draws=draws, seed=seed)
    whole = penguins.table.names
    return [
        one.distribution("species", bill),
        informative,
        one.distribution("species", (*bill, best)),
        one.interval("body_mass_g", body),
        one.interval("body_mass_g", (*body, "flipper_length_mm")),
        one.log_density(("species", "sex", "body_mass_g"), ()),
        one.log_density(("flipper_length_mm", "body_mass_g"), body),
        one.log_density(whole, ()),
        one.log_density(whole, (), estimator="bound", orders=orders, seed=seed),
        one.log_density(whole, (), estimator="estimate", orders=orders, seed=seed),
    ]


def shown_row(penguins: Penguins) -> dict[str, str]:
    """The row that is asked about, for people."""
    return {plain(name): _value(penguins, name) for name in penguins.table.names}


@dataclass(frozen=True, slots=True)
class _Penguin:
    """The row, ready to be asked."""

    model: Model
    penguins: Penguins

    @property
    def x(self) -> Tensor:
        return self.penguins.test.x[ROW]

    def conditional(self, given: tuple[str, ...]) -> Conditional:
        return self.model.given(self.x, self.penguins.table.members(given))

    def distribution(self, name: str, given: tuple[str, ...]) -> Answer:
        """p(name | given) for each category."""
        column, marginals = self._column(name, given)
        if not isinstance(column, Category) or not isinstance(marginals, FiniteMarginals):
            raise TypeError(f"{name} is not a category")
        shares: list[float] = marginals.log_probs[0, 0].exp().tolist()
        ranked = tuple(sorted(zip(map(str, column.values), shares), key=lambda share: -share[1]))
        words = ", ".join(f"{value} {share:.1%}" for value, share in ranked)
        return Answer(plain(name), _plain(given), words, _value(self.penguins, name), shares=ranked)

    def interval(self, name: str, given: tuple[str, ...], level: float = 0.9) -> Answer:
        """The median and the central interval of a number."""
        column, marginals = self._column(name, given)
        if not isinstance(column, Number):
            raise TypeError(f"{name} is not a number")
        quantiles = (marginals.quantile(q)[0, 0].double().numpy() for q in ((1 - level) / 2, 0.5, (1 + level) / 2))
        low, middle, high = map(column.decode, quantiles)
        unit = UNITS.get(name, "")
        words = f"{middle:,.0f} {unit}; {level:.0%} between {low:,.0f} and {high:,.0f} {unit}"
        return Answer(plain(name), _plain(given), words, _value(self.penguins, name))

    def log_density(self, asked: tuple[str, ...], given: tuple[str, ...], **over: Any) -> Answer:
        """log p(asked | given) of what is so: in the order of the columns, or averaged over random orders (of
        so many ``orders``, by an ``estimator``, with a ``seed``)."""
        table, conditional = self.penguins.table, self.conditional(given)
        members = table.members(asked)
        answer = conditional.log_prob(self.x, members, **over)
        words = f"{float(table.in_own_units(answer.value, self.x[None], members)[0]):.2f}".replace("-", "−")
        words += " nats" if not over else f" ± {float(answer.stderr[0]):.2f} nats, {over['orders']} random orders"
        name = "the whole row" if len(asked) == len(table.names) else ", ".join(_plain(asked))
        passes = f"{answer.passes} pass" + ("" if answer.passes == 1 else "es")
        return Answer(f"log p of {name}", _plain(given), words, "", answer.kind, passes)

    def information(self, target: str, given: tuple[str, ...], *, draws: int, seed: int) -> tuple[Answer, str]:
        """How much each other column would tell about the target, and the name of the one that tells most."""
        names = self.penguins.table.names
        found = self.conditional(given).information(names.index(target), samples=draws, seed=seed)
        bits: list[float] = (found.value[0] / math.log(2)).tolist()
        ranked = sorted((j for j in range(len(names)) if bool(found.candidate[0, j])), key=lambda j: -bits[j])
        best, error = ranked[0], float(found.stderr[0, ranked[0]]) / math.log(2)
        words = f"{plain(names[best])}: {bits[best]:.2f} ± {error:.2f} bits about the {target}"
        shares = tuple((plain(names[j]), bits[j]) for j in ranked)
        asked = f"what would tell most about the {target}"
        return Answer(asked, _plain(given), words, "", "estimate", f"{draws} draws", shares), names[best]

    def _column(self, name: str, given: tuple[str, ...]):
        marginals, j = self.conditional(given).marginals(), self.penguins.table.index(name)
        if not isinstance(marginals, MixedMarginals):
            raise TypeError(f"marginals of a table: expected MixedMarginals, got {type(marginals).__name__}")
        return self.penguins.table.columns[j], marginals.column(j)


def _plain(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(plain, names))


def plain(name: str) -> str:
    """The name of a column for people: ``bill_length_mm`` is the bill length."""
    return name.removesuffix("_mm").removesuffix("_g").replace("_", " ")


def _value(penguins: Penguins, name: str) -> str:
    """What the row has in a column, for people."""
    j = penguins.table.index(name)
    if not bool(penguins.test.present[ROW, j]):
        return "missing"
    value, unit = penguins.table.decode_column(j, penguins.test.x[ROW, j]).item(), UNITS.get(name)
    if unit is None:
        return f"{value:g}" if isinstance(value, float) else str(value)
    return f"{value:,g} {unit}"
