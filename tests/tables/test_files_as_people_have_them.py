"""Packed files, other encodings, JSON lines, numbers with signs and marks: read, and written back as they were."""

import bz2
import gzip
import json
import lzma
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anyfill import TableModel
from anyfill.tables.files import encoding_said, open_writer, read_parts, read_table, sample_file
from anyfill.tables.packed import SCANNED

PLAIN = "name,größe\nJosé,1\nZoë,\n"
PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def zipped(path: Path, content: bytes, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("suffix", PACK)
def test_packed_text_is_read_and_written_packed(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.csv{suffix}"
    path.write_bytes(PACK[suffix](PLAIN.encode()))
    frame = read_table(path)
    assert frame["name"].tolist() == ["José", "Zoë"]
    with open_writer(tmp_path / f"copy.csv{suffix}", like=path) as writer:
        writer.write(frame)
    unpack = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}[suffix]
    assert unpack((tmp_path / f"copy.csv{suffix}").read_bytes()).decode() == PLAIN


def test_an_archive_of_one_table_is_read_and_written(tmp_path: Path) -> None:
    for name, inner in (("t.csv.zip", "any.csv"), ("t.zip", "folder/t.csv"), ("t.zip", "t")):
        path = zipped(tmp_path / name, PLAIN.encode(), "folder/", inner, "__MACOSX/x")
        frame = read_table(path)
        assert frame["größe"].tolist() == ["1", ""]
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        with open_writer(tmp_path / folder / "copy.csv.zip", like=path) as writer:
            writer.write(frame)
    with zipfile.ZipFile(tmp_path / "one" / "copy.csv.zip") as archive:
        assert archive.read("copy.csv").decode() == PLAIN
    first, second = ((tmp_path / folder / "copy.csv.zip").read_bytes() for folder in ("one", "two"))
    assert first == second


@pytest.mark.parametrize(
    ("encoding", "said"),
    [("cp1252", "read as Windows-1252"), ("utf-16", "read as UTF-16"), ("utf-16-le", "read as UTF-16"), ("utf-8", "")],
)
def test_other_encodings_are_read_said_and_kept(tmp_path: Path, encoding: str, said: str) -> None:
    path, copy = tmp_path / "t.csv", tmp_path / "copy.csv"
    path.write_bytes(PLAIN.encode(encoding))
    assert encoding_said(path) == said
    frame = read_table(path)
    assert (frame.columns.tolist(), frame["name"].tolist()) == (["name", "größe"], ["José", "Zoë"])
    with open_writer(copy, like=path) as writer:
        writer.write(frame)
    assert copy.read_bytes() == path.read_bytes()


def test_a_letter_late_in_a_file_tells_its_encoding(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"1,2\n" * 100_000 + b"1,\xe9\n")
    assert path.stat().st_size < SCANNED
    assert read_table(path)["b"].iloc[-1] == "é"


def test_a_letter_that_an_encoding_lacks_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a\né\n".encode("cp1252"))
    with (
        pytest.raises(ValueError, match="expected letters that Windows-1252 has, got '漢'"),
        open_writer(tmp_path / "copy.csv", like=path) as writer,
    ):
        writer.write(pd.DataFrame({"a": ["漢"]}))
    assert not (tmp_path / "copy.csv").exists()


def test_json_lines_keep_their_values_and_types(tmp_path: Path) -> None:
    rows = [{"n": 3, "x": 1.5, "w": "é", "b": True}, {"n": None, "w": None, "b": False, "late": "!"}]
    for name in ("t.jsonl", "t.ndjson.gz"):
        path = tmp_path / name
        text = "".join(json.dumps(row) + "\n\n" for row in rows).encode()
        path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
        frame = read_table(path)
        assert frame.columns.tolist() == ["n", "x", "w", "b", "late"]
        copy = tmp_path / f"copy-{name}"
        with open_writer(copy) as writer:
            writer.write(frame)
        content = gzip.decompress(copy.read_bytes()) if name.endswith("gz") else copy.read_bytes()
        found = [json.loads(line) for line in content.decode().splitlines()]
        assert found == [{**dict.fromkeys(frame.columns), **row} for row in rows]
        assert [type(row["n"]) for row in found] == [int, type(None)]


def test_parts_of_json_lines_have_the_columns_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"a": n, "b": str(n)}) + "\n" for n in range(10)))
    parts = list(read_parts(path, 4))
    assert [(part.start, len(part.frame)) for part in parts] == [(0, 4), (4, 4), (8, 2)]
    assert len(sample_file(path, 3, seed=0).frame) == 3
    path.write_text('{"a": 1}\n' * 4 + '{"c": 1}\n')
    with pytest.raises(ValueError, match=r"line 5: expected only a, got 'c'"):
        list(read_parts(path, 4))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.jsonl", b"", "got an empty file"),
        ("t.jsonl", b"\n\n", "expected a row on each line, got none"),
        ("t.jsonl", b"[1, 2]\n", "line 1: expected an object"),
        ("t.jsonl", b'{"a": 1}\n{"a": \n', "line 2: expected JSON"),
        ("t.jsonl", b'{"a": {"b": 1}}\n', "line 1, 'a': expected a number, text, true, false or null, got dict"),
        ("t.jsonl", '{"a": "é"}'.encode("cp1252"), "expected JSON in UTF-8"),
        ("t.csv.bz2", b"a,b\n1,2\n", "expected a whole bz2 file"),
        ("t.csv.xz", b"a,b\n1,2\n", "expected a whole xz file"),
        ("t.zip", b"a,b\n1,2\n", "expected a whole zip file"),
        ("t.csv.zip", b"a,b\n1,2\n", "expected a whole zip file"),
        ("t.csv.xz", lzma.compress(b"a,b\n1,2\n" * 5000)[:60], "expected a whole xz file"),
        ("t.csv", bytes(range(256)) * 4, "expected text, got binary data"),
        ("t.doc", b"x", "expected a name that ends in one of .csv"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=sentence) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_an_archive_of_several_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected one table inside, got 2 \(a.csv, b.csv\)"):
        read_table(zipped(tmp_path / "t.zip", b"a\n1\n", "a.csv", "b.csv"))


