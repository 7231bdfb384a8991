"""Following a teacher: every term by enumeration, itself as the best answer, and what is learnt from any rows."""

import itertools

import pytest
import torch

from anyfill.objectives import FollowingLoss, OnePassLoss
from anyfill.questions import UniformSplits
from anyfill.rank import NEVER
from anyfill.rows import Rows
from anyfill.training import FitOptions, fit

CODES, LENGTH = 3, 4


def law(model, row: torch.Tensor, rank: torch.Tensor, variable: int) -> torch.Tensor:
    """p(x_variable = k | all before it in the rank), k by k: a row for each, what comes later out of sight."""
    found = []
    for code in range(CODES):
        x = torch.where(rank < rank[variable], row, 0).unsqueeze(0)
        x[0, variable] = code
        seen = torch.where(rank <= rank[variable], rank, NEVER).unsqueeze(0)
        with torch.no_grad():
            found.append(model.chain(x, seen).log_prob(x)[0, variable].exp())
    return torch.stack(found)


def following(teacher, **options) -> FollowingLoss:
    return FollowingLoss(UniformSplits(LENGTH), teacher=teacher, **options)


@pytest.mark.parametrize("conditioned", [0.0, 1.0])
def test_the_loss_is_the_cross_entropy_of_every_scored_term(tiny_model, generator, conditioned) -> None:
    student, teacher = tiny_model(CODES, LENGTH), tiny_model(CODES, LENGTH, seed=1)
    rule = following(teacher, conditioned_share=conditioned)
    rows = Rows.from_values(torch.randint(CODES, (12, LENGTH), generator=generator))
    rank = rule.sample_rank(len(rows), generator=generator)
    found = rule.loss(student, rows, rank)
    for number, (row, own) in enumerate(zip(rows.x, rank)):
        terms = [
            -(law(teacher, row, own, variable) * law(student, row, own, variable).log()).sum()
            for variable in range(LENGTH)
            if own[variable] >= 0
        ]
        assert found[number].item() == pytest.approx(sum(terms).item(), abs=1e-5)


def test_nothing_is_better_than_the_teacher_itself(tiny_model, generator) -> None:
    teacher = tiny_model(CODES, LENGTH)
    rule = following(teacher)
    rows = Rows.from_values(torch.randint(CODES, (16, LENGTH), generator=generator))
    rank = rule.sample_rank(len(rows), generator=generator)
    own = tiny_model(CODES, LENGTH)
    least = rule.loss(own, rows, rank)
    least.sum().backward()
    assert max(float(weights.grad.abs().max()) for weights in own.parameters() if weights.grad is not None) < 1e-5
    assert all(weights.grad is None for weights in teacher.parameters())
    for seed in range(1, 4):
        assert bool((rule.loss(tiny_model(CODES, LENGTH, seed=seed), rows, rank) >= least).all())


def test_a_share_mixes_the_data_and_the_teacher(tiny_model, generator) -> None:
    student, teacher = tiny_model(CODES, LENGTH), tiny_model(CODES, LENGTH, seed=1)
    rows = Rows.from_values(torch.randint(CODES, (8, LENGTH), generator=generator))
    data = OnePassLoss(UniformSplits(LENGTH))
    rank = data.sample_rank(len(rows), generator=generator)
    alone, led = data.loss(student, rows, rank), following(teacher).loss(student, rows, rank)
    mixed = following(teacher, share=0.25).loss(student, rows, rank)
    assert torch.allclose(mixed, 0.75 * alone + 0.25 * led, atol=1e-5)
    assert torch.equal(following(teacher, share=0.0).loss(student, rows, rank), alone)
    assert torch.equal(following(None).loss(student, rows, rank), alone)


def test_missing_values_do_not_count(tiny_model, generator) -> None:
    student, teacher = tiny_model(CODES, LENGTH), tiny_model(CODES, LENGTH, seed=1)
    rule = following(teacher)
    present = torch.tensor([[True, True, False, True]])
    rank = torch.arange(LENGTH).unsqueeze(0)
    one, other = (rule.loss(student, Rows(torch.tensor([[0, 1, code, 2]]), present), rank) for code in (0, 2))
    assert torch.equal(one, other)


def test_the_teacher_is_asked_without_dropout(tiny_model, generator) -> None:
    student, teacher = tiny_model(CODES, LENGTH), tiny_model(CODES, LENGTH, seed=1)
    rule, rows = following(teacher), Rows.from_values(torch.randint(CODES, (8, LENGTH), generator=generator))
    rank = rule.sample_rank(len(rows), generator=generator)
    before = rule.loss(student, rows, rank)
    for block in teacher.network.blocks:
        block.dropout = 0.5
    teacher.train()
    assert torch.equal(rule.loss(student, rows, rank), before)
    assert teacher.training


def test_any_rows_teach_the_teachers_joint(tiny_model) -> None:
    """Uniform noise as rows: the data's law is not the teacher's, and the teacher's is what is learnt."""
    teacher, student = tiny_model(CODES, LENGTH), tiny_model(CODES, LENGTH, seed=7)
    noise = Rows.from_values(torch.randint(CODES, (512, LENGTH), generator=torch.Generator().manual_seed(3)))
    every = torch.tensor([*itertools.product(range(CODES), repeat=LENGTH)])
    rank = torch.arange(LENGTH).expand(len(every), -1)

    def joint(model) -> torch.Tensor:
        with torch.no_grad():
            return model.chain(every, rank, strict=True).log_prob(every).sum(1).exp()

    def apart() -> float:
        return float((joint(student) - joint(teacher)).abs().sum() / 2)

    before = apart()
    fit(student, noise, following(teacher), FitOptions(steps=400, batch_size=64, learning_rate=1e-2, device="cpu"))
    assert before > 0.2
    assert apart() < 0.04


def test_what_cannot_be_followed_is_refused(tiny_model) -> None:
    with pytest.raises(ValueError, match="teacher: expected a one-pass model"):
        following(tiny_model(CODES, LENGTH, one_pass=False))
    rows = Rows.from_values(torch.zeros(2, LENGTH, dtype=torch.int64))
    rank = torch.arange(LENGTH).expand(2, -1)
    with pytest.raises(ValueError, match="shape of the teacher's law"):
        following(tiny_model(CODES + 1, LENGTH)).loss(tiny_model(CODES, LENGTH), rows, rank)
    with pytest.raises(ValueError, match="share"):
        following(tiny_model(CODES, LENGTH), share=1.5)
