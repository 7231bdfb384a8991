"""The page that plays: whole in itself, with every note at its time."""

import json
import re
from dataclasses import replace
from fractions import Fraction

import pytest

from anyfill import music
from anyfill.music.player import page_of
from anyfill.music.saving import notation_pages
from anyfill.music.score import Signs

F = Fraction


def piece(title: str = "A <tune> & more"):
    voice = tuple(music.Note(F(n), F(1), 60 + n) for n in range(5))
    signs = Signs(tempos=((F(0), 60.0), (F(2), 120.0)))
    return music.read(music.Score((voice, voice), tempo=60.0, title=title, signs=signs, bar=F(4)))


def test_a_page_has_all_notes_in_seconds_and_loads_nothing() -> None:
    text = page_of([piece(), piece()])
    found = json.loads(re.search(r'id="pieces">(.*?)</script>', text, re.S)[1])
    assert len(found) == 2
    assert found[0]["voices"][0] == [[0.0, 1.0, 60], [1.0, 1.0, 61], [2.0, 0.5, 62], [2.5, 0.5, 63], [3.0, 0.5, 64]]
    assert found[0]["seconds"] == 3.5
    assert not re.search(r'(src|href)="', text)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "A &lt;tune&gt; &amp; more" in text
    assert "<tune>" not in text
    assert text.count('class="play"') == 2


def test_what_was_given_is_filled_and_what_is_new_is_hollow() -> None:
    own = piece("x")
    written = own.present.copy()
    written[:] = False
    written[1] = own.present[1]
    shown = page_of([replace(own, written=written)])
    assert shown.count('fill="#fff"') == len(replace(own, written=written).added(1))


def test_verovio_draws_the_score_where_it_is_installed(tmp_path) -> None:
    pytest.importorskip("verovio")
    (page,) = notation_pages(piece())
    assert page.count('class="note"') == 10
    piece().save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().startswith("<")
