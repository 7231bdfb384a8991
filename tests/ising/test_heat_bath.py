"""Fast 1-Gibbs against transition matrices and exact moments, every way of doing it. False alarms: p > 0.001."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import chi2, chisquare
from torch import Generator

from anyfill.ising import heat_bath
from anyfill.ising.chains import still
from anyfill.ising.heat_bath import colours, draw_rows, gibbs_updates, thresholds
from anyfill.ising.model import Ising
from anyfill.networks.exact import all_codes, state_numbers, to_spins

N = 5
CODES = all_codes(N)
WAYS = {"tabled": {}, "coloured": {"MAX_TABLED": 0}, "mended": {"MAX_TABLED": 0, "MAX_NEIGHBOURS": -1}}


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    for name, value in WAYS[request.param].items():
        monkeypatch.setattr(heat_bath, name, value)
    return request.param


@pytest.fixture
def ising():
    """A ring of five with a chord, random couplings and fields: degrees 2 and 3, three colours."""
    generator = Generator().manual_seed(4)
    couplings = torch.zeros(N, N, dtype=torch.float64)
    for i, j in ((0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (1, 3)):
        couplings[i, j] = couplings[j, i] = 0.7 * torch.randn((), generator=generator, dtype=torch.float64)
    return Ising.from_matrix(couplings, 0.4 * torch.randn(N, generator=generator, dtype=torch.float64))


def site_matrices(ising):
    """For each site the (2^N, 2^N) matrix of redrawing it, from the joint alone."""
    p, count = ising.log_joint().detach().exp(), ising.variables
    found = []
    for site in range(count):
        rest = state_numbers(torch.where(torch.arange(count) == site, 0, all_codes(count)))
        target = torch.where(rest.unsqueeze(1) == rest, p, 0.0)
        found.append(target / target.sum(1, keepdim=True))
    return found


def rows_p_value(moved, matrix, chains):
    start = torch.arange(len(matrix)).repeat_interleave(chains)
    seen = torch.bincount(start * len(matrix) + state_numbers(moved), minlength=matrix.numel()).reshape(matrix.shape)
    possible = matrix > 1e-12
    if bool((seen[~possible] > 0).any()):
        return 0.0
    expected = (chains * matrix)[possible]
    statistic = ((seen[possible] - expected) ** 2 / expected).sum()
    return chi2.sf(statistic.item(), int(possible.sum()) - len(matrix))


def test_a_sweep_follows_the_product_of_the_site_matrices(ising, way):
    order = np.concatenate(colours(still(ising))).tolist() if way == "coloured" else range(N)
    sites = site_matrices(ising)
    sweep = torch.linalg.multi_dot([sites[i] for i in order])
    moved = gibbs_updates(ising, CODES.repeat_interleave(5000, 0), N, generator=Generator().manual_seed(1))
    assert rows_p_value(moved, sweep, 5000) > 0.001
    wrong = torch.linalg.multi_dot([sites[i] for i in reversed(order)])
    assert rows_p_value(moved, wrong, 5000) < 1e-9


@pytest.mark.parametrize("updates", [1, 3])
@pytest.mark.parametrize("tabled", [True, False])
def test_a_random_scan_follows_powers_of_the_mean_site_matrix(ising, updates, tabled, monkeypatch):
    monkeypatch.setattr(heat_bath, "MAX_TABLED", 16 if tabled else 0)
    matrix = torch.linalg.matrix_power(torch.stack(site_matrices(ising)).mean(0), updates)
    x = CODES.repeat_interleave(5000, 0)
    moved = gibbs_updates(ising, x, updates, generator=Generator().manual_seed(2), scan="random")
    assert rows_p_value(moved, matrix, 5000) > 0.001


def test_thirty_sweeps_from_one_corner_follow_the_law_they_should_have_by_then(ising, way):
    order = np.concatenate(colours(still(ising))).tolist() if way == "coloured" else range(N)
    sites = site_matrices(ising)
    exact = torch.linalg.matrix_power(torch.linalg.multi_dot([sites[i] for i in order]), 30)[0]
    chains = 33_011  # more than one portion, and odd
    moved = gibbs_updates(
        ising, torch.zeros(chains, N, dtype=torch.uint8), 30 * N, generator=Generator().manual_seed(3)
    )
    assert moved.dtype == torch.uint8
    seen, expected = torch.bincount(state_numbers(moved), minlength=2**N).double(), chains * exact
    rare = expected < 5  # together, so that chi-square holds
    seen, expected = (torch.cat([each[~rare], each[rare].sum().reshape(1)]) for each in (seen, expected))
    assert chisquare(seen.numpy(), (expected * seen.sum() / expected.sum()).numpy()).pvalue > 0.001


def test_a_torus_has_the_moments_of_its_enumeration(way):
    """4 x 4, all 65536 states; 5 standard errors of 4096 independent chains (false alarm 1e-6 for each number)."""
    torus = Ising.lattice(4, 4, 0.3, 0.05, periodic=True)
    p, spins = torus.log_joint().detach().exp(), to_spins(all_codes(16))
    bonds = torus.statistics(all_codes(16)).detach()[:, : len(torus.edges)].mean(1)
    moved = gibbs_updates(torus, torch.zeros(4096, 16).long(), 60 * 16, generator=Generator().manual_seed(7))
    seen = to_spins(moved)
    size = seen.mean(1)
    for name, exact, each in (
        ("magnetisation", p @ spins.mean(1), size),
        ("its square", p @ spins.mean(1) ** 2, size**2),
        ("bond", p @ bonds, torus.statistics(moved).detach()[:, : len(torus.edges)].mean(1)),
        ("corner pair", p @ (spins[:, 0] * spins[:, 10]), seen[:, 0] * seen[:, 10]),
    ):
        assert abs(each.mean() - exact) < 5 * each.std() / math.sqrt(len(each)), name


def test_wide_lattices_and_dense_models_agree_with_independent_ways_of_updating(monkeypatch):
    """N = 36 cannot be enumerated: coloured and mended sweeps, and random scans, must agree with each other."""
    lattice = Ising.lattice(6, 6, 0.25, 0.1, periodic=True)
    x = torch.zeros(2000, 36).long()
    found = []
    for most, scan in ((8, "sweep"), (-1, "sweep"), (8, "random")):
        monkeypatch.setattr(heat_bath, "MAX_NEIGHBOURS", most)
        moved = gibbs_updates(lattice, x, 25 * 36, generator=Generator().manual_seed(len(found)), scan=scan)
        bonds = lattice.statistics(moved).detach()[:, : len(lattice.edges)].mean(1)
        found.append((bonds.mean().item(), bonds.std().item() / math.sqrt(len(x))))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        apart = abs(found[one][0] - found[other][0])
        assert apart < 5 * math.hypot(found[one][1], found[other][1])


def test_pairs_counted_twice_are_twice_the_coupling():
    x = torch.zeros(500, 4, dtype=torch.int64)
    once, twice = Ising.complete(4, 0.6, 0.1), Ising.complete(4, 0.3, 0.1, pairs="twice")
    drawn = [gibbs_updates(each, x, 40, generator=Generator().manual_seed(0)) for each in (once, twice)]
    assert torch.equal(*drawn)


def test_without_edges_sites_are_independent_and_strong_fields_are_certain(way):
    free = Ising.complete(3, 0.0)
    lone = Ising.from_matrix(torch.zeros(3, 3), torch.tensor([400.0, -400.0, 0.5]))
    moved = gibbs_updates(lone, torch.zeros(30_000, 3).long(), 3, generator=Generator().manual_seed(5)).double()
    chance = 1 / (1 + math.exp(-1.0))
    assert moved[:, 0].mean() == 1
    assert moved[:, 1].mean() == 0
    assert abs(moved[:, 2].mean() - chance) < 4.5 * math.sqrt(chance * (1 - chance) / len(moved))
    even = gibbs_updates(free, torch.zeros(30_000, 3).long(), 3, generator=Generator().manual_seed(5))
    assert chisquare(torch.bincount(state_numbers(even), minlength=8).numpy()).pvalue > 0.001


def test_chances_are_rounded_to_the_nearest_multiple_of_two_to_the_minus_32():
    field = torch.linspace(-40, 40, 20_001, dtype=torch.float64)
    rounded = torch.from_numpy(thresholds(field).astype(np.float64)) / 2**32
    assert (rounded - torch.sigmoid(2 * field)).abs().max() <= 2.0**-32
    low = field < 0
    assert (rounded - torch.sigmoid(2 * field))[low].abs().max() <= 2.0**-33
    assert rounded.max() == 1 - 2.0**-32


def test_colours_are_sets_without_edges_that_cover_everything():
    for each in (
        Ising.lattice(4, 6, 0.2, periodic=True),
        Ising.lattice(5, 5, 0.2, periodic=True),
        Ising.complete(6, 1),
    ):
        law = still(each)
        found = colours(law)
        assert sorted(np.concatenate(found).tolist()) == list(range(each.variables))
        for sites in found:
            assert not law.interaction[sites][:, sites].any()
    assert len(colours(still(Ising.lattice(4, 6, 0.2, periodic=True)))) == 2
    assert len(colours(still(Ising.complete(6, 1.0)))) == 6


@pytest.mark.parametrize("scan", ["sweep", "random"])
def test_same_generator_same_draw_and_the_start_is_left_alone(ising, way, scan):
    x = CODES.repeat(30, 1)
    drawn = [gibbs_updates(ising, x, 10 * N, generator=Generator().manual_seed(6), scan=scan) for _ in "ab"]
    assert torch.equal(*drawn)
    assert torch.equal(x, CODES.repeat(30, 1))
    other = gibbs_updates(ising, x, 10 * N, generator=Generator().manual_seed(7), scan=scan)
    assert not torch.equal(drawn[0], other)


def test_no_chains_and_no_updates_change_nothing(ising, way):
    assert gibbs_updates(ising, CODES[:0], N, generator=Generator()).shape == (0, N)
    for scan in ("sweep", "random"):
        assert torch.equal(gibbs_updates(ising, CODES, 0, generator=Generator(), scan=scan), CODES)


def test_bad_input_is_refused_in_one_sentence(ising):
    with pytest.raises(ValueError, match=r"updates: expected a multiple of the 5 variables"):
        gibbs_updates(ising, CODES, 7, generator=Generator())
    with pytest.raises(ValueError, match=r'scan: expected "sweep" or "random"'):
        gibbs_updates(ising, CODES, 5, generator=Generator(), scan="raster")
    with pytest.raises(ValueError, match=r"x: expected codes 0 and 1"):
        gibbs_updates(ising, 2 * CODES - 1, 5, generator=Generator())
    with pytest.raises(ValueError, match="updates: expected a whole number from 0 up"):
        gibbs_updates(ising, CODES, -5, generator=Generator())


def test_draws_of_many_spins_say_whether_they_forgot_their_start() -> None:
    weak, strong = Ising.lattice(5, 5, 0.1), Ising.complete(25, 1.0)
    for ising, forgot in ((weak, True), (strong, False)):
        draws = draw_rows(ising, 400, 30, generator=torch.Generator().manual_seed(0))
        assert draws.codes.shape == (400, 25)
        assert (draws.warning == "") == forgot
