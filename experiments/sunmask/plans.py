"""What a sitting (``experiments.sunmask.sitting``) does: tasks in order, most valuable first, and how long each takes.

    table2   SMc, SMt, Coconet and SD trained for unequal seconds, all variants, Figures 3 to 5 (the first sitting)
    equal    SMc, its two ablations, SD and SMt trained for the same seconds, as many as fit; each is saved and drawn
             from at once (T, --short rounds)
    late     the models that ``equal`` saved, loaded: T and plain in --long rounds, A, AT and ATN in --rounds, and what
             they compare with; nothing here is a matter of seconds, so other jobs may compute meanwhile
    third    SMc, SD, SMt and Coconet trained for the same seconds and saved, nothing else
    long     of these: the paper's rounds (SMc and SMc-T --long, Coconet its --own, the others --rounds), losses under
             the same questions, Figures 3 to 5, then what more compares with them

A training with ``least`` may be shortened to that, if less is left than it should have; with ``last`` it waits until
all processes are ready.

Keys of samples: in ``table2`` "T", "T-half" and so on, in the others the variant and its rounds, "T-1024".
"""

import math
from argparse import Namespace
from collections.abc import Callable
from typing import Any

Task = tuple[str, dict[str, Any]]
"""Process and task."""
GROUPS = {"pitch": "smc", "transformer": "smt", "coconet": "coconet", "time": "smc_time"}
"""Processes, and what each compiles."""
PACE = {"smt": 0.011, "coconet": 0.083, "smc_time": 0.02}
"""Seconds a round of 200 samples on an H200; of other models SMc's, and what is measured as it goes counts."""
SLOWEST = 0.07
"""SMc's pace, and that of all who have its network."""
JUDGED = {"smt": 2.0, "smc_time": 3.0, "coconet": 1.0}
"""Seconds that a training takes longer than it was given: the last validation and the same questions for all."""
JUDGED_SLOWLY = 6.5
UNJUDGED = 2.0
"""The same of a training that is judged later."""
JUDGING = 15.0
RESERVE = 1.0
"""Seconds that any other task may take longer than its rounds."""
EQUAL = {"smc": "pitch", "smc_keep": "pitch", "smc_time": "time", "sd": "pitch", "smt": "transformer"}
"""Models that are trained for equal seconds, in this order, and whose processes do it."""
THIRD = {"smc": "pitch", "sd": "pitch", "smt": "transformer", "coconet": "coconet"}
"""Those of the third sitting."""
SELDOM = 250
"""Steps between validations of the U-Nets there, which take 0.7 s each."""


def train(group: str, name: str, seconds: float, **more: Any) -> Task:
    """Train for so many seconds."""
    return group, {"do": "train", "model": name, "seconds": seconds, **more}


def draw(group: str, name: str, variant: str, rounds: int, key: str = "") -> Task:
    """Draw all samples of a variant."""
    return group, {"do": "sample", "model": name, "variant": variant, "rounds": rounds, "key": key}


def name_of(task: dict[str, Any]) -> str:
    """Which model it makes or needs."""
    return task.get("label") or task["model"]


def expected(task: dict[str, Any], pace: dict[str, float]) -> float:
    """Seconds that a task will take."""
    name = name_of(task)
    if task["do"] == "judge":
        return JUDGED.get(task["model"], JUDGING)
    if task["do"] == "train" and not task.get("judged", True):
        return task["seconds"] + UNJUDGED
    if task["do"] == "train":
        return task["seconds"] + JUDGED.get(task["model"], JUDGED_SLOWLY)
    return task.get("rounds", 0) * pace.get(name, PACE.get(name, SLOWEST)) + RESERVE


def table2(arguments: Namespace, left: float) -> list[Task]:
    """The first sitting."""
    most, half, short = arguments.rounds, arguments.short, arguments.others
    pitch, transformer = "pitch", "transformer"
    return [
        train(pitch, "smc", arguments.seconds),
        draw(pitch, "smc", "T", most),
        train(transformer, "smt", arguments.transformer),
        draw(transformer, "smt", "T", most),
        *(draw(transformer, "smt", variant, half, f"{variant}-half") for variant in ("T", "plain")),
        *(draw(pitch, "smc", variant, half, f"{variant}-half") for variant in ("T", "plain", "A", "AT", "ATN")),
        (pitch, {"do": "figures", "model": "smc", "rounds": half}),
        train("coconet", "coconet", arguments.coconet),
        draw("coconet", "coconet", "own", arguments.own),
        train(pitch, "sd", short),
        draw(pitch, "sd", "T", half),
        train(pitch, "smc", short, label="smc_short"),
        draw(pitch, "smc_short", "T", half),
        train(pitch, "smc_keep", short),
        draw(pitch, "smc_keep", "T", half),
        train("time", "smc_time", short),
        draw("time", "smc_time", "T", half),
        draw(pitch, "sd", "plain", half),
        (transformer, {"do": "figures", "model": "smt", "rounds": half}),
        train(transformer, "smt", arguments.seconds, label="smt_long", least=arguments.transformer, last=True),
        draw(transformer, "smt_long", "T", half),
        draw(pitch, "smc", "T", 2 * most, "T-long"),
        draw(pitch, "smc", "plain", most),
    ]


