"""Every cell of SUNMASK's Table 1, seen in what the recipes do; and the variants of Table 2 by name."""

import itertools
import math

import pytest
import torch
from torch import Generator, nn

from anyfill.corruption import Absorbing, Uniform
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.music.chorale import CODES
from anyfill.networks.network import Unspecified
from anyfill.questions import Factorization, Question
from anyfill.recipes import coconet, sundae, sunmask
from anyfill.rows import Rows
from anyfill.samplers import Draw, sample, trace
from anyfill.training import FitOptions, fit

STEPS, N = 4, 16
MODELS = {
    "SMc": lambda: sunmask.model(CODES, (STEPS, 4), width=4, repeats=1),
    "SMc, pitch in channels": lambda: sunmask.model(CODES, (STEPS, 4), network="time", width=8, repeats=1),
    "SMt": lambda: sunmask.transformer_model(CODES, (STEPS, 4), width=16, depth=1, heads=2),
    "Coconet": lambda: coconet.model(CODES, (STEPS, 4), width=8, depth=6),
    "SDc": lambda: sundae.model(CODES, (STEPS, 4), network="time", width=8),
    "SDt": lambda: sundae.model(CODES, (STEPS, 4), network="transformer", width=32),
}
OBJECTIVES = {"SUNMASK": sunmask.objective(N), "Coconet": coconet.objective(N), "SUNDAE": sundae.objective(N)}
CORRUPTIONS = {"SUNMASK": Uniform(CODES), "Coconet": Absorbing(), "SUNDAE": Uniform(CODES, mask_visible=False)}
SAMPLERS = {
    "SUNMASK": sunmask.sampler("T", voices=4, rounds=8),
    "Coconet": coconet.sampler(8),
    "SUNDAE": sundae.sampler("", rounds=8),
}


class Fixed(nn.Module, Unspecified):
    """The same logits whatever it is shown, with a gradient; keeps what it was shown."""

    def __init__(self):
        super().__init__()
        self.variables = N
        self.logits = nn.Parameter(torch.randn(N, CODES, generator=Generator().manual_seed(2)))
        self.seen = []

    def forward(self, x, known, context=None):
        self.seen.append((x.clone(), known.clone()))
        return self.logits.expand(len(x), -1, -1)


def made(name):
    """The recipe's own model, with random weights everywhere."""
    model = MODELS[name]()
    torch.manual_seed(4)
    for weights in model.parameters():
        nn.init.normal_(weights, std=0.7 if name == "Coconet" else 0.2)
    return model.eval()


def fixed(name):
    """The recipe's corruption around a network that can be looked into."""
    return Model(Fixed(), Categorical(CODES), corruption=CORRUPTIONS[name], factorizations=[Factorization.ANY_ORDER])


def asking(*places, rows=1):
    asked = torch.zeros(rows, N).bool()
    asked[:, list(places)] = True
    return Question(~asked, asked)


def rank_of(question):
    return torch.where(question.asked, 0, -1)


def some_rows(rows=1, seed=0):
    x = torch.randint(CODES, (rows, N), generator=Generator().manual_seed(seed))
    return Rows(x, torch.ones_like(x, dtype=torch.bool))


def answers(model, x, known):
    with torch.no_grad():
        return model.marginals(x, known).log_probs


@pytest.mark.parametrize(
    ("name", "told"),
    [("SMc", True), ("SMc, pitch in channels", True), ("SMt", True), ("Coconet", True), ("SDc", False), ("SDt", False)],
)
def test_mask_input_to_model(name, told):
    """Row 1: with the same values, the answer depends on which are trusted."""
    model, x = made(name), some_rows().x
    shown = torch.where(asking(0, 5).given, x, 0)  # what the corruption leaves of the values is the same for both
    same = torch.equal(answers(model, shown, asking(0, 5).given), answers(model, shown, asking(5).given))
    assert same is not told


