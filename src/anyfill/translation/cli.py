"""The commands ``anyfill translate``: a text or a file; and fill, edit, score, train, evaluate, distill, corpus.

``anyfill translate "Guten Morgen" --to en`` is short for ``anyfill translate text …``: what is not the name of a
command is a text. Results go to stdout, progress and remarks to stderr. Everything is imported when a command runs.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from anyfill.checks import counted, refuse, refuse_given
from anyfill.interface.options import AsJson, Device, Force, OnDevice, add_commands, command, refuse_file_name
from anyfill.translation.cli_options import Decoding, Int8, ModelFolder, Passes, Seed, To, as_text, put, say_unused_seed
from anyfill.translation.cli_training import corpus, distill, evaluate, train

if TYPE_CHECKING:
    from anyfill.translation.model import Translator
    from anyfill.translation.texts import Translation


class TextByDefault(TyperGroup):
    """Whatever is not the name of a command is a text to be translated."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As if ``text`` had been said."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["text", *args]
        return super().parse_args(ctx, args)


@command("Translate a text or a file.")
def text(
    words: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text; - reads lines from stdin.", show_default=False)
    ] = None,
    *,
    to: To = None,
    file: Annotated[
        Path | None, typer.Option(help="Translate this file line by line, or a .po catalogue.", show_default=False)
    ] = None,
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
    int8: Int8 = False,
    model: ModelFolder = None,
    device: OnDevice = Device.cpu,
) -> None:
    """Translate a text, or a file line by line: one line in, one line out, empty ones stay empty.

    --keep "Berlin@4" makes a word the fourth one of the translation, --keep Berlin keeps it anywhere. Models that
    decode in parallel take it, and so does anyfill translate fill for templates.
    """
    from anyfill.interface.output import require_new, say_remarks
    from anyfill.interface.threads import compute_device
    from anyfill.translation.model import load
    from anyfill.translation.recipes import layout_of

    if (words is None) == (file is None):
        raise refuse("translate", expected="a TEXT or --file", got="neither" if words is None else "both")
    if words is not None:
        refuse_file_name(words)
    if output is not None:
        require_new(output, force=force)
    if file is not None or words == "-":
        said = {"--keep": keep or None, "--alternatives": alternatives or None}
        refuse_given(
            "for lines, which are translated one by one", {**said, "--show-passes": show_passes, "--json": as_json}
        )
    elif alternatives:
        said = {"--keep": keep or None, "--lengths": decoding.lengths, "--beam": decoding.beam}
        said |= {"--length-penalty": decoding.length_penalty, "--speculative": decoding.speculative}
        said |= {"--no-protect": not decoding.protect, "--show-passes": show_passes}
        refuse_given("with --alternatives, which chooses them itself", said)
    translator = load(model, to=to, device=compute_device(device), int8=int8)
    if show_passes and layout_of(translator.recipe) != "length":
        expected = "a model that decodes in parallel (padir, cmlm, disco, sundae)"
        raise refuse("--show-passes", expected=expected, got=f"a {translator.recipe} model")
    say_unused_seed(decoding.seed, translator.recipe)
    if file is not None or words == "-":
        _translate_lines(translator, file, output, force, asdict(decoding))
        return
    wanted = str(words)
    if alternatives:
        found = translator.alternatives(wanted, alternatives, passes=decoding.passes, seed=decoding.seed or 0)
    else:
        found = [translator.translate(wanted, **asdict(decoding), keep=keep or [], history=show_passes)]
    say_remarks(found[0].remarks if found else ())
    if show_passes:
        _print_passes(found[0])
    content = as_text([asdict(one) for one in found]) if as_json else "".join(f"{one.text}\n" for one in found)
    put(content, output, force)


@command("Fill a translation with blanks.")
def fill(
    words: Annotated[str, typer.Argument(metavar="TEXT", help="The sentence to translate.")],
    template: Annotated[str, typer.Argument(help="Its translation with blanks: ___ of any length, [2] of two pieces.")],
    *,
    n: Annotated[int, typer.Option("-n", "--n", min=1, max=100, help="How many.")] = 3,
    passes: Passes = None,
    seed: Seed = None,
    as_json: AsJson = False,
    to: To = None,
    model: ModelFolder = None,
    device: OnDevice = Device.cpu,
) -> None:
    """Fill the blanks of a translation; what is given stays as it is."""
    from anyfill.interface.threads import compute_device
    from anyfill.translation.model import load

    translator = load(model, to=to, device=compute_device(device))
    say_unused_seed(seed, translator.recipe)
    found = translator.fill(words, template, n, passes=passes, seed=seed or 0)
    put(as_text([asdict(one) for one in found]) if as_json else "".join(f"{one.text}\n" for one in found), None, False)


