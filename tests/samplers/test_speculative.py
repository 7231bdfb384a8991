"""Speculation changes the number of passes and nothing else. False alarms: p > 0.001 with fixed seeds."""

import itertools
import math

import pytest
import torch
from torch import Generator, nn

from anyfill.likelihoods import Gaussian, LogisticMixture
from anyfill.model import Model
from anyfill.networks import Discrete, OnePassTransformer
from anyfill.networks.exact import EnumeratedJoint, RandomConditionals
from anyfill.networks.network import Unspecified
from anyfill.questions import Decreasing, Factorization, Increasing, Question, chain_rank
from anyfill.samplers import CachedChain, Draw, Follow, Speculative, sample, trace
from anyfill.samplers.drafts import NgramDraft

ROWS = 20_000


@pytest.mark.parametrize(("variables", "values"), [(6, 2), (4, 3)])
@pytest.mark.parametrize("concentration", [0.3, 5.0])
def test_a_joint_is_drawn_exactly(kit, generator, variables, values, concentration):
    joint = EnumeratedJoint.random(variables, values, generator=generator, concentration=concentration)
    model = kit.model(joint, values)
    question = kit.question(ROWS, [], range(variables), variables)
    x = torch.zeros(ROWS, variables).long()
    out = sample(model, x, question, policy=Speculative(), generator=generator)
    assert kit.p_value(out.x, joint.probabilities.flatten()) > 0.001


def test_a_conditional_is_drawn_exactly(kit, generator):
    joint = EnumeratedJoint.random(6, 2, generator=generator, concentration=0.5)
    model = kit.model(joint, 2)
    question = kit.question(ROWS, [1, 4], [0, 3, 5], 6)
    x = torch.tensor([0, 1, 0, 0, 1, 0]).expand(ROWS, 6)
    out = sample(model, x, question, policy=Speculative(), generator=generator).x
    law = joint.probabilities[:, 1, :, :, 1, :].sum(1)
    assert kit.p_value(out[:, [0, 3, 5]], (law / law.sum()).flatten()) > 0.001


DRAWS = [Draw(), Draw(top_k=2), Draw(temperature=0.6), Draw(nucleus=0.8), Draw(typical=0.7), Draw(temperature=0.0)]


@pytest.mark.parametrize("order", [Increasing(), Decreasing()])
@pytest.mark.parametrize("draw", DRAWS)
def test_conditionals_that_fit_no_joint_are_drawn_as_one_by_one(kit, generator, order, draw):
    """The law of the chain in its order, written out in full; in the other order it is another one."""
    model = kit.model(RandomConditionals(4, 3, seed=2, scale=2.0), 3, order=order)
    masks = kit.question(1, [2], [0, 1, 3], 4)
    x = torch.tensor([0, 0, 1, 0])
    question = kit.question(ROWS, [2], [0, 1, 3], 4)
    out = sample(model, x.expand(ROWS, 4), question, policy=Speculative(), draw=draw, generator=generator)
    law = kit.chain_law(model, (masks.given, masks.asked), x, order, draw)
    assert float(law.sum()) == pytest.approx(1.0)
    assert kit.p_value(out.x, law) > 0.001
    unshaped = kit.chain_law(model, (masks.given, masks.asked), x, order)
    if draw != Draw():
        assert kit.p_value(out.x, unshaped) < 1e-6  # the test can tell


@pytest.mark.parametrize("draw", [Draw(), Draw(top_k=2, temperature=0.8)])
def test_a_transformer_with_random_weights_is_drawn_as_one_by_one(kit, generator, draw):
    model = kit.model(kit.transformer(4, 3), 3)
    masks = kit.question(1, [1], [0, 2, 3], 4)
    x = torch.tensor([0, 2, 0, 0])
    rows = 8000
    question = kit.question(rows, [1], [0, 2, 3], 4)
    out = sample(model, x.expand(rows, 4), question, policy=Speculative(), draw=draw, generator=generator)
    with torch.no_grad():
        law = kit.chain_law(model, (masks.given, masks.asked), x, Increasing(), draw)
        swapped = kit.chain_law(model, (masks.given, masks.asked), x, Decreasing(), draw)
    assert kit.p_value(out.x, law) > 0.001
    assert kit.p_value(out.x, swapped) < 1e-6


