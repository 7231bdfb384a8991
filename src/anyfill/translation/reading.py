"""Where pairs of sentences come from: TSV, two text files line by line, translation catalogues (.po, .mo), TMX.

All of them stream: a file may be larger than memory, plain or .gz. Every reader yields (first, second), the two sides
in the languages that ``Source.languages`` says; ``read_pairs`` turns them round where a model is trained the other way.

    .tsv .txt   two columns between tabs, further ones are not read; which languages they are is said (--columns)
    X.de X.en   lines that belong together, by number
    .po .mo     msgid and msgstr; of plural forms the singular with the first and the plural with the last one; fuzzy,
                obsolete and empty entries are left out, and so is the header
    .tmx        the segments of a translation unit, by their language; markup inside them is dropped, its text kept
"""

import gzip
import struct
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import IO, cast
from xml.etree import ElementTree

from anyfill.checks import refuse
from anyfill.translation.catalogues import entries

Pair = tuple[str, str]
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


@dataclass(frozen=True, slots=True)
class Source:
    """A file of pairs, or two files of lines.

    Attributes:
        paths: one, or two of which line k of one belongs to line k of the other.
        languages: of the two sides.
    """

    paths: tuple[Path, ...]
    languages: tuple[str, str]

    def pairs(self) -> Iterator[Pair]:
        """The pairs, in the order of ``languages``."""
        if len(self.paths) == 2:
            return read_lines_together(*self.paths)
        path = self.paths[0]
        match kind_of(path):
            case ".po":
                return read_po(path)
            case ".mo":
                return read_mo(path)
            case ".tmx":
                return read_tmx(path, *self.languages)
            case _:
                return read_tsv(path)


def kind_of(path: Path) -> str:
    """The ending of a name, .gz apart, in lower case."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def sources_of(paths: Sequence[Path], source: str, target: str, columns: tuple[str, str] | None = None) -> list[Source]:
    """Files as sources of pairs; names that end in a language (X.de, X.en) belong together in twos.

    Args:
        paths: files.
        source, target: languages, as "de" and "en".
        columns: the languages of the columns of TSV files; None = (source, target).
    """
    found: list[Source] = []
    halves: dict[str, dict[str, Path]] = {}
    for path in paths:
        kind = kind_of(path)
        if kind in (f".{source}", f".{target}"):
            base = path.with_suffix("") if path.suffix.lower() == ".gz" else path
            halves.setdefault(str(base.with_suffix("")), {})[kind[1:]] = path
        elif kind in (".po", ".mo"):
            found.append(Source((path,), ("en", target if source == "en" else source)))
        elif kind == ".tmx":
            found.append(Source((path,), (source, target)))
        else:
            found.append(Source((path,), columns or (source, target)))
    for base, pair in halves.items():
        if len(pair) != 2:
            have = next(iter(pair))
            missing = target if have == source else source
            raise refuse(f"{pair[have]}", expected=f"{Path(base).name}.{missing} beside it", got="that file alone")
        found.append(Source((pair[source], pair[target]), (source, target)))
    for one in found:
        if set(one.languages) != {source, target}:
            got = " and ".join(one.languages)
            raise refuse(f"{one.paths[0]}", expected=f"a file of {source} and {target}", got=f"one of {got}")
    return found


def read_pairs(sources: Iterable[Source], source: str) -> Iterator[Pair]:
    """(source, target) of all files, one after another."""
    for one in sources:
        for first, second in one.pairs():
            yield (first, second) if one.languages[0] == source else (second, first)


@contextmanager
def opened_lines(path: Path, *, ends: bool = False) -> Generator[Iterator[str]]:
    """The lines of a file in UTF-8, plain or .gz; see ``decoded``."""
    with opened(path) as file:
        yield decoded(file, f"{path}", ends=ends)


@contextmanager
def opened(path: Path) -> Generator[IO[bytes]]:
    """A file, unpacked where its name ends in .gz; ValueError if it cannot be opened."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise refuse(f"{path}", expected="a file that can be read", got=error.strerror or str(error)) from None
    with file:
        yield cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if path.suffix.lower() == ".gz" else file


def decoded(file: IO[bytes], name: str, *, ends: bool = False) -> Iterator[str]:
    """The lines of what is read, in UTF-8, with or without their ends; ValueError naming it and the broken line."""
    number, line = 0, b""
    try:
        for number, line in enumerate(file, 1):
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            yield text if ends else text.rstrip("\r\n")
    except UnicodeDecodeError as error:
        got = f"byte {line[error.start]:#04x} that is none" if line else "something else"
        raise refuse(f"{name}, line {number:,}", expected="text in UTF-8", got=got) from None
    except (OSError, EOFError, zlib.error) as error:
        raise refuse(name, expected="a whole file", got=f"{error} after line {number:,}") from None


