"""Token files: the tokens are those of the whole text, however it is read; nothing half-written is ever left."""

import gzip
import multiprocessing
import os
import signal
import time
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anyfill.text import corpus
from anyfill.text.corpus import encode, encode_corpus, is_encoded
from anyfill.text.reading import text_blocks
from anyfill.text.token_file import TokenWriter, cut_from_end, open_tokens
from anyfill.text.vocabulary import TEXT8, Characters, Utf8, Vocabulary, WithEnd, characters_in
from anyfill.text.words import Words, common_words

MIXED = st.text(alphabet="ab é漢😀\n\r", min_size=1, max_size=40)
HERE = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def run(sources, target: Path, vocabulary: Vocabulary, **options):
    reports = list(encode_corpus(sources, target, vocabulary, **options))
    return reports, open_tokens(target, vocabulary)


@HERE
@given(MIXED, st.integers(1, 9))
def test_tokens_are_those_of_the_whole_text_whatever_the_block(tmp_path: Path, text: str, block: int) -> None:
    source = tmp_path / "corpus.txt"
    for vocabulary in (Utf8(), characters_in([text]), Words(("a", "b", "é")), WithEnd(Utf8())):
        source.write_bytes(text.encode())
        whole = vocabulary.encode(text)
        (tmp_path / "out").unlink(missing_ok=True)
        if not len(whole):
            continue
        reports, tokens = run(source, tmp_path / "out", vocabulary, block=block)
        assert tokens.codes.tolist() == whole.tolist()
        assert tokens.bounds is None
        assert tokens.vocabulary == vocabulary
        assert (reports[-1].progress, reports[-1].tokens) == (1.0, len(whole))
        assert [one.read for one in reports] == sorted(one.read for one in reports)
    assert {one.name for one in tmp_path.iterdir()} <= {"corpus.txt", "out"}


@HERE
@given(MIXED, st.integers(1, 9), st.booleans())
def test_lines_are_those_of_the_text(tmp_path: Path, text: str, block: int, ended: bool) -> None:
    source, target = tmp_path / "corpus.txt", tmp_path / "out"
    source.write_bytes(text.encode())
    target.unlink(missing_ok=True)
    vocabulary = WithEnd(Utf8()) if ended else Utf8()
    lines = [line.removesuffix("\r").encode() for line in text.split("\n") if line.strip()]
    if not lines:
        with pytest.raises(ValueError, match="expected text, got none up to the end at byte offset"):
            run(source, target, vocabulary, lines=True, block=block)
        return
    _, tokens = run(source, target, vocabulary, lines=True, block=block)
    assert tokens.lines == len(lines)
    bounds = tokens.bounds.tolist()
    found = [tokens.codes[a:b].tolist() for a, b in pairwise(bounds)]
    assert found == [[*line, 256] if ended else list(line) for line in lines]


