"""Model folders of the command line: as a whole or not at all, and never in place of something else."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest

from anyfill.cli import main as cli
from anyfill.interface.output import READING, require_place
from anyfill.tables.estimator import TableModel
from anyfill.tables.file_model import FileModel
from anyfill.tables.frames import MISSING_TOKENS


@pytest.fixture(scope="module")
def model() -> TableModel:
    data = pd.DataFrame({"x": np.arange(30.0), "y": np.arange(30.0) ** 2})
    return TableModel(recipe="gaussian").fit(data)


def test_a_model_replaces_a_model_and_its_tokens(model: TableModel, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "model"
    FileModel(model, ("", "n.d.")).save(folder)
    assert FileModel.load(folder, ["-", ""]).missing == ("", "n.d.", "-")
    FileModel(model).save(folder)
    assert FileModel.load(folder).missing == MISSING_TOKENS
    assert FileModel.load(folder).table == model.table_
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_model_without_tokens_has_the_usual_ones(model: TableModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    assert FileModel.load(tmp_path / "model").missing == MISSING_TOKENS
    require_place(tmp_path / "model")


@pytest.mark.parametrize("files", [["mine.txt"], ["config.json", "mine.txt"], ["weights-1.safetensors"]])
def test_other_things_are_never_replaced(model: TableModel, tmp_path: Path, files: list[str]) -> None:
    for name in files:
        (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match="other things"):
        FileModel(model).save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)


def test_a_model_of_another_program_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"architectures": ["theirs"]}')
    (tmp_path / "model.safetensors").write_bytes(b"theirs")
    with pytest.raises(ValueError, match="other things"):
        require_place(tmp_path)


def test_a_file_and_the_folder_one_is_in_are_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="a file"):
        require_place(tmp_path / "file")
    monkeypatch.chdir(tmp_path / ".")
    (tmp_path / "file").unlink()
    with pytest.raises(ValueError, match="in use"):
        require_place(Path())


def test_a_failure_while_saving_leaves_the_earlier_model(model: TableModel, tmp_path: Path) -> None:
    class Failing:
        def save(self, folder: Path) -> None:
            folder.mkdir(exist_ok=True)
            (folder / "config.json").write_text("half")
            raise OSError("disk full")

    FileModel(model).save(tmp_path / "model")
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    failing: Any = Failing()
    with pytest.raises(OSError, match="disk full"):
        FileModel(failing, ()).save(tmp_path / "model")
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_that_are_drawn_have_types_where_the_table_was_text_without_any(tmp_path: Path, suffix: str) -> None:
    words = pd.DataFrame({"n": [str(n % 7) for n in range(80)], "price": [f"{n % 5}.10" for n in range(80)]})
    source, model, out = tmp_path / f"t{suffix}", tmp_path / "model", tmp_path / "new.parquet"
    (words.to_csv if suffix == ".csv" else words.to_parquet)(source, index=False)
    assert cli.run(["fit", str(source), "-o", str(model), "--recipe", "gaussian"]) == 0
    assert FileModel.load(model).of_text is (suffix == ".csv")

    def types() -> set[str]:
        assert cli.run(["sample", str(model), "-n", "5", "-o", str(out)]) == 0
        return {str(field.type).removeprefix("large_") for field in parquet.read_schema(out)}

    assert types() == ({"int64", "double"} if suffix == ".csv" else {"string"})
    said = json.loads((model / READING).read_text())
    del said["of_text"]
    (model / READING).write_text(json.dumps(said))  # as a version before saved it
    assert types() == {"string"}