@pytest.mark.parametrize(("name", "masked"), [("SUNMASK", True), ("Coconet", False), ("SUNDAE", False)])
def test_masked_loss(name, masked):
    """Row 2: the predictions at given cells do not enter the loss."""
    model, question = fixed(name), asking(0, 5, 6)
    loss = OBJECTIVES[name].loss(model, some_rows(), rank_of(question), generator=Generator().manual_seed(0))
    loss.sum().backward()
    moved = model.network.logits.grad.abs().sum(1) > 0
    assert bool(moved[question.asked[0]].all())
    assert bool(moved[question.given[0]].any()) is not masked


@pytest.mark.parametrize(
    ("name", "nats"),
    [
        ("SUNMASK", lambda a: a / (1 + a)),
        ("Coconet", lambda a: N * N / a),
        ("SUNDAE", lambda a: N),
    ],
)
def test_re_weighted_loss(name, nats):
    """Row 3: where every cell costs log P nats, the loss says how cells are weighted, and by what."""
    model = fixed(name)
    nn.init.zeros_(model.network.logits)
    for count in (1, 3, 12):
        question = asking(*range(count))
        loss = OBJECTIVES[name].loss(model, some_rows(), rank_of(question), generator=Generator().manual_seed(0))
        assert float(loss.detach()) == pytest.approx(nats(count) * math.log(CODES), rel=1e-5)


@pytest.mark.parametrize(("name", "steps"), [("SUNMASK", 2), ("Coconet", 1), ("SUNDAE", 2)])
def test_unrolled_loss(name, steps):
    """Row 4: the second step is shown the first one's answers, under the same mask."""
    model, question, rows = fixed(name), asking(0, 5, 6), some_rows()
    nn.init.zeros_(model.network.logits)
    with torch.no_grad():
        model.network.logits[:, 7] = 50.0  # it always answers 7
    OBJECTIVES[name].loss(model, rows, rank_of(question), generator=Generator().manual_seed(0))
    assert len(model.network.seen) == steps
    first, told = model.network.seen[0]
    assert torch.equal(first[question.given], rows.x[question.given])
    if steps == 2:
        second, again = model.network.seen[1]
        assert torch.equal(told, again)
        assert not torch.equal(first[question.asked], second[question.asked])
        assert second[question.asked].tolist() == [7, 7, 7]
        assert bool((second == 7).all())  # equation 2: x_1 ~ f(. | x_0; m) in every cell, trusted ones too


def test_the_variant_that_keeps_the_given_values_shows_them_in_both_steps():
    model, question, rows = fixed("SUNMASK"), asking(0), some_rows()
    sunmask.objective(N, redraw_given=False).loss(model, rows, rank_of(question), generator=Generator().manual_seed(0))
    (_, _), (second, told) = model.network.seen
    assert torch.equal(second[question.given], rows.x[question.given])
    assert torch.equal(told, question.given)


class Table(nn.Module, Unspecified):
    """Three cells of two codes: logits of its own for every (values, trusted) it may be shown."""

    def __init__(self):
        super().__init__()
        self.variables = 3
        self.logits = torch.randn(8, 8, 3, 2, generator=Generator().manual_seed(6)) * 1.5

    def forward(self, x, known, context=None):
        code = torch.tensor([4, 2, 1])
        return self.logits[(x * code).sum(1), (known * code).sum(1)]


def enumerated_loss(table, x, given, *, redraw_given):
    """1/2 (L1 + L2) of equation 2, every x_0 and x_1 summed over with its probability, weight 1 / (1 + unknown)."""
    everything = torch.tensor(list(itertools.product((0, 1), repeat=3)))
    unknown = ~given
    told = given.expand(8, -1)
    log_probs = table(everything, told).double().log_softmax(-1)  # by what is shown: (8, 3, 2)
    nats = -(log_probs[:, torch.arange(3), x] * unknown).sum(1) / (1 + unknown.sum())  # (8,)
    first = torch.where((everything == x)[:, given].all(1), 0.5 ** int(unknown.sum()), 0.0).double()
    probs = log_probs.exp()
    step = torch.ones(8, 8, dtype=torch.float64)  # P(x_1 | x_0)
    for cell in range(3):
        drawn = probs[:, cell][:, everything[:, cell]]
        kept = (everything[:, cell] == everything[:, cell, None]).double()
        step *= drawn if redraw_given or bool(unknown[cell]) else kept
    return float((first @ nats + first @ step @ nats) / 2)


