"""ACE: an energy network corrects a proposal (Strauss and Oliva, Arbitrary Conditional Distributions with Energy).

The network gives every variable j the parameters of a proposal q_j and a latent vector y_j. A second, smaller network
f(x, j, y_j), shared by all variables, makes energies of values:

    p(x_j | known) = exp(-E(x_j)) / Z,     -E(x) = log q_j(x) + c(x),     c = bound · tanh(f / bound)

    numbers   q is a mixture of Gaussians, Z = E_q[exp c] by fixed points of q, or by fresh draws of q in training
              (see ``tilted``)
    codes     q is a categorical, Z a sum over all codes: exact

Two deviations from the paper's code. There -E = -min(softplus(f), 30) and does not know q: energies that stop at 30
have no finite integral over the real line, and Z starts anywhere. Here c starts at 0, that is with p = q and Z = 1, and
p is a density whatever f does. And f also sees where x lies in q, (x - mean) / scale, since a narrow q asks for narrow
corrections.

Loss. The paper adds two terms, log p with the sampled Z and log q, and lets no gradient pass from the first to q. With
-E = log q + c both have one gradient in  log q(x) + c(x) - log Z,  if none passes through the points of Z: so log_prob
is the loss, in nats of p, and trains both networks (see ``anyfill.objectives.ace``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse, require_count, require_positive, require_probability
from anyfill.likelihoods.continuous import GaussianMixture, GaussianMixtureMarginals
from anyfill.likelihoods.discrete import FiniteMarginals, codes_of
from anyfill.likelihoods.marginals import ByPosition, ByVariable, Likelihood, Marginals, SideBySide, read_params
from anyfill.likelihoods.tilted import TiltedMarginals

_CHUNK = 2**22  # hidden units held at once where nothing is learnt


class EnergySizes(TypedDict, total=False):
    """Sizes of an ``EnergyMixture``, by the names it has for them."""

    components: int
    latent: int
    units: int
    blocks: int
    points: int
    min_scale: float


@dataclass(eq=False, repr=False)
class EnergyMixture(nn.Module, Likelihood):
    """A likelihood with weights of its own: the parameters of a variable are its proposal's, then its latent vector.

    Attributes:
        variables: N.
        sizes: how many codes each variable has, 0 = a number; empty = all are numbers.
        components: Gaussians in a number's proposal.
        latent: length of the latent vector.
        units, blocks: hidden units and residual blocks of the energy network.
        dropout: rate inside each of its residual blocks.
        points: how many points of the proposal Z, the mean and all other answers about a number are made of.
        bound: the correction c stays between -bound and bound.
        min_scale: the narrowest a Gaussian may be.
    """

    variables: int
    sizes: tuple[int, ...] = ()
    components: int = 10
    latent: int = 64
    units: int = 128
    blocks: int = 4
    dropout: float = 0.0
    points: int = 32
    bound: float = 10.0
    min_scale: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("variables", "latent", "units", "blocks"):
            require_count(f"EnergyMixture {name}", getattr(self, name))
        require_count("EnergyMixture points", self.points, minimum=2)
        require_probability("EnergyMixture dropout", self.dropout)
        require_positive("EnergyMixture bound", self.bound)
        sizes = tuple(self.sizes) or (0,) * self.variables
        if len(sizes) != self.variables or min(sizes) < 0:
            expected = f"{self.variables} numbers of codes, one per variable (0 = a number)"
            raise refuse("EnergyMixture sizes", expected=expected, got=self.sizes)
        self.proposal = GaussianMixture(self.components, self.min_scale)
        super().__init__()
        self.energy = _EnergyNetwork(self)
        size = torch.tensor(sizes)
        numbers, codes = (size == 0).nonzero().squeeze(1), (size > 0).nonzero().squeeze(1)
        for name, buffer in {
            "size": size,
            "offset": size.cumsum(0) - size,
            "numbers": numbers,
            "codes": codes,
            "place": torch.cat([numbers, codes]).argsort(),
        }.items():
            self.register_buffer(name, buffer, persistent=False)

    def __repr__(self) -> str:
        coded = "" if not any(self.sizes) else f", sizes={self.sizes}"
        return f"EnergyMixture({self.variables}{coded}, components={self.components}, points={self.points})"

    @property
    def width(self) -> int:
        """P: the wider proposal's parameters, and the latent vector."""
        return self._proposal_width + self.latent

    @property
    def _proposal_width(self) -> int:
        return max(self.proposal.width if self._any_number else 1, self._most_codes)

    @property
    def _any_number(self) -> bool:
        return not self.sizes or 0 in self.sizes

    @property
    def _most_codes(self) -> int:
        return max(self.sizes, default=0)

    @property
    def exact(self) -> bool:
        """True if Z is a finite sum for every variable; otherwise log-densities are estimates by fixed points."""
        return not self._any_number

    def forward(self, params: Tensor) -> Marginals:
        """(B, N, P) -> distributions."""
        params = self._read(params)
        if params.dim() < 2 or params.shape[-2] != self.variables:
            raise refuse("parameters of EnergyMixture", expected=f"{self.variables} variables", got=tuple(params.shape))
        if not self._most_codes or not self._any_number:
            variable = torch.arange(self.variables, device=params.device)
            return self._codes(params, variable) if self._most_codes else self._numbers(params, variable)
        numbers, codes = self.get_buffer("numbers"), self.get_buffer("codes")
        parts = (
            self._numbers(params.index_select(-2, numbers), numbers),
            self._codes(params.index_select(-2, codes), codes),
        )
        return EnergyMarginals(parts, ByVariable((numbers, codes), self.get_buffer("place")), params.dtype)

    def at(self, params: Tensor, variable: Tensor) -> Marginals:
        """Distributions of the variables ``variable`` (B, M, int), one parameter row (B, M, P) for each."""
        params = self._read(params)
        if not self._most_codes or not self._any_number:
            return self._codes(params, variable) if self._most_codes else self._numbers(params, variable)
        coded = self.get_buffer("size")[variable] > 0
        # Both kinds answer everywhere: which rows need which is not looked at, so that no accelerator waits.
        parts = (self._numbers(params, variable), self._codes(params, variable))
        return EnergyMarginals(parts, ByPosition(coded.long(), 2), params.dtype)

    def _read(self, params: Tensor) -> Tensor:
        return read_params(params, self.width, "EnergyMixture")

    def _numbers(self, params: Tensor, variable: Tensor) -> TiltedMarginals:
        """The distributions of numbers: parameters (B, M, P) of the variables (M,) or (B, M)."""
        q = self.proposal(params[..., : self.proposal.width])
        start = self.energy.start(params[..., self._proposal_width :], variable)
        with torch.no_grad():
            center, scale = _center_and_scale(q)
        # Marginals outlive the call: later answers too are in the mode, and with the gradients, of now.
        learning, training = torch.is_grad_enabled(), self.training

        def tilt(x: Tensor) -> Tensor:
            relative = (x - center.unsqueeze(-1)) / scale.unsqueeze(-1)
            with torch.set_grad_enabled(learning and torch.is_grad_enabled()):
                return self.energy.of_numbers(start, x, relative, training)

        return TiltedMarginals(q, tilt, self.points)

    def _codes(self, params: Tensor, variable: Tensor) -> FiniteMarginals:
        """The distributions of codes: the proposal's logits plus the correction, normalised over all codes."""
        code = torch.arange(self._most_codes, device=params.device)
        # A variable without codes (it answers too, where both kinds do) keeps one: no NaN, and nobody asks.
        possible = code < self.get_buffer("size")[variable].clamp(min=1).unsqueeze(-1)
        place = torch.where(possible, self.get_buffer("offset")[variable].unsqueeze(-1) + code, 0)
        start = self.energy.start(params[..., self._proposal_width :], variable)
        logits = params[..., : self._most_codes] + self.energy.of_codes(
            start, place.clamp(max=sum(self.sizes) - 1), self.training
        )
        return codes_of(logits, possible)


