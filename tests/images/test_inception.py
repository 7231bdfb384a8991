"""FID's Inception: as many weights as it has, and the features that pytorch-fid's network gives with the same ones."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from anyfill.images.inception import Inception, inception_features
from anyfill.images.metrics import feature_distance


def random_weights() -> dict[str, Tensor]:
    """Weights by name that keep the scale of what goes through; the same ones wherever they are drawn."""
    source, found = torch.Generator().manual_seed(0), dict[str, Tensor]()
    for name, value in sorted(Inception().state_dict().items()):
        if name.endswith("conv.weight"):
            noise = torch.randn(value.shape, generator=source, dtype=torch.float64)
            found[name] = (noise * (2 / value[0].numel()) ** 0.5).float()
        elif name.endswith(("bn.weight", "running_var")):
            found[name] = (0.8 + 0.4 * torch.rand(value.shape, generator=source, dtype=torch.float64)).float()
        elif name.endswith(("bn.bias", "running_mean")):
            found[name] = (0.2 * torch.randn(value.shape, generator=source, dtype=torch.float64)).float()
    return found


def pictures() -> np.ndarray:
    """uint8 (2, 20, 30, 3)."""
    return np.random.default_rng(0).integers(0, 256, (2, 20, 30, 3)).astype(np.uint8)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("inception") / "weights.pth"
    rest = {"fc.weight": torch.zeros(1008, 2048), "Mixed_5b.branch1x1.bn.num_batches_tracked": torch.tensor(0)}
    torch.save(random_weights() | rest, path)  # the classifier and counts are in the file, too, and are not read
    return path


def test_it_has_the_weights_of_inception_v3() -> None:
    network = Inception()
    assert sum(one.numel() for one in network.parameters()) == 21_785_568  # torchvision's, less its classifier
    shapes = {name: tuple(one.shape) for name, one in network.state_dict().items()}
    assert shapes["Conv2d_1a_3x3.conv.weight"] == (32, 3, 3, 3)
    assert shapes["Mixed_6e.branch7x7dbl_3.conv.weight"] == (192, 192, 1, 7)
    assert shapes["Mixed_7c.branch3x3dbl_3b.conv.weight"] == (384, 384, 3, 1)


def test_features_are_those_of_the_network_of_pytorch_fid(weights, tmp_path) -> None:
    """The numbers are of pytorch-fid 0.3.0 (with torchvision 0.29.2), given these weights and these pictures."""
    features = inception_features(weights)
    found = features(pictures())
    assert found.shape == (2, 2048)
    assert found[0, :4].tolist() == pytest.approx([0.18454, 0.02013, 0.06065, 0.00017], abs=2e-4)
    assert found[1, -4:].tolist() == pytest.approx([0.26039, 0.16201, 0.00133, 0.0], abs=2e-4)
    assert float(found.mean()) == pytest.approx(0.893677, abs=1e-4)
    save_file(random_weights(), tmp_path / "same.safetensors")
    grey = pictures()[..., :1]
    torch.testing.assert_close(inception_features(tmp_path / "same.safetensors")(grey), features(grey.repeat(3, 3)))
    assert feature_distance(pictures(), pictures(), features) == pytest.approx(0.0, abs=1e-3)


def test_other_files_are_refused_in_a_sentence(tmp_path) -> None:
    for name, content, words in (
        ("none.pth", None, "got no such file"),
        ("text.pth", b"hello", "got something else"),
        ("text.safetensors", b"hello", "got something else"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=words):
            inception_features(tmp_path / name)
    fewer = random_weights()
    fewer.pop("Mixed_7c.branch_pool.conv.weight")
    torch.save(fewer, tmp_path / "fewer.pth")
    with pytest.raises(ValueError, match=r"1 differ, the first: Mixed_7c.branch_pool.conv.weight"):
        inception_features(tmp_path / "fewer.pth")
    torch.save(["not", "weights"], tmp_path / "list.pth")
    with pytest.raises(ValueError, match="expected tensors by name, got list"):
        inception_features(tmp_path / "list.pth")
