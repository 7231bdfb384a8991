"""The commands ``anyfill text``: fill, generate, score and train.

Thin: each reads its options, calls the verb of the same name, and shows what came of it. Results go to stdout, progress
and remarks to stderr. Everything is imported when a command runs.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from anyfill.interface.options import AsJson, Device, Force, OnDevice, Seed, Temperature, chosen_seed


class Sampler(StrEnum):
    """A way to draw; see ``anyfill.text.sampling``."""

    exact = "exact"
    speculative = "speculative"
    confidence = "confidence"
    entropy_bounded = "entropy-bounded"


class Context(StrEnum):
    """How a text longer than a row is cut; see ``anyfill.text.windows``."""

    half = "half"
    none = "none"


class InOrder(StrEnum):
    """The order in which the tokens of a window are asked."""

    increasing = "increasing"
    decreasing = "decreasing"
    shuffled = "shuffled"


Nucleus = Annotated[float | None, typer.Option(help="Draw from the likeliest codes of this mass, above 0 and up to 1.")]
TopK = Annotated[int | None, typer.Option("--top-k", min=1, help="Draw from the so many likeliest codes.")]
Typical = Annotated[float | None, typer.Option(help="Draw from the most typical codes of this mass.")]
HowToDraw = Annotated[
    Sampler,
    typer.Option(
        "--sampler",
        help="exact: one by one; speculative: the same law in fewer passes; the others need a model of any order.",
    ),
]
ModelFolder = Annotated[
    Path | None,
    typer.Option("--model", help="Folder of a model (anyfill text train); by default the one that ships."),
]


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
    from anyfill.text.model import load
    from anyfill.text.reading import read_text
    from anyfill.text.show import json_text, print_fills

    found = load(model).fill(
        read_text(text, file),
        n=n,
        seed=seed,
        lengths=lengths,
        free=free,
        draws=draws,
        sampler=sampler.value,
        temperature=temperature,
        nucleus=nucleus,
        top_k=top_k,
        typical=typical,
        progress=True,
    )
    if as_json:
        typer.echo(json_text(found.to_json()), nl=False)
    else:
        print_fills(found)


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

    Text longer than a row of the model goes on window by window, each given half a row of what stands before it. A
    model that was trained on lines writes lines.
    """
    from anyfill.interface.meter import metered
    from anyfill.interface.output import require_new
    from anyfill.interface.threads import free_threads, threads
    from anyfill.text.model import load
    from anyfill.text.sampling import SamplingOptions
    from anyfill.text.show import json_text, print_texts, separated, write_text

    sampling = SamplingOptions(sampler.value, temperature, nucleus, top_k, typical, chosen_seed(seed))
    if output is not None:
        require_new(output, force=force)
    loaded = load(model)
    writer = loaded.writer(length=length, prompt=prompt, sampling=sampling)
    typer.echo(f"seed {sampling.seed}", err=True)
    with threads(free_threads()):
        if output is None and not as_json:
            print_texts(writer, n)
            return
        texts = [text for some in metered(writer.texts(n), "writing") for text in some]
    content = "".join(separated(text, is_first=number == 0) for number, text in enumerate(texts))
    if as_json:
        content = json_text({"seed": sampling.seed, "model": loaded.name, "texts": texts})
    if output is not None:
        require_new(output, force=force)
        write_text(output, content)
        typer.echo(f"wrote {output}", err=True)
    else:
        typer.echo(content, nl=False, color=True)


