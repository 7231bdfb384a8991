import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest

from anyfill.likelihoods import Categorical, Gaussian, Mixed, SpikedMixture
from anyfill.likelihoods.numerics import normal, uniform
from anyfill.model import Model
from anyfill.networks import EnumeratedJoint, OnePassTransformer, RandomConditionals, ResidualMLP, embed
from anyfill.questions import Decreasing, Factorization, Increasing, Question, Shuffled
from anyfill.samplers.rowwise import (
    SPARE,
    RowStreams,
    block_size,
    cell_parameters,
    draw_keys,
    mix,
    parameters,
    row_keys,
    sample_rowwise,
    seed_keys,
    told_apart,
)

CPU = torch.device("cpu")
FALSE_ALARM = 1e-3
SIZES = (0, 3, 0, 2, 0)
COLUMNS = Mixed(
    (SpikedMixture(2, spikes=(0.0,)), Categorical(3), SpikedMixture(2, step=0.5), Categorical(2), Gaussian())
)


def splitmix(state):
    """One output of SplitMix64 in plain Python: the reference of Steele, Lea & Flood."""
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return state, z ^ (z >> 31)


def streams(keys):
    return RowStreams(torch.tensor(keys))


def mixed_model(one_pass, seed=0):
    """A model of five columns of both kinds with random weights, licensed for everything."""
    torch.manual_seed(seed)
    kind, width = embed.Mixed(SIZES), COLUMNS.width
    if one_pass:
        network = OnePassTransformer(kind, (5,), width, width=16, depth=2, heads=2)
        torch.nn.init.normal_(network.head.weight, std=0.5)
    else:
        network = ResidualMLP(kind, 5, width, width=16, depth=2)
        for weights in network.parameters():
            torch.nn.init.normal_(weights, std=0.3)
    return Model(network, COLUMNS, factorizations=list(Factorization)).eval()


def mixed_rows(count, generator):
    x = torch.randn(count, 5, generator=generator)
    x[:, 1] = torch.randint(3, (count,), generator=generator).float()
    x[:, 2] = (2 * x[:, 2]).round() / 2
    x[:, 3] = torch.randint(2, (count,), generator=generator).float()
    return x, torch.rand(count, 5, generator=generator) < 0.5


def test_mix_is_the_finaliser_of_splitmix64():
    state = 0
    for _ in range(20):
        state, wanted = splitmix(state)
        found = mix(torch.tensor(state - 2**64 if state >= 2**63 else state))
        assert int(found) % 2**64 == wanted


def test_mix_is_a_bijection_on_what_was_tried():
    assert len(mix(torch.arange(-50_000, 50_000)).unique()) == 100_000


def test_a_rows_noise_depends_on_its_key_and_how_much_was_drawn_alone():
    whole, alone = streams([5, -7, 2**62]), streams([-7])
    for shape in ((4,), (2, 3), ()):
        assert torch.equal(whole.uniform((3, *shape), CPU)[1:2], alone.uniform((1, *shape), CPU))
    again = streams([-7])
    assert torch.equal(again.uniform((1, 10), CPU)[0, 4:10], streams([-7]).uniform((1, 10), CPU)[0, 4:10])


def test_noise_is_uniform_over_counters_keys_and_both():
    noise = RowStreams(torch.arange(400)).uniform((400, 400), CPU)
    assert float(noise.min()) >= 0.0
    assert float(noise.max()) < 1.0
    for sample in (noise[0], noise[:, 0], noise.flatten()):
        assert kstest(sample.numpy(), "uniform").pvalue > FALSE_ALARM
    bits = (noise.flatten()[:, None] * 2 ** torch.arange(1, 21, dtype=torch.float64) % 2 >= 1).double().mean(0)
    assert float((bits - 0.5).abs().max()) < 5 * 0.5 / 400


@pytest.mark.parametrize("step", [1, 2, 1024, 7046029254386353131])
def test_neighbouring_keys_and_counters_are_independent(step):
    noise = RowStreams(torch.arange(500) * step).uniform((500, 200), CPU)
    pairs = [(noise[:-1], noise[1:]), (noise[:, :-1], noise[:, 1:]), (noise[:-1, 1:], noise[1:, :-1])]
    for one, other in pairs:
        cells = (8 * one).floor() * 8 + (8 * other).floor()
        counts = torch.bincount(cells.long().flatten(), minlength=64)
        assert chisquare(counts.numpy()).pvalue > FALSE_ALARM / 12