def read_tsv(path: Path) -> Iterator[Pair]:
    """The first two columns."""
    with opened_lines(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            first, tab, rest = line.partition("\t")
            if not tab:
                expected = "two columns with a tab between them"
                raise refuse(f"{path}, line {number:,}", expected=expected, got=repr(line[:60]))
            yield first, rest.partition("\t")[0]


def read_lines_together(first: Path, second: Path) -> Iterator[Pair]:
    """Lines by number; ValueError if one file has more of them."""
    with opened_lines(first) as ours, opened_lines(second) as theirs:
        for number, (one, other) in enumerate(zip_longest(ours, theirs), 1):
            if one is None or other is None:
                longer, shorter = (second, first) if one is None else (first, second)
                expected = f"as many lines as {longer.name} has"
                raise refuse(f"{shorter}", expected=expected, got=f"{number - 1:,}, and more in the other")
            yield one, other


def read_po(path: Path) -> Iterator[Pair]:
    """Entries of a catalogue in text form."""
    with opened_lines(path) as lines:
        for entry in entries(lines, f"{path}"):
            yield from _of_entry(entry.fields, entry.fuzzy)


def _of_entry(entry: dict[str, str], fuzzy: bool) -> Iterator[Pair]:
    singular, plural = entry.get("msgid", ""), entry.get("msgid_plural")
    if fuzzy or not singular:
        return
    forms = [entry[key] for key in sorted(entry) if key.startswith("msgstr")]
    if forms and forms[0]:
        yield singular, forms[0]
    if plural and len(forms) > 1 and forms[-1]:
        yield plural, forms[-1]


def read_mo(path: Path) -> Iterator[Pair]:
    """Entries of a compiled catalogue."""
    try:
        with opened(path) as file:
            data = file.read()
        order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
        if data[:4] not in (b"\xde\x12\x04\x95", b"\x95\x04\x12\xde"):
            raise refuse(f"{path}", expected="a .mo catalogue", got="something else")
        _, count, first, second = struct.unpack_from(f"{order}4I", data, 4)
        for number in range(count):
            texts: list[list[str]] = []
            for table in (first, second):
                size, start = struct.unpack_from(f"{order}2I", data, table + 8 * number)
                if start + size > len(data):
                    raise refuse(f"{path}", expected="a whole catalogue", got="one that is cut off")
                texts.append(data[start : start + size].decode("utf-8").split("\0"))
            ids, forms = texts
            ids[0] = ids[0].rpartition("\x04")[2]
            entry = {"msgid": ids[0], **{f"msgstr[{i}]": form for i, form in enumerate(forms)}}
            yield from _of_entry(entry | ({"msgid_plural": ids[1]} if len(ids) > 1 else {}), False)
    except (struct.error, UnicodeDecodeError, EOFError, zlib.error) as error:
        raise refuse(f"{path}", expected="a whole .mo catalogue in UTF-8", got=str(error)) from None
    except OSError as error:
        raise refuse(f"{path}", expected="a file that can be read", got=error.strerror or str(error)) from None


def read_tmx(path: Path, first: str, second: str) -> Iterator[Pair]:
    """The units that have a segment in both languages ("de" is "de-AT", too)."""
    try:
        with opened(path) as file:
            above: list[ElementTree.Element] = []
            for event, node in ElementTree.iterparse(file, events=("start", "end")):
                if event == "start":
                    above.append(node)
                    continue
                above.pop()
                if node.tag.rpartition("}")[2] != "tu":
                    continue
                said = {
                    (tuv.get(_LANGUAGE) or tuv.get("lang") or "").lower().replace("_", "-").partition("-")[0]: tuv
                    for tuv in node
                    if tuv.tag.rpartition("}")[2] == "tuv"
                }
                if first in said and second in said:
                    yield _segment(said[first]), _segment(said[second])
                if above:  # what was read is let go: a memory may be larger than memory
                    above[-1].clear()
    except ElementTree.ParseError as error:
        raise refuse(f"{path}", expected="a TMX file, XML that is whole", got=str(error)) from None
    except (OSError, EOFError, zlib.error) as error:
        raise refuse(f"{path}", expected="a file that can be read", got=str(error)) from None


def _segment(tuv: ElementTree.Element) -> str:
    """The text of a segment, without what stands for markup of the original."""
    segment = next((node for node in tuv if node.tag.rpartition("}")[2] == "seg"), None)
    return "" if segment is None else _text(segment)


def _text(node: ElementTree.Element) -> str:
    written = [node.text or ""]
    for child in node:
        code = child.tag.rpartition("}")[2] in ("bpt", "ept", "ph", "it", "ut")
        written += ["" if code else _text(child), child.tail or ""]
    return "".join(written)
