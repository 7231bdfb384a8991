"""The model of chorales that the commands use: the one that ships with anyfill, or a folder of the user's own."""

from importlib import resources
from pathlib import Path

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.music.chorale import VOICES
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.training import load_model

SHIPPED = "models/bach"
"""Where the package keeps its own model."""


def load(path: str | Path | None = None) -> Model:
    """A model of four-part music, with 32-bit weights, ready to be asked.

    Args:
        path: a folder made by ``anyfill music train``; None = the model that ships with anyfill.
    """
    if path is not None:
        return _of_chorales(load_model(path).float(), str(path))
    shipped = resources.files("anyfill").joinpath(SHIPPED)
    with resources.as_file(shipped) as folder:
        if not (folder / "config.json").is_file():
            expected = "the folder of a model (this anyfill comes without one of its own)"
            raise refuse("--model", expected=expected, got="none")
        return _of_chorales(load_model(folder).float(), "the model that ships with anyfill")


def _of_chorales(model: Model, name: str) -> Model:
    network = model.network
    if not isinstance(network, OnePassTransformer) or network.shape[1:] != (len(VOICES),) or not network.periods:
        raise refuse(name, expected="a model of four-part music (anyfill music train)", got="a model of something else")
    if not model.factorizations:
        raise refuse(name, expected="a trained model", got="one that was never trained")
    return model