def test_drafts_taken_for_answers_would_be_noticed(kit, generator):
    """The same test on the drafts alone, one parallel group, fails: it has the power to see a lazy verifier."""
    model = kit.model(RandomConditionals(4, 3, seed=2, scale=2.0), 3)
    masks = kit.question(1, [2], [0, 1, 3], 4)
    x = torch.tensor([0, 0, 1, 0])
    question = kit.question(ROWS, [2], [0, 1, 3], 4)
    out = sample(model, x.expand(ROWS, 4), question, policy=Follow(groups=1), generator=generator)
    law = kit.chain_law(model, (masks.given, masks.asked), x, Increasing())
    assert kit.p_value(out.x, law) < 1e-6


def test_weak_dependence_takes_fewer_passes_than_variables(kit, generator):
    joint = EnumeratedJoint.random(10, 2, generator=generator, concentration=30.0)
    model = kit.model(joint, 2)
    question = kit.question(200, [], range(10), 10)
    out = sample(model, torch.zeros(200, 10).long(), question, policy=Speculative(), generator=generator)
    assert float(out.row_passes.double().mean()) < 5
    assert out.passes < 10


def test_independent_variables_take_two_passes_however_many(kit, generator):
    model = kit.model(EnumeratedJoint(12, 2), 2)
    question = kit.question(50, [], range(12), 12)
    out = sample(model, torch.zeros(50, 12).long(), question, policy=Speculative(), generator=generator)
    assert out.passes == 2


def test_a_pair_of_passes_answers_two_variables_at_least(kit, generator):
    """Even for conditionals as contrary as can be, no row takes more passes than it asks variables."""
    model = kit.model(RandomConditionals(6, 2, scale=50.0), 2)
    asked = torch.rand(300, 6, generator=generator) < 0.7
    question = Question(torch.zeros_like(asked), asked)
    out = sample(model, torch.zeros(300, 6).long(), question, policy=Speculative(), generator=generator)
    count = asked.sum(1)
    assert bool((out.row_passes <= count).all())
    assert out.passes == int(out.row_passes.max())
    assert bool((out.row_passes[count == 1] == 1).all())
    assert bool((out.row_passes[count == 0] == 0).all())


def test_rows_advance_on_their_own(kit, generator):
    model = kit.model(EnumeratedJoint.random(6, 2, generator=generator, concentration=0.2), 2)
    question = kit.question(100, [], range(6), 6)
    states = list(trace(model, torch.zeros(100, 6).long(), question, Speculative(), generator=generator))
    middle = states[1].known.sum(1)
    assert middle.min() >= 2
    assert middle.unique().numel() > 1
    assert bool(states[-1].known.all())
    assert states[-1].row_passes.unique().numel() > 1
    for before, after in itertools.pairwise(states):  # what stands once stands for good
        assert torch.equal(after.x[before.known], before.x[before.known])
        assert torch.equal(after.rank[before.known], before.rank[before.known])


def test_the_score_is_the_log_probability_under_the_chain(kit, generator):
    model = kit.model(RandomConditionals(5, 3), 3)
    question = kit.question(200, [1], [0, 2, 4], 5)
    x = torch.randint(3, (200, 5), generator=generator)
    *_, last = trace(model, x, question, Speculative(), draw=Draw(top_k=2), generator=generator)
    rank = chain_rank(Increasing(), question)
    terms = model.chain(last.x, rank).log_prob(last.x)
    torch.testing.assert_close(last.score, torch.where(question.asked, terms, 0.0))


class Sided(nn.Module, Unspecified):
    """Every variable takes the value its context names: rows must keep their own context as others leave."""

    def __init__(self):
        super().__init__()
        self.variables = 4

    def forward(self, x, known, context=None):
        return 50.0 * nn.functional.one_hot(context, 3).double().unsqueeze(1).expand(-1, 4, -1)

    def chain(self, x, rank, context=None, *, strict=False):
        return self.forward(x, rank < 0, context)


def test_each_row_keeps_its_own_context(kit, generator):
    model = kit.model(Sided(), 3)
    context = torch.arange(30) % 3
    asked = torch.rand(30, 4, generator=generator) < 0.5
    asked[:7] = False  # the first rows have nothing to answer, so the others move up in the batch
    question = Question(torch.zeros_like(asked), asked)
    x = torch.full((30, 4), -7)
    out = sample(model, x, question, policy=Speculative(), context=context, generator=generator).x
    assert torch.equal(out, torch.where(asked, context.unsqueeze(1), x))


