"""Conditioning a mixture of joint Gaussians, against partitioned inverses and the law of total variance."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from anyfill.tables.gaussians import Expansion, Joint, condition, per_component, take

D = 4


def joint_of(components: int, seed: int = 0) -> Joint:
    generator = torch.Generator().manual_seed(seed)
    root = torch.randn(components, D, 2 * D, generator=generator, dtype=torch.float64)
    return Joint(
        torch.randn(components, generator=generator, dtype=torch.float64).log_softmax(0),
        torch.randn(components, D, generator=generator, dtype=torch.float64),
        root @ root.mT / D + 0.1 * torch.eye(D, dtype=torch.float64),
    )


def by_inverse(joint: Joint, k: int, x: Tensor, known: list[int]) -> tuple[Tensor, Tensor, float]:
    """Mean and variance of the unknown features, log w N of the known ones: the textbook formula."""
    unknown = [d for d in range(D) if d not in known]
    sigma, mu = joint.covariances[k], joint.means[k]
    away = x[known] - mu[known]
    inverse = torch.linalg.inv(sigma[known][:, known])
    gain = sigma[unknown][:, known] @ inverse
    variance = (sigma[unknown][:, unknown] - gain @ sigma[known][:, unknown]).diagonal()
    log_density = -0.5 * float(away @ inverse @ away) - 0.5 * float(torch.logdet(2 * math.pi * sigma[known][:, known]))
    return mu[unknown] + gain @ away, variance, log_density + float(joint.log_weights[k])


@pytest.mark.parametrize("known", [list(s) for n in (1, 2, 3) for s in itertools.combinations(range(D), n)])
def test_each_component_is_conditioned_as_the_partitioned_inverse_says(known: list[int]) -> None:
    joint, x = joint_of(2), torch.randn(D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    told = torch.zeros(1, D, dtype=torch.bool)
    told[0, known] = True
    unknown = [d for d in range(D) if d not in known]
    answer = per_component(joint, x.unsqueeze(0), told)
    for k in range(2):
        mean, variance, log_density = by_inverse(joint, k, x, known)
        torch.testing.assert_close(answer.mean[0, k, unknown], mean)
        torch.testing.assert_close(answer.variance[0, k, unknown], variance)
        assert float(answer.log_density[0, k]) == pytest.approx(log_density)


def test_center_and_variance_are_those_of_the_mixture() -> None:
    joint, x = joint_of(3), torch.zeros(1, D, dtype=torch.float64)
    told = torch.tensor([[True, False, False, False]])
    whole, parts = condition(joint, x, told), per_component(joint, x, told)
    share = whole.log_share.exp()
    draws = sum(share[0, k] * (parts.variance[0, k] + parts.mean[0, k] ** 2) for k in range(3))
    torch.testing.assert_close((whole.variance + whole.center**2)[0, 1:], torch.as_tensor(draws)[1:])
    assert float(share.sum()) == pytest.approx(1.0)
    assert float(whole.center[0, 0]) == 0.0
    assert float(whole.variance[0, 0]) == 0.0


def test_nothing_known_gives_the_marginals_and_everything_known_the_values() -> None:
    joint, x = joint_of(1), torch.randn(1, D, dtype=torch.float64)
    nothing = condition(joint, x, torch.zeros(1, D, dtype=torch.bool))
    torch.testing.assert_close(nothing.center, joint.means)
    torch.testing.assert_close(nothing.variance, joint.covariances.diagonal(dim1=-2, dim2=-1))
    everything = condition(joint, x, torch.ones(1, D, dtype=torch.bool))
    torch.testing.assert_close(everything.center, x)


def test_unknown_features_are_never_read() -> None:
    joint, told = joint_of(2), torch.tensor([[True, False, True, False]])
    x = torch.tensor([[0.5, math.nan, -1.0, math.nan]], dtype=torch.float64)
    spoiled, clean = condition(joint, x, told), condition(joint, x.nan_to_num(9.0), told)
    for one, other in zip(spoiled, clean):
        torch.testing.assert_close(one, other)
        assert bool(one.isfinite().all())


def test_a_joint_for_each_row_equals_each_joint_alone() -> None:
    stack = Joint(*(torch.stack(parts) for parts in zip(joint_of(2, 1), joint_of(2, 2))))
    x = torch.randn(4, D, dtype=torch.float64)
    told = torch.rand(4, D, generator=torch.Generator().manual_seed(3)) < 0.5
    which = torch.tensor([0, 1, 1, 0])
    together = condition(take(stack, which), x, told)
    for i, number in enumerate(which.tolist()):
        alone = condition(Joint(*(part[number] for part in stack)), x[i : i + 1], told[i : i + 1])
        torch.testing.assert_close(together.center[i : i + 1], alone.center)
        torch.testing.assert_close(together.log_density[i : i + 1], alone.log_density)


def test_expansion_is_one_hot_for_codes_and_the_number_itself() -> None:
    expansion = Expansion((0, 3, 0, 2))
    x = torch.tensor([[1.5, 2.0, -0.5, 0.0]])
    torch.testing.assert_close(expansion.expand(x), torch.tensor([[1.5, 0.0, 0.0, 1.0, -0.5, 1.0, 0.0]]))
    told = expansion.spread(torch.tensor([[True, False, False, True]]))
    assert told.tolist() == [[True, False, False, False, False, True, True]]
