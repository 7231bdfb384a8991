"""The counts of the house: what is code, who imports whom, and which runs of lines have one shape."""

from scripts import house

BODY = """
def total(values: list[float], scale: float) -> float:
    result = 0.0
    for value in values:
        if value > scale:
            result += value * scale
        else:
            result -= value
    return result
"""


def _tree(folder, **files):
    (folder / "pack").mkdir()
    for name, text in files.items():
        (folder / "pack" / f"{name}.py").write_text(text)
    return house.modules(folder)


def _pairs(found):
    return [(a, b) for a, _, b, _ in house.repeated(found)]


def test_docstrings_comments_and_blank_lines_are_no_code(tmp_path):
    text = '"""Doc.\n\nMore."""\n\n# why\nx = 1\n\n"""below an attribute"""\ny = """text\nof two lines"""\n'
    found = _tree(tmp_path, one=text)
    assert house.code_lines(found["pack.one"]) == 3


def test_long_files_are_counted_with_their_docstrings(tmp_path, monkeypatch):
    monkeypatch.setattr(house, "files_of_fill", lambda src: None)
    _tree(tmp_path, short='"""Doc."""\n' * house.LONG, long="# why\n" * (house.LONG + 1))
    assert house.count(tmp_path).long == 1


def test_importers_are_counted_wherever_they_import(tmp_path):
    inside = "def f():\n    from pack.one import x\n\n    return x\n"
    found = _tree(tmp_path, __init__="", one="x = 1\n", two=inside, three="import pack.two\nfrom pack import one\n")
    assert house.importers(found) == {  # a package that re-exports is neither counted nor an importer
        "pack.one": {"pack.two", "pack.three"},
        "pack.two": {"pack.three"},
        "pack.three": set(),
    }


def test_a_run_is_found_under_other_names_and_only_under_one_renaming(tmp_path):
    renamed = BODY
    for old, new in (("total", "cost"), ("values", "prices"), ("value", "price"), ("scale", "rate"), ("result", "out")):
        renamed = renamed.replace(old, new)
    mixed = renamed.replace("out -= price", "out -= rate").replace("price > rate", "rate > price")
    found = _tree(tmp_path, one=BODY, two=renamed, three=mixed, four="import os\nx = os.name\n")
    assert _pairs(found) == [("pack.one", "pack.two")]


def test_thin_runs_count_only_to_the_letter_and_forms_never(tmp_path):
    thin = "NAMES = [\n" + "".join(f'    "{word}",\n' for word in "abcdefg") + "]\n"
    other = thin.replace('"a"', '"z"').replace('"b"', '"y"').replace("NAMES", "WORDS").replace('"d"', '"x"')
    (tmp_path / "first").mkdir()
    assert _pairs(_tree(tmp_path / "first", one=thin, two=thin)) == [("pack.one", "pack.two")]
    (tmp_path / "second").mkdir()
    assert _pairs(_tree(tmp_path / "second", one=thin, two=other)) == []
    (tmp_path / "third").mkdir()
    many = {f"m{number}": BODY for number in range(house.COMMON + 1)}
    assert _pairs(_tree(tmp_path / "third", **many)) == []
