"""Numbers as people write them are read as numbers, and what is written reads and looks like its neighbours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfill.tables.number_styles import NumberStyle, style_of


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (["$1,200.50", "$3.00", "-$12.25"], [1200.5, 3.0, -12.25]),
        (["12 %", "7.5 %", "100 %"], [12, 7.5, 100]),
        (["12%", "3%"], [12, 3]),
        (["1.234,56", "7,00", "-12.345.678,90"], [1234.56, 7, -12345678.9]),
        (["12,5", "0,125"], [12.5, 0.125]),
        (["1,234", "999", "12,345,678"], [1234, 999, 12345678]),
        (["3 000 €", "25 €"], [3000, 25]),
        (["1\u202f234,5", "7,25"], [1234.5, 7.25]),
        (["1'250.00", "80.00"], [1250, 80]),
        (["(1,200.00)", "35.50"], [-1200, 35.5]),
        (["€ -5,10", "€ 7,20"], [-5.1, 7.2]),
        (["USD 1,000", "USD 50"], [1000, 50]),
        (["R$ 1.500,00", "R$ 2,00"], [1500, 2]),
        (["−5 %", "3 %"], [-5, 3]),
    ],
)
def test_what_people_write_is_read(words: list[str], numbers: list[float]) -> None:
    style = style_of(words)
    assert style is not None
    assert [style.read(word) for word in words] == numbers


@pytest.mark.parametrize(
    "words",
    [
        ["12", "7.5"],  # plain numbers are read elsewhere
        ["$5", "7 %"],  # two kinds
        ["$5", "5"],  # is the second one dollars?
        ["1,23,456", "7"],
        ["1.234,56", "1,234.56"],  # no one mark
        ["A12", "A13"],
        ["12 kg", "13 kg"],
        ["555 123 456", "555 987 654"],  # phone numbers
        ["192.168.001.100", "192.168.002.117"],
        ["$", "%"],
        ["(5", "6)"],
        ["--5 %"],
        ["007 %", "012 %"],  # codes
        ["1e5 %"],
        [""],
        [None, "5 %"],
    ],
)
def test_what_is_no_number_is_left_alone(words: list[object]) -> None:
    assert style_of(words) is None


@pytest.mark.parametrize(
    "words",
    [
        ["$1,200.50", "$3.00", "-$12.25", "$1,000,000.00"],
        ["12 %", "7 %"],
        ["1.234,56", "-7,00"],
        ["12,345", "1,000", "7"],
        ["(1,200.00)", "35.50"],
        ["3 000 €", "25 €"],
        ["£-5.10", "£7.20"],
    ],
)
def test_reading_and_writing_gives_the_same_bytes(words: list[str]) -> None:
    style = style_of(words)
    assert style is not None
    for word in words:
        number = style.read(word)
        assert number is not None
        assert style.write(f"{number:.{style.decimals(word)}f}") == word


@given(
    st.decimals(-(10**9), 10**9, places=2, allow_nan=False),
    st.sampled_from(["", "$", "€ ", "USD "]),
    st.sampled_from(["", " %", " €"]),
    st.sampled_from([(",", "."), (".", ","), ("", ","), (" ", ","), ("'", ".")]),
    st.sampled_from(["before", "after", "brackets"]),
)
def test_every_number_comes_back_from_every_style(
    number: object, prefix: str, suffix: str, marks: tuple[str, str], negative: str
) -> None:
    style = NumberStyle(prefix, suffix, *marks, negative)
    plain = f"{number:.2f}"
    assert style.read(style.write(plain)) == float(plain)
