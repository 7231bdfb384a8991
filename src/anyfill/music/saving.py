"""Pieces into files: notes put back into the file that they came from, or a new one; sound, pages, pictures, notation.

What a model wrote is a ``Change`` of the file (``change_of``): voices that the file has are written anew in their own
staff or track, voices that it has not become new parts beside them. A file of the other kind (MusicXML from MIDI, say),
or music that came from no file, is written anew with the four voices, signatures and tempos.

    .mid .midi .musicxml .xml .mxl     the score
    .wav                               its sound (``synth``)
    .html                              a page with playback and a piano roll (``player``)
    .svg .pdf                          its notation by Verovio, an extra
    .png                               its piano roll
"""

import importlib
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from anyfill.checks import refuse
from anyfill.disk import write_bytes
from anyfill.music.chorale import STEP
from anyfill.music.keys import KeySignature
from anyfill.music.piece import Piece
from anyfill.music.score import VOICES, Change, Note, Rewrite, Score
from anyfill.music.writing import SUFFIXES, MusicFormat, music_format, write_midi, write_musicxml

OTHERS = (".png", ".wav", ".html", ".svg", ".pdf")
"""Ends of names beside those of scores."""
Stream = tuple[object, ...]


def save_piece(piece: Piece, path: str | Path) -> None:
    """Write a piece, as a whole or not at all, in the format that the name says."""
    suffix = Path(path).suffix.lower()
    match suffix:
        case ".png":
            from anyfill.music.piano_roll import draw_piano_roll

            draw_piano_roll(piece.panel(), path)
        case ".wav":
            from anyfill.music.synth import write_wav

            write_wav(piece.score, path)
        case ".html":
            from anyfill.music.player import page_of

            write_bytes(page_of([piece]).encode("utf-8"), path)
        case ".svg" | ".pdf":
            _notation(piece, Path(path))
        case _:
            if suffix not in SUFFIXES:
                expected = f"a name that ends in one of {' '.join((*SUFFIXES, *OTHERS))}"
                raise refuse(f"file {path}", expected=expected, got=Path(path).name)
            write_bytes(score_bytes(piece, music_format(path)), path)


def score_bytes(piece: Piece, kind: MusicFormat) -> bytes:
    """The piece as MIDI or MusicXML: its own file with the new notes if that is of this kind."""
    document = None if piece.source is None else piece.source.document
    if (
        document is not None
        and piece.written is not None
        and document.kind == ("midi" if kind == "midi" else "musicxml")
    ):
        out = document.rewritten(change_of(piece))
        if kind == "midi" or (out[:2] == b"PK") == (kind == "mxl"):
            return out
        from anyfill.music.markup import members_of
        from anyfill.music.writing import zip_of

        return zip_of(out) if kind == "mxl" else members_of(out, "MusicXML file")[1]
    if kind == "midi":
        return write_midi(piece.score)
    return write_musicxml(piece.score, zipped=kind == "mxl")


def change_of(piece: Piece) -> Change:
    """What becomes of the file that a piece was read from."""
    source, signature = piece.source, piece.signature or KeySignature.of(piece.score)
    if source is None or piece.written is None:
        raise refuse("piece", expected="one that was read from a file and written in", got=repr(piece))
    key = (signature.fifths, signature.minor)
    streams = [_stream(line) for line in piece.lines]
    if piece.alone and not _whole(piece, source):
        parts = tuple((VOICES[v].capitalize(), _sounding(piece.score.voices[v])) for v in range(len(VOICES)))
        return Change(above=parts, alone=piece.drops, key=key if piece.new_key else None, spelling=key)
    shared = Counter(stream for voice in source.voices if (stream := _stream(voice)) is not None)
    crowded = {stream for stream, count in shared.items() if count > 1} | _mixed(piece)
    rewrites: list[Rewrite] = []
    beside = next((stream for stream in streams if stream is not None), None)
    above: list[tuple[str, tuple[Note, ...]]] = []
    below: list[tuple[str, tuple[Note, ...]]] = []
    met = False
    for voice, stream in enumerate(streams):
        met = met or stream is not None
        added = piece.added(voice)
        if stream is None:
            if piece.written[voice].any():
                (below if met else above).append((VOICES[voice].capitalize(), added))
        elif piece.written[voice].any():
            kept = {id(note) for note in piece.kept(voice)}
            removed = tuple(note for note in piece.lines[voice] if id(note) not in kept and note.pitch is not None)
            rewrites.append(Rewrite(stream, removed, added, _spans(piece, voice), stream in crowded))
    end = piece.chorale.steps * STEP if piece.chorale.steps * STEP > source.length else None
    return Change(
        tuple(rewrites), tuple(above), tuple(below), beside, piece.alone and piece.drops,
        key if piece.new_key else None, end, key,
    )  # fmt: skip


