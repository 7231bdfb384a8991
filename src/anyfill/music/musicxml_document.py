"""A MusicXML file that is written again with other notes: every byte outside the elements that change stays as it is.

The document is not built anew. Each element of a measure is found as a stretch of bytes, and only the notes that go are
cut out and new ones put in their place, so lyrics, slurs, layout, comments and even white space elsewhere are the same.

Inside a measure time is a cursor. Where notes of a stream (a staff's voice) are replaced, new ones begin where the old
ones began. If a new note lasts beyond the place of the next element, the cursor is set back behind it (``backup``) and
forward again where the stream goes on, so directions and chord symbols between notes stay at their time. What finds no
place this way, a line that gets a voice of its own, is added at the end of the measure. A note that goes and has
nothing to take its place leaves a ``forward``.

A fermata stays over what now begins there. A slur that loses the note at one of its ends goes to the nearest new one.
A part that is added has the measures of the part beside it: their numbers, signatures and bar lines.
"""

import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import lcm
from xml.etree.ElementTree import Element, SubElement, tostring
from xml.parsers import expat

from anyfill.music.keys import KeySignature
from anyfill.music.markup import members_of, parse_markup
from anyfill.music.notation import Pen, add
from anyfill.music.score import VOICES, Change, Note, Rewrite, mean_pitch, voice_called

Span = tuple[int, int]
Stretch = tuple[Fraction, Fraction]
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


@dataclass(slots=True)
class _Measure:
    """Where a measure and its children lie in the file."""

    span: Span = (0, 0)
    inside: Span = (0, 0)
    items: list[Span] = field(default_factory=list[Span])


@dataclass(slots=True)
class _Places:
    """Where the elements of a score-partwise lie in the file."""

    parts: list[Span] = field(default_factory=list[Span])
    insides: list[Span] = field(default_factory=list[Span])
    measures: list[list[_Measure]] = field(default_factory=list[list[_Measure]])
    listed: dict[str, Span] = field(default_factory=dict[str, Span])
    keys: list[tuple[int, Span]] = field(default_factory=list[tuple[int, Span]])
    encoding: str = "utf-8"


def locate(data: bytes) -> _Places:
    """The places of parts, measures and their children, in bytes."""
    places, open_at = _Places(), list[tuple[str, int, str]]()
    parser = expat.ParserCreate()

    def tag_end(at: int) -> int:
        quote = 0
        while quote or data[at] != 0x3E:  # ">"
            byte = data[at]
            quote = 0 if byte == quote else byte if not quote and byte in b"\"'" else quote
            at += 1
        return at + 1

    def start(name: str, attributes: dict[str, str]) -> None:
        at = parser.CurrentByteIndex
        open_at.append((name, at, attributes.get("id", "")))
        path = [one for one, _, _ in open_at]
        if path[1:] == ["part"]:
            places.measures.append([])
            places.insides.append((tag_end(at), 0))
        elif path[1:] == ["part", "measure"]:
            places.measures[-1].append(_Measure(inside=(tag_end(at), 0)))

    def end(name: str) -> None:
        at = parser.CurrentByteIndex
        path = [one for one, _, _ in open_at]
        _, begin, key = open_at.pop()
        # The place of the end of <a/> is behind it, that of </a> before it.
        stop = tag_end(at) if data[at : at + 2] == b"</" and at > begin else max(at, tag_end(begin))
        if path[1:] == ["part"]:
            places.parts.append((begin, stop))
            places.insides[-1] = (places.insides[-1][0], at)
        elif path[1:] == ["part", "measure"]:
            places.measures[-1][-1].span = (begin, stop)
            places.measures[-1][-1].inside = (places.measures[-1][-1].inside[0], at)
        elif path[1:3] == ["part", "measure"] and len(path) == 4:
            places.measures[-1][-1].items.append((begin, stop))
        elif path[1:3] == ["part", "measure"] and path[3:] == ["attributes", "key"]:
            places.keys.append((len(places.measures) - 1, (begin, stop)))
        elif name == "score-part" and len(path) == 3:
            places.listed[key] = (begin, stop)

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.Parse(data, True)
    return places


