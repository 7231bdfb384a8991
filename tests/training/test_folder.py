"""A folder holds the previous contents or the new ones, whatever happens in between."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from anyfill.training.checkpoint import CONFIG, CheckpointError, read_config, read_tensors, write_folder


def save(folder: Path, number: int) -> None:
    files = {"weights": {"w": torch.full((50,), float(number))}, "resume": {"r": torch.tensor([number])}}
    write_folder(folder, {"number": number}, files)


def held(folder: Path) -> int:
    """The number of the one save the folder holds, read from all its files."""
    config = read_config(folder)
    number = config["number"]
    assert torch.equal(read_tensors(folder, config, "weights")["w"], torch.full((50,), float(number)))
    assert torch.equal(read_tensors(folder, config, "resume")["r"], torch.tensor([number]))
    return number


class Crash(BaseException):
    """Not an Exception: nothing may swallow it."""


def failing_at(call: int, error: BaseException, real: Callable[..., Any]) -> Callable[..., Any]:
    count = 0

    def step(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count == call:
            raise error
        return real(*arguments, **options)

    return step


@pytest.mark.parametrize("function", ["replace", "fsync", "unlink"])
@pytest.mark.parametrize("call", range(1, 7))
@pytest.mark.parametrize("error", [Crash(), OSError(28, "No space left on device")], ids=["crash", "full"])
def test_a_save_cut_off_anywhere_leaves_the_old_or_the_new_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, call: int, error: BaseException
) -> None:
    save(tmp_path, 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, function, failing_at(call, error, getattr(os, function)))
        with contextlib.suppress(Crash, CheckpointError):
            save(tmp_path, 2)
    assert held(tmp_path) in (1, 2)
    save(tmp_path, 3)
    assert held(tmp_path) == 3
    assert len(list(tmp_path.iterdir())) == 3, "what the cut-off save left behind is gone"


def test_a_full_disk_is_a_checkpoint_error_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 1)
    before = sorted(path.name for path in tmp_path.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing_at(2, OSError(28, "No space left on device"), os.fsync))
        with pytest.raises(CheckpointError, match=r"No space left on device.*unchanged"):
            save(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert held(tmp_path) == 1


FULL = """
import resource, signal, sys, torch
from pathlib import Path
from anyfill.training.checkpoint import CheckpointError, write_folder
folder = Path(sys.argv[1])
write_folder(folder, {"number": 1}, {"weights": {"w": torch.ones(50)}, "resume": {"r": torch.tensor([1])}})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write_folder(folder, {"number": 2}, {"resume": {"r": torch.tensor([2])}, "weights": {"w": torch.ones(5000)}})
except CheckpointError as error:
    print("refused:", error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
def test_a_disk_that_really_is_full_leaves_the_previous_contents_alone(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.startswith("refused:")
    config = read_config(tmp_path)
    assert config["number"] == 1
    assert torch.equal(read_tensors(tmp_path, config, "weights")["w"], torch.ones(50))
    assert len(list(tmp_path.iterdir())) == 3


def test_a_file_where_the_folder_should_be_is_a_checkpoint_error(tmp_path: Path) -> None:
    place = tmp_path / "model"
    place.write_text("something else")
    for folder in (place, place / "deeper"):
        with pytest.raises(CheckpointError, match="could not be saved"):
            save(folder, 1)
    with pytest.raises(CheckpointError, match="is a file"):
        read_config(place)
    assert place.read_text() == "something else"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder nobody may write to")
def test_a_folder_that_cannot_be_written_is_a_checkpoint_error() -> None:
    with pytest.raises(CheckpointError, match="could not be saved"):
        save(Path("/proc/self/model"), 1)


def test_files_of_others_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    others = [tmp_path / name for name in ("metrics.jsonl", "weights-mine.safetensors", "notes.part")]
    for other in others:
        other.write_text("mine")
    save(tmp_path, 1)
    save(tmp_path, 2)
    assert all(other.read_text() == "mine" for other in others)
    assert len(list(tmp_path.iterdir())) == 3 + len(others)


def test_the_config_of_another_program_is_never_replaced(tmp_path: Path) -> None:
    theirs = tmp_path / CONFIG
    theirs.write_text('{"architectures": ["theirs"]}')
    with pytest.raises(CheckpointError, match="is not of anyfill"):
        save(tmp_path, 1)
    assert theirs.read_text() == '{"architectures": ["theirs"]}'
    assert list(tmp_path.iterdir()) == [theirs]


def test_unchanged_tensors_are_not_written_again(tmp_path: Path) -> None:
    save(tmp_path, 1)
    inodes = {path.name: path.stat().st_ino for path in tmp_path.glob("weights-*")}
    write_folder(
        tmp_path, {"number": 1}, {"weights": {"w": torch.full((50,), 1.0)}, "resume": {"r": torch.tensor([9])}}
    )
    assert {path.name: path.stat().st_ino for path in tmp_path.glob("weights-*")} == inodes


def weights_file(folder: Path) -> Path:
    return next(folder.glob("weights-*"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))


def pickled(path: Path) -> None:
    path.write_bytes(b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00N.")


def edit(key: str, value: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))

    return change


DAMAGE = [
    (weights_file, cut, "cut off"),
    (weights_file, flip, "sha256 differs"),
    (weights_file, pickled, "bytes instead of"),
    (weights_file, Path.unlink, "is missing"),
    (lambda folder: folder / CONFIG, cut, "not JSON"),
    (lambda folder: folder / CONFIG, pickled, "not JSON"),
    (lambda folder: folder / CONFIG, lambda path: path.write_bytes(b""), "not JSON"),
    (lambda folder: folder / CONFIG, lambda path: path.write_text("[" * 100_000), "not JSON"),
    (lambda folder: folder / CONFIG, lambda path: path.write_text("[1]"), "not the description"),
    (lambda folder: folder / CONFIG, lambda path: path.write_text("{}"), "not the description"),
    (lambda folder: folder / CONFIG, Path.unlink, "no such file"),
    (lambda folder: folder / CONFIG, edit("format", 99), "has format 99"),
    (lambda folder: folder / CONFIG, edit("number", 7), "digest differs"),
    (lambda folder: folder / CONFIG, edit("files", {}), "digest differs"),
]


@pytest.mark.parametrize(("which", "damage", "message"), DAMAGE)
def test_every_kind_of_damage_is_one_clear_sentence(
    tmp_path: Path, which: Callable[[Path], Path], damage: Callable[[Path], None], message: str
) -> None:
    save(tmp_path, 1)
    damage(which(tmp_path))
    with pytest.raises(CheckpointError, match=message) as caught:
        held(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("position", range(0, 700, 23))
def test_any_flipped_bit_of_the_config_is_noticed(tmp_path: Path, position: int) -> None:
    save(tmp_path, 1)
    path = tmp_path / CONFIG
    content = bytearray(path.read_bytes())
    content[position % len(content)] ^= 4
    path.write_bytes(bytes(content))
    with contextlib.suppress(CheckpointError):
        assert held(tmp_path) == 1  # a changed space between two values changes nothing


def test_a_missing_folder_is_a_checkpoint_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such file"):
        read_config(tmp_path / "nowhere")
