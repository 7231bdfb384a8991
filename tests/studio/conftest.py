"""A studio to ask: in this process, on a port of its own where a browser or a kill is needed."""

import json

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from fastapi.testclient import TestClient

from anyfill.studio.models import Models
from anyfill.studio.security import Access
from anyfill.studio.server import guarded, make_app

HOST = "http://127.0.0.1:8377"


class Visitor:
    """What a page does: asks, watches a job to its end."""

    def __init__(self, client):
        self.client = client

    def get(self, path, **options):
        return self.client.get(path, **options)

    def post(self, path, body=None, **options):
        return self.client.post(path, json=body, **options)

    def events(self, job):
        """All events of a job, as (name, data), to its end."""
        found, name = [], ""
        with self.client.stream("GET", f"/api/jobs/{job}/events") as lines:
            for line in lines.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    found.append((name, json.loads(line.removeprefix("data: "))))
        return found

    def done(self, path, body=None):
        """The result of a job that must come to its end."""
        answer = self.post(path, body)
        assert answer.status_code == 202, answer.text
        name, data = self.events(answer.json()["job"])[-1]
        assert name == "done", data
        return data


@pytest.fixture(scope="session")
def app():
    """One application for all tests: models are loaded once."""
    return make_app(Models(), warm=False)


@pytest.fixture(scope="session")
def visitor(app):
    """Somebody at a page of the studio."""
    with TestClient(guarded(app, Access(port=8377)), base_url=HOST) as client:
        yield Visitor(client)


@pytest.fixture
def studio(visitor, app):
    """The running studio itself."""
    return app.state.studio