@pytest.mark.parametrize(("size", "dtype"), [(256, "uint8"), (257, "uint16"), (65536, "uint16"), (65537, "uint32")])
def test_codes_take_as_many_bytes_as_they_need(tmp_path: Path, size: int, dtype: str) -> None:
    points = [*range(0xD800), *range(0xE000, 0x110000)][:size]
    vocabulary = Characters("".join(map(chr, points)))
    text = "".join(map(chr, [points[-1], points[0], points[size // 2]]))
    (tmp_path / "corpus.txt").write_bytes(text.encode())
    tokens = encode(tmp_path / "corpus.txt", tmp_path / "out", vocabulary)
    assert tokens.codes.dtype == np.dtype(dtype)
    assert tokens.codes.tolist() == [size - 1, 0, size // 2]


def test_several_files_packed_or_not_are_read_one_after_another(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffhé".encode())
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"llo"))
    reports, tokens = run([tmp_path / "a.txt", tmp_path / "b.txt.gz"], tmp_path / "out", Utf8())
    assert bytes(tokens.codes) == "héllo".encode()
    assert reports[-1].total == sum((tmp_path / name).stat().st_size for name in ("a.txt", "b.txt.gz"))
    words = common_words((block.text for block in text_blocks([tmp_path / "a.txt", tmp_path / "b.txt.gz"])), 9)
    assert words.words == ("héllo",)


def test_a_corpus_is_encoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "corpus.txt", tmp_path / "out"
    source.write_text("abc")
    assert not is_encoded(source, target, TEXT8)
    encode(source, target, TEXT8)
    assert is_encoded(source, target, TEXT8)
    assert not is_encoded(source, target, TEXT8, lines=True)
    assert not is_encoded(source, target, Utf8())
    stamp = target.stat().st_mtime_ns
    with monkeypatch.context() as patch:
        patch.setattr(corpus, "text_blocks", None)  # it would fail if it were read again
        assert [(one.progress, one.tokens) for one in encode_corpus(source, target, TEXT8)] == [(1.0, 3)]
    assert target.stat().st_mtime_ns == stamp
    source.write_text("abd")
    os.utime(source, ns=(1, 1))
    assert not is_encoded(source, target, TEXT8)
    assert encode(source, target, TEXT8).codes.tolist() == [1, 2, 4]
    target.write_bytes(b"damaged")
    assert encode(source, target, TEXT8).codes.tolist() == [1, 2, 4]


@pytest.mark.parametrize(
    ("content", "vocabulary", "sentence"),
    [
        (
            b"ab\xffcd",
            Utf8(),
            r"corpus.txt: expected text in UTF-8, got byte 0xff at byte offset 2 \(invalid start byte\)",
        ),
        (b"abcdefg \xe6\xbc", Utf8(), r"got byte 0xe6 at byte offset 8 \(unexpected end of data\)"),
        (b"abc\xe6\xbc\xa2\xe6 de", TEXT8, r"got byte 0xe6 at byte offset 6|byte offset 3: text"),
        (b"", Utf8(), "corpus.txt: expected text, got none up to the end at byte offset 0"),
        (b" \n \n", Words(("a",)), "expected text, got none up to the end at byte offset 4"),
        (
            "abc漢déa".encode(),
            Characters("abcd漢"),
            "corpus.txt, byte offset 7: text: expected characters from 'abcd漢'",
        ),
    ],
)
@pytest.mark.parametrize("block", [1, 3, 100])
@pytest.mark.parametrize("before", [None, b"what was there"])
def test_bad_text_is_refused_with_its_place_and_leaves_nothing(
    tmp_path: Path, content: bytes, vocabulary: Vocabulary, sentence: str, block: int, before: bytes | None
) -> None:
    source, target = tmp_path / "corpus.txt", tmp_path / "out"
    source.write_bytes(content)
    if before is not None:
        target.write_bytes(before)
    with pytest.raises(ValueError, match=sentence) as error:
        run(source, target, vocabulary, block=block)
    assert "\n" not in str(error.value)
    assert (target.read_bytes() if target.exists() else None) == before
    assert {one.name for one in tmp_path.iterdir()} <= {"corpus.txt", "out"}


def test_unknown_characters_in_lines_have_their_place(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_bytes("ab\r\n\nbé\nbXb\n".encode())
    for block in (1, 4, 100):
        with pytest.raises(ValueError, match=r"corpus.txt, byte offset 10: text: expected .* only, got 'X'"):
            run(tmp_path / "corpus.txt", tmp_path / "out", Characters("abé"), lines=True, block=block)


def test_an_encoding_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("abc\n" * 100)
    reports = encode_corpus(tmp_path / "corpus.txt", tmp_path / "out", Utf8(), lines=True, block=10)
    next(reports)
    assert len(list(tmp_path.iterdir())) == 3
    assert not (tmp_path / "out").exists()
    reports.close()
    assert [one.name for one in tmp_path.iterdir()] == ["corpus.txt"]


def _stuck(source: Path, target: Path) -> None:
    for report in encode_corpus(source, target, Utf8(), lines=True, block=10):
        if report.tokens > 50:
            time.sleep(60)


@pytest.mark.skipif(os.name != "posix", reason="needs signals and file locks")
def test_a_killed_encoding_begins_anew_and_two_do_not_mix(tmp_path: Path) -> None:
    source, target = tmp_path / "corpus.txt", tmp_path / "out"
    source.write_text("abc\n" * 100)
    other = multiprocessing.get_context("fork").Process(target=_stuck, args=(source, target))
    other.start()
    deadline = time.monotonic() + 20
    while not (tmp_path / ".out.lines.part").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(ValueError, match="expected no other program that writes it"):
        encode(source, target, Utf8(), lines=True)
    os.kill(other.pid, signal.SIGKILL)
    other.join()
    assert not target.exists()
    assert (tmp_path / ".out.part").exists()
    tokens = encode(source, target, Utf8(), lines=True)
    assert bytes(tokens.codes) == b"abc" * 100
    assert {one.name for one in tmp_path.iterdir()} == {"corpus.txt", "out"}


def test_a_file_of_other_codes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("abc")
    encode(tmp_path / "corpus.txt", tmp_path / "out", TEXT8)
    with pytest.raises(ValueError, match=r"out: expected the vocabulary \w+ \(256 codes\), got another one"):
        open_tokens(tmp_path / "out", Utf8())
    assert open_tokens(tmp_path / "out").vocabulary == TEXT8


def test_a_file_that_is_damaged_or_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("abc")
    encode(tmp_path / "corpus.txt", tmp_path / "out", TEXT8)
    content = (tmp_path / "out").read_bytes()
    for bad in (content[:-1], content + b" ", content[:70]):
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(ValueError, match=r"bytes, as its head says, got .* damaged"):
            open_tokens(tmp_path / "bad")
    (tmp_path / "bad").write_bytes(content[:-5] + b"xxxxx")
    with pytest.raises(ValueError, match="expected its vocabulary behind the tokens"):
        open_tokens(tmp_path / "bad")
    for bad in (b"", b"anything else" * 10):
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(ValueError, match="expected a token file of this anyfill"):
            open_tokens(tmp_path / "bad")
    with pytest.raises(ValueError, match="expected a token file, got none"):
        open_tokens(tmp_path / "nothing")


def test_what_cannot_be_read_or_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "corpus.txt"
    with pytest.raises(ValueError, match=r"corpus.txt: expected a text file, got none \(No such file"):
        encode(source, tmp_path / "out", Utf8())
    source.write_text("abc")
    with pytest.raises(ValueError, match="expected a file that can be written"):
        encode(source, tmp_path / "no folder" / "out", Utf8())
    with pytest.raises(ValueError, match="target: expected another file than the text"):
        encode(source, source, Utf8())
    with pytest.raises(ValueError, match="text files: expected at least one"):
        encode([], tmp_path / "out", Utf8())
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"abc" * 100)[:-9])
    with pytest.raises(ValueError, match="expected a text file that can be read"):
        encode(tmp_path / "cut.gz", tmp_path / "out", Utf8())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(TokenWriter, "add", full)
    with pytest.raises(ValueError, match="out: expected a file that can be written, got No space left"):
        encode(source, tmp_path / "out", Utf8())
    assert {one.name for one in tmp_path.iterdir()} == {"corpus.txt", "cut.gz"}


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "MAX_LINE", 10)
    (tmp_path / "corpus.txt").write_text("é\n" + "x" * 30)
    with pytest.raises(ValueError, match=r"corpus.txt, from byte offset 3: expected a line of at most 10"):
        list(encode_corpus(tmp_path / "corpus.txt", tmp_path / "out", Utf8(), lines=True, block=4))


@given(st.integers(3, 1000), st.lists(st.floats(0.01, 0.3), min_size=1, max_size=3))
def test_shares_are_cut_from_the_end(count: int, shares: list[float]) -> None:
    sizes = [round(share * count) for share in shares]
    if min(sizes) < 1 or sum(sizes) >= count:
        with pytest.raises(ValueError, match="shares: expected at least one of"):
            cut_from_end(count, shares)
        return
    parts = [list(range(count))[part] for part in cut_from_end(count, shares)]
    assert [*chain.from_iterable(parts)] == list(range(count))
    assert [len(part) for part in parts[1:]] == sizes


def test_shares_that_are_none_are_refused() -> None:
    for shares in ([0.0], [1.0], [0.5, 0.5], [-0.1]):
        with pytest.raises(ValueError, match="shares: expected numbers above 0"):
            cut_from_end(10, shares)
