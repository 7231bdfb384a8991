"""Two readings of one question: their penalty by hand, none where they agree, and less of it after training for it."""

import itertools

import pytest
import torch
from torch.nn import functional

from anyfill.objectives import AgreeingLoss, OnePassLoss
from anyfill.objectives.agreement import _blanks
from anyfill.questions import Question, UniformSplits
from anyfill.questions.question import chain_rank
from anyfill.rows import Rows


def objective(**options) -> AgreeingLoss:
    return AgreeingLoss(UniformSplits(6), **options)


def test_independent_variables_agree_whatever_is_drawn(tiny_model, generator) -> None:
    model = tiny_model(3, 6)
    for parameter in model.network.parameters():
        parameter.data.zero_()
    x = torch.randint(3, (64, 6), generator=generator)
    found = objective().disagreement(model, Rows(x, torch.ones_like(x, dtype=torch.bool)), generator=generator)
    assert found.abs().max() < 1e-10


def test_the_penalty_is_hubers_of_both_differences(tiny_model) -> None:
    model, rule = tiny_model(3, 6), objective(max_span=1)
    x = torch.tensor([[0, 1, 2, 2, 1, 0]])
    present = torch.tensor([[True] * 5 + [False]])
    made = {
        float(rule.disagreement(model, Rows(x, present), generator=torch.Generator().manual_seed(seed)))
        for seed in range(60)
    }
    expected = set()
    for place in range(5):
        asked = (torch.arange(6) == place)[None] & present
        with torch.no_grad():
            direct = model.chain(
                x, torch.where(present, chain_rank(model.order, Question(present & ~asked, asked)), 99)
            )
            for code in range(3):
                other = torch.where(asked, code, x)
                gap = (direct.log_prob(x) - direct.log_prob(other))[0, place]
                whole = torch.where(present, chain_rank(model.order, Question(~present & False, present)), 99)
                joint = [model.chain(one, whole).log_prob(one)[0, :5].sum() for one in (x, other)]
                expected.add(float(functional.smooth_l1_loss(gap, joint[0] - joint[1])))
    assert all(min(abs(one - other) for other in expected) < 1e-5 for one in made)
    assert len({round(one, 5) for one in made}) > 5


def test_the_loss_is_that_of_the_chain_and_the_penalty_of_a_share(tiny_model, generator) -> None:
    model, rule = tiny_model(3, 6), objective(agree_share=0.25, agree_weight=2.0)
    x = torch.randint(3, (8, 6), generator=generator)
    rows = Rows(x, torch.ones_like(x, dtype=torch.bool))
    rank = rule.sample_rank(8, generator=generator)
    plain = OnePassLoss(UniformSplits(6)).loss(model, rows, rank)
    found = rule.loss(model, rows, rank, generator=torch.Generator().manual_seed(1))
    few = Rows(x[:2], rows.present[:2])
    penalty = rule.disagreement(model, few, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(found, plain + functional.pad(2.0 / 0.25 * penalty, (0, 6)), atol=1e-5)
    assert torch.equal(rule.loss(model, rows, rank), plain), "without a generator nothing is drawn"
    assert rule.factorizations == OnePassLoss(UniformSplits(6)).factorizations


def test_steps_against_the_penalty_bring_the_readings_together(tiny_model) -> None:
    model, rule = tiny_model(3, 6).train(), objective()
    x = torch.randint(3, (64, 6), generator=torch.Generator().manual_seed(0))
    rows = Rows(x, torch.ones_like(x, dtype=torch.bool))

    def gap(seed: int) -> torch.Tensor:
        return rule.disagreement(model, rows, generator=torch.Generator().manual_seed(seed)).mean()

    before = float(gap(0))
    steps = torch.optim.Adam(model.parameters(), lr=0.003)
    for seed in range(1, 40):
        steps.zero_grad()
        gap(seed).backward()
        steps.step()
    assert float(gap(0)) < 0.5 * before


def test_wrong_settings_are_refused() -> None:
    for wrong in ({"agree_share": 0.0}, {"agree_weight": 0.0}, {"max_span": 0}):
        with pytest.raises(ValueError, match="expected"):
            objective(**wrong)


def test_texts_that_breaks_part_are_compared_each_by_itself(tiny_model) -> None:
    """With a model whose variables are independent but for one code that all fear, by hand over every place."""
    model, rule = tiny_model(4, 6), objective(max_span=1, breaks=3)
    x = torch.tensor([[0, 1, 3, 2, 1, 3]])
    present = torch.ones_like(x, dtype=torch.bool)
    made = {
        round(float(rule.disagreement(model, Rows(x, present), generator=torch.Generator().manual_seed(seed))), 4)
        for seed in range(300)
    }
    expected = set()
    for first, second in itertools.product((0, 1), (3, 4)):
        asked = ((torch.arange(6) == first) | (torch.arange(6) == second))[None]
        with torch.no_grad():
            direct = model.chain(x, chain_rank(model.order, Question(~asked, asked)))
            whole = chain_rank(model.order, Question(~present, present))
            for codes in itertools.product(range(4), repeat=2):
                other = x.clone()
                other[0, first], other[0, second] = codes
                gap = (direct.log_prob(x) - direct.log_prob(other))[0]
                joint = (model.chain(x, whole).log_prob(x) - model.chain(other, whole).log_prob(other))[0]
                parts = (gap[first], joint[first:3].sum()), (gap[second], joint[second:].sum())
                expected.add(float(sum(functional.smooth_l1_loss(*each) for each in parts)))
    assert all(min(abs(one - other) for other in expected) < 2e-4 for one in made)
    assert len(made) > 20


def test_blanks_lie_within_their_texts_and_never_on_a_break(generator) -> None:
    ends = torch.rand(200, 12, generator=generator) < 0.3
    text = ends.long().cumsum(1) - ends.long()
    asked, last = _blanks(~ends, text, 2, generator)
    assert not (asked & ends).any()
    assert not (last & ~asked).any()
    sizes = torch.zeros_like(text).scatter_add(1, text, asked.long())
    room = torch.zeros_like(text).scatter_add(1, text, (~ends).long())
    assert bool((sizes[room > 0] >= 1).all())
    assert int(sizes.max()) == 2
    assert torch.equal(torch.zeros_like(text).scatter_add(1, text, last.long()), (room > 0).long())