@command("Change words of a translation, the rest adapts.")
def edit(
    words: Annotated[str, typer.Argument(metavar="TEXT", help="The sentence that was translated.")],
    draft: Annotated[str, typer.Argument(help="Its translation.")],
    change: Annotated[list[str], typer.Argument(metavar="OLD=NEW...", help="Words to be replaced.")],
    *,
    passes: Passes = None,
    to: To = None,
    model: ModelFolder = None,
    device: OnDevice = Device.cpu,
) -> None:
    """Replace words of a translation and let the others adapt to them."""
    from anyfill.interface.threads import compute_device
    from anyfill.translation.model import load

    pairs = dict[str, str]()
    for one in change:
        old, sign, new = one.partition("=")
        if not (old and sign and new):
            raise refuse("change", expected="OLD=NEW", got=repr(one))
        pairs[old] = new
    typer.echo(load(model, to=to, device=compute_device(device)).adapt(words, draft, pairs, passes=passes).text)


@command("How likely a translation is, exactly.")
def score(
    words: Annotated[str, typer.Argument(metavar="TEXT", help="The sentence.")],
    translation: Annotated[str, typer.Argument(help="Its translation.")],
    *,
    as_json: AsJson = False,
    to: To = None,
    model: ModelFolder = None,
    device: OnDevice = Device.cpu,
) -> None:
    """The exact log-probability of a translation, of models that have a likelihood."""
    from anyfill.interface.threads import compute_device
    from anyfill.translation.model import load

    found = load(model, to=to, device=compute_device(device)).score(words, translation)
    if as_json:
        typer.echo(as_text({**asdict(found), "per_piece": found.per_piece}), nl=False)
    else:
        by = f", by {found.by}" if found.by else ""
        often = counted(found.passes, "pass", "passes")
        typer.echo(f"{found.nats:.3f} nats, {found.per_piece:.3f} a piece, in {often}{by}")


def register(app: typer.Typer) -> None:
    """Add ``translate`` and its commands to the application."""
    settings = {"help_option_names": ["-h", "--help"]}
    own = typer.Typer(cls=TextByDefault, no_args_is_help=True, rich_markup_mode=None, context_settings=settings)
    add_commands(own, text, fill, edit, score, train, evaluate, distill, corpus)
    app.add_typer(own, name="translate", help="Translation in a few parallel passes; words can be kept.")


def _translate_lines(
    translator: "Translator",
    file: Path | None,
    output: Path | None,
    force: bool,
    decoding: dict[str, Any],
) -> None:
    """A file or stdin line by line, or the empty entries of a catalogue."""
    from anyfill.translation.catalogues import translate_catalogue
    from anyfill.translation.reading import decoded, kind_of, opened_lines

    kind = "" if file is None else kind_of(file)
    if kind in (".mo", ".tmx"):
        raise refuse("--file", expected="lines of text, or a .po catalogue", got=f"a {kind} file")
    if file is not None and kind == ".po":
        content, count, made = translate_catalogue(translator, file, **decoding, progress=True)
        put(content, output, force)
        done = f"{counted(count, 'empty entry', 'empty entries')} {'was' if count == 1 else 'were'} translated"
        said = f"{done}, and marked fuzzy: somebody should look" if count else "no entry was empty: nothing is changed"
        typer.echo(f"note: {said}", err=True)
        _say_of_lines(made)
        return
    if file is None:
        lines = list(decoded(sys.stdin.buffer, "stdin"))
    else:
        with opened_lines(file) as found:
            lines = list(found)
        if kind == ".tsv" and any("\t" in line for line in lines):
            expected = "lines of text, one column of the table in a file of its own"
            raise refuse("--file", expected=expected, got="a .tsv file of several")
    made = translator.translate(lines, **decoding, progress=True) if lines else []
    put("".join(f"{one.text}\n" for one in made), output, force)
    _say_of_lines(made)


def _say_of_lines(made: Sequence["Translation"]) -> None:
    noted = {remark for one in made for remark in one.remarks if not remark.startswith("translated in ")}
    for remark in sorted(noted):
        count = sum(remark in one.remarks for one in made)
        typer.echo(f"note: {count:,} of {counted(len(made), 'line')}: {remark}", err=True)


def _print_passes(found: "Translation") -> None:
    """Each pass on stderr, as text: pieces in green are new or changed."""
    before: tuple[str, ...] = ()
    for number, row in enumerate(found.history):
        if number == 0:
            before = row
            continue
        shown = [
            spoken if number > 1 and piece == old else typer.style(spoken, fg=typer.colors.GREEN, bold=True)
            for piece, old in zip(row, before)
            for spoken in [piece.replace("▁", " ")]
        ]
        changed = sum(piece != old for piece, old in zip(row, before))
        typer.echo(f"pass {number} {''.join(shown)}   ({changed} changed)", err=True, color=None)
        before = row
