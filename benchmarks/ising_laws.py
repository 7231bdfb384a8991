"""Whether states that a sampler of Ising models ends in follow the right law, for benchmarks/ising.py.

A number that was measured is compared with its expectation in standard errors; beyond ``LIMIT`` the law is wrong. Of
some ten thousand numbers in one run, one that is right would be called wrong with probability below 1 %.

dense      all means and pair moments, against enumeration
lattice    no fields, n x n, periodic: every mean (0, by symmetry) and every product across an edge; their means over
           the lattice, where errors that sites share would show; and the squared magnetisation.
           The product is exact, from Kaufman's partition function of the torus, K the coupling:

    Z = 1/2 (2 sinh 2K)^(n n / 2) [ prod 2 cosh(n g_l / 2) + prod 2 sinh(n g_l / 2)      l = 1, 3, ..., 2n - 1
                                  + prod 2 cosh(n g_l / 2) + prod 2 sinh(n g_l / 2) ]    l = 0, 2, ..., 2n - 2
    cosh g_l = cosh 2K coth 2K - cos(pi l / n),   g_0 = 2K + ln tanh K  (with its sign)

           E[s_i s_j] = d ln Z / dK / (2 n n). The squared magnetisation has no such formula: it comes from another
           sampler, Swendsen and Wang's clusters, which shares nothing with those measured (and whose own product
           across edges is held against Kaufman's too). E[m^2 | clusters] = sum of sizes^2 / N^2.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from anyfill.ising.model import Ising
from anyfill.networks.exact import all_codes, to_spins

LIMIT = 5.0
"""Standard errors from which a law is wrong."""
Checked = dict[str, Any]


class WrongLawError(Exception):
    """A sampler drew something else: its speed does not count."""


def dense_law(ising: Ising, spins: Tensor) -> Checked:
    """Means and pair moments of states (chains, N) of -1 and +1, against enumeration."""
    above = torch.triu_indices(ising.variables, ising.variables, 1)

    def moments(spins: Tensor, weights: Tensor) -> Tensor:
        pairs = (spins * weights.unsqueeze(1)).T @ spins
        return torch.cat([weights @ spins, pairs[above[0], above[1]]])

    exact = moments(to_spins(all_codes(ising.variables)), ising.log_joint().detach().exp())
    found = moments(spins, torch.full((len(spins),), 1 / len(spins), dtype=torch.float64))
    away = (found - exact).abs()
    return {
        "chains": len(spins),
        "moments": len(exact),
        "largest_error": away.max().item(),
        "in_standard_errors": (away / ((1 - exact**2) / len(spins)).sqrt()).max().item(),
    }


@dataclass(frozen=True, slots=True)
class Reference:
    """What a lattice ought to show.

    Attributes:
        product: E[s_i s_j] across an edge, exact.
        squared: E[m^2] of the magnetisation per site.
        squared_error: its standard error.
        product_z: how far the product of the reference sampler is from the exact one, in standard errors.
    """

    product: float
    squared: float
    squared_error: float
    product_z: float


def lattice_law(ising: Ising, spins: Tensor, reference: Reference) -> Checked:
    """Sites, edges, their means and the squared magnetisation of states (chains, N) of -1 and +1."""
    chains, ends = len(spins), torch.tensor(ising.edges)
    products = spins[:, ends[:, 0]] * spins[:, ends[:, 1]]
    across = (products.mean(0) - reference.product).abs() / math.sqrt((1 - reference.product**2) / chains)
    magnetisation = spins.mean(1)

    def z(values: Tensor, expected: float, its_error: float = 0.0) -> float:
        return (values.mean().item() - expected) / math.hypot(values.std().item() / math.sqrt(chains), its_error)

    parts = {
        "largest_site": (spins.mean(0).abs() * math.sqrt(chains)).max().item(),
        "largest_edge": across.max().item(),
        "product": z(products.mean(1), reference.product),
        "magnetisation": z(magnetisation, 0.0),
        "squared_magnetisation": z(magnetisation**2, reference.squared, reference.squared_error),
    }
    return {
        "chains": chains,
        "product": products.mean().item(),
        "squared_magnetisation": (magnetisation**2).mean().item(),
        "z": parts,
        "in_standard_errors": max(map(abs, parts.values())),
    }


def lattice_reference(
    side: int, coupling: float, *, seed: int, chains: int = 200, sweeps: int = 100, warm_up: int = 50
) -> Reference:
    """Kaufman's product, and the squared magnetisation of Swendsen and Wang's clusters; errors between chains."""
    random, count = np.random.default_rng(seed), side * side
    site = np.arange(count).reshape(side, side)
    left = np.concatenate([site.ravel(), site.ravel()])
    right = np.concatenate([np.roll(site, -1, 1).ravel(), np.roll(site, -1, 0).ravel()])
    shift = np.arange(chains)[:, None] * count
    bond = -math.expm1(-2.0 * coupling)
    spins = np.ones((chains, count), np.int8)
    squares, products = np.zeros(chains), np.zeros(chains)
    for sweep in range(warm_up + sweeps):
        alike = spins[:, left] == spins[:, right]
        joined = alike & (random.random(alike.shape) < bond)
        rows, columns = (left + shift)[joined], (right + shift)[joined]
        graph = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(chains * count, chains * count))
        number, label = connected_components(graph, directed=False)
        if sweep >= warm_up:
            sizes, owner = np.bincount(label), np.zeros(number, np.int64)
            owner[label] = np.repeat(np.arange(chains), count)
            squares += np.bincount(owner, sizes.astype(np.float64) ** 2, chains) / count**2
            products += 2.0 * alike.mean(1) - 1.0
        spins = random.choice(np.array([-1, 1], np.int8), number)[label].reshape(chains, count)
    squares, products, product = squares / sweeps, products / sweeps, torus_product(side, coupling)
    errors = [float(values.std(ddof=1) / math.sqrt(chains)) for values in (squares, products)]
    return Reference(product, float(squares.mean()), errors[0], (float(products.mean()) - product) / errors[1])


def torus_product(side: int, coupling: float) -> float:
    """E[s_i s_j] across an edge of a periodic side x side lattice without fields, exact."""
    k = torch.tensor(coupling, dtype=torch.float64, requires_grad=True)
    log_terms: list[Tensor] = []
    signs: list[float] = []
    for first in (1, 0):
        cosine = torch.cos(torch.arange(first, 2 * side, 2, dtype=torch.float64) * math.pi / side)
        place = 1 if first == 0 else 0
        g = torch.acosh(torch.cosh(2 * k) / torch.tanh(2 * k) - cosine[place:])
        if first == 0:
            g = torch.cat([(2 * k + torch.tanh(k).log()).reshape(1), g])
        half = 0.5 * side * g
        log_terms += [(2 * torch.cosh(half)).log().sum(), (2 * torch.sinh(half).abs()).log().sum()]
        signs += [1.0, float(torch.sinh(half.detach()).sign().prod())]
    most = torch.stack(log_terms).max().detach()
    bracket = sum(sign * (term - most).exp() for sign, term in zip(signs, log_terms))
    log_z = 0.5 * side**2 * (2 * torch.sinh(2 * k)).log() + torch.as_tensor(bracket).log()
    others = torch.autograd.grad(log_z + most, k)[0]
    return float(others) / (2 * side**2)


def require_law(name: str, who: str, checked: Checked) -> None:
    """WrongLawError if it is beyond the limit."""
    if not checked["in_standard_errors"] <= LIMIT:
        away = checked["in_standard_errors"]
        far = f"{away:.1f} standard errors, at most {LIMIT:g} pass"
        raise WrongLawError(f"{who} draws the wrong law on the {name}: {far}")
