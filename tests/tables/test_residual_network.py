"""The ensemble that starts from joint Gaussians."""

import math

import pytest
import torch

from anyfill.likelihoods import Categorical, Mixed, Pooled, SpikedMixture
from anyfill.model import Model
from anyfill.tables.cross_fit import EnsembleTrainer
from anyfill.tables.gaussians import Factors, Joint, condition
from anyfill.tables.residual_head import MEAN, SCALE
from anyfill.tables.residual_network import GaussianResidualEnsemble

SPIKED = SpikedMixture(1, spikes=(0.0,), min_scale=1e-6)
PLAIN = SpikedMixture(1, min_scale=1e-6)
MIXED = Mixed((PLAIN, SPIKED, Categorical(3)))


def network(joints: tuple[int, ...] = (1,), members: int = 2, seed: int = 0, rank: int = 0) -> GaussianResidualEnsemble:
    torch.manual_seed(seed)
    shares = ((), (0.3,), (0.5, 0.3, 0.2))
    net = GaussianResidualEnsemble(
        (0, 0, 3), ((), (0.0,), ()), shares, (1e-6,) * 3, 1, MIXED.width, joints, members, 4, 8, 1, rank=rank
    )
    generator = torch.Generator().manual_seed(seed)
    for number, count in enumerate(joints):
        root = torch.randn(count, 5, 10, generator=generator)
        if rank and number == 0:
            net.set_joint(0, Factors(torch.zeros(5), root[0, :, :rank], torch.ones(5)))
            continue
        net.set_joint(
            number, Joint(torch.zeros(count).log_softmax(0), torch.zeros(count, 5), root @ root.mT / 10 + torch.eye(5))
        )
    return net.eval()


X = torch.tensor([[0.5, math.nan, 1.0], [math.nan, math.nan, math.nan], [0.1, -0.3, 2.0]])
KNOWN = ~X.isnan()


def test_untrained_members_are_their_joint_exactly() -> None:
    net = network()
    model = Model(net, Pooled(MIXED, 3, weighted=True))
    marginals = model.marginals(X, KNOWN)
    answer = condition(net.joint(0), net.expansion.expand(X.nan_to_num()), net.expansion.spread(KNOWN))
    # The first number has no spikes: one Gaussian at the joint's center, 0.7 of its spread wide.
    torch.testing.assert_close(marginals.mean()[1, 0], answer.center[1, 0], atol=1e-5, rtol=1e-5)
    low, high = marginals.quantile(0.5 - 0.3413447), marginals.quantile(0.5 + 0.3413447)
    spread = 0.7 * answer.variance[1, 0].sqrt()
    torch.testing.assert_close((high - low)[1, 0], 2 * spread, atol=1e-4, rtol=1e-3)


def test_members_that_start_from_factors_start_where_their_covariance_would() -> None:
    net, plain = network(rank=2), network()
    mean, loadings, noise = net.joint(0)
    covariance = loadings @ loadings.T + torch.diag(noise)
    plain.set_joint(0, Joint(torch.zeros(1), mean.unsqueeze(0), covariance.unsqueeze(0)))
    torch.testing.assert_close(net(X, KNOWN), plain(X, KNOWN), atol=1e-4, rtol=1e-4)
    with pytest.raises(ValueError, match="1 first"):
        network((2,), rank=2)


def test_unknown_values_are_never_read() -> None:
    net = network((1, 2), 4)
    torch.testing.assert_close(net(X, KNOWN), net(X.nan_to_num(7.0), KNOWN))
    assert bool(net(X, KNOWN).isfinite().all())


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    net = network((1, 2), 4)
    together = net(X, KNOWN)
    for i in range(len(X)):
        torch.testing.assert_close(net(X[i : i + 1], KNOWN[i : i + 1])[0], together[i], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("joints", "rank"), [((1,), 0), ((1, 2), 0), ((0,), 0), ((1,), 2), ((1, 2), 2)])
