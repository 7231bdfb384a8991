"""Where the commands for tables write: never over the table they read."""

import os
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


@pytest.mark.parametrize("command", ["score", "fill", "fill alone", "report"])
def test_standard_input_is_never_written_over(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    data = tmp_path / ("data.html" if command == "report" else "data.csv")
    data.write_text(TABLE)
    name, *alone = command.split()
    own = os.dup(0)
    try:
        with data.open("rb") as file:
            os.dup2(file.fileno(), 0)
        assert cli.run([name, *([] if alone else [str(model)]), "-", "-o", str(data)]) == 2
    finally:
        os.dup2(own, 0)
        os.close(own)
    sentence = f"--output {data}: expected another file than DATA, got standard input, which would be lost"
    assert capsys.readouterr().err == f"anyfill: {sentence}\n"
    assert data.read_text() == TABLE


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
@pytest.mark.parametrize("command", ["fit", "score", "fill", "sample", "report"])
@pytest.mark.parametrize("inside", [False, True])
def test_links_that_lead_in_a_circle_are_no_output(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, inside: bool
) -> None:
    (tmp_path / "data.csv").write_text(TABLE)
    loop = tmp_path / ("loop.html" if command == "report" else "loop.csv")
    loop.symlink_to(loop.name)
    output = loop / loop.name if inside else loop
    before = [] if command == "fit" else [str(model)]
    table = [] if command == "sample" else [str(tmp_path / "data.csv")]
    assert cli.run([command, *before, *table, "-o", str(output)]) == 2
    sentence = f"anyfill: {output}: expected a file or a folder, got links that lead in a circle\n"
    assert capsys.readouterr().err == sentence
