"""The commands ``anyfill text``: fill and generate here, and those of ``anyfill.text.use``.

Thin: each reads its options, calls a function that does the work, and shows what came of it. Results go to stdout,
progress and remarks to stderr. Everything is imported when a command runs.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anyfill.interface.options import AsJson, Seed, Temperature
from anyfill.text.options import Force, HowToDraw, ModelFolder, Nucleus, Sampler, TopK, Typical
from anyfill.text.use import score, train

if TYPE_CHECKING:
    from anyfill.text.manner import Manner


def register(app: typer.Typer) -> None:
    """Add ``text`` and its commands to the application."""
    settings = {"help_option_names": ["-h", "--help"]}
    text = typer.Typer(no_args_is_help=True, rich_markup_mode=None, context_settings=settings)
    for command, short in (
        (fill, "Fill the blanks in a text."),
        (generate, "Write new text."),
        (score, "How likely a text is, and where it surprises."),
        (train, "Train a model of your own."),
    ):
        text.command(name=command.__name__, short_help=short)(command)
    app.add_typer(text, name="text", help="Text: fill blanks, write, score, train.")


def fill(
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text with its blanks; - reads it from stdin.")
    ] = None,
    file: Annotated[Path | None, typer.Option(help="Read the text from this file (UTF-8).", show_default=False)] = None,
    n: Annotated[int, typer.Option("-n", "--n", min=1, max=1000, help="How many fills to show.")] = 5,
    lengths: Annotated[
        str | None,
        typer.Option(
            help="Lengths that are tried for a blank that states none, as 1-12.",
            show_default="1-12 characters, 1-3 words or pieces",
        ),
    ] = None,
    free: Annotated[bool, typer.Option("--free", help="A run of underscores may be of any of these lengths.")] = False,
    draws: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100_000,
            help="Draws for each combination of lengths.",
            show_default="256 in all, at least 8; none where all fills, 1000 at most, can be compared",
        ),
    ] = None,
    sampler: HowToDraw = Sampler.exact,
    temperature: Temperature = 1.0,
    nucleus: Nucleus = None,
    top_k: TopK = None,
    typical: Typical = None,
    seed: Seed = None,
    as_json: AsJson = False,
    model: ModelFolder = None,
) -> None:
    r"""Fill the blanks in a text, in the likeliest ways that are found.

    ____ is a blank of so many characters, [] one of unstated length, [5] and [3-8] say a length or a range, and \_ and
    \[ stand for themselves. Several lengths are tried and compared by how likely the whole text is. The share is
    a fill's part of the probability of all that were found; where all fills there are could be compared, as for one or
    two letters, that is said, and it is the probability. What is given is never changed.
    """
    from anyfill.interface.progress import metered
    from anyfill.interface.threads import threads
    from anyfill.text.alphabet import has_tokens
    from anyfill.text.blanks import Lengths, parse, parse_lengths
    from anyfill.text.fill import Wanted
    from anyfill.text.fill import fill as answer
    from anyfill.text.manner import free_threads
    from anyfill.text.model import load
    from anyfill.text.show import document, json_text, print_filling
    from anyfill.text.source import read_text

    written = read_text(text, file)
    chosen = None if lengths is None else parse_lengths(lengths)
    wanted = Wanted(n, draws, _manner(temperature, nucleus, top_k, typical, sampler), _seed(seed))
    loaded = load(model)
    tokens = has_tokens(loaded.vocabulary)
    template = parse(written, unstated=chosen or Lengths(1, 3 if tokens else 12), free=free, tokens=tokens)
    with threads(free_threads()):
        *_, found = metered(answer(loaded, template, wanted), "filling")
    if found is None:
        return
    if as_json:
        typer.echo(json_text(document(found, loaded, wanted)), nl=False)
    else:
        print_filling(found, template, wanted)


def generate(
    n: Annotated[int, typer.Option("-n", "--n", min=1, max=100_000, help="How many texts.")] = 1,
    length: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10_000_000,
            help="Characters (tokens of the model) to write behind the prompt.",
            show_default="200, or a line",
        ),
    ] = None,
    prompt: Annotated[str, typer.Option(help="How the text begins.", show_default=False)] = "",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to this file.", show_default="stdout")
    ] = None,
    force: Force = False,
    sampler: HowToDraw = Sampler.exact,
    temperature: Temperature = 1.0,
    nucleus: Nucleus = None,
    top_k: TopK = None,
    typical: Typical = None,
    seed: Seed = None,
    as_json: AsJson = False,
    model: ModelFolder = None,
) -> None:
    """Write new text, from nothing or behind a prompt, one text a line, printed as it is made.

    Text longer than a row of the model goes on window by window, each told half a row of what stands before it. A model
    that was trained on lines writes lines.
    """
    from anyfill.interface.progress import metered
    from anyfill.interface.threads import threads
    from anyfill.text.generate import Wanted
    from anyfill.text.generate import generate as write
    from anyfill.text.manner import free_threads
    from anyfill.text.model import load
    from anyfill.text.show import json_text, print_texts, separated
    from anyfill.text.source import require_free, require_text, write_text

    begin = require_text(prompt, "--prompt")
    manner = _manner(temperature, nucleus, top_k, typical, sampler)
    wanted = Wanted(n, length, begin, manner, _seed(seed))
    if output is not None:
        require_free(output, force=force)
    loaded = load(model)
    typer.echo(f"seed {wanted.seed}", err=True)
    with threads(free_threads()):
        if output is None and not as_json:
            print_texts(loaded, wanted)
            return
        texts = [text for some in metered(write(loaded, wanted), "writing") for text in some]
    content = "".join(separated(text, is_first=number == 0) for number, text in enumerate(texts))
    if as_json:
        content = json_text({"seed": wanted.seed, "model": loaded.name, "texts": texts})
    if output is not None:
        require_free(output, force=force)
        write_text(output, content)
        typer.echo(f"wrote {output}", err=True)
    else:
        typer.echo(content, nl=False, color=True)


def _manner(
    temperature: float, nucleus: float | None, top_k: int | None, typical: float | None, sampler: Sampler
) -> "Manner":
    from anyfill.samplers import Draw
    from anyfill.text.manner import Manner

    return Manner(Draw(temperature=temperature, top_k=top_k, nucleus=nucleus, typical=typical), sampler.value)


def _seed(seed: int | None) -> int:
    import secrets

    return secrets.randbelow(100_000) if seed is None else seed