def test_members_apart_are_the_blocks_of_the_whole(joints: tuple[int, ...], rank: int) -> None:
    members = 2 * len(joints)
    net = network(joints, members, rank=rank)
    for weight in net.leave.parameters():
        torch.nn.init.normal_(weight, generator=torch.Generator().manual_seed(1))
    kept = [net.joint(number) for number in range(len(joints))]
    stacks = [type(joint)(*(part.unsqueeze(0) for part in joint)) for joint in kept]
    apart = EnsembleTrainer(net, stacks, torch.zeros(members, dtype=torch.long))
    rows = X.repeat(members, 1)
    dealt = apart(rows, ~rows.isnan(), torch.zeros_like(rows))
    whole = net(X, KNOWN)
    width = MIXED.width
    for m in range(members):
        own = dealt[m * len(X) : (m + 1) * len(X)]
        torch.testing.assert_close(own, whole[..., m * width : (m + 1) * width], atol=1e-4, rtol=1e-4)


def test_a_batch_that_cannot_be_dealt_is_refused() -> None:
    net = network()
    apart = EnsembleTrainer(
        net, [Joint(*(part.unsqueeze(0) for part in net.joint(0)))], torch.zeros(2, dtype=torch.long)
    )
    with pytest.raises(ValueError, match="multiple of the 2 members"):
        apart(X, KNOWN, torch.zeros_like(X))


def test_widening_widens_numbers_and_leaves_codes_alone() -> None:
    net = network()
    model = Model(net, Pooled(MIXED, 3, weighted=True))
    before = model.marginals(X, KNOWN)
    narrow, codes = before.quantile(0.9) - before.quantile(0.1), before.mean()[:, 2]
    net.set_weights(net.get_buffer("pool"), torch.tensor([2.0, 2.0, 2.0]))
    after = model.marginals(X, KNOWN)
    torch.testing.assert_close((after.quantile(0.9) - after.quantile(0.1))[1, 0], 2 * narrow[1, 0], rtol=1e-3, atol=0)
    torch.testing.assert_close(after.mean()[:, 2], codes)


def test_sharpening_multiplies_log_odds_and_leaves_centers_and_scales_alone() -> None:
    net = network()
    before = net(X, KNOWN)[..., : net.candidates * net.member_outputs]
    net.set_weights(net.get_buffer("pool"), torch.ones(3), torch.tensor([1.0, 1.5, 2.0]))
    after = net(X, KNOWN)[..., : net.candidates * net.member_outputs]
    role = net.get_buffer("role").repeat(1, net.candidates)
    factor = torch.where((role == MEAN) | (role == SCALE), 1.0, torch.tensor([[1.0], [1.5], [2.0]]))
    torch.testing.assert_close(after, factor * before)
    assert not torch.equal(after[:, 2], before[:, 2])


def test_weights_saved_before_there_was_sharpening_load_as_they_answered() -> None:
    net, other = network(), network(seed=1)
    other.set_weights(other.get_buffer("pool"), torch.ones(3), torch.full((3,), 1.5))
    earlier = {name: value for name, value in net.state_dict().items() if name != "sharpen"}
    wrapped = torch.nn.ModuleDict({"inner": other})
    wrapped.load_state_dict({f"inner.{name}": value for name, value in earlier.items()})
    assert torch.equal(other(X, KNOWN), net(X, KNOWN))
    assert "sharpen" not in earlier  # what is loaded is not changed
    with pytest.raises(RuntimeError, match="widen"):
        other.load_state_dict({name: value for name, value in earlier.items() if name != "widen"})


def test_bins_rise_from_the_least_to_the_greatest_value() -> None:
    net = network()
    values = torch.linspace(-2, 2, 101)
    x = torch.stack([values, values**3, torch.zeros(101)], 1)
    net.set_bins(x, torch.ones_like(x, dtype=torch.bool))
    edges = net.get_buffer("edges")[0]
    torch.testing.assert_close(edges, torch.tensor([-2.0, -1.0, 0.0, 1.0]))
    start = net.start(x, torch.ones_like(x, dtype=torch.bool), net.joint(0))
    told = net.inputs(x, torch.ones_like(x, dtype=torch.bool), start)
    steps = told[:, 8:12].sum(1)  # 5 features, 3 flags, then the bins of the first number
    assert bool((steps.diff() > 0).all())
    assert float(steps[0]) == -2.0
    assert float(steps[-1]) == 2.0