def test_only_one_pass_networks_with_discrete_values_can_speculate(kit, generator):
    joint = EnumeratedJoint(2, 2)
    question = kit.question(3, [], [0, 1], 2)
    with pytest.raises(ValueError, match="one-pass"):
        sample(kit.model(kit.masked(joint), 2), torch.zeros(3, 2), question, policy=Speculative(), generator=generator)
    model = Model(joint, Gaussian(), factorizations=[Factorization.ANY_ORDER])
    with pytest.raises(ValueError, match="discrete"):
        sample(model, torch.zeros(3, 2), question, policy=Speculative(), generator=generator)


def test_a_sampler_traced_by_hand_and_by_sample_agree(kit):
    model = kit.model(EnumeratedJoint.random(4, 2, generator=Generator().manual_seed(1)), 2)
    question = kit.question(5, [0], [1, 3], 4)
    x = torch.ones(5, 4).long()
    *_, last = trace(model, x, question, Follow(), generator=Generator().manual_seed(2))
    assert torch.equal(last.x, sample(model, x, question, policy=Follow(), generator=Generator().manual_seed(2)).x)


def ngrams(values, order=3, seed=0):
    """Counts of random rows: a draft that has little to do with any model here."""
    return NgramDraft.of(torch.randint(values, (20, 8), generator=Generator().manual_seed(seed)), values, order=order)


UNEVEN = [([1], [0, 2, 3]), ([], [0, 1, 2, 3]), ([0, 3], [2]), ([], [1, 3]), ([0, 1, 2, 3], [])]
SPECULATIVE = {
    "own": Speculative(),
    "own, one at a time": Speculative(window=1),
    "own, two": Speculative(window=2, price=0.0),
    "counts": Speculative(draft=ngrams(3)),
    "counts, all at once": Speculative(draft=ngrams(3), price=0.0),
    "single counts": Speculative(draft=ngrams(3, order=1), window=1),
}


@pytest.mark.parametrize("name", SPECULATIVE)
@pytest.mark.parametrize("draw", [Draw(), Draw(top_k=2, temperature=0.8)])
def test_rows_with_questions_of_their_own_are_each_drawn_from_the_chain(kit, generator, name, draw):
    """From the cache, in one batch, whatever drafts; the last question asks nothing."""
    model, x, rows = kit.model(kit.transformer(4, 3), 3), torch.tensor([2, 0, 1, 0]), 2000
    questions = [kit.question(rows, *one, 4) for one in UNEVEN]
    together = Question(*(torch.stack([getattr(q, part) for q in questions], 1).flatten(0, 1) for part in FIELDS))
    start = torch.where(together.given, x, 0)
    out = sample(model, start, together, policy=SPECULATIVE[name], draw=draw, generator=generator)
    for at, question in enumerate(questions):
        masks = (question.given[:1], question.asked[:1])
        law = kit.chain_law(model, masks, torch.where(masks[0][0], x, 0), Increasing(), draw).detach()
        assert kit.p_value(out.x[at :: len(questions)], law) > 0.001
    assert bool((out.row_passes <= together.asked.sum(1)).all())
    assert out.passes == int(out.row_passes.max())


FIELDS = ("given", "asked")


@pytest.mark.parametrize("order", [Increasing(), Decreasing()])
@pytest.mark.parametrize("draw", [Draw(), Draw(nucleus=0.8), Draw(temperature=0.0)])
def test_drafts_from_counts_leave_the_law_of_a_network_without_a_cache(kit, generator, order, draw):
    model = kit.model(RandomConditionals(4, 3, seed=2, scale=2.0), 3, order=order)
    masks, x = kit.question(1, [2], [0, 1, 3], 4), torch.tensor([0, 0, 1, 0])
    question, policy = kit.question(ROWS, [2], [0, 1, 3], 4), Speculative(draft=ngrams(3), price=0.0)
    out = sample(model, x.expand(ROWS, 4), question, policy=policy, draw=draw, generator=generator)
    law = kit.chain_law(model, (masks.given, masks.asked), x, order, draw)
    assert kit.p_value(out.x, law) > 0.001


@pytest.mark.slow
@pytest.mark.parametrize("name", ["own", "counts, all at once"])
def test_single_rows_are_drawn_from_the_chain(kit, generator, name):
    model, question = kit.model(kit.transformer(3, 2), 2), kit.question(1, [], range(3), 3)
    policy = Speculative(draft=ngrams(2) if "counts" in name else None, price=0.0)
    blank = torch.zeros(1, 3).long()
    drawn = torch.cat([sample(model, blank, question, policy=policy, generator=generator).x for _ in range(300)])
    law = kit.chain_law(model, (question.given, question.asked), blank[0], Increasing()).detach()
    assert kit.p_value(drawn, law) > 0.001


