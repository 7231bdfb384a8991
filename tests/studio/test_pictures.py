"""Pictures through the studio, by a tiny model: what is given never changes, answers are those of Python."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from anyfill import images
from anyfill.studio.models import entries_of
from anyfill.studio.picture_form import WirePicture

SIDE = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of 6 x 6 pictures, black and white: a bar, upright or flat."""
    place = tmp_path_factory.mktemp("pictures")
    draw = np.random.default_rng(0)
    (place / "train").mkdir()
    for n in range(40):
        pixels = np.zeros((SIDE, SIDE), dtype=np.uint8)
        line = draw.integers(SIDE)
        pixels[(slice(None), line) if n % 2 else line] = 255
        Image.fromarray(pixels).save(place / "train" / f"{n}.png")
    images.train(place / "train", place / "bars", width=16, depth=1, steps=20)
    return place / "bars"


@pytest.fixture(scope="module")
def model(folder):
    return images.load(folder)


@pytest.fixture(scope="module", autouse=True)
def known(app, visitor, folder):
    """The studio knows the model for as long as these tests last."""
    models = app.state.studio.models
    before, models.entries = models.entries, (*models.entries, *entries_of(folder))
    yield
    models.entries = before


def wire(pixels, erased=None):
    """A picture as a page sends it."""
    body = {"width": SIDE, "height": SIDE, "pixels": base64.b64encode(pixels.tobytes()).decode()}
    return body if erased is None else {**body, "erased": base64.b64encode(erased.tobytes()).decode()}


@pytest.fixture
def bar():
    pixels = np.zeros((SIDE, SIDE), dtype=np.uint8)
    pixels[:, 2] = 255
    return pixels


@pytest.fixture
def half():
    erased = np.zeros((SIDE, SIDE), dtype=np.uint8)
    erased[3:] = 1
    return erased


def unpacked(text):
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(SIDE, SIDE)


def test_six_fills_are_those_of_python_and_what_is_given_stays(visitor, model, bar, half):
    body = {"picture": wire(bar, half), "n": 6, "seed": 5, "model": "own-bars"}
    found = visitor.done("/api/pictures/fill", body)
    fills = [unpacked(one) for one in found["pictures"]]
    own = model.fill(WirePicture(**wire(bar, half)).picture(), n=6, seed=5)
    assert len(fills) == 6
    for one, other in zip(fills, own, strict=True):
        assert (one == other.pixels[..., 0]).all()
        assert (one == bar)[:3].all()
    assert np.array(found["uncertainty"]) == pytest.approx(own.uncertainty, abs=1e-3)
    assert (np.array(found["uncertainty"])[:3] == 0).all()


def test_each_fill_has_its_exact_bits_and_fewer_steps_take_fewer_passes(visitor, model, bar, half):
    body = {"picture": wire(bar, half), "n": 3, "seed": 5, "model": "own-bars"}
    whole, few = visitor.done("/api/pictures/fill", body), visitor.done("/api/pictures/fill", {**body, "steps": 2})
    for found in (whole, few):
        own = [model.score(unpacked(one), invert=False).nats / np.log(2) for one in found["pictures"]]
        assert found["bits"] == pytest.approx(own, rel=1e-5)
        assert all((unpacked(one) == bar)[:3].all() for one in found["pictures"])
    assert few["how"]["passes"] < whole["how"]["passes"]
    assert (whole["how"]["kind"], few["how"]["kind"]) == ("exact", "estimate")
    assert "--steps 2" in few["how"]["cli"]
    assert "steps=2" in few["how"]["python"]
    own = model.fill(WirePicture(**wire(bar, half)).picture(), n=3, seed=5, steps=2)
    assert all((unpacked(one) == other.pixels[..., 0]).all() for one, other in zip(few["pictures"], own, strict=True))
    both = {**body, "steps": 2, "sampler": "speculative"}
    name, said = visitor.events(visitor.post("/api/pictures/fill", both).json()["job"])[-1]
    assert name == "failed"
    assert "steps: expected the sampler exact, which they divide, or confidence" in said["detail"]


def test_fills_are_seen_while_they_are_drawn(visitor, bar, half):
    body = {"picture": wire(bar, half), "n": 2, "seed": 5, "model": "own-bars"}
    events = visitor.events(visitor.post("/api/pictures/fill", body).json()["job"])
    frames = [data for name, data in events if name == "frame"]
    assert frames
    first = unpacked(frames[0]["known"])
    assert first[:3].all()
    assert not first[3:].all()


def test_bits_are_exact_and_those_of_python(visitor, model, bar):
    answer = visitor.post("/api/pictures/score", {"picture": wire(bar), "model": "own-bars"}).json()
    own = model.score(WirePicture(**wire(bar)).picture())
    assert answer["bits_per_dimension"] == pytest.approx(own.bits_per_dimension, rel=1e-4)
    assert np.array(answer["surprise"]).sum() == pytest.approx(answer["bits"], rel=1e-2)
    assert answer["how"]["kind"] == "exact"


def test_there_are_pictures_to_begin_with(visitor):
    assert visitor.get("/api/pictures/about?model=own-bars").json()["width"] == SIDE
    found = visitor.get("/api/pictures/examples?model=own-bars").json()["pictures"]
    assert len(found) == 8
    assert {(one["width"], one["height"]) for one in found} == {(SIDE, SIDE)}


def test_an_opened_picture_is_shrunk_to_the_model(visitor, bar):
    large = io.BytesIO()
    Image.fromarray(np.kron(bar, np.ones((10, 10), dtype=np.uint8))).save(large, "png")
    path = f"/api/pictures/upload?width={SIDE}&height={SIDE}"
    found = visitor.client.post(path, files={"file": ("x.png", large.getvalue())}).json()
    assert (unpacked(found["pixels"]) == bar).all()


def bomb():
    """A small file that says it is 40,000 x 40,000."""
    small = io.BytesIO()
    Image.fromarray(np.zeros((2, 2), dtype=np.uint8)).save(small, "bmp")
    data = bytearray(small.getvalue())
    data[18:26] = (40_000).to_bytes(4, "little") * 2
    return bytes(data)


@pytest.mark.parametrize(("name", "content"), [("x.bmp", bomb()), ("x.png", b""), ("x.png", b"\x89PNG broken")])
def test_pictures_that_are_too_large_or_broken_are_refused(visitor, studio, name, content):
    before = set(studio.folder.iterdir())
    answer = visitor.client.post("/api/pictures/upload", files={"file": (name, content)})
    assert answer.status_code == 422
    assert str(studio.folder) not in answer.text
    assert set(studio.folder.iterdir()) == before


@pytest.mark.parametrize("change", [{"pixels": "!!"}, {"pixels": "AAAA"}, {"erased": "AAAA"}, {"width": 7}])
def test_bytes_that_do_not_fit_are_refused(visitor, bar, change):
    body = {"picture": {**wire(bar), **change}, "model": "own-bars"}
    assert visitor.post("/api/pictures/score", body).status_code == 422


def test_nothing_erased_is_said(visitor, bar):
    job = visitor.post("/api/pictures/fill", {"picture": wire(bar), "model": "own-bars"}).json()["job"]
    name, data = visitor.events(job)[-1]
    assert name == "failed"
    assert "erased" in data["detail"]
