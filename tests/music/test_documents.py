"""Files come back as they were but for what was written: bytes of MusicXML, events of MIDI, locked notes."""

from collections import Counter
from fractions import Fraction
from importlib import resources
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kept_files import answered, filled, midi_events, require_same_midi, require_same_xml, sounding
from midi_bytes import meta, midi_bytes

from anyfill.music.files import read, read_music
from anyfill.music.midi import read_midi
from anyfill.music.request import Request
from anyfill.music.saving import score_bytes

F = Fraction


def note(step: str, octave: int, duration: int, voice: int = 1, inner: str = "", marks: str = "") -> str:
    pitch = f"<pitch><step>{step}</step><octave>{octave}</octave></pitch>" if step != "r" else "<rest/>"
    front = "<chord/>" if "chord" in inner else ""
    tie = '<tie type="start"/>' if "tie" in inner else '<tie type="stop"/>' if "stop" in inner else ""
    return f"<note>{front}{pitch}<duration>{duration}</duration>{tie}<voice>{voice}</voice>{marks}</note>"


LYRIC = '<lyric number="1"><syllabic>single</syllabic><text>Lob</text></lyric>'
SLUR = '<notations><slur type="{}" number="1"/></notations>'
FERMATA = "<notations><fermata/></notations>"
HEAD = "<attributes><divisions>2</divisions><key><fifths>-1</fifths><mode>minor</mode></key><time><beats>6</beats>\
<beat-type>8</beat-type></time></attributes>"
CHOIR = f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE score-partwise PUBLIC "-//Recordare//DTD MusicXML 4.0 Partwise//EN"
 "http://www.musicxml.org/dtds/partwise.dtd">
