"""Every command says at once where nothing can be written, in the same words."""

from pathlib import Path

import pytest

from anyfill.cli import main as cli


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc")
@pytest.mark.parametrize(
    ("words", "folder"),
    [
        ("fit {data} -o /proc/model", "/proc/model"),
        ("fill {data} -o /proc/filled.csv", "/proc"),
        ("text train {data} -o /proc/model", "/proc/model"),
        ("image train {folder} -o /proc/model", "/proc/model"),
        ("music train {folder} -o /proc/model", "/proc/model"),
        ("translate train {data} -o /proc/model --from de --to en", "/proc/model"),
        ("lab ising variance --graph complete --variables 4 --k 1,2 --plot /proc/one.png", "/proc"),
    ],
)
def test_where_nothing_can_be_written_is_told_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, folder: str
) -> None:
    (tmp_path / "data.csv").write_text("age,bmi\n" + "40,20.5\n" * 60)
    places = {"data": tmp_path / "data.csv", "folder": tmp_path}
    assert cli.run([word.format(**places) for word in words.split()]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith(f"anyfill: {folder}: expected a folder that can be written to, got one that cannot (")
    assert error.count("\n") == 1