def test_signs_and_marks_are_numbers_and_come_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    latent = rng.normal(size=150)
    frame = pd.DataFrame(
        {
            "price": [f"${value:,.2f}" for value in np.exp(7 + latent)],
            "rate": [f"{value:.0f} %" for value in np.clip(50 + 30 * latent, 0, 100)],
            "betrag": [f"{v:,.2f}".translate(str.maketrans(",.", ".,")) for v in 5000 + 3000 * latent],
            "x": [f"{value:.3f}" for value in latent],
        }
    )
    holed = frame.copy()
    for name in ("price", "rate", "betrag"):
        holed.loc[rng.random(150) < 0.2, name] = ""
    path = tmp_path / "t.csv"
    holed.to_csv(path, index=False)
    model = TableModel(recipe="gaussian", random_state=0).fit(path)
    assert [column.label for column in model.table_.columns] == ["number", "int", "number", "number"]
    filled = model.transform(path)
    for name in ("price", "rate", "betrag"):
        there = holed[name] != ""
        assert filled[name][there].tolist() == holed[name][there].tolist()  # byte for byte
    assert filled["price"].str.fullmatch(r"\$\d{1,3}(,\d{3})*\.\d\d").all()
    assert filled["rate"].str.fullmatch(r"\d+ %").all()
    assert filled["betrag"].str.fullmatch(r"-?\d{1,3}(\.\d{3})*,\d\d").all()
    for table in model.sample(path, 5, seed=0):
        assert table["rate"].str.removesuffix(" %").astype(int).between(0, 100).all()
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(TableModel.load(tmp_path / "model").transform(path), filled)
    plain = pd.DataFrame({"price": [np.nan], "rate": [50.0], "betrag": [5000.0], "x": [0.0]})
    assert isinstance(TableModel.load(tmp_path / "model").transform(plain)["price"].iloc[0], float)
