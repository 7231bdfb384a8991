"""Rows conditioned in runs: the answers of each row conditioned by itself."""

import math

import pytest
import torch
from torch import Tensor

from anyfill.tables.gaussians import Factors, Joint, condition, latent_given

D = 20


def joint_of(components: int, dtype: torch.dtype = torch.float64) -> Joint:
    generator = torch.Generator().manual_seed(components)
    root = torch.randn(components, D, 2 * D, generator=generator, dtype=dtype)
    return Joint(
        torch.randn(components, generator=generator, dtype=dtype).log_softmax(0),
        torch.randn(components, D, generator=generator, dtype=dtype),
        root @ root.mT / D + 0.1 * torch.eye(D, dtype=dtype),
    )


def rows_in_runs(lengths: tuple[int, ...], dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Values and what is known: one pattern for each run, the first of nothing, the last of everything."""
    generator = torch.Generator().manual_seed(7)
    pattern = torch.rand(len(lengths), D, generator=generator) < 0.6
    pattern[0], pattern[-1] = False, True
    known = pattern.repeat_interleave(torch.tensor(lengths), 0)
    return torch.randn(len(known), D, generator=generator, dtype=dtype), known


@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.parametrize("lengths", [(30,), (5, 1, 12, 7, 3), (1,) * 25])
def test_runs_answer_as_rows_one_by_one(components: int, lengths: tuple[int, ...]) -> None:
    x, known = rows_in_runs(lengths)
    joint = joint_of(components)
    own = Joint(*(torch.stack([part] * len(x)) for part in joint))  # one for each row: nothing is shared
    found, wanted = condition(joint, x, known), condition(own, x, known)
    for one, other in zip(found, wanted):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_a_row_is_answered_alike_to_the_last_bit_in_any_company() -> None:
    x, known = rows_in_runs((4, 9, 1, 130, 2), torch.float32)
    joint = joint_of(2, torch.float32)
    together = condition(joint, x, known)
    shuffled = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))  # no runs are left
    apart = condition(joint, x[shuffled], known[shuffled])
    for whole, part in zip(together, apart):
        assert torch.equal(whole[shuffled], part)
    for row in (0, 5, 13, 20, 140):
        for whole, part in zip(together, condition(joint, x[row : row + 1], known[row : row + 1])):
            assert torch.equal(whole[row], part[0])


def test_portions_of_a_long_batch_are_put_together_in_order() -> None:
    x, known = rows_in_runs((400, 500, 300), torch.float32)
    joint = joint_of(3, torch.float32)  # 218 rows a portion
    for whole, part in zip(condition(joint, x, known), condition(joint, x[880:930], known[880:930])):
        assert torch.equal(whole[880:930], part)


def test_unknown_features_are_never_read() -> None:
    x, known = rows_in_runs((3, 4, 5))
    spoiled = condition(joint_of(2), x.masked_fill(~known, math.nan), known)
    clean = condition(joint_of(2), x.masked_fill(~known, 9.0), known)
    for one, other in zip(spoiled, clean):
        assert torch.equal(one, other)
        assert bool(one.isfinite().all())


def test_factors_move_the_features_by_what_is_known_of_them() -> None:
    x, known = rows_in_runs((6, 6))
    generator = torch.Generator().manual_seed(1)
    loadings = torch.randn(D, 2, generator=generator, dtype=torch.float64)
    factors = Factors(torch.zeros(D).double(), loadings, torch.ones(D).double())
    mean, _ = latent_given(factors, x, known)
    torch.testing.assert_close(condition(factors, x, known).center, torch.where(known, x, mean @ loadings.T))


def test_no_rows_are_no_trouble() -> None:
    x, known = rows_in_runs((1, 1))
    answer = condition(joint_of(2), x[:0], known[:0])
    assert [tuple(part.shape) for part in answer] == [(0, D), (0, D), (0, 2), (0,)]
