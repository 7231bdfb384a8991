"""Options that commands of several subjects share, and the one way to share a group of them.

Typer reads a command's options off its flat signature. Where several commands have the same options, these stand once,
in a frozen dataclass with ``Annotated`` fields, and a command takes the whole group as one argument:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Place:
        folder: Annotated[Path, typer.Option(help="Where to write.")] = Path(".")
        force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False

    @command("Save what was made.")
    def save(*, place: Place, seed: Seed = None) -> None: ...      # save --folder x --force --seed 1

    add_commands(app, save)

Arguments are keyword-only, so that groups stand wherever ``--help`` shall list them.
"""

import dataclasses
import inspect
import os
import secrets
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from anyfill.checks import MAX_SEED, refuse, require_seed

Group = TypeVar("Group")

Seed = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=MAX_SEED,
        help="Seed of everything random; a new one each time, which is printed.",
        show_default=False,
    ),
]
Temperature = Annotated[float, typer.Option(min=0.0, max=5.0, help="Below 1 is safer, above 1 bolder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with the run in the folder, refusing other settings than its own; begin it if there is none.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]


class Device(StrEnum):
    """Where to compute."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


OnDevice = Annotated[Device, typer.Option(help="Where to compute; auto takes CUDA if it is there.")]


def chosen_seed(seed: int | None) -> int:
    """The seed, or a new one where none is stated; ValueError if it is none."""
    return secrets.randbelow(100_000) if seed is None else require_seed("seed", seed)


def refuse_file_name(text: str) -> None:
    """Refuse the name of a file where a text is meant; a text that can be no name is none."""
    if os.path.isfile(text):  # False, too, of what the system cannot look up, such as a long text
        expected = "text, or --file and the name of a file to read it from"
        raise refuse("text", expected=expected, got=f"the name of a file, {text!r}")


def command(short_help: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command: groups of its options stand flat (``grouped``), and so it is said in the list."""

    def make(function: Callable[..., None]) -> Callable[..., None]:
        made = grouped(function)
        made.__dict__["short_help"] = short_help
        return made

    return make


def new_group() -> typer.Typer:
    """A command of commands, such as ``anyfill music``."""
    settings = {"help_option_names": ["-h", "--help"]}
    return typer.Typer(no_args_is_help=True, rich_markup_mode=None, context_settings=settings)


def add_commands(app: typer.Typer, *commands: Callable[..., None]) -> typer.Typer:
    """The same application with these commands, each by the name of its function."""
    for one in commands:
        app.command(name=one.__name__.rstrip("_"), short_help=one.__dict__["short_help"])(one)
    return app


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer reads it: in the place of every argument that is a dataclass stand the fields of that."""
    groups: dict[str, type[Any]] = {}
    flat: list[inspect.Parameter] = []
    hints: dict[str, Any] = get_type_hints(command, include_extras=True)
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if not dataclasses.is_dataclass(kind):
            flat.append(parameter.replace(annotation=kind))
            continue
        groups[parameter.name] = hints[parameter.name]
        own = get_type_hints(kind, include_extras=True)
        for field in dataclasses.fields(kind):
            default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
            option = inspect.Parameter(field.name, parameter.kind, default=default, annotation=own[field.name])
            flat.append(option)

    @wraps(command)
    def run(**values: Any) -> None:
        taken = {
            name: kind(**{field.name: values.pop(field.name) for field in dataclasses.fields(kind)})
            for name, kind in groups.items()
        }
        command(**values, **taken)

    run.__signature__ = inspect.Signature(flat)  # pyright: ignore[reportAttributeAccessIssue]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    return run


def option_name(name: str) -> str:
    """The option of a field."""
    return f"--{name.replace('_', '-')}"


def resumed(wanted: Group, saved: Group) -> Group:
    """The settings (a dataclass) of the run to be resumed; ValueError if others are said (None = unsaid)."""
    for field in dataclasses.fields(wanted):  # pyright: ignore[reportArgumentType]
        now, before = getattr(wanted, field.name), getattr(saved, field.name)
        if now is not None and now != before:
            name = option_name(field.name)
            expected = f"{before or 'none'}, as in the run that is to be resumed"
            raise refuse(name, expected=f"{expected} (without {name} it is taken over)", got=now)
    return saved
