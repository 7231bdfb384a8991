"""--model DIR: a folder of one's own answers in its room, and the lines of How? name that folder."""

import base64
import contextvars
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient

import anyfill
from anyfill.interface.progress import reported_to
from anyfill.studio import models as studio_models
from anyfill.studio.jobs import CancelledError, Job
from anyfill.studio.models import Models, entries_of
from anyfill.studio.security import Access
from anyfill.studio.server import guarded, make_app
from tests.studio.conftest import HOST, Visitor

SHIPPED = Path(anyfill.__file__).parent / "models"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four models, as somebody has them who trained some."""
    place = tmp_path_factory.mktemp("mine")
    for name, kind in (("letters", "text8"), ("songs", "bach"), ("numerals", "digits")):
        shutil.copytree(SHIPPED / kind, place / name)
    z = np.random.default_rng(0).normal(size=80)
    frame = pd.DataFrame({"a": z.round(3), "b": (2 * z).round(3)})
    anyfill.TableModel(recipe="gaussian", random_state=0).fit(frame).save(place / "people")
    frame.loc[3, "b"] = None
    frame.to_csv(place / "people.csv", index=False)
    return place


@pytest.fixture(scope="module")
def own(folder):
    """Somebody in a studio that was started with that folder."""
    app = make_app(Models((folder,)), warm=False)
    with TestClient(guarded(app, Access(port=8377)), base_url=HOST) as client:
        yield Visitor(client)


def test_each_folder_is_in_the_room_that_it_is_a_model_of(own, folder):
    rooms = {one["key"]: one["room"] for one in own.get("/api/models").json()}
    mine = {key: room for key, room in rooms.items() if key.startswith("own-")}
    assert mine == {"own-letters": "text", "own-songs": "music", "own-numerals": "images", "own-people": "table"}
    assert [entry.key for entry in entries_of(folder / "songs")] == ["own-songs"]


def test_a_text_model_of_ones_own_fills_as_python_does(own, folder):
    body = {"text": "the l_st king", "n": 2, "seed": 1, "model": "own-letters"}
    found = own.done("/api/text/fill", body)
    there = anyfill.text.load(folder / "letters").fill("the l_st king", n=2, seed=1)
    assert [one["text"] for one in found["fills"]] == [one.text for one in there.fills]
    assert f"--model {folder / 'letters'}" in found["how"]["cli"]


def test_a_music_model_of_ones_own_writes_as_python_does(own, folder):
    body = {"verb": "generate", "bars": 1, "n": 1, "seed": 4, "model": "own-songs"}
    events = own.events(own.post("/api/chorale/draw", body).json()["job"])
    piece = next(data for name, data in events if name == "piece")
    there = anyfill.music.load(folder / "songs").generate(bars=1, n=1, seed=4)[0]
    assert events[-1][0] == "done"
    assert piece["steps"] == there.chorale.steps
    assert f"--model {folder / 'songs'}" in events[-1][1]["how"]["cli"]


def test_a_model_of_pictures_of_ones_own_fills_as_python_does(own, folder):
    pixels, erased = np.zeros((28, 28), np.uint8), np.zeros((28, 28), np.uint8)
    erased[26:] = 1
    coded = {name: base64.b64encode(one.tobytes()).decode() for name, one in (("pixels", pixels), ("erased", erased))}
    body = {"picture": {"width": 28, "height": 28, **coded}, "n": 1, "seed": 2, "model": "own-numerals"}
    found = own.done("/api/pictures/fill", body)
    there = anyfill.images.load(folder / "numerals").fill(pixels, erased > 0, n=1, seed=2)
    assert base64.b64decode(found["pictures"][0]) == there[0].pixels.tobytes()
    assert f"--model {folder / 'numerals'}" in found["how"]["cli"]


def test_a_table_model_of_ones_own_fills_without_training(own, folder):
    with open(folder / "people.csv", "rb") as file:
        table = own.client.post("/api/tables/upload", files={"file": ("people.csv", file)}).json()["table"]
    found = own.done(f"/api/tables/{table}/fill", {"model": "own-people"})
    rows = own.get(f"/api/tables/{table}/rows", params={"first": 3, "count": 1}).json()["rows"]
    there = anyfill.TableModel.load(folder / "people").transform(pd.read_csv(folder / "people.csv"))
    assert float(rows[0][1][0]) == pytest.approx(there.loc[3, "b"], rel=1e-3)
    assert found["how"]["cli"] == f"anyfill fill {folder / 'people'} people.csv -o filled.csv --seed 0"
    assert f"TableModel.load('{folder / 'people'}')" in found["how"]["python"]


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="--model"):
        entries_of(tmp_path)


def test_a_job_that_waits_for_a_model_is_cancelled_and_the_next_one_gets_that_model(monkeypatch):
    begun, go_on, calls = threading.Event(), threading.Event(), []

    def slow(entry):
        calls.append(entry.key)
        begun.set()
        go_on.wait()
        return f"the model {entry.key}"

    monkeypatch.setattr(studio_models, "load", slow)
    models, job = Models(), Job(lambda job: {})
    with ThreadPoolExecutor(1) as threads, reported_to(job.tell, check=job.check):
        waiting = threads.submit(contextvars.copy_context().run, models.get, "text", "text8")
        begun.wait()
        job.cancel()
        with pytest.raises(CancelledError):
            waiting.result()
        go_on.set()
    assert models.get("text", "text8") == "the model text8"
    assert calls == ["text8"]


def test_a_model_that_could_not_be_loaded_is_tried_again(monkeypatch):
    tries = iter([OSError("the disk is away"), "there it is"])

    def load(entry):
        if isinstance(found := next(tries), OSError):
            raise found
        return found

    monkeypatch.setattr(studio_models, "load", load)
    models = Models()
    with pytest.raises(OSError, match="away"):
        models.get("text", "text8")
    assert models.get("text", "text8") == "there it is"
