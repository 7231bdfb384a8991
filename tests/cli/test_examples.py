"""The example data is what it says it is, and its split never moves."""

import torch

from anyfill.cli.examples import digits, penguins


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
    assert missing == 19  # the data set's own count
    back = data.table.decode(data.test.x, data.test.present)
    assert back["species"].tolist() == data.test_frame["species"].tolist()
    wanted = data.test_frame["body_mass_g"].tolist()
    assert all(a == b or (a is None or a != a) for a, b in zip(back["body_mass_g"].tolist(), wanted, strict=True))
