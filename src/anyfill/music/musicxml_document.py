"""A MusicXML file that is written again with other notes: every byte outside the elements that change stays as it is.

The document is not built anew. Each element of a measure is found as a stretch of bytes, and only the notes that go are
cut out and new ones put in their place, so lyrics, slurs, layout, comments and even white space elsewhere are the same.

A part that is added has the measures of the part beside it: their numbers, signatures and bar lines.
"""

import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import lcm
from xml.etree.ElementTree import Element, SubElement, tostring

from anyfill.music.keys import KeySignature
from anyfill.music.markup import members_of, parse_markup
from anyfill.music.musicxml_measure import MeasureWriter, Stretch, bare, finer
from anyfill.music.musicxml_places import Span, as_utf8, encoding_of, locate
from anyfill.music.notation import Pen, add
from anyfill.music.score import VOICES, Change, Note, Rewrite
from anyfill.music.voices import mean_pitch, voice_called

_TREBLE, _TENOR, _BASS = ("G", 2, 0), ("G", 2, -1), ("F", 4, 0)


@dataclass(frozen=True, slots=True)
class MusicXmlDocument:
    """A file, zipped or not, as it was read.

    Attributes:
        data: its bytes.
        starts: where its measures begin, in quarters, and at last where it ends.
    """

    data: bytes
    starts: tuple[Fraction, ...]

    @property
    def kind(self) -> str:
        return "musicxml"

    def rewritten(self, change: Change) -> bytes:
        """The file with a change made to it; zipped if it was."""
        if self.data[:2] != b"PK":
            return _Editor(self.data, self.starts, change).result()
        name, content = members_of(self.data, "MusicXML file")
        fresh, out = _Editor(content, self.starts, change).result(), io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(self.data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
            for info in old.infolist():
                new.writestr(info, fresh if info.filename == name else old.read(info))
        return out.getvalue()


class _Editor:
    """Replaces stretches of one document."""

    def __init__(self, data: bytes, starts: Sequence[Fraction], change: Change) -> None:
        self.data, self.starts, self.change = as_utf8(data), [*starts], change
        self.encoding = encoding_of(self.data)
        self.root = parse_markup(self.data, "MusicXML file")
        self.parts = self.root.findall("part")
        self.places = locate(self.data)
        self.edits: list[tuple[int, int, bytes]] = []
        self.key = KeySignature(*change.spelling)
        self.led = False  # whether a new part has taken over the tempos of parts that go

    def result(self) -> bytes:
        change = self.change
        beside = None if change.beside is None else int(str(change.beside[0]))
        gone = {n for n in range(len(self.parts)) if change.alone and n != beside}
        if change.key is not None:
            self._sign(gone)
        streams: defaultdict[int, list[Rewrite]] = defaultdict(list)
        for rewrite in change.rewrites:
            streams[int(str(rewrite.stream[0]))].append(rewrite)
        later = _later(self.starts[-1], change.end, self.starts)
        for number in range(len(self.parts)):
            if number in gone:
                continue
            drop = None if not change.alone or change.beside is None else change.beside[1:]
            self._part(number, streams[number], drop, later)
        if change.above or change.below:
            self._new_parts(beside, gone, later)
        for number in gone:
            self._cut(self.places.parts[number])
            self._cut(self.places.listed.get(self.parts[number].get("id", ""), (0, 0)))
        return self._edited()

    def _edited(self) -> bytes:
        out, now = list[bytes](), 0
        for begin, end, text in sorted(self.edits, key=lambda edit: (edit[0], edit[1])):
            if begin >= now:
                out += [self.data[now:begin], text]
                now = end
        return b"".join([*out, self.data[now:]])

    def _replace(self, span: Span, text: str) -> None:
        self.edits.append((*span, text.encode(self.encoding, "xmlcharrefreplace")))

    def _cut(self, span: Span) -> None:
        """Leave out an element, and the white space behind it."""
        begin, end = span
        while end > begin and self.data[end : end + 1].isspace():
            end += 1
        if end > begin:
            self.edits.append((begin, end, b""))

    def _sign(self, gone: set[int]) -> None:
        fifths, minor = self.change.key or (0, False)
        for part, span in self.places.keys:
            shift, _ = _shift(self.parts[part], len(self.starts))
            written = fifths if not shift else (fifths + 7 * shift + 6) % 12 - 6
            if part not in gone:
                mode = "minor" if minor else "major"
                self._replace(span, f"<key><fifths>{written}</fifths><mode>{mode}</mode></key>")

    # One part.

    def _part(
        self, number: int, rewrites: Sequence[Rewrite], only: tuple[object, ...] | None, later: Sequence[Stretch]
    ) -> None:
        removed = {  # also by rewrites of other parts: a line may have notes of several
            place: rewrite for rewrite in self.change.rewrites for note in rewrite.removed if note.origin is not None
            if note.origin.stream[0] == number for place in note.origin.places
        }  # fmt: skip
        part, divisions = self.parts[number], 1
        unused = str(1 + max([1, *(int(one.text or "0") for one in part.iter("voice") if (one.text or "").isdigit())]))
        voices = {
            id(rewrite): str(int(unused) + n) if rewrite.own_voice else str(rewrite.stream[2])
            for n, rewrite in enumerate(rewrites)
        }
        for place, measure in enumerate(part.findall("measure")):
            start, end = self.starts[place], self.starts[place + 1]
            mine = [one for one in rewrites if any(a < end and b > start for a, b in one.spans)]
            divisions = _divisions(measure, divisions)
            if mine or only is not None or any(key[0] == place for key in removed):
                shift, _ = _shift(part, place)
                writer = MeasureWriter(
                    measure, (start, end), divisions, self.key, shift, mine, voices, removed, place, only
                )
                self._measure(number, place, writer)
        if later:
            shift, _ = _shift(part, len(self.starts))
            text = "".join(self._later_measure(part, n, divisions, shift, rewrites, voices, later)
                           for n in range(len(later)))  # fmt: skip
            at = self.places.insides[number][1]
            self._replace((at, at), text)

    def _measure(self, number: int, place: int, writer: "MeasureWriter") -> None:
        where = self.places.measures[number][place]
        for item, text in writer.edits():
            span = where.items[item] if item is not None else (where.inside[1], where.inside[1])
            if text is None:
                self._replace(span, "")
            elif item is not None and writer.is_kept(item):
                self._replace((span[0], span[0]), text)
            else:
                self._replace(span, text)
        for item in writer.promoted:
            span = where.items[item]
            own = self.data[span[0] : span[1]]
            self.edits.append((*span, re.sub(rb"<chord\s*/>|<chord\s*>\s*</chord\s*>", b"", own, count=1)))

    def _later_measure(
        self, part: Element, n: int, divisions: int, shift: int, rewrites: Sequence[Rewrite],
        voices: dict[int, str], later: Sequence[Stretch],
    ) -> str:  # fmt: skip
        start, end = later[n]
        count = len(part.findall("measure"))
        last = part.findall("measure")[-1].get("number", "") if count else ""
        name = str(int(last) + n + 1) if last.isdigit() else str(count + n + 1)
        measure = Element("measure", number=name)
        notes = [one for one in rewrites if any(note.end > start for note in one.notes)]
        if not notes:
            note = SubElement(measure, "note")
            SubElement(note, "rest", measure="yes")
            add(note, duration=int((end - start) * divisions) or 1, voice="1")
        fine = finer(divisions, [note for one in notes for note in one.notes], [start, end])
        if fine != divisions:
            add(SubElement(measure, "attributes"), divisions=fine)
        for place, one in enumerate(notes):
            if place:
                add(SubElement(measure, "backup"), duration=int((end - start) * fine))
            staff = str(one.stream[1]) if part.find(".//staves") is not None else None
            Pen(self.key, fine, voices[id(one)], staff, shift).measure(measure, one.notes, start, end, start)
        if fine != divisions:
            add(SubElement(measure, "attributes"), divisions=divisions)
        if n == len(later) - 1:
            add(SubElement(measure, "barline", location="right"), bar_style="light-heavy")
        return tostring(measure, encoding="unicode") + "\n"

    # New parts.

    def _new_parts(self, beside: int | None, gone: set[int], later: Sequence[Stretch]) -> None:
        near = 0 if beside is None else beside  # without a part beside it, before all others
        like, part_span = self.parts[near], self.places.parts[near]
        listed = self.places.listed.get(like.get("id", ""))
        ids = {part.get("id", "") for part in self.parts}
        total = len(self.change.above) + len(self.change.below) + (beside is not None)
        for parts, place in ((self.change.above, 0), (self.change.below, 1)):
            heads, bodies = list[str](), list[str]()
            for name, notes in parts:
                key = next(one for one in _names(name) if one not in ids)
                ids.add(key)
                head = Element("score-part", id=key)
                add(head, part_name=name)
                heads.append(tostring(head, encoding="unicode") + "\n")
                lead = gone if not self.led else set[int]()
                bodies.append(self._new_part(key, name, notes, like, total, later, lead))
                self.led = True
            if bodies:
                place = 0 if beside is None else place
                self._insert(part_span[place], "".join(bodies), place)
                if listed is not None:
                    self._insert(listed[place], "".join(heads), place)

    def _insert(self, at: int, text: str, behind: int) -> None:
        self._replace((at, at), f"\n{text.rstrip()}" if behind else text)

    def _new_part(
        self, key: str, name: str, notes: Sequence[Note], like: Element, total: int,
        later: Sequence[Stretch], lead: set[int],
    ) -> str:  # fmt: skip
        """A part with the measures of another one; it takes over the tempos of the parts ``lead``, which go."""
        edges = [time for note in notes for time in (note.start, note.end)]
        divisions = lcm(4, *(time.denominator for time in (*edges, *self.starts)))
        part = Element("part", id=key)
        shift, signature = _shift(like, len(self.starts))[0], self.key
        for n, (source, (start, end)) in enumerate(zip(like.findall("measure"), pairwise(self.starts))):
            measure = SubElement(part, "measure", {k: v for k, v in source.items() if k != "width"})
            attributes = SubElement(measure, "attributes")
            if n == 0:
                add(attributes, divisions=divisions)
            for sign in source.findall("attributes/key"):
                if self.change.key is not None:
                    sign = add(Element("key"), fifths=self.change.key[0])
                copied = deepcopy(sign)
                copied.tail = None
                fifths = copied.find("fifths")
                if fifths is not None and shift and self.change.key is None:
                    fifths.text = str((int(fifths.text or "0") + 7 * shift + 6) % 12 - 6)
                if fifths is not None and (fifths.text or "").strip().lstrip("+-").isdigit():
                    signature = KeySignature(int(fifths.text or "0"), signature.minor)
                attributes.append(copied)
                break
            for time in source.findall("attributes/time")[:1]:
                attributes.append(deepcopy(time))
            if n == 0:
                sign, line, octaves = _clef_of(name, notes, total)
                add(SubElement(attributes, "clef"), sign=sign, line=line, clef_octave_change=octaves or None)
            if not len(attributes):
                measure.remove(attributes)
            for bar in source.findall("barline"):
                if bar.get("location") == "left":
                    measure.append(bare(bar))
            for other in sorted(lead):
                measure.extend(_tempos_of(self.parts[other], n))
            Pen(signature, divisions).measure(measure, notes, start, end, start)
            for bar in source.findall("barline"):
                if bar.get("location", "right") == "right":
                    measure.append(bare(bar))
        for n, (start, end) in enumerate(later):
            measure = SubElement(part, "measure", number=str(len(self.starts) + n))
            Pen(signature, divisions).measure(measure, notes, start, end, start)
        return "".join([f'<part id="{key}">\n', *(tostring(one, encoding="unicode").strip() + "\n" for one in part),
                        "</part>\n"])  # fmt: skip


def _divisions(measure: Element, before: int) -> int:
    """The divisions that hold when the notes of a measure begin."""
    for item in measure:
        if item.tag == "attributes" and item.find("divisions") is not None:
            return int(Fraction((item.findtext("divisions") or "1").strip()))
        if item.tag == "note":
            break
    return before


def _shift(part: Element, measures: int) -> tuple[int, int]:
    """Semitones (and 0) by which a part is written higher than it sounds, up to a measure."""
    shift = 0
    for measure in part.findall("measure")[: measures + 1]:
        for transpose in measure.findall("attributes/transpose"):
            octaves = int(transpose.findtext("octave-change") or "0")
            shift = -(int(transpose.findtext("chromatic") or "0") + 12 * octaves)
    return shift, 0


def _tempos_of(part: Element, place: int) -> list[Element]:
    """What a measure of a part says of the tempo."""
    measures = part.findall("measure")
    items = [*measures[place]] if place < len(measures) else []
    return [
        bare(item)
        for item in items
        if item.tag in ("direction", "sound") and any(one.get("tempo") for one in item.iter("sound"))
    ]


def _later(end: Fraction, wanted: Fraction | None, starts: Sequence[Fraction]) -> list[Stretch]:
    """The measures behind the end of the file, as long as its last whole one."""
    found: list[Stretch] = []
    lengths = [after - before for before, after in pairwise(starts)]
    bar = max(lengths[-2:], default=Fraction(4))
    while wanted is not None and end < wanted:
        found.append((end, min(end + bar, wanted)))
        end += bar
    return found


def _names(name: str) -> Iterator[str]:
    """Keys for a new part: letters, then with a number."""
    word = re.sub(r"\W", "", name) or "part"
    yield f"P-{word}"
    yield from (f"P-{word}-{n}" for n in range(2, 1000))


def _clef_of(name: str, notes: Sequence[Note], total: int) -> tuple[str, int, int]:
    """That of a choir for soprano, alto, tenor and bass, else after the part's mean pitch."""
    voice = voice_called(name)
    if voice is not None and total == len(VOICES):
        return (_TREBLE, _TREBLE, _TENOR, _BASS)[voice]
    mean = mean_pitch(notes)
    return _TREBLE if mean >= 60 or mean == 0 else _BASS