class Lying:
    """Draws evenly and says it drew from the counts."""

    def __init__(self, honest):
        self.honest = honest

    def __call__(self, x, known, variables, *, draw, generator):
        _, log_probs = self.honest(x, known, variables, draw=draw, generator=generator)
        return torch.randint(3, variables.shape, generator=generator), log_probs


def test_a_draft_that_misstates_its_law_would_be_noticed(kit, generator):
    model, question = kit.model(kit.transformer(4, 3), 3), kit.question(ROWS, [], range(4), 4)
    lying = Speculative(draft=Lying(NgramDraft.of(torch.tensor([0, 0, 0, 1, 0, 0, 2, 0, 0, 0]), 3, order=1)), price=0.0)
    out = sample(model, torch.zeros(ROWS, 4).long(), question, policy=lying, generator=generator)
    law = kit.chain_law(model, (question.given[:1], question.asked[:1]), torch.zeros(4), Increasing()).detach()
    assert kit.p_value(out.x, law) < 1e-6


@pytest.mark.parametrize("name", SPECULATIVE)
def test_every_pass_is_counted_and_the_same_generator_gives_the_same_draw(kit, name, monkeypatch):
    model = kit.model(kit.transformer(9, 3), 3)
    calls = []
    for part in ("open", "extend", "advance", "peek", "chain"):
        method = getattr(model.network, part)
        monkeypatch.setattr(model.network, part, lambda *a, method=method: calls.append(1) or method(*a), raising=True)
    asked = torch.rand(7, 9, generator=Generator().manual_seed(3)) < 0.6
    question = Question(~asked & (torch.arange(9) % 2 == 0), asked)
    x = torch.ones(7, 9).long()
    first, again = (
        sample(model, x, question, policy=SPECULATIVE[name], generator=Generator().manual_seed(5)) for _ in range(2)
    )
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.row_passes, again.row_passes)
    assert len(calls) == first.passes + again.passes
    other = sample(model, x, question, policy=SPECULATIVE[name], generator=Generator().manual_seed(6))
    assert not torch.equal(first.x, other.x)


@pytest.mark.parametrize("name", SPECULATIVE)
def test_modes_are_those_of_one_by_one_sampling(kit, generator, name):
    """Over many rounds and rows that end at different times: what was rejected leaves no trace in the cache."""
    model = kit.model(kit.transformer(24, 3), 3)
    asked = torch.rand(12, 24, generator=generator) < torch.rand(12, 1, generator=generator)
    given = ~asked & (torch.rand(12, 24, generator=generator) < 0.5)
    x, question, mode = torch.randint(3, (12, 24), generator=generator), Question(given, asked), Draw(temperature=0.0)
    slow = sample(model, x, question, policy=CachedChain(), draw=mode, generator=generator, allow_untrained=True)
    fast = sample(model, x, question, policy=SPECULATIVE[name], draw=mode, generator=generator, allow_untrained=True)
    assert torch.equal(slow.x, fast.x)
    *_, last = trace(model, x, question, SPECULATIVE[name], generator=generator, allow_untrained=True)
    terms = model.chain(last.x, chain_rank(Increasing(), question)).log_prob(last.x).double()
    torch.testing.assert_close(last.score, torch.where(asked, terms, 0.0), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["own", "counts"])
def test_rows_of_a_cache_keep_their_own_context(kit, generator, name):
    net = OnePassTransformer(Discrete(3), (12,), 3, width=16, depth=1, heads=2, context_width=2)
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.5)
    model, context = kit.model(net, 3), torch.randn(16, 2, generator=generator)
    asked = torch.arange(12) < torch.arange(16).unsqueeze(1)  # rows leave one after another
    question, x, mode = Question(torch.zeros_like(asked), asked), torch.zeros(16, 12).long(), Draw(temperature=0.0)
    told = {"draw": mode, "context": context, "generator": generator}
    slow = sample(model, x, question, policy=CachedChain(), **told)
    assert torch.equal(slow.x, sample(model, x, question, policy=SPECULATIVE[name], **told).x)
    told["context"] = -context
    assert not torch.equal(slow.x, sample(model, x, question, policy=SPECULATIVE[name], **told).x)
    with pytest.raises(ValueError, match="context: expected vectors of length 2, got none"):
        sample(model, x, question, policy=SPECULATIVE[name], generator=generator)


