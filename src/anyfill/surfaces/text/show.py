"""What ``anyfill text fill`` and ``generate`` print."""

import json
import sys
from typing import Any

import typer

from anyfill.surfaces.text.blanks import Template
from anyfill.surfaces.text.fill import Filled, Filling, Wanted
from anyfill.surfaces.text.model import TextModel


def print_filling(found: Filling, template: Template, wanted: Wanted) -> None:
    """The fills, best first, with the answers marked where stdout is a terminal; remarks on stderr."""
    for remark in remarks(found, wanted):
        typer.echo(f"note: {remark}", err=True)
    typer.echo(f"seed {wanted.seed}")
    typer.echo("  share    log2 p  text")
    marked = is_terminal()
    for one in found.fills:
        text = _marked(one, template) if marked else one.text
        typer.echo(f"{one.share:7.2%} {one.log2_probability:9.2f}  {text}", color=True)


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
    if len(found.fills) < wanted.count:
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
        "combinations": {"all": tried.combinations, "tried": tried.tried, "draws_each": tried.draws},
        "remarks": remarks(found, wanted),
    }


def json_text(content: object) -> str:
    """One JSON document."""
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def separated(text: str, *, is_first: bool) -> str:
    """A text to be printed below others: on a line of its own, or behind an empty line if it has several."""
    return ("\n" if "\n" in text and not is_first else "") + text + "\n"


def _marked(filled: Filled, template: Template) -> str:
    answers = tuple(typer.style(answer, fg=typer.colors.GREEN, bold=True) for answer in filled.answers)
    return template.filled(answers)
