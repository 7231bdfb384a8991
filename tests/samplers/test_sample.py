"""Licences: what a sampler refuses, what it completes, and what it does when told to go on."""

import pytest
import torch
from torch import Generator

from anyfill.networks.exact import EnumeratedJoint
from anyfill.networks.network import Unspecified
from anyfill.questions import Decreasing, Factorization, Increasing, Question, Shuffled
from anyfill.samplers import Confidence, EntropyBounded, Follow, Gibbs, Speculative, sample

ROWS = 20_000


@pytest.fixture
def joint():
    return EnumeratedJoint.random(4, 2, generator=Generator().manual_seed(4), concentration=0.5)


def test_an_untrained_model_is_refused_by_name(kit, generator, joint):
    with pytest.raises(ValueError, match="never trained"):
        sample(
            kit.model(joint, 2, factorizations=[]), torch.zeros(1, 4), kit.question(1, [], [0], 4), generator=generator
        )


@pytest.mark.parametrize("policy", [None, Speculative()])
def test_a_model_of_marginals_is_not_sampled_past_what_it_practised(kit, generator, joint, policy):
    model = kit.model(joint, 2, factorizations=[Factorization.DIFFERENCE])
    late = kit.question(5, [2], [0, 3], 4)  # a given variable after an asked one
    x = torch.zeros(5, 4).long()
    with pytest.raises(ValueError, match="objective_inpainting") as error:
        sample(model, x, late, policy=policy, generator=generator)
    assert "difference" in str(error.value)
    assert sample(model, x, late, policy=policy, generator=generator, allow_untrained=True).x.shape == (5, 4)


@pytest.mark.parametrize("given", [[], [0], [0, 1]])
def test_a_model_of_marginals_continues_what_comes_first_in_its_order(kit, generator, joint, given):
    model = kit.model(joint, 2, factorizations=[Factorization.DIFFERENCE])
    question = kit.question(ROWS, given, [2, 3], 4)
    out = sample(model, torch.ones(ROWS, 4).long(), question, generator=generator).x
    law = joint.probabilities
    for j in (0, 1):
        law = law[1] if j in given else law.sum(0)
    assert kit.p_value(out[:, 2:], (law / law.sum()).flatten()) > 0.001


class CompletesOnly(torch.nn.Module, Unspecified):
    """Answers p(x_j | known) truly where all before j is known, and falsely elsewhere: trained for INPAINTING only."""

    def __init__(self, joint):
        super().__init__()
        self.variables, self.joint = joint.variables, joint

    def forward(self, x, known, context=None):
        answers = self.joint(x, known)
        before = torch.nn.functional.pad(known.long().cumprod(1)[:, :-1], (1, 0), value=1).bool()
        return torch.where(before.unsqueeze(2), answers, torch.tensor([0.0, -9.0], dtype=torch.float64))


def test_a_model_of_completions_completes_and_keeps_the_asked_part(kit, generator, joint):
    model = kit.model(CompletesOnly(joint), 2, factorizations=[Factorization.INPAINTING])
    question = kit.question(ROWS, [1], [0, 3], 4)  # variable 2 is ignored, and stands before 3
    x = torch.tensor([0.0, 1.0, torch.nan, 0.0]).expand(ROWS, 4)
    out = sample(model, x, question, generator=generator)
    law = joint.probabilities[:, 1].sum(1)
    assert kit.p_value(out.x[:, [0, 3]], (law / law.sum()).flatten()) > 0.001
    assert bool(out.x[:, 2].isnan().all())
    assert out.passes == 3  # variable 2 was drawn too
    astray = sample(model, x, question, generator=generator, allow_untrained=True)
    assert kit.p_value(astray.x[:, [0, 3]], (law / law.sum()).flatten()) < 1e-6
    assert astray.passes == 2


@pytest.mark.parametrize(
    "policy", [Confidence(2), EntropyBounded(), Gibbs(1, 1), Follow(Decreasing()), Follow(Shuffled())]
)
@pytest.mark.parametrize("factorization", [Factorization.DIRECT, Factorization.INPAINTING, Factorization.DIFFERENCE])
def test_only_a_model_of_any_order_is_sampled_out_of_its_order(kit, generator, joint, policy, factorization):
    question = kit.question(5, [], range(4), 4)
    x = torch.zeros(5, 4).long()
    with pytest.raises(ValueError, match="sampling"):
        sample(kit.model(joint, 2, factorizations=[factorization]), x, question, policy=policy, generator=generator)
    allowed = kit.model(joint, 2, factorizations=[Factorization.ANY_ORDER])
    assert sample(allowed, x, question, policy=policy, generator=generator).passes > 0


def test_parallel_groups_need_conditionals_with_gaps(kit, generator, joint):
    question = kit.question(5, [], range(4), 4)
    x = torch.zeros(5, 4).long()
    completing = kit.model(joint, 2, factorizations=[Factorization.INPAINTING])
    with pytest.raises(ValueError, match="sampling"):
        sample(completing, x, question, policy=Follow(groups=2), generator=generator)
    for factorization in (Factorization.DIRECT, Factorization.DIFFERENCE, Factorization.ANY_ORDER):
        model = kit.model(joint, 2, factorizations=[factorization])
        assert sample(model, x, question, policy=Follow(groups=2), generator=generator).passes == 2


def test_the_default_follows_the_models_own_order(kit, joint):
    model = kit.model(kit.masked(joint), 2, factorizations=[Factorization.DIRECT], order=Decreasing())
    asked = torch.ones(50, 4).bool()
    question = Question(~asked, asked)
    x = torch.zeros(50, 4).long()
    default = sample(model, x, question, generator=Generator().manual_seed(1)).x
    named = sample(model, x, question, policy=Follow(Decreasing()), generator=Generator().manual_seed(1)).x
    other = sample(
        model, x, question, policy=Follow(Increasing()), generator=Generator().manual_seed(1), allow_untrained=True
    ).x
    assert torch.equal(default, named)
    assert not torch.equal(default, other)
