"""Where the elements of a MusicXML file lie, in bytes: parts, measures and their children, the list of parts, keys."""

import re
from dataclasses import dataclass, field
from xml.parsers import expat

Span = tuple[int, int]


@dataclass(slots=True)
class Measure:
    """Where a measure and its children lie in the file."""

    span: Span = (0, 0)
    inside: Span = (0, 0)
    items: list[Span] = field(default_factory=list[Span])


@dataclass(slots=True)
class Places:
    """Where the elements of a score-partwise lie in the file."""

    parts: list[Span] = field(default_factory=list[Span])
    insides: list[Span] = field(default_factory=list[Span])
    measures: list[list[Measure]] = field(default_factory=list[list[Measure]])
    listed: dict[str, Span] = field(default_factory=dict[str, Span])
    keys: list[tuple[int, Span]] = field(default_factory=list[tuple[int, Span]])
    encoding: str = "utf-8"


def locate(data: bytes) -> Places:
    """The places of parts, measures and their children, in bytes."""
    places, open_at = Places(), list[tuple[str, int, str]]()
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
            places.measures[-1].append(Measure(inside=(tag_end(at), 0)))

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
