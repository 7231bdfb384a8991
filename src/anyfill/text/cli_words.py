"""The commands of ``anyfill text`` about words: count, restore and check; and what all commands of text share."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from anyfill.checks import refuse
from anyfill.interface.options import AsJson, Force, command

if TYPE_CHECKING:
    from anyfill.text.gaps import Corrected

ModelFolder = Annotated[
    Path | None,
    typer.Option(
        "--model", help="Folder of a model (anyfill text train); english (which ships, the default) or text8."
    ),
]
Counts = Annotated[
    Path | None, typer.Option("--counts", help="n-grams of words (anyfill text count).", show_default=False)
]
Weights = Annotated[
    str | None,
    typer.Option(help="Rank by p(model)^A p(counts)^B, as 0.5,1.", show_default=False, metavar="A,B"),
]


@command("Count n-grams: they propose words, and restore and check texts.")
def count(
    sources: Annotated[list[Path], typer.Argument(metavar="CORPUS...", help="Text files in UTF-8, plain or .gz.")],
    *,
    output: Annotated[Path, typer.Option("-o", "--output", help="File for the n-grams.")],
    order: Annotated[int, typer.Option(min=1, max=9, help="n.")] = 5,
    units: Annotated[Literal["words", "pieces"], typer.Option(help="What a token is.")] = "words",
    vocabulary_size: Annotated[
        int | None, typer.Option(min=2, help="The most different tokens.", show_default="30000 words, 4096 pieces")
    ] = None,
    lower: Annotated[bool, typer.Option("--lower", help="Read words in lower case.")] = False,
    least: Annotated[
        str | None,
        typer.Option(help="How often n-grams of 1, 2, 3 … tokens must occur, as 1,1,2.", show_default="once"),
    ] = None,
    bits: Annotated[int, typer.Option(help="Of each share in the file: 32, or rounded down to 8.")] = 32,
    force: Force = False,
) -> None:
    """Count the n-grams of a corpus, each line a text of its own, with interpolated Kneser-Ney smoothing.

    Seconds for a million words. restore and check work with them, and fill --counts takes words from them.
    """
    from anyfill.text.counting import count as counted

    options: dict[str, Any] = {"units": units, "vocabulary_size": vocabulary_size, "lower": lower, "force": force}
    if least is not None:
        if not all(part.strip().isdecimal() for part in least.split(",")):
            raise refuse("--least", expected="whole numbers, as 1,1,2", got=repr(least))
        options["least"] = [int(part) for part in least.split(",")]
    found = counted(sources, output, order=order, bits=bits, **options)
    grams = ", ".join(f"{len(level.keys):,}" for level in found.levels)
    typer.echo(f"{found.vocabulary.size:,} {units}; n-grams of 1 to {order}: {grams}")
    typer.echo(f"saved in {output}")


@command("Find missing letters.")
def restore(
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="The text; - reads it from stdin.")] = None,
    *,
    file: Annotated[Path | None, typer.Option(help="Read the text from this file (UTF-8).", show_default=False)] = None,
    counts: Counts = None,
    gaps: Annotated[str, typer.Option(help="Characters that stand for one missing letter.")] = "_□▯\ufffd",
    weights: Weights = None,
    model: ModelFolder = None,
    as_json: AsJson = False,
) -> None:
    """Find the missing letters of a text: l_st, r_st_r_, as OCR leaves them.

    Words that were counted and fit are ranked by what stands around them and by the model: those that come with the
    model, or --counts (alone, unless --model is named, too). Where none fits the model spells the letters. The text
    goes to stdout, what was changed to stderr, with the next best words.
    """
    from anyfill.text.gaps import restore as restored
    from anyfill.text.reading import read_text

    said = read_text(text, file, returns=True)
    _print_corrected(restored(said, gaps=gaps, **_asked_by(counts, model, weights)), as_json)


@command("Doubt words: the most surprising first, with likelier ones.")
def check(
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="The text; - reads it from stdin.")] = None,
    *,
    file: Annotated[Path | None, typer.Option(help="Read the text from this file (UTF-8).", show_default=False)] = None,
    counts: Counts = None,
    threshold: Annotated[float, typer.Option(help="Bits of gain from which on a word is doubted.")] = 0.0,
    most: Annotated[int, typer.Option(min=1, max=10_000, help="So many words at most.")] = 20,
    weights: Weights = None,
    model: ModelFolder = None,
    as_json: AsJson = False,
) -> None:
    """Words of a text that are likely not what was meant, the surest first, each with likelier ones.

    Words that look alike are compared by what stands around them, line by line, by the model and the counts that come
    with it, or by --counts (alone, unless --model is named, too). A model without counts compares words that look alike
    in the three places of each line, of a long one of each few sentences, that surprise it most. The text as it might
    have been meant goes to stdout, the words to stderr.
    """
    from anyfill.text.doubts import check as checked
    from anyfill.text.reading import read_text

    said = read_text(text, file, returns=True)
    _print_corrected(checked(said, threshold=threshold, most=most, **_asked_by(counts, model, weights)), as_json)


def _asked_by(counts: Path | None, model: Path | None, weights: str | None) -> dict[str, Any]:
    """What answers: the named counts, the named model, both; or the model that ships, with its counts."""
    from anyfill.text.counting import as_counts
    from anyfill.text.model import load

    counted = as_counts(counts)
    ranks = load(model) if counted is None or model is not None else None
    if weights is None:
        return {"counts": counted, "model": ranks}
    both = parsed_weights(weights)
    if counted is None and (ranks is None or ranks.counts is None):
        raise refuse("--weights", expected="--counts, which they are for", got="none")
    if ranks is None:
        raise refuse("--weights", expected="a --model as well, beside which counts are weighed", got="counts alone")
    return {"counts": counted, "model": ranks, "weights": both}


def _print_corrected(found: "Corrected", as_json: bool) -> None:
    if as_json:
        typer.echo(as_text(found.to_json()), nl=False)
        return
    typer.echo(found.text)
    for line in found.lines():
        typer.echo(line, err=True)


def parsed_weights(text: str | None) -> tuple[float, float] | None:
    """Two numbers, as 0.5,1; ValueError otherwise."""
    if text is None:
        return None
    try:
        own, counted = map(float, text.split(","))
    except ValueError:
        raise refuse("--weights", expected="two numbers, as 0.5,1", got=repr(text)) from None
    if not (own >= 0 and counted >= 0 and math.isfinite(own + counted) and own + counted > 0):
        raise refuse("--weights", expected="two numbers from 0 up, not both 0", got=repr(text))
    return own, counted


def as_text(content: object, *, ascii: bool = False) -> str:
    """The content as JSON."""
    from anyfill.interface.output import jsonable

    return json.dumps(jsonable(content), indent=2, allow_nan=False, ensure_ascii=ascii) + "\n"
