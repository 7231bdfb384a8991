"""Blanks of few codes: shares are the posterior of p(text), and how much was not compared is said."""

import math
from itertools import product

import pytest
import torch

from anyfill import text
from anyfill.evaluation import shared_prefix_log_prob
from anyfill.text.bpe import train_bpe
from anyfill.text.fills import Fills
from anyfill.text.scoring import log_probs_of
from anyfill.text.vocabulary import Characters, WithEnd

LETTERS = Characters("abcdefghijklmnop")


def posterior_of(loaded, before: str, size: int, behind: str) -> dict[str, float]:
    """p(blank | both sides) by Bayes' rule, from p of every text there is."""
    answers = ["".join(one) for one in product(loaded.vocabulary.plain.alphabet, repeat=size)]
    codes = torch.stack([loaded.vocabulary.encode(before + one + behind).long() for one in answers])
    x = torch.zeros(len(codes), loaded.length, dtype=torch.int64)
    x[:, : codes.shape[1]] = codes
    parts = shared_prefix_log_prob(loaded.model, x, torch.full((len(x),), codes.shape[1]), rows_per_pass=512)
    return dict(zip(answers, torch.cat([*parts]).softmax(0).tolist()))


def variation(found: Fills, exact: dict[str, float]) -> float:
    """Total variation between the shares of all fills and the posterior; what was not compared has no share."""
    shares = {one.answers[0]: one.share for one in found.fills}
    return 0.5 * sum(abs(shares.get(answer, 0.0) - share) for answer, share in exact.items())


@pytest.mark.parametrize(("before", "size", "behind"), [("ab", 3, "ca"), ("", 3, "dace"), ("fab", 3, "")])
def test_shares_are_nearly_the_posterior_and_what_is_missing_is_said(tiny, before: str, size: int, behind: str) -> None:
    loaded = tiny(LETTERS, 8)
    exact = posterior_of(loaded, before, size, behind)
    found = loaded.fill(f"{before}[{size}]{behind}", n=10**6, seed=0)
    assert not found.complete
    assert 100 < len(found) < len(exact)
    missing = 1.0 - sum(exact[one.answers[0]] for one in found.fills)
    assert variation(found, exact) == pytest.approx(missing, abs=1e-4), "what is compared is compared exactly"
    assert 0.001 < missing < 0.5
    assert found.covered == pytest.approx(1.0 - missing, abs=0.05)
    said = f"{found.candidates:,} fills compared, with about {found.covered:.0%} of the probability of all"
    assert found.heading == said
    assert found.to_json()["covered"] == found.covered
    log2 = torch.tensor(log_probs_of(loaded, [one.text for one in found.fills])).double() / math.log(2)
    assert [one.log2_probability for one in found.fills] == pytest.approx(log2.tolist(), abs=1e-4)
    by_score = (log2 * math.log(2)).softmax(0).tolist()
    assert [one.share for one in found.fills] == pytest.approx(by_score, abs=1e-5)
    again = loaded.fill(f"{before}[{size}]{behind}", n=9, seed=1)
    assert [(one.text, one.share) for one in again] == [(one.text, one.share) for one in found[:9]], "only draws differ"


def test_two_blanks_and_several_lengths_are_compared_together(tiny) -> None:
    loaded = tiny(LETTERS, 10)
    two = loaded.fill("a[1]b[2]c", n=10, seed=0)
    assert two.covered is not None
    assert two.tried.draws == 0
    several = loaded.fill("ab[2-3]c", n=200, seed=0)
    assert several.covered is not None
    assert {len(one.answers[0]) for one in several.fills} == {2, 3}
    assert several.tried.listed == 1, "256 fills of two letters are listed, those of three are searched for"
    assert loaded.fill("ab[4]c", n=1, seed=0).covered is None, "too many codes: drawn and searched for"
    assert loaded.fill("ab[3]c", n=1, seed=0, draws=9).covered is None, "whoever says how to draw gets draws"


def test_lines_are_compared_with_the_share_of_their_length(tiny) -> None:
    loaded = tiny(LETTERS, 8, lines=True, lengths=(0, 0, 0, 0, 9, 1, 0, 0))
    found = loaded.fill("a[2-3]", n=300, seed=0)
    assert found.covered is not None
    nats = torch.tensor(log_probs_of(loaded, [one.text for one in found.fills])).double()
    shares = torch.tensor([one.share for one in found.fills]).double()
    assert (shares / shares[0]).tolist() == pytest.approx((nats - nats[0]).exp().tolist(), rel=1e-3)
    assert {len(one.text) for one in found.fills} == {3, 4}


def test_an_end_is_no_answer(tiny) -> None:
    found = tiny(WithEnd(LETTERS), 8, lines=True).fill("ab[3]c", n=200, seed=0)
    assert found.covered is not None
    assert all(len(one.answers[0]) == 3 for one in found.fills)


def test_behind_a_space_pieces_begin_with_it(tiny) -> None:
    pieces = train_bpe(["the cat sat on the mat and the dog sat by the cat"], 300)
    found = tiny(pieces, 16).fill("the [2] sat", n=200, seed=0)
    assert found.covered is not None
    assert all(one.text == f"the {one.answers[0]} sat" and one.answers[0] for one in found.fills)


@pytest.mark.slow
def test_what_ships_answers_one_piece_with_the_posterior_of_all_pieces() -> None:
    loaded = text.load("english")
    before, behind = "I would like", " cup of coffee, please."
    codes = [loaded.vocabulary.encode(part).long() for part in (before, behind)]
    size = loaded.vocabulary.size
    x = torch.zeros(size, loaded.length, dtype=torch.int64)
    length = sum(map(len, codes)) + 1
    x[:, :length] = torch.cat([codes[0], torch.zeros(1, dtype=torch.int64), codes[1]])
    x[:, len(codes[0])] = torch.arange(size)
    joint = torch.cat([*shared_prefix_log_prob(loaded.model, x, torch.full((size,), length), rows_per_pass=256)])
    answers = [loaded.vocabulary.decode(torch.tensor([code])) for code in range(size)]
    found = loaded.fill(before + "[1]" + behind, n=100, seed=0)
    exact = dict(zip(answers, joint.softmax(0).tolist()))
    assert variation(found, exact) < 0.01
    assert found.covered == pytest.approx(1.0, abs=0.01)
