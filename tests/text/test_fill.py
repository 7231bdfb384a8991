"""Filling: the ranking is that of exact enumeration, and what is given is never changed."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill.corruption import Uniform
from anyfill.model import Model
from anyfill.questions import Factorization
from anyfill.text.bpe import train_bpe
from anyfill.text.encoding import texts_of
from anyfill.text.fill import fill_blanks
from anyfill.text.fills import Fills
from anyfill.text.model import TextModel
from anyfill.text.sampling import SamplingOptions
from anyfill.text.template import Lengths, Template, parse
from anyfill.text.vocabulary import TEXT8, Characters, WithEnd
from anyfill.text.words import Words

ABC = Characters("abc")
COOL = SamplingOptions()
HOT = SamplingOptions(temperature=3.0)
"""Proposes nearly everything equally often; the ranking knows nothing of it."""


def filled(
    loaded: TextModel, text: str, *, unstated=Lengths(1, 2), tokens=False, sampling=COOL, seed=0, **wanted
) -> Fills:
    template = parse(text, unstated=unstated, tokens=tokens)
    *_, (found, share) = fill_blanks(loaded, template, sampling=replace(sampling, seed=seed), **wanted)
    assert share == 1.0
    assert found is not None
    return found


def every(size: int) -> list[str]:
    return ["".join(one) for one in itertools.product("abc", repeat=size)]


def enumerated(loaded: TextModel, step_by_step, texts) -> dict[str, float]:
    """log p of each text, place by place."""
    return {text: step_by_step(loaded.model, loaded.vocabulary.encode(text).long()) for text in texts}


def agree(found: Fills, exact: dict[str, float]) -> None:
    """All texts were found, in the order of their probabilities, with these and their shares."""
    total = torch.tensor(list(exact.values())).logsumexp(0).item()
    assert [one.text for one in found.fills] == sorted(exact, key=lambda text: -exact[text])
    assert found.candidates == len(exact)
    for one in found.fills:
        assert one.log2_probability == pytest.approx(exact[one.text] / math.log(2), abs=1e-5)
        assert one.share == pytest.approx(math.exp(exact[one.text] - total), rel=1e-4)
    assert sum(one.share for one in found.fills) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", [0, 1])
def test_two_blanks_are_ranked_as_all_answers_listed(tiny, step_by_step, seed: int) -> None:
    loaded = tiny(seed=seed)
    exact = enumerated(loaded, step_by_step, [f"a{one}b{two}" for one in every(1) for two in every(2)])
    agree(filled(loaded, "a_b__", n=27, draws=250, seed=seed, sampling=HOT), exact)


def test_blanks_of_several_lengths_are_ranked_by_the_whole_text_without_a_penalty(tiny, step_by_step) -> None:
    loaded = tiny()
    texts = [f"a{one}c{two}b" for one in every(1) + every(2) for two in every(1)]
    found = filled(loaded, "a[]c_b", n=99, draws=200, sampling=HOT)
    agree(found, enumerated(loaded, step_by_step, texts))
    assert (found.tried.combinations, found.tried.tried, found.tried.draws) == (2, 2, 200)


@pytest.mark.parametrize("one_pass", [True, False])
def test_few_fills_are_all_compared_so_that_shares_are_probabilities(tiny, step_by_step, one_pass: bool) -> None:
    loaded = tiny(one_pass=one_pass, factorizations=(Factorization.DIRECT if one_pass else Factorization.ANY_ORDER,))
    texts = [f"a{one}c{two}b" for one in every(1) + every(2) for two in every(1)]
    found = filled(loaded, "a[]c_b", n=99)
    agree(found, enumerated(loaded, step_by_step, texts))
    assert found.complete
    assert (found.tried.combinations, found.tried.listed, found.tried.draws) == (2, 2, 0)
    assert found.fills == filled(loaded, "a[]c_b", n=99, seed=5).fills, "nothing is random"


def test_the_best_fill_is_not_missed_where_draws_would_hardly_ever_propose_it(tiny, step_by_step) -> None:
    loaded = tiny()
    cold = SamplingOptions(temperature=0.0)
    exact = enumerated(loaded, step_by_step, [f"{one}cab" for one in every(2)])
    missed = filled(loaded, "__cab", draws=9, sampling=cold)
    assert missed.candidates == 1
    assert not missed.complete
    asked_for = filled(loaded, "__cab", n=9, sampling=cold)
    assert asked_for.candidates == 1, "whoever says how to draw gets draws"
    agree(filled(loaded, "__cab", n=9), exact)


def test_short_lengths_are_listed_and_longer_ones_drawn(tiny) -> None:
    loaded = tiny(TEXT8, 24)
    found = filled(loaded, "the []at", unstated=Lengths(1, 4), n=10**6)
    assert not found.complete
    assert (found.tried.combinations, found.tried.listed, found.tried.draws) == (4, 2, 128)
    sizes = [len(one.answers[0]) for one in found.fills]
    assert (sizes.count(1), sizes.count(2)) == (26, 26 * 27), "two spaces side by side are one, where text is folded"
    assert 0 < sizes.count(3) + sizes.count(4) <= 256 + 2 * 32
    three = filled(loaded, "the _at in _he h_t")
    assert (three.tried.listed, three.complete) == (0, False), "27^3 fills are too many"


def test_of_long_blanks_fewer_are_drawn(tiny) -> None:
    loaded = tiny(TEXT8, 80)
    assert filled(loaded, "the [32] sat").tried.draws == 256
    assert filled(loaded, "the [64] sat").tried.draws == 128
    assert filled(loaded, "the [63-65] sat").tried.draws == 42
    assert filled(loaded, "the [64] sat", draws=130).tried.draws == 130


def test_a_space_before_a_blank_is_given_to_draws_and_to_the_beam(tiny, monkeypatch) -> None:
    pieces = train_bpe(["the cat sat on the mat. " * 9], 264)
    loaded = tiny(pieces, 24)
    loaded.model.network.head.bias.data[int(pieces.encode("\n")[0])] += 30.0  # is no answer behind a space
    loaded.model.network.head.bias.data[torch.tensor([text == " c" for text in texts_of(pieces)])] += 20.0
    for how in ({"draws": 32}, {"sampling": SamplingOptions(temperature=0.0)}):
        found = filled(loaded, "sat. [4] The [4-5] sat", tokens=True, n=99, **how)
        assert all(one.text.startswith("sat. c") and " The c" in one.text for one in found.fills)
    monkeypatch.setattr("anyfill.text.candidates._draw", lambda *_: ())  # the beam alone
    found = filled(loaded, "sat. [4] The [4-5] sat", tokens=True, n=99)
    assert {len(one.text) for one in found.fills}
    assert all(one.text.startswith("sat. ") and " The " in one.text for one in found.fills)


def test_answers_one_after_another_are_not_said_to_be_all(tiny) -> None:
    found = filled(tiny(), "ab_cab_ca", n=9)
    assert (found.groups, found.complete, found.tried.draws) == (2, False, 0)


def test_the_beam_finds_fills_that_draws_do_not(tiny, monkeypatch) -> None:
    loaded = tiny(TEXT8, 24)
    found = filled(loaded, "the ______ sat", n=10**6)
    monkeypatch.setattr("anyfill.text.candidates.can_search", lambda _: False)
    drawn = filled(loaded, "the ______ sat", n=10**6)
    assert {one.text for one in drawn.fills} < {one.text for one in found.fills}
    assert found.fills[0].log2_probability >= drawn.fills[0].log2_probability


def test_any_order_models_are_ranked_as_all_answers_listed(tiny, step_by_step) -> None:
    loaded = tiny(factorizations=(Factorization.ANY_ORDER,), one_pass=False)
    exact = enumerated(loaded, step_by_step, [f"a{one}c" for one in every(1) + every(2)])
    for sampler in ("exact", "confidence", "entropy-bounded"):
        agree(filled(loaded, "a[]c", n=99, draws=150, sampling=SamplingOptions(sampler=sampler)), exact)


def test_speculative_draws_propose_the_same_answers(tiny, step_by_step) -> None:
    loaded = tiny()
    exact = enumerated(loaded, step_by_step, [f"a{one}c" for one in every(2)])
    agree(filled(loaded, "a__c", n=99, draws=250, sampling=SamplingOptions(sampler="speculative")), exact)


def test_groups_are_answered_one_after_another_each_given_those_before(tiny, step_by_step) -> None:
    loaded = tiny()
    text = "ab_cab_ca"  # rows of 6: windows ab_cab and ?cab_ca, less what does not fit
    found = filled(loaded, text, n=9, draws=200, sampling=HOT)
    assert found.groups == 2
    first = enumerated(loaded, step_by_step, [f"ab{one}cab" for one in every(1)])
    total = torch.tensor(list(first.values())).logsumexp(0).item()
    expected: dict[str, float] = {}
    for one in every(1):
        second = enumerated(loaded, step_by_step, [f"cab{two}ca" for two in every(1)])
        rest = torch.tensor(list(second.values())).logsumexp(0).item()
        for two in every(1):
            log_share = first[f"ab{one}cab"] - total + second[f"cab{two}ca"] - rest
            expected[f"ab{one}cab{two}ca"] = math.exp(log_share)
    assert {one.text: pytest.approx(one.share, rel=1e-4) for one in found.fills} == expected
    shares = [one.share for one in found.fills]
    assert shares == sorted(shares, reverse=True)
    for one in found.fills:
        codes = ABC.encode(one.text).long()
        windows = step_by_step(loaded.model, codes[:6]) + step_by_step(loaded.model, codes[3:9], given=3)
        assert one.log2_probability == pytest.approx(windows / math.log(2), abs=1e-5)


def test_later_windows_see_earlier_answers(tiny) -> None:
    loaded = tiny()
    found = filled(loaded, "abc_bb_cabcab", n=9, draws=200, sampling=HOT)  # the second window is given ?bb and ca
    by_first: dict[str, list[float]] = {}
    for one in sorted(found.fills, key=lambda one: one.text):
        by_first.setdefault(one.answers[0], []).append(one.share)
    conditionals = [torch.tensor(shares) / sum(shares) for shares in by_first.values()]
    assert (found.groups, len(conditionals)) == (2, 3)
    assert not torch.allclose(conditionals[0], conditionals[1], rtol=1e-2)


text8_pieces = st.text(
    st.characters(exclude_characters="_[\\µ", exclude_categories=("Cs", "Lo", "Nd", "No"), max_codepoint=0xFF)
    | st.sampled_from("…—“”€☃"),
    max_size=12,
)


@settings(max_examples=25)
@given(st.lists(text8_pieces, min_size=2, max_size=4), st.data())
def test_what_is_given_is_never_changed(tiny, stretches: list[str], data: st.DataObject) -> None:
    loaded = tiny(TEXT8, 24)
    stretches = [stretches[0], *(one or "x" for one in stretches[1:-1]), stretches[-1]]
    sizes = [data.draw(st.integers(1, 5)) for _ in stretches[1:]]
    kinds = [data.draw(st.booleans()) for _ in sizes]
    blanks = tuple(Lengths(size, size + 2 * kind) for size, kind in zip(sizes, kinds))
    *_, (found, _) = fill_blanks(loaded, Template(tuple(stretches), blanks), n=2, draws=8, sampling=COOL)
    assert found is not None
    for one in found.fills:
        rest = one.text
        for stretch, answer, blank in zip(stretches, one.answers, blanks):
            assert rest.startswith(stretch + answer)
            assert blank.minimum <= len(answer) <= blank.maximum
            assert set(answer) <= set(TEXT8.alphabet)
            rest = rest[len(stretch + answer) :]
        assert rest == stretches[-1]


def test_case_and_punctuation_stay_as_they_were(tiny) -> None:
    found = filled(tiny(TEXT8, 32), "The cat's ____!", n=3)
    assert all(one.text.startswith("The cat's ") and one.text.endswith("!") for one in found.fills)
    assert len({one.text for one in found.fills}) == 3


def test_the_same_seed_gives_the_same_fills_and_another_other_ones(tiny) -> None:
    loaded = tiny(TEXT8, 32)
    assert filled(loaded, "the ________ sat", seed=3) == filled(loaded, "the ________ sat", seed=3)
    assert filled(loaded, "the ________ sat", seed=3).fills != filled(loaded, "the ________ sat", seed=4).fills


def test_temperature_zero_proposes_one_answer_for_each_length(tiny) -> None:
    sampling = SamplingOptions(temperature=0.0)
    assert filled(tiny(), "a[1-3]c", draws=4, sampling=sampling).candidates == 3


def test_too_many_combinations_are_drawn_and_said(tiny) -> None:
    found = filled(tiny(TEXT8, 64), "a [] b [] c []", unstated=Lengths(1, 9), draws=1)
    assert (found.tried.combinations, found.tried.tried) == (729, 64)
    assert found.candidates <= 64


def test_lines_are_ranked_with_the_share_of_their_length(tiny, step_by_step) -> None:
    loaded = tiny(lines=True, lengths=(0, 0, 3, 96, 1, 0, 0))
    found = filled(loaded, "a[]", n=99, draws=250, sampling=HOT)
    texts = [f"a{one}" for one in every(1) + every(2)]
    counts = {2: 4 / 107, 3: 97 / 107}
    exact = {
        text: value + math.log(counts[len(text)]) for text, value in enumerated(loaded, step_by_step, texts).items()
    }
    agree(found, exact)


def test_a_line_is_closed_by_its_end(tiny, step_by_step) -> None:
    loaded = tiny(WithEnd(ABC), lines=True)
    found = filled(loaded, "a[]", n=99, draws=200, sampling=HOT)
    exact = {}
    for one in every(1) + every(2):
        codes = torch.cat([ABC.encode(f"a{one}").long(), torch.tensor([3])])
        exact[f"a{one}"] = step_by_step(loaded.model, codes)
    agree(found, exact)  # answers with an end inside were dropped
    with pytest.raises(ValueError, match="a line of at most 6 characters, as the model was trained on, got 7"):
        filled(loaded, "abcab_")


def test_words_are_answered_whole_and_never_as_unknown(tiny) -> None:
    loaded = tiny(Words(("the", "cat", "sat")), 8)
    found = filled(loaded, "the ____ on sat ____ .", tokens=True, n=99, draws=250, sampling=HOT)
    assert found.candidates == 9
    assert {one.answers for one in found.fills} == set(itertools.product(("the", "cat", "sat"), repeat=2))
    assert all(one.text == f"the {one.answers[0]} on sat {one.answers[1]} ." for one in found.fills)


def test_what_cannot_be_answered_is_refused_in_one_sentence(tiny) -> None:
    with pytest.raises(ValueError, match=r"given what stands behind a blank .* got one trained for: prefix"):
        filled(tiny(factorizations=(Factorization.PREFIX,)), "a_b")
    assert filled(tiny(factorizations=(Factorization.PREFIX,)), "ab__", n=9, draws=200, sampling=HOT).candidates == 9
    with pytest.raises(ValueError, match="--sampler confidence: expected a model trained for any order"):
        filled(tiny(), "a_b", sampling=SamplingOptions(sampler="confidence"))
    masked = tiny(factorizations=(Factorization.ANY_ORDER,), one_pass=False)
    with pytest.raises(ValueError, match="--sampler speculative: expected a one-pass model"):
        filled(masked, "a_b", sampling=SamplingOptions(sampler="speculative"))
    noisy = Model(
        masked.model.network, masked.model.likelihood, corruption=Uniform(3), factorizations=(Factorization.ANY_ORDER,)
    )
    with pytest.raises(ValueError, match="an exact likelihood to rank answers by, got one that is shown noise"):
        filled(TextModel(noisy, ABC, "noisy"), "a_b")
    with pytest.raises(ValueError, match="characters from 'abc' only, got 'x'"):
        filled(tiny(), "x_b")
    with pytest.raises(ValueError, match="blank: expected at most 4 characters"):
        filled(tiny(), "a_____b")
    with pytest.raises(ValueError, match="--sampler: expected 'exact', 'speculative'"):
        SamplingOptions(sampler="other")
    with pytest.raises(ValueError, match="--n: expected a whole number from 1 up"):
        filled(tiny(), "a_b", n=0)


def test_draws_that_cannot_be_written_are_refused_if_there_is_nothing_else(tiny) -> None:
    unsure = Characters("ab?", "?")
    loaded = tiny(unsure)
    loaded.model.network.head.bias.data += torch.tensor([0.0, 0.0, 60.0])
    with pytest.raises(ValueError, match=r"answers: expected a draw that can be written .* got none of 64"):
        filled(loaded, "a_b", draws=64)
    with pytest.raises(ValueError, match=r"as text \(a --temperature above 0 may find one\), got none of 4"):
        filled(loaded, "a_b", draws=4, sampling=SamplingOptions(temperature=0.0))
    assert {one.text for one in filled(loaded, "a_b").fills} == {"aab", "abb"}
