"""What is not wanted is drawn again, and said."""

from collections.abc import Iterator

import numpy as np
import pytest

from anyfill.music import search
from anyfill.music.chorale import Chorale
from anyfill.music.model import one_pass_chorale_model
from anyfill.music.piece import Piece
from anyfill.music.request import Request
from anyfill.music.sample import SamplingOptions
from anyfill.music.search import Search, Tally, is_still

MODEL = one_pass_chorale_model(32, width=8, depth=1, heads=1)  # never asked: what it draws is put in its place


def piece(number: int, every: int = 2) -> Chorale:
    """Two bars whose voices go up and down, with a new pitch every so many steps; another one for each number."""
    at = np.arange(32) // every
    rows = [base + (at * (voice + 1) + number) % 5 for voice, base in enumerate((70, 63, 55, 45))]
    grid = np.stack(rows)
    grid[0, 0] = 60 + number % 20
    return Chorale.of(grid.astype(np.int16))


FROZEN = piece(0, every=32)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch):
    """Put these in place of what a model would draw; the sizes of the batches asked for."""

    def put(pieces: list[Chorale]) -> list[int]:
        sizes: list[int] = []
        left = iter(pieces)

        def alternatives(
            model: object, request: object, count: int, *_: object, **__: object
        ) -> Iterator[tuple[list, float]]:
            sizes.append(count)
            yield [next(left) for _ in range(count)], 1.0

        monkeypatch.setattr(search, "alternatives", alternatives)
        return sizes

    return put


def draw(options: SamplingOptions, tally: Tally, **wishes: object) -> Iterator[Chorale]:
    nothing = np.zeros((4, 32), dtype=bool)
    request = Request(Piece(FROZEN, nothing), nothing, nothing, "test", **wishes)  # type: ignore[arg-type]
    return Search(MODEL, request, options, tally=tally).chorales()


def test_a_piece_is_still_if_a_voice_changes_less_often_than_there_are_bars() -> None:
    assert not is_still(piece(1))
    assert is_still(FROZEN)
    for moves, still in ((1, True), (2, False)):
        grid = piece(1).pitch.copy()
        grid[3] = 45
        for n in range(moves):
            grid[3, 8 * (n + 1) :] += 2
        assert is_still(Chorale.of(grid)) is still


def test_still_pieces_are_drawn_again_and_counted_unless_as_drawn(drawn) -> None:
    pieces = [piece(1), FROZEN, piece(2), *(piece(n) for n in range(3, 10))]
    sizes, tally = drawn(pieces), Tally()
    found = list(draw(SamplingOptions(n=3), tally, moving=True))
    assert found == [pieces[0], pieces[2], pieces[3]]
    assert sizes == [3, search.SPARE]
    assert tally.lines(SamplingOptions(n=3)) == ["drawn again: 1 that hardly moved (--as-drawn keeps all)"]
    drawn(pieces)
    tally, options = Tally(), SamplingOptions(n=3, as_drawn=True)
    assert list(draw(options, tally, moving=True)) == pieces[:3]
    assert tally.lines(options) == []


def test_where_everything_is_still_it_is_kept_in_the_end_and_said(drawn) -> None:
    drawn([FROZEN] * 50)
    tally = Tally()
    assert list(draw(SamplingOptions(n=2), tally, moving=True)) == [FROZEN]
    assert tally.lines(SamplingOptions(n=2)) == [
        "drawn again: 1 that hardly moved, 1 of them kept for want of others (--as-drawn keeps all)",
        "drawn again: 9 like another one, only 1 distinct of 2 found",
    ]


def test_no_two_alternatives_are_alike_and_a_shortage_is_said(drawn) -> None:
    a, b, c = piece(1), piece(2), piece(3)
    drawn([a, a, b, a, c, *[a] * 40])
    tally = Tally()
    assert list(draw(SamplingOptions(n=3), tally)) == [a, b, c]
    assert tally.lines(SamplingOptions(n=3)) == ["drawn again: 2 like another one"]
    drawn([a, b] * 100)
    tally = Tally()
    assert list(draw(SamplingOptions(n=6), tally)) == [a, b]
    assert tally.lines(SamplingOptions(n=6))[0].endswith("like another one, only 2 distinct of 6 found")


def test_every_batch_is_handed_on_before_the_next_is_drawn(drawn) -> None:
    sizes = drawn([Chorale.of(np.full((4, 1), 30 + n, dtype=np.int16)) for n in range(40)])
    found = draw(SamplingOptions(n=40), Tally())
    for _ in range(32):
        next(found)
    assert sizes == [32]
    next(found)
    assert sizes == [32, 8]


def test_a_wish_that_is_too_seldom_met_is_refused(drawn) -> None:
    drawn([piece(n % 20) for n in range(100)])
    with pytest.raises(ValueError, match="pieces that fit: expected 2, got 0 of"):
        list(draw(SamplingOptions(n=2), Tally(), fits=lambda _: False))


def test_the_best_are_chosen_among_distinct_pieces(drawn) -> None:
    pieces = [piece(n) for n in (1, 1, 2, 3, 4, 5, 6, 7, 8)]
    drawn(pieces)
    tally, options = Tally(), SamplingOptions(n=1, best=3)
    (best,) = draw(options, tally)
    assert search.grade_of(best) == min(map(search.grade_of, (pieces[0], pieces[2], pieces[3])))
    assert tally.lines(options)[-1] == "kept the best 1 of 3 by the grade (protocol key-aware)"
