"""XML and zip files made to do harm."""

import io
import zipfile

import pytest

from anyfill.music.markup import MAX_BYTES, parse_markup, unzip


def test_elements_attributes_and_text_are_read() -> None:
    root = parse_markup('<a b="1">x<c>é</c>y</a>'.encode(), "it")
    assert (root.tag, root.get("b"), root.text, root[0].text, root[0].tail) == ("a", "1", "x", "é", "y")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "entities of its own"),
        ('<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE a [<!ENTITY b "c">]><a/>'.encode("utf-16"), "entities"),
        (b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "entities of its own"),
        (b"<a>" * 100 + b"</a>" * 100, "at most 64 deep"),
        (b"<a><b/><b/><b/></a>", "at most 2 elements b"),
        (b"<a>", "expected XML"),
        (b'<?xml version="1.0" encoding="nonsense"?><a/>', "expected XML"),
        (bytes(MAX_BYTES + 1), "at most 32 MiB of XML"),
    ],
)
def test_harm_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(ValueError, match="it: expected") as caught:
        parse_markup(data, "it", most={"b": 2})
    assert sentence in str(caught.value)


def test_a_zip_of_too_many_files_and_one_that_is_none_are_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(1_001):
            archive.writestr(f"{number}.xml", b"")
    with pytest.raises(ValueError, match="at most 1,000 files"):
        unzip(file.getvalue(), "it")
    with pytest.raises(ValueError, match="damaged or locked"):
        unzip(b"PK\x03\x04 and then nothing", "it")
