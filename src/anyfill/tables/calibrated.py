"""Informed choice that has been held against what measuring really told: for ``acquisition.acquire_rows``.

A network's answers are those of no joint, quite, so an estimate of I(y; x_j | x_O) has an error of its own beside its
Monte Carlo error: where p(y | x_j, x_O) merely jitters with x_j, or x_j is less certain to the model than it is in
truth, nothing is told and yet something expected. Rows that are known in full (the training rows, say) show it. With

    r_ij = log p(y | x_j, x_O) - log p(y | x_O) at the true values of reference row i      the gain observed
    e_ij = the estimate for that row, by any ``Rewarding`` chooser                         the gain expected

the estimate e_j of a new row becomes  mean_i r_ij + b (e_j - mean_i e_ij),  where b, one for all candidates j, is the
slope of r on e within columns less two of its standard errors, clipped to [0, 1]: rows are told apart as far as it is
certain that their estimates are confirmed, and b = 0 is the one choice that is best on average for this O. This is the
usual shrinkage of noisy values towards their mean (regression calibration, empirical Bayes), with a mean that was
observed instead of computed.

**Two means over the same rows.** Gains are observed in n rows, but estimates are costly and made for m of them only.
What is missing of the second mean is foretold by the first: mean_n e ~ mean_m e + c (mean_n r - mean_m r), c the slope
of e on r within columns. Where estimates are confirmed, it falls out of the difference which rows happened to serve.

**No row decides alone.** One that the model thought impossible, before or after, has an r of any size. So

    below   r counts down to -5. If p is a joint, E exp(-r) <= 1, so P(r < -t) <= exp(-t), and this moves a mean by no
            more than exp(-5) = 0.007 nats, whatever x_j is.
    above   r counts up to 3 nats beyond the third greatest of its column. There is no such bound: a column may tell 5
            nats in every row, or 8 in one of five. What three rows confirm counts in full, so with more rows the cut
            falls on ever rarer values and the mean is that of the model, if that is a joint.

One row of n can move a mean by a few nats / n, and the standard error with it.

**Errors.** The standard error has three parts: that of the two means, sqrt(var_i(r_ij) / n) where b = 0; that of the
estimate e_j, times b; and how far b may be off, its standard error and by how much it was shrunk, times
e_j - mean_i e_ij. By rows kept aside from training, calibrated choices are worse than plain ones with fewer than about
30 reference rows: with fewer an estimate is left as it is.

Reference rows may have holes. A row serves where it has all that is known and the target. If half of these have every
candidate as well, they alone are used, so that candidates are compared on the same rows; else each candidate on those
that have it; one that fewer than 30 such rows have keeps its estimate (``support`` says if all do). The rows in
question are not looked at beyond what they know, and do not depend on each other.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import require_count
from anyfill.evaluation.acquire import Information, gains, packs, require_each, target_parameters, with_one
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.questions.question import Factorization
from anyfill.rows import Rows
from anyfill.tables.choosers import Rewarding, Standing

MIN_REFERENCE = 30
"""With fewer reference rows an estimate is left as it is."""
_MIN, _MAX = -5.0, 30.0  # nats; the second stands for infinity
_ROOM = 3.0
_THIRD = 3
_SAME = 1e-4  # nats; estimates that differ by less are the same but for rounding


@dataclass(frozen=True, slots=True, eq=False)
class Observed(Rewarding):
    """What each candidate tells at the true values: a yardstick, and with ``global_order`` the order that told most on
    rows that are known in full. Among the rows that come together none decides alone, as in ``Calibrated``.

    Attributes:
        costs: N costs; None = all alike.
    """

    costs: tuple[float, ...] | None = None

    def reward(self, model: Model, standing: Standing, *, generator: Generator) -> Information:
        gain = _confirmed(_observed_gains(model, standing), standing.candidate)
        return Information(gain, torch.zeros_like(gain), standing.candidate, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated(Rewarding):
    """The candidate that tells most, by estimates that are held against reference rows.

    Attributes:
        base: where the estimates come from.
        reference: rows with their targets, with or without holes.
        observed_rows: n, on at most so many of them gains are observed,
        expected_rows: m, and on so many of these estimated.
        min_gain: stop where no gain per cost is above this by its standard error; None = never.
    """

    base: Rewarding
    reference: Rows
    observed_rows: int = 300
    expected_rows: int = 24
    min_gain: float | None = None

    def __post_init__(self) -> None:
        require_count("observed_rows", self.observed_rows, minimum=MIN_REFERENCE)
        require_count("expected_rows", self.expected_rows, minimum=3)

    @property
    def costs(self) -> tuple[float, ...] | None:  # pyright: ignore[reportIncompatibleVariableOverride]
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
        found = self.base.reward(model, standing, generator=start)
        return self.corrected(model, standing, found, seed=seed, device=generator.device)

    def corrected(
        self, model: Model, standing: Standing, found: Information, *, seed: int, device: torch.device | str = "cpu"
    ) -> Information:
        """What ``found``, estimates of ``base`` for these rows, become.

        Best made from the same ``seed`` on the same ``device``: then what noise does to all rows alike falls out of
        e_j - mean_i e_ij. Every kind of rows is corrected with the same noise, or a row would depend on its company.
        """
        value = found.value.nan_to_num(nan=0.0).clamp(_MIN, _MAX)
        stderr = found.stderr.nan_to_num(nan=torch.inf)
        for rows, kind in _kinds(standing):
            served = self._serving(kind)
            if served is not None:
                line, held = self._line(model, kind, *served, Generator(device).manual_seed(seed)), served[1].any(0)
                own = value[rows], stderr[rows]
                gap = own[0] - line.expected
                apart, noise = (torch.where(line.slope > 0, line.slope * one, 0.0) for one in (gap, own[1]))
                value[rows] = torch.where(held, line.observed + apart, own[0])
                doubt = torch.where(line.doubt > 0, line.doubt * gap**2, 0.0)
                error = (line.variance + noise**2 + doubt).sqrt()
                stderr[rows] = torch.where(held, error, own[1])
        return Information(value, stderr, found.candidate, found.samples)

    def _serving(self, kind: "_Kind") -> tuple[Tensor, Tensor] | None:
        """Numbers (n,) of the reference rows that serve, and which candidates (n, N) each has; None = too few.

        A candidate that too few rows have is held against none, and keeps its estimate.
        """
        present = self.reference.present.to(kind.known.device)
        index = present[:, kind.known | kind.target].all(1).nonzero()[:, 0]
        count = min(len(index), self.observed_rows)
        if count < MIN_REFERENCE:
            return None
        index = index[_evenly(len(index), count, index.device)]
        has = present[index] & kind.candidate
        enough = has.sum(0) >= MIN_REFERENCE
        if not bool(enough.any()):
            return None
        has = has & enough
        full = (has == enough).all(1)
        if int(full.sum()) >= max(MIN_REFERENCE, count / 2):  # the same rows for all candidates compare them best
            return index[full], has[full]
        return index, has

    def _line(self, model: Model, kind: "_Kind", index: Tensor, has: Tensor, generator: Generator) -> "_Line":
        """What was observed and expected of each candidate, and how far rows are to be told apart."""
        reference = self.reference.to(index.device)
        gain = _confirmed(_observed_gains(model, _standing(reference.take(index), kind, has)), has)
        count, observed = has.sum(0), _mean(gain, has)
        # Estimates are costly: evenly among the rows with the fewest holes.
        few = min(len(index), self.expected_rows)
        own = has.sum(1)
        full = (own >= own.sort(descending=True).values[few - 1]).nonzero()[:, 0]
        some = full[_evenly(len(full), few, index.device)]
        there = has[some]
        estimates = (
            self.base.reward(model, _standing(reference.take(index[some]), kind, there), generator=generator)
            .value.nan_to_num(nan=0.0)
            .clamp(_MIN, _MAX)
        )
        each = there.sum(0)
        e, r = (torch.where(there, one - _mean(one, there), 0.0) for one in (estimates, gain[some]))
        (slope, error), (back, _) = _slope(e, r, each), _slope(r, e, each)
        sure = torch.where(each > 1, min(max(slope - 2 * error, 0.0), 1.0), 0.0)
        expected = _mean(estimates, there) + back * (observed - _mean(gain[some], there))
        # The variance of observed - sure * expected, from what each row adds to it.
        share = (1 - sure * back) * torch.where(has, gain - observed, 0.0) / _root(count)
        share[some] -= sure * (e - back * r) / _root(each)
        off = error**2 + (min(max(slope, 0.0), 1.0) - sure) ** 2
        doubt = torch.where(each > 1, off, 0.0).clamp(max=1.0)  # both are from 0 to 1
        return _Line(observed, expected, sure, share.square().sum(0), doubt)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What rows have in common: bool (N,) each."""

    known: Tensor
    target: Tensor
    candidate: Tensor


