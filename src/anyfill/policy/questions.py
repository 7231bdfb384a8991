"""Questions about a robot by name, and the family of them to train on.

    policy     p(a | o)                what would be done here
    goal       p(a | o, g)             what would be done here to reach g
    inverse    p(a | o, o')            what leads from o to o'
    forward    p(o' | o, a)            what comes of a
    sensors    p(o_missing | o_rest)   what sensors that are lost would read
    task       p(g | o, a)             which goal explains this
    safe       p(a_rest | o, a_j)      what to do when a motor can only do a_j
    lost       p(a | part of o, …)     what would be done here, told that sensors are lost; with or without the goal,
                                       and with motors that are held: what a robot meets when several things fail
    complete   p(the rest | a window)  a whole trajectory from one window of it, with or without the goal

A draw of ``NamedQuestions`` takes each of its names equally often, and what is missing or held at random: every sensor
with a probability that is itself uniform, motors one at a time (``safe``) or, in half of the rows of ``lost``, none.
Half of the training questions are these, the others of uniform size (``UniformSplits``): in a pilot p(a | o, o') came
out less sure than p(a | o), a sign of a question that was hardly ever trained.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_member
from anyfill.policy.layout import Blocks, Layout
from anyfill.questions import Question
from anyfill.questions.families import below, only, uniforms
from anyfill.questions.question import Family

SEVEN = ("policy", "goal", "inverse", "forward", "sensors", "task", "safe")
NAMES = (*SEVEN, "lost", "complete")
_NEEDS = {
    "policy": ("action",),
    "goal": ("goal", "action"),
    "inverse": ("action", "next"),
    "forward": ("action", "next"),
    "sensors": (),
    "task": ("goal",),
    "safe": ("action",),
    "lost": ("action",),
    "complete": (),
}


def askable(layout: Layout) -> tuple[str, ...]:
    """The names of the questions that make sense of such rows."""
    blocks = layout.blocks
    if layout.whole:
        return ("complete", "task") if blocks.goal else ("complete",)
    names = [name for name in (*SEVEN, "lost") if all(getattr(blocks, need) for need in _NEEDS[name])]
    return tuple(name for name in names if name != "safe" or blocks.action > 1)


@dataclass(frozen=True, slots=True)
class NamedQuestions(Family):
    """Each row's question is one of some names, all equally likely; see above.

    Attributes:
        blocks: how many variables of each group there are.
        names: which questions.
        width: variables of one observation (of the O columns), of which windows are made.
    """

    blocks: Blocks
    names: tuple[str, ...]
    width: int = 1

    def __post_init__(self) -> None:
        if not self.names:
            raise refuse("names", expected="one question at least", got="none")
        for name in self.names:
            require_member("question", name, NAMES)

    @property
    def variables(self) -> int:
        """N."""
        return self.blocks.variables

    def sample(self, batch: int, *, generator: Generator) -> Question:
        number = below(len(self.names), batch, generator)
        given = torch.zeros(batch, self.variables, dtype=torch.bool, device=generator.device)
        asked = given
        # Every name draws the whole batch and keeps its own rows: to count rows first would make a GPU wait.
        for own, name in enumerate(self.names):
            drawn = self._draw(name, batch, generator)
            given = torch.where(number == own, drawn.given, given)
            asked = torch.where(number == own, drawn.asked, asked)
        return Question(given, asked)

    def _draw(self, name: str, batch: int, generator: Generator) -> Question:
        blocks = self.blocks
        here = _members(blocks, generator.device)
        nothing = torch.zeros(batch, self.variables, dtype=torch.bool, device=generator.device)

        def part(of: Tensor) -> Tensor:
            """Each of these with one uniform probability for the row."""
            return of & (uniforms(batch, self.variables, generator) < uniforms(batch, 1, generator))

        def one(group: str) -> Tensor:
            """One variable of a group."""
            place = blocks.place(group)
            return only(place.start + below(place.stop - place.start, batch, generator), self.variables)

        def half() -> Tensor:
            return uniforms(batch, 1, generator) < 0.5

        match name:
            case "sensors":
                asked = part(here["observation"]) | one("observation")
                return Question(here["observation"] & ~asked, asked)
            case "safe":
                held = one("action")
                return Question(nothing | here["observation"] | held, here["action"] & ~held)
            case "lost":
                held = one("action") & half() if blocks.action > 1 else nothing
                told = part(here["observation"]) | (here["goal"] & half()) | held
                return Question(told, here["action"] & ~held)
            case "complete":
                shown = window(blocks.observation, self.width, batch, generator=generator)
                inside = torch.nn.functional.pad(shown, (0, self.variables - blocks.observation))
                return Question(inside | (here["goal"] & half()), here["observation"] & ~inside)
            case _:
                given, asked = _groups(name, blocks)
                return Question(nothing | _union(here, given), nothing | _union(here, asked))


def window(observation: int, width: int, batch: int, *, generator: Generator) -> Tensor:
    """bool (B, observation): a run of observations of ``width`` variables each, of uniform length and place."""
    points = observation // width
    length = 1 + (uniforms(batch, 1, generator) * (points - 1)).long()
    begin = (uniforms(batch, 1, generator) * (points - length + 1)).long()
    place = torch.arange(points, device=generator.device)
    return ((place >= begin) & (place < begin + length)).repeat_interleave(width, 1)


def question(
    layout: Layout, name: str, *, missing: Collection[str] = (), held: Collection[str] = (), shown: Sequence[int] = ()
) -> Question:
    """One question (1, N) by name.

    Args:
        layout: the variables.
        name: one of ``askable(layout)``.
        missing: variables (or columns, at every time) that are not read; asked by ``sensors``.
        held: actions that are given; ``safe`` and ``lost`` take them.
        shown: of a whole trajectory the points that are given, for ``complete``.
    """
    require_member("question", name, askable(layout))
    blocks, here = layout.blocks, _members(layout.blocks, torch.device("cpu"))
    gone, fixed = (find(layout, names, group) for names, group in ((missing, "observation"), (held, "action")))
    if shown and name != "complete":
        raise refuse("--show", expected=f"none with the question {name!r}", got=f"{len(shown)} points")
    if name == "complete":
        inside = torch.zeros(blocks.variables, dtype=torch.bool)
        width = len(layout.columns.observation)
        for point in shown:
            if not 0 <= point < layout.whole:
                raise refuse("points that are given", expected=f"from 0 to {layout.whole - 1}", got=point)
            inside[point * width : (point + 1) * width] = True
        given, asked = inside, here["observation"] & ~inside
    elif name == "sensors":
        given, asked = here["observation"], gone
        if not bool(gone.any()):
            raise refuse("--missing", expected="the sensors to be foreseen", got="none")
    elif name in ("safe", "lost"):
        given, asked = here["observation"] | fixed, here["action"] & ~fixed
        if name == "safe" and not bool(fixed.any()):
            raise refuse("--hold", expected="an action that is held, such as 'motor 3'", got="none")
    else:
        groups = _groups(name, blocks)
        given, asked = (_union(here, one) for one in groups)
    if bool(fixed.any()):  # a motor that is held is told to every question that asks for actions
        given, asked = given | fixed, asked & ~fixed
    made = Question((given & ~gone).unsqueeze(0), asked.unsqueeze(0))
    if not bool(made.asked.any()):
        raise refuse(f"question {name!r}", expected="something that is asked", got="nothing")
    return made


def find(layout: Layout, names: Collection[str], group: str) -> Tensor:
    """bool (N,): the variables of a group by their names, or by those of their columns; ValueError for another."""
    place = layout.blocks.place(group)
    found = torch.zeros(layout.variables, dtype=torch.bool)
    own = layout.names[place]
    for name in names:
        hits = [i for i, one in enumerate(own) if one == name or one.rpartition("@")[0] == name]
        if not hits:
            some = ", ".join(own[:6]) + (" …" if len(own) > 6 else "")
            raise refuse(group, expected=f"one of {some}", got=repr(name))
        found[[place.start + hit for hit in hits]] = True
    return found


def _groups(name: str, blocks: Blocks) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is given and what is asked, by groups."""
    match name:
        case "policy":
            return ("observation",), ("action",)
        case "goal":
            return ("observation", "goal"), ("action",)
        case "inverse":
            return ("observation", "next"), ("action",)
        case "forward":
            return ("observation", "action"), ("next",)
        case _:
            return ("observation", "action") if blocks.action else ("observation",), ("goal",)


def _members(blocks: Blocks, device: torch.device) -> dict[str, Tensor]:
    """bool (N,) for each group."""
    index = torch.arange(blocks.variables, device=device)
    places = {name: blocks.place(name) for name in ("observation", "goal", "action", "next")}
    return {name: (index >= place.start) & (index < place.stop) for name, place in places.items()}


def _union(members: dict[str, Tensor], groups: tuple[str, ...]) -> Tensor:
    return torch.stack([members[group] for group in groups]).any(0)
