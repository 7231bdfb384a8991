"""A table model in a folder, as the command line keeps it: the model, and how files are to be read for it.

``reading.json`` holds the tokens that stand for a missing value in text, so that they need to be said only once. The
folder is made under another name beside its place and then renamed into it: it is there as a whole or not at all.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from anyfill.checks import refuse
from anyfill.disk import whole_folder
from anyfill.interface.output import READING, require_place
from anyfill.tables.frames import MISSING_TOKENS


def load_table_model(folder: str | Path) -> Any:
    """The ``TableModel`` in a folder; ValueError if there is none."""
    from anyfill.tables.estimator import TableModel

    if Path(folder).is_file():
        raise refuse(f"{folder}", expected="the folder of a model, which comes first", got="a file")
    return TableModel.load(Path(folder))


def missing_tokens(folder: Path, further: Sequence[str] = ()) -> tuple[str, ...]:
    """What stands for a missing value in files for this model: as when it was trained, and further ones."""
    try:
        kept = json.loads((folder / READING).read_bytes())
        tokens = cast("list[str]", kept["missing"])
    except (OSError, ValueError, KeyError, TypeError):
        tokens = list(MISSING_TOKENS)
    return tuple(dict.fromkeys([*tokens, *further]))


def save_table_model(model: Any, folder: Path, missing: Sequence[str]) -> None:
    """Save a ``TableModel`` with its tokens, in place of what ``require_place`` allows."""
    require_place(folder)
    with whole_folder(folder) as fresh:
        model.save(fresh)
        (fresh / READING).write_text(json.dumps({"missing": list(missing)}) + "\n", encoding="utf-8")