@dataclass(frozen=True, slots=True)
class _Line:
    """Of each candidate (N,).

    Attributes:
        observed, expected: the two means.
        slope: b.
        variance: of observed - b * expected.
        doubt: how far b may be off, squared.
    """

    observed: Tensor
    expected: Tensor
    slope: Tensor
    variance: Tensor
    doubt: Tensor


def _kinds(standing: Standing) -> list[tuple[Tensor, _Kind]]:
    """The numbers of rows of which the same is known, wanted and open, and what that is; only rows with both last."""
    together = torch.stack([standing.known, standing.target, standing.candidate], 1)
    some = (standing.candidate.any(1) & standing.target.any(1)).nonzero()[:, 0]
    kinds, kind = together[some].flatten(1).unique(dim=0, return_inverse=True)
    return [(some[kind == number], _Kind(*one.view(3, -1))) for number, one in enumerate(kinds)]


def _standing(rows: Rows, kind: _Kind, candidate: Tensor) -> Standing:
    """Rows of which the same is known; ``candidate`` (B, N) is what of the open ones each has."""
    known, target = (one.expand(len(rows), -1) for one in (kind.known, kind.target))
    return Standing.of(rows, known, candidate, target)


def _observed_gains(model: Model, standing: Standing) -> Tensor:
    """float64 (B, N): what each candidate tells at the true values, from -5 to 30 nats; 0 elsewhere."""
    one = bool((standing.target.sum(1) == 1).all()) and bool(
        model.factorizations & {Factorization.DIRECT, Factorization.ANY_ORDER}
    )
    if one and not model.corruption.shows_unknown:
        gain = _of_one_target(model, standing)
    else:
        truth = standing.truth.unsqueeze(0)
        gain = gains(model, truth, standing.known, standing.target, standing.candidate, context=standing.context)[0]
    return gain.nan_to_num(nan=0.0).clamp(_MIN, _MAX)