def numbers(spikes: tuple[float, ...], joints: tuple[int, ...]) -> GaussianResidualEnsemble:
    """Four numbers with equally many spikes, so that all have the same head; random weights."""
    torch.manual_seed(3)
    marks = tuple(tuple(spike + j for spike in spikes) for j in range(4))
    shares = ((0.2,) * len(spikes),) * 4
    width = len(spikes) + 6
    net = GaussianResidualEnsemble((0,) * 4, marks, shares, (1e-6,) * 4, 2, width, joints, 2 * len(joints), 4, 8, 1)
    for weight in net.leave.parameters():
        torch.nn.init.normal_(weight)
    return net.eval()


@pytest.mark.parametrize("joints", [(1,), (1, 2), (0,)])
@pytest.mark.parametrize("spikes", [(), (0.5,), None])
def test_cells_asked_alone_are_those_of_the_whole(joints: tuple[int, ...], spikes: tuple[float, ...] | None) -> None:
    net = network(joints, 2 * len(joints)) if spikes is None else numbers(spikes, joints)
    for weight in net.leave.parameters():
        torch.nn.init.normal_(weight, generator=torch.Generator().manual_seed(1))
    net.set_weights(torch.randn(net.variables, net.candidates), torch.rand(net.variables) + 0.5)
    x = torch.randint(3, (64, net.variables), generator=torch.Generator().manual_seed(2)).float()
    known = torch.rand(x.shape, generator=torch.Generator().manual_seed(3)) < 0.5
    row, variable = (~known).nonzero()[:64].unbind(1)
    torch.testing.assert_close(net.at(x, known, row, variable), net(x, known)[row, variable], atol=0, rtol=1e-6)


def test_centers_asked_alone_are_those_of_the_whole_bit_for_bit_and_only_where_there_is_one() -> None:
    torch.manual_seed(0)
    net = GaussianResidualEnsemble((0,) * 3, ((),) * 3, ((),) * 3, (1e-6,) * 3, 1, PLAIN.width, (0,), 1, 0, 8, 1).eval()
    for weight in net.leave.parameters():
        torch.nn.init.normal_(weight, generator=torch.Generator().manual_seed(1))
    x = torch.randn(64, 3, generator=torch.Generator().manual_seed(2))
    known = torch.rand(x.shape, generator=torch.Generator().manual_seed(3)) < 0.5
    row, variable = (~known).nonzero()[:64].unbind(1)
    centers = net.centers_at(x, known, row, variable)
    assert centers is not None
    assert torch.equal(centers, net.at(x, known, row, variable)[:, 1])
    assert len(centers.unique()) > 40
    for other in (numbers((), (1,)), numbers((0.5,), (0,)), network()):
        assert other.centers_at(x, known, row, variable) is None


@pytest.mark.parametrize("spikes", [(), (0.5,)])
def test_a_head_that_all_variables_share_gives_the_numbers_of_the_general_one(spikes: tuple[float, ...]) -> None:
    net = numbers(spikes, (0,))
    head = net._head()  # pyright: ignore[reportPrivateUsage]
    assert head.shared is not None
    generator = torch.Generator().manual_seed(0)
    center, scale = torch.randn(16, 4, 1, generator=generator), torch.rand(16, 4, 1, generator=generator) + 0.1
    for learned in (None, torch.randn(16, 4, net.member_outputs, generator=generator)):
        found, wanted = (one.read(center, scale, None, learned) for one in (head, head._replace(shared=None)))
        torch.testing.assert_close(found, wanted, atol=0, rtol=1e-6)
