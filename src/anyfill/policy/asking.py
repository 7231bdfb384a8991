"""Words of the command line about a question: what is held, and which part of a trajectory is shown."""

import math
import re
from collections.abc import Sequence

from anyfill.checks import refuse
from anyfill.policy.layout import Layout


def held_values(layout: Layout, words: Sequence[str]) -> dict[str, float]:
    """Actions and their values from NAME=VALUE."""
    own = layout.names[layout.blocks.place("action")]
    held: dict[str, float] = {}
    for word in words:
        name, _, said = word.rpartition("=")
        try:
            value = float(said)
        except ValueError:
            value = math.nan
        if name.strip() not in own or not math.isfinite(value):
            expected = f"NAME=VALUE with an action ({', '.join(own[:4])}{' …' if len(own) > 4 else ''})"
            raise refuse("--hold", expected=expected if own else "nothing, as there are no actions", got=word)
        held[name.strip()] = value
    return held


def points_shown(layout: Layout, words: str | None) -> range:
    """The points of a whole trajectory from 0%-30%."""
    if words is None:
        return range(0)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)%?\s*-\s*(\d+(?:\.\d+)?)%?\s*", words)
    if not layout.whole or found is None or not 0 <= float(found[1]) < float(found[2]) <= 100:
        expected = "FROM%-TO% of a whole trajectory, such as 0%-30%"
        raise refuse("--show", expected=expected, got=words if layout.whole else f"{words}, for rows of steps")
    return range(round(float(found[1]) / 100 * layout.whole), round(float(found[2]) / 100 * layout.whole))
