"""SFARM's loss on images: in expectation the nats of the modes' own chains, by enumeration."""

import itertools

import pytest
import torch

from anyfill.likelihoods import Bernoulli, LogisticMixture
from anyfill.objectives import MaskedLoss, ModalLoss, Stepwise
from anyfill.objectives.modal import modal_rank
from anyfill.questions import MODES, Modes, PerPixel, Question, UniformCardinality
from anyfill.recipes import ardm, sfarm
from anyfill.rows import Rows


def scattered(model):
    torch.manual_seed(3)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def pixels(tuples, size: int) -> torch.Tensor:
    mask = torch.zeros(1, size, dtype=torch.bool)
    mask[0, list(tuples)] = True
    return mask


@pytest.mark.parametrize("borders", ["fixed", "random"])
@torch.no_grad()
def test_the_expected_loss_is_the_mean_nats_over_every_mode_and_order(borders) -> None:
    """1/7 sum_m E_order|m [ - log p(x | order, m) ] for a 2 x 2 image, every order of every mode written out."""
    shape = (2, 2)
    model = scattered(sfarm.image_model(shape, 2, Bernoulli(), width=8, blocks=1))
    x = torch.tensor([[1, 0, 0, 1]])
    loss = sfarm.image_objective(shape, borders=borders)
    assert isinstance(loss, ModalLoss)
    family = Modes(*shape, borders=borders)
    by_loss, by_chain = 0.0, 0.0
    for number, mode in enumerate(MODES):
        for question in Modes(*shape, borders=borders, modes=(mode,)).support():
            asked = Question(pixels(question.given, 4), pixels(question.asked, 4))
            value = loss.loss(model, Rows.from_values(x), modal_rank(asked, torch.tensor([number])))
            by_loss += float(question.probability) * float(value) / 7
        one = sfarm.in_mode(model, mode)
        for region, share in family.regions_of(mode):
            first, second = ([i for i in range(4) if region[i] == inside] for inside in (True, False))
            orders = [a + b for a in itertools.permutations(first) for b in itertools.permutations(second)]
            for order in orders:
                known = torch.zeros(1, 4, dtype=torch.bool)
                for j in order:
                    nats = -float(one.marginals(x, known).log_prob(x)[0, j])
                    by_chain += nats * float(share) / len(orders) / 7
                    known[0, j] = True
    assert by_loss == pytest.approx(by_chain, rel=1e-5)


@torch.no_grad()
def test_one_random_mode_is_ardm(generator) -> None:
    model = scattered(sfarm.image_model((2, 3), 2, Bernoulli(), told="nothing", width=8, blocks=1))
    family = Modes(2, 3, modes=("random",))
    mine = {(q.given, q.asked): q.probability for q in family.support()}
    assert mine == {(q.given, q.asked): q.probability for q in UniformCardinality(6).support()}
    rows = Rows.from_values(torch.randint(2, (5, 6), generator=generator))
    rank = ardm.objective(6).sample_rank(5, generator=generator)
    plain = MaskedLoss(family, Stepwise()).loss(model, rows, rank)
    torch.testing.assert_close(plain, ardm.objective(6).loss(model, rows, rank))  # eq. 11


@torch.no_grad()
def test_pixels_of_several_channels_count_jointly(generator) -> None:
    """One question by hand: S / candidates times the joint nats of each candidate pixel."""
    shape, likelihood = (2, 2, 3), LogisticMixture(4, 2)
    model = scattered(sfarm.image_model(shape, 4, likelihood, coupled=True, width=8, blocks=1))
    loss = sfarm.image_objective(shape, coupled=True)
    x = torch.randint(4, (1, 12), generator=generator)
    given = torch.tensor([[True, False, False, True]])
    asked = torch.tensor([[False, True, True, False]])
    whole = PerPixel(Modes(2, 2), 3).spread(Question(given, asked))
    value = float(loss.loss(model, Rows.from_values(x), modal_rank(whole, torch.tensor([5]))))
    inside = sfarm.in_mode(model, "interior")
    total = 0.0
    for pixel in (1, 2):
        known = whole.given.clone()
        params = inside.network.within(x, known)  # type: ignore[union-attr,operator]
        total -= float(likelihood(params).log_prob(x)[0, 3 * pixel : 3 * pixel + 3].sum())
    assert value == pytest.approx(4 / 2 * total, rel=1e-5)
    drawn = loss.sample_rank(40, generator=generator).view(40, 4, 3)
    assert bool((drawn == drawn[:, :, :1]).all())


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="questions of ModalLoss"):
        ModalLoss(UniformCardinality(4))
    model = sfarm.image_model((2, 2), 2, Bernoulli(), width=8, blocks=1)
    loss = ModalLoss(Modes(2, 2), within=True)
    rank = modal_rank(Question.of(4, given=[0]), torch.tensor([0]))
    with pytest.raises(ValueError, match="CoupledChannels"):
        loss.loss(model, Rows.from_values(torch.zeros(1, 4, dtype=torch.int64)), rank)
    with pytest.raises(ValueError, match="coupled: expected a LogisticMixture"):
        sfarm.image_model((2, 2, 3), 2, Bernoulli(), coupled=True)
