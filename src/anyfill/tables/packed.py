"""What lies between a file and its text: compression and encoding.

    .gz .bz2 .xz      unpacked as they are read; zeros behind a .gz (of tapes), and anything behind a .bz2, are no part
    .zip              if there is one file inside

Text is UTF-8. UTF-16 is known by its mark or by its zeros; what can be neither is taken for Windows-1252, or Latin-1
where a byte has no meaning there: every byte is a letter then, so a file with control characters is refused as no text.
Up to ``SCANNED`` bytes are looked at. Readers are handed UTF-8 whatever the file has, and a file that is written like
another has its encoding.

Arrow reads ahead in threads of its own, which Python kills if it ends while they run its code. So Arrow is only ever
handed what it reads without Python (``arrow_stream``).
"""

import bz2
import codecs
import gzip
import io
import lzma
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from anyfill.checks import refuse
from anyfill.disk import naming_if_full

PACKED = (".gz", ".bz2", ".xz", ".zip")
BROKEN = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
SCANNED = 64 << 20
ENCODINGS = {"utf-16": "UTF-16", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16", "cp1252": "Windows-1252"}
"""How encodings are called, for people."""
_NAMES = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zip": "zip", "": "text"}
_CONTROL = bytes(code for code in range(32) if code not in b"\t\n\v\f\r\x1a")
_STEP = 1 << 20
_BZ2_END = 0x177245385090  # 48 bits, 32 of a checksum, and up to 7 that fill the last byte


def packing(path: Path) -> str:
    """The end of a name that says how a file is packed; "" = not."""
    return next(filter(path.name.lower().endswith, PACKED), "")


def unpacked(path: Path, raw: BinaryIO) -> BinaryIO:
    """The bytes inside a file that is open."""
    match packing(path):
        case ".gz":
            return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
        case ".bz2":
            return cast(BinaryIO, _checked(path, raw, b"BZh", bz2.BZ2File))
        case ".xz":
            return cast(BinaryIO, lzma.LZMAFile(raw))
        case ".zip":
            archive = zipfile.ZipFile(raw)
            try:
                return cast(BinaryIO, archive.open(inside(path, archive)))
            except (RuntimeError, NotImplementedError) as error:  # a password is wanted; a method that is not known
                raise refuse(f"file {path}", expected="a zip file that can be unpacked", got=str(error)) from None
        case _:
            return raw


def _checked(path: Path, raw: BinaryIO, magic: bytes, opened: type[bz2.BZ2File]) -> bz2.BZ2File:
    if raw.read(len(magic)) != magic:
        raise refuse(f"file {path}", expected="a whole bz2 file", got="another one")
    raw.seek(0)
    return opened(raw)


def inside(path: Path, archive: zipfile.ZipFile) -> str:
    """The name of the one file in an archive."""
    names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
    if len(names) != 1:
        got = f"{len(names)} ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})" if names else "none"
        raise refuse(f"file {path}", expected="one table inside", got=got)
    return names[0]


def packer(path: Path, file: BinaryIO) -> BinaryIO | None:
    """What packs all that is written to it into a file; None if its name says that it is not packed.

    No times or names of folders go in: the same table gives the same bytes.
    """
    match packing(path):
        case ".gz":
            return cast(BinaryIO, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
        case ".bz2":
            return cast(BinaryIO, bz2.BZ2File(file, "wb"))
        case ".xz":
            return cast(BinaryIO, lzma.LZMAFile(file, "wb"))
        case ".zip":
            return cast(BinaryIO, _ZipMember(file, path.name[: -len(".zip")]))
        case _:
            return None


class _ZipMember(io.RawIOBase):
    """The one file of a new archive."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        super().__init__()
        self._archive = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED)
        entry = zipfile.ZipInfo(name)
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._member = self._archive.open(entry, "w", force_zip64=True)

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._member.write(bytes(cast(bytes, data)))

    def close(self) -> None:
        if not self.closed:
            self._member.close()
            self._archive.close()
        super().close()


def encoding_of(path: Path, sample: bytes) -> str:
    """The encoding of a text file that begins with these bytes; ValueError if it is no text."""
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in sample:
        even, odd = (sample[start::2].count(0) for start in (0, 1))
        half = len(sample) // 2
        if min(even, odd) == 0 and max(even, odd) >= 0.5 * half:
            return "utf-16-le" if odd else "utf-16-be"
        raise refuse(f"file {path}", expected="text", got="binary data")
    if _is_utf8(path):
        return "utf-8"
    if sample.translate(None, delete=_CONTROL) != sample:
        raise refuse(f"file {path}", expected="text", got="binary data")
    try:
        sample.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    seen = 0
    with path.open("rb") as raw:
        stream = unpacked(path, raw)
        while seen < SCANNED and (block := stream.read(_STEP)):
            seen += len(block)
            try:
                decoder.decode(block)
            except UnicodeDecodeError:
                return False
    return True


@contextmanager
def arrow_stream(path: Path, encoding: str, *, unpacked: bool = False) -> Generator[tuple[Any, Callable[[], float]]]:
    """The text of a file in UTF-8 as Arrow reads it by itself, and the share of the file that is read, 0 to 1.

    What Arrow cannot unpack (.xz, .zip, what has more behind its end) or recode is written to a temporary file, for as
    long as the block lasts; with ``unpacked`` all that is packed.
    """
    own = {"": "", ".gz": "gzip", ".bz2": "bz2"}.get(packing(path))
    with ExitStack() as held:
        if own is None or encoding != "utf-8" or (own and (unpacked or not _ends_where_it_should(path, own))):
            text = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="anyfill-"))) / "text"
            with naming_if_full(text):
                _write_utf8(path, encoding, text)
            own, path = "", text
        file = held.enter_context(arrow_file(path))
        size = max(file.size(), 1)
        yield pa.CompressedInputStream(file, own) if own else file, lambda: min(file.tell() / size, 1.0)


def arrow_file(path: Path) -> Any:
    """A file as Arrow reads it by itself, whatever bytes its name has."""
    return pa.OSFile(os.fsencode(path))


def _ends_where_it_should(path: Path, own: str) -> bool:
    """Whether a packed file ends as one does, with nothing behind; a .gz ends in its size, which is hardly ever 0."""
    with path.open("rb") as raw:
        raw.seek(-min(11, path.stat().st_size), os.SEEK_END)
        end = int.from_bytes(raw.read())
    if own == "gzip":
        return end % 2**32 != 0
    return any(end >> (32 + filling) & (2**48 - 1) == _BZ2_END for filling in range(8))


def _write_utf8(path: Path, encoding: str, target: Path) -> None:
    with path.open("rb") as raw, target.open("wb") as text:
        stream = unpacked(path, raw)
        recoded = stream if encoding == "utf-8" else io.BufferedReader(_Recoded(stream, encoding), _STEP)
        shutil.copyfileobj(recoded, text, _STEP)


class _Recoded(io.RawIOBase):
    """Text of another encoding, read as UTF-8."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        super().__init__()
        self._stream, self._held = stream, b""
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._is_first = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        view = memoryview(cast(bytearray, buffer))
        while not self._held:
            block = self._stream.read(_STEP)
            text = self._decoder.decode(block, final=not block)
            self._held = text.encode()
            if self._is_first and self._held:
                self._held, self._is_first = self._held.removeprefix(codecs.BOM_UTF8), False
            if not block:
                break
        count = min(len(view), len(self._held))
        view[:count], self._held = self._held[:count], self._held[count:]
        return count


def broken(path: Path, error: BaseException) -> ValueError:
    """The refusal of a file that cannot be read to its end."""
    return refuse(f"file {path}", expected=f"a whole {_NAMES[packing(path)]} file", got=str(error))