@dataclass(frozen=True, slots=True, eq=False)
class EnergyMarginals(SideBySide):
    """Numbers and codes side by side; codes are floats here."""

    parts: tuple[TiltedMarginals, FiniteMarginals]

    def sampled_log_prob(self, x: Tensor, samples: int, *, generator: Generator) -> Tensor:
        """As ``log_prob``, with the Z of numbers estimated from ``samples`` fresh draws."""
        numbers, codes = self.layout.split(x)
        sampled = self.parts[0].sampled_log_prob(numbers, samples, generator=generator)
        return self.layout.join([sampled, self.parts[1].log_prob(codes).to(self.dtype)])

    def proposal_log_prob(self, x: Tensor) -> Tensor:
        """log q of numbers and log p of codes, whose normaliser needs no proposal, (B, N)."""
        numbers, codes = self.layout.split(x)
        proposed = self.parts[0].proposal_log_prob(numbers)
        return self.layout.join([proposed, self.parts[1].log_prob(codes).to(self.dtype)])


class _EnergyNetwork(nn.Module):
    """c of values, given the variable and its latent vector: the paper's residual blocks, the last layer at zero."""

    def __init__(self, of: EnergyMixture) -> None:
        super().__init__()
        self.bound = of.bound
        self.variable = nn.Embedding(of.variables, of.units)
        self.latent = nn.Linear(of.latent, of.units)
        self.number = nn.Linear(2, of.units, bias=False)
        if any(of.sizes):
            self.code = nn.Embedding(sum(of.sizes), of.units)
        self.blocks = nn.ModuleList(_Residual(of.units, of.dropout) for _ in range(of.blocks))
        self.leave = nn.Linear(of.units, 1)
        nn.init.normal_(self.variable.weight, std=0.1)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def start(self, latent: Tensor, variable: Tensor) -> Tensor:
        """(B, M, units): all that does not depend on the value."""
        return self.latent(latent.to(self.latent.weight.dtype)) + self.variable(variable)

    def of_numbers(self, start: Tensor, x: Tensor, relative: Tensor, training: bool) -> Tensor:
        """c (B, M, S) of numbers x (B, M, S) that stand at ``relative`` in their proposals."""
        values = torch.stack([x, relative], -1).to(start.dtype)
        return self._portions(lambda rows: self.number(values.flatten(0, -3)[rows]), start, x, training)

    def of_codes(self, start: Tensor, place: Tensor, training: bool) -> Tensor:
        """c (B, M, C) of codes, by their places (…, M, C) in the table of all codes."""
        place = place.expand(*start.shape[:-1], -1)
        return self._portions(lambda rows: self.code(place.flatten(0, -2)[rows]), start, place, training)

    def _portions(self, values: Callable[[slice], Tensor], start: Tensor, like: Tensor, training: bool) -> Tensor:
        """c in the shape of ``like`` (B, M, S); where nothing is learnt a bounded number of variables at a time."""
        start = start.flatten(0, -2)
        bounded = max(1, _CHUNK // (like.shape[-1] * start.shape[-1]))
        size = max(1, len(start)) if torch.is_grad_enabled() else bounded
        answers: list[Tensor] = []
        for first in range(0, max(1, len(start)), size):
            rows = slice(first, first + size)
            h = start[rows].unsqueeze(-2) + values(rows)
            for block in self.blocks:
                h = block(h, training)
            answers.append(self.leave(functional.relu(h)).squeeze(-1))
        f = torch.cat(answers).reshape(like.shape)
        f = f.to(torch.promote_types(f.dtype, torch.float32))
        return self.bound * torch.tanh(f / self.bound)


class _Residual(nn.Module):
    def __init__(self, units: int, dropout: float) -> None:
        super().__init__()
        self.up = nn.Linear(units, units)
        self.down = nn.Linear(units, units)
        self.dropout = dropout

    def forward(self, h: Tensor, training: bool) -> Tensor:
        inner = functional.relu(self.up(functional.relu(h)))
        return h + self.down(functional.dropout(inner, self.dropout, training))


def _center_and_scale(q: GaussianMixtureMarginals) -> tuple[Tensor, Tensor]:
    """The mean and the standard deviation of mixtures, (B, M) each."""
    weights, center = q.log_weights.exp(), q.mean()
    off = q.centers - center.unsqueeze(-1)
    return center, (weights * (q.scales * q.scales + off * off)).sum(-1).sqrt()
