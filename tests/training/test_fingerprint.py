"""Other data have another fingerprint; the same data kept in another way have the same."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from training_standin import AskOne, tiny_model

from anyfill.rows import Rows
from anyfill.training import FitOptions, fit, fit_steps
from anyfill.training import data as module
from anyfill.training.data import fingerprint

VALUES = torch.arange(1200).reshape(300, 4) % 7


def changed(row: int) -> Tensor:
    x = VALUES.clone()
    x[row, 2] += 1
    return x


@pytest.mark.parametrize("count", [1, 3, 64, 65, 127, 128, 129, 300])
def test_every_row_at_either_end_counts(count: int) -> None:
    base = fingerprint(Rows.from_values(VALUES[:count]))
    for row in {0, min(63, count - 1), max(count - 64, 0), count - 1}:
        assert fingerprint(Rows.from_values(changed(row)[:count])) != base
    assert fingerprint(Rows.from_values(VALUES[:count])) == base


def test_every_value_of_few_counts_and_of_many_any_stretch_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    base = fingerprint(Rows.from_values(VALUES))
    assert all(fingerprint(Rows.from_values(changed(row))) != base for row in range(len(VALUES)))
    monkeypatch.setattr(module, "_CELLS", 400)
    monkeypatch.setattr(module, "_SPREAD", 50)
    monkeypatch.setattr(module, "_ENDS", 4)
    base = fingerprint(Rows.from_values(VALUES))
    for start in range(0, 293):
        x = VALUES.clone()
        x[start : start + 7] += 1
        assert fingerprint(Rows.from_values(x)) != base
    read: list[int] = []

    class Counted:
        variables = 4

        def __len__(self) -> int:
            return 300

        def take(self, index: Tensor) -> Rows:
            read.extend(index.tolist())
            return Rows.from_values(VALUES).take(index)

    assert fingerprint(Counted()) == base
    assert len(set(read)) == len(read) <= 58


def test_values_are_read_in_parts_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[int] = []
    take = Rows.take
    monkeypatch.setattr(Rows, "take", lambda self, index: parts.append(len(index)) or take(self, index))
    monkeypatch.setattr(module, "_AT_ONCE", 400)
    fingerprint(Rows.from_values(VALUES))
    assert parts == [100, 100, 100]


def test_a_run_noted_in_the_earlier_manner_is_resumed_and_with_other_data_refused(tmp_path: Path) -> None:
    rows = Rows.from_values((VALUES % 3).double())
    assert fingerprint(Rows.from_values(VALUES), like="0" * 16) == "6d9593c11331d3cb", "as it was written then"
    options = FitOptions(steps=4, batch_size=8, report_every=1, device="cpu")
    earlier = fingerprint(rows, like="0" * 16)
    assert len(earlier) == 16
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anyfill.training.state.fingerprint", lambda rows, **_: fingerprint(rows, like=earlier))
        reports = fit_steps(tiny_model(), rows, AskOne(), options, folder=tmp_path)
        next(reports)
        reports.close()
    other = Rows.from_values(((VALUES + 1) % 3).double())
    with pytest.raises(
        ValueError, match=rf"^rows_content: expected '{earlier}', as in the run .* got '\w{{16}}'; resume"
    ):
        fit(tiny_model(), other, AskOne(), options, folder=tmp_path, resume=True)
    assert fit(tiny_model(), rows, AskOne(), options, folder=tmp_path, resume=True).steps == 4


def test_length_absence_and_context_count_and_the_number_of_bits_does_not() -> None:
    base = fingerprint(Rows.from_values(VALUES))
    seen = {base, fingerprint(Rows.from_values(torch.cat([VALUES[:64], VALUES[:1], VALUES[64:]])))}
    present = torch.ones_like(VALUES, dtype=torch.bool)
    present[0, 0] = False
    seen |= {fingerprint(Rows(VALUES, present))}
    seen |= {fingerprint(Rows.from_values(VALUES, context=VALUES[:, at : at + 1])) for at in (0, 1)}
    assert len(seen) == 5
    assert fingerprint(Rows.from_values(VALUES.to(torch.uint8))) == base
    floats = {fingerprint(Rows.from_values(VALUES.to(dtype))) for dtype in (torch.float32, torch.float64)}
    assert len(floats) == 1
    other = torch.where(present, VALUES, 5)
    assert fingerprint(Rows(other, present)) == fingerprint(Rows(VALUES, present)), "nobody sees an absent value"


def test_a_run_on_zeros_is_not_resumed_with_ones(tmp_path: Path) -> None:
    zeros, ones = Rows.from_values(torch.zeros(40, 4)), Rows.from_values(torch.ones(40, 4))
    options = FitOptions(steps=4, batch_size=8, report_every=1, device="cpu")
    reports = fit_steps(tiny_model(), zeros, AskOne(), options, folder=tmp_path)
    next(reports)
    reports.close()
    with pytest.raises(ValueError, match=r"^rows_content: expected '\w+', as in the run that is to be resumed, got '"):
        fit(tiny_model(), ones, AskOne(), options, folder=tmp_path, resume=True)
    assert fit(tiny_model(), zeros, AskOne(), options, folder=tmp_path, resume=True).steps == 4
