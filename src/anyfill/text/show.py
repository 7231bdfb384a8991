"""What ``anyfill text fill``, ``generate`` and ``score`` print."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from anyfill.disk import write_bytes
from anyfill.interface.output import jsonable, unwritable
from anyfill.interface.progress import metered
from anyfill.text.blanks import Template
from anyfill.text.fill import Fill, Fills
from anyfill.text.generate import Writer
from anyfill.text.report import Score, counted
from anyfill.text.scoring import Token
from anyfill.text.surprise import level

_LONG, _AROUND = 200, 24
"""Characters of a text that is not shown in full for every fill; those shown around a blank of it."""
_STYLES = ("", "black on #fff1b8", "black on #ffd07a", "black on #ff9a5c", "white on #c62828")
_NAMES = ("below 1", "1 to 3", "3 to 6", "6 to 10", "10 bits and more")
_VISIBLE = {"\n": "⏎", "\t": "⇥", "\r": "␍"}


def print_fills(found: Fills) -> None:
    """The fills, best first, with the answers marked where stdout is a terminal; remarks on stderr.

    Of a text that is long or has several lines what stands around the blanks is shown, and the best fill once in full.
    """
    for remark in found.remarks:
        typer.echo(f"note: {remark}", err=True)
    typer.echo(found.heading)
    typer.echo("  share    log2 p  text")
    marked, template = is_terminal(), found.template
    is_long = any(len(one.text) > _LONG or "\n" in one.text for one in found.fills)
    for one in found.fills:
        text = _excerpt(one, template, marked) if is_long else _marked(one, template) if marked else one.text
        typer.echo(f"{one.share:7.2%} {one.log2_probability:9.2f}  {text}", color=True)
    if is_long:
        typer.echo("\nthe first one in full:")
        typer.echo(_marked(found.fills[0], template) if marked else found.fills[0].text, color=True)


def is_terminal() -> bool:
    """Whether somebody looks at stdout."""
    return sys.stdout.isatty()


def json_text(content: object) -> str:
    """One JSON document."""
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def write_text(path: Path, text: str) -> None:
    """Make a file, as a whole or not at all."""
    try:
        write_bytes(text.encode(), path)
    except OSError as error:
        raise unwritable(path, error) from None


def separated(text: str, *, is_first: bool) -> str:
    """A text to be printed below others: on a line of its own, or behind an empty line if it has several."""
    return ("\n" if "\n" in text and not is_first else "") + text + "\n"


def print_texts(writer: Writer, n: int) -> None:
    """Write new texts to stdout as they are made: one alone piece by piece, several some at a time.

    No bar is drawn, which would stand in the midst of them; how far it is is said in lines on stderr, unless one text
    grows before somebody's eyes. What is interrupted ends with a whole line.
    """
    if n > 1:
        shown = 0
        for texts in metered(writer.texts(n), "writing", console=_in_lines()):
            for text in texts:
                typer.echo(separated(text, is_first=shown == 0), nl=False, color=True)
                shown += 1
        return
    pieces, is_whole = _with_newline(writer.pieces()), True
    try:
        for piece in (one for one, _ in pieces) if is_terminal() else metered(pieces, "writing", console=_in_lines()):
            typer.echo(piece, nl=False, color=True)  # which flushes
            is_whole = piece.endswith("\n") if piece else is_whole
    except KeyboardInterrupt:
        typer.echo("", nl=not is_whole)
        raise


def _with_newline(pieces: Iterator[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    yield from pieces
    yield "\n", 1.0


def _in_lines() -> Console:
    return Console(stderr=True, force_terminal=False)


def _marked(filled: Fill, template: Template) -> str:
    return template.filled(tuple(map(_mark, filled.answers)))


def _mark(answer: str) -> str:
    return typer.style(answer, fg=typer.colors.GREEN, bold=True)


def _excerpt(filled: Fill, template: Template, marked: bool) -> str:
    """The answers and some characters around each, on one line."""
    first, *between, last = template.stretches
    shown = [first if len(first) <= _AROUND else f"… {first[-_AROUND:]}"]
    shown += [one if len(one) <= 2 * _AROUND else f"{one[:_AROUND]} … {one[-_AROUND:]}" for one in between]
    shown.append(last if len(last) <= _AROUND else f"{last[:_AROUND]} …")
    answers = [_mark(visible(one)) if marked else f"[{visible(one)}]" for one in filled.answers]
    return Template(tuple(map(visible, shown)), template.blanks).filled(tuple(answers))


def print_scored(scored: Score, console: Console | None = None) -> None:
    """Figures, a short text in colours on a terminal, and the most surprising tokens."""
    console = Console(highlight=False, markup=False, soft_wrap=True) if console is None else console
    name, *figures = scored.lines()
    console.print(Text(name, style="bold"), *figures, sep="\n")
    for remark in scored.remarks:
        console.print(f"  note: {remark}")
    if console.is_terminal and scored.tokens is not None:
        console.print()
        console.print(coloured(scored.tokens, scored.gap))
        legend = Text("\n").append("bits of surprise: ", "dim")
        for title, style in zip(_NAMES, _STYLES):
            legend.append(title, style).append("  ")
        console.print(legend)
    if scored.surprises:
        what = scored.scorer.text.vocabulary.units
        console.print(f"\n  most surprising {'characters' if what == 'bytes' else what}:")
        width = max(len(f"{one.token.offset:,}") for one in scored.surprises)
        console.print(f"    bits  {'offset':>{max(width, 6)}}  in its text")
        for one in scored.surprises:
            line = Text(f"  {one.token.bits:>6.1f}  {one.token.offset:>{max(width, 6)},}  ")
            line.append(f"{visible(one.before):>28}", "dim")
            line.append(f"[{visible(one.token.text)}]", "bold").append(visible(one.behind), "dim")
            console.print(line)


def print_total(scored: Sequence[Score]) -> None:
    """All texts as one."""
    characters = sum(one.totals.characters for one in scored)
    bits = sum(one.bits for one in scored)
    Console(highlight=False, markup=False, soft_wrap=True).print(
        f"all {len(scored)} files: {bits / characters:.3f} bits per character, {bits:,.1f} bits for "
        f"{counted(characters, 'character')}"
    )


def scores_json(scored: Sequence[Score]) -> str:
    """All texts as one JSON document."""
    return json.dumps(jsonable([one.to_json() for one in scored]), indent=2, allow_nan=False)


def coloured(tokens: Sequence[Token], gap: str = "") -> Text:
    """The text in the colours of its surprise."""
    shown = Text()
    for token in tokens:
        number = level(token.bits)
        shown.append("\n" * token.is_below)
        for piece in token.text.splitlines(keepends=True):
            line = piece.rstrip("\r\n")
            ends = line != piece
            shown.append(visible(line) + ("⏎" if ends and number > 1 else ""), _STYLES[number])
            shown.append("\n" if ends else "")
        shown.append(gap)
    return shown


def visible(text: str) -> str:
    """The text on one line, nothing in it that a terminal would obey."""
    return "".join(_VISIBLE.get(one, one) if one.isprintable() or one in _VISIBLE else "\ufffd" for one in text)
