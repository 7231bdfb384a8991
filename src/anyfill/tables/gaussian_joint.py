"""One joint Gaussian over a row, as a network: every conditional in closed form, in float64.

The features of a row (``gaussians.Expansion``) are jointly N(mu, Sigma), and each is answered by its conditional mean
and variance given the known ones. For real variables this is exact: the conditionals are those of one joint, so every
order gives the same log-probability. For codes it is the linear probability model: the conditional mean of the one-hot
features, clipped and normalised. That is a sensible distribution, but the conditionals of no joint, so there orders
differ.

**Many patterns at once.** With J = Sigma^-1, k the known features, u the unknown ones and a = f - mu at k, 0 at u, the
mean mu + s and covariance C of f given f_k follow from a Cholesky factor L of the *smaller* side, whichever that is:

    known side     L L' = Sigma_kk,  V = L^-1 Sigma_k:      s = V' L^-1 a_k              C   = Sigma - V'V
    unknown side   L L' = J_uu                              s_u = - L'^-1 L^-1 (J a)_u   C_u = L'^-1 L^-1

and so does the density, by |Sigma_kk| = |Sigma| |J_uu| and a_k' Sigma_kk^-1 a_k = a'J a - |L^-1 (J a)_u|^2. Patterns
whose smaller sides are about equally large are padded to one size, the padding an identity block, and factored in one
batch; rows with equal patterns share a factor. No factor holds more than half of the features, so none costs more than
an eighth of the whole.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.linalg import cholesky, solve_triangular

from anyfill.checks import refuse, require_count, require_positive, require_probability, require_shape
from anyfill.likelihoods.continuous import raw_of
from anyfill.networks.embed import Discrete, Kind, Mixed
from anyfill.networks.network import Capabilities
from anyfill.tables.gaussians import Expansion

_CHUNK = 2**21  # float64 numbers in one batch of matrices: 16 MiB
_STEPS = 4  # sizes that the smaller side is padded to


@dataclass(eq=False, repr=False)
class GaussianJoint(nn.Module, Capabilities):
    """(B, N, outputs) float64: parameters of each variable given the known ones; satisfies ``Network``.

    A real variable's parameters are those of ``likelihoods.Gaussian(min_scale)``; a variable with S codes has the S
    log-probabilities of ``likelihoods.Categorical(S)``; what is beyond them is 0. A known variable is its own value.
    Unknown values are not read. Standard normal when it is made; ``set_moments`` sets the joint, which travels in the
    state dict as ``mean`` (D,) and ``covariance`` (D, D).

    Attributes:
        kind: what a value is.
        variables: N.
        outputs: P, at least 2 for real variables and S for S codes.
        min_scale: the ``min_scale`` of the Gaussian likelihood that reads the answers.
        min_chance: the conditional mean of a code's feature is raised to this before normalising.
    """

    kind: Kind
    variables: int
    outputs: int
    min_scale: float = 1e-4
    min_chance: float = 1e-2
    context_width = 0

    def __post_init__(self) -> None:
        for name in ("variables", "outputs"):
            require_count(name, getattr(self, name))
        require_positive("min_scale", self.min_scale)
        require_positive("min_chance", self.min_chance)
        require_probability("min_chance", self.min_chance)
        sizes = sizes_of(self.kind, self.variables)
        need = max(size or 2 for size in sizes)
        if self.outputs < need:
            raise refuse("outputs", expected=f"at least {need}, as {self.kind} needs", got=self.outputs)
        super().__init__()
        self.expansion = Expansion(sizes, self.kind.cycles if isinstance(self.kind, Mixed) else ())
        self.register_buffer("mean", torch.zeros(self.features, dtype=torch.float64))
        self.register_buffer("covariance", torch.eye(self.features, dtype=torch.float64))

    @property
    def features(self) -> int:
        """D, the number of features of a row."""
        return self.expansion.features

    def set_moments(self, mean: Tensor, covariance: Tensor) -> "GaussianJoint":
        """Self, with this mean (D,) and covariance (D, D); ValueError unless it is positive definite."""
        require_shape("mean", mean, (self.features,))
        require_shape("covariance", covariance, (self.features, self.features))
        covariance = (covariance + covariance.T).double() / 2
        if not bool(mean.isfinite().all()) or int(torch.linalg.cholesky_ex(covariance).info) != 0:
            raise refuse("moments", expected="a finite mean and a positive definite covariance", got="none such")
        self.get_buffer("mean").copy_(mean)
        self.get_buffer("covariance").copy_(covariance)
        return self

    def expand(self, x: Tensor) -> Tensor:
        """(B, D) float64: the features of values (B, N). NaN stays NaN in the feature of a real variable."""
        require_shape("x", x, (None, self.variables))
        return self.expansion.expand(x, torch.float64)

    def conditional(self, x: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance (B, D) of every feature given the known variables; a known one is itself, variance 0."""
        require_shape("known", known, (None, self.variables))
        moments = Moments(self.get_buffer("mean"), self.get_buffer("covariance"))
        return moments.conditional(self.expand(x), self.expansion.spread(known))

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, outputs): parameters of each variable given the known ones."""
        mean, variance = self.conditional(x, known)
        size, first = self.expansion.size, self.expansion.first
        place = torch.arange(self.outputs, device=mean.device)
        own = place < size.unsqueeze(1)  # (N, P)
        feature = torch.where(own, first.unsqueeze(1) + place, 0)
        chance = torch.where(own, mean[:, feature].clamp(self.min_chance, 1.0), 0.0)
        codes = torch.where(own, chance / chance.sum(2, keepdim=True), 1.0).log()
        if bool(size.all()):
            return codes
        numbers = torch.stack([mean[:, first], raw_of(variance[:, first].sqrt(), self.min_scale)], 2)
        numbers = nn.functional.pad(numbers, (0, self.outputs - 2))
        return torch.where((size > 0).unsqueeze(1), codes, numbers)


def sizes_of(kind: Kind, variables: int) -> tuple[int, ...]:
    """How many codes each of N variables has; 0 = real."""
    match kind:
        case Mixed(sizes):
            if len(sizes) != variables:
                raise refuse("Mixed sizes", expected=f"{variables} entries, one per variable", got=len(sizes))
            return sizes
        case Discrete(size):
            return (size,) * variables
        case _:
            return (0,) * variables


@dataclass(frozen=True, slots=True)
class Patterns:
    """Rows that are conditioned in one batch.

    Attributes:
        rows: (R,) numbers of the rows.
        which: (R,) the pattern of each.
        side: (U, M) for each pattern the features of the smaller side, then padding.
        real: bool (U, M), False = padding.
        is_known: True if the smaller sides are the known ones.
    """

    rows: Tensor
    which: Tensor
    side: Tensor
    real: Tensor
    is_known: bool


def portions_of(known: Tensor) -> Iterator[Patterns]:
    """The rows of known (B, D) in portions that fit in memory, each row once."""
    features = known.shape[1]
    if not len(known):
        return
    patterns, which = known.unique(dim=0, return_inverse=True)
    count = patterns.sum(1)
    is_known = count * 2 <= features
    smaller = torch.where(is_known, count, features - count)
    step = max(1, math.ceil(features / 2 / _STEPS))
    group = 2 * ((smaller + step - 1) // step) + is_known
    group_of_row = group[which]
    for number in group.unique().tolist():
        members = (group_of_row == number).nonzero().squeeze(1)
        members = members[which[members].argsort(stable=True)]
        padded = max(1, min(number // 2 * step, features // 2))
        for rows in members.split(max(1, _CHUNK // (padded * features))):
            here, member = which[rows].unique_consecutive(return_inverse=True)
            inside = patterns[here] if number % 2 else ~patterns[here]
            side = inside.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :padded]
            yield Patterns(rows, member, side, inside.gather(1, side), bool(number % 2))


@dataclass(frozen=True)
class Moments:
    """N(mean, covariance): (D,) and (D, D) float64."""

    mean: Tensor
    covariance: Tensor

    @cached_property
    def precision(self) -> Tensor:
        """(D, D)."""
        return torch.cholesky_inverse(cholesky(self.covariance))

    @cached_property
    def half_log_det(self) -> Tensor:
        """log |covariance| / 2, a scalar."""
        return cholesky(self.covariance).diagonal().log().sum()

    def conditional(self, features: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance (B, D) given the known ones of the features (B, D); a known one is itself, variance 0."""
        away = torch.where(known, features - self.mean, 0.0)
        shift, variance = torch.zeros_like(away), torch.zeros_like(away)
        for portion in portions_of(known):
            answer = self.answer(portion, away[portion.rows])
            shift[portion.rows] = answer.shift
            variance[portion.rows] = answer.variance()[portion.which]
        return torch.where(known, features, self.mean + shift), torch.where(known, 0.0, variance.clamp(min=0.0))

    def answer(self, portion: Patterns, away: Tensor) -> "PatternAnswers":
        """What the known features of these rows say: away (R, D) is known features - mean, 0 where unknown."""
        whole = self.covariance if portion.is_known else self.precision
        side, real, which = portion.side, portion.real, portion.which
        block = whole[side.unsqueeze(2), side.unsqueeze(1)]
        identity = torch.eye(side.shape[1], dtype=whole.dtype, device=whole.device)
        factor = cholesky(torch.where(real.unsqueeze(2) & real.unsqueeze(1), block, identity))
        pull = away if portion.is_known else away @ self.precision
        pull = torch.where(real[which], pull.gather(1, side[which]), 0.0).unsqueeze(2)
        solved = solve_triangular(factor[which], pull, upper=False)
        distance = solved.square().sum((1, 2))
        if portion.is_known:
            rows = torch.where(real.unsqueeze(2), self.covariance[side], 0.0)
            solution = solve_triangular(factor, rows, upper=False)
            shift = (solution[which].mT @ solved).squeeze(2)
        else:
            solution = solve_triangular(factor, identity.expand_as(factor), upper=False)
            answers = -(solution[which].mT @ solved).squeeze(2)
            shift = torch.zeros_like(away).scatter_add(1, side[which], torch.where(real[which], answers, 0.0))
            distance = (away * (away @ self.precision)).sum(1) - distance
        return PatternAnswers(self, portion, factor, solution, shift, distance)