def test_keys_of_rows_tell_values_holes_places_and_seeds_apart():
    x = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [-0.0, 1.0]])
    present = torch.tensor([[True, True], [True, True], [False, True], [True, False], [True, True]])
    keys = row_keys(x, present, 3).tolist()
    assert len(set(keys[:4])) == 4
    assert keys[4] == keys[0], "minus zero is zero"
    assert set(keys).isdisjoint(row_keys(x, present, 4).tolist())
    assert row_keys(x[2:3], present[2:3], 3).tolist() == keys[2:3]
    assert row_keys(torch.tensor([[9.0, 1.0]]), present[2:3], 3).tolist() == keys[2:3], "what is missing is not read"
    many = torch.arange(10_000)
    assert len(torch.cat([seed_keys(many, seed) for seed in (0, 1, -1, 2**63 + 5)]).unique()) == 40_000
    assert len(draw_keys(many, 5).unique()) == 50_000


def test_normal_noise_of_streams_is_standard_normal():
    drawn = normal((20_000, 2), generator=RowStreams(torch.arange(20_000)), device=CPU)
    assert kstest(drawn.flatten().numpy(), "norm").pvalue > FALSE_ALARM
    assert drawn.dtype == torch.float64
    assert bool(drawn.isfinite().all())


def test_the_ends_of_uniform_noise_are_finite_normals():
    class Ends:
        def uniform(self, shape, device):
            return torch.tensor([0.0, 1 - 2.0**-53], dtype=torch.float64)

    assert torch.equal(uniform((2,), generator=Ends(), device=CPU), Ends().uniform((2,), CPU))
    low, high = normal((2,), generator=Ends(), device=CPU).tolist()
    assert -9 < low < -8
    assert 8 < high < 9


def test_noise_of_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match=r"shape of noise: expected \(2, ...\)"):
        streams([1, 2]).uniform((3, 2), CPU)
    with pytest.raises(ValueError, match="dtype of keys"):
        RowStreams(torch.zeros(3))


@pytest.mark.parametrize("order", [Increasing(), Decreasing()])
@pytest.mark.parametrize("chained", [False, True])
def test_the_law_is_that_of_drawing_one_by_one_in_the_models_order(kit, order, chained):
    network = RandomConditionals(4, 3, seed=1)  # every order has another law
    model = kit.model(network if chained else kit.masked(network), 3, order=order)
    rows = 20_000
    question = kit.question(rows, [1], [0, 2, 3], 4)
    x = torch.tensor([[0, 2, 0, 0]]).repeat(rows, 1)
    drawn = sample_rowwise(model, x, question.given, question.asked, keys=torch.arange(rows), rows_per_pass=4096)[0]
    asked = (question.given[0], question.asked[0])
    other = Decreasing() if order == Increasing() else Increasing()
    assert kit.p_value(drawn, kit.chain_law(model, asked, x[0], order)) > FALSE_ALARM
    assert kit.p_value(drawn, kit.chain_law(model, asked, x[0], other)) < 1e-6, "the test can fail"


def test_draws_of_one_row_follow_the_joint_whatever_else_is_in_the_batch(kit, generator):
    joint = EnumeratedJoint.random(3, 3, generator=generator, concentration=0.5)
    model = kit.model(kit.masked(joint), 3)
    known = torch.tensor([[False, True, False], [True, True, False], [False, False, False]])
    x = torch.tensor([[0, 1, 0], [2, 0, 0], [0, 0, 0]])
    drawn = sample_rowwise(model, x, known, ~known, keys=torch.tensor([0, 1, 2]), draws=6000, rows_per_pass=2048)
    for row in range(3):
        question = (known[row], ~known[row])
        assert kit.p_value(drawn[:, row], kit.chain_law(model, question, x[row], model.order)) > FALSE_ALARM


