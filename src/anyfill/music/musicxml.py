"""MusicXML (.musicxml, .xml, and .mxl, which is zipped): the notes of a ``score-partwise``.

Inside a measure a cursor moves on with every note, stays for the notes of a chord, and is set by ``backup`` and
``forward``. A measure is as long as the furthest its parts go, so a pickup is a short first measure; a measure with
nothing in it is as long as the time signature says. Tied notes are merged. A part for an instrument that transposes is
read as it sounds. Grace notes, cues and unpitched notes are left out, and repeats are read once.

A score keeps its file (``MusicXmlDocument``), by which it is written again with other notes and is otherwise the same.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import Any
from xml.etree.ElementTree import Element

from anyfill.checks import refuse
from anyfill.music.keys import named, sounding, with_octave
from anyfill.music.markup import members_of, parse_markup
from anyfill.music.musicxml_document import MusicXmlDocument
from anyfill.music.score import COMMON, MAX_NOTES, MAX_QUARTERS, Note, Origin, Score, Signs, require_length
from anyfill.music.voices import ParsedScore, Part, assemble, times

_MAX_MEASURES = 100_000
_LETTERS = "CDEFGAB"
_NUMBER = re.compile(r"-?\d{1,9}(\.\d{1,9})?")


def read_musicxml(data: bytes, source: str = "MusicXML file") -> ParsedScore:
    """The score in a MusicXML file (zipped or not); ValueError, in a sentence that begins with ``source``, if none."""
    whole = data
    if data[:2] == b"PK":
        data = members_of(data, source)[1]
    root = parse_markup(data, source, limits={"note": 2 * MAX_NOTES, "measure": _MAX_MEASURES})
    if root.tag != "score-partwise":
        raise refuse(source, expected="MusicXML with the root score-partwise", got=f"the root {root.tag}")
    left_out = Counter[str]()
    parts = [_Part(number, part, source, left_out) for number, part in enumerate(root.findall("part"))]
    lengths = _lengths(parts)
    starts = [*accumulate(lengths, initial=Fraction(0))]
    require_length(source, starts[-1])
    listed = {part.get("id", ""): part.findtext("part-name") or "" for part in root.iter("score-part")}
    found: list[Part] = []
    for number, part in enumerate(parts, 1):
        name, streams = " ".join(listed.get(part.key, f"Part {number}").split()), part.streams(starts)
        many = len(streams) > 1
        label = f"part {number}"
        found += [
            Part(f"{name} voice {n}" if many else name, tuple(notes), f"{label}, voice {n}" if many else label)
            for n, notes in enumerate(streams, 1)
        ]
    if sum(note.pitch is not None for part in found for note in part.notes) > MAX_NOTES:
        raise refuse(source, expected=f"at most {MAX_NOTES:,} notes", got="more")
    bars = tuple(start for start, length in zip(starts, lengths) if length > 0) or (Fraction(0),)
    bar, metres = _metres(parts[0].nominal if parts else [], lengths)
    title = root.findtext("work/work-title") or root.findtext("movement-title") or ""
    signs = _signs(parts, starts, _tempos(root))
    document = MusicXmlDocument(whole, tuple(starts))
    about = Score((), bars, title=" ".join(title.split()), bar=bar, signs=signs, document=document)
    remarks = [times(count, f"{what} left out", f"{what}s left out") for what, count in left_out.items() if count]
    if root.find(".//repeat[@direction='backward']") is not None:
        remarks.append("repeats are read once")
    return assemble(found, about, source, metres=metres, remarks=remarks)


@dataclass(frozen=True, slots=True)
class _Found:
    """A note, with its start in quarters into its measure; its place; its staff and voice; the kinds of its ties."""

    measure: int
    item: int
    note: Note
    stream: tuple[str, str]
    ties: set[str | None]


class _Part:
    """A part, measure by measure.

    Attributes:
        key: by which the list of parts names it.
        notes: that were found.
        reach: how far each measure goes, in quarters.
        nominal: quarters in a bar after the time signature that holds in each measure.
        times, keys, fermatas: (measure, quarters into it, what is stated there).
    """

    def __init__(self, place: int, part: Element, source: str, left_out: Counter[str]) -> None:
        self.place = place
        self.times = list[tuple[int, Fraction, tuple[int, int]]]()
        self.keys = list[tuple[int, Fraction, tuple[int, bool | None]]]()
        self.fermatas = list[tuple[int, Fraction]]()
        self.key, self.notes = part.get("id", ""), list[_Found]()
        self.reach, self.nominal = list[Fraction](), list[Fraction | None]()
        self._left_out = left_out
        self._divisions = Fraction(1)
        self._shift = (0, 0)  # semitones and steps of the staff from what is written to what sounds
        self._time: Fraction | None = None
        for number, measure in enumerate(part.findall("measure")):
            self._where = f"{source}, measure {measure.get('number', number + 1)}"
            self._measure(number, measure)

    def streams(self, starts: list[Fraction]) -> list[list[Note]]:
        """Notes by staff and voice, with times from the beginning of the score and ties merged."""
        streams: dict[tuple[str, str], list[Note]] = {}
        tied: dict[tuple[tuple[str, str], int | None], int] = {}
        for one in sorted(self.notes, key=lambda one: (one.measure, one.note.start)):
            line = streams.setdefault(one.stream, [])
            where = ((one.measure, one.item),)
            note = replace(
                one.note, start=starts[one.measure] + one.note.start, origin=Origin((self.place, *one.stream), where)
            )
            key = (one.stream, note.pitch)
            before = tied.pop(key, None) if "stop" in one.ties else None
            if before is not None and line[before].end == note.start:
                first = line[before].origin
                origin = None if first is None else Origin(first.stream, (*first.places, *where))
                line[before] = replace(line[before], length=line[before].length + note.length, origin=origin)
            else:
                before = len(line)
                line.append(note)
            if "start" in one.ties:
                tied[key] = before
        return list(streams.values())

    def _measure(self, number: int, measure: Element) -> None:
        at = reach = last = Fraction(0)
        for place, item in enumerate(measure):
            match item.tag:
                case "attributes":
                    self._attributes(item, number, at)
                case "backup":
                    at = max(at - self._duration(item), Fraction(0))
                case "forward":
                    at += self._duration(item)
                case "note" if item.find("grace") is not None:
                    self._left_out["grace note"] += 1
                case "note":
                    length = self._duration(item)
                    if item.find("chord") is None:
                        last, at = at, at + length
                    self._note(number, place, last, length, item)
                case _:
                    pass
            reach = max(reach, at)
        self.reach.append(reach)
        self.nominal.append(self._time)

    def _attributes(self, item: Element, number: int, at: Fraction) -> None:
        if item.find("divisions") is not None:
            self._divisions = self._number(item, "divisions")
            if self._divisions <= 0:
                raise refuse(self._where, expected="divisions above 0", got=self._divisions)
        transpose = item.find("transpose")
        if transpose is not None:
            octaves = int(self._number(transpose, "octave-change", "0"))
            steps = int(self._number(transpose, "diatonic", "0"))
            self._shift = (int(self._number(transpose, "chromatic", "0")) + 12 * octaves, steps + 7 * octaves)
        time = item.find("time")
        if time is not None and time.find("beats") is not None:
            beats, unit = (time.findtext("beats") or "").strip(), self._number(time, "beat-type")
            if not re.fullmatch(r"\d{1,3}(\s*\+\s*\d{1,3}){0,9}", beats) or unit <= 0:
                raise refuse(self._where, expected="a time signature as 3/4 or 3+2/8", got=f"{beats}/{unit}")
            count = sum(map(int, beats.split("+")))
            self._time = count * 4 / unit or None
            if count and unit.denominator == 1:
                self.times.append((number, at, (count, int(unit))))
        key = item.find("key")
        if key is not None and re.fullmatch(r"[+-]?[0-7]", (key.findtext("fifths") or "").strip()):
            mode = (key.findtext("mode") or "").strip().lower()
            minor = {"major": False, "minor": True}.get(mode)
            # Written for an instrument that transposes, a signature is not that of what sounds.
            turned = (int(key.findtext("fifths") or "0") + 7 * self._shift[0] + 6) % 12 - 6
            self.keys.append(
                (number, at, (int(key.findtext("fifths") or "0") if not self._shift[0] else turned, minor))
            )

    def _note(self, number: int, place: int, at: Fraction, length: Fraction, item: Element) -> None:
        pitch, rest = item.find("pitch"), item.find("rest") is not None
        unwanted = next((tag for tag in ("cue", "unpitched") if item.find(tag) is not None), None)
        if unwanted:
            self._left_out[f"{unwanted} note"] += 1
        elif length <= 0:
            self._left_out["note of no length"] += not rest
        elif pitch is None and not rest:
            raise refuse(self._where, expected="notes with a pitch or a rest", got="one with neither")
        else:
            note = Note(at, length, None) if pitch is None else self._pitched(pitch, at, length)
            stream = (item.findtext("staff", "1"), item.findtext("voice", "1"))
            tied = [*item.findall("tie"), *item.findall("notations/tied")] if pitch is not None else []
            self.notes.append(_Found(number, place, note, stream, {tie.get("type") for tie in tied}))
            if item.find("notations/fermata") is not None:
                self.fermatas.append((number, at))

    def _pitched(self, pitch: Element, at: Fraction, length: Fraction) -> Note:
        letter = (pitch.findtext("step") or "").strip()
        alter, octave = self._number(pitch, "alter", "0"), self._number(pitch, "octave")
        if letter not in _LETTERS or len(letter) != 1 or octave.denominator != 1:
            raise refuse(self._where, expected="a step from A to G and an octave", got=f"{letter!r} {octave}")
        if alter.denominator != 1 or abs(alter) > 3:
            raise refuse(self._where, expected="alterations of whole semitones", got=f"one of {float(alter):g}")
        semitones, steps = self._shift
        number = sounding(letter, int(alter), int(octave)) + semitones
        if not 0 <= number <= 127:
            raise refuse(self._where, expected="pitches of MIDI numbers 0 to 127", got=number)
        letter = _LETTERS[(_LETTERS.index(letter) + steps) % 7]
        distance = (number - sounding(letter, 0, 0) + 6) % 12 - 6
        if (steps and abs(distance) > 2) or (semitones % 12 and not steps):
            return Note(at, length, number)  # its name is not known
        letter, alteration, height = with_octave(letter, distance if semitones else int(alter), number)
        return Note(at, length, number, named(letter, alteration), height)

    def _duration(self, item: Element) -> Fraction:
        value = self._number(item, "duration") / self._divisions
        if value < 0 or value > MAX_QUARTERS:
            raise refuse(self._where, expected=f"durations up to {MAX_QUARTERS:,} quarter notes", got=float(value))
        return value

    def _number(self, item: Element, name: str, default: str = "") -> Fraction:
        text = item.findtext(name, default)
        if not _NUMBER.fullmatch(text.strip()):
            got = repr(text[:20]) if text else "none"
            raise refuse(self._where, expected=f"a number as {name} of {item.tag}", got=got)
        return Fraction(text.strip())


def _lengths(parts: list[_Part]) -> list[Fraction]:
    """Quarters in each measure."""
    lengths: list[Fraction] = []
    for number in range(max((len(part.reach) for part in parts), default=0)):
        there = [part for part in parts if number < len(part.reach)]
        nominal = next((part.nominal[number] for part in there if part.nominal[number] is not None), None)
        lengths.append(max(part.reach[number] for part in there) or nominal or COMMON)
    return lengths


def _metres(stated: list[Fraction | None], lengths: list[Fraction]) -> tuple[Fraction | None, list[Fraction]]:
    """Quarters in a bar after the time signature that holds longest, and after each; not that of a pickup."""
    lasting: defaultdict[Fraction, Fraction] = defaultdict(Fraction)
    for nominal, length in zip(stated, lengths):
        if nominal is not None:
            lasting[nominal] += length
    bar = max(lasting, key=lambda bar: lasting[bar], default=None)
    pickup = bool(stated) and stated[0] is not None and bar is not None and lengths[0] <= stated[0] < bar
    return bar, [nominal for nominal in stated[pickup:] if nominal is not None]


def _tempos(root: Element) -> list[tuple[int, float]]:
    """(measure, quarters a minute) in order of time; what several parts say in one measure is said once."""
    found: dict[int, dict[float, None]] = {}
    for part in root.findall("part"):
        for number, measure in enumerate(part.findall("measure")):
            for sound in measure.iter("sound"):
                text = sound.get("tempo", "").strip()
                if _NUMBER.fullmatch(text) and float(text) > 0:
                    found.setdefault(number, {})[float(text)] = None
    return [(number, tempo) for number in sorted(found) for tempo in found[number]]


def _signs(parts: list[_Part], starts: list[Fraction], tempos: list[tuple[int, float]]) -> Signs:
    """What the file states: signatures of the first part that has any, tempos, fermatas of all parts."""

    def first(name: str) -> list[tuple[int, Fraction, Any]]:
        return next((found for part in parts if (found := getattr(part, name))), [])

    fermatas = {starts[number] + at for part in parts for number, at in part.fermatas}
    return Signs(
        tuple((starts[number] + at, *time) for number, at, time in first("times")),
        tuple((starts[number] + at, *key) for number, at, key in first("keys")),
        tuple((starts[number], tempo) for number, tempo in tempos),
        tuple(sorted(fermatas)),
    )
