"""The model that options of the lab describe."""

from pathlib import Path

import pytest
import torch

from anyfill.ising.model import Ising
from anyfill.ising.model_options import Spec, block_sizes, build, read_model
from anyfill.ising.spin_files import read_spins

USUAL = ("complete", 4, 0.3, 0.0)


def same(one: Ising, other: Ising) -> bool:
    return one.edges == other.edges and torch.equal(one.theta, other.theta) and one.count == other.count


@pytest.mark.parametrize(
    ("told", "expected"),
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
def test_options_name_the_model(told: dict, expected: Ising) -> None:
    assert same(build(Spec(USUAL, **told), seed=7).ising, expected)


def test_a_file_names_it_too(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text('{"couplings": [[0, 0.5, 0], [0.5, 0, -1], [0, -1, 0]], "fields": [1, 0, 2]}')
    read = read_model(path, pairs="twice", free_fields=True)
    assert read.edges == ((0, 1), (1, 2))
    assert read.theta.tolist() == [0.5, -1.0, 1.0, 0.0, 2.0]
    assert read.count == 2.0


@pytest.mark.parametrize(
    ("text", "sizes"),
    [(None, [9]), ("1,2,4", [1, 2, 4]), ("4,1", [1, 4]), ("1-3", [1, 2, 3]), ("1, 2-3,3", [1, 2, 3])],
)
def test_sizes_of_blocks(text: str | None, sizes: list[int]) -> None:
    assert block_sizes(text, 4, [9]) == sizes


@pytest.mark.parametrize(
    ("text", "names", "codes"),
    [
        ("a,b\n1,-1\n-1,-1\n", ("a", "b"), [[1, 0], [0, 0]]),
        ("1,0\n0,0\n", ("1", "2"), [[1, 0], [0, 0]]),
        ("1,1\n\n1,1\n", ("1", "2"), [[1, 1], [1, 1]]),
        ("\ufeffx\n 1.0\n-1 \n", ("x",), [[1], [0]]),
    ],
)
def test_rows_of_spins(text: str, names: tuple[str, ...], codes: list[list[int]], tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    read = read_spins(path)
    assert read.names == names
    assert read.codes.tolist() == codes
