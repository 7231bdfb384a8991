"""Writing: the law of the model inside a row, windows beyond it, lines of the right lengths."""

import itertools
import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from scipy.stats import chisquare

from anyfill.questions import Factorization
from anyfill.text.generate import Writer
from anyfill.text.model import TextModel
from anyfill.text.sampling import SamplingOptions
from anyfill.text.vocabulary import TEXT8, Characters, Utf8, WithEnd
from anyfill.text.words import Words

ABC = Characters("abc")


def written(loaded: TextModel, n: int = 1, seed: int = 0, sampling=SamplingOptions(), **options) -> list[str]:
    texts, shares = [], []
    for some, share in Writer(loaded, sampling=replace(sampling, seed=seed), **options).texts(n):
        texts += some
        shares.append(share)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    return texts


@pytest.mark.parametrize("factorization", [Factorization.DIRECT, Factorization.PREFIX])
def test_what_fits_into_a_row_has_the_law_of_the_model(tiny, step_by_step, factorization: Factorization) -> None:
    """Chi-square on 9 answers; the seed is fixed, the false-alarm rate was 1e-3."""
    loaded = tiny(factorizations=(factorization,))
    counts = Counter(written(loaded, n=1500, length=2, prompt="cab"))
    texts = ["cab" + "".join(one) for one in itertools.product("abc", repeat=2)]
    law = [math.exp(step_by_step(loaded.model, ABC.encode(text).long(), given=3)) for text in texts]
    assert sum(law) == pytest.approx(1.0, abs=1e-5)
    assert chisquare([counts[text] for text in texts], [1500 * p / sum(law) for p in law]).pvalue > 1e-3


def test_longer_text_goes_on_given_half_a_row(tiny) -> None:
    """At temperature 0 each code is the likeliest, given the codes that its window was given and those before it."""
    loaded = tiny()
    (text,) = written(loaded, length=14, prompt="ab", sampling=SamplingOptions(temperature=0.0))
    codes = ABC.encode(text).long()
    assert len(codes) == 16
    start, stop = 0, 6  # rows of 6: the first holds the prompt, each later one three codes of what stands before
    for place in range(2, 16):
        if place == stop:
            start, stop = place - 3, min(place + 3, 16)
            if stop == 16:  # the last window is given more where less is to be written
                start = 16 - 6
        x = torch.zeros(1, 6, dtype=torch.int64)
        x[0, : place - start] = codes[start:place]
        known = torch.arange(6).unsqueeze(0) < place - start
        with loaded.model.evaluating():
            best = loaded.model.marginals(x, known).mode()[0, place - start]
        assert int(best) == int(codes[place]), place


def test_prompts_are_kept_and_lengths_are_exact(tiny) -> None:
    loaded = tiny(TEXT8, 16)
    texts = written(loaded, n=3, length=30, prompt='"The City, of ')
    assert all(text.startswith('"The City, of ') and len(text) == 14 + 30 for text in texts)
    assert all(set(text[14:]) <= set(TEXT8.alphabet) for text in texts)
    assert [len(text) for text in written(loaded, n=2)] == [200, 200]
    assert len(written(loaded, length=3, prompt="x" * 100)[0]) == 103


def test_many_texts_are_drawn_in_parts_and_differ(tiny) -> None:
    texts = written(tiny(TEXT8, 16), n=70, length=12)
    assert len(texts) == 70
    assert len(set(texts)) > 60
    assert texts == written(tiny(TEXT8, 16), n=70, length=12)
    assert texts != written(tiny(TEXT8, 16), n=70, length=12, seed=1)


