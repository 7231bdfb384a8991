"""The finite-sample bound on the joint that pseudolikelihood learns (GMLM theorem 4), every term of it, three ways.

n rows, m masks drawn for each, theta-hat in Theta, everything in nats; with probability at least 1 - delta,

    printed    TV(p_theta, p) < sqrt( C_AT/2 · (L + B ln(1/beta) + eps) ) + C
               B = sqrt( 2^{3N} |Omega|^N C_eps / (m delta) ) + sqrt( ln(8 C_eps / delta) / (2n) )
               C = sqrt( |Omega|^{3N} / (8 delta n) )
    excess     the same with L - H in the place of L
    hoeffding  excess, with B = sqrt( ln(2 C_eps / delta) / (2 n m) ) and
               C = sqrt( |Omega|^N / (4n) ) + sqrt( ln(2 / delta) / (2n) )

L is the training loss, a cross-entropy. The proof (appendix D) writes it as a mean KL: definition 9 bounds
KL(p~, p_theta) by C_AT times E KL = L~ - H, where p~ is the law of the rows, L~ the loss over them and all masks, and
H = E[-log p~(x_K | x_-K, K)] >= 0. So the printed bound holds, but it does not vanish as n and m grow, not even for the
right model: it tends to sqrt(C_AT/2 · H), which says nothing once C_AT · H >= 2 nats (for a product law, once its
entropy is 2 nats). H is known from the rows, so ``excess`` costs nothing, and it does vanish.

Of the other steps: lemma 7 compares L-hat with L~, which is the mean over the rows by definition, so its step 2 (the
second term of B) is not needed; its step 1 is Chebyshev's inequality for every single mask and row. Given the rows the
n m masks are independent and -log p_theta lies in [0, ln(1/beta)], so Hoeffding's inequality at the C_eps
representatives gives the B of ``hoeffding`` at once: ln C_eps / (n m) where the print has 2^{4N} C_eps / m. Likewise
lemma 8 by McDiarmid's inequality and E TV <= sqrt(|Omega|^N / (4n)). No step uses that theta-hat is a minimum: the
bound is uniform over Theta. (Misprints: the eps of corollary 2 should be sqrt(2^{N-1} |Omega|^N / (m delta)); (D.29)
and (D.36) have L for L-hat; a line of lemma 8 has m for n.)

For Ising models theta · T(x) on the box [-R, R]^P the derivative of log p_theta(x_K | x_-K, K) by theta_p is
T_p(x) - E[T_p | x_-K, K], at most the range of T_p given x_-K: 2c for a coupling with an end in K (c = 1 or 2 is how
often a pair counts), 2 for a field in K, 0 for all others. A grid whose sides share eps/2 evenly among these is a
partition as in assumption 4. The margin beta of assumption 3 is the least conditional: flipping spins and signs of
parameters together, every case is one with all spins up, and there theta = -R is worst for all completions at once, so
it is exact.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count, require_positive, require_shape
from anyfill.ising.blocks import Blocks
from anyfill.ising.dynamics import block_means
from anyfill.ising.model import Ising
from anyfill.networks.exact import all_codes, state_numbers

Kind = Literal["printed", "excess", "hoeffding"]


@dataclass(frozen=True, slots=True)
class GeneralisationBound:
    """Theorem 4 with every term. A total of 1 or more says nothing (vacuous): no total variation is larger.

    Attributes:
        variables, states: N and |Omega|.
        samples, masks: n rows, m masks each.
        delta, epsilon: one minus the confidence, and the scale of the covering.
        loss: L, the empirical loss in nats per row and mask.
        entropy: H, the conditional entropy of the rows' own law under the masks, in the same unit.
        tensorization: C_AT of the learned law; the bound is as true as this is an upper bound of it.
        log_covering: ln C_eps, or an upper bound of it.
        log_margin: ln beta, or a lower bound of it.
    """

    variables: int
    samples: float
    masks: float
    delta: float
    epsilon: float
    loss: float
    entropy: float
    tensorization: float
    log_covering: float
    log_margin: float
    states: int = 2

    def __post_init__(self) -> None:
        require_count("variables", self.variables)
        require_count("states", self.states, minimum=2)
        for name in ("samples", "masks", "epsilon", "tensorization"):
            require_positive(name, getattr(self, name))
        if not 0 < self.delta < 1:
            raise refuse("delta", expected="a number between 0 and 1", got=self.delta)
        if not (self.log_covering >= 0 and self.log_margin < 0):
            got = f"{self.log_covering:g} and {self.log_margin:g}"
            raise refuse("log covering number and log margin", expected="at least 0, and below 0", got=got)

    def mask_term(self, kind: Kind = "printed") -> float:
        """What the drawing of masks adds to the loss, in nats: the first term of B times ln(1/beta)."""
        if kind == "hoeffding":
            inner = (math.log(2 / self.delta) + self.log_covering) / (2 * self.samples * self.masks)
            return math.sqrt(inner) * -self.log_margin
        n = self.variables
        log_square = 3 * n * math.log(2) + n * math.log(self.states) + self.log_covering - math.log(self.delta)
        return _exp(0.5 * (log_square - math.log(self.masks))) * -self.log_margin

    def sample_term(self, kind: Kind = "printed") -> float:
        """What lemma 7's second step adds to the loss, in nats: the second term of B times ln(1/beta)."""
        if kind == "hoeffding":
            return 0.0
        return math.sqrt((math.log(8 / self.delta) + self.log_covering) / (2 * self.samples)) * -self.log_margin

    def joint_term(self, kind: Kind = "printed") -> float:
        """C: how far the rows' own law may be from the truth, in total variation."""
        log_states = self.variables * math.log(self.states)
        if kind == "hoeffding":
            mean = 0.5 * _exp(0.5 * (log_states - math.log(self.samples)))
            return mean + math.sqrt(math.log(2 / self.delta) / (2 * self.samples))
        return _exp(0.5 * (3 * log_states - math.log(8 * self.delta) - math.log(self.samples)))

    def nats(self, kind: Kind = "printed") -> float:
        """What stands in the bracket: loss (or excess loss), both terms of B, and epsilon."""
        base = self.loss if kind == "printed" else self.loss - self.entropy
        return max(0.0, base + self.mask_term(kind) + self.sample_term(kind) + self.epsilon)

    def total(self, kind: Kind = "printed") -> float:
        """The bound on the total variation distance between the learned law and the truth."""
        return math.sqrt(0.5 * self.tensorization * self.nats(kind)) + self.joint_term(kind)

    def terms(self, kind: Kind = "printed") -> dict[str, float]:
        """Every term by name, largest first, in units of total variation as if it stood alone; then the total."""
        base = self.loss if kind == "printed" else self.loss - self.entropy
        inside = {"loss" if kind == "printed" else "excess loss": max(0.0, base), "masks": self.mask_term(kind)}
        inside |= {"samples": self.sample_term(kind), "covering scale": self.epsilon}
        alone = {name: math.sqrt(0.5 * self.tensorization * nats) for name, nats in inside.items()}
        alone["law of the rows"] = self.joint_term(kind)
        return dict(sorted(alone.items(), key=lambda item: -item[1])) | {"total": self.total(kind)}

    def floor(self, kind: Kind = "printed") -> float:
        """The total with infinitely many rows and masks, all else equal."""
        return self._at(math.inf, math.inf, kind)

    def needed(self, target: float = 1.0, kind: Kind = "printed") -> tuple[float, float]:
        """Rows n and masks m with which the total would be ``target``, loss, entropy and epsilon as they are.

        n is the number that with infinitely many masks comes half the way from the floor to the target; m the number
        that then reaches it. Both infinite where the floor is not below the target.
        """
        low = self.floor(kind)
        if low >= target:
            return math.inf, math.inf
        samples = _smallest(lambda n: self._at(n, math.inf, kind), 0.5 * (low + target))
        return samples, _smallest(lambda m: self._at(samples, m, kind), target)

    def _at(self, samples: float, masks: float, kind: Kind) -> float:
        """The total with other numbers of rows and masks."""
        return replace(self, samples=samples, masks=masks).total(kind)


