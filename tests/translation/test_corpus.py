"""An encoded corpus: nothing leaks, rows say what the pairs said, batches have little padding."""

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from anyfill.networks.encoder_decoder import END
from anyfill.translation.corpus import Corpus, encode_pairs, rows_of
from anyfill.translation.vocabulary import FIRST, learn, plain

PAIRS = [(f"Satz Nummer {i} {'und so weiter ' * (i % 5)}", f"Sentence number {i}") for i in range(300)]
PAIRS += [(source, f"{target} again") for source, target in PAIRS[:50]]


@pytest.fixture
def corpus(tmp_path, vocabulary):
    for _ in encode_pairs(PAIRS, tmp_path / "c", vocabulary, length=60, languages=("de", "en"), valid_share=0.2):
        pass
    return Corpus.open(tmp_path / "c", vocabulary)


def test_no_source_sentence_is_on_both_sides_and_every_pair_is_on_one(corpus, vocabulary):
    texts = {}
    for part in ("train", "valid"):
        side = corpus.side(part, "source")
        texts[part] = {
            vocabulary.decode(side.codes[int(side.bounds[i]) : int(side.bounds[i + 1])]) for i in range(len(side))
        }
    assert not texts["train"] & texts["valid"]
    counts = corpus.about["pairs"]
    assert counts["train"] + counts["valid"] + corpus.about["longer"] == 350
    assert counts["valid"] > 20


def test_rows_say_what_the_pairs_said_in_every_layout(corpus, vocabulary):
    index = torch.tensor([3, 0, 7])
    rows = corpus.rows("train", "length", 60).take(index)
    ended = corpus.rows("train", "end", 60).take(index)
    joined = corpus.rows("train", "joined", 60).take(index)
    source, target = corpus.side("train", "source"), corpus.side("train", "target")
    for row, number in enumerate(index.tolist()):
        words = target.codes[int(target.bounds[number]) : int(target.bounds[number + 1])].tolist()
        spoken = source.codes[int(source.bounds[number]) : int(source.bounds[number + 1])].tolist()
        assert rows.x[row][rows.present[row]].tolist() == [len(words), *words]
        assert ended.x[row][ended.present[row]].tolist() == [*words, END]
        assert joined.x[row][joined.present[row]].tolist() == [*spoken, END, *words, END]
        assert rows.context[row][: len(spoken)].tolist() == spoken
        assert (rows.context[row][len(spoken) :] == 0).all()
    assert rows.variables < 61
    assert corpus.rows("train", "length", 60).whole(index).variables == 61
    back = corpus.rows("train", "end", 60, reverse=True).take(index)
    assert back.x[0][back.present[0]].tolist()[:-1] == spoken_of(source, 3)


def spoken_of(side, number):
    return side.codes[int(side.bounds[number]) : int(side.bounds[number + 1])].tolist()


def test_both_sides_of_a_square_batch_are_cut_alike_and_say_the_same(corpus):
    plain, square = (corpus.rows("train", "length", 60, square=one) for one in (False, True))
    for index in torch.arange(len(plain)).split(3):
        ours, theirs = square.take(index), plain.take(index)
        wide = max(theirs.context.shape[1], theirs.variables - 1)
        assert (ours.variables - 1, ours.context.shape[1]) == (wide, wide)
        assert torch.equal(ours.x[:, : theirs.variables], theirs.x)
        assert not bool(ours.present[:, theirs.variables :].any())
        assert torch.equal(ours.context[:, : theirs.context.shape[1]], theirs.context)
        assert not bool(ours.context[:, theirs.context.shape[1] :].any())


def test_an_epoch_in_batches_by_length_holds_every_row_once_with_little_padding(corpus):
    rows = corpus.rows("train", "length", 60)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    arranged = rows.arranged(order, 8)
    assert sorted(arranged.tolist()) == list(range(len(rows)))
    assert torch.equal(arranged, rows.arranged(order, 8))

    def padding(index):
        lengths = torch.from_numpy(rows.source.lengths)
        return sum(int((lengths[b].max() - lengths[b]).sum()) for b in index[: len(index) // 8 * 8].view(-1, 8))

    assert padding(arranged) < 0.5 * padding(order)
    firsts = torch.from_numpy(rows.target.lengths)[arranged[: len(arranged) // 8 * 8].view(-1, 8)[:, 0]]
    assert not torch.equal(firsts, firsts.sort().values)  # batches themselves are not sorted


def test_other_codes_and_no_corpus_are_refused(corpus, tmp_path, vocabulary):
    with pytest.raises(ValueError, match="an encoded corpus"):
        Corpus.open(tmp_path, vocabulary)
    with pytest.raises(ValueError, match="a pair to train on"):
        list(encode_pairs(PAIRS[:2], tmp_path / "d", vocabulary, length=4, languages=("de", "en"), valid_share=0.0))
    assert not (tmp_path / "d").exists()
    with pytest.raises(ValueError, match="one for each source"):
        rows_of([[3]], [[3], [4]], 4, "length")


def test_the_vocabulary_loses_nothing_and_knows_its_words(vocabulary):
    for text in ("Ich wohne in Berlin.", "日本 und 7%", "⟦0⟧ von ⟦1⟧", "a"):
        assert vocabulary.decode(vocabulary.encode(text)) == text
    assert vocabulary.encode_all(["Guten Morgen", ""]) == [vocabulary.encode("Guten Morgen"), []]
    codes = vocabulary.encode("Berlin")
    assert vocabulary.begins_word[codes[0]]
    assert not vocabulary.begins_word[vocabulary.encode("erlin", begins=False)[0]]
    assert vocabulary.encode("⟦3⟧", begins=False) == [6]


@given(st.text().map(plain))
@example("👩\u200d💻 Donau\u00addampf \ue000 \u202b\U000e0001 \u0378")
def test_any_plain_text_comes_back_from_its_codes(vocabulary, text):
    assert vocabulary.decode(vocabulary.encode(text, spelt=True)) == text


@pytest.mark.parametrize("sign", ["\n", "\t", " ", "\x85", "\xa0", "\u2028", "\u3000", "▁", "⟦", "\u200b"])
def test_bytes_write_nothing_that_plain_text_has_not(vocabulary, sign):
    bytes_of = {vocabulary.piece(code): code for code in range(vocabulary.size) if vocabulary.is_byte[code]}
    codes = [bytes_of[f"<0x{byte:02X}>"] for byte in sign.encode()]
    dog = vocabulary.encode("Hund")
    assert vocabulary.decode([*dog, *codes, *dog[1:]]) == vocabulary.decode([*dog, *dog[1:]])


def test_a_vocabulary_may_be_of_byte_pair_encoding_and_loses_nothing_either():
    texts = [side.strip() for pair in PAIRS for side in pair]
    pieces, unigram = learn(texts, 340, kind="bpe"), learn(texts, 340)
    assert all(pieces.decode(pieces.encode(text)) == text for text in (*texts, "Grüße, 日本!"))
    assert pieces.encode("Datei ⟦0⟧")[-1] == FIRST
    assert pieces.model != unigram.model
    with pytest.raises(ValueError, match="unigram"):
        learn(texts, 340, kind="words")


def test_codes_stay_on_the_disk_until_they_are_asked_for(corpus):
    for side in ("source", "target"):
        sentences = corpus.side("train", side)
        assert isinstance(sentences.codes, np.memmap)
        assert isinstance(sentences.bounds, np.memmap)
