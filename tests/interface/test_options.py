"""Groups of options: written once, read by Typer as if they stood in every command."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from anyfill.interface.options import grouped, refuse_file_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    height: Annotated[int, typer.Option(min=1, help="Rows.")]
    width: Annotated[int | None, typer.Option(help="Columns.", show_default=False)] = None


def app(seen: list[object]) -> typer.Typer:
    made = typer.Typer()

    @made.command()
    @grouped
    def draw(*, name: str = "x", size: Size, bold: Annotated[bool, typer.Option("--bold")] = False) -> None:
        """Draw it."""
        seen.append((name, size, bold))

    return made


def test_a_group_is_filled_from_its_options() -> None:
    seen: list[object] = []
    assert CliRunner().invoke(app(seen), ["--height", "2", "--bold"]).exit_code == 0
    assert CliRunner().invoke(app(seen), ["--height", "2", "--width", "3", "--name", "y"]).exit_code == 0
    assert seen == [("x", Size(height=2), True), ("y", Size(height=2, width=3), False)]


def test_help_lists_the_options_where_the_group_stands_and_their_limits_count() -> None:
    shown = CliRunner().invoke(app([]), ["--help"]).output
    places = [shown.index(option) for option in ("Draw it", "--name", "--height", "--width", "--bold")]
    assert places == sorted(places)
    assert CliRunner().invoke(app([]), ["--height", "0"]).exit_code == 2
    assert CliRunner().invoke(app([]), []).exit_code == 2


def test_the_name_of_a_file_is_no_text_and_a_long_text_is_no_name(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("a")
    with pytest.raises(ValueError, match="text, or --file and the name of a file"):
        refuse_file_name("in.txt")
    for text in ("", "no such file", "ä" * 200, "a" * 100_000, "a\0b"):  # more bytes than a name may have, or no name
        refuse_file_name(text)