def _confirmed(gain: Tensor, has: Tensor) -> Tensor:
    """float64 (n, N): gains up to 3 nats beyond the third greatest of their column, or the least of fewer; else 0."""
    if not len(gain):
        return gain
    place = (has.sum(0).clamp(max=_THIRD) - 1).clamp(min=0)
    third = torch.where(has, gain, -torch.inf).sort(0, descending=True).values.gather(0, place[None])
    return torch.where(has, gain.minimum(third + _ROOM), 0.0)


def _of_one_target(model: Model, standing: Standing) -> Tensor:
    """What ``gains`` gives for a target of one variable, reading nothing else."""
    at = standing.target.to(torch.uint8).argmax(1, keepdim=True)
    require_each(model, standing.known, standing.target)

    def score(row: Tensor, known: Tensor) -> Tensor:
        context = None if standing.context is None else standing.context[row]
        params = target_parameters(model, standing.truth[row], known, at[row], context)
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


def _slope(x: Tensor, y: Tensor, each: Tensor) -> tuple[float, float]:
    """That of y on x (m, N), one for all columns, of which ``each`` (N,) rows have 0 as their mean; and its error."""
    spread = float(x.square().sum())
    if spread <= int(each.sum()) * _SAME**2:
        return 0.0, 0.0
    slope = float((x * y).sum()) / spread
    free = int((each - 1).clamp(min=0).sum()) - 1
    return slope, (float((y - slope * x).square().sum()) / free / spread) ** 0.5 if free > 0 else float("inf")


def _root(count: Tensor) -> Tensor:
    """sqrt(n (n - 1)): what deviations are divided by, so that their squares add up to the variance of a mean."""
    return (count * (count - 1)).clamp(min=1).sqrt()
