"""The model of text that the commands use: the one that ships with anyfill, or a folder of the user's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, cast

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.text.recipes import require_codes_of
from anyfill.text.vocabularies import vocabulary_of
from anyfill.text.vocabulary import Vocabulary
from anyfill.training import load_model, load_notes

SHIPPED = "models/text8"
"""Where the package keeps its own model."""
SHIPPED_NAME = "the model that ships with anyfill"


@dataclass(frozen=True, slots=True, eq=False)
class TextModel:
    """A trained model of text and the meaning of its codes.

    Attributes:
        model: 32-bit weights, in evaluation mode.
        vocabulary: of as many codes as the model has.
        name: what to call it.
        lines: it was trained on lines, each from the first place of a row on.
        lengths: of such a model without an end code: how many lines of 0, 1, 2 … codes it was trained on.
    """

    model: Model
    vocabulary: Vocabulary
    name: str
    lines: bool = False
    lengths: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """N, the codes of a row: all that the model sees at a time."""
        return self.model.variables

    @property
    def is_shipped(self) -> bool:
        """Whether it is the one that ships with anyfill."""
        return self.name == SHIPPED_NAME


def load(path: str | Path | None = None) -> TextModel:
    """A model of text, ready to be asked.

    Args:
        path: a folder made by ``anyfill text train``; None = the model that ships with anyfill.

    Raises:
        ValueError: there is no model, it is none of text, its codes are not its vocabulary's, or it was never trained.
    """
    if path is not None:
        return _load(Path(path), str(path))
    with resources.as_file(resources.files("anyfill").joinpath(SHIPPED)) as folder:
        if not (folder / "config.json").is_file():
            expected = "the folder of a model (this anyfill comes without one of its own)"
            raise refuse("--model", expected=expected, got="none")
        return _load(folder, SHIPPED_NAME)


def _load(folder: Path, name: str) -> TextModel:
    notes = load_notes(folder)
    vocabulary = vocabulary_of(notes, name)
    model = load_model(folder).float()
    require_codes_of(model, vocabulary)
    if not model.factorizations:
        raise refuse(name, expected="a trained model", got="one that was never trained")
    about = notes.get("text")
    lines, lengths = _lines_of(cast("Mapping[str, Any]", about)) if isinstance(about, Mapping) else (False, ())
    return TextModel(model, vocabulary, name, lines, lengths if vocabulary.end is None else ())


def _lines_of(about: Mapping[str, Any]) -> tuple[bool, tuple[int, ...]]:
    """Whether rows are lines, and how many there are of each length, by the notes of a model."""
    counts = about.get("lengths") or ()
    return bool(about.get("lines")), tuple(int(count) for count in counts)
