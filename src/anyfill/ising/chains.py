"""Markov chains on an Ising model, thousands of them at once: k-Gibbs, block dynamics, independent parallel.

    KGibbs(k)                a uniform k-subset K of each chain's own, x_K <- p(x_K | x_-K)         (GMLM definition 10)
    BlockDynamics(blocks)    K ~ p_K(K | x), x_K <- p(x_K | x_-K, K)                              (definitions 6 and 8)
    IndependentParallel()    every x_i <- p(x_i | x_-i), all at once, all from the old state           (definition 11)

The first two keep p. Where p_K looks at the values, the block is redrawn from eq. (1), which knows that K was chosen:

    p(x_K | x_-K, K)  ∝  p(x) p_K(K | x)

(with p(x_K | x_-K) instead, p is not kept). The third keeps p only if nothing is coupled; its law in the long run is
proportional to exp(sum_i h_i s_i) prod_i cosh(h_i + sum_j c J_ij s_j), see ``anyfill.ising.model`` for h, J, c.

A kernel has no state: ``step`` takes the states of all chains and returns the next ones. A block of k spins costs 2^k
per chain, in float64; N may be anything. For single sites by the billion there is ``anyfill.ising.heat_bath``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_shape
from anyfill.ising.blocks import Blocks, block_choice
from anyfill.ising.model import Ising, blocks_by_size, require_finite
from anyfill.networks.exact import all_codes, require_exact, to_spins
from anyfill.questions.families import uniforms

MAX_AT_ONCE = 2**22
"""Chains are taken in portions so that no table of block states holds more numbers than this (32 MiB)."""


@dataclass(frozen=True, slots=True, eq=False)
class Still:
    """The numbers of an Ising model, computed once and without gradients: many steps read them.

    Attributes:
        variables: N.
        fields: float64 (N,).
        interaction: float64 (N, N), c J.
    """

    variables: int
    fields: Tensor
    interaction: Tensor


Spins = Ising | Still
"""What a chain must know of the model."""


def still(ising: Spins) -> Still:
    """The model as it is now, without gradients; ValueError if a parameter is not finite."""
    if isinstance(ising, Still):
        return ising
    taken = Still(ising.variables, ising.fields.detach().double().clone(), ising.interaction.detach().double().clone())
    require_finite("fields", taken.fields)
    require_finite("couplings", taken.interaction)
    return taken


@runtime_checkable
class Kernel(Protocol):
    """One step of many chains."""

    def step(self, ising: Spins, x: Tensor, *, generator: Generator) -> Tensor:
        """(B, N) codes, of the dtype of x: the states one step after x (B, N). x is not written to."""
        ...


@dataclass(frozen=True, slots=True)
class KGibbs:
    """A uniform k-subset, drawn for each chain and step, is redrawn jointly given the rest.

    Attributes:
        k: size of the block, at most N and at most 20.
    """

    k: int

    def __post_init__(self) -> None:
        require_count("k", self.k)
        require_exact(self.k, "the states of a block")

    def step(self, ising: Spins, x: Tensor, *, generator: Generator) -> Tensor:
        law = still(ising)
        require_shape("x", x, (None, law.variables))
        require_count(f"k of k-Gibbs on {law.variables} variables", self.k, maximum=law.variables)
        keys = uniforms(len(x), law.variables, generator)
        members = keys.topk(self.k, dim=1, sorted=False).indices
        return _redraw(law, x, members, None, generator)


@dataclass(frozen=True, slots=True, eq=False)
class BlockDynamics:
    """A block is drawn by ``blocks``, looking at the state if it does, and redrawn jointly by eq. (1).

    Attributes:
        blocks: distribution over the listed blocks, fixed or adaptive; none larger than 20.
    """

    blocks: Blocks

    def __post_init__(self) -> None:
        require_exact(int(self.blocks.subsets.sum(1).max()), "the states of a block")

    def step(self, ising: Spins, x: Tensor, *, generator: Generator) -> Tensor:
        law = still(ising)
        require_shape("x", x, (None, law.variables))
        require_shape("subsets of the blocks", self.blocks.subsets, (None, law.variables))
        chosen = self.blocks.sample(x, generator=generator)
        adaptive = self.blocks if self.blocks.adaptive else None
        moved = x.clone()
        for rows, members in blocks_by_size(chosen):
            moved[rows] = _redraw(law, x[rows], members, adaptive, generator)
        return moved


@dataclass(frozen=True, slots=True)
class IndependentParallel:
    """Every variable is redrawn at once, given all the others as they were."""

    def step(self, ising: Spins, x: Tensor, *, generator: Generator) -> Tensor:
        law = still(ising)
        require_shape("x", x, (None, law.variables))
        up = torch.sigmoid(2.0 * torch.addmm(law.fields, to_spins(x), law.interaction))
        return (uniforms(len(x), law.variables, generator) < up).to(x.dtype)


def kernel_of(k: int | None) -> Kernel:
    """k-Gibbs; None is independent parallel."""
    return IndependentParallel() if k is None else KGibbs(k)


def run_chain(ising: Spins, kernel: Kernel, x: Tensor, steps: int, *, generator: Generator) -> Iterator[Tensor]:
    """The states (B, N) after each of ``steps`` steps, from x (B, N); each yielded tensor is a new one.

    The parameters are read once, at the start: a change of the model during the run is not seen.
    """
    law = still(ising)
    check_codes(law, x)
    require_count("steps", steps, minimum=0)

    def run(x: Tensor) -> Iterator[Tensor]:
        for _ in range(steps):
            x = kernel.step(law, x, generator=generator)
            yield x

    return run(x)


def first_hits(
    ising: Spins, kernel: Kernel, x: Tensor, reached: Callable[[Tensor], Tensor], budget: int, *, generator: Generator
) -> Tensor:
    """int64 (B,): min(T, budget + 1), where T is the number of steps until ``reached`` first holds (0: at the start).

    So budget + 1 marks a chain that did not arrive, and the mean over chains is an unbiased estimate of the truncated
    expectation, never more than the true one. Chains that have arrived are not advanced any further.

    Args:
        ising: the model.
        kernel: how chains move.
        x: where they start, codes (B, N).
        reached: from states (R, N) to bool (R,).
        budget: the most steps of a chain.
        generator: the source of all randomness.
    """
    law = still(ising)
    check_codes(law, x)
    require_count("budget", budget, minimum=0)
    hits = torch.full((len(x),), budget + 1, dtype=torch.int64, device=x.device)
    going = torch.arange(len(x), device=x.device)
    for step in range(budget + 1):
        if step > 0:
            x = kernel.step(law, x, generator=generator)
        there = reached(x)
        require_shape("what reached answers", there, (len(x),))
        hits[going[there]] = step
        going, x = going[~there], x[~there]
        if len(going) == 0:
            break
    return hits


def check_codes(law: Still, x: Tensor) -> None:
    """Refuse states that are not codes 0 and 1 of this many variables."""
    require_shape("x", x, (None, law.variables))
    if x.is_floating_point() or (x.numel() > 0 and not (int(x.min()) >= 0 and int(x.max()) <= 1)):
        raise refuse(
            "x", expected="codes 0 and 1 (0 stands for spin -1) as whole numbers", got=f"{x.dtype} with others"
        )


def _redraw(law: Still, x: Tensor, members: Tensor, adaptive: Blocks | None, generator: Generator) -> Tensor:
    """(R, N): x with the block of each row, members (R, k), drawn from p(x_K | x_-K), or eq. (1) if adaptive."""
    size = members.shape[1]
    codes = all_codes(size).to(x.device)  # (2^k, k)
    states = to_spins(codes)
    left, right = torch.triu_indices(size, size, 1, device=x.device)
    products = (states[:, left] * states[:, right]).T  # (pairs, 2^k)
    uniform = uniforms(len(x), 1, generator)
    wide = 2**size * (1 if adaptive is None else law.variables)
    drawn: list[Tensor] = []
    for part in torch.arange(len(x), device=x.device).split(max(1, MAX_AT_ONCE // wide)):
        own, spins = members[part], to_spins(x[part])
        inside = law.interaction[own.unsqueeze(2), own.unsqueeze(1)]  # (R, k, k)
        field = torch.addmm(law.fields, spins, law.interaction).gather(1, own)
        field = field - (inside @ spins.gather(1, own).unsqueeze(2)).squeeze(2)  # of the rest alone
        exponents = field @ states.T + inside[:, left, right] @ products  # (R, 2^k)
        if adaptive is not None:
            exponents = exponents + block_choice(adaptive, x[part], own)
        upto = exponents.softmax(1).cumsum(1)
        drawn.append((upto <= uniform[part] * upto[:, -1:]).sum(1).clamp(max=2**size - 1))
    number = torch.cat(drawn) if drawn else torch.zeros(0, dtype=torch.int64, device=x.device)
    return x.scatter(1, members, codes[number].to(x.dtype))
