"""Results of rollouts as a folder; of several folders one page: success per task, film strips, states over time."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anyfill.checks import refuse
from anyfill.interface import page as pages
from anyfill.interface.output import RESULTS, replacing, write_results
from anyfill.interface.threads import environment
from anyfill.policy.kitchen import TASKS
from anyfill.policy.pictures import save_film, save_states
from anyfill.policy.rollouts import Conditions, Rollouts

ROLLOUT, REPORT = "anyfill policy rollout", "anyfill policy report"
STATES, FILM = "states.png", "film.png"


def save_rollouts(
    rollouts: Rollouts,
    folder: Path,
    *,
    model: str,
    method: str,
    conditions: Conditions,
    temperature: float,
    filmed: bool,
) -> str | None:
    """Write results.json, states.png and, if wished and possible, film.png; why there is no film, if there is none."""
    why = None
    with replacing(folder, ROLLOUT) as fresh:
        save_states(rollouts, fresh / STATES)
        if filmed:
            try:
                save_film(rollouts, fresh / FILM)
            except ValueError as error:
                why = str(error)
        fails = {"lost": conditions.lost, "motor_off": conditions.motor, "told": conditions.told}
        about = {"model": model, "method": method, "temperature": temperature, "conditions": fails}
        write_results(fresh, ROLLOUT, {**about, **rollouts.summary(), "environment": environment()})
    return why


def write_report(folders: Sequence[Path], output: Path) -> None:
    """A page about the results of several rollouts."""
    found = [(folder, _results(folder)) for folder in folders]
    with replacing(output, REPORT) as fresh:
        pieces = [pages.heading("Rollouts", 1), _table(found)]
        for number, (folder, result) in enumerate(found, 1):
            pieces.append(pages.heading(f"{folder.name}: {_conditions(result)}"))
            for name, what in ((FILM, "frames of the first episodes"), (STATES, "states over time")):
                if (folder / name).is_file():
                    copied = fresh / f"{number}-{name}"
                    shutil.copyfile(folder / name, copied)
                    pieces.append(pages.picture(copied.stem, what, 960, dark=False))
        (fresh / "index.html").write_text(pages.page("Rollouts", pieces), encoding="utf-8")
        write_results(fresh, REPORT, {"rollouts": [str(folder) for folder in folders]})


def _results(folder: Path) -> dict[str, Any]:
    try:
        found: Any = json.loads((folder / RESULTS).read_bytes())
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or found.get("made_by") != ROLLOUT:  # pyright: ignore[reportUnknownMemberType]
        raise refuse(f"{folder}", expected=f"a folder of {ROLLOUT}", got="none")
    return found


def _conditions(result: dict[str, Any]) -> str:
    fails = result["conditions"]
    words = [f"{fails['lost']:.0%} of the sensors lost"] if fails["lost"] else []
    words += [f"{fails['motor_off']} off"] if fails["motor_off"] else []
    return f"{', '.join(words)} ({'told' if fails['told'] else 'untold'})" if words else "everything works"


def _table(found: Sequence[tuple[Path, dict[str, Any]]]) -> str:
    """Success per task, one line for each folder."""
    head = ["rollouts", "method", "conditions", "episodes", "of four", "of seven", *TASKS]
    lines: list[list[str]] = []
    for folder, result in found:
        of = [f"{result[key]['mean']:.2f} ± {2 * result[key]['stderr']:.2f}" for key in ("of_four", "of_seven")]
        shares = [f"{result['share_done'][task]:.0%}" for task in TASKS]
        cells = [folder.name, result["method"], _conditions(result), str(result["episodes"]), *of, *shares]
        lines.append([pages.text(cell) for cell in cells])
    return pages.table(head, lines, short=(4, 5), numbers=(3, *range(6, len(head))))
