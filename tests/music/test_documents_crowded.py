"""MusicXML in which lines share parts: chords, staves with several voices, lines that go from one part to another."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kept_files import filled, sounding

from anyfill.music.chorale import REST
from anyfill.music.files import read, read_music
from anyfill.music.piece import Piece
from anyfill.music.request import Request
from anyfill.music.saving import score_bytes

HEAD = "<attributes><divisions>{}</divisions><time><beats>3</beats><beat-type>4</beat-type></time></attributes>"
PITCH = "<pitch><step>{}</step><octave>{}</octave></pitch>"


def measure(rng: np.random.Generator, divisions: int, voices: list[int], head: str) -> str:
    """3/4 of so many voices, with chords, rests and, where the divisions have them, triplets."""
    out = [head]
    for number, octave in enumerate(voices, 1):
        out += [f"<backup><duration>{3 * divisions}</duration></backup>"] if number > 1 else []
        at = 0
        while at < 3 * divisions:
            lengths = [n for n in (divisions, 2 * divisions, divisions // 2, divisions // 3) if n]
            length = min(int(rng.choice(lengths)), 3 * divisions - at)
            inner = f"<duration>{length}</duration><voice>{number}</voice>"
            pitches = [PITCH.format(rng.choice([*"CDEFGAB"]), octave - n) for n in range(rng.choice([1, 1, 1, 2]))]
            if rng.random() < 0.15:
                pitches = ["<rest/>"]
            out += [f"<note>{'<chord/>' * (n > 0)}{one}{inner}</note>" for n, one in enumerate(pitches)]
            at += length
    return "".join(out)


def crowd(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    parts = [[5], [4, 3]] if rng.random() < 0.5 else [[4], [4], [3]]
    body = ""
    for number, voices in enumerate(parts):
        divisions = int(rng.choice([3, 4, 6, 12]))
        bars = [measure(rng, divisions, voices, HEAD.format(divisions) if n == 0 else "") for n in range(3)]
        inside = "".join(f'<measure number="{n}">{bar}</measure>' for n, bar in enumerate(bars, 1))
        body += f'<part id="P{number}">{inside}</part>'
    listed = "".join(f'<score-part id="P{n}"><part-name>x</part-name></score-part>' for n in range(len(parts)))
    return f'<score-partwise version="4.0"><part-list>{listed}</part-list>{body}</score-partwise>'.encode()


def require_written(path: Path, piece: Piece) -> None:
    """Fail unless the file that is written has the notes of the piece, each once, and its bars."""
    path.write_bytes(score_bytes(piece, "musicxml"))
    back = read_music(path)
    wanted = Counter(one for voice in range(4) for one in sounding(piece.kept(voice) + piece.added(voice)))
    assert Counter(one for part in back.parts for one in sounding(part.notes)) == wanted
    assert back.score.bars == piece.source.bars


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.2, 1.0))
@example(0, 1.0)
def test_new_notes_stand_where_they_belong_and_old_ones_are_gone(tmp_path_factory, seed: int, share: float) -> None:
    path = tmp_path_factory.mktemp("crowd") / "crowd.musicxml"
    path.write_bytes(crowd(seed))
    piece = filled(path, seed, share)
    if piece is not None and not any("outer" in one or "at once" in one for one in read(path).remarks):
        require_written(path, piece)


CHORD = HEAD.format(4) + "".join(
    f"<note>{'<chord/>' * (n > 0)}{PITCH.format('CEG'[2 - n], 5 - n)}<duration>12</duration><voice>1</voice></note>"
    for n in range(2)
)


def of_parts(*bars: str) -> bytes:
    parts = "".join(f'<part id="P{n}"><measure number="1">{bar}</measure></part>' for n, bar in enumerate(bars))
    listed = "".join(f'<score-part id="P{n}"><part-name>x</part-name></score-part>' for n in range(len(bars)))
    return f'<score-partwise version="4.0"><part-list>{listed}</part-list>{parts}</score-partwise>'.encode()


def one(step: str, octave: int, begin: int, length: int, end: int, voice: int = 1) -> str:
    """A note between two stretches of silence, in a measure of 12."""
    move = "<forward><duration>{}</duration></forward>"
    note = f"<note>{PITCH.format(step, octave)}<duration>{length}</duration><voice>{voice}</voice></note>"
    return (move.format(begin) if begin else "") + note + (move.format(end) if end else "")


FIVE = [HEAD.format(4) + one("C", n, *place) for n, place in ((5, (0, 6, 6)), (5, (6, 6, 0)), (4, (0, 6, 6)),
                                                              (4, (6, 6, 0)), (3, (0, 12, 0)))]  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(of_parts(CHORD), id="a measure that ends with a chord: new notes came a measure late"),
        pytest.param(of_parts(*FIVE), id="five parts in three lines: notes of the other parts stayed"),
    ],
)
@pytest.mark.parametrize("seed", range(6))
def test_lines_that_share_parts_are_written_anew(tmp_path, data: bytes, seed: int) -> None:
    path = tmp_path / "piece.musicxml"
    path.write_bytes(data)
    piece = filled(path, seed, 0.7)
    if piece is not None:
        require_written(path, piece)


def test_a_line_of_sixteenths_before_one_of_quarters_sets_the_cursor_back_as_far_as_it_went(tmp_path) -> None:
    """With quarters as divisions 2.75 quarters back used to be two, and all that follows was late."""
    path = tmp_path / "piece.musicxml"
    chord = f"<note>{PITCH.format('E', 5)}<duration>3</duration></note>"
    chord += f"<note><chord/>{PITCH.format('C', 4)}<duration>3</duration></note>"
    bass = f"<note>{PITCH.format('C', 3)}<duration>3</duration></note>"
    path.write_bytes(of_parts(HEAD.format(1) + chord, HEAD.format(1) + bass))
    request = Request.fill(path, "soprano, tenor")
    pitch, onset = request.piece.chorale.pitch.copy(), request.piece.chorale.onset.copy()
    pitch[0], pitch[2] = [72] * 11 + [REST], [60] * 4 + [62] * 8
    piece = request.piece_of(replace(request.piece.chorale, pitch=pitch, onset=onset), 1, 0)
    require_written(path, piece)
    assert "<voice>1<" not in path.read_text()  # what names no voice is voice 1: new lines are others