def as_utf8(data: bytes) -> bytes:
    """The document in an encoding in which every "<" is one byte: as it is, unless it is in two-byte letters."""
    if data[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        return data
    text = data.decode("utf-16")
    return re.sub(r'(encoding\s*=\s*)["\'][^"\']*["\']', r'\1"UTF-8"', text, count=1).encode("utf-8")


def encoding_of(data: bytes) -> str:
    """The encoding that a document states."""
    stated = re.match(rb"\s*<\?xml[^>]*encoding\s*=\s*[\"']([A-Za-z0-9._-]+)", data.removeprefix(b"\xef\xbb\xbf"))
    return stated[1].decode() if stated else "utf-8"


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
        removed = {
            place: rewrite for rewrite in rewrites for note in rewrite.removed if note.origin is not None
            if note.origin.stream[0] == number for place in note.origin.places
        }  # fmt: skip
        part, divisions = self.parts[number], 1
        unused = str(1 + max([0, *(int(one.text or "0") for one in part.iter("voice") if (one.text or "").isdigit())]))
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
                writer = _MeasureWriter(
                    measure, (start, end), divisions, self.key, shift, mine, voices, removed, place, only
                )
                self._measure(number, place, writer)
        if later:
            shift, _ = _shift(part, len(self.starts))
            text = "".join(self._later_measure(part, number, n, divisions, shift, rewrites, voices, later)
                           for n in range(len(later)))  # fmt: skip
            at = self.places.insides[number][1]
            self._replace((at, at), text)

    def _measure(self, number: int, place: int, writer: "_MeasureWriter") -> None:
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
        self, part: Element, number: int, n: int, divisions: int, shift: int, rewrites: Sequence[Rewrite],
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
        fine = _fine(divisions, [note for one in notes for note in one.notes], [start, end])
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
        for parts, place, first in ((self.change.above, 0, 0), (self.change.below, 1, total - len(self.change.below))):
            heads, bodies = list[str](), list[str]()
            for n, (name, notes) in enumerate(parts):
                key = next(one for one in _names(name) if one not in ids)
                ids.add(key)
                head = Element("score-part", id=key)
                add(head, part_name=name)
                heads.append(tostring(head, encoding="unicode") + "\n")
                lead = gone if not self.led else set[int]()
                bodies.append(self._new_part(key, name, notes, like, first + n, total, later, lead))
                self.led = True
            if bodies:
                place = 0 if beside is None else place
                self._insert(part_span[place], "".join(bodies), place)
                if listed is not None:
                    self._insert(listed[place], "".join(heads), place)

    def _insert(self, at: int, text: str, behind: int) -> None:
        self._replace((at, at), f"\n{text.rstrip()}" if behind else text)

    def _new_part(
        self, key: str, name: str, notes: Sequence[Note], like: Element, place: int, total: int,
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
                sign, line, octaves = _clef_of(name, notes, place, total)
                add(SubElement(attributes, "clef"), sign=sign, line=line, clef_octave_change=octaves or None)
            if not len(attributes):
                measure.remove(attributes)
            for bar in source.findall("barline"):
                if bar.get("location") == "left":
                    measure.append(_bare(bar))
            for other in sorted(lead):
                measure.extend(_tempos_of(self.parts[other], n))
            Pen(signature, divisions).measure(measure, notes, start, end, start)
            for bar in source.findall("barline"):
                if bar.get("location", "right") == "right":
                    measure.append(_bare(bar))
        for n, (start, end) in enumerate(later):
            measure = SubElement(part, "measure", number=str(len(self.starts) + n))
            Pen(signature, divisions).measure(measure, notes, start, end, start)
        return "".join([f'<part id="{key}">\n', *(tostring(one, encoding="unicode").strip() + "\n" for one in part),
                        "</part>\n"])  # fmt: skip


class _MeasureWriter:
    """What becomes of the elements of one measure of one part."""

    def __init__(
        self, measure: Element, span: Stretch, divisions: int, key: KeySignature, shift: int,
        rewrites: Sequence[Rewrite], voices: dict[int, str], removed: dict[tuple[int, int], Rewrite], place: int,
        only: tuple[object, ...] | None,
    ) -> None:  # fmt: skip
        self.items, self.span, self.key, self.shift = [*measure], span, key, shift
        self.rewrites, self.voices, self.only = rewrites, voices, only
        self.removed = {item for at, item in removed if at == place}
        self.staves = any(item.find("staff") is not None for item in self.items)
        self.divisions, self.promoted = divisions, list[int]()
        self.at, self.length, self.streams = self._walk()
        for rewrite in rewrites:  # rests of the file where something is written
            for item, element in enumerate(self.items):
                if element.tag == "note" and element.find("rest") is not None and self._overlaps(item, rewrite):
                    self.removed.add(item)
        if only is not None:
            self.removed |= {
                n for n, one in enumerate(self.items) if one.tag == "note" and self.streams[n] != only
            }  # fmt: skip

    def _overlaps(self, item: int, rewrite: Rewrite) -> bool:
        start, end = self.span[0] + self.at[item], self.span[0] + self.at[item] + self.length[item]
        mine = self.streams[item] == rewrite.stream[1:] and not rewrite.own_voice
        return mine and end > start and any(a < end and b > start for a, b in rewrite.spans)

    def _walk(self) -> tuple[list[Fraction], list[Fraction], list[tuple[str, str] | None]]:
        """When each item begins and how long it moves the cursor, in quarters; the streams of notes."""
        at, last, divisions = Fraction(0), Fraction(0), Fraction(self.divisions)
        begins, lengths, streams = list[Fraction](), list[Fraction](), list[tuple[str, str] | None]()
        for item in self.items:
            length, begin, stream = Fraction(0), at, None
            duration = Fraction((item.findtext("duration") or "0").strip()) / divisions
            if item.tag == "attributes" and item.find("divisions") is not None:
                divisions = Fraction((item.findtext("divisions") or "1").strip())
            elif item.tag == "backup":
                at = max(at - duration, Fraction(0))
            elif item.tag == "forward":
                at += duration
            elif item.tag == "note":
                stream = (item.findtext("staff", "1"), item.findtext("voice", "1"))
                if item.find("chord") is not None:
                    begin = last
                elif item.find("grace") is None:
                    last, at, length = at, at + duration, duration
            begins.append(begin)
            lengths.append(length)
            streams.append(stream)
        self.divisions_at_end = divisions
        return begins, lengths, streams

    def is_kept(self, item: int) -> bool:
        """Whether an item stays, with something before it."""
        return item not in self.removed

    def edits(self) -> Iterator[tuple[int | None, str | None]]:
        """(item, what takes its place or stands before it); item None is the end of the measure."""
        start, end = self.span
        pending: dict[tuple[str, str], tuple[Fraction, bool]] = {}  # what has been written of streams, and where the
        # cursor is then: set back, or not, as nothing stands between
        placed: set[tuple[int, Fraction]] = set()
        carried = self._carried()
        for item, element in enumerate(self.items):
            if item not in self.removed:
                continue
            stream, length = self.streams[item], self.length[item]
            if element.find("chord") is not None or element.find("grace") is not None or stream is None:
                yield item, None
                continue
            follower = next((n for n in self._chord(item) if n not in self.removed), None)
            if follower is not None:
                self.promoted.append(follower)
                yield item, None
                continue
            begin = start + self.at[item]
            rewrite = next((one for one in self.rewrites if self._takes(one, stream, begin, begin + length)), None)
            body = Element("x")
            if rewrite is None:
                _move(body, length, self._fine([begin, begin + length]))
                yield item, _text(body, self.divisions, self._fine([begin, begin + length]))
                continue
            behind, set_back = pending.pop(stream, (begin, True))
            stop = begin + length
            notes = [
                one for one in rewrite.notes if behind <= one.start < stop or (one.start < start == begin < one.end)
            ]
            until = min(max([stop, *(note.end for note in notes)]), end)
            fine = self._fine([behind, until, *(time for note in notes for time in (note.start, note.end))])
            _move(body, behind - begin if set_back else Fraction(0), fine)
            pen = Pen(self.key, fine, self.voices[id(rewrite)], stream[0] if self.staves else None, self.shift)
            if until > behind:
                pen.measure(body, notes, behind, until, start)
            placed |= {(id(rewrite), note.start) for note in notes}
            self._dress(body, carried, stream, notes, behind, until)
            until = max(until, behind)
            if until > stop:
                set_back = not self._goes_on_at_once(item, stream, stop)
                pending[stream] = (until, set_back)
                _move(body, stop - until if set_back else Fraction(0), fine)
            yield item, _text(body, self.divisions, fine)
        yield from self._at_the_end(placed)

    def _goes_on_at_once(self, item: int, stream: tuple[str, str], stop: Fraction) -> bool:
        following = item + 1
        return (
            following in self.removed
            and self.streams[following] == stream
            and stop == self.span[0] + self.at[following]
        )

    def _takes(self, rewrite: Rewrite, stream: tuple[str, str], begin: Fraction, end: Fraction) -> bool:
        own = rewrite.stream[1:] == stream and not rewrite.own_voice
        return own and any(a < end and b > begin for a, b in rewrite.spans)

    def _chord(self, item: int) -> Iterator[int]:
        """The notes of a chord behind its first one."""
        for n in range(item + 1, len(self.items)):
            if self.items[n].tag != "note" or self.items[n].find("chord") is None:
                return
            yield n

    def _at_the_end(self, placed: set[tuple[int, Fraction]]) -> Iterator[tuple[None, str]]:
        """Notes that found no place, in voices behind all others."""
        start, end = self.span
        now = start + (self.at[-1] + self.length[-1] if self.items else Fraction(0))
        if self.items and self.items[-1].tag in ("backup", "forward"):
            moved = Fraction((self.items[-1].findtext("duration") or "0").strip()) / self.divisions_at_end
            now = start + max(self.at[-1] + (moved if self.items[-1].tag == "forward" else -moved), Fraction(0))
        body, times = Element("x"), [start, end, now]
        for rewrite in self.rewrites:
            notes = [one for one in rewrite.notes if one.start < end and one.end > start]
            left = [one for one in notes if (id(rewrite), one.start) not in placed]
            left = [
                one for one in left if one.start >= start or not any((id(rewrite), o.start) in placed for o in notes)
            ]
            if not left:
                continue
            fine = self._fine([*times, *(time for note in left for time in (note.start, note.end))])
            first, last = max(left[0].start, start), min(left[-1].end, end)
            _move(body, first - now, fine)
            staff = str(rewrite.stream[1]) if self.staves else None
            Pen(self.key, fine, self.voices[id(rewrite)], staff, self.shift).measure(body, left, first, last, start)
            now = last
            yield None, _text(body, int(self.divisions_at_end), fine)
            body = Element("x")

    def _carried(self) -> list[tuple[Fraction, tuple[str, str], Element]]:
        """Fermatas, and ends of slurs whose other end stays: (time, stream, element)."""
        found: list[tuple[Fraction, tuple[str, str], Element]] = []
        for item in sorted(self.removed):
            stream = self.streams[item]
            if stream is None or not any(self._overlaps_stream(one, stream) for one in self.rewrites):
                continue
            marks = self.items[item].findall("notations/fermata")
            marks += [one for one in self.items[item].findall("notations/slur") if not self._paired(item, one)]
            found += [(self.span[0] + self.at[item], stream, _bare(one)) for one in marks]
        return found

    def _overlaps_stream(self, rewrite: Rewrite, stream: tuple[str, str]) -> bool:
        return rewrite.stream[1:] == stream and not rewrite.own_voice

    def _paired(self, item: int, slur: Element) -> bool:
        """Whether the other end of a slur goes too, as far as this measure says."""
        other = {"start": "stop", "stop": "start"}.get(slur.get("type", ""))
        return any(
            n != item and self.streams[n] == self.streams[item] and one.get("type") == other
            and one.get("number", "1") == slur.get("number", "1")
            for n in self.removed for one in self.items[n].findall("notations/slur")
        )  # fmt: skip

    def _dress(
        self, body: Element, carried: list[tuple[Fraction, tuple[str, str], Element]], stream: tuple[str, str],
        notes: Sequence[Note], begin: Fraction, end: Fraction,
    ) -> None:  # fmt: skip
        """Put carried marks on the first element of the note that sounds at their time, or else on the next one."""
        elements = [one for one in body.findall("note") if one.find("pitch") is not None and not _is_tied(one, "stop")]
        for one in [*carried]:
            time, own, mark = one
            if own != stream or not begin <= time < end:
                continue
            here = [n for n, note in enumerate(notes) if note.start <= time and note.start >= begin]
            carried.remove(one)
            place = here[-1] if here else 0
            if place < len(elements):
                holder = elements[place]
                notations = holder.find("notations")
                (SubElement(holder, "notations") if notations is None else notations).append(mark)

    def _fine(self, times: Sequence[Fraction]) -> int:
        return _fine(self.divisions, [], [time - self.span[0] for time in times])


def _is_tied(note: Element, kind: str) -> bool:
    return any(one.get("type") == kind for one in note.findall("tie"))


def _fine(divisions: int, notes: Sequence[Note], times: Sequence[Fraction]) -> int:
    """Divisions in which all these times are whole, a multiple of those that hold."""
    every = [*times, *(time for note in notes for time in (note.start, note.end))]
    return divisions * lcm(1, *((time * divisions).denominator for time in every))


def _move(body: Element, by: Fraction, divisions: int) -> None:
    """Set the cursor forward, or back."""
    if by:
        add(SubElement(body, "forward" if by > 0 else "backup"), duration=int(abs(by) * divisions))


def _text(body: Element, divisions: int, fine: int) -> str:
    """The children of an element as text, in divisions of their own where they need them."""
    inner = "".join(tostring(one, encoding="unicode") for one in body)
    if fine == divisions or not inner:
        return inner
    return (
        f"<attributes><divisions>{fine}</divisions></attributes>{inner}"
        f"<attributes><divisions>{divisions}</divisions></attributes>"
    )


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
        _bare(item)
        for item in items
        if item.tag in ("direction", "sound") and any(one.get("tempo") for one in item.iter("sound"))
    ]


def _bare(element: Element) -> Element:
    copied = deepcopy(element)
    copied.tail = None
    return copied


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


def _clef_of(name: str, notes: Sequence[Note], place: int, total: int) -> tuple[str, int, int]:
    """That of a choir for soprano, alto, tenor and bass, else after the part's mean pitch."""
    voice = voice_called(name)
    if voice is not None and total == len(VOICES):
        return (_TREBLE, _TREBLE, _TENOR, _BASS)[voice]
    mean = mean_pitch(notes)
    return _TREBLE if mean >= 60 or mean == 0 else _BASS
