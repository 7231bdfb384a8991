"""Who decides what to measure next: one small policy per line, for ``acquisition.acquire_rows``.

    Informed    argmax_j I(y; x_j | x_O) / cost_j, by the any-order estimator (SFARM eq. 15)
    Quantiles   the same without joint draws (``anyfill.tables.quantiles``)
    Calibrated  the same, held against rows that are known (``anyfill.tables.calibrated``)
    Latent      argmax_j of EDDI's reward through an encoder q(z | x_O) (Ma et al. 2019, eq. 8), per cost:
                E KL(q(z | x_j, x_O) || q(z | x_O)) - E KL(q(z | y, x_j, x_O) || q(z | y, x_O))
    InOrder     one order for all rows (SING, if ``global_order`` found it)
    AtRandom    uniformly among what is left
    Oracle      argmax_j log p(y | x_j, x_O) at the true values: a yardstick that looks at the answer, no method

All expectations are over joint draws (x_U, y) ~ p(. | x_O) of the model; those of ``Latent`` go through z, as EDDI's
do: one of the network's z_l by its weight, then all variables given it, one pass instead of one for each variable.
EDDI's published code divides by a standard deviation where the divergence of two normals has a variance; ``Latent`` has
the variance.

A chooser has one method: ``choose``, or ``reward`` if it can say what it expects of every candidate.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, cast, runtime_checkable

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_positive
from anyfill.evaluation.acquire import Information, averaged, gains, information, packs, with_one
from anyfill.likelihoods.marginals import Likelihood
from anyfill.model import Model
from anyfill.networks.latent import Latent as LatentNetwork
from anyfill.rows import Rows

_ROWS = 64  # whose latent draws are decoded at once


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """Where B rows stand when the next variable is chosen.

    Attributes:
        x: values (B, N), 0 where not known.
        known: bool (B, N), what has been given or measured.
        candidate: bool (B, N), what can still be measured.
        target: bool (B, N), what is to be predicted.
        truth: values (B, N), everything that is in the data: for yardsticks only.
        context: optional side information (B, ...).
    """

    x: Tensor
    known: Tensor
    candidate: Tensor
    target: Tensor
    truth: Tensor
    context: Tensor | None = None

    @classmethod
    def of(cls, rows: Rows, known: Tensor, candidate: Tensor, target: Tensor) -> "Standing":
        """That of rows of which this (B, N) is known."""
        return cls(torch.where(known, rows.x, torch.zeros_like(rows.x)), known, candidate, target, rows.x, rows.context)

    def take(self, rows: Tensor) -> "Standing":
        """That of the rows at an index."""
        context = None if self.context is None else self.context[rows]
        parts = (self.x, self.known, self.candidate, self.target, self.truth)
        return Standing(*(part[rows] for part in parts), context=context)


class Choice(NamedTuple):
    """The variables to measure next.

    Attributes:
        variable: int64 (B,), a candidate of each row, or -1 = stop.
        gain: float64 (B,), the nats it is expected to tell about the target; NaN where the chooser does not know.
    """

    variable: Tensor
    gain: Tensor


@runtime_checkable
class Chooser(Protocol):
    """A way to choose what each row measures next."""

    def choose(self, model: Model, standing: Standing, *, generator: Generator) -> Choice:
        """One candidate for each of the B rows, which all have one; or -1 where it is not worth going on."""
        ...


@runtime_checkable
class Rewarding(Chooser, Protocol):
    """A chooser that can say what it expects of every candidate, and takes the best.

    Attributes:
        costs: N costs, those of targets unread; None = all alike.
        min_gain: stop where no gain per cost is above this by its standard error; None = never.
    """

    costs: tuple[float, ...] | None = None
    min_gain: float | None = None

    def reward(self, model: Model, standing: Standing, *, generator: Generator) -> Information:
        """The nats each candidate of each row is expected to tell."""
        ...

    def choose(self, model: Model, standing: Standing, *, generator: Generator) -> Choice:
        reward = self.reward(model, standing, generator=generator)
        cost = None if self.costs is None else torch.tensor(self.costs, dtype=torch.float64)
        variable = reward.best(cost, self.min_gain)
        gain = reward.value.gather(1, variable.clamp(min=0)[:, None])[:, 0]
        return Choice(variable, torch.where(variable < 0, torch.nan, gain))


@runtime_checkable
class Encoder(Protocol):
    """A network with a latent variable z and a diagonal normal q(z | known)."""

    def posterior(self, x: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and scale of q(z | x_known), (B, d) each."""
        ...


