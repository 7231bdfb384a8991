"""Informed choice that has been held against what measuring really told: for ``anyfill.evaluation.acquire_rows``.

A network's answers are those of no joint, quite, so an estimate of I(y; x_j | x_O) has an error of its own beside its
Monte Carlo error: where p(y | x_j, x_O) merely jitters with x_j, or x_j is less certain to the model than it is in
truth, nothing is told and yet something expected. Rows that are known in full (the training rows, say) show it. With

    r_ij = log p(y | x_j, x_O) - log p(y | x_O) at the true values of reference row i      what x_j did tell
    e_ij = the estimate for that row, by any ``Rewarding`` chooser                         what it was expected to

the estimate of a new row becomes  mean_i r_ij + b (e_j - mean_i e_ij),  where b, one for all candidates j, is the slope
of r on e within columns less two of its standard errors, clipped to [0, 1]: rows are told apart as far as it is certain
that their estimates are borne out, and b = 0 is the one choice that is best on average for this O. This is the usual
shrinkage of noisy values towards their mean (regression calibration, empirical Bayes), with a mean that was observed
instead of computed.

Gains r are clipped to ±3 nats, so that a single row that was thought impossible does not decide. The rows in question
are not looked at beyond what they know, and do not depend on each other.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import require_count
from anyfill.data.rows import Rows
from anyfill.evaluation.acquire import Information, gains
from anyfill.evaluation.choosers import Choice, Rewarding, Standing
from anyfill.model import Model

MOST_TOLD = 3.0
FEWEST = 10
"""With fewer reference rows an estimate is left as it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What each candidate tells at the true values, clipped: a yardstick, and with ``global_order`` the order that
    told most on rows that are known in full.

    Attributes:
        costs: N costs; None = all alike.
    """

    costs: tuple[float, ...] | None = None

    def reward(self, model: Model, standing: Standing, *, generator: Generator) -> Information:
        told = _told(model, standing)
        return Information(told, torch.zeros_like(told), standing.candidate, 1)

    def choose(self, model: Model, standing: Standing, *, generator: Generator) -> Choice:
        return _chosen(self.reward(model, standing, generator=generator), self.costs)


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """The candidate that tells most, by estimates that are held against reference rows.

    Attributes:
        base: where the estimates come from.
        reference: rows with their targets; those that lack something of what is known are passed over.
        told_rows: on at most so many of them it is looked at what was told,
        expected_rows: and on so many of these at what had been expected.
    """

    base: Rewarding
    reference: Rows
    told_rows: int = 300
    expected_rows: int = 24

    def __post_init__(self) -> None:
        require_count("told_rows", self.told_rows, least=FEWEST)
        require_count("expected_rows", self.expected_rows, least=2)

    @property
    def costs(self) -> tuple[float, ...] | None:
        """Those of ``base``."""
        return self.base.costs

    def reward(self, model: Model, standing: Standing, *, generator: Generator) -> Information:
        found = self.base.reward(model, standing, generator=generator)
        value = found.value.clone()
        together = torch.cat([standing.known, standing.target], 1)
        kinds, kind = together.unique(dim=0, return_inverse=True)
        for number in range(len(kinds)):
            rows = (kind == number).nonzero()[:, 0]
            known, target = standing.known[rows[0]], standing.target[rows[0]]
            line = self._line(model, known, target, standing.candidate[rows].any(0), generator)
            if line is not None:
                told, expected, slope = line
                value[rows] = torch.where(found.candidate[rows], told + slope * (value[rows] - expected), 0.0)
        return Information(value, found.stderr, found.candidate, found.samples)

    def choose(self, model: Model, standing: Standing, *, generator: Generator) -> Choice:
        return _chosen(self.reward(model, standing, generator=generator), self.costs)

    def _line(
        self, model: Model, known: Tensor, target: Tensor, candidate: Tensor, generator: Generator
    ) -> tuple[Tensor, Tensor, float] | None:
        """For known, target and candidates (N,): means (N,) of what was told and expected, and the slope."""
        needed = known | target | candidate
        index = self.reference.present.to(needed.device)[:, needed].all(1).nonzero()[:, 0]
        if len(index) < FEWEST:
            return None
        count = min(len(index), self.told_rows)
        index = index[torch.arange(count, device=index.device) * len(index) // count]
        told = _told(model, _standing(self.reference.take(index), known, target, candidate))
        some = torch.arange(min(count, self.expected_rows), device=index.device)
        some = some * count // len(some)
        standing = _standing(self.reference.take(index[some]), known, target, candidate)
        expected = self.base.reward(model, standing, generator=generator).value
        away, gain = expected - expected.mean(0), told[some] - told[some].mean(0)
        spread = float(away.square().sum())
        if spread == 0.0:
            return told.mean(0), expected.mean(0), 0.0
        slope = float((away * gain).sum()) / spread
        free = max((len(some) - 1) * int(candidate.sum()) - 1, 1)
        error = (float((gain - slope * away).square().sum()) / free / spread) ** 0.5
        return told.mean(0), expected.mean(0), min(max(slope - 2 * error, 0.0), 1.0)


def _standing(rows: Rows, known: Tensor, target: Tensor, candidate: Tensor) -> Standing:
    """Rows of which the same is known."""
    told, asked, open_ = (one.expand(len(rows), -1) for one in (known, target, candidate))
    return Standing(torch.where(told, rows.x, torch.zeros_like(rows.x)), told, open_, asked, rows.x, rows.context)


def _told(model: Model, standing: Standing) -> Tensor:
    """float64 (B, N): what each candidate tells at the true values, within ±``MOST_TOLD``."""
    truth = standing.truth.unsqueeze(0)
    gain = gains(model, truth, standing.known, standing.target, standing.candidate, context=standing.context)[0]
    return gain.nan_to_num(nan=0.0).clamp(-MOST_TOLD, MOST_TOLD)


def _chosen(reward: Information, costs: tuple[float, ...] | None) -> Choice:
    cost = None if costs is None else torch.tensor(costs, dtype=torch.float64)
    variable = reward.best(cost)
    return Choice(variable, reward.value.gather(1, variable.clamp(min=0)[:, None])[:, 0])