class Knowing:
    """Guesses as the model itself answers, one by one."""

    def __init__(self, model):
        self.model = model

    def __call__(self, x, known, variables, *, draw, generator):
        guesses, laws = [], []
        for variable in variables.unbind(1):
            log_probs = self.model.marginals(x, known).log_probs[torch.arange(len(x)), variable].double()
            guess = torch.multinomial(log_probs.exp(), 1, generator=generator)
            x, known = x.scatter(1, variable.unsqueeze(1), guess), known.scatter(1, variable.unsqueeze(1), True)
            guesses.append(guess)
            laws.append(log_probs)
        return torch.cat(guesses, 1), torch.stack(laws, 1)


def test_a_perfect_draft_is_accepted_whole(kit, generator):
    model = kit.model(kit.transformer(9, 3), 3)
    question = kit.question(40, [], range(9), 9)
    policy = Speculative(draft=Knowing(model), window=3, price=0.0)
    out = sample(model, torch.zeros(40, 9).long(), question, policy=policy, generator=generator)
    assert out.passes == 3  # one variable with the first pass, then three guesses and one behind them at a time
    assert bool((out.row_passes == 3).all())


class Stubborn:
    """Guesses 0, and is sure of it."""

    def __init__(self):
        self.widths = []

    def __call__(self, x, known, variables, *, draw, generator):
        self.widths.append(variables.shape[1])
        sure = torch.tensor([0.0, -torch.inf, -torch.inf], dtype=torch.float64)
        return torch.zeros_like(variables), sure.expand(*variables.shape, 3)


@pytest.mark.parametrize(("price", "first", "later"), [(0.0, 7, 6), (0.2, 3, 1), (5.0, 1, 1)])
def test_a_high_price_and_bad_luck_make_for_short_windows(kit, generator, price, first, later):
    """3 of 4 is what luck begins with; 1 of 3 is what a stubborn draft finds."""
    model, question, draft = kit.model(untrained(9, 3), 3), kit.question(300, [], range(9), 9), Stubborn()
    policy = Speculative(draft=draft, price=price)
    out = sample(model, torch.zeros(300, 9).long(), question, policy=policy, generator=generator)
    assert draft.widths[0] == first
    assert draft.widths[1] == later
    share = (out.x == 0).double().mean()
    assert abs(float(share) - 1 / 3) < 5 * math.sqrt(2 / 9 / out.x.numel())


def untrained(variables, values):
    """A transformer before any training: every value is as likely as any other."""
    network = OnePassTransformer(Discrete(values), (variables,), values, width=16, depth=1, heads=2)
    nn.init.zeros_(network.head.bias)  # its weight begins as zero
    return network


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"window": 0}, "window: expected a whole number from 1 up, got 0"),
        ({"price": -1.0}, "price: expected None, or a number of at least 0, got -1.0"),
        ({"price": float("nan")}, "price: expected None, or a number of at least 0, got nan"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        Speculative(**settings)


def test_a_draft_of_another_vocabulary_is_refused(kit, generator):
    model, question = kit.model(kit.transformer(4, 3), 3), kit.question(2, [], range(4), 4)
    policy = Speculative(draft=ngrams(2))
    with pytest.raises(ValueError, match="draft: expected distributions over 3 codes, as the model has, got 2"):
        sample(model, torch.zeros(2, 4).long(), question, policy=policy, generator=generator)


def test_a_temperature_that_shrinks_scales_is_not_taken_for_a_power(generator):
    """Logistics at temperature T have another law than p^(1/T): that is refused, not drawn from in silence."""
    likelihood = LogisticMixture(16, 2)
    torch.manual_seed(0)
    network = OnePassTransformer(Discrete(16), (4,), likelihood.width, 16, 1, 2)
    model = Model(network, likelihood, factorizations=[Factorization.DIRECT])
    x, question = torch.zeros(3, 4).long(), Question.of(4, batch=3)

    def drawn(draw: Draw) -> torch.Tensor:
        return sample(model, x, question, policy=Speculative(), draw=draw, generator=generator).x

    for draw in (Draw(), Draw(temperature=0.0), Draw(temperature=0.5, top_k=3)):
        assert drawn(draw).shape == (3, 4)
    with pytest.raises(ValueError, match=r"temperature: expected 1 or 0 with the speculative sampler.* got 0\.5"):
        drawn(Draw(temperature=0.5))
