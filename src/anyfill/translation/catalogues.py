"""Translation catalogues in text form (.po, gettext): read entry by entry, and filled where they are empty.

    # translators' and tools' comments, flags as "#, fuzzy, c-format"
    msgctxt "menu"            of some
    msgid "%d file"           what is translated
    msgid_plural "%d files"   of some, and then msgstr[0], msgstr[1] …
    msgstr ""                 its translation; a string goes on in the lines below it

The first entry, whose msgid is empty, is the header. Entries that begin with "#~" are obsolete: comments to us. What a
machine fills in is marked fuzzy, which tells gettext not to use it before somebody has looked at it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyfill.checks import refuse

if TYPE_CHECKING:
    from anyfill.translation.texts import Translation

_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "r": "\r"}
_ESCAPED = str.maketrans({value: f"\\{key}" for key, value in _ESCAPES.items()})


@dataclass(slots=True)
class Entry:
    """An entry of a catalogue.

    Attributes:
        lines: as they stand in the file with their ends, comments before it included.
        fields: strings by keyword: msgid, msgid_plural, msgstr, msgstr[0] …
        fuzzy: whether its translation is only a guess.
    """

    lines: list[str] = field(default_factory=list[str])
    fields: dict[str, str] = field(default_factory=dict[str, str])
    fuzzy: bool = False

    @property
    def forms(self) -> list[str]:
        """The keywords of its translations, in their order."""
        return sorted(name for name in self.fields if name.startswith("msgstr"))

    @property
    def is_empty(self) -> bool:
        """Whether it is one to be translated, and nobody has."""
        return bool(self.fields.get("msgid") and self.forms and not any(self.fields[name] for name in self.forms))


def entries(lines: Iterable[str], name: str) -> Iterator[Entry]:
    """The entries of a catalogue, the header and comments behind the last among them; ``name`` is for complaints."""
    entry, keyword = Entry(), ""
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        word, _, rest = line.partition(" ")
        if entry.forms and (line.startswith("#") or word in ("msgctxt", "msgid")):
            yield entry
            entry = Entry()
        entry.lines.append(raw)
        if not line or line.startswith("#"):
            flagged = line.startswith("#,") and "fuzzy" in line
            entry.fuzzy = (entry.fuzzy or flagged) and not line.startswith("#~")  # whose flags are its own
            keyword = ""
        elif line.startswith('"'):
            if not keyword:
                raise refuse(f"{name}, line {number:,}", expected="msgid or msgstr before a string", got=line[:40])
            entry.fields[keyword] += _unquoted(line, name, number)
        elif word.startswith("msg"):
            keyword = word
            entry.fields[keyword] = _unquoted(rest.strip(), name, number)
        else:
            raise refuse(f"{name}, line {number:,}", expected="a .po catalogue", got=repr(line[:40]))
    yield entry


def _unquoted(text: str, name: str, number: int) -> str:
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        raise refuse(f"{name}, line {number:,}", expected="a string in quotes", got=repr(text[:40]))
    out, rest = list[str](), iter(text[1:-1])
    for character in rest:
        out.append(_ESCAPES.get(next(rest, ""), "") if character == "\\" else character)
    return "".join(out)


def _quoted(keyword: str, text: str, end: str) -> list[str]:
    """The lines of a string; one of several lines begins with an empty one, as gettext writes it."""
    parts = text.splitlines(keepends=True)
    if len(parts) < 2:
        return [f'{keyword} "{text.translate(_ESCAPED)}"{end}']
    return [f'{keyword} ""{end}', *(f'"{part.translate(_ESCAPED)}"{end}' for part in parts)]


def filled(entry: Entry, singular: str, plural: str) -> list[str]:
    """The lines of an empty entry with these translations, marked fuzzy; ``plural`` is for all forms but the first.

    A line that is new or changed ends as the one in its place, or as the one before where the file ends without.
    """
    made, skip, flagged, end = list[str](), False, entry.fuzzy, "\n"
    for raw in entry.lines:
        line, bare = raw.strip(), raw.rstrip("\r\n")
        end = raw[len(bare) :] or end
        word = line.partition(" ")[0]
        if word.startswith("msgstr"):
            made += _quoted(word, singular if word in ("msgstr", "msgstr[0]") else plural, end)
            skip = True
        elif not (skip and line.startswith('"')):
            skip = False
            if line.startswith("#,") and not flagged:
                raw, flagged = f"{bare}, fuzzy{end}", True
            if word in ("msgctxt", "msgid") and not flagged:
                made, flagged = [*made, f"#, fuzzy{end}"], True
            made.append(raw)
    return made


def translate_catalogue(translator: Any, path: Path, **options: Any) -> tuple[str, int, list["Translation"]]:
    """A .po catalogue with its empty entries translated; how many these are, and the translations of their lines.

    Args:
        translator: see ``anyfill.translation.load``; from the language that the msgids are in, which mostly is English.
        path: of the catalogue, plain or .gz.
        options: of ``Translator.translate``.
    """
    from anyfill.translation.cleaning import without_accelerators
    from anyfill.translation.reading import opened_lines

    with opened_lines(path, ends=True) as lines:
        found = list(entries(lines, f"{path}"))
    wanted = [
        without_accelerators(entry.fields[name]) if name in entry.fields else ""
        for entry in found
        if entry.is_empty
        for name in ("msgid", "msgid_plural")
    ]
    pieces = [text.split("\n") for text in wanted]
    made: list[Translation] = translator.translate([line for some in pieces for line in some], **options)
    written = iter(made)
    texts = iter(["\n".join(_spaced(line, next(written).text) for line in some) for some in pieces])
    content = [filled(entry, next(texts), next(texts)) if entry.is_empty else entry.lines for entry in found]
    count = sum(entry.is_empty for entry in found)
    return "".join(line for lines in content for line in lines), count, made


def _spaced(line: str, translation: str) -> str:
    """The translation of a line with the white space around it that the line has: programs put lines together."""
    bare = line.strip()
    before, _, behind = line.partition(bare) if bare else (line, "", "")
    return f"{before}{translation.strip()}{behind}"
