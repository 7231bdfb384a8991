"""Parallel decoders: what each pass masks and writes, by hand; kept values stay; stutter goes back to what it was."""

from dataclasses import dataclass
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from anyfill import Draw, Model, Question, recipes
from anyfill.corruption import Constant, Headed
from anyfill.likelihoods import Categorical
from anyfill.networks.network import Unspecified
from anyfill.questions import Factorization
from anyfill.rank import NEVER
from anyfill.samplers import MaskPredict, Restricted, RewriteAll, State, Task, beam_search, repeated, sample, trace
from anyfill.samplers.loop import run

V, N = 7, 5
SMALL = {"width": 8, "depth": 1, "heads": 2, "places": 12, "dropout": 0.0}


@dataclass(eq=False, repr=False)
class Scripted(nn.Module, Unspecified):
    """Answers call after call from a list of (word, probability) for each place; notes what it was shown."""

    script: tuple[tuple[tuple[int, float], ...], ...]

    def __post_init__(self):
        super().__init__()
        self.seen = []

    @property
    def variables(self):
        return len(self.script[0]) + 1

    def forward(self, x, known, context=None):
        answers = self.script[len(self.seen)]
        self.seen.append((x.clone(), known.clone()))
        probs = torch.zeros(1, self.variables, V) + 1e-6
        for place, (word, probability) in enumerate(answers, 1):
            rest = (1 - probability) / (V - 1)
            probs[0, place] = rest
            probs[0, place, word] = probability
        return probs.log()


def scripted(*passes, corruption=None):
    network = Scripted(tuple(passes))
    return Model(network, Categorical(V), corruption=corruption, factorizations=[Factorization.ANY_ORDER])


def decode(model, policy, fixed=None, n=None):
    """All states of decoding n words (all by default) under a given length."""
    n = model.variables - 1 if n is None else n
    x = torch.zeros(1, model.variables, dtype=torch.long)
    x[0, 0] = n
    told = torch.zeros_like(x, dtype=torch.bool)
    told[0, 0] = True
    for place, word in (fixed or {}).items():
        x[0, place], told[0, place] = word, True
    asked = (torch.arange(model.variables) <= n).unsqueeze(0) & ~told
    generator = torch.Generator().manual_seed(0)
    return list(trace(model, x, Question(told, asked), policy=policy, draw=Draw(temperature=0.0), generator=generator))


def test_mask_predict_masks_by_hand():
    """Four words, four passes: 3, 2, 1 are masked before passes 2, 3, 4, the least probable when they were written."""
    first = ((3, 0.9), (4, 0.5), (5, 0.7), (6, 0.6))
    second = ((3, 0.2), (4, 0.3), (6, 0.8), (3, 0.95))  # writes 2, 3, 4: place 1 was surest
    third = ((3, 0.2), (5, 0.4), (4, 0.65), (4, 0.2))  # 2 (.3) and 3 (.8) are least: .9 .3 .8 .95
    fourth = ((5, 0.99),) * 4  # 2 (.4) is least: .9 .4 .65 .95
    model = scripted(first, second, third, fourth)
    states = decode(model, MaskPredict(4))
    assert [state.x[0, 1:].tolist() for state in states[1:]] == [
        [3, 4, 5, 6],
        [3, 4, 6, 3],
        [3, 5, 4, 3],
        [3, 5, 4, 3],
    ]
    shown = [known[0, 1:].tolist() for _, known in model.network.seen]
    assert shown[0] == [False] * 4
    assert shown[1] == [True, False, False, False]
    assert shown[2] == [True, False, False, True]
    assert shown[3] == [True, False, True, True]
    assert model.network.seen[3][0][0, 2] == 0  # what is masked is not read


def test_rewriting_stops_where_a_pass_changes_nothing_and_shows_everything_it_wrote():
    words = ((3, 0.9), (4, 0.9), (5, 0.9))
    model = scripted(((3, 0.9), (5, 0.9), (4, 0.9)), words, words, words, corruption=Headed(Constant(0)))
    states = decode(model, RewriteAll(4))
    assert states[-1].passes == 3
    assert [shown[0, 1:].tolist() for shown, _ in model.network.seen] == [[0, 0, 0], [3, 5, 4], [3, 4, 5]]


