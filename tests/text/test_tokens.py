"""Rows of a corpus on the disk: they are its slices, padding is never present, and they train."""

from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyfill.objectives import OnePassLoss
from anyfill.questions import UniformSplits
from anyfill.rows import RowSource
from anyfill.text.corpus import encode
from anyfill.text.recipes import text_model, text_objective
from anyfill.text.token_file import Tokens
from anyfill.text.tokens import Chunks, Sentences, Windows, some_rows
from anyfill.text.vocabulary import TEXT8, Utf8, WithEnd
from anyfill.training import FitOptions, fit

LINES = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=7), min_size=1, max_size=8)


def made(lines: list[list[int]], dtype: str = "<u2") -> Tokens:
    bounds = np.cumsum([0, *map(len, lines)]).astype("<u8")
    return Tokens(np.array([*chain.from_iterable(lines)], dtype=dtype), bounds, Utf8(), {})


def plain(codes: list[int], dtype: str = "u1") -> Tokens:
    return Tokens(np.array(codes, dtype=dtype), None, Utf8(), {})


@given(st.data(), st.sampled_from(["u1", "<u2", "<u4"]))
def test_chunks_are_slices_of_the_corpus(data: st.DataObject, dtype: str) -> None:
    length, stride = data.draw(st.integers(1, 6)), data.draw(st.one_of(st.none(), st.integers(1, 8)))
    codes = data.draw(st.lists(st.integers(0, 255), min_size=length, max_size=30))
    chunks = Chunks(plain(codes, dtype), length, stride)
    step = length if stride is None else stride
    slices = [codes[a : a + length] for a in range(0, len(codes), step) if a + length <= len(codes)]
    assert len(chunks) == len(slices)
    index = data.draw(st.lists(st.integers(0, len(slices) - 1), max_size=5))
    rows = chunks.take(torch.tensor(index, dtype=torch.int64))
    assert rows.x.tolist() == [slices[i] for i in index]
    assert rows.x.dtype == torch.int64
    assert bool(rows.present.all())
    assert rows.x.shape == (len(index), chunks.variables)
    assert isinstance(chunks, RowSource)


@given(LINES, st.integers(1, 8))
def test_sentences_are_the_lines_and_padding_is_never_present(lines: list[list[int]], length: int) -> None:
    sentences = Sentences(made(lines), length)
    rows = sentences.take(torch.arange(len(lines)))
    assert len(sentences) == len(lines)
    for x, present, line in zip(rows.x.tolist(), rows.present.tolist(), lines):
        kept = line[:length]
        assert x == kept + [0] * (length - len(kept))
        assert present == [True] * len(kept) + [False] * (length - len(kept))
    assert sentences.lengths.tolist() == rows.present.sum(1).tolist()
    assert isinstance(sentences, RowSource)


@given(LINES, st.integers(1, 8))
def test_longer_lines_can_be_left_out(lines: list[list[int]], length: int) -> None:
    short = [line for line in lines if len(line) <= length]
    if not short:
        with pytest.raises(ValueError, match=f"corpus: expected a line of at most {length} tokens"):
            Sentences(made(lines), length, "drop")
        return
    sentences = Sentences(made(lines), length, "drop")
    rows = sentences.take(torch.arange(len(sentences)))
    assert [x[p].tolist() for x, p in zip(rows.x, rows.present)] == short
    assert sentences.lengths.tolist() == [len(line) for line in short]


@given(LINES.filter(lambda lines: len(lines) >= 4))
def test_parts_of_a_corpus_are_consecutive(lines: list[list[int]]) -> None:
    corpus = made(lines)
    parts = corpus.split((0.25, 0.25))
    assert [part.lines for part in parts] == [len(lines) - 2 * round(len(lines) / 4), *[round(len(lines) / 4)] * 2]
    assert [*chain.from_iterable(part.text.tolist() for part in parts)] == [*chain.from_iterable(lines)]
    found = [Sentences(part, 7).take(torch.arange(part.lines)) for part in parts]
    assert [x[p].tolist() for rows in found for x, p in zip(rows.x, rows.present)] == lines
    assert sum(map(len, parts)) == len(corpus)
    last = parts[-1]
    assert Chunks(last, 1).take(torch.arange(len(last))).x.squeeze(1).tolist() == last.text.tolist()
    unlined = plain(list(range(20))).split((0.1,))
    assert [part.text.tolist() for part in unlined] == [list(range(18)), [18, 19]]