<!-- a comment --><score-partwise version="4.0"><work><work-title>Ein Lied</work-title></work>
<identification><creator type="composer">Jemand</creator></identification>
<defaults><scaling><millimeters>7</millimeters><tenths>40</tenths></scaling></defaults>
<credit page="1"><credit-words default-x="600">Ein Lied</credit-words></credit>
<part-list><score-part id="P1"><part-name>Women</part-name></score-part>
<score-part id="P2"><part-name>Tenor</part-name></score-part>
<score-part id="P3"><part-name>Bass</part-name></score-part></part-list>
<part id="P1">
<measure number="1" width="300"><print new-system="no"/>{HEAD}<direction placement="above"><direction-type><dynamics>
<p/>
</dynamics></direction-type><sound tempo="66"/></direction><harmony><root><root-step>D</root-step></root>
<kind>minor</kind></harmony>
{note("A", 4, 3, 1, marks=LYRIC)}{note("G", 4, 3, 1, marks=SLUR.format("start"))}<backup><duration>6</duration></backup>
{note("F", 4, 2, 2)}{note("E", 4, 4, 2, "tie")}</measure>
<measure number="2">{note("A", 4, 3, 1, marks=SLUR.format("stop"))}<harmony><root><root-step>A</root-step></root>
<kind>major</kind></harmony>{note("r", 0, 3, 1)}<backup><duration>6</duration></backup>
{note("E", 4, 4, 2, "stop")}{note("D", 4, 2, 2)}</measure>
<measure number="3">{note("D", 5, 6, 1, marks=FERMATA)}<backup><duration>6</duration></backup>{note("F", 4, 6, 2)}
<barline location="right"><bar-style>light-heavy</bar-style></barline></measure>
</part>
<part id="P2"><measure number="1">{HEAD}{note("D", 4, 6)}</measure><measure number="2">{note("C", 4, 6)}</measure>
<measure number="3">{note("A", 3, 6, marks=LYRIC)}</measure></part>
<part id="P3"><measure number="1">{HEAD}{note("D", 3, 6)}</measure><measure number="2">{note("A", 2, 6)}</measure>
<measure number="3">{note("D", 3, 6)}</measure></part>
</score-partwise>
""".encode()


@pytest.fixture(scope="module")
def choir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("documents") / "choir.musicxml"
    path.write_bytes(CHOIR)
    return path


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 1.0))
@example(3, 1.0)
def test_a_file_comes_back_byte_for_byte_outside_the_written_bars_and_notes_are_those_of_the_piece(
    choir: Path, seed: int, share: float
) -> None:
    piece = filled(choir, seed, share)
    if piece is None:
        return
    out = score_bytes(piece, "musicxml")
    require_same_xml(CHOIR, out, piece)
    path = choir.with_name("out.musicxml")
    path.write_bytes(out)
    wanted = sorted(one for voice in range(4) for one in sounding(piece.kept(voice) + piece.added(voice)))
    back = read_music(path)
    assert sorted(one for voice in back.score.voices for one in sounding(voice)) == wanted
    assert back.score.signs.keys == ((F(0), -1, True),)
    assert back.score.signs.times == ((F(0), 6, 8),)


def test_words_dynamics_chord_symbols_fermatas_and_slurs_of_a_rewritten_bar_stay_where_they_can(choir: Path) -> None:
    request = Request.fill(choir, "soprano 2-3")
    piece = answered(request, np.random.default_rng(4))
    text = score_bytes(piece, "musicxml").decode()
    second = text[text.index('<measure number="2">') : text.index('<measure number="3">')]
    assert second.count("<harmony>") == 1
    assert second.index('<slur type="stop"') < second.index("<backup>")
    assert text.count("<fermata") == 1
    assert text.count("<lyric") == 2
    assert "<!-- a comment -->" in text


def test_harmonising_a_part_puts_new_parts_beside_it_and_leaves_its_bytes_alone(choir: Path) -> None:
    piece = answered(Request.harmonise(choir, "tenor", choose="part 2", others="keep"), np.random.default_rng(0))
    out = score_bytes(piece, "musicxml")
    for number in (1, 2, 3):
        start, end = CHOIR.index(f'<part id="P{number}">'.encode()), 0
        end = CHOIR.index(b"</part>", start) + 7
        assert CHOIR[start:end] in out
    order = [out.index(f'<part id="{key}">'.encode()) for key in ("P1", "P-Soprano", "P-Alto", "P2", "P-Bass", "P3")]
    assert order == sorted(order)
    alone = score_bytes(answered(Request.harmonise(choir, "tenor"), np.random.default_rng(0)), "musicxml")
    assert b'<part id="P1">' not in alone
    assert b"Jemand" in alone
    assert b'<sound tempo="66"' in alone  # stood in a part that is gone


def test_utf16_and_zipped_files_are_put_back_too(tmp_path: Path) -> None:
    wide = CHOIR.decode().replace('encoding="UTF-8"', 'encoding="UTF-16"').encode("utf-16")
    (tmp_path / "wide.xml").write_bytes(wide)
    piece = answered(Request.fill(tmp_path / "wide.xml", "tenor 2"), np.random.default_rng(1))
    require_same_xml(wide, score_bytes(piece, "musicxml"), piece)
    assert score_bytes(piece, "mxl")[:2] == b"PK"


def band(seed: int) -> bytes:
    """A MIDI file with all that bands have, of random notes."""
    rng = np.random.default_rng(seed)
    head = [(0, meta(3, b"Song")), (0, meta(0x51, b"\x07\xa1\x20")), (0, meta(0x58, b"\x03\x02\x18\x08")),
            (0, meta(0x59, b"\xff\x01")), (500, meta(0x51, b"\x09\xa1\x20")), (600, meta(6, b"Verse"))]  # fmt: skip
    tracks = [head]
    for channel, base in ((0, 72), (3, 60), (9, 40)):
        events = [(0, meta(3, f"Track {channel}".encode())), (0, bytes((0xC0 | channel, 19 + channel)))]
        tick = 0
        for _ in range(12):
            length = int(rng.choice([96, 48, 64, 32, 192]))
            pitch = base + int(rng.integers(0, 12))
            events += [(tick, bytes((0x90 | channel, pitch, 77))), (tick + length, bytes((0x80 | channel, pitch, 3)))]
            events.append((tick, bytes((0xB0 | channel, 7, 99))))
            events.append((tick, meta(5, b"la")))
            tick += length
        tracks.append(sorted(events, key=lambda one: one[0]))
    return midi_bytes(96, tracks)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 1.0))
def test_all_events_of_a_midi_file_but_rewritten_notes_stay(tmp_path_factory, seed: int, share: float) -> None:
    path = tmp_path_factory.mktemp("band") / "band.mid"
    path.write_bytes(band(seed))
    piece = filled(path, seed, share)
    if piece is None:
        return
    out = score_bytes(piece, "midi")
    require_same_midi(band(seed), out, piece)
    before, after = read_music(path).score, read_midi(out).score
    assert (after.signs, after.title) == (before.signs, before.title)


def test_harmonising_midi_keeps_tempos_programs_names_signatures_and_triplets_of_the_tune(tmp_path: Path) -> None:
    (tmp_path / "band.mid").write_bytes(band(5))
    request = Request.harmonise(tmp_path / "band.mid", choose="track 2")
    out = score_bytes(answered(request, np.random.default_rng(0)), "midi")
    (tmp_path / "out.mid").write_bytes(out)
    before, after = read_music(tmp_path / "band.mid"), read_music(tmp_path / "out.mid")
    assert after.score.signs == before.score.signs
    assert after.score.signs.keys == ((F(0), -1, True),)
    assert len(after.score.voices) == 4
    tune = before.parts[0].notes
    assert any(note.length.denominator == 3 for note in tune)
    assert sounding(next(part.notes for part in after.parts if part.name == "Track 0")) == sounding(tune)
    tracks = midi_events(out)
    assert len(tracks) == 5  # the first, the tune, three new ones: neither drums nor the other part
    assert all((0, bytes((0xC0 | channel, 19))) in track for channel, track in zip((1, 2, 3), tracks[2:]))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 0.9))
@example(0, 0.5)
def test_onset_and_length_of_locked_notes_stay_where_four_voices_share_a_channel(
    tmp_path_factory, seed: int, share: float
) -> None:
    """New notes in unison with locked ones used to take over their ends: a note-off ends the oldest of its pitch."""
    rng, path = np.random.default_rng(seed), tmp_path_factory.mktemp("piano") / "piano.mid"
    events, division = [(0, bytes((0xC0, 6)))], 24
    for voice, pitch in enumerate((71, 66, 61, 54)):
        for tick in range(0, 12 * division, 4 * division):
            low = pitch + int(rng.integers(0, 4))
            cut = tick + int(rng.choice([1, 2, 3])) * division if voice else tick + 4 * division
            for a, b, one in ((tick, cut, low), (cut, tick + 4 * division, low + 1)):
                if b > a:
                    events += [(a, bytes((0x90, one, 80))), (b, bytes((0x80, one, 0)))]
    path.write_bytes(midi_bytes(division, [sorted(events, key=lambda one: (one[0], one[1][0] == 0x90))]))
    piece = filled(path, seed, share)
    if piece is None:
        return
    out = score_bytes(piece, "midi")
    assert all(any(event[:1] >= b"\xc0" and event[1] == 6 for _, event in track) for track in midi_events(out))
    heard = Counter(one for part in read_midi(out).parts for one in sounding(part.notes))
    wanted = Counter(one for voice in range(4) for one in sounding(piece.kept(voice) + piece.added(voice)))
    assert heard == wanted


def test_a_note_without_an_end_is_not_held_through_what_is_written_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "held.mid"
    events = [(0, b"\x90\x48\x50"), (96, b"\x80\x48\x00"), (96, b"\x90\x4a\x50"), (384, meta(6, b"here"))]
    path.write_bytes(midi_bytes(96, [events]))
    piece = answered(Request.go_on(path, 1), np.random.default_rng(0))
    assert sounding(piece.kept(0)) == [(F(0), F(1), 72), (F(1), F(3), 74)]
    back = read_midi(score_bytes(piece, "midi"))
    assert {(F(0), F(1), 72), (F(1), F(3), 74)} <= {one for part in back.parts for one in sounding(part.notes)}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 0.9))
@example(1, 0.5)
def test_onset_and_length_of_every_locked_note_stay(tmp_path_factory, seed: int, share: float) -> None:
    """Locked: a note of which any part lies outside the bars that were asked; ties over the border included."""
    path = tmp_path_factory.mktemp("locks") / "choir.musicxml"
    path.write_bytes(CHOIR)
    piece = filled(path, seed, share)
    if piece is None:
        return
    source = read(path)
    for voice in range(4):
        locked = [one for one in source.lines[voice] if one.pitch is not None and one in piece.kept(voice)]
        heard = sounding(piece.score.voices[voice])
        assert all((one.start, one.length, one.pitch) in heard for one in locked)
        steps = [(one.start, one.end) for one in piece.score.voices[voice] if one.pitch is not None]
        assert all(a[1] <= b[0] for a, b in pairwise(steps))


def test_what_is_written_before_and_behind_a_locked_note_of_its_pitch_is_struck_anew(choir: Path) -> None:
    """A locked note used to grow where the same pitch was written beside it, also at the end of a window."""
    request = Request.fill(choir, "bass 1, bass 3")
    chorale = request.piece.chorale
    pitch = np.where(request.asked, chorale.pitch[3, 16], chorale.pitch)  # the pitch of the locked bar 2
    codes = torch_codes(chorale, pitch)
    answer = chorale.with_codes(codes, request.row(request.asked)[4 * request.before :])
    bass = request.piece_of(answer, 1, 0).score.voices[3]
    assert [(one.start, one.length) for one in bass] == [(F(0), F(3)), (F(3), F(3)), (F(6), F(3))]
    tied = Request.fill(choir, "alto 2")  # E4 is tied into bar 2 and stays as a whole
    assert not tied.asked[1, :20].any()
    assert tied.asked[1, 20:24].all()
    assert "are locked, and kept as a whole" in tied.piece.remarks[-1]


def torch_codes(chorale, pitch):
    from dataclasses import replace

    return replace(chorale, pitch=pitch.astype(np.int16)).codes()


@pytest.mark.slow
def test_a_hundred_files_of_the_corpus_come_back_byte_for_byte_outside_the_written_bars() -> None:
    pytest.importorskip("music21")
    with resources.as_file(resources.files("music21").joinpath("corpus")) as corpus:
        files = sorted(path for path in corpus.rglob("*") if path.suffix.lower() in (".mxl", ".xml", ".musicxml"))
    done = 0
    for number in np.random.default_rng(0).permutation(len(files)):
        data = files[number].read_bytes()
        if len(data) > 400_000:
            continue
        try:
            piece = filled(files[number], int(number))
        except ValueError:  # not every file of the corpus is music that the grid can hold
            continue
        if piece is not None:
            require_same_xml(data, score_bytes(piece, "mxl" if data[:2] == b"PK" else "musicxml"), piece)
            done += 1
        if done == 100:
            return
    pytest.fail(f"only {done} files")
