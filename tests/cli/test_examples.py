"""The example data is what it says it is, and its split never moves."""

import torch

from anyfill.cli.examples import digits, made_up_penguins, penguins


def test_digits() -> None:
    data = digits()
    assert (len(data.train), len(data.test)) == (1438, 359)
    assert data.train.x.dtype == torch.int64
    assert int(data.train.x.min()) == 0
    assert int(data.train.x.max()) == data.levels - 1
    assert data.test.x[:3].sum(1).tolist() == digits().test.x[:3].sum(1).tolist()
    assert sorted(set(data.test_labels.tolist())) == list(range(10))
    together = torch.cat([data.train.x, data.test.x])
    assert len(together) == 1797


def test_penguins() -> None:
    data = penguins()
    assert (len(data.train), len(data.test)) == (275, 69)
    assert data.table.sizes == (3, 3, 0, 0, 0, 0, 2, 3)
    missing = int((~data.train.present).sum()) + int((~data.test.present).sum())
    assert missing == 24
    back = data.table.decode(data.test.x, data.test.present)
    assert back["species"].tolist() == data.test_frame["species"].tolist()
    wanted = data.test_frame["body_mass_g"].tolist()
    assert all(a == b or (a is None or a != a) for a, b in zip(back["body_mass_g"].tolist(), wanted, strict=True))


def test_made_up_penguins_follow_their_law() -> None:
    """20,000 of them: shares within 2 points, means within 1 percent, correlations within 0.05 of what is stated."""
    many = made_up_penguins(20_000, seed=1)
    assert many["species"].value_counts(normalize=True).round(2).sub([0.44, 0.36, 0.20]).abs().max() < 0.02
    assert set(many[many["species"] == "Gentoo"]["island"]) == {"Biscoe"}
    assert set(many[many["species"] == "Chinstrap"]["island"]) == {"Dream"}
    adelie = many[(many["species"] == "Adelie") & (many["sex"] == "male")]
    means = adelie[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]].mean()
    assert (means / [40.4, 19.1, 192.0, 4040.0] - 1).abs().max() < 0.01
    assert abs(adelie["bill_length_mm"].corr(adelie["body_mass_g"]) - 0.6) < 0.05
    assert many["sex"].isna().mean().round(2) == 0.03
    assert many["body_mass_g"].isna().mean().round(2) == 0.01
    assert many["bill_depth_mm"].isna().equals(many["body_mass_g"].isna())
