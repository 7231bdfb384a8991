"""Music from files, read after what they contain (``writing`` writes them).

    .mid .midi             Standard MIDI File
    .musicxml .xml .mxl    MusicXML, the last one zipped
    jsb.json:valid:3       piece 3, counted from 0, of the part "valid" of a JSB file (``read_jsb``); read only

A name that is no file and ends in none of these is looked up in music21's corpus ("bwv66.6"). That package is an extra
and is imported only then. Its MusicXML files are read by our own reader; what it keeps in other formats it is asked to
write as MusicXML first. Most of the chorales that are kept aside for grading are in this corpus: it is for reading and
comparing, not for training.

A JSB file has lists of steps [soprano, alto, tenor, bass] of MIDI numbers, -1 for silence. It has no onsets: two equal
notes in a row cannot be told from one long note.
"""

import importlib
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from anyfill.checks import refuse
from anyfill.music.chorale import BAR, REST, Chorale
from anyfill.music.markup import MAX_BYTES
from anyfill.music.midi import read_midi
from anyfill.music.musicxml import read_musicxml
from anyfill.music.piece import Piece
from anyfill.music.quantising import quantise, whole_of
from anyfill.music.score import VOICES, Score
from anyfill.music.voices import ParsedScore
from anyfill.music.writing import SUFFIXES

Music = str | Path | Score | Chorale | Piece
"""What the verbs take: the name of a file or of a piece of the corpus, or music that was read."""
_CORPUS_NAME = re.compile(r"[A-Za-z0-9][\w./-]*")
_JSB_PIECE = re.compile(r"(.+\.json):([^:]*):([^:]*)", re.IGNORECASE)


def read_music(path: str | Path) -> ParsedScore:
    """The score in a file, of a piece in a JSB file, or of a name in music21's corpus; its bar, and remarks.

    ValueError, in one sentence that names the file, if it cannot be read as music; OSError if it cannot be read at all.
    """
    file = Path(path)
    inside = None if file.exists() else _JSB_PIECE.fullmatch(str(path))
    if inside is not None:
        return _jsb_piece(inside[1], inside[2], inside[3])
    if file.suffix.lower() == ".json":
        raise refuse(f"file {path}", expected=f"one piece of it, as in {path}:valid:3", got="the whole file")
    if not file.exists() and file.suffix.lower() not in SUFFIXES:
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
    kind = SUFFIXES.get(file.suffix.lower())
    expected = {"midi": "a MIDI file", "musicxml": "MusicXML", "mxl": "zipped MusicXML", None: "MIDI or MusicXML"}[kind]
    raise refuse(source, expected=expected, got=f"something that begins with {start}")


def jsb_name(path: str | Path) -> str | None:
    """What to call a piece of a JSB file, as "jsb-valid-3" for jsb.json:valid:3; None where a path names no piece."""
    inside = _JSB_PIECE.fullmatch(str(path))
    return None if inside is None else f"{Path(inside[1]).stem}-{inside[2]}-{inside[3]}"


def _jsb_piece(path: str, part: str, number: str) -> ParsedScore:
    source = f"piece {path}:{part}:{number}"
    if not part or not re.fullmatch(r"[0-9]{1,9}", number):
        raise refuse(source, expected=f"a part and a number from 0, as in {path}:valid:3", got=f"{part!r}, {number!r}")
    pieces = read_jsb(path, part)
    if int(number) >= len(pieces):
        expected = f"a number from 0 to {len(pieces) - 1}" if pieces else "a part with pieces"
        raise refuse(source, expected=expected, got=number)
    return ParsedScore(pieces[int(number)].score())


def parse(music: Music, *, source: str = "score") -> tuple[ParsedScore, str]:
    """The score of a file or of music that was read, and what an error calls it."""
    if isinstance(music, str | Path):
        return read_music(music), f"file {music}"
    score = music.score() if isinstance(music, Chorale) else music.score if isinstance(music, Piece) else music
    return ParsedScore(score), source


def read(music: Music) -> Piece:
    """The piece in a file, as models are asked about it; its ``remarks`` say what was changed on the way.

    Args:
        music: a file (MIDI, MusicXML), a piece of a JSB file ("jsb.json:valid:3"), a name in music21's corpus
            ("bwv66.6"), or a ``Score`` or ``Chorale``. A piece beyond the range of the model is moved into it
            (``Piece.shift``), and moved back wherever it is heard or saved.
    """
    if isinstance(music, Piece):
        return music
    parsed, source = parse(music)
    return whole_of(parsed, source=source)


def read_piece(path: str | Path) -> Piece:
    """The grid of the music in a file where it sounds, and which voices it has; refused out of the model's range."""
    return quantise(read_music(path), source=f"file {path}")


def read_chorale(path: str | Path) -> Chorale:
    """The grid of the music in a file; voices that it does not have are rests (see ``read_piece``)."""
    return read_piece(path).chorale


def read_jsb(path: str | Path, part: str) -> list[Chorale]:
    """The pieces of one part ("train", "valid" or "test") of a JSB file; ValueError if it is not one."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise refuse(f"JSB file {path}", expected="a readable file", got=error.strerror or str(error)) from error
    except ValueError as error:
        raise refuse(f"JSB file {path}", expected="JSON", got=str(error)) from error
    if not isinstance(content, dict) or part not in content:
        got = sorted(content) if isinstance(content, dict) else type(content).__name__
        raise refuse(f"JSB file {path}", expected=f'an object with the part "{part}"', got=got)
    return [_jsb_grid(piece, f"{part} {number}") for number, piece in enumerate(content[part])]


def _jsb_grid(steps: object, title: str) -> Chorale:
    try:
        values = np.array(steps, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise refuse(f"piece {title}", expected="steps of four numbers each", got=str(error)) from error
    if values.ndim != 2 or values.shape[1] != len(VOICES):
        raise refuse(f"piece {title}", expected="steps of four numbers each", got=f"shape {values.shape}")
    values = np.where(np.isnan(values), REST, values)
    # The file says nothing of bars. Pieces end with a whole bar, so what is left over in front is a pickup.
    return Chorale.of(values.T.astype(np.int16), title=title, pickup=len(values) % BAR)


def read_corpus(name: str) -> ParsedScore:
    """A piece of the corpus; ValueError if there is none of that name, or music21 is not installed."""
    source = f"piece {name}"
    if not _CORPUS_NAME.fullmatch(name) or ".." in name:
        raise refuse(source, expected='a name of music21\'s corpus, as "bwv66.6"', got=repr(name))
    corpus = _corpus(source)
    try:
        found: Any = corpus.getWork(name)
    except Exception as error:  # its CorpusException, and others for odd names
        raise refuse(source, expected="a name of music21's corpus", got=" ".join(str(error).split())) from None
    path = Path(str(found[0] if isinstance(found, list) else found))
    if path.suffix.lower() in (".xml", ".musicxml", ".mxl"):
        return read_musicxml(path.read_bytes(), source)
    with tempfile.TemporaryDirectory() as folder:
        written: Any = corpus.parse(name).write("musicxml", fp=Path(folder) / "piece.musicxml")
        return read_musicxml(Path(str(written)).read_bytes(), source)


def _corpus(source: str) -> Any:
    try:
        return importlib.import_module("music21.corpus")
    except ModuleNotFoundError:
        expected = 'a file, or a name of music21\'s corpus with music21 installed (pip install "anyfill[music]")'
        raise refuse(source, expected=expected, got="neither") from None
