"""Joint Gaussians over the features of a row, conditioned on any set of known features: where a table's network starts.

**Features.** A row becomes D features (``Expansion``): a real variable is one, a variable with S codes S one-hot ones.
Behind all of these come the harmonics of variables that go round (``networks.Cycle``), known where their variable is.

**A mixture of K Gaussians** (``Joint``). With weights w_k, components N(mu_k, Sigma_k) and o the known features,

    share_k  =  p(k | f_o)  ∝  w_k N(f_o; mu_k,o, Sigma_k,oo)
    center   =  sum_k share_k E_k[f | f_o]
    variance =  sum_k share_k (Var_k[f | f_o] + E_k[f | f_o]^2) - center^2

and with L L' = Sigma_oo (of one component), V = L^-1 Sigma_o. and d = L^-1 (f_o - mu_o),

    E[f | f_o] = mu + V'd        Cov[f | f_o] = Sigma - V'V        -2 log N(f_o) = d'd + 2 log |L| + |o| log 2 pi

One Cholesky factor per row and component, batched: unknown features are an identity block in it. K = 1 is the Gaussian
of ``gaussian_em``; K > 1 (``gaussian_mixture``) bends with the data (groups, curved relations).

**Runs.** Values enter d alone. Of a *run* of neighbours that know the same features, as the draws of one row do, L, V,
the variances and log |L| are computed once: O(D^3) for a run and O(D^2) for a row. A row's answer does not depend on
its neighbours, to the last bit: every matrix is factored by itself, and d is always solved for in the same shape. It
has two columns, since one alone would go to another routine: of two and more MKL rounds each alike. Where batches of
different sizes may go to different routines, elsewhere than on a CPU, rows are conditioned one by one.

**A few factors** (``Factors``), for tables too wide for covariances: f = mu + L z + noise, z ~ N(0, I_r), noise ~
N(0, diag(psi)), so Cov f = L L' + diag(psi). By Woodbury's identity nothing is ever D x D, at O(D r^2) for a row:

    Cov[z | f_o] = C = (I + L_o' diag(1/psi_o) L_o)^-1        E[z | f_o] = C L_o' diag(1/psi_o) (f_o - mu_o)
    E[f | f_o]   = mu + L E[z | f_o]                          Var[f | f_o] = psi + diag(L C L')

Few factors are also a strong prior: on a table of few rows they answer better than the full covariance does. Either may
be given per row, so that members of an ensemble can start from different joints.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.linalg import cholesky_ex, solve_triangular

from anyfill.interface.progress import check_cancelled
from anyfill.networks.embed import Cycle, cycle_features, cycle_owners

_CHUNK = 2**22  # numbers in the matrices of all rows, or runs, that are conditioned together
_BATCH = 2**18  # numbers in one batch of the matrices of runs: few enough that memory is not asked for each time
_SMALL = 16  # features; below, finding runs costs more than it saves
_LOG_TWO_PI = math.log(2 * math.pi)


class Expansion(nn.Module):
    """N variables as D features; a module without weights, so that its index tensors follow the network.

    Attributes:
        size: int64 (N,), the codes of each variable; 0 = a number.
        owner: int64 (D,), the variable that a feature belongs to.
        code: int64 (D,), the code that a feature stands for; -1 = the number itself, -2 = a harmonic of it.
        first: int64 (N,), the first feature of each variable.
        real: int64 (R,), the features that are numbers.
        number_index: int64 (R,), the variables that are numbers.
        place: int64 (N,), which of the numbers each variable is; 0 for codes.
    """

    size: Tensor
    owner: Tensor
    code: Tensor
    first: Tensor
    real: Tensor
    number_index: Tensor
    place: Tensor

    def __init__(self, sizes: Sequence[int], cycles: Sequence[Cycle] = ()) -> None:
        super().__init__()
        self.cycles = tuple(cycles)
        size = torch.tensor(list(sizes))
        width = size.clamp(min=1)
        owner = torch.arange(len(size)).repeat_interleave(width)
        first = width.cumsum(0) - width
        code = torch.where(size[owner] > 0, torch.arange(len(owner)) - first[owner], -1)
        turning = torch.tensor(cycle_owners(self.cycles), dtype=torch.int64)
        owner, code = torch.cat([owner, turning]), torch.cat([code, torch.full_like(turning, -2)])
        real, number_index = (code == -1).nonzero().squeeze(1), (size == 0).nonzero().squeeze(1)
        place = torch.where(size == 0, (size == 0).long().cumsum(0) - 1, 0)
        names = ("size", "owner", "code", "first", "real", "number_index", "place")
        for name, value in zip(names, (size, owner, code, first, real, number_index, place)):
            self.register_buffer(name, value, persistent=False)

    @property
    def features(self) -> int:
        """D."""
        return len(self.owner)

    @property
    def is_plain(self) -> bool:
        """True if the features are the variables themselves."""
        return self.numbers == len(self.owner)

    @property
    def numbers(self) -> int:
        """R, how many variables are numbers."""
        return len(self.number_index)

    def expand(self, x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """(B, D): the features of values (B, N). NaN stays NaN in the feature of a number."""
        own = x[:, self.owner].to(dtype)
        features = torch.where(self.code < 0, own, (own == self.code).to(dtype))
        if self.cycles:
            waves = cycle_features(self.cycles, x).to(dtype)
            features = torch.cat([features[:, : -waves.shape[1]], waves], 1)
        return features

    def spread(self, known: Tensor) -> Tensor:
        """bool (B, D): the features of the known variables (B, N)."""
        return known[:, self.owner]


class Joint(NamedTuple):
    """K Gaussians over D features: log-weights (..., K), means (..., K, D), covariances (..., K, D, D)."""

    log_weights: Tensor
    means: Tensor
    covariances: Tensor


class Factors(NamedTuple):
    """r factors behind D features: means (..., D), loadings (..., D, r), noise (..., D), the variances psi."""

    means: Tensor
    loadings: Tensor
    noise: Tensor


_Gaussians = TypeVar("_Gaussians", bound=Joint | Factors)


def take(joint: _Gaussians, which: Tensor | slice | int) -> _Gaussians:
    """Those at ``which`` of a stack of joints, or of factors."""
    return type(joint)(*(part[which] for part in joint))


class Conditioned(NamedTuple):
    """What the known features say.

    Attributes:
        center, variance: (B, D) of every feature; a known one is itself, with variance 0.
        log_share: (B, K), log p(k | known features).
        log_density: (B,), log p(known features); 0 where factors answer.
    """

    center: Tensor
    variance: Tensor
    log_share: Tensor
    log_density: Tensor


def condition(joint: Joint | Factors, features: Tensor, known: Tensor) -> Conditioned:
    """Condition one joint, or one for each row, on the known ones (B, D) of the features (B, D).

    Rows share what they can where a full covariance is the same for all and large enough for that to pay.
    """
    if isinstance(joint, Factors):
        return _by_factors(joint, features, known)
    own = joint.means.dim() == 3
    one_by_one = own or features.shape[1] < _SMALL or features.device.type != "cpu"
    answer = _by_rows if one_by_one else _by_runs
    size = max(1, _CHUNK // (joint.means.shape[-2] * features.shape[1] ** 2))
    some = [slice(i, i + size) for i in range(0, max(len(features), 1), size)]
    parts = [answer(take(joint, rows) if own else joint, features[rows], known[rows]) for rows in some]
    return parts[0] if len(parts) == 1 else Conditioned(*(torch.cat(column) for column in zip(*parts)))


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
    factor, cross = _factored(joint, known)
    solved = solve_triangular(factor, torch.cat([cross, _away(joint, features, known)], -1), upper=False)
    explained, distance = solved[..., :-1], solved[..., -1]
    mean = joint.means + (explained * distance.unsqueeze(-1)).sum(-2)
    own = torch.diagonal(joint.covariances, dim1=-2, dim2=-1)
    variance = (own - explained.square().sum(-2)).clamp(min=0.0)
    return PerComponent(mean, variance, density_of(joint, known, distance, _half_log_det(factor)), explained)


def _by_rows(joint: Joint, features: Tensor, known: Tensor) -> Conditioned:
    mean, variance, log_density, _ = per_component(joint, features, known)
    return pooled(features, known, mean, variance, log_density)


def _by_runs(joint: Joint, features: Tensor, known: Tensor) -> Conditioned:
    size = max(1, _BATCH // joint.covariances.numel())
    fresh = torch.ones(len(known), dtype=torch.bool)
    fresh[1:] = (known[1:] != known[:-1]).any(1)
    run = fresh.cumsum(0) - 1  # (B,), the run of each row
    patterns = [_of_pattern(joint, some) for some in known[fresh].split(size)]
    factor, explained, variance, half_log_det = (torch.cat(parts) for parts in zip(*patterns))
    distances: list[Tensor] = []
    moves: list[Tensor] = []
    away = _away(joint, features, known)
    for some, twice in zip(run.split(size), away.expand(*away.shape[:-1], 2).split(size)):
        distances.append(solve_triangular(factor.index_select(0, some).mT, twice, upper=False)[..., 0])
        moves.append(explained.index_select(0, some).mul_(distances[-1].unsqueeze(-2)).sum(-1))
    log_density = density_of(joint, known, torch.cat(distances), half_log_det.index_select(0, run))
    return pooled(features, known, joint.means + torch.cat(moves), variance.index_select(0, run), log_density)


def _of_pattern(joint: Joint, known: Tensor) -> tuple[Tensor, ...]:
    """L' and V' (U, K, D, D), variances (U, K, D) and log |L| (U, K), of U patterns of known features (U, D)."""
    factor, cross = _factored(joint, known)
    explained = solve_triangular(factor, cross, upper=False).mT.contiguous()
    own = torch.diagonal(joint.covariances, dim1=-2, dim2=-1)
    variance = (own - explained.square().sum(-1)).clamp(min=0.0)
    return factor.mT.contiguous(), explained, variance, _half_log_det(factor)


def _factored(joint: Joint, known: Tensor) -> tuple[Tensor, Tensor]:
    """L and Sigma_o. (B, K, D, D): identity and 0 where features are not known (B, D)."""
    check_cancelled()
    identity = torch.eye(known.shape[1], dtype=joint.means.dtype, device=known.device)
    here = known.unsqueeze(1).unsqueeze(-1)  # (B, 1, D, 1)
    factor = cholesky_ex(torch.where(here & here.mT, joint.covariances, identity)).L
    return factor, torch.where(here, joint.covariances, torch.zeros_like(identity))


def _away(joint: Joint, features: Tensor, known: Tensor) -> Tensor:
    """(B, K, D, 1): f - mu, 0 where not known."""
    away = features.unsqueeze(1).to(joint.means.dtype) - joint.means
    return torch.where(known.unsqueeze(1), away, 0.0).unsqueeze(-1)


def _half_log_det(factor: Tensor) -> Tensor:
    return torch.diagonal(factor, dim1=-2, dim2=-1).log().sum(-1)


def density_of(joint: Joint, known: Tensor, distance: Tensor, half_log_det: Tensor) -> Tensor:
    """(B, K): log w_k N_k(known features), from d (B, K, D) and log |L| (B, K)."""
    count = known.sum(1, keepdim=True).to(distance.dtype)
    return -0.5 * (distance.square().sum(-1) + count * _LOG_TWO_PI) - half_log_det + joint.log_weights


def pooled(features: Tensor, known: Tensor, mean: Tensor, variance: Tensor, log_density: Tensor) -> Conditioned:
    """The mixture's answer, from that of each component (B, K, D)."""
    log_share = log_density.log_softmax(1)
    share = log_share.exp().unsqueeze(-1)
    center = (share * mean).sum(1)
    spread = (share * (variance + (mean - center.unsqueeze(1)).square())).sum(1)
    return Conditioned(
        torch.where(known, features, center),
        torch.where(known, torch.zeros_like(spread), spread),
        log_share,
        log_density.logsumexp(1),
    )