@dataclass(frozen=True, slots=True)
class PatternAnswers:
    """Conditionals of R rows with U patterns.

    Attributes:
        moments: of the joint.
        portion: the rows.
        factor: L (U, M, M).
        solution: V (U, M, D) on the known side, L^-1 (U, M, M) on the unknown side.
        shift: (R, D) conditional mean - mean.
        distance: (R,) squared Mahalanobis distance of the known features from their mean.
    """

    moments: Moments
    portion: Patterns
    factor: Tensor
    solution: Tensor
    shift: Tensor
    distance: Tensor

    def variance(self) -> Tensor:
        """(U, D): the variance of each unknown feature (meaningless at known ones)."""
        explained = self.solution.square().sum(1)
        if self.portion.is_known:
            return self.moments.covariance.diagonal() - explained
        out = explained.new_zeros(len(explained), len(self.moments.mean))
        return out.scatter_add(1, self.portion.side, torch.where(self.portion.real, explained, 0.0))

    def total_covariance(self) -> Tensor:
        """(D, D): the conditional covariances of all rows, added up."""
        count = self.portion.which.bincount().to(self.factor.dtype)[:, None, None]
        if self.portion.is_known:
            flat = (self.solution * count.sqrt()).flatten(0, 1)
            return count.sum() * self.moments.covariance - flat.T @ flat
        side, real = self.portion.side, self.portion.real
        blocks = (self.solution.mT @ self.solution) * count
        blocks = torch.where(real.unsqueeze(2) & real.unsqueeze(1), blocks, 0.0)
        total = torch.zeros_like(self.moments.covariance)
        return total.index_put_((side.unsqueeze(2), side.unsqueeze(1)), blocks, accumulate=True)

    def log_density(self) -> Tensor:
        """(R,): log p of the known features, nats."""
        which = self.portion.which
        half = self.factor.diagonal(dim1=1, dim2=2).log().sum(1)
        known = self.portion.real.sum(1)
        if not self.portion.is_known:
            half = half + self.moments.half_log_det
            known = len(self.moments.mean) - known
        return -(half + known.to(half) * (0.5 * math.log(2 * math.pi)))[which] - 0.5 * self.distance