def test_stutter_goes_back_to_what_stood_there_and_the_last_pass_writes_all():
    model = scripted(
        ((3, 0.9), (3, 0.9), (4, 0.9), (4, 0.9)),
        ((3, 0.9), (5, 0.9), (4, 0.9), (4, 0.9)),
        ((3, 0.9), (5, 0.9), (4, 0.9), (4, 0.9)),
        corruption=Headed(Constant(6)),
    )
    states = decode(model, RewriteAll(3))
    assert [state.x[0, 1:].tolist() for state in states[1:]] == [[3, 6, 4, 6], [3, 5, 4, 6], [3, 5, 4, 4]]
    assert repeated(states[-1].x)[0].tolist() == [False, False, False, False, True]
    loose = scripted(((3, 0.9), (3, 0.9)), ((3, 0.9), (3, 0.9)), corruption=Headed(Constant(6)))
    assert decode(loose, RewriteAll(2, repeats="allow"))[1].x[0, 1:].tolist() == [3, 3]


@pytest.mark.parametrize("repeats", ["allow", "previous"])
def test_a_row_stops_by_itself_and_is_what_it_would_be_alone(repeats):
    model = recipes.padir.model(V, N, **SMALL, seed=3).eval()
    model.factorizations = frozenset({Factorization.ANY_ORDER})
    for weight in model.parameters():
        weight.data *= 2.0
    generator = torch.Generator().manual_seed(1)
    sources = torch.randint(3, V, (12, 4), generator=generator)
    x = torch.randint(3, V, (12, N + 1), generator=generator)
    x[:, 0] = N
    told = torch.zeros(12, N + 1, dtype=torch.bool)
    told[:, 0] = True
    forbidden = torch.zeros(12, 1, V, dtype=torch.bool)
    forbidden[::2, :, 3] = True  # rows have rules of their own
    asked_of: list[int] = []
    model.network.register_forward_pre_hook(lambda _, given: asked_of.append(len(given[0])))

    def decoded(rows):
        draw = Restricted(temperature=0.0, forbidden=forbidden[rows])
        task = Task(model, x[rows], Question(told[rows], ~told[rows]), draw, sources[rows], generator)
        first = State.first(x[rows], torch.where(told[rows], -1, NEVER))
        return list(run(RewriteAll(12, repeats=repeats), task, first))[-1]

    together = decoded(torch.arange(12))
    assert together.passes == len(asked_of)
    assert asked_of == sorted(asked_of, reverse=True)
    assert asked_of[0] == 12 > asked_of[-1]
    for row in range(12):
        alone = decoded(torch.tensor([row]))
        assert alone.x[0].tolist() == together.x[row].tolist()
        assert alone.row_passes[0] == alone.passes == together.row_passes[row]
        torch.testing.assert_close(alone.score[0], together.score[row], atol=1e-5, rtol=1e-5)


def test_stutter_may_become_noise_instead():
    model = scripted(((3, 0.9), (3, 0.9), (4, 0.9)), ((3, 0.9), (5, 0.9), (4, 0.9)), corruption=Headed(Constant(6)))
    states = decode(model, RewriteAll(2, repeats="noise"))
    assert [state.x[0, 1:].tolist() for state in states[1:]] == [[3, 3, 4], [3, 5, 4]]
    assert model.network.seen[1][0][0, 1:].tolist() == [3, 6, 4]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_what_repeats_is_what_equals_the_one_before_it_never_across_the_ends(words):
    x = torch.tensor([[9, *words]])
    expected = [False, False] + [a == b for a, b in pairwise(words)]
    assert repeated(x)[0].tolist() == expected


MODELS = {
    "padir": (recipes.padir, {}, [recipes.padir.sampler(t, stutter=s) for t in (1, 2, 5) for s in (True, False)]),
    "cmlm": (recipes.cmlm, {}, [recipes.cmlm.sampler(t) for t in (1, 3, 9)]),
    "disco": (recipes.disco, {}, [recipes.disco.sampler(t) for t in (1, 2, 5)] + [recipes.cmlm.sampler(3)]),
    "sundae": (recipes.sundae, {"make": "model_words"}, [recipes.sundae.sampler_words(t) for t in (1, 4)]),
    "mask": (recipes.padir, {"start": "mask"}, [recipes.padir.sampler(3)]),
}
BUILT = {}


