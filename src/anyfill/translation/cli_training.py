"""The commands of ``anyfill translate`` that make models and judge them: train, evaluate, distill, corpus."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from anyfill.checks import MAX_SEED, counted, refuse
from anyfill.interface.options import AsJson, Device, Force, OnDevice, Resume, command
from anyfill.translation.cli_options import Columns, Decoding, Int8, ModelFolder, as_text, put, say_unused_seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Options: what to train, and how; None = unsaid."""

    recipe: Annotated[
        Literal["padir", "cmlm", "disco", "sundae", "autoregressive", "deep_shallow", "one_pass"] | None,
        typer.Option(
            help="How it is trained and decodes; autoregressive ones make good teachers.", show_default="padir"
        ),
    ] = None
    size: Annotated[
        Literal["toy", "tiny", "small", "compact", "medium", "base"] | None,
        typer.Option(help="tiny suits 30,000 pairs, base millions.", show_default="tiny"),
    ] = None
    vocabulary_size: Annotated[
        int | None, typer.Option(min=300, max=64_000, help="Pieces for both languages, at most.", show_default="8000")
    ] = None
    pieces: Annotated[
        Literal["unigram", "bpe"] | None, typer.Option(help="How words are cut into pieces.", show_default="unigram")
    ] = None
    length: Annotated[
        int | None, typer.Option(min=4, max=254, help="Pieces of the longest sentence.", show_default="64")
    ] = None
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps of training.", show_default="20,000; 2,000 without a GPU")
    ] = None
    seconds: Annotated[float | None, typer.Option(min=1, help="Stop after so long.", show_default=False)] = None
    batch: Annotated[int | None, typer.Option(min=1, help="Pairs of a step.", show_default="512; 64 without a GPU")] = (
        None
    )
    learning_rate: Annotated[float | None, typer.Option(min=1e-6, max=1.0, help="Its peak.", show_default="0.002")] = (
        None
    )
    dropout: Annotated[
        float | None, typer.Option(min=0.0, max=0.9, help="Its rate; 0.3 for small corpora.", show_default="0.1")
    ] = None
    seed: Annotated[int | None, typer.Option(min=0, max=MAX_SEED, help="Of everything random.", show_default="0")] = (
        None
    )
    valid_share: Annotated[
        float | None, typer.Option(min=0.0, max=0.5, help="Of the source sentences, held out.", show_default="0.01")
    ] = None
    interface: Annotated[
        bool | None,
        typer.Option("--interface", help="Pairs of user interfaces: strip accelerators (_File).", show_default=False),
    ] = None


@command("Train a model of your own.")
def train(
    files: Annotated[
        list[Path], typer.Argument(metavar="PAIRS...", help="TSV, X.de and X.en, .po, .mo or TMX; plain or .gz.")
    ],
    *,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model.")],
    source: Annotated[str, typer.Option("--from", help="The language to translate from, as de.")],
    target: Annotated[str, typer.Option("--to", help="The language to translate to, as en.")],
    columns: Columns = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="Take the vocabulary of the model in this folder.", show_default=False)
    ] = None,
    training: Training,
    device: OnDevice = Device.auto,
    resume: Resume = False,
) -> None:
    """Train a model that translates, for --model of the other commands.

    Pairs are cleaned (equal sides, lengths that cannot be right, markup that does not match, seen before) and some are
    held out by their source sentence. Ctrl-C leaves a checkpoint: --resume goes on.
    """
    from anyfill.translation.training import train as train_model

    try:
        made = train_model(
            files,
            output,
            source=source,
            target=target,
            columns=columns_of(columns),
            vocabulary=vocabulary,
            device=str(device.value),
            resume=resume,
            say=lambda line: typer.echo(line, err=True),
            **{name: value for name, value in asdict(training).items() if value is not None},
        )
    except KeyboardInterrupt:
        if (output / "config.json").exists():
            typer.echo(f"what was learnt so far is in {output}; the same command with --resume goes on", err=True)
        raise
    typer.echo(f"{made!r}")
    typer.echo(f'saved in {output}: try anyfill translate "..." --model {output}')


