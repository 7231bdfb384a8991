"""Docstrings as the site shows them: doctests become blocks of code, and the double colon before a block one colon."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*\n).+)*(?:\n\n(?=>>> ).*(?:\n(?!\s*\n).+)*)*", re.M)


class Docstrings(griffe.Extension):
    """Rewrites every docstring that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            text = re.sub(r"::$", ":", obj.docstring.value, flags=re.M)
            text = _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)
            obj.docstring.value = text.replace("<BLANKLINE>", "")
