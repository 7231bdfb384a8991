"""The model that options of the lab describe."""

import pytest
import torch

from anyfill.ising.clique_chains import Clique
from anyfill.ising.model import Ising
from anyfill.ising.model_options import CliqueOptions, ModelOptions


def same(one: Ising, other: Ising) -> bool:
    return one.edges == other.edges and torch.equal(one.theta, other.theta) and one.count == other.count


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Ising.complete(4, 0.3)),
        ({"variables": 5, "coupling": -1.0, "field": 2.0}, Ising.complete(5, -1.0, 2.0)),
        ({"pairs": "twice"}, Ising.complete(4, 0.3, pairs="twice")),
        ({"graph": "clique"}, Ising.clique(10, 4, 0.3)),
        ({"clique": 3, "variables": 5}, Ising.clique(5, 3, 0.3)),
        ({"graph": "clique", "variables": 3}, Ising.clique(3, 3, 0.3)),
        ({"graph": "lattice"}, Ising.lattice(3, 3, 0.3)),
        ({"height": 2}, Ising.lattice(2, 2, 0.3)),
        ({"height": 3, "width": 4, "periodic": True}, Ising.lattice(3, 4, 0.3, periodic=True)),
        (
            {"graph": "random", "variables": 4, "field": 1.0},
            Ising.random(4, generator=torch.Generator().manual_seed(7), coupling_scale=0.3, field_scale=1.0),
        ),
    ],
)
def test_options_name_the_model(given: dict, expected: Ising) -> None:
    assert same(ModelOptions(**given).build(seed=7), expected)


def test_a_clique_is_that_of_the_papers_figure_unless_options_say_otherwise() -> None:
    assert CliqueOptions().build() == Clique.alike(10, 4, 3.0, 5.0)
    assert CliqueOptions().build().words == "clique of 4 among N = 10 spins, J = 3, h = 5 (h = 0 outside)"
    other = CliqueOptions(graph="complete", variables=5, coupling=1.0, field=0.5, isolated_field=2.0)
    assert other.build() == Clique.alike(5, 5, 1.0, 0.5)
    assert other.build().words == "complete graph, N = 5, J = 1, h = 0.5"
