"""A deep latent variable model as a network: VAE and MIWAE answer any conditional by importance sampling.

    z ~ N(0, I),   x_j | z independent, with the parameters that a decoder gives;   q(z | x_O) Gaussian from an encoder

(Kingma & Welling 2014; Mattei & Frellsen 2019). For z_l ~ q(z | x_O), l = 1 … L, the answer is a weighted mixture,

    p(x_j | x_O) ~ sum_l w_l p(x_j | z_l),     w_l ∝ p(x_O | z_l) p(z_l) / q(z_l | x_O)

which tends to the conditional of the one joint p(x) as L grows. The mixture is what ``likelihoods.Pooled(base, L,
weighted=True)`` reads, so samplers, log-probabilities and intervals need to know nothing of z. The noise of the L draws
is fixed (scrambled Sobol points through the normal quantile): a row's answer depends on its values alone.

The encoder sees zeros in unknown places, and where ``told`` also which they are (the papers show the zeros only).
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Protocol, TypedDict

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.quasirandom import SobolEngine

from anyfill.checks import refuse, require_count, require_counts, require_member
from anyfill.networks.embed import Kind, value_features
from anyfill.networks.network import Capabilities

_UNIT = math.log(math.e - 1)  # softplus(_UNIT) = 1
_MIN_SCALE = 1e-3
_CHUNK = 2**23  # parameters decoded at once in ``log_evidence``


class _Scores(Protocol):
    def log_prob(self, x: Tensor) -> Tensor: ...


class Readable(Protocol):
    """What is asked of a likelihood here (networks may not import likelihoods): width, and log-probabilities."""

    @property
    def width(self) -> int: ...

    def __call__(self, params: Tensor) -> _Scores: ...


class Draws(NamedTuple):
    """K draws z_l ~ q(z | x_known) for each row.

    Attributes:
        params: (B, K, N, P) of each variable given z_l.
        log_likelihood: float64 (B, K), log p(x_known | z_l).
        log_ratio: float64 (B, K), log p(z_l) - log q(z_l | x_known).
    """

    params: Tensor
    log_likelihood: Tensor
    log_ratio: Tensor


class LatentSizes(TypedDict, total=False):
    """Sizes of a ``LatentVariable``, by the names it has for them."""

    latent: int
    draws: int
    width: int
    depth: int


class Latent(nn.Module, Capabilities):
    """What latent variable models share: draws of z, the evidence, the answer. An encoder and a decoder make one."""

    variables: Any
    likelihood: Readable
    latent: int
    draws: int
    importance: bool
    seed: int
    context_width = 0

    def _make_noise(self) -> None:
        self.register_buffer("noise", normal_points(self.draws, self.latent, self.seed))

    @property
    def exact(self) -> bool:
        """False: its conditionals are averages over a few draws of the latent variable."""
        return False

    @property
    def outputs(self) -> int:
        """L P + L, the width of ``Pooled(likelihood, draws, weighted=True)``."""
        return self.draws * (self.likelihood.width + 1)

    def encode(self, x: Tensor, known: Tensor) -> Tensor:
        """(B, 2 latent): mean and raw scale of q, from values (0 where not known) and known (B, N)."""
        raise refuse("network", expected="one with an encoder of its own", got=type(self).__name__)

    def decode(self, z: Tensor) -> Tensor:
        """(..., N, P): parameters of every variable given z (..., latent)."""
        raise refuse("network", expected="one with a decoder of its own", got=type(self).__name__)

    def posterior(self, x: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and scale (B, latent) of q(z | x_known), from values and known (B, N); unknown values are not read."""
        mean, raw = self.encode(torch.where(known, x, torch.zeros_like(x)), known).chunk(2, -1)
        return mean, _MIN_SCALE + softplus(raw + _UNIT)

    def draw(self, x: Tensor, known: Tensor, noise: Tensor) -> Draws:
        """Draws from q(z | x_known) with this standard normal noise, (K, latent) or (B, K, latent)."""
        mean, scale = (part.unsqueeze(1) for part in self.posterior(x, known))
        noise = noise.to(mean.dtype)
        z = mean + scale * noise
        params = self.decode(z)
        told = torch.where(known, x, torch.zeros_like(x)).repeat_interleave(z.shape[1], 0)
        scores = self.likelihood(params.flatten(0, 1)).log_prob(told).unflatten(0, z.shape[:2])
        log_likelihood = torch.where(known.unsqueeze(1), scores, 0.0).double().sum(-1)
        log_ratio = (scale.log() + 0.5 * (noise * noise - z * z)).double().sum(-1)
        return Draws(params, log_likelihood, log_ratio)

    def log_evidence(self, x: Tensor, known: Tensor, draws: int | None = None) -> Tensor:
        """float64 (B,): log 1/K sum_l p(x_known | z_l) p(z_l) / q(z_l | x_known), an estimate of log p(x_known).

        Below it in expectation over the noise, and tending to it with K. The K = ``draws`` points are fixed, as many as
        an answer's by default. The difference of two is log p(asked | given) without a chain.
        """
        if draws is not None:
            require_count("draws", draws)
        noise = self.get_buffer("noise")
        points = noise if draws is None else normal_points(draws, self.latent, self.seed).to(noise)
        size = max(1, _CHUNK // (len(points) * self.variables * self.likelihood.width))
        parts = [self.draw(*pair, points) for pair in zip(x.split(size), known.split(size))]
        return torch.cat([(part.log_likelihood + part.log_ratio).logsumexp(1) for part in parts]) - math.log(
            len(points)
        )

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, L P + L): the answer of each draw, and how much it counts."""
        drawn = self.draw(x, known, self.get_buffer("noise"))
        weights = (drawn.log_likelihood + drawn.log_ratio).log_softmax(1)
        weights = weights if self.importance else torch.zeros_like(weights)
        weights = weights.to(drawn.params.dtype).unsqueeze(1).expand(-1, self.variables, -1)
        return torch.cat([drawn.params.transpose(1, 2).flatten(2), weights], -1)


@dataclass(eq=False, repr=False)
class LatentVariable(Latent):
    """(B, N, L P + L): L blocks of P parameters of the base likelihood, then L log-weights; satisfies ``Network``.

    Attributes:
        kind: what a value is.
        variables: N.
        likelihood: the base likelihood, of width P; the model's own is ``Pooled(likelihood, draws, weighted=True)``.
        latent: length of z.
        draws: L, draws that an answer is made of.
        width, depth: hidden units, and hidden layers of encoder and decoder each; depth 0 = linear.
        activation: between layers.
        told: True = the encoder is told which values are known.
        importance: False = all weights are equal: the encoder's answer as it is, like a plain VAE's.
        seed: of the fixed draws.
    """

    kind: Kind
    variables: int
    likelihood: Readable
    latent: int = 10
    draws: int = 64
    width: int = 128
    depth: int = 3
    activation: Literal["relu", "tanh"] = "relu"
    told: bool = True
    importance: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        require_counts(self, "variables", "latent", "draws", "width")
        require_counts(self, "depth", "seed", minimum=0)
        require_member("activation", self.activation, ("relu", "tanh"))
        super().__init__()
        features = value_features(self.kind, torch.zeros(1, self.variables)).shape[-1] + int(self.told)
        self.encoder = self._layers(self.variables * features, 2 * self.latent)
        self.decoder = self._layers(self.latent, self.variables * self.likelihood.width)
        self._make_noise()

    def _layers(self, inputs: int, outputs: int) -> nn.Sequential:
        widths = [inputs, *[self.width] * self.depth]
        layers: list[nn.Module] = []
        for have, want in pairwise(widths):
            layers += [nn.Linear(have, want), nn.ReLU() if self.activation == "relu" else nn.Tanh()]
        return nn.Sequential(*layers, nn.Linear(widths[-1], outputs))

    def encode(self, x: Tensor, known: Tensor) -> Tensor:
        flags = known.unsqueeze(-1)
        features = torch.where(flags, value_features(self.kind, x), 0.0)  # no value is no code either
        if self.told:
            features = torch.cat([features, flags.to(features.dtype)], -1)
        return self.encoder(features.flatten(1).to(self.get_buffer("noise").dtype))

    def decode(self, z: Tensor) -> Tensor:
        return self.decoder(z).unflatten(-1, (self.variables, self.likelihood.width))


def normal_points(count: int, dimension: int, seed: int) -> Tensor:
    """(count, dimension) float32: scrambled Sobol points, through the normal quantile."""
    points = SobolEngine(dimension, scramble=True, seed=seed).draw(count, dtype=torch.float64)
    return torch.special.ndtri(points.clamp(1e-9, 1 - 1e-9)).float()
