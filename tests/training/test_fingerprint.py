"""Other data have another fingerprint; the same data kept in another way have the same."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from training_standin import AskOne, tiny_model

from anyfill.data.rows import Rows
from anyfill.training import FitOptions, fit, fit_steps
from anyfill.training.fingerprint import fingerprint

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