@command("BLEU, chrF and more of a model on pairs.")
def evaluate(
    files: Annotated[list[Path], typer.Argument(metavar="PAIRS...", help="As in train; none of them is left out.")],
    *,
    columns: Columns = None,
    decoding: Decoding,
    limit: Annotated[int | None, typer.Option(min=1, help="The first so many pairs.", show_default="all")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the translations there.")] = None,
    force: Force = False,
    as_json: AsJson = False,
    int8: Int8 = False,
    model: ModelFolder = None,
    device: OnDevice = Device.auto,
) -> None:
    """Translate pairs and compare with their targets: sacrebleu's BLEU and chrF with signatures, stutter, lengths."""
    from anyfill.interface.output import require_new
    from anyfill.interface.threads import compute_device
    from anyfill.translation.metrics import evaluated
    from anyfill.translation.model import load
    from anyfill.translation.reading import read_pairs, sources_of
    from anyfill.translation.vocabulary import plain

    if output is not None:
        require_new(output, force=force)
    translator = load(model, device=compute_device(device), int8=int8)
    say_unused_seed(decoding.seed, translator.recipe)
    sources = sources_of(files, *translator.languages, columns_of(columns))
    pairs = [(a, plain(b)) for a, b in read_pairs(sources, translator.languages[0])][:limit]
    if not pairs:
        raise refuse(str(files[0]), expected="at least one pair", got="none")
    made = translator.translate([pair[0] for pair in pairs], **asdict(decoding), progress=True)
    outputs = [one.text for one in made]
    if output is not None:
        put("".join(f"{one}\n" for one in outputs), output, force)
    found = evaluated(outputs, [pair[1] for pair in pairs])
    found["passes"] = sum(one.passes for one in made) / len(made)
    if as_json:
        typer.echo(as_text(found), nl=False)
        return
    low, high = found["bleu_low"], found["bleu_high"]
    typer.echo(f"BLEU      {found['bleu']:.2f} ({low:.2f} to {high:.2f})   {found['bleu_signature']}")
    typer.echo(f"chrF      {found['chrf']:.2f}   {found['chrf_signature']}")
    typer.echo(f"stutter   {found['stutter']:.2f} % of words")
    typer.echo(f"length    {found['length_ratio']:.3f} of the references', {found['length_error']:.2f} words off")
    typer.echo(f"distinct  {found['distinct']:.3f} of pairs of words")
    typer.echo(f"passes    {found['passes']:.1f} a sentence, {counted(found['sentences'], 'sentence')}")


@command("A teacher's translations as training pairs.")
def distill(
    files: Annotated[list[Path], typer.Argument(metavar="PAIRS...", help="As in train; their sources are translated.")],
    *,
    output: Annotated[Path, typer.Option("-o", "--output", help="A TSV file of source and the teacher's translation.")],
    columns: Columns = None,
    beam: Annotated[
        int | None, typer.Option(min=1, max=64, help="Beams of an autoregressive teacher.", show_default="4")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="The first so many sources.", show_default="all")] = None,
    force: Force = False,
    model: ModelFolder = None,
    device: OnDevice = Device.auto,
) -> None:
    """Sequence-level distillation: pairs whose targets a teacher wrote, for train."""
    from anyfill.interface.threads import compute_device
    from anyfill.translation.distillation import distill as distill_pairs
    from anyfill.translation.model import load

    teacher = load(model, device=compute_device(device))
    options: dict[str, Any] = {"columns": columns_of(columns), "beam": beam, "force": force, "most": limit}
    count = distill_pairs(teacher, files, output, **options, progress=True)
    typer.echo(f"wrote {counted(count, 'pair')} to {output}", err=True)


@command("Gather pairs from Debian packages.")
def corpus(
    *,
    output: Annotated[Path, typer.Option("-o", "--output", help="A new folder for pairs.tsv and licences.tsv.")],
    target: Annotated[str, typer.Option("--language", help="The language beside English, as de.")] = "de",
    packages: Annotated[
        list[str] | None, typer.Option("--package", help="Only these packages; may be repeated.", show_default=False)
    ] = None,
    catalogues: Annotated[
        int, typer.Option(min=0, help="How many packages with catalogues to take beside the named ones.")
    ] = 0,
    root: Annotated[
        Path | None,
        typer.Option(help="Read an installed or unpacked tree instead of downloading.", show_default=False),
    ] = None,
) -> None:
    """Build a parallel corpus (English and another language) from what Debian packages carry, with their licences.

    Packages are fetched with apt-get download and unpacked with dpkg-deb, nothing is installed: translation catalogues
    (.mo) and the paragraphs of LibreOffice's help. licences.tsv says for each package where its licence stands.
    """
    from anyfill.translation.debian import DEFAULT, build

    names = tuple(packages) if packages else DEFAULT
    made = build(output, target, names, catalogues=catalogues, root=root, say=lambda line: typer.echo(line, err=True))
    typer.echo(f"{made}")


def columns_of(said: str | None) -> tuple[str, str] | None:
    """The languages of the columns; None = not said."""
    if said is None:
        return None
    first, comma, second = said.partition(",")
    if not (first.strip() and comma and second.strip()):
        raise refuse("--columns", expected="two languages, as en,de", got=repr(said))
    return first.strip(), second.strip()
