"""The commands ``anyfill text``: fill, generate, score, restore, check, train and count.

Thin: each reads its options, calls the verb of the same name, and shows what came of it. Results go to stdout, progress
and remarks to stderr. Everything is imported when a command runs.
"""

import sys
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from anyfill.checks import MAX_SEED, refuse
from anyfill.interface.options import (
    AsJson,
    Device,
    Force,
    OnDevice,
    Resume,
    Seed,
    Temperature,
    add_commands,
    chosen_seed,
    command,
    new_group,
)
from anyfill.text.cli_words import Counts, ModelFolder, Weights, as_text, check, count, parsed_weights, restore
from anyfill.text.settings import Settings

if TYPE_CHECKING:
    from anyfill.text.fills import Fill, Fills
    from anyfill.text.generate import Writer

_SAMPLER = "exact: one by one; speculative: the same law in fewer passes; the others need a model of any order."
_CONTEXT = (
    "Of a text longer than the model's rows: half = each token is given at least half a row of what comes before it; "
    "none = chunks on their own, as papers score."
)
_DRAWS = "256 in all, of long blanks fewer, at least 8; none where all fills, 1000 at most, can be compared"
_NUCLEUS = "Draw from the likeliest codes of this mass, above 0 and up to 1."
_LONG, _AROUND = 200, 24
"""Characters of a text that is not shown in full for every fill; those shown around a blank of it."""
Sampler = Literal["exact", "speculative", "confidence", "entropy-bounded"]
"""A way to draw; see ``anyfill.text.sampling``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Options: how to draw."""

    sampler: Annotated[Sampler, typer.Option(help=_SAMPLER)] = "exact"
    temperature: Temperature = 1.0
    nucleus: Annotated[float | None, typer.Option(help=_NUCLEUS)] = None
    top_k: Annotated[int | None, typer.Option("--top-k", min=1, help="Draw from the so many likeliest codes.")] = None
    typical: Annotated[float | None, typer.Option(help="Draw from the most typical codes of this mass.")] = None
    seed: Seed = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """Options: how to score, and what is written."""

    most: Annotated[int, typer.Option(min=0, max=10_000, help="List so many of the most surprising tokens.")] = 20
    context: Annotated[Literal["half", "none"], typer.Option(help=_CONTEXT)] = "half"
    order: Annotated[
        Literal["increasing", "decreasing", "shuffled"],
        typer.Option(help="The order that tokens are asked in; others than increasing need such a model."),
    ] = "increasing"
    orders: Annotated[
        int | None, typer.Option(min=1, max=1000, help="How many shuffled orders to draw.", show_default="4")
    ] = None
    seed: Annotated[
        int | None, typer.Option(min=0, max=MAX_SEED, help="Seed of shuffled orders.", show_default="0")
    ] = None
    tsv: Annotated[
        Path | None,
        typer.Option(help="Write offset, token and bits of every token there (one FILE).", show_default=False),
    ] = None
    html: Annotated[
        Path | None,
        typer.Option(help="Write the text coloured by surprise there, as a web page (one FILE).", show_default=False),
    ] = None
    force: Force = False
    device: OnDevice = Device.auto


@command("Fill the blanks in a text.")
def fill(
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text with its blanks; - reads it from stdin.")
    ] = None,
    *,
    file: Annotated[Path | None, typer.Option(help="Read the text from this file (UTF-8).", show_default=False)] = None,
    n: Annotated[int, typer.Option("-n", "--n", min=1, max=1000, help="How many fills to show.")] = 5,
    lengths: Annotated[
        str | None,
        typer.Option(
            help="Lengths that are tried for a blank that states none, as 1-12.",
            show_default="1-12 characters, 1-3 words or pieces; a word 1-14 characters or 1-6 pieces",
        ),
    ] = None,
    letters: Annotated[
        bool, typer.Option("--letters/--word", help="____ by itself is so many letters, or one word of any length.")
    ] = False,
    free: Annotated[bool, typer.Option("--free", help="A run of underscores may be of any of these lengths.")] = False,
    draws: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Draws for each combination of lengths.", show_default=_DRAWS)
    ] = None,
    counts: Counts = None,
    weights: Weights = None,
    drawing: Drawing,
    as_json: AsJson = False,
    model: ModelFolder = None,
) -> None:
    r"""Fill the blanks in a text, in the likeliest ways that are found.

    ____ by itself is one word; with --letters, and always beside letters or digits (l_st, 19__), it is so many letters.
    [] is a blank of unstated length, [5] and [3-8] say a length or a range, and \_ and \[ stand for themselves. Several
    lengths are tried and compared by how likely the whole text is. The share is a fill's part of the probability of all
    that were found; where all fills there are could be compared, as for one or two letters, that is said, and it is the
    probability. Of one to three pieces it is said which part of the probability of all fills was compared, about.
    What is given is never changed.
    """
    from anyfill.text.model import load
    from anyfill.text.reading import read_text

    blanks = read_text(text, file)
    options: dict[str, Any] = {"n": n, "lengths": lengths, "letters": letters, "free": free, "draws": draws}
    options |= {"counts": counts, "weights": parsed_weights(weights)}
    found = load(model).fill(blanks, **options, **asdict(drawing), progress=True)
    if as_json:
        typer.echo(as_text(found.to_json()), nl=False)
    else:
        _print_fills(found)


