"""Names of music21's corpus, with that package and without it."""

import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

from anyfill.music.corpus import read_corpus
from anyfill.music.files import read_music
from anyfill.music.musicxml_writer import write_musicxml
from anyfill.music.score import Note, Score

SCORE = Score(((Note(Fraction(0), Fraction(1), 60, "C", 4),),), names=("Flute",), tempo=66.0)


def test_without_music21_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "music21", None)
    monkeypatch.setitem(sys.modules, "music21.corpus", None)
    with pytest.raises(ValueError, match=r"piece bwv66.6: expected a file, or .* music21 installed .* got neither"):
        read_music("bwv66.6")


def test_a_piece_is_read_from_the_package_s_file_or_from_what_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get_work(name: str) -> Path:
        if name not in ("one", "two"):
            raise LookupError("Could not find\na work")
        return tmp_path / ("one.musicxml" if name == "one" else "two.krn")

    def write(kind: str, fp: Path) -> Path:
        fp.write_bytes(write_musicxml(SCORE))
        return fp

    (tmp_path / "one.musicxml").write_bytes(write_musicxml(SCORE))
    fake = SimpleNamespace(getWork=get_work, parse=lambda _: SimpleNamespace(write=write))
    monkeypatch.setitem(sys.modules, "music21", SimpleNamespace(corpus=fake))
    monkeypatch.setitem(sys.modules, "music21.corpus", fake)
    assert read_corpus("one").score == read_corpus("two").score == SCORE
    with pytest.raises(ValueError, match="piece three: expected a name of music21's corpus, got Could not find a work"):
        read_corpus("three")
    with pytest.raises(ValueError, match="a name of music21's corpus"):
        read_corpus("../../etc/passwd")
