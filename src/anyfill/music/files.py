"""Music in files: read after what they contain, written after what they are called.

    .mid .midi             Standard MIDI File
    .musicxml .xml .mxl    MusicXML, the last one zipped
    jsb.json:valid:3       piece 3, counted from 0, of the part "valid" of a JSB file (``chorales.read_jsb``); read only

A name that is no file and ends in none of these is looked up in music21's corpus ("bwv66.6"). A file is written under
another name and renamed at the very end, so whatever was there stays if anything fails.
"""

import re
from fractions import Fraction
from pathlib import Path
from typing import Literal

from anyfill.checks import refuse
from anyfill.disk import write_bytes
from anyfill.music.chorale import STEP, Chorale
from anyfill.music.chorales import read_jsb
from anyfill.music.corpus import read_corpus
from anyfill.music.markup import MAX_BYTES
from anyfill.music.midi_score import read_midi, write_midi
from anyfill.music.musicxml import read_musicxml
from anyfill.music.musicxml_writer import write_musicxml
from anyfill.music.parts import Factorization
from anyfill.music.quantise import Piece, quantise
from anyfill.music.score import Score

MusicFormat = Literal["midi", "musicxml", "mxl"]

_SUFFIXES: dict[str, MusicFormat] = {
    ".mid": "midi",
    ".midi": "midi",
    ".musicxml": "musicxml",
    ".xml": "musicxml",
    ".mxl": "mxl",
}
_PIECE = re.compile(r"(.+\.json):([^:]*):([^:]*)", re.IGNORECASE)


def music_format(path: str | Path) -> MusicFormat:
    """The format that the end of a file's name stands for; ValueError if it stands for none."""
    name = Path(path).name.lower()
    for suffix, kind in _SUFFIXES.items():
        if name.endswith(suffix):
            return kind
    raise refuse(f"file {path}", expected=f"a name that ends in one of {' '.join(_SUFFIXES)}", got=Path(path).name)


def read_music(path: str | Path) -> Factorization:
    """The score in a file, of a piece in a JSB file, or of a name in music21's corpus; its bar, and remarks.

    ValueError, in one sentence that names the file, if it cannot be read as music; OSError if it cannot be read at all.
    """
    file = Path(path)
    inside = None if file.exists() else _PIECE.fullmatch(str(path))
    if inside is not None:
        return _jsb_piece(inside[1], inside[2], inside[3])
    if file.suffix.lower() == ".json":
        raise refuse(f"file {path}", expected=f"one piece of it, as in {path}:valid:3", got="the whole file")
    if not file.exists() and file.suffix.lower() not in _SUFFIXES:
        return read_corpus(str(path))
    if file.is_dir():
        raise refuse(f"{path}", expected="a file", got="a folder")
    source = f"file {path}"
    if file.stat().st_size > MAX_BYTES:
        got = f"{file.stat().st_size / 2**20:,.1f} MiB"
        raise refuse(source, expected=f"at most {MAX_BYTES // 2**20} MiB", got=got)
    data = file.read_bytes()
    if not data:
        raise refuse(source, expected="music", got="an empty file")
    if data[:4] == b"MThd":
        return read_midi(data, source)
    if (
        data[:4] == b"PK\x03\x04"
        or data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<"
        or data[:2] in (b"\xff\xfe", b"\xfe\xff")
    ):
        return read_musicxml(data, source)
    start = repr(data[:20].decode("latin-1"))
    kind = _SUFFIXES.get(file.suffix.lower())
    expected = {"midi": "a MIDI file", "musicxml": "MusicXML", "mxl": "zipped MusicXML", None: "MIDI or MusicXML"}[kind]
    raise refuse(source, expected=expected, got=f"something that begins with {start}")


def jsb_name(path: str | Path) -> str | None:
    """What to call a piece of a JSB file, as "jsb-valid-3" for jsb.json:valid:3; None where a path names no piece."""
    inside = _PIECE.fullmatch(str(path))
    return None if inside is None else f"{Path(inside[1]).stem}-{inside[2]}-{inside[3]}"


def _jsb_piece(path: str, part: str, number: str) -> Factorization:
    source = f"piece {path}:{part}:{number}"
    if not part or not re.fullmatch(r"[0-9]{1,9}", number):
        raise refuse(source, expected=f"a part and a number from 0, as in {path}:valid:3", got=f"{part!r}, {number!r}")
    pieces = read_jsb(path, part)
    if int(number) >= len(pieces):
        expected = f"a number from 0 to {len(pieces) - 1}" if pieces else "a part with pieces"
        raise refuse(source, expected=expected, got=number)
    chorale = pieces[int(number)]
    return Factorization(chorale.score(), Fraction(chorale.bar) * STEP)


def read_score(path: str | Path) -> Score:
    """The notes in a file with exact times (see ``read_music``)."""
    return read_music(path).score


def read_piece(path: str | Path, *, transpose: int = 0) -> Piece:
    """The grid of the music in a file, which voices it has, and what was changed to get there.

    Args:
        path: of a file, or a name in music21's corpus.
        transpose: semitones by which every note is put higher on the way.
    """
    return quantise(read_music(path), transpose=transpose, source=f"file {path}")


def read_chorale(path: str | Path) -> Chorale:
    """The grid of the music in a file; voices that it does not have are rests (see ``read_piece``)."""
    return read_piece(path).chorale


def write_score(music: Score | Chorale, path: str | Path) -> None:
    """Write a file of the format that its name says; the same music gives the same bytes."""
    kind = music_format(path)
    score, bar = (music.score(), Fraction(music.bar) * STEP) if isinstance(music, Chorale) else (music, None)
    data = write_midi(score, bar) if kind == "midi" else write_musicxml(score, bar, zipped=kind == "mxl")
    write_bytes(data, path)