@pytest.mark.parametrize("redraw_given", [True, False])
@pytest.mark.parametrize("given", [(1, 1, 0), (1, 0, 0), (0, 0, 0)])
def test_the_unrolled_loss_equals_enumeration_over_both_steps_on_three_cells(given, redraw_given):
    """Mean over 40,000 draws within 4.5 standard errors of the sum: a false alarm in 24,000 runs of the six cases."""
    table, x = Table(), torch.tensor([1, 0, 1])
    model = Model(table, Categorical(2), corruption=Uniform(2), factorizations=[Factorization.ANY_ORDER])
    known = torch.tensor(given).bool()
    rows = Rows(x.expand(40_000, -1), torch.ones(40_000, 3).bool())
    rank = torch.where(known, -1, 0).expand(40_000, -1)
    objective = sunmask.objective(3, redraw_given=redraw_given)
    with torch.no_grad():
        loss = objective.loss(model, rows, rank, generator=Generator().manual_seed(8)).double()
    error = float(loss.std()) / 200
    exact = {way: enumerated_loss(table, x, known, redraw_given=way) for way in (True, False)}
    assert abs(float(loss.mean()) - exact[redraw_given]) < 4.5 * error
    if any(given):  # the two readings really differ, and by more than the error
        assert abs(exact[True] - exact[False]) > 10 * error


def run(name, rounds=64, rows=60):
    model = fixed(name)
    policies = {
        "SUNMASK": sunmask.sampler("T", voices=4, rounds=rounds),
        "Coconet": coconet.sampler(rounds),
        "SUNDAE": sundae.sampler("", rounds=rounds),
    }
    policy, draw = policies[name]
    nothing = torch.zeros(rows, N).bool()
    x = torch.zeros(rows, N, dtype=torch.int64)
    generator = Generator().manual_seed(3)
    states = list(trace(model, x, Question(nothing, ~nothing), policy, draw=draw, generator=generator))
    return model.network.seen, states


@pytest.mark.parametrize(
    ("name", "lowest"), [("SUNMASK", 0.001), ("Coconet", 0.1), ("SUNDAE", None)], ids=["SUNMASK", "Coconet", "SUNDAE"]
)
def test_inference_mask_schedule(name, lowest):
    """Row 5: what the network is told to trust grows from nothing to nearly everything; SUNDAE's never moves."""
    seen, _ = run(name)
    told = torch.stack([known.double().mean() for _, known in seen])
    if lowest is None:
        assert bool((told == 1.0).all())
        return
    assert told[0] == 0.0
    assert told[16] == pytest.approx({"SUNMASK": 1 / 3, "Coconet": 0.386}[name], abs=0.06)  # a quarter of the way
    assert told[-8:].mean() == pytest.approx(1 - lowest, abs=0.02)


@pytest.mark.parametrize(("name", "rejects"), [("SUNMASK", True), ("Coconet", False), ("SUNDAE", True)])
def test_sampling_rejection_step(name, rejects):
    """Row 6: predictions for cells that are not trusted may go unused."""
    seen, states = run(name)
    unused = 0
    for (_, known), (before, after) in zip(seen, itertools.pairwise(states), strict=True):
        predicted = torch.ones_like(known) if name == "SUNDAE" else ~known
        unused += int((predicted & (after.rank != before.step)).sum())
    assert (unused > 0) is rejects


@pytest.mark.parametrize("name", MODELS)
def test_mask_control_preserves_data(name):
    """Row 7: a value may be shown without being trusted (``held``), and that is different from giving it."""
    model, x = made(name), some_rows().x
    other = x.clone()
    other[0, 5] = (x[0, 5] + 9) % CODES
    given, held = asking(0, 5).given, asking(5).given  # cell 0 is unknown in both; cell 5 in the first only
    noticed = not torch.equal(answers(model, x, given), answers(model, other, given))
    distrusted = not torch.equal(answers(model, x, given), answers(model, x, held | asking(0).given))
    control = noticed and distrusted
    assert control is name.startswith("SM")
    assert noticed is (name != "Coconet")


