"""The commands ``anyfill translate``: a text or a file; and train, evaluate, distill, score, fill, corpus, latency.

``anyfill translate "Guten Morgen" --to en`` is short for ``anyfill translate text …``: what is not the name of a
command is a text. Results go to stdout, progress and remarks to stderr. Everything is imported when a command runs.
"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from anyfill.checks import refuse
from anyfill.interface.options import AsJson, Device, Force, OnDevice, add_commands, command

if TYPE_CHECKING:
    from anyfill.translation.model import Translation, Translator

ModelFolder = Annotated[
    Path | None,
    typer.Option("--model", help="Folder of a model (anyfill translate train); by default the one that ships."),
]
To = Annotated[str | None, typer.Option("--to", help="The language to translate to, as en.", show_default=False)]
Passes = Annotated[int, typer.Option(min=1, max=1000, help="Passes of models that decode in parallel.")]
Columns = Annotated[
    str | None,
    typer.Option(help="Languages of the columns of TSV files, as en,de.", show_default="--from,--to"),
]


class TextByDefault(TyperGroup):
    """Whatever is not the name of a command is a text to be translated."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As if ``text`` had been said."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["text", *args]
        return super().parse_args(ctx, args)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """Options: how to decode."""

    passes: Passes = 4
    lengths: Annotated[int, typer.Option(min=1, max=64, help="Lengths of the translation tried side by side.")] = 3
    beam: Annotated[int, typer.Option(min=1, max=64, help="Beams of autoregressive models; 1 = greedy.")] = 4
    seed: Annotated[int, typer.Option(min=0, help="Of the noise that some models start from.")] = 0
    protect: Annotated[
        bool, typer.Option("--protect/--no-protect", help="Placeholders (%s, {name}, <b>) come out as they went in.")
    ] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Options: what to train, and how."""

    recipe: Annotated[
        Literal["padir", "cmlm", "disco", "sundae", "autoregressive", "deep_shallow", "one_pass"],
        typer.Option(help="How it is trained and decodes; autoregressive ones make good teachers."),
    ] = "padir"
    size: Annotated[
        Literal["toy", "tiny", "small", "compact", "medium", "base"],
        typer.Option(help="tiny suits 30,000 pairs, base millions."),
    ] = "tiny"
    vocabulary_size: Annotated[int, typer.Option(min=300, max=64_000, help="Pieces for both languages, at most.")] = (
        8000
    )
    pieces: Annotated[Literal["unigram", "bpe"], typer.Option(help="How words are cut into pieces.")] = "unigram"
    length: Annotated[int, typer.Option(min=4, max=254, help="Pieces of the longest sentence.")] = 64
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps of training.", show_default="20,000; 2,000 without a GPU")
    ] = None
    seconds: Annotated[float | None, typer.Option(min=1, help="Stop after so long.", show_default=False)] = None
    batch: Annotated[int | None, typer.Option(min=1, help="Pairs of a step.", show_default="512; 64 without a GPU")] = (
        None
    )
    learning_rate: Annotated[float, typer.Option(min=1e-6, max=1.0, help="Its peak.")] = 2e-3
    dropout: Annotated[float, typer.Option(min=0.0, max=0.9, help="Its rate; 0.3 for small corpora.")] = 0.1
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0
    valid_share: Annotated[float, typer.Option(min=0.0, max=0.5, help="Of the source sentences, held out.")] = 0.01
    interface: Annotated[
        bool, typer.Option("--interface", help="Pairs of user interfaces: strip accelerators (_File).")
    ] = False


@command("Translate a text or a file.")
def text(
    words: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text; - reads lines from stdin.", show_default=False)
    ] = None,
    *,
    to: To = None,
    file: Annotated[Path | None, typer.Option(help="Translate this file line by line.", show_default=False)] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to this file.", show_default="stdout")
    ] = None,
    force: Force = False,
    decoding: Decoding,
    keep: Annotated[
        list[str] | None, typer.Option(help="WORDS or WORDS@PLACE that must stand in it; may be repeated.")
    ] = None,
    alternatives: Annotated[int, typer.Option(min=0, max=100, help="Show so many different translations.")] = 0,
    show_passes: Annotated[bool, typer.Option("--show-passes", help="Show each pass, what changed in colour.")] = False,
    as_json: AsJson = False,
    model: ModelFolder = None,
    device: OnDevice = Device.cpu,
) -> None:
    """Translate a text, or a file line by line: one line in, one line out, empty ones stay empty.

    --keep "Berlin@4" makes a word the fourth one of the translation, --keep Berlin keeps it anywhere. Models that
    decode in parallel take it, and so does anyfill translate fill for templates.
    """
    from anyfill.interface.output import require_new
    from anyfill.interface.threads import compute_device
    from anyfill.translation.model import load

    if (words is None) == (file is None):
        raise refuse("translate", expected="a TEXT or --file", got="neither" if words is None else "both")
    if output is not None:
        require_new(output, force=force)
    translator = load(model, to=to, device=compute_device(device))
    if file is not None or words == "-":
        _translate_lines(translator, file, output, force, asdict(decoding), keep or [])
        return
    wanted = str(words)
    if alternatives:
        found = translator.alternatives(wanted, alternatives, passes=decoding.passes, seed=decoding.seed)
    else:
        found = [translator.translate(wanted, **asdict(decoding), keep=keep or [], history=show_passes)]
    for remark in found[0].remarks if found else ():
        typer.echo(f"note: {remark}", err=True)
    if show_passes:
        _print_passes(found[0])
    content = _json([asdict(one) for one in found]) if as_json else "".join(f"{one.text}\n" for one in found)
    _put(content, output, force)


@command("Fill a translation with blanks.")
def fill(
    words: Annotated[str, typer.Argument(metavar="TEXT", help="The sentence to translate.")],
    template: Annotated[str, typer.Argument(help="Its translation with blanks: ___ of any length, [2] of two pieces.")],
    *,
    n: Annotated[int, typer.Option("-n", "--n", min=1, max=100, help="How many.")] = 3,
    passes: Passes = 4,
    as_json: AsJson = False,
    to: To = None,
    model: ModelFolder = None,
) -> None:
    """Fill the blanks of a translation; what is given stays as it is."""
    from anyfill.translation.model import load

    found = load(model, to=to).fill(words, template, n, passes=passes)
    _put(_json([asdict(one) for one in found]) if as_json else "".join(f"{one.text}\n" for one in found), None, False)


@command("Change words of a translation, the rest adapts.")
def edit(
    words: Annotated[str, typer.Argument(metavar="TEXT", help="The sentence that was translated.")],
    draft: Annotated[str, typer.Argument(help="Its translation.")],
    change: Annotated[list[str], typer.Argument(metavar="OLD=NEW...", help="Words to be replaced.")],
    *,
    passes: Passes = 4,
    to: To = None,
    model: ModelFolder = None,
) -> None:
    """Replace words of a translation and let the others adapt to them."""
    from anyfill.translation.model import load

    pairs = dict[str, str]()
    for one in change:
        old, sign, new = one.partition("=")
        if not (old and sign and new):
            raise refuse("change", expected="OLD=NEW", got=repr(one))
        pairs[old] = new
    typer.echo(load(model, to=to).adapt(words, draft, pairs, passes=passes).text)


@command("How likely a translation is, exactly.")
def score(
    words: Annotated[str, typer.Argument(metavar="TEXT", help="The sentence.")],
    translation: Annotated[str, typer.Argument(help="Its translation.")],
    *,
    as_json: AsJson = False,
    to: To = None,
    model: ModelFolder = None,
) -> None:
    """The exact log-probability of a translation, of models that have a likelihood."""
    from anyfill.translation.model import load

    found = load(model, to=to).score(words, translation)
    if as_json:
        typer.echo(_json({**asdict(found), "per_piece": found.per_piece}), nl=False)
    else:
        typer.echo(f"{found.nats:.3f} nats, {found.per_piece:.3f} a piece, in {found.passes} passes")


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
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
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
            columns=_columns(columns),
            vocabulary=vocabulary,
            device=str(device.value),
            resume=resume,
            say=lambda line: typer.echo(line, err=True),
            **asdict(training),
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
    translator = load(model, device=compute_device(device))
    sources = sources_of(files, *translator.languages, _columns(columns))
    pairs = [(a, plain(b)) for a, b in read_pairs(sources, translator.languages[0])][:limit]
    if not pairs:
        raise refuse(str(files[0]), expected="at least one pair", got="none")
    made = translator.translate([pair[0] for pair in pairs], **asdict(decoding), progress=True)
    outputs = [one.text for one in made]
    if output is not None:
        _put("".join(f"{one}\n" for one in outputs), output, force)
    found = evaluated(outputs, [pair[1] for pair in pairs])
    found["passes"] = sum(one.passes for one in made) / len(made)
    if as_json:
        typer.echo(_json(found), nl=False)
        return
    low, high = found["bleu_low"], found["bleu_high"]
    typer.echo(f"BLEU      {found['bleu']:.2f} ({low:.2f} to {high:.2f})   {found['bleu_signature']}")
    typer.echo(f"chrF      {found['chrf']:.2f}   {found['chrf_signature']}")
    typer.echo(f"stutter   {found['stutter']:.2f} % of words")
    typer.echo(f"length    {found['length_ratio']:.3f} of the references', {found['length_error']:.2f} words off")
    typer.echo(f"passes    {found['passes']:.1f} a sentence, {found['sentences']:,} sentences")


@command("A teacher's translations as training pairs.")
def distill(
    files: Annotated[list[Path], typer.Argument(metavar="PAIRS...", help="As in train; their sources are translated.")],
    *,
    output: Annotated[Path, typer.Option("-o", "--output", help="A TSV file of source and the teacher's translation.")],
    columns: Columns = None,
    beam: Annotated[int, typer.Option(min=1, max=64, help="Beams of the teacher.")] = 4,
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
    options: dict[str, Any] = {"columns": _columns(columns), "beam": beam, "force": force, "most": limit}
    count = distill_pairs(teacher, files, output, **options, progress=True)
    typer.echo(f"wrote {count:,} pairs to {output}", err=True)


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


def register(app: typer.Typer) -> None:
    """Add ``translate`` and its commands to the application."""
    settings = {"help_option_names": ["-h", "--help"]}
    own = typer.Typer(cls=TextByDefault, no_args_is_help=True, rich_markup_mode=None, context_settings=settings)
    add_commands(own, text, fill, edit, score, train, evaluate, distill, corpus)
    app.add_typer(own, name="translate", help="Translation in a few parallel passes; words can be kept.")


def _columns(said: str | None) -> tuple[str, str] | None:
    if said is None:
        return None
    first, comma, second = said.partition(",")
    if not (first.strip() and comma and second.strip()):
        raise refuse("--columns", expected="two languages, as en,de", got=repr(said))
    return first.strip(), second.strip()


def _translate_lines(
    translator: "Translator",
    file: Path | None,
    output: Path | None,
    force: bool,
    decoding: dict[str, Any],
    keep: list[str],
) -> None:
    """A file or stdin line by line."""
    from anyfill.translation.reading import opened_lines

    if keep:
        raise refuse("--keep", expected="a TEXT, one sentence", got="a file")
    if file is None:
        try:
            lines = sys.stdin.read().splitlines()
        except UnicodeDecodeError as error:
            raise refuse("stdin", expected="text in UTF-8", got=f"byte {error.object[error.start]:#04x}") from None
    else:
        with opened_lines(file) as found:
            lines = list(found)
    made = translator.translate(lines, **decoding, progress=True) if lines else []
    _put("".join(f"{one.text}\n" for one in made), output, force)
    noted = {remark for one in made for remark in one.remarks if "parts" not in remark}
    for remark in sorted(noted):
        count = sum(remark in one.remarks for one in made)
        typer.echo(f"note: {count:,} of {len(made):,} lines: {remark}", err=True)


def _print_passes(found: "Translation") -> None:
    """Each pass on stderr: pieces in green are new or changed."""
    before: tuple[str, ...] = ()
    for number, row in enumerate(found.history):
        if number == 0:
            before = row
            continue
        shown = [
            piece if number > 1 and piece == old else typer.style(piece, fg=typer.colors.GREEN, bold=True)
            for piece, old in zip(row, before)
        ]
        changed = sum(piece != old for piece, old in zip(row, before))
        typer.echo(f"pass {number}  {' '.join(shown)}   ({changed} changed)", err=True, color=None)
        before = row


def _put(content: str, output: Path | None, force: bool) -> None:
    from anyfill.disk import write_bytes
    from anyfill.interface.output import require_new, unwritable

    if output is None:
        typer.echo(content, nl=False)
        return
    require_new(output, force=force)
    try:
        write_bytes(content.encode(), output)
    except OSError as error:
        raise unwritable(output, error) from None
    typer.echo(f"wrote {output}", err=True)


def _json(content: object) -> str:
    from anyfill.interface.output import jsonable

    return json.dumps(jsonable(content), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