def test_some_rows_are_evenly_spaced() -> None:
    chunks = Chunks(plain(list(range(100))), 10)
    assert some_rows(chunks, 3).x[:, 0].tolist() == [0, 30, 60]
    assert some_rows(chunks, 50).x[:, 0].tolist() == list(range(0, 100, 10))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Chunks(plain([1, 2]), 3), "corpus: expected at least 3 tokens, one row, got 2"),
        (lambda: Chunks(plain([1, 2]), 0), "length: expected a whole number from 1 up"),
        (lambda: Chunks(plain([1, 2]), 1, 0), "stride: expected a whole number from 1 up"),
        (lambda: Chunks(plain([1, 2]), 1).take(torch.tensor([2])), "row: expected 0 to 1, got 2 to 2"),
        (lambda: Chunks(plain([1, 2]), 1).take(torch.tensor([-1])), "row: expected 0 to 1"),
        (lambda: Sentences(plain([1, 2]), 3), "corpus: expected one that was encoded line by line"),
        (lambda: Sentences(made([[1]]), 3, "keep"), "longer: expected 'cut' or 'drop', got 'keep'"),
        (lambda: Sentences(made([[1]]), 3).take(torch.tensor([1])), "row: expected 0 to 0"),
        (lambda: some_rows(Chunks(plain([1]), 1), 0), "max_rows: expected a whole number from 1 up"),
    ],
)
def test_bad_rows_are_refused_in_one_sentence(make, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


def test_what_stands_in_padding_changes_no_loss(generator: torch.Generator) -> None:
    rows = Sentences(made([[1, 2], [3, 4, 5, 6], [7]]), 4).take(torch.arange(3))
    model = text_model("one_pass", 4, 10, size="1M")
    with torch.no_grad():
        for weights in model.parameters():
            weights.normal_(std=0.1, generator=generator)
    objective: OnePassLoss = text_objective("one_pass", 4)
    assert isinstance(objective.questions, UniformSplits)
    rank = objective.sample_rank(3, generator=generator)
    other = type(rows)(torch.where(rows.present, rows.x, 9), rows.present)
    assert torch.equal(objective.loss(model, rows, rank), objective.loss(model, other, rank))


def test_a_file_trains_as_the_same_tokens_in_memory_do(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("the cat sat on the mat\nthe dog\na hare ran\n" * 5)
    lined = encode(tmp_path / "corpus.txt", tmp_path / "lines", WithEnd(TEXT8), lines=True)
    for source in (Sentences(lined, 8), Chunks(lined, 8, 3)):
        memory = source.take(torch.arange(len(source)))
        losses = []
        for rows in (source, memory):
            model = text_model("one_pass", 8, lined.vocabulary.size, size="1M")
            options = FitOptions(steps=2, batch_size=4, device="cpu")
            losses.append(
                fit(model, rows, text_objective("one_pass", 8), options, validation=some_rows(source, 3)).loss
            )
        assert losses[0] == losses[1]


def test_windows_are_the_substrings_at_their_starts() -> None:
    text = "the quick brown fox"
    windows = Windows(TEXT8.encode(text), length=5, stride=2)
    assert len(windows) == (len(text) - 5) // 2 + 1
    for number in range(len(windows)):
        row = windows.take(torch.tensor([number]))
        assert TEXT8.decode(row.x[0]) == text[2 * number : 2 * number + 5]
        assert bool(row.present.all())
    assert windows.variables == 5


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Windows(torch.zeros(3), 4), "tokens: expected one line of at least 4"),
        (lambda: Windows(torch.zeros(3, 3), 2), "tokens: expected one line"),
        (lambda: Windows(torch.zeros(9), 0), "length: expected a whole number from 1 up, got 0"),
        (lambda: Windows(torch.zeros(9), 2, stride=0), "stride: expected a whole number from 1 up, got 0"),
    ],
)
def test_bad_windows_are_refused_in_one_sentence(make, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()