@dataclass(frozen=True, slots=True)
class Informed(Rewarding):
    """The variable that tells most about the target, per unit of cost.

    Attributes:
        samples: M, joint draws per row and step.
        costs: N costs, those of targets unread; None = all alike.
        min_gain: stop where no gain per cost is above this by its standard error; None = never.
        estimator: "draws" or "divergence", see ``information``.
        rows_per_pass: most rows in one call of the network.
    """

    samples: int = 100
    costs: tuple[float, ...] | None = None
    min_gain: float | None = None
    estimator: Literal["draws", "divergence"] = "draws"
    rows_per_pass: int | None = None

    def __post_init__(self) -> None:
        require_count("samples", self.samples, minimum=2)
        require_costs(self.costs)

    def reward(self, model: Model, standing: Standing, *, generator: Generator) -> Information:
        return information(
            model,
            _draw_ahead(model, standing, self.samples, self.rows_per_pass, generator),
            standing.known,
            standing.target,
            candidate=standing.candidate,
            estimator=self.estimator,
            context=standing.context,
            generator=generator,
            rows_per_pass=self.rows_per_pass,
        )


@dataclass(frozen=True, slots=True)
class Latent(Rewarding):
    """EDDI's reward: what x_j tells about a latent variable, less what it tells beside the target.

    It needs a network with ``posterior``; attributes as for ``Informed``.
    """

    samples: int = 50
    costs: tuple[float, ...] | None = None
    min_gain: float | None = None
    rows_per_pass: int | None = None

    def __post_init__(self) -> None:
        require_count("samples", self.samples, minimum=2)
        require_costs(self.costs)

    def reward(self, model: Model, standing: Standing, *, generator: Generator) -> Information:
        drawn = _through_latent(model, standing, self.samples, generator)
        if drawn is None:
            drawn = _draw_ahead(model, standing, self.samples, self.rows_per_pass, generator)
        gain = torch.zeros(drawn.shape, dtype=torch.float64, device=drawn.device)
        for draw, row, j in packs(self.samples, standing.candidate, model, self.rows_per_pass):
            x, known = drawn[draw, row], standing.known[row]
            beside = known | standing.target[row]
            moved, moved_beside = (_moved(model, x, with_one(before, j), before) for before in (known, beside))
            gain[draw, row, j] = moved - moved_beside
        return averaged(gain, standing.candidate)


@dataclass(frozen=True, slots=True)
class AtRandom(Chooser):
    """Uniformly among what is left, each row for itself."""

    def choose(self, model: Model, standing: Standing, *, generator: Generator) -> Choice:
        shape = standing.candidate.shape
        key = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64)
        return _first(standing.candidate, key.to(standing.candidate.device))


@dataclass(frozen=True, slots=True)
class InOrder(Chooser):
    """The first variable of ``order`` that is left; where none is, stop."""

    order: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", tuple(self.order))
        if len(set(self.order)) != len(self.order) or min(self.order, default=0) < 0:
            raise refuse("order", expected="distinct variables from 0 up", got=self.order)

    def choose(self, model: Model, standing: Standing, *, generator: Generator) -> Choice:
        variables = standing.candidate.shape[1]
        if max(self.order, default=0) >= variables:
            raise refuse("order", expected=f"variables from 0 to {variables - 1}", got=self.order)
        place = torch.full((variables,), variables, device=standing.candidate.device)
        place[list(self.order)] = torch.arange(len(self.order), device=place.device)
        return _first(standing.candidate & (place < variables), place.expand(standing.candidate.shape))


