"""A joint Gaussian over a row: every conditional in closed form.

A row becomes D features: a real variable is one, a variable with S codes is S one-hot ones. The features are jointly
N(mu, Sigma), and each is answered by its conditional mean and variance given the known ones (``gaussian_algebra``),
in float64.

For real variables this is exact: the conditionals are those of one joint, so every order gives the same
log-probability. For codes it is the linear probability model: the conditional mean of the one-hot features, clipped and
normalised. That is a sensible distribution, but the conditionals of no joint, so there orders differ.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from anyfill.checks import refuse, require_count, require_positive, require_probability, require_shape
from anyfill.networks.embed import Discrete, Kind, Mixed
from anyfill.networks.network import Capabilities
from anyfill.tables.gaussian_algebra import Moments

_UNIT = math.log(math.e - 1)


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
        least: the conditional mean of a code's feature is raised to this before normalising.
    """

    kind: Kind
    variables: int
    outputs: int
    min_scale: float = 1e-4
    least: float = 1e-2
    context_width = 0

    def __post_init__(self) -> None:
        for name in ("variables", "outputs"):
            require_count(name, getattr(self, name))
        require_positive("min_scale", self.min_scale)
        require_positive("least", self.least)
        require_probability("least", self.least)
        sizes = sizes_of(self.kind, self.variables)
        need = max(size if size else 2 for size in sizes)
        if self.outputs < need:
            raise refuse("outputs", expected=f"at least {need}, as {self.kind} needs", got=self.outputs)
        super().__init__()
        size = torch.tensor(sizes)
        width = size.clamp(min=1)
        owner = torch.arange(self.variables).repeat_interleave(width)
        first = width.cumsum(0) - width
        # Feature f belongs to variable owner[f]: it is its code code[f], or the number itself where code[f] = -1.
        code = torch.where(size[owner] > 0, torch.arange(len(owner)) - first[owner], -1)
        for name, layout in (("size", size), ("owner", owner), ("first", first), ("code", code)):
            self.register_buffer(name, layout, persistent=False)
        self.register_buffer("mean", torch.zeros(len(owner), dtype=torch.float64))
        self.register_buffer("covariance", torch.eye(len(owner), dtype=torch.float64))

    @property
    def features(self) -> int:
        """D, the number of features of a row."""
        return len(self.get_buffer("owner"))

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
        own, code = x.index_select(1, self.get_buffer("owner")), self.get_buffer("code")
        return torch.where(code < 0, own.double(), (own == code).double())

    def expanded_known(self, known: Tensor) -> Tensor:
        """bool (B, D): the features of the known variables (B, N)."""
        require_shape("known", known, (None, self.variables))
        return known.index_select(1, self.get_buffer("owner"))

    def conditional(self, x: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance (B, D) of every feature given the known variables; a known one is itself, variance 0."""
        moments = Moments(self.get_buffer("mean"), self.get_buffer("covariance"))
        return moments.conditional(self.expand(x), self.expanded_known(known))

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, outputs): parameters of each variable given the known ones."""
        mean, variance = self.conditional(x, known)
        size, first = self.get_buffer("size"), self.get_buffer("first")
        place = torch.arange(self.outputs, device=mean.device)
        own = place < size.unsqueeze(1)  # (N, P)
        feature = torch.where(own, first.unsqueeze(1) + place, 0)
        chance = torch.where(own, mean[:, feature].clamp(self.least, 1.0), 0.0)
        codes = torch.where(own, chance / chance.sum(2, keepdim=True), 1.0).log()
        if bool(size.all()):
            return codes
        numbers = torch.stack([mean[:, first], _raw(variance[:, first].sqrt(), self.min_scale)], 2)
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


def _raw(scale: Tensor, min_scale: float) -> Tensor:
    """The raw parameter that ``likelihoods.Gaussian`` reads as this scale (networks may not import likelihoods)."""
    above = (scale - min_scale).clamp(min=1e-30)
    return above + torch.log(-torch.expm1(-above)) - _UNIT
