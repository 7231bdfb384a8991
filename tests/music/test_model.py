"""Which models the commands for music take."""

from pathlib import Path

import pytest
import torch

from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.music import model as music_model
from anyfill.music.model import one_pass_chorale_model
from anyfill.networks import Discrete, OnePassTransformer
from anyfill.questions import Factorization
from anyfill.training import save_model


def test_sixteen_bit_weights_are_loaded_as_thirty_two(tmp_path: Path) -> None:
    model = one_pass_chorale_model(128, width=16, depth=1, heads=2)
    model.factorizations = frozenset((Factorization.DIRECT,))
    save_model(model.half(), tmp_path / "m")
    loaded = music_model.load_network(tmp_path / "m")
    assert {weights.dtype for weights in loaded.parameters()} == {torch.float32}
    assert not loaded.training


def test_models_of_something_else_and_untrained_ones_are_refused(tmp_path: Path) -> None:
    save_model(one_pass_chorale_model(128, width=16, depth=1, heads=2), tmp_path / "untrained")
    with pytest.raises(ValueError, match="expected a trained model"):
        music_model.load_network(tmp_path / "untrained")
    coins = Model(OnePassTransformer(Discrete(2), (3,), 2, width=16, depth=1, heads=2), Categorical(2))
    save_model(coins, tmp_path / "coins")
    with pytest.raises(ValueError, match="expected a model of four-part music"):
        music_model.load_network(tmp_path / "coins")
    with pytest.raises(ValueError, match="not a model folder"):
        music_model.load_network(tmp_path / "nothing")


def test_an_installation_without_a_model_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(music_model, "SHIPPED", "models/none")
    with pytest.raises(ValueError, match="--model: expected the folder of a model"):
        music_model.load_network()


def test_the_model_that_ships_is_a_model_of_chorales() -> None:
    assert music_model.load_network().variables == 4 * 24 * 16
