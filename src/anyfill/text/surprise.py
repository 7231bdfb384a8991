"""What is kept of a scored text while its tokens stream by: the most surprising ones, a short text, TSV and HTML.

Files appear as a whole or not at all.
"""

import heapq
import html
import math
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from anyfill.disk import whole_file
from anyfill.interface.output import unwritable
from anyfill.text.scoring import Token

SHORT = 3000
"""Characters of the longest file of which all tokens are kept."""
_BEFORE, _BEHIND = 28, 16
LEVELS = (1.0, 3.0, 6.0, 10.0, math.inf)
"""Bits at which the colour changes."""
_COLOURS = ("", "#fff1b8", "#ffd07a", "#ff9a5c", "#e57373")
Sink = Callable[[Token], object]


def level(bits: float) -> int:
    """The colour of a surprise, from 0, expected, to 4."""
    return next(number for number, top in enumerate(LEVELS) if bits < top or top == math.inf)


@dataclass(frozen=True, slots=True)
class Surprise:
    """A surprising token and the text around it."""

    token: Token
    before: str
    behind: str


class Gathered:
    """The most surprising tokens of a text with their surroundings, and all of it if it is short.

    Args:
        count: how many of the most surprising ones.
        gap: what stands between tokens: a space between words, else nothing.
        keep: all tokens are kept of a text of at most so many characters.
    """

    def __init__(self, count: int, gap: str = "", keep: float = SHORT) -> None:
        self._count, self._gap, self._keep = count, gap, keep
        self._around: deque[Token] = deque(maxlen=_BEFORE + 1 + _BEHIND)
        self._seen = 0
        self._best: list[tuple[float, int, Surprise]] = []
        self._all: list[Token] | None = []
        self._characters = 0

    def take(self, token: Token) -> None:
        """The next token."""
        self._seen += 1
        self._around.append(token)
        if self._seen > _BEHIND:
            self._look(len(self._around) - 1 - _BEHIND, self._seen - _BEHIND)
        if self._all is not None:
            self._all.append(token)
            self._characters += len(token.text)
            if self._characters > self._keep:
                self._all = None

    def surprises(self) -> tuple[Surprise, ...]:
        """The most surprising first, of equal ones the earlier; to be called once, at the end."""
        for last in range(min(_BEHIND, self._seen), 0, -1):
            self._look(len(self._around) - last, self._seen - last + 1)
        return tuple(one for _, _, one in sorted(self._best, key=lambda kept: (-kept[0], -kept[1])))

    def short(self) -> tuple[Token, ...] | None:
        """All tokens, if they are few."""
        return None if self._all is None else tuple(self._all)

    def _look(self, place: int, number: int) -> None:
        """Keep the token at this place of those around if it is one of the most surprising so far."""
        token = self._around[place]
        if not self._count or (len(self._best) == self._count and token.bits <= self._best[0][0]):
            return
        texts = ["\n" * one.is_below + one.text for one in self._around]
        before = (self._gap.join([*texts[:place], ""]) + "\n" * token.is_below)[-_BEFORE:]
        behind = self._gap.join(["", *texts[place + 1 :]])[:_BEHIND]
        heapq.heappush(self._best, (token.bits, -number, Surprise(token, before, behind)))
        if len(self._best) > self._count:
            heapq.heappop(self._best)


@contextmanager
def tsv_writer(path: Path) -> Generator[Sink]:
    """A line for each token: offset, token and bits, between tabs; tabs and ends of lines in a token as ``\\t \\n``."""
    with _whole(path) as write:
        write("offset\ttoken\tbits\n")
        yield lambda token: write(f"{token.offset}\t{_escaped(token.text)}\t{token.bits:.6f}\n")


@contextmanager
def html_writer(path: Path, title: str, gap: str = "") -> Generator[Sink]:
    """A page that shows the text in the colours of its surprise; pointing at a token says its bits."""
    with _whole(path) as write:
        write(_HEAD.replace("TITLE", html.escape(title)).replace("STYLE", _style()))
        yield lambda token: write(marked(token, gap))
        write("</pre>\n")


def marked(token: Token, gap: str, *, styled: bool = False) -> str:
    """A token in the colour of its surprise, by a class of the page or, in a notebook, by a style of its own."""
    shown, number = html.escape(token.text), level(token.bits)
    shown = shown.replace("\n", "⏎\n") if number > 1 else shown
    look = f'style="font-style: normal; background: {_COLOURS[number]}"' if styled else f'class="b{number}"'
    return "\n" * token.is_below + f'<i {look} title="{token.bits:.2f} bits">{shown}</i>' + gap


def _style() -> str:
    return " ".join(f".b{number} {{ background: {colour} }}" for number, colour in enumerate(_COLOURS) if colour)


_HEAD = """<!doctype html>
<meta charset="utf-8">
<title>TITLE</title>
<style>
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; font: 16px/1.6 system-ui, sans-serif; color: #222;
       background: #fff }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: 15px/1.7 ui-monospace, monospace }
i { font-style: normal } p { color: #666 } STYLE
</style>
<h1>TITLE</h1>
<p>Bits of surprise: <i>below 1</i> <i class="b1">1 to 3</i> <i class="b2">3 to 6</i> <i class="b3">6 to 10</i>
<i class="b4">10 and more</i></p>
<pre>"""


def _escaped(text: str) -> str:
    text = text.replace("\\", "\\\\").replace("\t", "\\t")
    return text.replace("\n", "\\n").replace("\r", "\\r")


@contextmanager
def _whole(path: Path) -> Generator[Callable[[str], object]]:
    """What writes text into a file that is there as a whole or not at all; so are the folders on the way to it."""
    made = [folder for folder in path.absolute().parents if not folder.exists()]
    try:
        with whole_file(path) as file:
            yield lambda text: file.write(text.encode())
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        for folder in made:
            with suppress(OSError):  # it is in use: the file is there
                folder.rmdir()
