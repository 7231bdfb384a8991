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

Gains r are clipped to ±3 nats, so that a single row that was thought impossible does not decide. Its standard error is
that of the mean over reference rows and of the estimate together, sqrt(var_i(r_ij) / n_j + (b stderr)^2).

Reference rows may have holes. A row serves where it has all that is known and the target. If half of these have every
candidate as well, they alone are used, so that candidates are compared on the same rows; else each candidate on those
that have it; where one of them is had by fewer than ten such rows, the estimate stays as it is (``support`` says so).
The rows in question are not looked at beyond what they know, and do not depend on each other.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import require_count
from anyfill.data.rows import Rows
from anyfill.evaluation.acquire import Information, gains, packs, with_one
from anyfill.evaluation.cells import cell_parameters, require_each
from anyfill.evaluation.choosers import Choice, Rewarding, Standing, best_choice
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.questions.question import Reading

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
        told = _gain(model, standing).clamp(max=MOST_TOLD)
        return Information(told, torch.zeros_like(told), standing.candidate, 1)

    def choose(self, model: Model, standing: Standing, *, generator: Generator) -> Choice:
        return best_choice(self.reward(model, standing, generator=generator), self.costs, None)


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """The candidate that tells most, by estimates that are held against reference rows.

    Attributes:
        base: where the estimates come from.
        reference: rows with their targets, with or without holes.
        told_rows: on at most so many of them it is looked at what was told,
        expected_rows: and on so many of these at what had been expected.
        least_gain: stop where no gain per cost is above this by its standard error; None = never.
    """

    base: Rewarding
    reference: Rows
    told_rows: int = 300
    expected_rows: int = 24
    least_gain: float | None = None

    def __post_init__(self) -> None:
        require_count("told_rows", self.told_rows, least=FEWEST)
        require_count("expected_rows", self.expected_rows, least=2)

    @property
    def costs(self) -> tuple[float, ...] | None:
        """Those of ``base``."""
        return self.base.costs

    def support(self, standing: Standing) -> Tensor:
        """int64 (B,): how many reference rows each row's estimates are held against; 0 = too few, they stay."""
        found = torch.zeros(len(standing.known), dtype=torch.int64, device=standing.known.device)
        for rows, kind in _kinds(standing):
            served = self._serving(kind)
            if served is not None:
                count = served[1].sum(0)
                found[rows] = count[count > 0].min()
        return found

    def reward(self, model: Model, standing: Standing, *, generator: Generator) -> Information:
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        start = Generator(generator.device).manual_seed(seed)
        return self.corrected(model, standing, self.base.reward(model, standing, generator=start), seed=seed)

    def corrected(self, model: Model, standing: Standing, found: Information, *, seed: int) -> Information:
        """What ``found``, estimates of ``base`` for these rows, become.

        Best made from the same ``seed``: then what noise does to all rows alike falls out of e_j - mean_i e_ij. Every
        kind of rows is corrected with the same noise, or a row would depend on its company.
        """
        value, stderr = found.value.clone(), found.stderr.clone()
        for rows, kind in _kinds(standing):
            served = self._serving(kind)
            if served is not None:
                line, held = self._line(model, kind, *served, Generator().manual_seed(seed)), served[1].any(0)
                own = value[rows], stderr[rows]
                value[rows] = torch.where(held, line.told + line.slope * (own[0] - line.expected), own[0])
                error = (line.variance + torch.where(line.slope > 0, line.slope * own[1], 0.0) ** 2).sqrt()
                stderr[rows] = torch.where(held, error, own[1])
        return Information(value, stderr, found.candidate, found.samples)

    def choose(self, model: Model, standing: Standing, *, generator: Generator) -> Choice:
        return best_choice(self.reward(model, standing, generator=generator), self.costs, self.least_gain)

    def _serving(self, kind: "_Kind") -> tuple[Tensor, Tensor] | None:
        """Numbers (n,) of the reference rows that serve, and which candidates (n, N) each has; None = too few.

        A candidate that too few rows have is held against none, and keeps its estimate.
        """
        present = self.reference.present.to(kind.known.device)
        index = present[:, kind.known | kind.target].all(1).nonzero()[:, 0]
        count = min(len(index), self.told_rows)
        if count < FEWEST:
            return None
        index = index[_evenly(len(index), count, index.device)]
        has = present[index] & kind.candidate
        enough = has.sum(0) >= FEWEST
        if not bool(enough.any()):
            return None
        has = has & enough
        full = (has == enough).all(1)
        if int(full.sum()) >= max(FEWEST, count / 2):  # the same rows for all candidates compare them best
            return index[full], has[full]
        return index, has

    def _line(self, model: Model, kind: "_Kind", index: Tensor, has: Tensor, generator: Generator) -> "_Line":
        """What was told and expected of each candidate, and how far rows are to be told apart."""
        reference = self.reference.to(index.device)
        gain = _gain(model, _standing(reference.take(index), kind, has))
        told = gain.clamp(max=MOST_TOLD)
        count = has.sum(0).clamp(min=1)
        mean = told.sum(0) / count
        # Of the gains as they are: where all were cut, they would seem to be known exactly.
        away = gain - gain.sum(0) / count
        variance = torch.where(has, away.square(), 0.0).sum(0) / (count - 1).clamp(min=1) / count
        # Estimates are dear: evenly among the rows with the fewest holes.
        few = min(len(index), self.expected_rows)
        own = has.sum(1)
        full = (own >= own.sort(descending=True).values[few - 1]).nonzero()[:, 0]
        some = full[_evenly(len(full), few, index.device)]
        there, gain = has[some], told[some]
        expected = self.base.reward(
            model, _standing(reference.take(index[some]), kind, there), generator=generator
        ).value
        each = there.sum(0)
        away, gain = (torch.where(there, one - _mean(one, there), 0.0) for one in (expected, gain))
        spread = float(away.square().sum())
        slope = float((away * gain).sum()) / spread if spread > 0.0 else 0.0
        free = max(int((each - 1).clamp(min=0).sum()) - 1, 1)
        error = (float((gain - slope * away).square().sum()) / free / spread) ** 0.5 if spread > 0.0 else 0.0
        sure = min(max(slope - 2 * error, 0.0), 1.0)
        return _Line(mean, _mean(expected, there), torch.where(each > 1, sure, 0.0), variance)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What rows have in common: bool (N,) each."""

    known: Tensor
    target: Tensor
    candidate: Tensor


@dataclass(frozen=True, slots=True)
class _Line:
    """Of each candidate (N,): the means of what was told and expected, the slope b, the variance of the first."""

    told: Tensor
    expected: Tensor
    slope: Tensor
    variance: Tensor


def _kinds(standing: Standing) -> list[tuple[Tensor, _Kind]]:
    """The numbers of rows of which the same is known, wanted and open, and what that is; only rows with both last."""
    together = torch.stack([standing.known, standing.target, standing.candidate], 1)
    some = (standing.candidate.any(1) & standing.target.any(1)).nonzero()[:, 0]
    kinds, kind = together[some].flatten(1).unique(dim=0, return_inverse=True)
    return [(some[kind == number], _Kind(*one.view(3, -1))) for number, one in enumerate(kinds)]


def _standing(rows: Rows, kind: _Kind, candidate: Tensor) -> Standing:
    """Rows of which the same is known; ``candidate`` (B, N) is what of the open ones each has."""
    known, target = (one.expand(len(rows), -1) for one in (kind.known, kind.target))
    return Standing(
        torch.where(known, rows.x, torch.zeros_like(rows.x)), known, candidate, target, rows.x, rows.context
    )


def _gain(model: Model, standing: Standing) -> Tensor:
    """float64 (B, N): what each candidate tells at the true values, from -``MOST_TOLD`` on; 0 elsewhere."""
    one = bool((standing.target.sum(1) == 1).all()) and bool(model.readings & {Reading.DIRECT, Reading.ANY_ORDER})
    if one and not model.corruption.shows_unknown:
        gain = _told_of_one(model, standing)
    else:
        truth = standing.truth.unsqueeze(0)
        gain = gains(model, truth, standing.known, standing.target, standing.candidate, context=standing.context)[0]
    return gain.nan_to_num(nan=0.0).clamp(-MOST_TOLD, 10 * MOST_TOLD)


def _told_of_one(model: Model, standing: Standing) -> Tensor:
    """What ``gains`` gives for a target of one variable, reading nothing else."""
    at = standing.target.to(torch.uint8).argmax(1, keepdim=True)
    require_each(model, standing.known, standing.target)

    def score(row: Tensor, known: Tensor) -> Tensor:
        context = None if standing.context is None else standing.context[row]
        params = cell_parameters(model, standing.truth[row], known, at[row], context)
        law = marginals_at(model.likelihood, params, at[row])
        return law.log_prob(standing.truth[row].gather(1, at[row]))[:, 0].double()

    gain = torch.zeros(standing.known.shape, dtype=torch.float64, device=at.device)
    with model.evaluating():
        base = gain.new_zeros(len(at))
        for _, row in packs(1, standing.target.any(1), model, None):
            base[row] = score(row, standing.known[row])
        for _, row, j in packs(1, standing.candidate, model, None):
            before, after = base[row], score(row, with_one(standing.known[row], j))
            gain[row, j] = torch.where(before == after, 0.0, after - before)
    return gain


def _evenly(length: int, count: int, device: torch.device) -> Tensor:
    """``count`` numbers from 0 to length - 1, evenly spread."""
    return torch.arange(count, device=device) * length // count


def _mean(value: Tensor, there: Tensor) -> Tensor:
    """(N,): the mean of each column where it is there; 0 where it is nowhere."""
    return torch.where(there, value, 0.0).sum(0) / there.sum(0).clamp(min=1)
