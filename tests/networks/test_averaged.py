"""Networks side by side: the mean law term by term, never worse than the members' mean, drawn from a cache."""

import pytest
import torch

from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import Averaged, OnePassTransformer
from anyfill.networks.embed import Discrete
from anyfill.questions import Question
from anyfill.samplers import CachedChain, sample
from anyfill.training import load_model, save_model

CODES, LENGTH = 3, 5


@pytest.fixture
def members(tiny_model):
    return [tiny_model(CODES, LENGTH, seed=seed) for seed in range(3)]


@pytest.fixture
def ensemble(members):
    return Model(Averaged([one.network for one in members]), Categorical(CODES), factorizations=["direct"]).eval()


def ranks(generator) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randint(CODES, (20, LENGTH), generator=generator)
    order = torch.rand(x.shape, generator=generator).argsort(1).argsort(1)
    return x, order - torch.randint(LENGTH, (20, 1), generator=generator)


def test_each_term_is_the_mean_of_the_members_laws(members, ensemble, generator) -> None:
    x, rank = ranks(generator)
    with torch.no_grad():
        each = torch.stack([one.chain(x, rank).log_probs.exp() for one in members])
        assert torch.allclose(ensemble.chain(x, rank).log_probs.exp(), each.mean(0), atol=1e-6)
        known = rank < 1
        each = torch.stack([one.marginals(x, known).log_probs.exp() for one in members])
        assert torch.allclose(ensemble.marginals(x, known).log_probs.exp(), each.mean(0), atol=1e-6)


def test_its_nats_are_at_most_the_members_mean(members, ensemble, generator) -> None:
    x, rank = ranks(generator)
    with torch.no_grad():
        each = torch.stack([one.chain(x, rank).log_prob(x) for one in members])
        together = ensemble.chain(x, rank).log_prob(x)
    assert bool((together >= each.mean(0) - 1e-6).all())
    assert float((together - each.mean(0)).mean()) > 0.01


def test_the_cache_answers_as_the_chain(ensemble, generator) -> None:
    x, _ = ranks(generator)
    rank = torch.arange(LENGTH).expand(len(x), -1) - 2
    network = ensemble.network
    with torch.no_grad():
        whole = network.chain(x, rank)
        params, cache = network.open(x, rank)
        assert torch.allclose(params, whole[:, 2], atol=1e-5)
        params, cache = network.extend(x[:, 2], cache)
        assert torch.allclose(params, whole[:, 3], atol=1e-5)
        some = torch.tensor([3, 0, 7])
        params, _ = network.extend(x[some, 3], network.select(cache, some))
        assert torch.allclose(params, whole[some, 4], atol=1e-5)


def test_it_draws_its_own_law(ensemble) -> None:
    """Two variables, 20,000 draws: the table of both within chance of what one pass says."""
    count = 20_000
    x = torch.zeros(count, LENGTH, dtype=torch.int64)
    asked = (torch.arange(LENGTH) < 2).expand(count, -1)
    question = Question(torch.zeros_like(asked), asked)
    drawn = sample(ensemble, x, question, policy=CachedChain(), generator=torch.Generator().manual_seed(5)).x
    every = torch.cartesian_prod(torch.arange(CODES), torch.arange(CODES))
    rows = torch.nn.functional.pad(every, (0, LENGTH - 2))
    rank = torch.where(torch.arange(LENGTH) < 2, torch.arange(LENGTH), 2**31 - 1).expand(len(rows), -1)
    with torch.no_grad():
        law = ensemble.chain(rows, rank).log_prob(rows)[:, :2].sum(1).exp()
    found = torch.bincount(drawn[:, 0] * CODES + drawn[:, 1], minlength=CODES**2) / count
    assert float((found - law).abs().max()) < 4 * (0.25 / count) ** 0.5


def test_it_is_saved_and_read(ensemble, generator, tmp_path) -> None:
    save_model(ensemble, tmp_path / "ensemble")
    again = load_model(tmp_path / "ensemble").eval()
    x, rank = ranks(generator)
    with torch.no_grad():
        assert torch.equal(again.chain(x, rank).log_probs, ensemble.chain(x, rank).log_probs)
    assert len(again.network.members) == 3


def test_members_that_do_not_fit_are_refused(tiny_model) -> None:
    first = tiny_model(CODES, LENGTH).network
    for other, said in (
        (tiny_model(CODES, LENGTH + 1).network, "all of 5 variables"),
        (tiny_model(CODES + 1, LENGTH).network, "all of 5 variables"),
        (tiny_model(CODES, LENGTH, one_pass=False).network, "one-pass networks"),
        (OnePassTransformer(Discrete(CODES), (LENGTH,), CODES + 1, 8, 1, 2), "one logit for each"),
        (OnePassTransformer(Discrete(CODES), (LENGTH,), CODES, 8, 1, 2, given="full"), "alike"),
    ):
        with pytest.raises(ValueError, match=said):
            Averaged([first, other])
    with pytest.raises(ValueError, match="one network at least"):
        Averaged([])
