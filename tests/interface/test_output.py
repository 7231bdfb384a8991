"""A folder of results appears as a whole or not at all, and nothing of the user's is ever replaced."""

import errno
import os
from pathlib import Path

import pytest

from anyfill.interface.output import replacing, write_results


def make(folder: Path, content: str = "new") -> None:
    with replacing(folder, "test") as place:
        (place / "file.txt").write_text(content)
        write_results(place, "test", {"number": 1})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_new_empty_and_earlier_folders(tmp_path: Path) -> None:
    make(tmp_path / "a" / "b")
    assert names(tmp_path / "a" / "b") == ["file.txt", "results.json"]
    (tmp_path / "empty").mkdir()
    make(tmp_path / "empty")
    make(tmp_path / "empty", "newer")
    assert (tmp_path / "empty" / "file.txt").read_text() == "newer"
    assert names(tmp_path) == ["a", "empty"]  # nothing of the work is left behind


def test_an_exception_leaves_everything_as_it_was(tmp_path: Path) -> None:
    make(tmp_path / "out", "old")
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "out", "test") as place:
        os.rename(place / "nothing", place / "file.txt")
    assert (tmp_path / "out" / "file.txt").read_text() == "old"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("extra", ["notes.txt", ".hidden"])
def test_a_folder_with_anything_else_in_it_is_refused(tmp_path: Path, extra: str) -> None:
    make(tmp_path / "out")
    (tmp_path / "out" / extra).write_text("mine")
    with pytest.raises(ValueError, match="holds other things than an earlier test"):
        make(tmp_path / "out")
    assert (tmp_path / "out" / extra).read_text() == "mine"


def test_the_results_of_another_command_are_refused(tmp_path: Path) -> None:
    make(tmp_path / "out")
    with pytest.raises(ValueError, match="earlier other"), replacing(tmp_path / "out", "other"):
        pass


@pytest.mark.parametrize("content", ["", "[]", "{", '{"made_by": "test"}', '{"made_by": "test", "files": 5}'])
def test_a_damaged_results_file_is_not_trusted(tmp_path: Path, content: str) -> None:
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(ValueError, match="holds other things"):
        make(tmp_path)


def test_a_file_and_the_current_folder_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="is a file"):
        make(tmp_path / "file")
    monkeypatch.chdir(tmp_path)
    for place in (".", ".."):
        with pytest.raises(ValueError, match="is a folder in use"):
            make(Path(place))


def test_something_put_there_meanwhile_is_kept(tmp_path: Path) -> None:
    def interfere() -> None:
        with replacing(tmp_path / "out", "test"):
            (tmp_path / "out").mkdir()
            (tmp_path / "out" / "mine").write_text("mine")

    with pytest.raises(ValueError, match="holds other things"):
        interfere()
    assert names(tmp_path / "out") == ["mine"]


def test_disk_full_while_renaming(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "out", "old")
    rename = os.replace

    def full(source: Path, target: Path) -> None:
        if target == tmp_path / "out" and source.name == "new":
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        rename(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        make(tmp_path / "out")
    assert (tmp_path / "out" / "file.txt").read_text() == "old"
    assert names(tmp_path) == ["out"]
