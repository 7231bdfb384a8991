"""How one value is drawn from a distribution: temperature, top-k, nucleus, typical, typical-k.

Each filter acts on the renormalised result of the one before, in this order:

    temperature  p^(1/T); T = 0 is the mode
    top-k        the k most probable values
    nucleus      the most probable values until their mass reaches p (Holtzman et al. 2020)
    typical      the values whose surprise is closest to the entropy, ascending |-log p(v) - H|, until their mass
                 reaches tau (Meister et al. 2023)
    typical-k    the k most typical values (SUNMASK's released code)

The value that crosses p or tau is kept, so at least one always is. Among equals the smaller code comes first. A mass
that misses p or tau by rounding (1e-6, the precision of float32 probabilities) has reached it. All of it is float64.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.likelihoods.discrete import greatest, sample_codes, tempered
from anyfill.likelihoods.marginals import DiscreteMarginals, Marginals, require_temperature
from anyfill.likelihoods.mixed import MixedMarginals

_ROUNDING = 1e-6
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Draw:
    """Draws one value per variable; ``Draw()`` is exactly ``marginals.sample``.

    Discrete marginals take every filter. Continuous marginals take only the temperature; a filter on them is refused.
    On mixed marginals the filters apply to the discrete columns, and the continuous columns get the temperature only.

    Args:
        temperature: at least 0; 0 is the mode.
        top_k: keep this many values, at least 1.
        nucleus: keep the most probable values of this mass, above 0 and up to 1.
        typical: keep the most typical values of this mass, above 0 and up to 1.
        typical_k: keep this many of the most typical values, at least 1.
    """

    temperature: float = 1.0
    top_k: int | None = None
    nucleus: float | None = None
    typical: float | None = None
    typical_k: int | None = None

    def __post_init__(self) -> None:
        require_temperature(self.temperature)
        for name, count in (("top_k", self.top_k), ("typical_k", self.typical_k)):
            if count is not None:
                require_count(name, count)
        for name, mass in (("nucleus", self.nucleus), ("typical", self.typical)):
            if mass is not None and (isinstance(mass, bool) or not 0.0 < mass <= 1.0):
                raise refuse(name, expected="a mass above 0 and up to 1", got=repr(mass))

    @property
    def filters(self) -> bool:
        """True if more than the temperature is set."""
        return any(one is not None for one in (self.top_k, self.nucleus, self.typical, self.typical_k))

    def __call__(self, marginals: Marginals, *, generator: Generator) -> Tensor:
        """One value per variable, (B, N): int64 codes from discrete marginals, floats otherwise."""
        if self.filters and isinstance(marginals, MixedMarginals):
            if not any(isinstance(part, DiscreteMarginals) for part in marginals.parts):
                raise _refused("mixed marginals without a discrete column")
            return marginals.map(lambda part: self._draw(part, generator=generator))
        if self.filters and not isinstance(marginals, DiscreteMarginals):
            raise _refused(type(marginals).__name__)
        return self._draw(marginals, generator=generator)

    def rows(self, index: Tensor) -> "Draw":
        """The same for some rows (R,) alone."""
        return self

    def _draw(self, marginals: Marginals, *, generator: Generator) -> Tensor:
        if self.filters and isinstance(marginals, DiscreteMarginals):
            return sample_codes(self.filtered(marginals.log_probs), generator=generator)
        return marginals.sample(generator=generator, temperature=self.temperature)

    def filtered(self, log_probs: Tensor) -> Tensor:
        """The distribution that is really drawn from: see ``reshape_log_probs``."""
        return reshape_log_probs(log_probs, self)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Restricted(Draw):
    """A draw among the values that are allowed: others have probability 0 and the rest is renormalised.

    Args:
        forbidden: bool, broadcasts to (B, N, K); where every value would be forbidden, none is.
    """

    forbidden: Tensor

    def rows(self, index: Tensor) -> "Restricted":
        return replace(self, forbidden=self.forbidden[index]) if len(self.forbidden) > 1 else self

    def __call__(self, marginals: Marginals, *, generator: Generator) -> Tensor:
        if not isinstance(marginals, DiscreteMarginals):
            raise refuse("Restricted", expected="discrete marginals", got=type(marginals).__name__)
        log_probs = marginals.log_probs
        forbidden = self.forbidden.to(log_probs.device)
        kept = torch.where(forbidden, -torch.inf, log_probs)
        nothing = kept.amax(-1, keepdim=True) == -torch.inf
        if bool(nothing.any()):
            kept = torch.where(nothing, log_probs, kept)
        if self.temperature == 0.0:
            return greatest(kept)
        return sample_codes(self.filtered(kept.log_softmax(-1)), generator=generator)


def reshape_log_probs(log_probs: Tensor, draw: Draw) -> Tensor:
    """The log-probabilities ``draw`` draws from: (..., K) -> (..., K), normalised, float64, -inf where dropped."""
    log_probs = tempered(log_probs, draw.temperature)
    if draw.top_k is not None and draw.top_k < log_probs.shape[-1]:
        best_first = log_probs.argsort(dim=-1, descending=True, stable=True)
        kept = torch.arange(log_probs.shape[-1], device=log_probs.device) < draw.top_k
        log_probs = _keep(log_probs, best_first, kept.expand_as(log_probs))
    if draw.nucleus is not None:
        best_first = log_probs.argsort(dim=-1, descending=True, stable=True)
        log_probs = _keep(log_probs, best_first, _until(log_probs, best_first, draw.nucleus))
    if draw.typical is not None:
        order = _most_typical_first(log_probs)
        log_probs = _keep(log_probs, order, _until(log_probs, order, draw.typical))
    if draw.typical_k is not None and draw.typical_k < log_probs.shape[-1]:
        kept = torch.arange(log_probs.shape[-1], device=log_probs.device) < draw.typical_k
        log_probs = _keep(log_probs, _most_typical_first(log_probs), kept.expand_as(log_probs))
    return log_probs


def best_of(samples: Iterable[T], score: Callable[[T], float], n: int) -> list[T]:
    """The n samples of lowest score, best first (all, if there are fewer); among equals the earlier, NaN last.

    Top-N selection by a grade is the last step of SUNMASK's best row.
    """
    require_count("n", n)
    scored = [(float(score(sample)), sample) for sample in samples]
    scored.sort(key=lambda pair: math.inf if math.isnan(pair[0]) else pair[0])
    return [sample for _, sample in scored[:n]]


def _most_typical_first(log_probs: Tensor) -> Tensor:
    """int64 (..., K): the values by ascending |-log p(v) - H|; impossible ones come last."""
    surprise = -log_probs
    entropy = torch.where(surprise.isfinite(), log_probs.exp() * surprise, 0.0).sum(-1, keepdim=True)
    return (surprise - entropy).abs().argsort(dim=-1, stable=True)


def _until(log_probs: Tensor, order: Tensor, mass: float) -> Tensor:
    """bool (..., K), in ``order``: True up to and including the value at which the mass is reached."""
    if mass >= 1.0:  # rounding must not drop the tail
        return torch.ones_like(order, dtype=torch.bool)
    before = log_probs.gather(-1, order).exp().cumsum(-1).roll(1, -1)
    before[..., 0] = -torch.inf  # the first value is kept whatever the mass
    return before < mass - _ROUNDING


def _keep(log_probs: Tensor, order: Tensor, kept: Tensor) -> Tensor:
    """The distribution with only the values kept (..., K; given in ``order``), renormalised."""
    kept = torch.zeros_like(kept).scatter(-1, order, kept)
    return torch.where(kept, log_probs, -torch.inf).log_softmax(-1)


def _refused(kind: str) -> ValueError:
    return refuse(
        "Draw",
        expected="discrete marginals for top_k, nucleus or typical",
        got=f"{kind} (set temperature only)",
    )
