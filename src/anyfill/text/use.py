"""The commands ``anyfill text score | train``; see ``anyfill.text.cli``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from anyfill.interface.options import AsJson
from anyfill.text.options import Force, ModelFolder


class Context(StrEnum):
    """How a text longer than a row is cut; see ``anyfill.text.scoring``."""

    half = "half"
    none = "none"


class InOrder(StrEnum):
    """The order in which the tokens of a window are asked."""

    increasing = "increasing"
    decreasing = "decreasing"
    shuffled = "shuffled"


class Device(StrEnum):
    """Where to compute."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


OnDevice = Annotated[Device, typer.Option(help="Where to compute; auto takes CUDA if it is there.")]


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
    from anyfill.text.model import load
    from anyfill.text.report import Outputs, Scored, document, print_scored, print_total
    from anyfill.text.scoring import Protocol, Scorer
    from anyfill.text.stream import opened

    for option, value in (("--orders", orders), ("--seed", seed)):
        if value is not None and order is not InOrder.shuffled:
            raise refuse(option, expected="--order shuffled, which alone is random", got=f"--order {order.value}")
    outputs = Outputs(tsv, html, most=most)
    outputs.require_free(files=len(files), force=force)
    protocol = Protocol(context.value, order.value, 4 if orders is None else orders, seed or 0)
    scorer = Scorer(load(model), protocol, device=device.value)
    found: list[Scored] = []
    for file in files:
        try:
            with opened(file) as source:
                found.append(outputs.score(scorer, source))
        except ValueError as error:
            if len(files) == 1:
                raise
            typer.echo(f"anyfill: {error}", err=True)  # the others are scored all the same
            continue
        if not as_json:
            print_scored(found[-1])
        for path in outputs.paths:
            typer.echo(f"wrote {path}", err=as_json)
    if as_json:
        typer.echo(document(found))
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
    the device, and told. Ctrl-C leaves a checkpoint: the folder can be used as it is, and --resume goes on. Several
    GPUs: torchrun --nproc-per-node=2 -m anyfill text train ...
    """
    from anyfill.text.settings import Settings
    from anyfill.text.training import train as learn

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
        about = learn(
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
