"""Mixtures of joint Gaussians from tables with holes."""

from itertools import pairwise

import torch
from torch import Tensor

from anyfill.tables.gaussian_mixture import fit_joint
from anyfill.tables.gaussians import Joint, condition, per_component
from anyfill.tables.starts import SHRINKS, choose_components, choose_rank, choose_shrink


def two_groups(rows: int, generator: torch.Generator) -> Tensor:
    """Two groups, each with its own sign of correlation: one Gaussian sees none at all."""
    z = torch.randn(rows, 1, generator=generator, dtype=torch.float64)
    noise = 0.2 * torch.randn(rows, 3, generator=generator, dtype=torch.float64)
    sign = torch.where(torch.rand(rows, 1, generator=generator) < 0.5, -1.0, 1.0).double()
    return torch.cat([z, sign * z, 3 * sign], 1) + noise


def log_likelihood(joint: Joint, x: Tensor, known: Tensor) -> float:
    return float(per_component(joint, x, known).log_density.logsumexp(1).sum())


def test_on_complete_data_one_component_is_the_sample_mean_and_almost_the_sample_covariance() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4000, 3, generator=generator, dtype=torch.float64) @ torch.randn(3, 3, dtype=torch.float64)
    joint = fit_joint(x, torch.ones_like(x, dtype=torch.bool), 1, generator=generator)
    torch.testing.assert_close(joint.means[0], x.mean(0), atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(joint.covariances[0], x.T.cov(correction=0), atol=0.02, rtol=0.01)


def test_more_steps_do_not_lower_the_likelihood_beyond_what_the_prior_takes() -> None:
    generator = torch.Generator().manual_seed(1)
    x = two_groups(400, generator)
    known = torch.rand(x.shape, generator=generator) < 0.7
    values = [
        log_likelihood(fit_joint(x, known, 1, steps=steps, generator=generator), x.masked_fill(~known, 0), known)
        for steps in (1, 3, 10, 30)
    ]
    assert all(later > earlier - 0.5 for earlier, later in pairwise(values))
    assert values[-1] > values[0]


def test_groups_with_opposite_slopes_are_found_and_predict_better() -> None:
    generator = torch.Generator().manual_seed(2)
    x = two_groups(600, generator)
    known = torch.ones_like(x, dtype=torch.bool)
    known[:300, 1] = False
    errors = {}
    for count in (1, 2):
        joint = fit_joint(x, known, count, generator=generator)
        center = condition(joint, x.masked_fill(~known, 0.0), known).center
        errors[count] = float((center - x)[:300, 1].square().mean().sqrt())
    assert errors[2] < 0.4 < 0.8 < errors[1]
    assert choose_components(x, known, (1, 2), generator=generator) == (2,)
    assert choose_components(x, known, (1, 2), 2, generator=generator) == (1, 2)


def test_few_factors_are_chosen_where_few_rows_have_few_and_none_where_rows_say_more() -> None:
    generator = torch.Generator().manual_seed(6)
    z = torch.randn(60, 1, generator=generator, dtype=torch.float64)
    x = z + 0.7 * torch.randn(60, 12, generator=generator, dtype=torch.float64)
    known = torch.rand(x.shape, generator=generator) < 0.6
    assert choose_rank(x, known, (1, 2, 4, 8), generator=generator) in (1, 2)
    root = torch.randn(6, 6, generator=generator, dtype=torch.float64)
    x = torch.randn(1500, 6, generator=generator, dtype=torch.float64) @ root
    known = torch.rand(x.shape, generator=generator) < 0.8
    assert choose_rank(x, known, (1, 2), generator=generator) == 0


def test_a_common_shape_of_few_factors_is_kept_to() -> None:
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(20, 10, generator=generator, dtype=torch.float64)
    known = torch.ones_like(x, dtype=torch.bool)
    for rank in (0, 1):
        joint = fit_joint(x, known, 2, rank, generator=torch.Generator().manual_seed(8))
        assert bool(torch.linalg.eigvalsh(joint.covariances).gt(0).all())
        shrunk = joint.covariances.mean(0)
        shrunk = shrunk - torch.diag(shrunk.diagonal())
        if rank == 0:
            free = shrunk
        else:
            assert float(shrunk.square().sum()) < float(free.square().sum())


def test_on_complete_data_the_pull_takes_its_share_of_every_covariance_and_leaves_variances() -> None:
    generator = torch.Generator().manual_seed(9)
    root = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    x = torch.randn(300, 4, generator=generator, dtype=torch.float64) @ root
    known = torch.ones_like(x, dtype=torch.bool)
    free, drawn = (fit_joint(x, known, 1, 0, shrink, generator=generator) for shrink in (0.0, 0.3))
    expected = 0.7 * free.covariances + 0.3 * torch.diag_embed(free.covariances.diagonal(dim1=-2, dim2=-1))
    torch.testing.assert_close(drawn.covariances, expected, atol=1e-5, rtol=1e-3)
    torch.testing.assert_close(drawn.means, free.means)


def test_a_pull_is_chosen_where_few_rows_say_little_and_none_where_many_say_much() -> None:
    generator = torch.Generator().manual_seed(10)
    z = torch.randn(60, 1, generator=generator, dtype=torch.float64)
    x = 0.4 * z + torch.randn(60, 12, generator=generator, dtype=torch.float64)
    known = torch.rand(x.shape, generator=generator) < 0.7
    assert choose_shrink(x, known, 2, generator=generator) == max(SHRINKS)
    x = two_groups(300, generator)
    assert choose_shrink(x, torch.ones_like(x, dtype=torch.bool), 2, generator=generator) == 0.0


def test_the_same_generator_gives_the_same_joint() -> None:
    x = two_groups(200, torch.Generator().manual_seed(3))
    known = torch.ones_like(x, dtype=torch.bool)
    first, second = (fit_joint(x, known, 3, generator=torch.Generator().manual_seed(4)) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, second))


def test_few_rows_constant_and_missing_columns_stay_positive_definite() -> None:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(12, 6, generator=generator, dtype=torch.float64)
    x[:, 2] = 1.0
    known = torch.rand(x.shape, generator=generator) < 0.5
    known[:, 3] = False
    for count in (1, 3):
        joint = fit_joint(x, known, count, generator=generator)
        assert bool(torch.linalg.eigvalsh(joint.covariances).gt(0).all())
        assert all(bool(part.isfinite().all()) for part in joint)
