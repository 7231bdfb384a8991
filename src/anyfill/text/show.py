"""What ``anyfill text fill`` and ``generate`` print."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import typer
from rich.console import Console

from anyfill.interface.progress import metered
from anyfill.text import generate
from anyfill.text.blanks import Template
from anyfill.text.fill import Filled, Filling, Wanted
from anyfill.text.model import TextModel
from anyfill.text.report import visible

_LONG, _AROUND = 200, 24
"""Characters of a text that is not shown in full for every fill; those shown around a blank of it."""


def print_filling(found: Filling, template: Template, wanted: Wanted) -> None:
    """The fills, best first, with the answers marked where stdout is a terminal; remarks on stderr.

    Of a text that is long or has several lines what stands around the blanks is shown, and the best fill once in full.
    """
    for remark in remarks(found, wanted):
        typer.echo(f"note: {remark}", err=True)
    typer.echo(heading(found, wanted))
    typer.echo("  share    log2 p  text")
    marked = is_terminal()
    is_long = any(len(one.text) > _LONG or "\n" in one.text for one in found.fills)
    for one in found.fills:
        text = _excerpt(one, template, marked) if is_long else _marked(one, template) if marked else one.text
        typer.echo(f"{one.share:7.2%} {one.log2_probability:9.2f}  {text}", color=True)
    if is_long:
        typer.echo("\nthe first one in full:")
        typer.echo(_marked(found.fills[0], template) if marked else found.fills[0].text, color=True)


def heading(found: Filling, wanted: Wanted) -> str:
    """What the fills are the best of: all there are, or what this seed found."""
    if not found.complete:
        return f"seed {wanted.seed}"
    return f"all {found.candidates:,} fills compared" if found.candidates > 1 else "the only fill there is"


def is_terminal() -> bool:
    """Whether somebody looks at stdout."""
    return sys.stdout.isatty()


def remarks(found: Filling, wanted: Wanted) -> list[str]:
    """What a user should know about how the fills were found."""
    said: list[str] = []
    tried = found.tried
    if tried.tried < tried.combinations:
        said.append(
            f"{tried.tried} of {tried.combinations:,} combinations of lengths were tried, drawn at random "
            "(stated lengths or a smaller --lengths leave fewer)"
        )
    if not found.whole:
        steps = f"its blanks were filled in {found.groups} steps, " if found.groups > 1 else ""
        said.append(
            f"the text is longer than the model sees at a time: {steps}ranked by what stands around them "
            "(log2 p is that of the whole text, read from left to right)"
        )
    if len(found.fills) < wanted.count and not found.complete:
        fills = "1 fill was" if len(found.fills) == 1 else f"{len(found.fills)} different fills were"
        advice = "a --temperature above 0" if wanted.manner.draw.temperature == 0 else "more --draws"
        said.append(f"only {fills} found ({advice} may find more)")
    return said


def document(found: Filling, loaded: TextModel, wanted: Wanted) -> dict[str, Any]:
    """All of it for ``--json``."""
    tried = found.tried
    return {
        "model": loaded.name,
        "seed": wanted.seed,
        "fills": [
            {
                "text": one.text,
                "answers": list(one.answers),
                "log2_probability": one.log2_probability,
                "share": one.share,
            }
            for one in found.fills
        ],
        "candidates": found.candidates,
        "groups": found.groups,
        "whole": found.whole,
        "all_compared": found.complete,
        "combinations": {
            "all": tried.combinations,
            "tried": tried.tried,
            "all_compared": tried.listed,
            "draws_each": tried.draws,
        },
        "remarks": remarks(found, wanted),
    }


def json_text(content: object) -> str:
    """One JSON document."""
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def separated(text: str, *, is_first: bool) -> str:
    """A text to be printed below others: on a line of its own, or behind an empty line if it has several."""
    return ("\n" if "\n" in text and not is_first else "") + text + "\n"


def print_texts(loaded: TextModel, wanted: generate.Wanted) -> None:
    """Write new texts to stdout as they are made: one alone piece by piece, several some at a time.

    No bar is drawn, which would stand in the midst of them; how far it is is said in lines on stderr, unless one text
    grows before somebody's eyes. What is interrupted ends with a whole line.
    """
    if wanted.count > 1:
        shown = 0
        for texts in metered(generate.generate(loaded, wanted), "writing", console=_in_lines()):
            for text in texts:
                typer.echo(separated(text, is_first=shown == 0), nl=False, color=True)
                shown += 1
        return
    pieces, is_whole = _with_newline(generate.stream(loaded, wanted)), True
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


def _marked(filled: Filled, template: Template) -> str:
    return template.filled(tuple(map(_mark, filled.answers)))


def _mark(answer: str) -> str:
    return typer.style(answer, fg=typer.colors.GREEN, bold=True)


def _excerpt(filled: Filled, template: Template, marked: bool) -> str:
    """The answers and some characters around each, on one line."""
    first, *between, last = template.stretches
    shown = [first if len(first) <= _AROUND else f"… {first[-_AROUND:]}"]
    shown += [one if len(one) <= 2 * _AROUND else f"{one[:_AROUND]} … {one[-_AROUND:]}" for one in between]
    shown.append(last if len(last) <= _AROUND else f"{last[:_AROUND]} …")
    answers = [_mark(visible(one)) if marked else f"[{visible(one)}]" for one in filled.answers]
    return Template(tuple(map(visible, shown)), template.blanks).filled(tuple(answers))