def lipschitz_constants(ising: Ising, blocks: Blocks) -> Tensor:
    """float64 (M, P): the most that log p_theta(x_K | x_-K, K) changes per unit of a parameter, for each block."""
    subsets, ends = blocks.subsets, ising.get_buffer("ends")
    require_shape("subsets of the blocks", subsets, (None, ising.variables))
    touched = (subsets[:, ends[:, 0]] | subsets[:, ends[:, 1]]).double() * 2.0 * ising.count
    return torch.cat([touched, subsets.double() * 2.0], 1) if ising.free_fields else touched


def log_covering(ising: Ising, blocks: Blocks, *, radius: float, epsilon: float) -> float:
    """An upper bound of ln C_eps (assumption 4) for the box [-radius, radius]^P: the cells of the grid above."""
    require_positive("radius", radius)
    require_positive("epsilon", epsilon)
    slopes = lipschitz_constants(ising, blocks)
    shared = max(1, int((slopes > 0).sum(1).max()))  # so many parameters move one conditional, at most
    most = slopes.amax(0)
    return sum(math.log(max(1, math.ceil(4.0 * radius * float(slope) * shared / epsilon))) for slope in most)


def log_margin(ising: Ising, blocks: Blocks, *, radius: float) -> float:
    """ln beta over the box (assumption 3): exact for fixed blocks, a lower bound for adaptive ones (N <= 20).

    For adaptive blocks p_K(K | x) / p_K(K | x') is bounded by its extremes, where it is not zero.
    """
    require_positive("radius", radius)
    subsets = blocks.subsets
    worst = Ising(ising.variables, ising.edges, ising.pairs, ising.free_fields)
    fields = -radius * torch.ones_like(ising.fields) if ising.free_fields else -ising.fields.detach().abs()
    worst.with_parameters(torch.full_like(ising.couplings.detach(), -radius), fields.detach())
    up = torch.ones(len(subsets), ising.variables, dtype=torch.int64)
    smallest_log = worst.block_log_prob(up, subsets).detach()
    if blocks.adaptive:
        weights = blocks.probabilities(all_codes(ising.variables))
        smallest = torch.where(weights > 0, weights, math.inf).amin(0)
        smallest_log = smallest_log + smallest.log() - weights.amax(0).log()
    return float(smallest_log.min())


