"""What the verbs start from: models and rows of spins in files and arrays, sizes of blocks in words."""

from pathlib import Path

import pytest
import torch

from anyfill.ising.lab import BlockSizes, block_sizes, read, read_spins, spins


def test_a_model_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text('{"couplings": [[0, 0.5, 0], [0.5, 0, -1], [0, -1, 0]], "fields": [1, 0, 2]}')
    found = read(path, pairs="twice")
    assert found.edges == ((0, 1), (1, 2))
    assert found.theta.tolist() == [0.5, -1.0, 1.0, 0.0, 2.0]
    assert found.count == 2.0


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (None, [9]),
        ("1,2,4", [1, 2, 4]),
        ("4,1", [1, 4]),
        ("1-3", [1, 2, 3]),
        ("1, 2-3,3", [1, 2, 3]),
        (2, [2]),
        ([3, 1], [1, 3]),
    ],
)
def test_sizes_of_blocks(text: BlockSizes, sizes: list[int]) -> None:
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


def test_rows_of_spins_from_arrays() -> None:
    for rows in ([[1, -1], [-1, -1]], torch.tensor([[1, 0], [0, 0]]), torch.tensor([[True, False], [False, False]])):
        found = spins(rows)
        assert found.codes.tolist() == [[1, 0], [0, 0]]
        assert found.names == ("1", "2")
    for wrong in ([[1, 2]], [[-1, 0]], [1, 0], torch.zeros(0, 2)):
        with pytest.raises(ValueError, match="rows of spins: expected an array"):
            spins(wrong)  # type: ignore[arg-type]
