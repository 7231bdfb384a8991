"""A saved model comes back bit for bit, and nothing else comes back."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from training_standin import TinyNetwork, tiny_model

import anyfill
from anyfill.corruption import Uniform
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.network import Unspecified
from anyfill.questions import Decreasing, Factorization
from anyfill.training import CheckpointError, load_model, load_notes, save_model


def same_weights(one: Model, two: Model) -> bool:
    first, second = one.state_dict(), two.state_dict()
    return first.keys() == second.keys() and all(
        first[name].dtype == second[name].dtype and torch.equal(first[name], second[name]) for name in first
    )


def test_a_model_comes_back_bit_for_bit_with_all_its_parts(tmp_path: Path) -> None:
    model = Model(
        TinyNetwork(width=8, sizes=(3, 4)),
        Categorical(3),
        corruption=Uniform(3, mask_visible=False),
        order=Decreasing(),
        factorizations=[Factorization.DIRECT, Factorization.DIFFERENCE],
    )
    save_model(model, tmp_path / "a" / "model", notes={"columns": ["x", "y"]})
    back = load_model(tmp_path / "a" / "model", parts=[TinyNetwork])
    assert same_weights(model, back)
    assert (back.likelihood, back.corruption, back.order) == (model.likelihood, model.corruption, model.order)
    assert back.factorizations == model.factorizations
    assert back.network.sizes == (3, 4)
    assert not back.training
    assert load_notes(tmp_path / "a" / "model") == {"columns": ["x", "y"]}


def test_a_model_says_which_anyfill_wrote_it_and_one_of_another_format_is_refused_by_that_name(tmp_path: Path) -> None:
    save_model(tiny_model(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["anyfill"] == anyfill.__version__
    (tmp_path / "config.json").write_text(json.dumps(config | {"format": 999, "anyfill": "9.9"}))
    with pytest.raises(CheckpointError, match=r"use the anyfill that wrote it \(9\.9\)"):
        load_model(tmp_path)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_weights_keep_their_type(tmp_path: Path, dtype: torch.dtype) -> None:
    model = tiny_model().to(dtype)
    save_model(model, tmp_path)
    assert same_weights(model, load_model(tmp_path, parts=[TinyNetwork]))


def test_an_option_that_is_a_tensor_comes_back_bit_for_bit(tmp_path: Path) -> None:
    scale = torch.rand(2, 3, dtype=torch.float64)
    save_model(tiny_model(scale=scale), tmp_path)
    with pytest.raises(ValueError, match=r"parts: expected a list of classes, got <class"):
        load_model(tmp_path, parts=TinyNetwork)  # type: ignore[arg-type]
    back = load_model(tmp_path, parts=[TinyNetwork])
    assert torch.equal(back.network.scale, scale)


@dataclass(eq=False, repr=False)
class Tied(nn.Module, Unspecified):
    """Two layers that share one matrix."""

    variables: int = 2

    def __post_init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(2, 2)
        self.two = nn.Linear(2, 2)
        self.two.weight = self.one.weight
        self.register_buffer("turned", torch.arange(6).view(2, 3).t())

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        return self.two(self.one(x.float())).unsqueeze(-1).expand(-1, -1, 2)


def test_weights_that_are_shared_stay_shared_and_turned_buffers_are_kept(tmp_path: Path) -> None:
    model = Model(Tied(), Categorical(2))
    save_model(model.double(), tmp_path)
    back = load_model(tmp_path, parts=[Tied])
    assert same_weights(model, back)
    assert back.network.one.weight is back.network.two.weight


def test_saving_again_replaces_the_model_as_a_whole(tmp_path: Path) -> None:
    save_model(tiny_model(seed=1), tmp_path)
    save_model(tiny_model(seed=2), tmp_path)
    assert same_weights(load_model(tmp_path, parts=[TinyNetwork]), tiny_model(seed=2))
    assert len(list(tmp_path.iterdir())) == 2


def test_loading_leaves_the_callers_random_numbers_alone(tmp_path: Path) -> None:
    save_model(tiny_model(), tmp_path)
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    load_model(tmp_path, parts=[TinyNetwork])
    assert torch.equal(torch.rand(2), expected)


def test_a_network_of_ones_own_must_be_named_to_be_loaded(tmp_path: Path) -> None:
    save_model(tiny_model(), tmp_path)
    with pytest.raises(CheckpointError, match="TinyNetwork"):
        load_model(tmp_path)


def test_a_network_whose_code_has_changed_is_a_checkpoint_error(tmp_path: Path) -> None:
    save_model(tiny_model(), tmp_path)

    @dataclass(eq=False, repr=False)
    class TinyNetwork(nn.Module, Unspecified):
        variables: int

        def __post_init__(self) -> None:
            super().__init__()

    with pytest.raises(CheckpointError, match="describes no model"):
        load_model(tmp_path, parts=[TinyNetwork])


def test_a_network_that_is_no_dataclass_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    class Plain(nn.Linear, Unspecified):
        variables = 2

    with pytest.raises(ValueError, match=r"network.*dataclass.*Plain"):
        save_model(Model(Plain(2, 2), Categorical(2)), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_notes_come_back_as_json_writes_them_and_others_are_refused(tmp_path: Path) -> None:
    save_model(tiny_model(), tmp_path, notes={"names": {2: "a", 10: "b"}, "shape": (1, 2)})
    assert load_notes(tmp_path) == {"names": {"2": "a", "10": "b"}, "shape": [1, 2]}
    with pytest.raises(CheckpointError, match="cannot be saved: notes: expected a dict of what JSON can write"):
        save_model(tiny_model(), tmp_path, notes={"data": torch.ones(1)})
    load_model(tmp_path, parts=[TinyNetwork])


def test_a_pickled_model_is_never_read(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save({"a": 1}, path)
    with pytest.raises(CheckpointError, match="pickled models are never read"):
        load_model(path)


def test_a_reader_follows_a_writer_that_replaces_the_files_under_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anyfill.training import checkpoint

    save_model(tiny_model(seed=1), tmp_path)
    real, calls = checkpoint.read_tensors, []

    def read(*arguments: object) -> object:
        if not calls:
            calls.append(1)
            save_model(tiny_model(seed=2), tmp_path)
        return real(*arguments)

    monkeypatch.setattr(checkpoint, "read_tensors", read)
    assert same_weights(load_model(tmp_path, parts=[TinyNetwork]), tiny_model(seed=2))