def empirical_losses(ising: Ising, blocks: Blocks, x: Tensor) -> tuple[float, float]:
    """L~ of the model and H of the rows x (n, N): nats per row, exact over the masks. N <= 20.

    L~ - H is the mean KL of definition 9 with r the law of the rows.
    """
    require_shape("x", x, (None, ising.variables))
    codes = all_codes(ising.variables)
    law = torch.bincount(state_numbers(x), minlength=len(codes)).double() / len(x)
    log_model = ising.log_joint().detach()
    weights = blocks.probabilities(codes)
    loss = entropy = 0.0
    for block, weight in zip(blocks.subsets, weights.T):
        chosen = law * weight  # the joint of the row and this block
        model = log_model + weight.log()
        size = 2.0 ** int(block.sum())
        model_rest = (block_means(model.exp().unsqueeze(1), torch.ones_like(law), block)[:, 0] * size).log()
        rest = block_means(chosen.unsqueeze(1), torch.ones_like(law), block)[:, 0] * size
        here = chosen > 0
        loss += float((chosen * (model_rest - model))[here].sum())
        entropy += float((chosen * (rest.log() - chosen.log()))[here].sum())
    return loss, entropy


def generalisation_bound(
    ising: Ising,
    blocks: Blocks,
    x: Tensor,
    *,
    tensorization: float,
    radius: float,
    masks: float = 1,
    loss: float | None = None,
    delta: float = 0.05,
    epsilon: float = 0.1,
) -> GeneralisationBound:
    """Theorem 4 for an Ising model fitted to rows x (n, N) with parameters in [-radius, radius]^P.

    Args:
        ising: the fitted model.
        blocks: how masks were drawn.
        x: the rows it was fitted to.
        tensorization: C_AT of the fitted law; ``tensorization_bound`` gives an upper bound of it, with which the total
            is proved, ``tensorization_constant`` a lower one, with which it is only the least it can be.
        radius: half the side of Theta, chosen before the rows were seen.
        masks: m, drawn for each row.
        loss: L over the masks that were drawn; by default its mean over all masks.
        delta, epsilon: as in the theorem.
    """
    largest = float(ising.theta.detach().abs().max())
    if largest > radius:
        raise refuse("radius", expected=f"at least the largest parameter, {largest:.4g}", got=radius)
    mean, entropy = empirical_losses(ising, blocks, x)
    return GeneralisationBound(
        ising.variables, len(x), masks, delta, epsilon, mean if loss is None else loss, entropy, tensorization,
        log_covering(ising, blocks, radius=radius, epsilon=epsilon), log_margin(ising, blocks, radius=radius),
    )  # fmt: skip


def _exp(value: float) -> float:
    return math.exp(value) if value < 709.0 else math.inf


def _smallest(total: Callable[[float], float], target: float) -> float:
    """The smallest number, to six digits, at which a falling function is at most the target."""
    low, high = 0.0, 1.0
    while total(math.exp(high)) > target:
        high *= 2.0
        if high > 700.0:
            return math.inf
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if total(math.exp(middle)) <= target else (middle, high)
    return math.exp(high)
