"""MusicXML as notation programs write it, and XML that is refused."""

import io
import zipfile
from fractions import Fraction

import pytest

from anyfill.music.markup import MAX_BYTES, parse_markup, unzip
from anyfill.music.musicxml import read_musicxml
from anyfill.music.voices import ParsedScore

F = Fraction


def note(step: str, octave: int, duration: int, extra: str = "", alter: int = 0, front: str = "") -> str:
    pitch = f"<pitch><step>{step}</step><alter>{alter}</alter><octave>{octave}</octave></pitch>"
    return f"<note>{front}{pitch}<duration>{duration}</duration>{extra}</note>"


def xml(*measures: str, attributes: str = "", head: str = "") -> bytes:
    first = f"<attributes><divisions>4</divisions>{attributes}</attributes>"
    body = "".join(f'<measure number="{n + 1}">{first if n == 0 else ""}{m}</measure>' for n, m in enumerate(measures))
    parts = '<part-list><score-part id="P1"><part-name>Organ</part-name></score-part></part-list>'
    return f'<?xml version="1.0"?><score-partwise>{head}{parts}<part id="P1">{body}</part></score-partwise>'.encode()


def heard(factorization: ParsedScore) -> list[list[tuple[Fraction, Fraction, int]]]:
    return [
        [(n.start, n.length, n.pitch) for n in voice if n.pitch is not None] for voice in factorization.score.voices
    ]


def test_backup_voices_and_chords_are_voices() -> None:
    two = note("C", 5, 8, "<voice>1</voice>") + note("E", 4, 8, "<voice>1</voice>", front="<chord/>")
    back = "<backup><duration>8</duration></backup><forward><duration>4</duration></forward>"
    read = read_musicxml(xml(two + back + note("C", 3, 4, "<voice>2</voice>")))
    assert heard(read) == [[(F(0), F(2), 72)], [(F(0), F(2), 64)], [(F(1), F(1), 48)]]


def test_ties_over_bars_are_one_note_and_equal_notes_are_two() -> None:
    start, both, stop = '<tie type="start"/>', '<tie type="stop"/><tie type="start"/>', '<tie type="stop"/>'
    read = read_musicxml(xml(note("C", 5, 16, start), note("C", 5, 16, both), note("C", 5, 4, stop) + note("C", 5, 12)))
    assert heard(read) == [[(F(0), F(9), 72), (F(9), F(3), 72)]]
    assert read.score.bars == (F(0), F(4), F(8))


def test_a_short_first_measure_is_a_pickup_and_an_empty_one_is_a_whole_bar() -> None:
    time = "<time><beats>3</beats><beat-type>4</beat-type></time>"
    read = read_musicxml(xml(note("G", 4, 4), note("C", 5, 12), "", note("C", 5, 12), attributes=time))
    assert (read.score.bars, read.score.bar) == ((F(0), F(1), F(4), F(7)), F(3))


def test_a_transposing_part_is_read_as_it_sounds() -> None:
    for chromatic, diatonic, octave, want in ((-2, -1, 0, ("B-", 70)), (-9, -5, 0, ("E-", 63)), (0, 0, -1, ("C", 60))):
        moved = f"<transpose><diatonic>{diatonic}</diatonic><chromatic>{chromatic}</chromatic>"
        moved += f"<octave-change>{octave}</octave-change></transpose>"
        (voice,) = read_musicxml(xml(note("C", 5, 4), attributes=moved)).score.voices
        assert (voice[0].name, voice[0].pitch) == want


def test_names_are_kept_with_the_octave_they_are_written_in() -> None:
    (voice,) = read_musicxml(xml(note("B", 3, 4, alter=1) + note("C", 4, 4, alter=-1))).score.voices
    assert [(n.pitch, n.name, n.octave) for n in voice] == [(60, "B#", 3), (59, "C-", 4)]


def test_what_is_left_out_is_said() -> None:
    grace = "<note><grace/><pitch><step>D</step><octave>5</octave></pitch></note>"
    end = '<barline><repeat direction="backward"/></barline>'
    read = read_musicxml(xml(grace + grace + note("C", 5, 4) + note("D", 5, 4, front="<cue/>") + end))
    assert heard(read) == [[(F(0), F(1), 72)]]
    assert read.remarks == ("2 grace notes left out", "1 cue note left out", "repeats are read once")


def test_title_tempo_and_compound_time() -> None:
    time = "<time><beats>3+2</beats><beat-type>8</beat-type></time>"
    tempo = '<direction><sound tempo="66.5"/></direction>'
    read = read_musicxml(
        xml(tempo + note("C", 5, 10), attributes=time, head="<work><work-title>A\n b</work-title></work>")
    )
    assert (read.score.title, read.score.tempo, read.score.bar) == ("A b", 66.5, F(5, 2))


def test_a_zip_is_read_after_its_container_or_without_one() -> None:
    def packed(**members: bytes) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in members.items():
                archive.writestr(name.replace("__", "/").replace("_", "."), content)
        return file.getvalue()

    container = b"<container><rootfiles><rootfile full-path='b.xml'/></rootfiles></container>"
    one, two = xml(note("C", 5, 4)), xml(note("D", 5, 4))
    listed = {"META-INF__container_xml": container, "a_xml": one, "b_xml": two}
    assert heard(read_musicxml(packed(**listed))) == [[(F(0), F(1), 74)]]
    assert heard(read_musicxml(packed(a_xml=one))) == [[(F(0), F(1), 72)]]
    with pytest.raises(ValueError, match="a zip file with MusicXML in it, got one with none"):
        read_musicxml(packed(a_txt=b"hello"))


