"""The check that every sampler of benchmarks/ising.py must pass: its expectations are right, and it can fail."""

import pytest
import torch

from anyfill.ising.heat_bath import gibbs_updates
from anyfill.ising.model import Ising
from anyfill.networks.exact import all_codes, to_spins
from benchmarks.ising_laws import (
    LIMIT,
    Reference,
    WrongLawError,
    dense_law,
    lattice_law,
    lattice_reference,
    require_law,
    torus_product,
)


def torus(side: int, coupling: float) -> tuple[float, float]:
    """The product across an edge and the squared magnetisation, by enumeration."""
    ising = Ising.lattice(side, side, coupling, periodic=True)
    law, spins, ends = ising.log_joint().detach().exp(), to_spins(all_codes(side * side)), torch.tensor(ising.edges)
    products = (spins[:, ends[:, 0]] * spins[:, ends[:, 1]]).mean(1)
    return float(law @ products), float(law @ spins.mean(1) ** 2)


@pytest.mark.parametrize(("side", "coupling"), [(3, 0.4), (4, 0.2), (4, 0.6)])
def test_product_across_an_edge_of_the_torus_is_that_of_enumeration(side: int, coupling: float) -> None:
    assert torus_product(side, coupling) == pytest.approx(torus(side, coupling)[0], rel=1e-11)


def test_clusters_have_the_squared_magnetisation_of_enumeration() -> None:
    found = lattice_reference(4, 0.3, seed=2, chains=100)
    assert abs(found.squared - torus(4, 0.3)[1]) < 4 * found.squared_error
    assert found.squared_error < 0.01
    assert abs(found.product_z) < 4


def test_the_right_lattice_passes_and_a_coupling_two_percent_off_does_not() -> None:
    side, reference = 16, lattice_reference(16, 0.4, seed=0, chains=60, sweeps=40)
    start = torch.randint(2, (1500, side * side), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    for coupling, right in ((0.4, True), (0.408, False)):
        ising = Ising.lattice(side, side, coupling, periodic=True)
        x = gibbs_updates(ising, start, 150 * side**2, generator=torch.Generator().manual_seed(2))
        assert (lattice_law(ising, to_spins(x), reference)["in_standard_errors"] <= LIMIT) == right


def test_a_single_site_that_stands_still_is_noticed() -> None:
    ising = Ising.lattice(4, 4, 0.3, periodic=True)
    product, squared = torus(4, 0.3)
    spins = to_spins(ising.sample(2000, generator=torch.Generator().manual_seed(3)))
    reference = Reference(product, squared, 0.0, 0.0)
    assert lattice_law(ising, spins, reference)["in_standard_errors"] <= LIMIT
    spins[:, 5] = to_spins(torch.randint(2, (2000,), generator=torch.Generator().manual_seed(4)))
    assert lattice_law(ising, spins, reference)["in_standard_errors"] > LIMIT


def test_draws_of_the_dense_model_pass_and_those_of_its_neighbour_raise() -> None:
    ising = Ising.complete(5, 0.2)
    for coupling in (0.2, 0.25):
        spins = to_spins(Ising.complete(5, coupling).sample(5000, generator=torch.Generator().manual_seed(5)))
        checked = dense_law(ising, spins)
        if coupling == 0.2:
            require_law("dense", "a sampler", checked)
            continue
        with pytest.raises(WrongLawError, match="a sampler draws the wrong law on the dense"):
            require_law("dense", "a sampler", checked)
