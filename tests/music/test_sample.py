"""Locked cells never change, what is not wanted is drawn again, and parallels are left out."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anyfill.model import Model
from anyfill.music import sample as drawing
from anyfill.music.chorale import CODES, HIGHEST, LOWEST, REST, Chorale
from anyfill.music.model import ChoraleModel, one_pass_chorale, one_pass_chorale_model
from anyfill.music.piece import Piece
from anyfill.music.request import Request
from anyfill.music.sample import NoParallels, SamplingOptions, Search, Tally, alternatives, is_still
from anyfill.music.score import Note, Score
from anyfill.music.tunes import tune_of
from anyfill.music.voices import ParsedScore
from anyfill.music.windows import resized
from anyfill.questions import Factorization, Question
from anyfill.samplers import CachedChain, sample

Cells = NDArray[np.bool_]


def tiny() -> Model:
    """An untrained model whose answers are nonetheless not all alike."""
    model = one_pass_chorale_model(128, width=16, depth=1, heads=2, dropout=0.0)
    torch.nn.init.normal_(model.network.head.weight, std=0.5, generator=torch.Generator().manual_seed(1))
    model.factorizations = frozenset((Factorization.DIRECT, Factorization.INPAINTING, Factorization.DIFFERENCE))
    return model.eval()


MODEL = tiny()


def random_piece(rng: np.random.Generator, steps: int, bar: int = 16) -> Chorale:
    pitch = rng.integers(LOWEST, HIGHEST + 1, (4, steps)).astype(np.int16)
    held = rng.random((4, steps)) < 0.6
    for step in range(1, steps):
        pitch[:, step] = np.where(held[:, step], pitch[:, step - 1], pitch[:, step])
    pitch[rng.random((4, steps)) < 0.05] = REST
    return Chorale(pitch, rng.random((4, steps)) < 0.2, bar, int(rng.integers(0, bar)) % steps, tempo=97.0)


def last(chorale: Chorale, given: Cells, asked: Cells, count: int, seed: int, parallels: bool = False) -> list[Chorale]:
    options = SamplingOptions(seed=seed, parallels=parallels)
    request = Request(Piece(chorale, given), given, asked)
    work = alternatives(MODEL, request, count, options, generator=options.generator)
    return list(work)[-1][0]


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 5, 40, 170]), st.sampled_from([16, 12]), st.booleans())
def test_locked_cells_keep_pitch_and_onset(seed: int, steps: int, bar: int, parallels: bool) -> None:
    rng = np.random.default_rng(seed)
    chorale = random_piece(rng, steps, bar)
    share = 0.5 if steps <= 40 else 0.05
    asked = rng.random((4, steps)) < share
    given = ~asked & (rng.random((4, steps)) < rng.choice([0.5, 1.0]))
    for answer in last(chorale, given, asked, 2, seed % 1000, parallels):
        assert (answer.pitch[~asked] == chorale.pitch[~asked]).all()
        # An onset can only come to a locked cell where the cell before it was written with another pitch.
        written_before = np.zeros_like(asked)
        written_before[:, 1:] = asked[:, :-1]
        broken = written_before & Chorale.of(answer.pitch).onset
        assert (answer.onset | ~chorale.onset)[~asked].all()
        assert (answer.onset == chorale.onset)[~asked & ~broken].all()
        assert (answer.bar, answer.pickup, answer.tempo) == (chorale.bar, chorale.pickup, chorale.tempo)


@settings(max_examples=4)
@given(st.integers(0, 2**32 - 1))
def test_the_same_seed_gives_the_same_answers_and_alternatives_differ(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chorale = random_piece(rng, 20)
    asked = np.zeros((4, 20), dtype=bool)
    asked[1:3, 4:18] = True
    first, again, other = (last(chorale, ~asked, asked, 2, s) for s in (7, 7, 8))
    assert all((a.pitch == b.pitch).all() for a, b in zip(first, again))
    assert (first[0].pitch != first[1].pitch).any()
    assert (first[0].pitch != other[0].pitch).any()


def test_what_stands_in_cells_that_are_not_given_is_not_read() -> None:
    chorale = random_piece(np.random.default_rng(0), 40)
    asked = np.zeros((4, 40), dtype=bool)
    asked[1, 10:30] = True
    given = ~asked
    given[3] = False
    changed = chorale.pitch.copy()
    changed[~given] = 60
    other = replace(chorale, pitch=changed)
    one, two = (last(piece, given, asked, 1, 3)[0] for piece in (chorale, other))
    assert (one.pitch[asked] == two.pitch[asked]).all()


def test_progress_rises_to_one_and_answers_come_last() -> None:
    everything = np.ones((4, 150), dtype=bool)
    blank = Chorale.of(np.full((4, 150), REST, dtype=np.int16))
    request = Request(Piece(blank, ~everything), ~everything, everything)
    seen = list(alternatives(MODEL, request, 1, SamplingOptions(), generator=torch.Generator()))
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0 > shares[-2]
    assert all(not pieces for pieces, _ in seen[:-1])


def tune(pitches: list[int | None], lengths: list[int]) -> Score:
    notes, at = [], Fraction(0)
    for pitch, length in zip(pitches, lengths):
        notes.append(Note(at, Fraction(length, 4), pitch))
        at += Fraction(length, 4)
    return Score((tuple(notes),), tempo=61.0, title="a tune")


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(20, 60)), st.integers(1, 6)), min_size=1, max_size=5),
    st.integers(10, 30),
    st.integers(0, 3),
)
def test_the_tune_is_never_changed_wherever_it_lies(notes: list[tuple[int | None, int]], up: int, voice: int) -> None:
    pitches = [44 + up, *(None if pitch is None else 30 + up + pitch % 30 for pitch, _ in notes)]
    score = tune(pitches, [4, *(length for _, length in notes)])
    read = tune_of(ParsedScore(score), voice)
    request = Request(read, read.present, ~read.present, "harmonising")
    for piece in Search(MODEL, request, SamplingOptions(n=2, seed=5)).pieces():
        out = piece.score
        kept = [(note.start, note.length, note.pitch) for note in out.voices[voice] if note.pitch is not None]
        assert kept == [(note.start, note.length, note.pitch) for note in score.voices[0] if note.pitch is not None]
        assert out.tempo == 61.0
        assert out.title == "a tune"
        assert piece.shift == read.shift


def test_a_moved_tune_says_so_and_one_in_range_is_left_alone() -> None:
    high = tune_of(ParsedScore(tune([95, 97, 99], [4, 4, 4])))
    assert high.shift == -24
    assert any("octave" in remark for remark in high.remarks)
    assert tune_of(ParsedScore(tune([72, 74], [4, 4]))).shift == 0
    assert tune_of(ParsedScore(tune([72, 74], [4, 4]))).remarks == ()


def test_a_tune_too_far_from_its_voice_is_refused() -> None:
    with pytest.raises(ValueError, match="nearer to the range of the bass, got one 4 octaves up"):
        tune_of(ParsedScore(tune([110, 112], [4, 4])), 3)


def test_given_notes_keep_their_names() -> None:
    notes = (Note(Fraction(0), Fraction(1), 61, "D-", 4), Note(Fraction(1), Fraction(3), 61, "C#", 4))
    score = Score((notes,), names=("soprano",))
    (filled,) = ChoraleModel(MODEL).fill(score, n=1, seed=0)
    assert [note.name for note in filled.score.voices[0]] == ["D-", "C#"]


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

        monkeypatch.setattr(drawing, "alternatives", alternatives)
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
    assert sizes == [3, drawing.SPARE]
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
    assert drawing.grade_of(best) == min(map(drawing.grade_of, (pieces[0], pieces[2], pieces[3])))
    assert tally.lines(options)[-1] == "kept the best 1 of 3 by the grade (protocol key-aware)"


STEPS = 3


def is_parallel(before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Both voices sound and move, and are a fifth, or octaves, apart before and after."""
    if 0 in (*before, *after) or before[0] == after[0] or before[1] == after[1]:
        return False
    first, second = abs(before[0] - before[1]) % 12, abs(after[0] - after[1]) % 12
    return first == second and first in (0, 7)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**31))
