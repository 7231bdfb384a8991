"""Where the commands for tables write: never over the table they read."""

from pathlib import Path

import pytest

from anyfill.cli import main as cli

TABLE = "age,bmi\n" + "".join(f"{20 + n % 50},{20 + n % 7}.5\n" for n in range(60))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    (folder / "data.csv").write_text(TABLE)
    assert cli.run(["fit", str(folder / "data.csv"), "-o", str(folder / "model"), "--recipe", "gaussian"]) == 0
    return folder / "model"


@pytest.mark.parametrize("command", ["score", "fill", "fill alone", "report"])
@pytest.mark.parametrize("written", ["same name", "link", "other way"])
def test_the_table_that_is_read_is_never_written_over(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, written: str
) -> None:
    ending = ".html" if command == "report" else ".csv"
    data = tmp_path / f"data{ending}"
    data.write_text(TABLE)
    output = data
    if written == "link":
        output = tmp_path / f"link{ending}"
        output.symlink_to(data)
    elif written == "other way":
        output = tmp_path / ".." / tmp_path.name / data.name
    name, *alone = command.split()
    assert cli.run([name, *([] if alone else [str(model)]), str(data), "-o", str(output)]) == 2
    error = capsys.readouterr().err
    assert error == f"anyfill: --output {output}: expected another file than DATA, got {data}, which would be lost\n"
    assert data.read_text() == TABLE


@pytest.mark.parametrize("command", ["fill", "score", "sample", "report"])
def test_the_help_says_that_an_output_is_replaced(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert cli.run([command, "--help"]) == 0
    words = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "one that is there already is replaced" in words
