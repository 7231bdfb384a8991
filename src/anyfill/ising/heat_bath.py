"""1-Gibbs on an Ising model, one site at a time, for many chains and many updates: built for speed on one CPU thread.

    x_i  <-  1  with probability  sigmoid(2 h_i + 2 sum_j c J_ij s_j)

It is ``KGibbs(1)`` (``scan="random"``) or the same update at every site in turn (``scan="sweep"``). Three ways, by what
the graph allows; all are vectorised over chains, so a single chain gains nothing:

    few variables    N <= 16: a state is a number; a table (N, 2^N) holds every site's chance in every state
    few neighbours   at most 8: sites of one colour are updated together, each with a table over its neighbours' states
    otherwise        fields of 32 sites by one matrix product, then mended inside the 32 as sites change

In the first two a chance is compared with 32 random bits: it is rounded to a multiple of 2^-32, and never above
1 - 2^-32. In the third, and in random scans of more than 16 variables, it is compared with 53 bits. Bits are numpy's
SFC64, seeded from the torch generator. A random scan picks a site from 32 bits: its chances differ by less than 2^-32.

``draw_rows`` gives rows of a model of any size: exact ones while its states can be listed, the ends of many chains
beyond. Half of these start with all spins up, half with all down. If the two halves still differ in mean spin or
exponent by more than chance allows, they have not forgotten where they began.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.ising.chains import Spins, Still, check_codes, still
from anyfill.ising.model import Ising
from anyfill.networks.exact import MAX_EXACT, all_codes, state_numbers, to_spins

Scan = Literal["sweep", "random"]
Codes = NDArray[np.uint8]
Words = NDArray[np.uint32]
Indices = NDArray[np.int64]
Numbers = NDArray[np.float64]

MAX_TABLED = 16
MAX_NEIGHBOURS = 8
TOGETHER = 32_768
"""Site updates made by one vectorised step: enough to hide its cost, few enough to stay in the cache."""
WIDTH = 512
"""Chains that sweep a sparse graph together: their states stay in the cache from one colour to the next."""


def gibbs_updates(ising: Spins, x: Tensor, updates: int, *, generator: Generator, scan: Scan = "sweep") -> Tensor:
    """(B, N) codes, of the dtype of x: the states of B chains after ``updates`` site updates each, from x (B, N).

    Args:
        ising: the model.
        x: where the chains start, codes (B, N).
        updates: site updates of each chain; a sweep is N of them, and ``scan="sweep"`` makes whole sweeps only.
        generator: the source of all randomness; the chains are independent.
        scan: "sweep" = every site in turn, in an order that the graph decides; "random" = each chain picks a uniform
            site for each update, as ``KGibbs(1)`` does.
    """
    law = still(ising)
    check_codes(law, x)
    require_count("updates", updates, minimum=0)
    if scan not in ("sweep", "random"):
        raise refuse("scan", expected='"sweep" or "random"', got=repr(scan))
    count = law.variables
    if scan == "sweep" and updates % count:
        raise refuse("updates", expected=f'a multiple of the {count} variables with scan="sweep"', got=updates)
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    bits = np.random.SFC64(seed)
    codes: Codes = x.cpu().to(torch.uint8).numpy()
    if count <= MAX_TABLED and 2**count <= len(x) * updates:
        moved = _tabled(law, codes, updates, bits, scan)
    elif scan == "random":
        moved = _scattered(law, codes, updates, bits)
    elif _max_degree(law) <= MAX_NEIGHBOURS:
        moved = _coloured(law, codes, updates // count, bits)
    else:
        moved = _mended(law, codes, updates // count, bits)
    return torch.from_numpy(moved).to(x)


def thresholds(field: Tensor) -> Words:
    """Same shape: 2^32 sigmoid(2 field), rounded; random 32 bits below it mean spin up."""
    scaled = (2.0**32 * torch.sigmoid(2.0 * field)).round().clamp(max=2.0**32 - 1)
    return scaled.numpy().astype(np.uint32)


def _words(bits: np.random.SFC64, count: int) -> Words:
    """(count,) random 32-bit words, two from each 64."""
    return bits.random_raw((count + 1) // 2).view(np.uint32)[:count]


def _tabled(law: Still, codes: Codes, updates: int, bits: np.random.SFC64, scan: Scan) -> Codes:
    """States as numbers, every chance looked up."""
    count = law.variables
    field = torch.addmm(law.fields.cpu(), to_spins(all_codes(count)), law.interaction.cpu())
    table = np.ascontiguousarray(thresholds(field).T)  # (N, 2^N)
    numbers = state_numbers(torch.from_numpy(codes)).numpy().astype(np.uint16)
    for start in range(0, len(codes), TOGETHER):
        state = numbers[start : start + TOGETHER]
        if scan == "random":
            _scan_numbers(table, state, updates, bits)
            continue
        below, up = np.empty(len(state), np.uint32), np.empty(len(state), np.bool_)
        bit = np.empty_like(state)
        for _ in range(updates // count):
            for site in range(count):
                one = 1 << (count - 1 - site)
                np.take(table[site], state, out=below, mode="clip")
                np.less(_words(bits, len(state)), below, out=up)
                np.bitwise_and(state, np.uint16(2**count - 1 - one), out=state)
                np.multiply(up, np.uint16(one), out=bit)
                np.bitwise_or(state, bit, out=state)
    shift = np.arange(count - 1, -1, -1, dtype=np.uint16)
    return (numbers[:, None] >> shift & 1).astype(np.uint8)


def _scan_numbers(table: Words, state: NDArray[np.uint16], updates: int, bits: np.random.SFC64) -> None:
    """Random sites, in place."""
    count = len(table)
    flat = table.ravel()
    for _ in range(updates):
        words = bits.random_raw(len(state)).view(np.uint32).reshape(-1, 2)
        site = (words[:, 0].astype(np.uint64) * np.uint64(count) >> np.uint64(32)).astype(np.int64)
        up = words[:, 1] < flat[(site << count) + state]
        bit = (np.int64(1) << (count - 1 - site)).astype(np.uint16)
        np.copyto(state, np.where(up, state | bit, state & ~bit))


@dataclass(frozen=True, slots=True)
class _Together:
    """Sites that do not touch each other, and how each answers to its neighbours."""

    sites: Indices  # (n,)
    neighbours: Indices  # (D, n): rows of the state; the row after the last is always 0
    starts: NDArray[np.uint16]  # (n, 1): where each site's table begins
    table: Words  # (n 2^D,)


def _neighbours(law: Still) -> tuple[Indices, Numbers]:
    """Neighbours (N, D) and their c J; where a site has fewer than D, the row after the last and 0."""
    interaction = law.interaction.cpu().numpy()
    listed = [np.flatnonzero(row) for row in interaction]
    most = max(1, *(len(each) for each in listed))
    neighbours = np.full((law.variables, most), law.variables, dtype=np.int64)
    weights = np.zeros((law.variables, most))
    for site, each in enumerate(listed):
        neighbours[site, : len(each)] = each
        weights[site, : len(each)] = interaction[site, each]
    return neighbours, weights


def _max_degree(law: Still) -> int:
    return int((law.interaction != 0).sum(1).max())


def colours(law: Still) -> list[Indices]:
    """Sets of sites, together all of them, with no edge inside any: each site takes the first colour that is free."""
    joined = (law.interaction != 0).cpu().numpy()
    colour = np.full(law.variables, -1, dtype=np.int64)
    for site in range(law.variables):
        taken = set(colour[joined[site]].tolist())
        colour[site] = next(free for free in range(law.variables) if free not in taken)
    return [np.flatnonzero(colour == each) for each in range(int(colour.max()) + 1)]


def _coloured(law: Still, codes: Codes, sweeps: int, bits: np.random.SFC64) -> Codes:
    """All sites of one colour, of all chains, at once; states stand as (N + 1, chains)."""
    neighbours, weights = _neighbours(law)
    degree = neighbours.shape[1]
    field = law.fields.cpu().unsqueeze(1) + torch.from_numpy(weights) @ to_spins(all_codes(degree)).T
    table = thresholds(field)  # (N, 2^D)
    width = min(max(len(codes), 1), WIDTH)
    most = min(TOGETHER // width, 2**16 >> degree)  # sites at once: their tables are numbered by 16 bits
    groups: list[_Together] = []
    for sites in colours(law):
        for part in np.split(sites, range(most, len(sites), most)):
            starts = (np.arange(len(part))[:, None] << degree).astype(np.uint16)
            groups.append(_Together(part, np.ascontiguousarray(neighbours[part].T), starts, table[part].ravel()))
    moved = np.empty_like(codes)
    for start in range(0, len(codes), width):
        rows = slice(start, start + width)
        state = np.zeros((law.variables + 1, len(codes[rows])), np.uint8)
        state[:-1] = codes[rows].T
        room = max(len(group.sites) for group in groups), state.shape[1]
        arrays = tuple(np.empty(room, kind) for kind in (np.uint8, np.uint8, np.uint32, np.bool_))
        for _ in range(sweeps):
            for group in groups:
                _update(group, state, arrays, bits)
        moved[rows] = state[:-1].T
    return moved


def _update(group: _Together, state: Codes, room: tuple[NDArray[Any], ...], bits: np.random.SFC64) -> None:
    """One heat-bath update of every site of the group in every chain, in place; ``room`` is written to, so that nothing
    is allocated again."""
    around, one, below, up = (array[: len(group.sites)] for array in room)
    np.take(state, group.neighbours[0], axis=0, out=around, mode="clip")
    for each in group.neighbours[1:]:  # twice what it was, plus the next: the neighbours' states as one number
        np.add(around, around, out=around)
        np.take(state, each, axis=0, out=one, mode="clip")
        np.add(around, one, out=around)
    np.take(group.table, np.add(around, group.starts), out=below, mode="clip")
    np.less(_words(bits, up.size).reshape(up.shape), below, out=up)
    state[group.sites] = up.view(np.uint8)


def _mended(law: Still, codes: Codes, sweeps: int, bits: np.random.SFC64) -> Codes:
    """Sites in order; the fields of 32 at a time come from one product and are mended as sites among them change."""
    interaction, fields = law.interaction.cpu().numpy(), law.fields.cpu().numpy()
    random = np.random.Generator(bits)
    moved = np.empty_like(codes)
    for start in range(0, len(codes), 1024):
        rows = slice(start, start + 1024)
        spins = np.ascontiguousarray(2.0 * codes[rows].T - 1.0)  # (N, chains)
        for _ in range(sweeps):
            for first in range(0, law.variables, 32):
                block = interaction[first : first + 32]
                field = block @ spins + fields[first : first + 32, None]
                for place in range(len(block)):
                    up = random.random(spins.shape[1]) < 0.5 + 0.5 * np.tanh(field[place])
                    change = np.where(up, 1.0, -1.0) - spins[first + place]
                    spins[first + place] += change
                    field[place + 1 :] += block[place + 1 :, first + place, None] * change
        moved[rows] = spins.T > 0
    return moved


def _scattered(law: Still, codes: Codes, updates: int, bits: np.random.SFC64) -> Codes:
    """A random site of each chain."""
    neighbours, weights = _neighbours(law)
    fields = law.fields.cpu().numpy()
    random = np.random.Generator(bits)
    moved = np.empty_like(codes)
    most = max(1, 2**20 // max(1, neighbours.shape[1]))
    for start in range(0, len(codes), most):
        rows = slice(start, start + most)
        spins = np.zeros((len(codes[rows]), law.variables + 1))
        spins[:, :-1] = 2.0 * codes[rows] - 1.0
        chain = np.arange(len(spins))
        for _ in range(updates):
            site = random.integers(law.variables, size=len(spins))
            field = fields[site] + (weights[site] * spins[chain[:, None], neighbours[site]]).sum(1)
            up = random.random(len(spins)) < 0.5 + 0.5 * np.tanh(field)
            spins[chain, site] = np.where(up, 1.0, -1.0)
        moved[rows] = spins[:, :-1] > 0
    return moved


UNLIKELY = 4.5
"""Standard errors between the halves that are no longer chance (of two tests, one false alarm in 70,000)."""


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Rows from a model.

    Attributes:
        codes: int64 (n, N), in random order.
        apart: how many standard errors lie between the chains that started up and those that started down; None for
            exact draws.
    """

    codes: Tensor
    apart: float | None

    @property
    def warning(self) -> str:
        """A sentence if the rows cannot be trusted; else empty."""
        if self.apart is None or self.apart <= UNLIKELY:
            return ""
        return (
            f"The chains have not forgotten where they began (up and down are {self.apart:.0f} standard errors apart): "
            "give them more --sweeps, or the model has two modes that single sites do not cross."
        )


def draw_rows(ising: Ising, rows: int, sweeps: int, *, generator: Generator) -> Draws:
    """Rows (rows, N); beyond what can be listed, the ends of as many chains after so many sweeps."""
    if ising.variables <= MAX_EXACT:
        return Draws(ising.sample(rows, generator=generator), None)
    start = torch.zeros(rows, ising.variables, dtype=torch.int64)
    start[: rows // 2] = 1
    ended = gibbs_updates(ising, start, sweeps * ising.variables, generator=generator)
    apart = max(
        _apart(series[: rows // 2], series[rows // 2 :])
        for series in (to_spins(ended).mean(1), ising.exponent(ended).detach())
    )
    return Draws(ended[torch.randperm(rows, generator=generator)], apart)


def _apart(one: Tensor, other: Tensor) -> float:
    """Standard errors between two means."""
    if len(one) < 2 or len(other) < 2:
        return 0.0
    gap = float((one.mean() - other.mean()).abs())
    error = math.sqrt(float(one.var() / len(one) + other.var() / len(other)))
    return gap / error if error > 0 else (math.inf if gap > 0 else 0.0)