def _stream(line: Sequence[Note]) -> Stream | None:
    """The stream that most of a line is written in."""
    counts = Counter(note.origin.stream for note in line if note.origin is not None)
    return counts.most_common(1)[0][0] if counts else None


def _mixed(piece: Piece) -> set[Stream]:
    """Streams that a line of several streams is written in: there its new notes need a voice of their own."""
    found: set[Stream] = set()
    for line in piece.lines:
        own = {note.origin.stream for note in line if note.origin is not None}
        found |= own if len(own) > 1 else set()
    return found


def _whole(piece: Piece, source: Score) -> bool:
    """Whether the tune is all that its stream has, and as it is in the file."""
    (line,) = [line for line in piece.lines if line] or [()]
    stream = _stream(line)
    if stream is None or {note.origin.stream for note in line if note.origin} != {stream}:
        return False
    own = [note for voice in source.voices for note in voice if note.origin and note.origin.stream == stream]
    places = {(note.origin.places, note.length) for note in line if note.origin}
    return all((note.origin.places, note.length) in places for note in own if note.origin and note.pitch is not None)


def _sounding(voice: Sequence[Note]) -> tuple[Note, ...]:
    return tuple(note for note in voice if note.pitch is not None)


def _spans(piece: Piece, voice: int) -> tuple[tuple[Fraction, Fraction], ...]:
    """(start, end) in quarters of every stretch that was written."""
    own = np.zeros(0, dtype=np.bool_) if piece.written is None else piece.written[voice]
    found: list[tuple[Fraction, Fraction]] = []
    for written, steps in groupby(range(len(own)), key=lambda step: bool(own[step])):
        run = [*steps]
        if written:
            found.append((run[0] * STEP, (run[-1] + 1) * STEP))
    return tuple(found)


def _package(name: str, about: str) -> Any:
    try:
        return importlib.import_module(name)
    except (ModuleNotFoundError, OSError):  # CairoSVG fails so without the library that it draws with
        expected = f'{about} (pip install "anyfill[notation]")'
        raise refuse("notation", expected=expected, got="no package of that name") from None


def notation_pages(piece: Piece) -> list[str]:
    """The pages of a piece as SVG, drawn by Verovio."""
    verovio = _package("verovio", "Verovio, which draws notation")
    toolkit: Any = verovio.toolkit(False)  # it loads its fonts when it is told where: in a thread it does not know
    toolkit.setResourcePath(str(Path(verovio.__file__).parent / "data"))
    toolkit.setOptions({"pageWidth": 2100, "pageHeight": 2970, "scale": 40, "footer": "none", "adjustPageHeight": True})
    if not toolkit.loadData(score_bytes(piece, "musicxml").decode("utf-8", "replace")):
        raise refuse("notation", expected="a score that Verovio reads", got="one that it does not")
    return [str(toolkit.renderToSVG(page)) for page in range(1, int(toolkit.getPageCount()) + 1)]


def _notation(piece: Piece, path: Path) -> None:
    """Write NAME.svg or NAME.pdf, further pages as NAME-2.svg and so on."""
    pages = notation_pages(piece)
    draw = _pdf() if path.suffix.lower() == ".pdf" else str.encode
    for number, page in enumerate(pages, 1):
        write_bytes(draw(page), path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}"))


def _pdf() -> Callable[[str], bytes]:
    """What makes a PDF of an SVG."""
    cairosvg = _package("cairosvg", "CairoSVG, which makes a PDF of notation")

    def draw(page: str) -> bytes:
        return cairosvg.svg2pdf(bytestring=page.encode("utf-8"))

    return draw
