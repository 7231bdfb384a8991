"""The command line: help, versions, and one sentence with the right exit code for everything that goes wrong."""

import errno
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from anyfill.checks import MAX_SEED
from anyfill.cli import demo
from anyfill.cli import main as cli
from anyfill.training import CheckpointError


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    code = cli.run(arguments)
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def one_sentence(error: str) -> bool:
    return error.startswith("anyfill: ") and error.count("\n") == 1 and "Traceback" not in error


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch):
    """Make ``anyfill demo`` fail with an exception."""
    monkeypatch.delenv(cli.DEBUG, raising=False)

    def fail(error: BaseException) -> None:
        def raises(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(demo, "run_demo", raises)

    return fail


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("demo", "--help")])
def test_help(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, error = run(*arguments, capsys=capsys)
    assert (code, error) == (0, "")
    assert "Usage: anyfill" in out
    for word in ("--output", "--seconds", "--seed") if "demo" in arguments else ("demo", "version"):
        assert word in out


@pytest.mark.parametrize("subject", ["music", "text", "image", "translate", "policy"])
def test_every_training_says_alike_how_a_run_is_resumed(subject: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(subject, "train", "--help", capsys=capsys)
    assert code == 0
    said = "Go on with the run in the folder, refusing other settings than its own; begin it if there is none."
    assert said in " ".join(out.replace("│", " ").split())


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, error = run(capsys=capsys)
    assert code in (0, 2)
    assert "Usage: anyfill" in out + error


@pytest.mark.parametrize("arguments", [("version",), ("--version",)])
def test_version(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, error = run(*arguments, capsys=capsys)
    assert (code, error) == (0, "")
    assert re.fullmatch(r"anyfill \S+\nPython 3\.\d+\.\S+\ntorch \S+\ndevice (cpu|cuda) \(.+\)\n", out)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("wrong",), "wrong"),
        (("--wrong",), "--wrong"),
        (("demo", "--wrong"), "anyfill demo --help"),
        (("demo", "--seconds", "soon"), "--seconds"),
        (("demo", "--seconds", "0"), "--seconds"),
        (("demo", "--seconds", "nan"), "seconds"),
        (("demo", "--seed", "-1"), "--seed"),
        (("demo", "--seed", "1.5"), "--seed"),
        (("demo", "too", "much"), "too"),
    ],
)
def test_bad_arguments(
    arguments: tuple[str, ...],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, error = run(*arguments, capsys=capsys)
    assert code == 2
    assert one_sentence(error), error
    assert words in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ValueError("seconds: expected a number above 0,\n  got -1"), 2, "seconds: expected a number above 0, got -1"),
        (CheckpointError("x: damaged"), 2, "x: damaged"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "No space left on device"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 2, "/x: Permission denied"),
        (ModuleNotFoundError("No module named 'x'", name="x"), 2, "'x' is needed"),
        (MemoryError(), 2, "memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (typer.Abort(), 130, "interrupted"),
        (ZeroDivisionError("oh"), 1, "ZeroDivisionError: oh (run again with ANYFILL_DEBUG=1"),
    ],
)
def test_every_failure_is_one_sentence(
    error: BaseException, code: int, words: str, failing, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(error)
    got, out, said = run("demo", capsys=capsys)
    assert (got, out) == (code, "")
    assert one_sentence(said), said
    assert words in said


def test_debug_shows_where(failing, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(ValueError("bad"))
    monkeypatch.setenv(cli.DEBUG, "1")
    with pytest.raises(ValueError, match="bad"):
        cli.run(["demo"])


def test_options_reach_the_demo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[object] = []
    monkeypatch.setattr(demo, "run_demo", lambda folder, **options: seen.append((folder, options)))
    assert run("demo", "-o", "x", "--seconds", "3", "--seed", "4", capsys=capsys)[0] == 0
    assert run("demo", capsys=capsys)[0] == 0
    assert seen == [(Path("x"), {"seconds": 3.0, "seed": 4}), (Path("demo"), {"seconds": 20.0, "seed": 0})]


def test_an_existing_file_as_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("mine")
    code, _, error = run("demo", "-o", str(tmp_path / "file"), capsys=capsys)
    assert code == 2
    assert one_sentence(error)
    assert "is a file" in error
    code, _, error = run("demo", "-o", str(tmp_path / "file" / "inside"), capsys=capsys)
    assert code == 2
    assert one_sentence(error)


def test_a_folder_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object, **__: object) -> str:  # permissions do not stop root, so they are played
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path))

    monkeypatch.setattr("tempfile.mkdtemp", denied)
    code, _, error = run("demo", "-o", str(tmp_path / "out"), capsys=capsys)
    assert code == 2
    assert one_sentence(error)
    assert f"{tmp_path / 'out'}: Permission denied" in error


def test_help_does_not_import_torch() -> None:
    script = "import sys; from anyfill.cli import main as cli; cli.run(['--help']); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage: anyfill" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("environment", [{}, {"PYTHONUNBUFFERED": "1"}])
def test_a_full_disk_behind_stdout(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "anyfill", "--help"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env={"PATH": "", **environment}
        )
    assert done.returncode == 2
    assert one_sentence(done.stderr), done.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs a process group")
@pytest.mark.slow
def test_ctrl_c_during_training(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "anyfill", "demo", "-o", str(tmp_path / "out"), "--seconds", "60"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not list(tmp_path.glob(".out.*")):  # the work has begun
        assert process.poll() is None
        time.sleep(0.1)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error.splitlines()[-1] == "anyfill: interrupted"
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_every_command_with_a_seed_says_how_large_it_may_be() -> None:
    def seeds(command: Any) -> Iterator[Any]:
        for sub in getattr(command, "commands", {}).values():
            yield from seeds(sub)
        yield from (option for option in command.params if option.name == "seed")

    found = [getattr(option, "type", option) for option in seeds(typer.main.get_command(cli.app))]  # or Typer's own
    assert len(found) > 15
    assert {(kind.min, kind.max) for kind in found} == {(0, MAX_SEED)}
