"""XML from strangers: parsed without entities, without depth and within a size.

A file can define words that stand for other words, and so grow without end, or name files of the reader's machine; none
of that is needed for music, and a file that does it is refused. A document type that only names a public DTD is read
past and never fetched. A zip file is opened only as far as its members keep within the size.
"""

import io
import zipfile
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from anyfill.checks import refuse

MAX_BYTES = 32 * 2**20
_MAX_DEPTH = 64
_MAX_MEMBERS = 1_000


def parse_markup(data: bytes, source: str, *, limits: dict[str, int] | None = None) -> Element:
    """The root of a document; ValueError, in a sentence that begins with ``source``, if it is none.

    Args:
        data: the document.
        source: what an error calls it.
        limits: how many elements of a name there may be.
    """
    if len(data) > MAX_BYTES:
        raise refuse(source, expected=f"at most {MAX_BYTES // 2**20} MiB of XML", got=f"{len(data) / 2**20:.1f} MiB")
    builder, depth, left = TreeBuilder(), 0, dict(limits or {})

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise refuse(source, expected=f"elements at most {_MAX_DEPTH} deep", got="deeper ones")
        if name in left:
            left[name] -= 1
            if left[name] < 0:
                raise refuse(source, expected=f"at most {(limits or {})[name]:,} elements {name}", got="more")
        builder.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name)

    def entity(*_: object) -> None:
        raise refuse(source, expected="XML without entities of its own", got="a definition of one")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(data, True)
        return builder.close()
    except expat.ExpatError as error:
        raise refuse(source, expected="XML", got=str(error)) from None
    except (LookupError, UnicodeError) as error:  # an encoding that nobody knows
        raise refuse(source, expected="XML in a known encoding", got=str(error)) from None


def unzip(data: bytes, source: str) -> dict[str, bytes]:
    """The members of a zip file by name, those of XML only; refused if they are damaged or too large."""
    members: dict[str, bytes] = {}
    room, many = MAX_BYTES, 0
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            listed = archive.infolist()
            many = len(listed)
            for info in listed if many <= _MAX_MEMBERS else ():
                if info.filename.lower().endswith((".xml", ".musicxml")) and room >= 0:
                    with archive.open(info) as file:
                        content = file.read(room + 1)  # what the zip says of the size is not believed
                    room -= len(content)
                    members[info.filename] = content
    except Exception as error:  # a damaged zip file fails in many ways, and one with a password in another
        got = f"a damaged or locked one ({' '.join(str(error).split())})"
        raise refuse(source, expected="a zip file with MusicXML", got=got) from None
    if many > _MAX_MEMBERS:
        raise refuse(source, expected=f"at most {_MAX_MEMBERS:,} files in the zip", got=f"{many:,}")
    if room < 0:
        raise refuse(source, expected=f"at most {MAX_BYTES // 2**20} MiB unpacked", got="more")
    return members


def members_of(data: bytes, source: str) -> tuple[str, bytes]:
    """The member of a zipped file that has the music: its name and its content."""
    members = unzip(data, source)
    container = members.get("META-INF/container.xml")
    if container is not None:
        listed = parse_markup(container, source).iter()
        named_there = [item.get("full-path", "") for item in listed if item.tag.rpartition("}")[2] == "rootfile"]
    else:
        named_there = sorted(name for name in members if "/" not in name)
    found = next((name for name in named_there if name in members), None)
    if found is None:
        got = f"one with {', '.join(sorted(members)) or 'none'}"
        raise refuse(source, expected="a zip file with MusicXML in it", got=got)
    return found, members[found]
