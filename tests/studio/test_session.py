"""Folders of sessions: what a dead studio left goes, what a living one has stays."""

import os
import subprocess
import sys
import tempfile
import threading
import time

import pytest

pytest.importorskip("fcntl")

from anyfill.studio import session
from anyfill.studio.session import LOCK, PREFIX, Session, sweep

HOLD = """
import sys
from anyfill.studio.session import Session
one = Session()
(one.folder / "half.csv").write_text("a,b")
print(one.folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_killed_session_is_swept_by_the_next_one_and_a_living_one_is_not(place):
    held = [subprocess.Popen([sys.executable, "-c", HOLD], stdin=-1, stdout=-1, text=True) for _ in range(2)]
    folders = [one.stdout.readline().strip() for one in held]
    held[0].kill()
    held[0].wait(30)
    mine = Session()
    assert [os.path.exists(folder) for folder in folders] == [False, True]
    assert os.path.exists(os.path.join(folders[1], "half.csv"))
    held[1].communicate("")
    mine.close()
    assert sweep(place) != []  # it ended without closing: what it left goes now
    assert list(place.iterdir()) == []


def test_only_folders_of_ours_are_swept(place, monkeypatch):
    other, link, young, old = (place / name for name in ("other", f"{PREFIX}link", f"{PREFIX}young", f"{PREFIX}old"))
    for folder in (other, young, old):
        folder.mkdir()
    (other / "kept.txt").write_text("kept")
    link.symlink_to(other)
    (place / f"{PREFIX}file").write_text("a file")
    os.utime(old, (time.time() - 3600,) * 2)
    assert sweep(place) == [old]
    assert (other / "kept.txt").exists()
    (young / LOCK).touch()
    monkeypatch.setattr(session.os, "getuid", lambda: 12345)
    assert sweep(place) == []
    monkeypatch.undo()
    assert sweep(place) == [young]


def test_studios_that_begin_at_once_do_not_take_each_others_folders(place):
    made = []
    threads = [threading.Thread(target=lambda: made.append(Session())) for _ in range(12)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert all((one.folder / LOCK).exists() for one in made)
    assert len({one.folder for one in made}) == 12
    for one in made:
        one.close()
        one.close()
    assert list(place.iterdir()) == []


def test_names_of_files_are_never_given_twice(place):
    mine = Session()
    assert len({mine.new_file(".csv") for _ in range(100)}) == 100
    mine.close()