def score(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Text files in UTF-8, plain or .gz; - reads stdin.")
    ],
    most: Annotated[int, typer.Option(min=0, max=10_000, help="List so many of the most surprising tokens.")] = 20,
    context: Annotated[
        Context,
        typer.Option(
            help="Of a text longer than the model's rows: half = each token is given at least half a row of what comes "
            "before it; none = chunks on their own, as papers score."
        ),
    ] = Context.half,
    order: Annotated[
        InOrder, typer.Option(help="The order that tokens are asked in; others than increasing need such a model.")
    ] = InOrder.increasing,
    orders: Annotated[
        int | None, typer.Option(min=1, max=1000, help="How many shuffled orders to draw.", show_default="4")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of shuffled orders.", show_default="0")] = None,
    tsv: Annotated[
        Path | None,
        typer.Option(help="Write offset, token and bits of every token there (one FILE).", show_default=False),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write the text coloured by surprise there, as a web page (one FILE).", show_default=False),
    ] = None,
    as_json: AsJson = False,
    force: Force = False,
    model: ModelFolder = None,
    device: OnDevice = Device.auto,
) -> None:
    """How likely a text is under a model, exactly, in bits per character, and where it surprises.

    A token's surprise is -log2 of its probability given what comes before it: 1 bit is a coin, 10 bits one in a
    thousand. On a terminal, short texts are shown in the colours of their surprise.
    """
    from anyfill.checks import refuse
    from anyfill.interface.output import require_new
    from anyfill.text.model import load
    from anyfill.text.reading import opened
    from anyfill.text.report import Score
    from anyfill.text.show import print_scored, print_total, scores_json

    for option, value in (("--orders", orders), ("--seed", seed)):
        if value is not None and order is not InOrder.shuffled:
            raise refuse(option, expected="--order shuffled, which alone is random", got=f"--order {order.value}")
    outputs = {option: path for option, path in (("--tsv", tsv), ("--html", html)) if path is not None}
    for option, path in outputs.items():
        if len(files) > 1:
            raise refuse(option, expected="one FILE", got=len(files))
        require_new(path, force=force)
    loaded, found = load(model), list[Score]()
    for file in files:
        try:
            with opened(file) as source:
                scored = loaded.score(
                    source,
                    context=context.value,
                    order=order.value,
                    orders=4 if orders is None else orders,
                    seed=seed or 0,
                    most=most,
                    tsv=tsv,
                    html=html,
                    force=force,
                    device=device.value,
                    progress=True,
                )
        except ValueError as error:
            if len(files) == 1:
                raise
            typer.echo(f"anyfill: {error}", err=True)  # the others are scored all the same
            continue
        found.append(scored)
        if not as_json:
            print_scored(scored)
        for path in outputs.values():
            typer.echo(f"wrote {path}", err=as_json)
    if as_json:
        typer.echo(scores_json(found))
    elif len(found) > 1:
        print_total(found)
    if len(found) < len(files):
        raise typer.Exit(2)


def train(
    sources: Annotated[list[Path], typer.Argument(metavar="CORPUS...", help="Text files in UTF-8, plain or .gz.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model.")],
    recipe: Annotated[
        str | None,
        typer.Option(
            help="one_pass_spans fills, continues and scores in one pass; left_to_right only continues and scores; "
            "others: one_pass, one_pass_filler, ardm, mac_next, mac_rest, mac_inpainting, sunmask, sundae.",
            show_default="one_pass_spans",
        ),
    ] = None,
    size: Annotated[str | None, typer.Option(help="1M, 6M, 25M or 85M weights.", show_default="by the device")] = None,
    units: Annotated[
        str | None,
        typer.Option(help="What a token is: characters, bytes, words or pieces.", show_default="characters"),
    ] = None,
    vocabulary_size: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="The most different tokens; rarer ones are read as unknown.",
            show_default="8192, of pieces 4096",
        ),
    ] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="Take the vocabulary of the model in this folder.", show_default=False)
    ] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Each line is a text of its own, as sentences are.")] = False,
    length: Annotated[
        int | None,
        typer.Option(min=2, help="Tokens that the model sees at a time.", show_default="by corpus and device"),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Optimizer steps.", show_default="by corpus and device")
    ] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Rows in each step.", show_default="16, CUDA 128")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Peak learning rate (Muon).", show_default="by the size")
    ] = None,
    dropout: Annotated[
        float | None, typer.Option(min=0.0, max=0.95, help="Rate of dropout.", show_default="by the corpus")
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(help="Stop when so much time is over; such a run cannot be repeated exactly.", show_default=False),
    ] = None,
    valid_share: Annotated[
        float | None,
        typer.Option(help="Share of the corpus, at its end, to validate on; 0 = none.", show_default="0.05"),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything random.", show_default="0")] = None,
    device: OnDevice = Device.auto,
    shard: Annotated[
        bool, typer.Option("--shard", help="Under torchrun: spread the weights over the processes (FSDP).")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in the folder; its settings are taken over.")
    ] = False,
) -> None:
    """Train a model of text, for --model of the other commands.

    Two cores learn something usable from a small file in a few minutes; what is not said is chosen by the corpus and
    the device, and said. Ctrl-C leaves a checkpoint: the folder can be used as it is, and --resume goes on. Several
    GPUs: torchrun --nproc-per-node=2 -m anyfill text train ...
    """
    from anyfill.text.settings import Settings
    from anyfill.text.training import train_in_words

    wanted = Settings(
        recipe=recipe,
        size=size,
        units=units,
        vocabulary_size=vocabulary_size,
        lines=lines or None,
        length=length,
        steps=steps,
        batch=batch,
        learning_rate=learning_rate,
        dropout=dropout,
        seconds=seconds,
        seed=seed,
        valid_share=valid_share,
    )
    try:
        about = train_in_words(
            sources,
            output,
            wanted,
            vocabulary=vocabulary,
            device=device.value,
            shard=shard,
            resume=resume,
            say=lambda line: typer.echo(line, err=True),
        )
    except KeyboardInterrupt:
        if (output / "config.json").exists():
            typer.echo(f"what was learnt so far is in {output}; the same command with --resume goes on", err=True)
        raise
    for line in about:
        typer.echo(line)
    if about:
        typer.echo(f"model saved in {output}: try anyfill text generate --model {output}")
