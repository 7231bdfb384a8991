"""Small models of pictures with random weights, whose laws can be listed."""

from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from anyfill.images.about import NOTES, About
from anyfill.images.model import ImageModel, load
from anyfill.images.recipes import picture_model, picture_objective
from anyfill.training import save_model


def untrained(about: About, *, width: int = 32) -> ImageModel:
    """Every weight random, so that every input matters; asked as if it were trained."""
    model = picture_model(about, width=width, depth=2, heads=2)
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.25)
    model.factorizations = picture_objective(about).factorizations
    return ImageModel(model.eval(), about, "a random model")


@pytest.fixture(scope="session")
def black_and_white() -> ImageModel:
    return untrained(About(8, 8, 1, 2, "threshold", 0.0))


@pytest.fixture(scope="session")
def colour() -> ImageModel:
    return untrained(About(4, 6, 3, 256, None, 128.0))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model of 8x8 black and white pictures."""
    made = untrained(About(8, 8, 1, 2, "threshold", 0.0))
    place = tmp_path_factory.mktemp("models") / "tiny"
    save_model(made.model, place, notes={NOTES: asdict(made.about)})
    load(place)
    return place
