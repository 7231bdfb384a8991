"""The direct answer follows the joint's posterior: its divergence by hand, 0 where both agree, less after training."""

import itertools

import pytest
import torch

from anyfill.objectives import OnePassLoss, PosteriorLoss
from anyfill.questions import Question, UniformSplits
from anyfill.questions.question import chain_rank
from anyfill.rank import NEVER
from anyfill.rows import Rows

CODES, LENGTH = 3, 6


def objective(**options) -> PosteriorLoss:
    return PosteriorLoss(UniformSplits(LENGTH), **{"proposals": 3, "redrawn": 0.0, "texts": 1, "longest": 6} | options)


def readings(model, x: torch.Tensor, start: int, answers: list[tuple[int, ...]]) -> tuple[torch.Tensor, torch.Tensor]:
    """log p of each answer for the blank at ``start``, direct and by the joint, one pass for each."""
    direct, joint = [], []
    for answer in answers:
        row = x.clone().unsqueeze(0)
        row[0, start : start + len(answer)] = torch.tensor(answer)
        asked = (torch.arange(LENGTH) >= start)[None] & (torch.arange(LENGTH) < start + len(answer))[None]
        everything = torch.ones_like(asked)
        with torch.no_grad():
            terms = model.chain(row, chain_rank(model.order, Question(~asked, asked))).log_prob(row)
            direct.append(torch.where(asked, terms, 0.0).sum())
            whole = chain_rank(model.order, Question(~everything, everything))
            joint.append(model.chain(row, whole).log_prob(row).sum())
    return torch.stack(direct), torch.stack(joint)


def divergence(direct: torch.Tensor, joint: torch.Tensor) -> float:
    q, r = joint.double().log_softmax(0), direct.double().log_softmax(0)
    return float((q.exp() * (q - r)).sum())


def test_independent_variables_agree_whatever_is_proposed(tiny_model, generator) -> None:
    model = tiny_model(CODES, LENGTH)
    for parameter in model.network.parameters():
        parameter.data.zero_()
    x = torch.randint(CODES, (64, LENGTH), generator=generator)
    rule = objective(redrawn=0.5)
    found = rule.divergence(model, Rows(x, torch.ones_like(x, dtype=torch.bool)), generator=generator)
    assert found.abs().max() < 1e-6


def test_with_all_codes_proposed_it_is_the_divergence_from_the_exact_posterior(tiny_model) -> None:
    model, x = tiny_model(CODES, LENGTH), torch.tensor([0, 1, 2, 2, 1, 0])
    rows = Rows(x.repeat(2, 1), torch.ones(2, LENGTH, dtype=torch.bool))
    made = [
        objective().divergence(model, rows, generator=torch.Generator().manual_seed(seed)).tolist()
        for seed in range(80)
    ]
    one = {
        round(divergence(*readings(model, x, place, [(code,) for code in range(CODES)])), 5) for place in range(LENGTH)
    }
    assert {round(each[0], 5) for each in made} == one
    two: set[float] = set()
    for place in range(LENGTH - 1):
        first, second = int(x[place]), int(x[place + 1])
        for other, behind, instead in itertools.product(range(CODES), repeat=3):
            if other != first and instead != second:
                answers = [(first, second), (first, instead), (other, behind)]
                two.add(round(divergence(*readings(model, x, place, answers)), 5))
    assert {round(each[1], 5) for each in made} <= two
    assert len({round(each[1], 5) for each in made}) > 20


