"""Training runs that people begin, watch and resume, for every application alike."""

import dataclasses
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from anyfill.checks import refuse
from anyfill.interface.progress import clock, watch
from anyfill.training import StepReport, load_notes
from anyfill.training.checkpoint import CONFIG

Settings = TypeVar("Settings")


def watched_to_the_end(
    reports: Generator[StepReport, None, Any],
    total: int | None,
    description: str,
    *,
    console: Console | None = None,
    per: tuple[float, float, str] | None = None,
) -> StepReport | None:
    """Run the training behind ``reports`` and show how it goes, as ``watch`` does; the last report, if there is one."""
    last: StepReport | None = None
    with closing(watch(reports, total, description, console=console, per=per)) as watched:
        for report in watched:
            last = report
    return last


def run_in_words(last: StepReport | None) -> str:
    """What a run came to, by its last report."""
    if last is None:
        return "the run had ended before; for a longer one, train into another folder"
    return f"trained {last.step:,} steps in {clock(last.seconds)}"


def require_new_or_resumed(folder: Path, resume: bool) -> bool:
    """Whether the folder has a run to be resumed; ValueError if it has one and ``resume`` was not said."""
    if not (folder / CONFIG).exists():
        return False
    if not resume:
        raise refuse(f"{folder}", expected="a new folder, or --resume to go on with its run", got="one with a model")
    return True


def resumed_notes(folder: Path, resume: bool, made_by: str, subject: str) -> dict[str, Any] | None:
    """The notes of the run to be resumed, None if one shall begin; ValueError if the folder is not for that.

    Args:
        folder: of the model.
        resume: whether a run that is there shall go on.
        made_by: the command whose runs can be resumed here, as its notes have it.
        subject: the name of the application's own notes, which hold the "settings" of the run.
    """
    if not require_new_or_resumed(folder, resume):
        return None
    notes: dict[str, Any] = load_notes(folder)
    own: Any = notes.get(subject)
    if notes.get("made_by") != made_by or not isinstance(own, dict) or "settings" not in own:
        raise refuse(f"{folder}", expected=f"a run of {made_by}", got="a model that was made in another way")
    return notes


def resumed_settings(folder: Path, resume: bool, made_by: str, subject: str, kind: type[Settings]) -> Settings | None:
    """The settings (a dataclass) of the run to be resumed, None if one shall begin; see ``resumed_notes``."""
    notes = resumed_notes(folder, resume, made_by, subject)
    if notes is None:
        return None
    known: dict[str, Any] = notes[subject]["settings"]
    names = {one.name for one in dataclasses.fields(kind)}  # pyright: ignore[reportArgumentType]
    return kind(**{name: value for name, value in known.items() if name in names})
