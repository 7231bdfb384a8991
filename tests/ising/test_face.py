"""The public face: ``from anyfill import ising``."""

import doctest
import json
from pathlib import Path

import pytest

import anyfill
from anyfill import ising


def test_the_example_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    tried = doctest.testmod(ising)
    assert tried.attempted >= 4
    assert tried.failed == 0
    assert (tmp_path / "variance.png").read_bytes().startswith(b"\x89PNG")


def test_every_name_is_there() -> None:
    assert "ising" in anyfill.__all__
    assert all(getattr(ising, name) is not None for name in ising.__all__)
    assert set(ising.__all__) <= set(dir(ising))


def test_a_result_is_saved_as_numbers_or_as_a_picture(tmp_path: Path) -> None:
    found = ising.hitting(ising.clique(5, 3, coupling=0.4, field=0.3), k=[1], budget=20, chains=5)
    found.save(tmp_path / "found.json")
    assert json.loads((tmp_path / "found.json").read_text())["results"][0]["k"] == 1
    found.save(tmp_path / "found.svg")
    assert "<svg" in (tmp_path / "found.svg").read_text()
    assert found._repr_png_().startswith(b"\x89PNG")
    assert "1-Gibbs" in repr(found)
    with pytest.raises(ValueError, match=r"found.txt"):
        found.save(tmp_path / "found.txt")


def test_models_say_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text('{"couplings": [[0, 1], [1, 0]]}')
    shown = {
        ising.complete(4, 0.3, pairs="twice"): "Ising(complete graph, N = 4, J = 0.3, h = 0, pairs twice)",
        ising.lattice(3, 4, coupling=0.2, field=1.0): "Ising(lattice 3 x 4, N = 12, J = 0.2, h = 1)",
        ising.random(5, seed=1): "Ising(random couplings and fields of scales 0.3 and 0, N = 5)",
        ising.read(tmp_path / "model.json"): "Ising(model.json, N = 2, 1 edges)",
    }
    for model, words in shown.items():
        assert repr(model) == words
        assert repr(model.with_fixed_fields()) == words
        assert len(model.with_fixed_fields().theta) == len(model.edges)


def test_options_mean_what_they_mean_on_the_command_line() -> None:
    model = ising.complete(3, 0.2)
    assert ising.mixing(model, k="1-2").document == ising.mixing(model, k=[2, 1]).document
    for verb, options, words in (
        (ising.variance, {"rows": 10}, "--rows: expected none without --sampled"),
        (ising.mixing, {"chains": 1, "sampled": True}, "--chains"),
        (ising.variance, {"masks": 0}, "--masks"),
        (ising.fit, {"data": [[1, 0]]}, "columns of the data"),
    ):
        with pytest.raises(ValueError, match=words):
            verb(model, **options)