@command("Write new text.")
def generate(
    *,
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
    unknown: Annotated[bool, typer.Option("--unknown", help="Words without a code may be written, as <unk>.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to this file.", show_default="stdout")
    ] = None,
    force: Force = False,
    drawing: Drawing,
    as_json: AsJson = False,
    model: ModelFolder = None,
) -> None:
    """Write new text, from nothing or behind a prompt, one text a line, printed as it is made.

    Text longer than a row of the model goes on window by window, each given half a row of what stands before it. A
    model that was trained on lines writes lines.
    """
    from anyfill.interface.output import require_new
    from anyfill.interface.threads import free_threads, threads
    from anyfill.text.model import load
    from anyfill.text.report import whole_text

    seed = chosen_seed(drawing.seed)
    options: dict[str, Any] = {"length": length, "prompt": prompt, "unknown": unknown, **asdict(drawing), "seed": seed}
    if output is not None:
        require_new(output, force=force)
    loaded = load(model)
    writer = loaded.writer(**options)
    typer.echo(f"seed {seed}", err=True)
    if output is None and not as_json:
        with threads(free_threads()):
            _print_texts(writer, n)
        return
    texts = loaded.generate(n=n, **options, progress=True)
    content = "".join(_separated(text, is_first=number == 0) for number, text in enumerate(texts))
    if as_json:
        content = as_text({"seed": seed, "model": loaded.name, "texts": texts})
    if output is not None:
        require_new(output, force=force)
        with whole_text(output) as write:
            write(content)
        typer.echo(f"wrote {output}", err=True)
    else:
        typer.echo(content, nl=False, color=True)


@command("How likely a text is, and where it surprises.")
def score(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Text files in UTF-8, plain or .gz; - reads stdin.")
    ],
    *,
    scoring: Scoring,
    as_json: AsJson = False,
    model: ModelFolder = None,
) -> None:
    """How likely a text is under a model, exactly, in bits per character, and where it surprises.

    A token's surprise is -log2 of its probability given what comes before it: 1 bit is a coin, 10 bits one in a
    thousand. On a terminal, short texts are shown in the colours of their surprise.
    """
    from anyfill.text.model import load
    from anyfill.text.reading import opened
    from anyfill.text.report import Score, print_scored, print_total

    written = {option: path for option, path in (("--tsv", scoring.tsv), ("--html", scoring.html)) if path is not None}
    if len(files) > 1 and written:
        raise refuse(next(iter(written)), expected="one FILE", got=len(files))
    loaded, found = load(model), list[Score]()
    for file in files:
        try:
            with opened(file) as source:
                found.append(loaded.score(source, **asdict(scoring), progress=True))
        except ValueError as error:
            if len(files) == 1:
                raise
            typer.echo(f"anyfill: {error}", err=True)  # the others are scored all the same
            continue
        if not as_json:
            print_scored(found[-1])
        for path in written.values():
            typer.echo(f"wrote {path}", err=as_json)
    if as_json:
        typer.echo(as_text([one.to_json() for one in found], ascii=True), nl=False)
    elif len(found) > 1:
        print_total(found)
    if len(found) < len(files):
        raise typer.Exit(2)


