"""A table's columns and its model's parts agree."""

import torch

from anyfill.likelihoods import Categorical, SpikedMixture
from anyfill.tables.recipes import likelihood_of, mlp_model
from anyfill.tables.table import Table
from anyfill.training import load_model, save_model

TABLE = Table.of({"a": [0.5, 2.25, 3.75], "b": ["x", "y", "z"], "c": [True, False, True]})


def test_kind_and_likelihood() -> None:
    assert mlp_model(TABLE).network.kind.sizes == (0, 3, 2)
    number, letter, flag = likelihood_of(TABLE, components=5).columns
    assert (number, letter, flag) == (SpikedMixture(5, min_scale=0.02), Categorical(3), Categorical(2))


def test_a_grid_has_its_step_and_a_value_that_repeats_its_spike() -> None:
    counts = [0] * 60 + list(range(1, 41))
    table = Table.of({"count": counts})
    column = likelihood_of(table).columns[0]
    number = table.number(0)
    assert isinstance(column, SpikedMixture)
    assert number is not None
    assert column.step == 1 / number.scale
    assert column.spikes == (-number.location / number.scale,)


def test_the_seed_decides_the_weights_and_moves_nothing_else() -> None:
    state = torch.get_rng_state()
    one, same, other = (mlp_model(TABLE, seed=seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_it_can_be_saved_with_its_table(tmp_path) -> None:
    model = mlp_model(TABLE)
    save_model(model, tmp_path / "m", notes={"columns": TABLE.to_json()})
    again = load_model(tmp_path / "m")
    rows = TABLE.encode({"a": [2.5]}, absent="missing")
    params, same = (m.eval().network(rows.x, rows.present) for m in (model, again))
    assert torch.equal(params, same)