@dataclass(frozen=True, slots=True)
class Oracle(Rewarding):
    """The variable whose true value raises the log-probability of the true target most: greedy, and not allowed."""

    rows_per_pass: int | None = None

    def reward(self, model: Model, standing: Standing, *, generator: Generator) -> Information:
        truth, per_pass = standing.truth.unsqueeze(0), self.rows_per_pass
        question = standing.known, standing.target, standing.candidate
        gain = gains(model, truth, *question, context=standing.context, rows_per_pass=per_pass)[0]
        return Information(gain, torch.zeros_like(gain), standing.candidate, 1)


def _draw_ahead(
    model: Model, standing: Standing, samples: int, rows_per_pass: int | None, generator: Generator
) -> Tensor:
    """(M, B, N): joint draws of the candidates and the target given what is known."""
    return model.given(standing.x, standing.known, standing.context).sample(
        samples, asked=standing.candidate | standing.target, generator=generator, rows_per_pass=rows_per_pass
    )


def _through_latent(model: Model, standing: Standing, samples: int, generator: Generator) -> Tensor | None:
    """(M, B, N): the same draws by a latent variable; None where the network cannot be asked for draws of it."""
    network = model.network
    if not isinstance(network, LatentNetwork) or model.corruption.shows_unknown:
        return None
    asked = standing.candidate | standing.target
    parts: list[Tensor] = []
    with model.evaluating():
        for x, known, wanted in zip(*(part.split(_ROWS) for part in (standing.x, standing.known, asked))):
            said = network.draw(x, known, network.get_buffer("noise"))
            weights = said.log_likelihood + said.log_ratio
            weights = (weights if network.importance else torch.zeros_like(weights)).softmax(1)
            which = torch.multinomial(weights.to(generator.device), samples, replacement=True, generator=generator)
            row = torch.arange(len(x), device=x.device)[:, None]
            params = said.params[row, which.to(x.device)]  # (b, M, N, P)
            marginals = cast(Likelihood, network.likelihood)(params.flatten(0, 1))
            values = marginals.sample(generator=generator)
            values = values.unflatten(0, (len(x), samples)).movedim(1, 0).to(x)
            parts.append(torch.where(wanted, values, x))
    return torch.cat(parts, 1)


def _moved(model: Model, x: Tensor, after: Tensor, before: Tensor) -> Tensor:
    """float64 (R,): KL(q(z | x_after) || q(z | x_before)) of two diagonal normals."""
    encoder = model.network
    if not isinstance(encoder, Encoder):
        raise refuse("network", expected="one with a latent variable (.posterior)", got=type(encoder).__name__)
    with model.evaluating():
        (mean, scale), (mean_before, scale_before) = (
            encoder.posterior(*model.corruption.show(torch.where(known, x, torch.zeros_like(x)), known))
            for known in (after, before)
        )
    scale, scale_before = scale.double(), scale_before.double()
    shift = (mean.double() - mean_before.double()) / scale_before
    ratio = scale / scale_before
    return (0.5 * (ratio**2 + shift**2 - 1.0) - ratio.log()).sum(1)


def _first(allowed: Tensor, key: Tensor) -> Choice:
    """The allowed variable of the smallest key in each row."""
    ahead = torch.where(allowed, key.double(), torch.inf).argmin(1)
    variable = torch.where(allowed.any(1), ahead, -1)
    return Choice(variable, torch.full_like(variable, torch.nan, dtype=torch.float64))


def require_costs(costs: tuple[float, ...] | None) -> None:
    """ValueError unless these are costs."""
    if costs is not None and not isinstance(costs, tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse("costs", expected="a tuple of numbers", got=type(costs).__name__)
    for cost in () if costs is None else costs:
        require_positive("cost", cost)
