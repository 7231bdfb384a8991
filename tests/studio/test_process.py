"""A studio in a process of its own: killed, closed and misused; nothing is left half done."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest

from anyfill.studio.jobs import GRACE
from benchmarks.studio_browser import running


def post(base, path, body):
    data = json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=60))


def get(base, path):
    return json.load(urllib.request.urlopen(base + path, timeout=60))


def waited(condition, seconds=60.0):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)
    return condition()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    tempfile.tempdir = None
    yield tmp_path
    tempfile.tempdir = None


@pytest.mark.slow
def test_killed_in_the_middle_of_a_job_it_leaves_no_partial_file(place):
    with running() as (base, process):
        table = post(base, "api/tables/example", {})["table"]
        job = post(base, f"api/tables/{table}/fill", {})["job"]
        assert waited(lambda: get(base, f"api/jobs/{job}")["state"] == "done")
        job = post(base, f"api/tables/{table}/download", {"what": "report"})["job"]
        assert waited(lambda: get(base, f"api/jobs/{job}")["state"] == "running")
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    left = [path for path in place.rglob("*") if path.is_file()]
    assert [path for path in left if path.suffix == ".html"] == []  # the report is there as a whole or not at all
    assert all(path.parent.name.startswith("anyfill-studio-") for path in left)
    assert not list(Path.cwd().glob("*.part"))
    with running() as (base, _):
        get(base, "api/models")
        assert len(list(place.glob("anyfill-studio-*"))) == 1  # the next one has swept
    assert list(place.glob("anyfill-studio-*")) == []


@pytest.mark.slow
def test_ended_in_the_middle_of_a_job_it_leaves_nothing_at_all(place):
    with running() as (base, process):
        table = post(base, "api/tables/example", {})["table"]
        job = post(base, f"api/tables/{table}/fill", {"recipe": "auto"})["job"]
        assert waited(lambda: get(base, f"api/jobs/{job}")["events"] > 1)  # it has told how far it is
        assert [path for path in place.rglob("*") if path.is_file()]
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)  # by impatient people
        assert process.wait(30) == 0  # Ctrl-C is how it is ended
    assert not [path for path in place.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_a_closed_tab_ends_its_job(place):
    with running() as (base, _):
        job = post(base, "api/text/write", {"prompt": "the ", "length": 5000, "seed": 1})["job"]
        host, port = base.removeprefix("http://").rstrip("/").split(":")
        with socket.create_connection((host, int(port))) as line:
            line.sendall(f"GET /api/jobs/{job}/events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            assert line.recv(200).startswith(b"HTTP/1.1 200")
        # asked no more often than the grace lasts, or each question would count as watching
        time.sleep(GRACE + 4)
        assert get(base, f"api/jobs/{job}")["state"] == "cancelled"


def test_a_missing_package_is_named_with_what_to_install():
    code = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "from anyfill.cli.main import run; sys.exit(run(['studio', '--no-browser']))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 2
    assert 'pip install "anyfill[studio]"' in found.stderr
    assert "Traceback" not in found.stderr


def test_a_port_that_is_taken_is_named():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        command = [sys.executable, "-m", "anyfill", "studio", "--no-browser", "--port", port]
        found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 2
    assert f"--port {port}: expected an address of this machine that is free" in found.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--host", "0.0.0.0"], "--token"), (["--model", "/nowhere"], "--model"), (["--port", "99999"], "--port")],
)
def test_what_cannot_be_served_is_said_in_one_sentence(options, words):
    command = [sys.executable, "-m", "anyfill", "studio", "--no-browser", *options]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ))
    assert found.returncode == 2
    assert words in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1