def untrained(name):
    module, options, samplers = MODELS[name]
    if name not in BUILT:
        options = dict(options)
        build = getattr(module, options.pop("make", "model"))
        model = build(V, N, **SMALL, **options).eval()
        model.factorizations = {Factorization.ANY_ORDER}
        BUILT[name] = model
    return BUILT[name], samplers


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_kept_words_are_always_kept_by_every_decoder(data):
    """Whatever is given, wherever it stands, at every step of every parallel decoder."""
    model, samplers = untrained(data.draw(st.sampled_from(sorted(MODELS))))
    policy, draw = data.draw(st.sampled_from(samplers))
    n = data.draw(st.integers(1, N))
    fixed = data.draw(st.dictionaries(st.integers(1, n), st.integers(0, V - 1)))
    x = torch.zeros(2, n + 1, dtype=torch.long)
    x[:, 0] = n
    told = torch.zeros_like(x, dtype=torch.bool)
    told[:, 0] = True
    for place, word in fixed.items():
        x[:, place], told[:, place] = word, True
    source = torch.tensor([[3, 4, 5], [6, 3, 0]])
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    last = None
    for state in trace(model, x, Question(told, ~told), policy=policy, draw=draw, context=source, generator=generator):
        assert torch.equal(state.x[told], x[told])
        last = state
    assert last.complete(Question(told, ~told))


@settings(max_examples=20, deadline=None)
@given(beginning=st.lists(st.integers(3, V - 1), max_size=N), width=st.integers(1, 4), seed=st.integers(0, 9))
def test_a_beginning_is_kept_by_greedy_and_beam_search(beginning, width, seed):
    model = recipes.autoregressive.model(V, N, **SMALL, seed=seed).eval()
    model.factorizations = {Factorization.PREFIX}
    x = torch.zeros(1, N + 1, dtype=torch.long)
    x[0, : len(beginning)] = torch.tensor(beginning, dtype=torch.long)
    told = torch.arange(N + 1).unsqueeze(0) < len(beginning)
    question, source = Question(told, ~told), torch.tensor([[3, 4]])
    policy, draw = recipes.autoregressive.sampler()
    generator = torch.Generator().manual_seed(0)
    greedy = sample(model, x, question, policy=policy, draw=draw, context=source, generator=generator)
    assert greedy.x[0, : len(beginning)].tolist() == beginning
    for row in beam_search(model, x, question, width=width, context=source, end=2)[0]:
        assert row[: len(beginning)].tolist() == beginning


def test_easy_first_needs_a_chain_and_goes_by_the_first_passes_order():
    model, samplers = untrained("disco")
    masked, _ = untrained("cmlm")
    x, told = torch.tensor([[3, 0, 0, 0]]), torch.tensor([[True, False, False, False]])
    options = {"context": torch.tensor([[3, 4]]), "generator": torch.Generator().manual_seed(0)}
    policy, draw = samplers[2]
    with pytest.raises(ValueError, match="chain in one pass"):
        list(trace(masked, x, Question(told, ~told), policy=policy, draw=draw, **options))
    states = list(trace(model, x, Question(told, ~told), policy=policy, draw=draw, **options))
    source = options["context"]
    first = model.marginals(x, told, source)
    order = first.log_probs.amax(-1)[0, 1:].argsort(descending=True) + 1
    rank = torch.tensor([[-1, 0, 0, 0]])
    rank[0, order] = torch.arange(3)
    second = model.chain(states[1].x, rank, source).mode()
    assert torch.equal(states[1].x[0, 1:], first.mode()[0, 1:])
    assert torch.equal(states[2].x[0, 1:], second[0, 1:])


def test_a_restricted_draw_never_takes_what_is_forbidden():
    marginals = Categorical(3)(torch.tensor([[[5.0, 1.0, 0.0], [0.0, 4.0, 5.0]]]))
    forbidden = torch.tensor([[[True, False, False], [False, False, True]]])
    generator = torch.Generator().manual_seed(0)
    assert Restricted(temperature=0.0, forbidden=forbidden)(marginals, generator=generator).tolist() == [[1, 1]]
    draws = torch.stack([Restricted(forbidden=forbidden)(marginals, generator=generator)[0] for _ in range(200)])
    assert set(draws[:, 0].tolist()) <= {1, 2}
    assert set(draws[:, 1].tolist()) <= {0, 1}
    everything = torch.ones(1, 2, 3, dtype=torch.bool)
    assert Restricted(temperature=0.0, forbidden=everything)(marginals, generator=generator).tolist() == [[0, 2]]