def latent_given(factors: Factors, features: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """The factors z given the known ones of the features (B, D): mean (B, r) and R (B, r, r) with Cov z = R' R."""
    loadings = factors.loadings
    rank = loadings.shape[-1]
    identity = torch.eye(rank, dtype=loadings.dtype, device=loadings.device)
    weight = torch.where(known, 1.0 / factors.noise, 0.0)
    away = torch.where(known, features.to(loadings.dtype) - factors.means, 0.0) * weight
    if loadings.dim() == 2:  # the same for all rows: one product
        squares = (loadings.unsqueeze(-1) * loadings.unsqueeze(-2)).flatten(1)
        precision = (weight @ squares).unflatten(1, (rank, rank)) + identity
        pull = away @ loadings
    else:
        precision = (loadings * weight.unsqueeze(-1)).mT @ loadings + identity
        pull = (away.unsqueeze(-2) @ loadings).squeeze(-2)
    factor = cholesky_ex(precision).L
    root = solve_triangular(factor, identity.expand_as(factor), upper=False)
    return (root.mT @ (root @ pull.unsqueeze(-1))).squeeze(-1), root


def _by_factors(factors: Factors, features: Tensor, known: Tensor) -> Conditioned:
    mean, root = latent_given(factors, features, known)
    center = factors.means + (factors.loadings @ mean.unsqueeze(-1)).squeeze(-1)
    variance = factors.noise + (factors.loadings @ root.mT).square().sum(-1)
    return Conditioned(
        torch.where(known, features, center.to(features.dtype)),
        torch.where(known, 0.0, variance),
        variance.new_zeros(len(features), 1),
        variance.new_zeros(len(features)),
    )