@pytest.mark.parametrize("one_pass", [False, True])
def test_a_row_is_drawn_bit_for_bit_alike_in_any_company(one_pass, generator):
    model = mixed_model(one_pass)
    x, known = mixed_rows(75, generator)
    keys = row_keys(x, known, 1)

    def draw(rows):
        return sample_rowwise(model, x[rows], known[rows], ~known[rows], keys=keys[rows], draws=3, rows_per_pass=32)

    whole = draw(torch.arange(75))
    assert torch.equal(torch.where(known, x, 0), torch.where(known, whole[1], 0))
    for rows in ([3], [74, 0], list(range(74, -1, -1)), list(range(40, 60))):
        assert torch.equal(draw(torch.tensor(rows)), whole[:, rows])


def test_more_draws_begin_with_the_same_ones(generator):
    model = mixed_model(False)
    x, known = mixed_rows(5, generator)
    keys = row_keys(x, known, 1)
    few, many = (sample_rowwise(model, x, known, ~known, keys=keys, draws=n) for n in (2, 5))
    assert torch.equal(many[:2], few)
    assert not torch.equal(many[3], many[4])


def test_what_is_unknown_is_never_read_and_what_is_not_asked_stays(generator):
    model = mixed_model(False)
    x, known = mixed_rows(40, generator)
    asked = ~known & (torch.rand(40, 5, generator=generator) < 0.5)
    keys = row_keys(x, known, 1)
    poisoned = torch.where(known, x, torch.nan)
    drawn = sample_rowwise(model, poisoned, known, asked, keys=keys)[0]
    assert bool(drawn[known | asked].isfinite().all())
    assert bool(drawn[~(known | asked)].isnan().all())
    assert torch.equal(drawn[known], x[known])


def test_the_network_sees_blocks_of_one_size_only(generator):
    model = mixed_model(False)
    seen = set()
    model.network.register_forward_hook(lambda module, inputs, output: seen.add(len(output)))
    x, known = mixed_rows(100, generator)
    sample_rowwise(model, x, known, ~known, keys=row_keys(x, known, 0), rows_per_pass=64)
    assert seen == {64}
    assert block_size(model) in [2**k for k in range(5, 11)]


def test_a_model_that_only_completes_is_asked_to_complete(generator):
    model = mixed_model(False)
    model.factorizations = frozenset({Factorization.INPAINTING})
    x, known = mixed_rows(20, generator)
    asked = ~known
    asked[:, 1] = False
    part = sample_rowwise(model, x, known, asked, keys=torch.arange(20))
    all_of_it = sample_rowwise(model, x, known, ~known, keys=torch.arange(20))
    assert torch.equal(torch.where(asked, part, 0), torch.where(asked, all_of_it, 0))


def test_what_the_model_was_not_trained_for_is_refused(generator):
    model = mixed_model(False)
    x, known = mixed_rows(20, generator)
    model.factorizations = frozenset({Factorization.DIFFERENCE})
    with pytest.raises(ValueError, match=r"sampling p\(asked \| given\)"):
        sample_rowwise(model, x, known, ~known, keys=torch.arange(20))
    model.factorizations = frozenset()
    with pytest.raises(ValueError, match="never trained"):
        sample_rowwise(model, x, known, ~known, keys=torch.arange(20))


def test_a_random_order_is_replaced_by_the_index_where_any_order_is_trained(kit):
    network = kit.masked(RandomConditionals(3, 2, seed=2))
    x, known = torch.zeros(50, 3, dtype=torch.int64), torch.zeros(50, 3, dtype=torch.bool)
    either = [
        sample_rowwise(kit.model(network, 2, order=order), x, known, ~known, keys=torch.arange(50))
        for order in (Shuffled(), Increasing())
    ]
    assert torch.equal(*either)


def test_bad_input_is_one_sentence(generator):
    model = mixed_model(False)
    x, known = mixed_rows(4, generator)
    keys = torch.arange(4)
    for words, call in {
        "disjoint": lambda: sample_rowwise(model, x, known | True, ~known | True, keys=keys),
        "shape of keys": lambda: sample_rowwise(model, x, known, ~known, keys=keys[:2]),
        "draws": lambda: sample_rowwise(model, x, known, ~known, keys=keys, draws=0),
        "rows_per_pass": lambda: sample_rowwise(model, x, known, ~known, keys=keys, rows_per_pass=SPARE),
        "rows of a block": lambda: parameters(model, x, known, known.long(), 4),
    }.items():
        with pytest.raises(ValueError, match=words):
            call()