@pytest.mark.parametrize("name", ["SUNMASK", "Coconet", "SUNDAE"])
def test_a_soprano_may_be_given_or_held_and_stays_either_way(name):
    model = made({"SUNMASK": "SMc", "Coconet": "Coconet", "SUNDAE": "SDc"}[name])
    x = some_rows(3).x
    soprano = (torch.arange(N) % 4 == 0).expand(3, -1)
    policy, draw = SAMPLERS[name]
    drawn = []
    for given, held in ((soprano, torch.zeros_like(soprano)), (torch.zeros_like(soprano), soprano)):
        generator = Generator().manual_seed(1)
        question = Question(given, ~soprano)
        out = sample(
            model, x, question, policy=policy, draw=draw, held=held, generator=generator, allow_untrained=True
        ).x
        assert torch.equal(out[soprano], x[soprano])
        drawn.append(out)
    assert torch.equal(*drawn) is (name == "SUNDAE")  # which cannot tell one lock from the other


def test_the_variants_of_table_2_have_names():
    assert {*sunmask.VARIANTS} == {"", "A", "T", "N", "AT", "AN", "TN", "ATN"}
    for letters in sunmask.VARIANTS:
        policy, draw = sunmask.sampler(letters, voices=4)
        assert (policy.balanced, policy.noisy) == ("A" in letters, "N" in letters)
        assert policy.rounds == 1024
        assert draw == (Draw(0.6, typical_k=3) if "T" in letters else Draw(0.6, top_k=3))
    assert sunmask.sampler("T", values=None, mass=0.2)[1] == Draw(0.6, typical=0.2)
    assert sunmask.sampler("", values=None, mass=0.9)[1] == Draw(0.6, nucleus=0.9)
    with pytest.raises(ValueError, match="mass"):  # the released script for news: every value is typical
        sunmask.sampler("T", mass=1.0)
    with pytest.raises(ValueError, match="typical sampling"):
        sunmask.sampler("T", values=None)
    for letters in sundae.VARIANTS:
        policy, draw = sundae.sampler(letters)
        assert (policy.balanced, policy.trust, policy.share) == ("A" in letters, None, 0.3)
        assert draw == (Draw(0.8, typical_k=3) if "T" in letters else Draw(0.8, top_k=3))
    for make, letters in ((sunmask.sampler, "TA"), (sunmask.sampler, "X"), (sundae.sampler, "N")):
        with pytest.raises(ValueError, match="variant"):
            make(letters)
    with pytest.raises(ValueError, match="network"):
        sundae.model(CODES, (STEPS, 4), network="forest")


def test_the_even_start_is_one_of_networks_over_time_and_pitch() -> None:
    for make in (sunmask.model, sundae.model):
        assert make(CODES, (STEPS, 4), width=4, even=True).network.even
        with pytest.raises(ValueError, match="even"):
            make(CODES, (STEPS, 4), network="time", width=8, even=True)
    with pytest.raises(ValueError, match="even"):
        sundae.model(CODES, (STEPS, 4), network="transformer", width=32, even=True)


@pytest.mark.parametrize(
    "name",
    [
        "SMc",
        "SMc, pitch in channels",
        "SMt",
        "Coconet",
        pytest.param("SDc", marks=pytest.mark.slow),
        pytest.param("SDt", marks=pytest.mark.slow),
    ],
)
def test_every_recipe_learns_and_a_seed_says_what_its_model_is_born_with(name):
    """A corpus of one piece: a few steps bring the loss down."""
    objective = {"SM": sunmask, "Co": coconet, "SD": sundae}[name[:2]].objective(N)
    model, twin = MODELS[name](), MODELS[name]()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))
    x = some_rows().x.repeat(16, 1)
    rows = Rows(x, torch.ones_like(x, dtype=torch.bool))

    def loss():
        model.train()  # batch norm by the batch itself: so few steps leave its memory empty
        with torch.no_grad():
            return float(objective(model, rows, generator=Generator().manual_seed(7)).mean())

    before = loss()
    fit(model, rows, objective, FitOptions(steps=15, batch_size=8, learning_rate=1e-2, seed=0))
    assert loss() < 0.8 * before