def test_utf16_and_a_public_dtd_are_read() -> None:
    text = xml(note("C", 5, 4)).decode().removeprefix('<?xml version="1.0"?>')
    doctype = '<!DOCTYPE score-partwise PUBLIC "-//Recordare//DTD MusicXML 3.1 Partwise//EN" "http://nowhere/p.dtd">'
    assert heard(read_musicxml(f'<?xml version="1.0" encoding="UTF-16"?>{doctype}{text}'.encode("utf-16")))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (xml(note("C", 5, 4).replace(">4<", ">9e999999999<")), "measure 1: expected a number as duration of note"),
        (xml(note("C", 5, 4).replace(">4<", ">999999999<")), "durations up to 10,000 quarter notes"),
        (xml("<note><duration>4</duration></note>"), "notes with a pitch or a rest"),
        (xml(note("H", 5, 4)), "a step from A to G"),
        (xml(note("C", 5, 4).replace("<alter>0", "<alter>0.5")), "whole semitones, got one of 0.5"),
        (
            xml(note("C", 5, 4), attributes="<divisions>0</divisions>").replace(b"<divisions>4</divisions>", b""),
            "above 0",
        ),
        (xml("<note><rest/><duration>4</duration></note>"), "expected notes, got none"),
        (
            xml('<note><rest/><duration>4</duration></note><barline><repeat direction="backward"/></barline>'),
            "expected notes, got none",
        ),
        (xml(note("C", 12, 4)), "MIDI numbers 0 to 127"),
        (b"<score-timewise/>", "the root score-timewise"),
    ],
)
def test_what_is_no_music_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"MusicXML file.*expected") as caught:
        read_musicxml(data)
    assert sentence in str(caught.value)


def time(beats: int) -> str:
    return f"<attributes><time><beats>{beats}</beats><beat-type>4</beat-type></time></attributes>"


def test_the_first_tempo_is_kept_and_changes_are_said() -> None:
    def tempo(bpm: int) -> str:
        return f'<direction><direction-type/><sound tempo="{bpm}"/></direction>'

    bar = note("C", 5, 16)
    read = read_musicxml(xml(tempo(90) + bar, tempo(90) + bar, tempo(50) + bar))
    assert read.score.tempo == 90.0
    assert [tempo for _, tempo in read.score.signs.tempos] == [90.0, 90.0, 50.0]
    assert read.remarks == ()
    assert read_musicxml(xml(tempo(90) + bar, tempo(90) + bar)).remarks == ()


def test_a_change_of_metre_is_said_and_a_pickup_is_none() -> None:
    four, three = note("C", 5, 16), note("C", 5, 12)
    read = read_musicxml(xml(time(4) + four, *[four] * 8, time(3) + three))
    assert len(read.remarks) == 1
    assert read.remarks[0].startswith("the metre changes (bars of 4 and 3 quarter notes): bar lines are put 4 quarter")
    assert read_musicxml(xml(time(3) + three, time(4) + four, four)).remarks == ()
    assert read_musicxml(xml(time(4) + three, four, three, note("C", 5, 4), four)).remarks == ()


def test_elements_attributes_and_text_are_read() -> None:
    root = parse_markup('<a b="1">x<c>é</c>y</a>'.encode(), "it")
    assert (root.tag, root.get("b"), root.text, root[0].text, root[0].tail) == ("a", "1", "x", "é", "y")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "entities of its own"),
        ('<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE a [<!ENTITY b "c">]><a/>'.encode("utf-16"), "entities"),
        (b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "entities of its own"),
        (b"<a>" * 100 + b"</a>" * 100, "at most 64 deep"),
        (b"<a><b/><b/><b/></a>", "at most 2 elements b"),
        (b"<a>", "expected XML"),
        (b'<?xml version="1.0" encoding="nonsense"?><a/>', "expected XML"),
        (bytes(MAX_BYTES + 1), "at most 32 MiB of XML"),
    ],
)
def test_harm_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(ValueError, match="it: expected") as caught:
        parse_markup(data, "it", limits={"b": 2})
    assert sentence in str(caught.value)


def test_a_zip_of_too_many_files_and_one_that_is_none_are_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(1_001):
            archive.writestr(f"{number}.xml", b"")
    with pytest.raises(ValueError, match="at most 1,000 files"):
        unzip(file.getvalue(), "it")
    with pytest.raises(ValueError, match="damaged or locked"):
        unzip(b"PK\x03\x04 and then nothing", "it")


def test_of_a_part_with_more_than_four_notes_at_once_the_outer_lines_are_read_and_that_is_said() -> None:
    read = read_musicxml(xml("".join(note(s, 4, 4, front="<chord/>" * (s != "C")) for s in "CDEFG")))
    assert [[one.pitch for one in voice] for voice in read.score.voices] == [[67], [60]]
    assert any("up to 5 notes at once: its highest and its lowest line are read" in one for one in read.remarks)