def test_no_rows_and_nothing_asked_come_back_as_they_are():
    model = mixed_model(False)
    nothing, no_keys = torch.zeros(0, 5), torch.zeros(0, dtype=torch.int64)
    assert sample_rowwise(model, nothing, nothing.bool(), nothing.bool(), keys=no_keys).shape == (1, 0, 5)
    x = torch.zeros(3, 5)
    known = torch.ones(3, 5, dtype=torch.bool)
    assert torch.equal(sample_rowwise(model, x, known, ~known, keys=torch.arange(3), draws=2), x.expand(2, 3, 5))


def test_scores_of_the_drawn_rows_average_to_the_entropy(kit, generator):
    joint = EnumeratedJoint.random(3, 2, generator=generator)
    model = Model(kit.masked(joint), Categorical(2), factorizations=list(Factorization))
    x = torch.zeros(8000, 3, dtype=torch.int64)
    known = torch.zeros_like(x, dtype=torch.bool)
    drawn = sample_rowwise(model, x, known, ~known, keys=torch.arange(8000), rows_per_pass=4096)[0]
    p = joint.get_buffer("log_joint")
    found = p[(drawn * torch.tensor([4, 2, 1])).sum(1)]
    assert abs(float(found.mean()) - float((p.exp() * p).sum())) < 4 * float(found.std()) / np.sqrt(8000)


def test_a_question_is_answered_given_exactly_what_is_known(kit, generator):
    joint = EnumeratedJoint.random(3, 2, generator=generator)
    model = kit.model(kit.masked(joint), 2)
    question = Question.of(3, given=[0, 2], batch=2)
    x = torch.tensor([[1, 0, 1], [0, 0, 0]])
    params = parameters(model, x, question.given, question.given.long(), 8)
    wanted = joint(x, question.given)
    assert torch.equal(params[:2, 1], wanted[:, 1])


@pytest.mark.parametrize("one_pass", [False, True])
def test_parameters_of_cells_are_those_of_the_block_there(one_pass, generator):
    model = mixed_model(one_pass)
    x, known = mixed_rows(20, generator)
    row, variable = (~known).nonzero().unbind(1)
    with model.evaluating():
        found = cell_parameters(model, x, known, None, 32, row, variable)
        wanted = parameters(model, x, known, model.known_rank(known), 32)
    assert torch.equal(found, wanted[row, variable])


def test_a_network_that_answers_cells_is_asked_for_these_alone(generator):
    class OnlyCells(ResidualMLP):
        def forward(self, x, known, context=None):
            raise AssertionError("asked for all cells")

        def at(self, x, known, row, variable):
            return super().forward(torch.where(known, x, 0.0), known)[row, variable]

    torch.manual_seed(0)
    network = OnlyCells(embed.Mixed(SIZES), 5, COLUMNS.width, width=16, depth=2)
    for weights in network.parameters():
        torch.nn.init.normal_(weights, std=0.3)
    whole = mixed_model(False)
    x, known = mixed_rows(20, generator)
    alone = Model(network, COLUMNS, factorizations=list(Factorization)).eval()
    drawn = [sample_rowwise(one, x, known, ~known, keys=torch.arange(20)) for one in (alone, whole)]
    assert torch.equal(*drawn)


def test_equal_rows_get_keys_of_their_own_and_a_row_that_is_alone_keeps_its_key() -> None:
    keys = torch.tensor([7, 3, 7, 7, 5, 3])
    apart = told_apart(keys)
    assert len(set(apart.tolist())) == 6
    assert torch.equal(apart[[0, 1, 4]], keys[[0, 1, 4]])
    assert torch.equal(told_apart(keys[[0, 2]]), apart[[0, 2]])  # the second of two, wherever it stands
    assert torch.equal(told_apart(keys[:0]), keys[:0])
