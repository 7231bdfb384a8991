"""The baselines are what their names say: a shared mixture, the nearest row, a regression."""

import numpy as np
import torch
from scipy.stats import norm

from anyfill.likelihoods.continuous import GaussianMixtureMarginals
from anyfill.networks import Mixed
from anyfill.policy.mixture import draw_jointly, joint_log_prob, mixtures, shared_log_weights
from anyfill.policy.neighbour import NearestRow
from anyfill.policy.recipes import Sizes, policy_model
from anyfill.questions import Question
from anyfill.rows import Rows
from tests.policy.test_layout import Columns, Demonstrations, Layout

WIDE = Columns(("x",), ("a", "b", "c"), (), (), ())


def wide() -> Layout:
    source = np.random.default_rng(0)
    numbers = [source.normal(size=(8, width)).astype(np.float32) for width in (1, 3, 0)]
    return Layout.of(Demonstrations(WIDE, *numbers, np.array([8]), "wide"))


def test_the_joint_density_is_the_sum_over_components_of_products():
    source = torch.Generator().manual_seed(0)
    logits, centers = (torch.randn(5, 4, 3, generator=source) for _ in range(2))
    marginals = GaussianMixtureMarginals(logits.log_softmax(-1), centers, centers.abs() + 0.2)
    x, asked = torch.randn(5, 4, generator=source), torch.tensor([[False, True, True, True]]).expand(5, 4)
    weights = shared_log_weights(marginals, asked).exp()
    for row in range(5):
        density = sum(
            weights[row, k].item()
            * np.prod([norm.pdf(x[row, d], centers[row, d, k], marginals.scales[row, d, k]) for d in (1, 2, 3)])
            for k in range(3)
        )
        assert np.isclose(joint_log_prob(marginals, x, asked)[row].item(), np.log(density), atol=1e-4)


def test_an_action_that_is_told_weighs_the_components_by_bayes():
    # of 20,000 draws of b given a: its mean is off by 5 standard errors once in 1.7 million
    model = policy_model("bc-mixture", wide(), Sizes(width=16, depth=1, components=2), seed=1)
    with torch.no_grad():
        model.network.leave.weight.normal_(std=0.5, generator=torch.Generator().manual_seed(2))
        model.network.leave.bias.normal_(std=1.0, generator=torch.Generator().manual_seed(3))
    x = torch.tensor([[0.3, 0.4, 0.0, 0.0]]).repeat(20_000, 1)
    given = torch.tensor([[True, True, False, False]]).repeat(20_000, 1)
    actions = torch.tensor([False, True, True, True])
    question = Question(given, ~given)
    drawn = draw_jointly(model, x, question, actions, temperature=1.0, generator=torch.Generator().manual_seed(0))
    assert bool((drawn[:, :2] == x[:, :2]).all())
    with torch.no_grad():
        m = mixtures(model, x[:1], torch.tensor([[True, False, False, False]]))
    weights = shared_log_weights(m, actions.unsqueeze(0)).exp()[0].numpy()
    centers, scales = m.centers[0].numpy(), m.scales[0].numpy()
    told = weights * norm.pdf(0.4, centers[1], scales[1])
    told /= told.sum()
    mean = (told * centers[2]).sum()
    variance = (told * (scales[2] ** 2 + centers[2] ** 2)).sum() - mean**2
    assert abs(drawn[:, 2].mean().item() - mean) < 5 * (variance / 20_000) ** 0.5
    assert np.isclose(drawn[:, 2].var().item(), variance, rtol=0.1)


def test_the_nearest_row_is_that_of_a_plain_loop_whatever_is_known_or_missing():
    source = torch.Generator().manual_seed(0)
    values = torch.randn(200, 5, generator=source)
    values[:, 4] = torch.randint(3, (200,), generator=source)
    there = torch.rand(200, 5, generator=source) < 0.8
    net = NearestRow(Mixed((0, 0, 0, 0, 3)), 5, 3).remember(Rows(torch.where(there, values, 0.0), there))
    x = torch.randn(40, 5, generator=source)
    x[:, 4] = torch.randint(3, (40,), generator=source)
    known = torch.rand(40, 5, generator=source) < 0.6
    known[:, 0] = True
    shown = torch.where(known, x, torch.nan)  # what is not known is never read
    found = net.nearest(torch.where(known, shown, 123.0), known)
    for row in range(40):
        best, least = -1, np.inf
        for number in range(200):
            both = known[row] & there[number]
            if not both.any():
                continue
            apart = (x[row] - values[number]).square()
            apart[4] = float(x[row, 4] != values[number, 4])
            mean = apart[both].mean().item()
            if mean < least - 1e-6:
                best, least = number, mean
        assert found[row].item() == best
    params = net(torch.where(known, x, 0.0), known)
    has = there[found]
    assert torch.equal(params[:, 0, 0], torch.where(has[:, 0], values[found, 0], 0.0))
    assert torch.equal(params[has[:, 4], 4].argmax(1), values[found, 4][has[:, 4]].long())
