"""Rows that know different features, conditioned in matrices of what each knows."""

import math

import pytest
import torch

from anyfill.tables.conditioning import answered, condition_each, grouped
from anyfill.tables.gaussians import Joint, condition, per_component

D = 11


def joint_of(components: int) -> Joint:
    generator = torch.Generator().manual_seed(components)
    root = torch.randn(components, D, 2 * D, generator=generator, dtype=torch.float64)
    return Joint(
        torch.randn(components, generator=generator, dtype=torch.float64).log_softmax(0),
        torch.randn(components, D, generator=generator, dtype=torch.float64),
        root @ root.mT / D + 0.1 * torch.eye(D, dtype=torch.float64),
    )


def rows() -> tuple[torch.Tensor, torch.Tensor]:
    """Some rows; the first knows nothing, the last everything."""
    generator = torch.Generator().manual_seed(5)
    known = torch.rand(40, D, generator=generator) < torch.rand(40, 1, generator=generator)
    known[0], known[-1] = False, True
    return torch.randn(40, D, generator=generator, dtype=torch.float64), known


@pytest.mark.parametrize("components", [1, 3])
def test_it_answers_as_conditioning_does(components: int) -> None:
    x, known = rows()
    joint = joint_of(components)
    for found, wanted in zip(condition_each(joint, x, known), condition(joint, x, known)):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)


def test_every_row_is_in_one_group_with_its_known_features_first() -> None:
    _, known = rows()
    groups = list(grouped(known, 2))
    assert torch.cat([group.rows for group in groups]).sort().values.tolist() == list(range(len(known)))
    for group in groups:
        assert torch.equal(group.real.sum(1), known[group.rows].sum(1))
        assert bool(known[group.rows].gather(1, group.first)[group.real].all())


def test_a_row_is_answered_alike_to_the_last_bit_in_any_company() -> None:
    x, known = rows()
    joint = joint_of(2)
    together = condition_each(joint, x, known)
    for row in range(len(x)):
        for whole, part in zip(together, condition_each(joint, x[row : row + 1], known[row : row + 1])):
            assert torch.equal(whole[row : row + 1], part)


def test_values_that_are_not_known_are_never_read() -> None:
    x, known = rows()
    spoiled = condition_each(joint_of(2), x.masked_fill(~known, math.nan), known)
    for one, other in zip(spoiled, condition_each(joint_of(2), x, known)):
        assert torch.equal(one, other)


def test_what_is_explained_is_that_of_each_component_and_nothing_at_known_features() -> None:
    x, known = rows()
    joint = joint_of(3)
    wanted = per_component(joint, x, known)
    for group in grouped(known, 3):
        found = answered(joint, x, group, unknown_only=True)
        for k in range(3):
            for place, row in enumerate(group.rows.tolist()):
                u = ~known[row]
                own, other = found.explained[k, place], wanted.explained[row, k]
                torch.testing.assert_close((own.T @ own)[u][:, u], (other.T @ other)[u][:, u], rtol=1e-9, atol=1e-9)
                assert not own[:, known[row]].any()


def test_no_row_is_no_answer() -> None:
    x, known = rows()
    assert condition_each(joint_of(2), x[:0], known[:0]).center.shape == (0, D)