def test_lines_have_the_lengths_that_were_counted(tiny) -> None:
    """Length 2 has a share of 3/4: 300 draws are within 0.1 of it but for 1 in 10,000 (the seed is fixed)."""
    loaded = tiny(lines=True, lengths=(0, 0, 30, 0, 10))
    sizes = Counter(map(len, written(loaded, n=300)))
    assert set(sizes) == {2, 4}
    assert sizes[2] / 300 == pytest.approx(0.75, abs=0.1)
    assert set(map(len, written(loaded, n=20, prompt="ab"))) == {4}
    assert [len(line) for line in written(loaded, length=3, prompt="ab")] == [5]
    with pytest.raises(ValueError, match="--prompt: expected a beginning of a line, of at most 3 characters, got 4"):
        written(loaded, prompt="abca")
    with pytest.raises(ValueError, match=r"a line of at most 6 characters with its prompt, .* got 7"):
        written(loaded, prompt="abca", length=3)


def test_lines_end_where_the_end_is_drawn(tiny, step_by_step) -> None:
    """The share of empty lines is the end's probability: 400 draws are within 4.5 standard errors (seed fixed)."""
    loaded = tiny(WithEnd(ABC), lines=True, factorizations=(Factorization.PREFIX,))
    lines = written(loaded, n=400)
    assert all(len(line) <= 6 and set(line) <= set("abc") for line in lines)
    share = math.exp(step_by_step(loaded.model, [3]))
    assert 0.05 < share < 0.95
    error = math.sqrt(share * (1 - share) / 400)
    assert lines.count("") / 400 == pytest.approx(share, abs=4.5 * error)


def test_words_are_joined_with_spaces(tiny) -> None:
    loaded = tiny(Words(("the", "cat")), 8)
    for prompt, begin in (("the cat", "the cat "), ("the cat ", "the cat "), ("", "")):
        (text,) = written(loaded, length=12, prompt=prompt)
        assert text.startswith(begin)
        assert len(text[len(begin) :].split(" ")) == 12


def test_samplers_go_where_they_are_supported(tiny) -> None:
    assert len(written(tiny(), length=9, sampling=SamplingOptions(sampler="speculative"))[0]) == 9
    masked = tiny(factorizations=(Factorization.ANY_ORDER,), one_pass=False)
    for sampler in ("exact", "confidence", "entropy-bounded"):
        assert len(written(masked, length=9, sampling=SamplingOptions(sampler=sampler))[0]) == 9
    with pytest.raises(ValueError, match="--sampler confidence: expected a model trained for any order"):
        written(tiny(), sampling=SamplingOptions(sampler="confidence"))


def test_bad_wishes_are_refused(tiny) -> None:
    with pytest.raises(ValueError, match="--length: expected a whole number from 1 up"):
        Writer(tiny(), length=0)
    with pytest.raises(ValueError, match="characters from 'abc' only, got 'x'"):
        written(tiny(), prompt="x")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_pieces_of_a_stream_are_the_text(tiny, seed: int) -> None:
    words, lines = Words(("the", "cat")), WithEnd(ABC)
    models = [
        tiny(),
        tiny(Utf8(), 6),
        tiny(words, 6),
        tiny(lines, 8, lines=True),
        tiny(lines),
        tiny(Characters("ab\ufffd")),
    ]
    masked = tiny(factorizations=(Factorization.ANY_ORDER,), one_pass=False)
    asked = [(one, "exact") for one in models] + [(tiny(), "speculative"), (masked, "confidence")]
    for loaded, sampler in asked:
        prompt = "" if loaded.vocabulary is words else "ab"
        writer = Writer(loaded, None if loaded.lines else 20, prompt, SamplingOptions(sampler, seed=seed))
        *_, (texts, _) = writer.texts(1)
        pieces, shares = zip(*writer.pieces())
        assert "".join(pieces) == texts[0]
        assert list(shares) == sorted(shares)
        assert shares[-1] == 1.0


def test_a_prompt_in_a_script_that_the_model_cannot_read_is_refused(tiny) -> None:
    with pytest.raises(ValueError, match="--prompt: expected letters that the model knows"):
        tiny(TEXT8, 24).generate(prompt="the \u05d0")