def test_lone_texts_are_whole_lines_from_place_0_with_or_without_their_break(generator) -> None:
    x = torch.tensor([[1, 2, 3, 2, 2, 1, 3, 1, 1, 2]])
    rule = objective(texts=3, longest=5, breaks=3)
    seen: set[tuple[int, ...]] = set()
    for _ in range(40):
        alone = rule.lone_texts(Rows(x, torch.ones_like(x, dtype=torch.bool)), generator=generator)
        lines = [tuple(row[present].tolist()) for row, present in zip(alone.x, alone.present)]
        assert sorted(line[:2] for line in lines) == [(1, 1), (1, 2), (2, 2)], "each once"
        assert all(int(present.sum()) == int(present.long().cumprod(0).sum()) for present in alone.present)
        seen |= set(lines)
    assert seen == {(1, 2), (1, 2, 3), (2, 2, 1), (2, 2, 1, 3), (1, 1, 2)}
    few = rule.lone_texts(Rows(x, torch.arange(10)[None] < 2), generator=generator)
    assert few.present.any(1).tolist().count(True) == 1


def test_the_loss_is_that_of_the_chain_and_the_weighted_divergence(tiny_model) -> None:
    model, rule = tiny_model(CODES, LENGTH), objective(follow_weight=2.0)
    x = torch.randint(CODES, (8, LENGTH), generator=torch.Generator().manual_seed(0))
    rows = Rows(x, torch.ones_like(x, dtype=torch.bool))
    rank = rule.sample_rank(8, generator=torch.Generator().manual_seed(2))
    plain = OnePassLoss(UniformSplits(LENGTH)).loss(model, rows, rank)
    source = torch.Generator().manual_seed(1)
    expected = plain + 2.0 * rule.divergence(model, rule.lone_texts(rows, generator=source), generator=source)
    assert torch.allclose(rule.loss(model, rows, rank, generator=torch.Generator().manual_seed(1)), expected)
    assert torch.equal(rule.loss(model, rows, rank), plain), "without a generator nothing is drawn"
    assert rule.factorizations == OnePassLoss(UniformSplits(LENGTH)).factorizations


def test_steps_bring_the_direct_answer_to_the_joint(tiny_model) -> None:
    model, rule = tiny_model(CODES, LENGTH).train(), objective(redrawn=0.3)
    x = torch.randint(CODES, (64, LENGTH), generator=torch.Generator().manual_seed(0))
    rows = Rows(x, torch.ones_like(x, dtype=torch.bool))

    def gap(seed: int) -> torch.Tensor:
        return rule.divergence(model, rows, generator=torch.Generator().manual_seed(seed)).mean()

    before = float(gap(0).detach())
    steps = torch.optim.Adam(model.parameters(), lr=0.003)
    for seed in range(1, 40):
        steps.zero_grad()
        gap(seed).backward()
        steps.step()
    assert float(gap(0).detach()) < 0.5 * before


def test_what_is_drawn_anew_is_a_share_and_never_a_break(tiny_model, generator) -> None:
    model, rule = tiny_model(4, LENGTH), objective(redrawn=0.4, breaks=3)
    x = torch.tensor([[0, 1, 2, 0, 3, 0]]).repeat(4000, 1)
    present = torch.arange(LENGTH).expand_as(x) < 5
    everything = torch.where(present, torch.arange(LENGTH).expand_as(x), NEVER)
    drawn, _ = rule._redrawn(model, Rows(x, present), everything, torch.zeros(4000, dtype=torch.int64), generator)
    assert torch.equal(drawn[:, 4:], x[:, 4:]), "neither the break nor what is not there"
    with torch.no_grad():
        terms = model.chain(x, everything, strict=True).log_probs.exp()[0, :4]
    expected = 0.4 * (1.0 - terms.gather(1, x[0, :4, None])[:, 0] - terms[:, 3])  # another value, and no break
    found = (drawn != x)[:, :4].double().mean(0)
    assert ((found - expected).abs() < 5 * (0.25 / 4000) ** 0.5).all(), "five standard errors at each of four places"


def test_wrong_settings_are_refused() -> None:
    for wrong in ({"follow_weight": 0.0}, {"texts": 0}, {"longest": 2}, {"proposals": 2}, {"redrawn": 1.5}):
        with pytest.raises(ValueError, match="expected"):
            objective(**wrong)
