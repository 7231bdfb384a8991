"""The command ``anyfill``.

Whatever goes wrong, a user sees one sentence on stderr and never a traceback:

    exit 0     done
    exit 1     a mistake of ours (the sentence says how to see more)
    exit 2     what was asked cannot be done: unknown option, bad value, unreadable or unwritable file
    exit 130   interrupted with Ctrl-C

``ANYFILL_DEBUG=1`` shows the traceback instead. Commands import what they need when they run, so that ``--help`` does
not wait for torch.
"""

import gc
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from anyfill.checks import MAX_SEED
from anyfill.images import cli as image_commands
from anyfill.ising import cli as lab_commands
from anyfill.music import cli as music_commands
from anyfill.policy import cli as policy_commands
from anyfill.studio import cli as studio_commands
from anyfill.tables import cli as table_commands
from anyfill.text import cli as text_commands
from anyfill.translation import cli as translation_commands
from anyfill.version import __version__

DEBUG = "ANYFILL_DEBUG"
FAULT, REFUSED, INTERRUPTED = 1, 2, 130

app = typer.Typer(
    name="anyfill",
    help="Any-order generative modelling: train one model, then fill, sample and score any part of your data.",
    epilog="Set ANYFILL_DEBUG=1 to see where an error comes from.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(_versions())
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show versions and exit.")
    ] = False,
) -> None:
    """The options of ``anyfill`` itself; ``version`` acts while they are read."""


@app.command(short_help="Show versions and the device.")
def version() -> None:
    """Show the versions of anyfill, Python and torch, and the device that would be used."""
    typer.echo(_versions())


@app.command(short_help="Train on built-in data, show what one model can answer.")
def demo(
    folder: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for the result; a previous demo there is replaced.")
    ] = Path("demo"),
    seconds: Annotated[
        float, typer.Option(min=0.05, max=3600, help="Training time of each of the three digit models.")
    ] = 20.0,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of everything random.")] = 0,
) -> None:
    """Train on built-in data and show what one model can answer; about a minute and a half on two cores.

    Fills half-erased handwritten digits, asks one penguin's row many ways, and compares one-pass, ARDM and MAC at equal
    training time. Open index.html in the output folder afterwards.
    """
    from anyfill.cli.demo import run_demo

    run_demo(folder, seconds=seconds, seed=seed)


studio_commands.register(app)
table_commands.register(app)
lab_commands.register(app)
music_commands.register(app)
text_commands.register(app)
translation_commands.register(app)
image_commands.register(app)
policy_commands.register(app)


def _versions() -> str:
    import torch

    from anyfill.interface.threads import device_name

    versions = {"anyfill": __version__, "Python": platform.python_version(), "torch": torch.__version__}
    return "\n".join(f"{name} {value}" for name, value in (versions | {"device": device_name()}).items())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line (``sys.argv`` by default) and leave with its exit code."""
    gc.set_threshold(10_000, 10, 10)  # importing torch makes many objects and no rubbish: a sixth of a second less
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command line; its exit code."""
    try:
        # Not standalone: typer hands every exception over instead of printing it in its own way.
        code = app(args=list(arguments), prog_name="anyfill", standalone_mode=False)
        sys.stdout.flush()  # a full disk or a closed pipe shows here, where it can still be said properly
    except BaseException as error:
        if os.environ.get(DEBUG, "0") not in ("", "0"):
            raise
        return _explain(error)
    if code == INTERRUPTED:  # newer typers turn Ctrl-C into this code
        _say("interrupted")
    return code if isinstance(code, int) else 0


def _explain(error: BaseException) -> int:
    """Say in one sentence what went wrong; the exit code."""
    match error:
        case KeyboardInterrupt() | typer.Abort():
            return _say("interrupted", INTERRUPTED)
        case SystemExit():
            return error.code if isinstance(error.code, int) else FAULT
        case BrokenPipeError():
            _settle_stdout()  # whoever read our output has gone (``anyfill ... | head``)
            return FAULT
        case OSError():
            _settle_stdout()
            reason = error.strerror or str(error)
            return _say(f"{error.filename}: {reason}" if error.filename else reason)
        case ModuleNotFoundError():
            return _say(f"the package {error.name!r} is needed for this and is not installed")
        case ValueError():
            return _say(str(error))
        case MemoryError():
            return _say("not enough memory for this")
        case _ if type(error).__name__ == "NoArgsIsHelpError":  # carries the help text; typer has it in several places
            typer.echo(str(error))
            return REFUSED
        case _ if callable(message := getattr(error, "format_message", None)):  # typer's own: an unknown option, …
            command = getattr(getattr(error, "ctx", None), "command_path", None) or "anyfill"
            return _say(f"{str(message()).rstrip('.')} (see: {command} --help)")
        case _:
            more = f"(run again with {DEBUG}=1 to see where)"
            return _say(f"a mistake in anyfill, {type(error).__name__}: {error} {more}", FAULT)


def _settle_stdout() -> None:
    """If stdout takes nothing more, drop what it still holds: Python would complain again while it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(message: str, code: int = REFUSED) -> int:
    """One line on stderr, whatever the message looks like; the exit code."""
    typer.echo("anyfill: " + " ".join(message.split()), err=True)
    return code
