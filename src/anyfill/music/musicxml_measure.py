"""What becomes of the elements of one measure of MusicXML when some of its notes go and others come.

Inside a measure time is a cursor. Where notes of a stream (a staff's voice) are replaced, new ones begin where the old
ones began. If a new note lasts beyond the place of the next element, the cursor is set back behind it (``backup``) and
forward again where the stream goes on, so directions and chord symbols between notes stay at their time. What finds no
place this way, a line that gets a voice of its own, is added at the end of the measure. A note that goes and has
nothing to take its place leaves a ``forward``.

A fermata stays over what now begins there. A slur that loses the note at one of its ends goes to the nearest new one.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from fractions import Fraction
from math import lcm
from xml.etree.ElementTree import Element, SubElement, tostring

from anyfill.music.keys import KeySignature
from anyfill.music.notation import Pen, add
from anyfill.music.score import Note, Rewrite

Stretch = tuple[Fraction, Fraction]
"""Start and end, in quarters."""


class MeasureWriter:
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
        """When each item begins and how long it moves the cursor, in quarters; the streams of notes.

        Keeps where the cursor and what the divisions are at the end.
        """
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
        self.divisions_at_end, self.cursor = divisions, at
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
                move(body, length, self._fine([begin, begin + length]))
                yield item, as_text(body, self.divisions, self._fine([begin, begin + length]))
                continue
            behind, set_back = pending.pop(stream, (begin, True))
            stop = begin + length
            notes = [
                one for one in rewrite.notes if behind <= one.start < stop or (one.start < start == begin < one.end)
            ]
            until = min(max([stop, *(note.end for note in notes)]), end)
            fine = self._fine([behind, until, *(time for note in notes for time in (note.start, note.end))])
            move(body, behind - begin if set_back else Fraction(0), fine)
            pen = Pen(self.key, fine, self.voices[id(rewrite)], stream[0] if self.staves else None, self.shift)
            if until > behind:
                pen.measure(body, notes, behind, until, start)
            placed |= {(id(rewrite), note.start) for note in notes}
            self._dress(body, carried, stream, notes, behind, until)
            until = max(until, behind)
            if until > stop:
                set_back = not self._goes_on_at_once(item, stream, stop)
                pending[stream] = (until, set_back)
                move(body, stop - until if set_back else Fraction(0), fine)
            yield item, as_text(body, self.divisions, fine)
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
        now = start + self.cursor
        body = Element("x")
        for rewrite in self.rewrites:
            notes = [one for one in rewrite.notes if one.start < end and one.end > start]
            left = [one for one in notes if (id(rewrite), one.start) not in placed]
            left = [
                one for one in left if one.start >= start or not any((id(rewrite), o.start) in placed for o in notes)
            ]
            if not left:
                continue
            fine = self._fine([start, end, now, *(time for note in left for time in (note.start, note.end))])
            first, last = max(left[0].start, start), min(left[-1].end, end)
            move(body, first - now, fine)
            staff = str(rewrite.stream[1]) if self.staves else None
            Pen(self.key, fine, self.voices[id(rewrite)], staff, self.shift).measure(body, left, first, last, start)
            now = last
            yield None, as_text(body, int(self.divisions_at_end), fine)
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
            found += [(self.span[0] + self.at[item], stream, bare(one)) for one in marks]
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
        return finer(self.divisions, [], [time - self.span[0] for time in times])


def _is_tied(note: Element, kind: str) -> bool:
    return any(one.get("type") == kind for one in note.findall("tie"))


def finer(divisions: int, notes: Sequence[Note], times: Sequence[Fraction]) -> int:
    """Divisions in which all these times are whole, a multiple of those that hold."""
    every = [*times, *(time for note in notes for time in (note.start, note.end))]
    return divisions * lcm(1, *((time * divisions).denominator for time in every))


def move(body: Element, by: Fraction, divisions: int) -> None:
    """Set the cursor forward, or back."""
    if by:
        add(SubElement(body, "forward" if by > 0 else "backup"), duration=int(abs(by) * divisions))


def as_text(body: Element, divisions: int, fine: int) -> str:
    """The children of an element as text, in divisions of their own where they need them."""
    inner = "".join(tostring(one, encoding="unicode") for one in body)
    if fine == divisions or not inner:
        return inner
    return (
        f"<attributes><divisions>{fine}</divisions></attributes>{inner}"
        f"<attributes><divisions>{divisions}</divisions></attributes>"
    )


def bare(element: Element) -> Element:
    """A copy, without what stands behind it."""
    copied = deepcopy(element)
    copied.tail = None
    return copied
