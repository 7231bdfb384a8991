"""Where text comes from and where it goes: an argument, a file or stdin, all UTF-8; a file that is made as a whole."""

import os
import sys
from pathlib import Path

from anyfill.checks import refuse
from anyfill.text.text_blocks import text_blocks


def read_text(text: str | None, file: Path | None) -> str:
    """The text of an argument, of stdin (``-``) or of a file; one end of a line at the very end is left out.

    Raises:
        ValueError: there is none or more than one of them, or it is not UTF-8.
    """
    if (text is None) == (file is None):
        expected = "TEXT or --file, one of them"
        raise refuse("text", expected=expected, got="none" if text is None else "both")
    if file is not None:
        return _less_newline("".join(block.text for block in text_blocks(file)))
    if text == "-":
        content = sys.stdin.buffer.read()
        try:
            return _less_newline(content.decode().removeprefix("\ufeff"))
        except UnicodeDecodeError as error:
            got = f"byte 0x{content[error.start]:02x} at byte offset {error.start:,} ({error.reason})"
            raise refuse("stdin", expected="text in UTF-8", got=got) from None
    return require_text(text or "", "text")


def require_text(text: str, what: str) -> str:
    """The text of an argument; ValueError if the bytes it was made of are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        byte = ord(text[error.start]) & 0xFF
        got = f"byte 0x{byte:02x} at character {error.start + 1}"
        raise refuse(what, expected="text in UTF-8", got=got) from None
    return text


def require_free(path: Path, *, force: bool) -> None:
    """ValueError if something is in the way of a file; folders on the way to it may still have to be made."""
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir():
        shown = next((folder for folder in path.parents if folder.exists()), above)
        raise refuse(f"{path}", expected="a name in a folder", got=f"one in the file {shown}")
    if not os.access(above, os.W_OK):
        raise refuse(f"{path}", expected="a folder that can be written to", got=f"{above}, which cannot")
    if path.is_dir():
        raise refuse(str(path), expected="the name of a file", got="a folder")
    if path.exists() and not force:
        raise ValueError(f"{path} is there already: --force replaces it, another name leaves it alone")


def write_text(path: Path, text: str) -> None:
    """Make a file, as a whole or not at all."""
    from anyfill.disk import write_bytes

    try:
        write_bytes(text.encode(), path)
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> ValueError:
    """What to raise where a file cannot be written."""
    return refuse(f"{path}", expected="a file that can be written", got=error.strerror or str(error))


def _less_newline(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")
