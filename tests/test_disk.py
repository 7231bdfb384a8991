"""What is written appears as a whole, and errors name it as the user does."""

import errno
import os
import tempfile
from pathlib import Path

import pytest

from anyfill.disk import require_writable, whole_file, whole_folder, write_bytes


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full."""

    def sync(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", sync)


def test_a_full_disk_names_the_file_that_was_asked_for(tmp_path, monkeypatch, full) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match="No space left") as found:
        write_bytes(b"x", "out/a.png")
    assert found.value.filename == "out/a.png"
    assert list(Path("out").iterdir()) == []


def test_a_folder_that_cannot_be_made_and_a_name_that_is_too_long_are_named_as_they_were_called(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("mine")
    for name in ("file/below/a.png", f"{'a' * 250}.b"):  # the name alone may be, with what is put before it is not
        with pytest.raises(OSError, match=r"\[Errno") as found:
            write_bytes(b"x", name)
        assert found.value.filename == name
        with pytest.raises(OSError, match=r"\[Errno") as found, whole_folder(name):
            pass
        assert found.value.filename == name
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_errors_about_other_files_stay_as_they_are(tmp_path) -> None:
    with pytest.raises(FileNotFoundError) as found, whole_file(tmp_path / "a"):
        (tmp_path / "other").open()
    assert found.value.filename == str(tmp_path / "other")
    with pytest.raises(OSError, match="no zip") as found, whole_file(tmp_path / "a"):
        raise OSError("no zip")
    assert found.value.filename is None


def test_a_folder_is_tried_and_nothing_is_left_of_that(tmp_path, monkeypatch) -> None:
    require_writable(tmp_path / "new" / "deep")
    assert list(tmp_path.iterdir()) == []
    asked = list[Path]()

    def refused(dir: Path) -> None:
        asked.append(dir)
        raise PermissionError(errno.EACCES, "Permission denied", f"{dir}/tmpabc")

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"^new: expected a folder .* got one that cannot \(Permission denied\)$"):
        require_writable("new")
    assert asked == [tmp_path]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc")
def test_where_nothing_can_be_made_even_by_root() -> None:
    with pytest.raises(ValueError, match=r"^/proc/new: expected a folder that can be written to"):
        require_writable("/proc/new")
