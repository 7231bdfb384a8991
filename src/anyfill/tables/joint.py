"""Where a table's network starts from: a mixture of K joint Gaussians over the features of a row, conditioned.

A row becomes D features as in ``networks.gaussian``: a real variable is one, a variable with S codes S one-hot ones.
With weights w_k and components N(mu_k, Sigma_k), and o the known features,

    share_k  =  p(k | f_o)  ∝  w_k N(f_o; mu_k,o, Sigma_k,oo)
    center   =  sum_k share_k E_k[f | f_o]
    variance =  sum_k share_k (Var_k[f | f_o] + E_k[f | f_o]^2) - center^2

in closed form for every set of known features: one batched Cholesky factor per row and component, in which unknown
features are an identity block. K = 1 is the Gaussian of ``recipes.gaussian_em``; K > 1 bends with the data (groups,
curved relations). Moments may be given per row, so that members of an ensemble can start from different joints.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

_CHUNK = 2**22  # numbers in one batch of matrices
_LOG_TWO_PI = math.log(2 * math.pi)


class Joint(NamedTuple):
    """K Gaussians over D features: log-weights (..., K), means (..., K, D), covariances (..., K, D, D)."""

    log_weights: Tensor
    means: Tensor
    covariances: Tensor

    def to(self, dtype: torch.dtype) -> "Joint":
        """The same in another precision."""
        return Joint(*(part.to(dtype) for part in self))

    def take(self, which: Tensor) -> "Joint":
        """The joints at ``which`` of a stack of them."""
        return Joint(*(part[which] for part in self))


class Conditioned(NamedTuple):
    """What the known features say.

    Attributes:
        center, variance: (B, D) of every feature; a known one is itself, with variance 0.
        log_share: (B, K), log p(k | known features).
        log_density: (B,), log p(known features).
    """

    center: Tensor
    variance: Tensor
    log_share: Tensor
    log_density: Tensor


def condition(joint: Joint, features: Tensor, known: Tensor) -> Conditioned:
    """Condition one joint, or one for each row, on the known ones of the features (B, D)."""
    size = max(1, _CHUNK // (joint.means.shape[-2] * features.shape[1] ** 2))
    own = joint.means.dim() == 3
    parts = [
        _condition(
            Joint(*(part[i : i + size] for part in joint)) if own else joint,
            features[i : i + size],
            known[i : i + size],
        )
        for i in range(0, max(len(features), 1), size)
    ]
    return parts[0] if len(parts) == 1 else Conditioned(*(torch.cat(column) for column in zip(*parts)))


def _condition(joint: Joint, features: Tensor, known: Tensor) -> Conditioned:
    parts = per_component(joint, features, known)
    log_share = parts.log_density.log_softmax(1)
    share = log_share.exp().unsqueeze(-1)
    center = (share * parts.mean).sum(1)
    variance = (share * (parts.variance + (parts.mean - center.unsqueeze(1)).square())).sum(1)
    return Conditioned(
        torch.where(known, features, center),
        torch.where(known, torch.zeros_like(variance), variance),
        log_share,
        parts.log_density.logsumexp(1),
    )


class PerComponent(NamedTuple):
    """Each component's own answer.

    Attributes:
        mean, variance: (B, K, D), of unknown features (meaningless at known ones).
        log_density: (B, K), log w_k N(known features).
        explained: (B, K, D, D), V with Cov[f | known] = Sigma - V'V.
    """

    mean: Tensor
    variance: Tensor
    log_density: Tensor
    explained: Tensor


def per_component(joint: Joint, features: Tensor, known: Tensor) -> PerComponent:
    """E_k, Var_k and log w_k N_k for every component."""
    size = features.shape[1]
    identity = torch.eye(size, dtype=joint.means.dtype, device=features.device)
    here = known.unsqueeze(1)  # (B, 1, D)
    block = here.unsqueeze(-1) & here.unsqueeze(-2)
    factor = torch.linalg.cholesky_ex(torch.where(block, joint.covariances, identity)).L
    away = torch.where(here, features.unsqueeze(1).to(identity.dtype) - joint.means, 0.0).unsqueeze(-1)
    told = torch.where(here.unsqueeze(-1), joint.covariances, torch.zeros_like(identity))
    solved = torch.linalg.solve_triangular(factor, torch.cat([told, away], -1), upper=False)
    explained, distance = solved[..., :-1], solved[..., -1]
    mean = joint.means + (explained * distance.unsqueeze(-1)).sum(-2)
    own = torch.diagonal(joint.covariances, dim1=-2, dim2=-1)
    variance = (own - explained.square().sum(-2)).clamp(min=0.0)
    half_log_det = torch.diagonal(factor, dim1=-2, dim2=-1).log().sum(-1)
    count = known.sum(1, keepdim=True).to(identity.dtype)
    log_density = -0.5 * (distance.square().sum(-1) + count * _LOG_TWO_PI) - half_log_det + joint.log_weights
    return PerComponent(mean, variance, log_density, explained)