@command("Train a model of your own.")
def train(
    sources: Annotated[list[Path], typer.Argument(metavar="CORPUS...", help="Text files in UTF-8, plain or .gz.")],
    *,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model.")],
    settings: Settings,
    vocabulary: Annotated[
        Path | None, typer.Option(help="Take the vocabulary of the model in this folder.", show_default=False)
    ] = None,
    device: OnDevice = Device.auto,
    shard: Annotated[
        bool, typer.Option("--shard", help="Under torchrun: spread the weights over the processes (FSDP).")
    ] = False,
    resume: Resume = False,
) -> None:
    """Train a model of text, for --model of the other commands.

    Two cores learn something usable from a small file in a few minutes; what is not said is chosen by the corpus and
    the device, and said. Ctrl-C leaves a checkpoint: the folder can be used as it is, and --resume goes on. Several
    GPUs: torchrun --nproc-per-node=2 -m anyfill text train ...
    """
    from anyfill.text.training import train_in_words

    options: dict[str, Any] = {"vocabulary": vocabulary, "device": device, "shard": shard, "resume": resume}
    try:
        about = train_in_words(sources, output, settings, **options, say=lambda line: typer.echo(line, err=True))
    except KeyboardInterrupt:
        if (output / "config.json").exists():
            typer.echo(f"what was learnt so far is in {output}; the same command with --resume goes on", err=True)
        raise
    for line in about:
        typer.echo(line)
    if about:
        typer.echo(f"model saved in {output}: try anyfill text generate --model {output}")


def _print_fills(found: "Fills") -> None:
    """The fills, best first, with the answers marked where stdout is a terminal; remarks on stderr.

    Of a text that is long or has several lines what stands around the blanks is shown, and the best fill once in full.
    """
    from anyfill.text.report import visible

    def mark(answer: str) -> str:
        return typer.style(answer, fg=typer.colors.GREEN, bold=True)

    def in_full(fill: "Fill") -> str:
        return template.filled(tuple(map(mark, fill.answers))) if marked else fill.text

    def excerpt(fill: "Fill") -> str:
        """The answers and some characters around each, on one line."""
        first, *between, last = template.stretches
        shown = [first if len(first) <= _AROUND else f"… {first[-_AROUND:]}"]
        shown += [one if len(one) <= 2 * _AROUND else f"{one[:_AROUND]} … {one[-_AROUND:]}" for one in between]
        shown.append(last if len(last) <= _AROUND else f"{last[:_AROUND]} …")
        answers = tuple(mark(visible(one)) if marked else f"[{visible(one)}]" for one in fill.answers)
        return replace(template, stretches=tuple(map(visible, shown))).filled(answers)

    marked, template = is_terminal(), found.template
    is_long = any(len(one.text) > _LONG or "\n" in one.text for one in found.fills)
    for remark in found.remarks:
        typer.echo(f"note: {remark}", err=True)
    for line in found.lines(excerpt if is_long else in_full):
        typer.echo(line, color=True)
    if is_long:
        typer.echo(f"\nthe first one in full:\n{in_full(found.fills[0])}", color=True)


def is_terminal() -> bool:
    """Whether somebody looks at stdout."""
    return sys.stdout.isatty()


def _separated(text: str, *, is_first: bool) -> str:
    """A text to be printed below others: on a line of its own, or behind an empty line if it has several."""
    return ("\n" if "\n" in text and not is_first else "") + text + "\n"


def _print_texts(writer: "Writer", n: int) -> None:
    """Write new texts to stdout as they are made: one alone piece by piece, several some at a time.

    No bar is drawn, which would stand in the midst of them; how far it is is said in lines on stderr, unless one text
    grows before somebody's eyes. What is interrupted ends with a whole line.
    """
    from rich.console import Console

    from anyfill.interface.progress import metered

    in_lines, is_whole = Console(stderr=True, force_terminal=False), True
    if n > 1:
        made = (text for texts in metered(writer.texts(n), "writing", console=in_lines) for text in texts)
        for number, text in enumerate(made):
            typer.echo(_separated(text, is_first=number == 0), nl=False, color=True)
        return
    pieces = chain(writer.pieces(), [("\n", 1.0)])
    try:
        for piece in (one for one, _ in pieces) if is_terminal() else metered(pieces, "writing", console=in_lines):
            typer.echo(piece, nl=False, color=True)  # which flushes
            is_whole = piece.endswith("\n") if piece else is_whole
    except KeyboardInterrupt:
        typer.echo("", nl=not is_whole)
        raise


def register(app: typer.Typer) -> None:
    """Add ``text`` and its commands to the application."""
    own = add_commands(new_group(), fill, generate, score, restore, check, train, count)
    app.add_typer(own, name="text", help="Text: fill blanks, restore, check, write, score, train.")