def equal(arguments: Namespace, left: float) -> list[Task]:
    """Equal seconds, at most --seconds: what is left, shared; of the last ones none if that would be under --least.

    If what comes before takes longer than it should, SMt, the last, may be trained for less, and its record says so.
    """
    short = arguments.short

    def of(name: str, seconds: float) -> list[Task]:
        group = EQUAL[name]
        return [
            train(group, name, seconds, seed=arguments.seed, **({"least": seconds / 3} if name == "smt" else {})),
            (group, {"do": "save", "model": name}),
            draw(group, name, "T", short, f"T-{short}"),
        ]

    names, share = shared(list(EQUAL), of, arguments, left)
    rest = [draw(EQUAL[name], name, "plain", short, f"plain-{short}") for name in ("smt", "smc", "sd") if name in names]
    return [task for name in names for task in of(name, share)] + rest


def shared(
    names: list[str], of: Callable[[str, float], list[Task]], arguments: Namespace, left: float
) -> tuple[list[str], float]:
    """How many seconds each gets, at most --seconds, and who: of the last ones none if that would be under --least.

    Args:
        names: models, the most valuable first.
        of: what is done of a model that is trained for so many seconds.
        arguments: of the sitting.
        left: seconds for all.
    """
    share = 0.0
    while names:
        around = sum(expected(task, {}) for name in names for _, task in of(name, 0.0))
        share = min(arguments.seconds, (left - around) / len(names))
        if share >= arguments.least:
            break
        names = names[:-1]
    return names, math.floor(10 * share) / 10


def third(arguments: Namespace, left: float) -> list[Task]:
    """Three trainings of equal seconds."""

    def of(name: str, seconds: float) -> list[Task]:
        more: dict[str, Any] = {"validate_every": SELDOM} if THIRD[name] == "pitch" else {}
        return [
            train(THIRD[name], name, seconds, seed=arguments.seed, judged=False, **more),
            (THIRD[name], {"do": "save", "model": name}),
        ]

    names, share = shared(list(THIRD), of, arguments, left)
    return [task for name in names for task in of(name, share)]


def long(arguments: Namespace, left: float) -> list[Task]:
    """Chains of what ``third`` made, the paper's first."""
    short, most, longest = arguments.short, arguments.rounds, arguments.long

    def ask(name: str, kind: str) -> Task:
        return THIRD[name], {"do": kind, "model": name}

    def of(name: str, variant: str, rounds: int) -> Task:
        return draw(THIRD[name], name, variant, rounds, f"{variant}-{rounds}")

    return [
        ask("smc", "load"),
        of("smc", "T", longest),
        ask("smt", "load"),
        of("smt", "T", most),
        ask("sd", "load"),
        of("sd", "T", most),
        *(ask(name, "judge") for name in ("smt", "smc")),
        of("smt", "T", longest),
        ("pitch", {"do": "figures", "model": "smc", "rounds": short}),
        of("smc", "plain", longest),
        of("smc", "AT", most),
        ask("coconet", "load"),
        of("coconet", "own", arguments.own),
        *(of("smc", variant, most) for variant in ("ATN", "A")),
        of("smt", "plain", longest),
        ask("sd", "judge"),
        *(of(name, "T", short) for name in ("smt", "smc", "sd")),
        of("smc", "T", most),
        of("sd", "plain", most),
        of("smc", "plain", most),
    ]


def late(arguments: Namespace, left: float) -> list[Task]:
    """Long chains of what was saved."""
    short, most, long = arguments.short, arguments.rounds, arguments.long

    def of(name: str, variant: str, rounds: int) -> Task:
        return draw(EQUAL[name], name, variant, rounds, f"{variant}-{rounds}")

    return [
        *((EQUAL[name], {"do": "load", "model": name}) for name in ("smc", "smt")),
        of("smc", "T", long),
        of("smt", "T", long),
        of("smc", "plain", long),
        *(of("smc", variant, most) for variant in ("AT", "ATN", "A")),
        ("pitch", {"do": "figures", "model": "smc", "rounds": short}),
        of("smt", "T", most),
        *(of("smc", variant, most) for variant in ("T", "plain")),
        of("smt", "plain", long),
    ]


PLANS: dict[str, Callable[[Namespace, float], list[Task]]] = {
    "table2": table2, "equal": equal, "late": late, "third": third, "long": long,
}  # fmt: skip
