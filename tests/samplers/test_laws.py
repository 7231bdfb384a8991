"""Every exact sampler draws from the joint itself: six binary variables, all 64 rows counted, chi-square p > 0.001."""

import pytest
import torch
from scipy.stats import chisquare
from torch import Generator, Tensor

from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import EnumeratedJoint
from anyfill.questions import Factorization, Question, Shuffled
from anyfill.samplers import Confidence, Follow, Gibbs, Sampler, Speculative, sample

DRAWS = 20_000
JOINT = EnumeratedJoint.random(6, 2, generator=Generator().manual_seed(11), concentration=0.5)
EXACT: dict[str, Sampler] = {
    "one by one": Follow(),
    "one by one, shuffled": Follow(Shuffled()),
    "in six groups of one": Follow(groups=6),
    "speculative": Speculative(),
    "Gibbs on pairs": Gibbs(2, rounds=10),
    "Gibbs on all but one": Gibbs(5, rounds=3),
    "most confident first, one at a time": Confidence(6),
}


def draw(policy: Sampler, seed: int) -> Tensor:
    """(DRAWS, 6) from nothing."""
    model = Model(JOINT, Categorical(2), factorizations=Factorization)
    x = torch.zeros(DRAWS, 6, dtype=torch.int64)
    return sample(model, x, Question.of(6, batch=DRAWS), policy=policy, generator=Generator().manual_seed(seed)).x


def p_value(x: Tensor) -> float:
    counts = torch.bincount(x @ (2 ** torch.arange(5, -1, -1)), minlength=64).double()
    expected = JOINT.probabilities.flatten() * DRAWS
    rare = expected < 5  # pooled, as the chi-square law asks for
    pooled = torch.cat([counts[~rare], counts[rare].sum(0, keepdim=True)])
    wanted = torch.cat([expected[~rare], expected[rare].sum(0, keepdim=True)])
    keep = wanted > 0
    return float(chisquare(pooled[keep].numpy(), (wanted[keep] * pooled.sum() / wanted[keep].sum()).numpy()).pvalue)


@pytest.mark.parametrize("name", EXACT)
def test_exact_samplers_draw_from_the_joint(name: str) -> None:
    assert p_value(draw(EXACT[name], seed=5)) > 0.001


@pytest.mark.parametrize("groups", [1, 3])
def test_fewer_groups_than_variables_draw_from_another_law(groups: int) -> None:
    assert p_value(draw(Follow(groups=groups), seed=5)) < 1e-6