def test_the_rule_forbids_exactly_the_parallels(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = 20 + torch.randint(14, (1, 4 * STEPS), generator=generator)
    x = torch.where(torch.rand(x.shape, generator=generator) < 0.1, 0, x)
    known = torch.rand(x.shape, generator=generator) < 0.7
    variable = int(torch.randint(4 * STEPS, (1,), generator=generator))
    known[0, variable] = False
    found = NoParallels().forbidden(x, known, torch.tensor([variable]))[0]
    step, voice = divmod(variable, 4)
    for code in range(CODES):
        wrong = False
        for beside in (step - 1, step + 1):
            for other in range(4):
                cells = (4 * beside + voice, 4 * step + other, 4 * beside + other)
                if other == voice or not 0 <= beside < STEPS or not all(bool(known[0, cell]) for cell in cells):
                    continue
                mine, theirs_now, theirs_then = (int(x[0, cell]) for cell in cells)
                wrong |= is_parallel((mine, theirs_then), (code, theirs_now))
        assert bool(found[code]) == wrong


def parallels(rows: torch.Tensor) -> int:
    grid = rows.reshape(len(rows), -1, 4).tolist()
    return sum(
        is_parallel((one[t][u], one[t][v]), (one[t + 1][u], one[t + 1][v]))
        for one in grid
        for t in range(len(one) - 1)
        for u in range(4)
        for v in range(u)
    )


def test_a_sampler_under_the_rule_writes_none_and_one_without_it_does() -> None:
    model = one_pass_chorale_model(8, width=16, depth=1, heads=2)
    model.factorizations = one_pass_chorale(8).factorizations
    x = torch.zeros(20, 32, dtype=torch.int64)
    everything = torch.ones_like(x, dtype=torch.bool)
    question = Question(~everything, everything)
    found = {}
    for veto in (None, NoParallels()):
        generator = torch.Generator().manual_seed(0)
        found[veto] = sample(model, x, question, policy=CachedChain(veto=veto), generator=generator).x
    assert parallels(found[None]) > 5
    assert parallels(found[NoParallels()]) == 0


def test_a_resized_model_answers_as_before_and_shares_its_weights() -> None:
    model = one_pass_chorale_model(8, width=16, depth=1, heads=2, dropout=0.0).eval()
    torch.nn.init.normal_(model.network.head.weight)  # pyright: ignore
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(CODES, (3, 64), generator=generator)
    longer = resized(model, 16)
    rank = torch.arange(64).expand(3, -1)
    with torch.no_grad():
        short = model.chain(x[:, :32], rank[:, :32]).log_prob(x[:, :32])
        long = longer.chain(x, rank).log_prob(x)[:, :32]
    torch.testing.assert_close(short, long)
    own = dict(model.named_parameters())
    assert all(own[name].data_ptr() == weights.data_ptr() for name, weights in longer.named_parameters())
