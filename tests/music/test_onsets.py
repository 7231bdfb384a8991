"""Models that say where notes begin: codes, form, crops, windows, drawing, scoring; and folders to train on."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill import music
from anyfill.music.chorale import CODES, ONSET_CODES, REST, Chorale, pitches_of
from anyfill.music.crops import TOLD, FormCrops
from anyfill.music.form import FEATURES, Form, per_cell, transposed_features
from anyfill.music.keys import KeySignature
from anyfill.music.model import onset_chorale_model
from anyfill.music.quantising import whole_of
from anyfill.music.request import Request
from anyfill.music.score import Note, Score, Signs
from anyfill.music.vetoes import GoesOn
from anyfill.music.voices import ParsedScore
from anyfill.music.windows import LONG_BACK, LONG_WINDOW, windows
from anyfill.music.writing import write_score
from anyfill.questions import Factorization
from anyfill.training import load_model, save_model

F = Fraction


def random_chorale(rng: np.random.Generator, steps: int) -> Chorale:
    pitch = np.repeat(rng.integers(50, 75, (4, -(-steps // 2))), 2, axis=1)[:, :steps].astype(np.int16)
    pitch[rng.random((4, steps)) < 0.05] = REST
    return Chorale(pitch, rng.random((4, steps)) < 0.3)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_codes_with_onsets_and_the_piece_undo_each_other(seed: int, steps: int) -> None:
    piece = random_chorale(np.random.default_rng(seed), steps)
    codes = piece.codes(onsets=True)
    assert int(codes.max()) < ONSET_CODES
    everything = torch.ones(4 * steps, dtype=torch.bool)
    back = piece.with_codes(codes, everything, onsets=True)
    assert np.array_equal(back.pitch, piece.pitch)
    sounds = piece.pitch != REST
    assert np.array_equal(back.onset[sounds], piece.onset[sounds])
    assert np.array_equal(pitches_of(codes), pitches_of(piece.codes()))


@pytest.mark.parametrize(("beats", "unit", "beat"), [(4, 4, 4), (3, 4, 4), (6, 8, 6), (12, 8, 6), (2, 2, 8), (3, 8, 4)])
def test_the_form_tells_bars_and_beats_of_every_metre(beats: int, unit: int, beat: int) -> None:
    bar = F(4 * beats, unit)
    voice = (Note(F(0), 2 * bar, 60),)
    score = Score((voice,), (F(0), bar), bar=bar, signs=Signs(times=((F(0), beats, unit),)))
    form = Form.of(whole_of(ParsedScore(score)))
    assert (form.bar, form.beat) == (int(bar * 4), beat)
    features = form.features()
    assert features.shape == (int(bar * 8), FEATURES)
    assert np.flatnonzero(features[:, 4].numpy()).tolist() == [0, int(bar * 4)]


def test_fermatas_the_end_and_the_key_are_told_and_the_key_turns_with_the_piece() -> None:
    form = Form(32, 16, fermatas=((12, 16),), key=(2, True))
    features = form.features()
    assert np.flatnonzero(features[:, 9].numpy()).tolist() == [12, 13, 14, 15]
    assert features[:13, 10].diff().min() > 0  # nearer and nearer
    assert features[:, 13].argmax() == 31
    up = transposed_features(features.unsqueeze(0), torch.tensor([3]))[0]
    assert torch.equal(up, form.transposed(3).features())
    assert not Form(32, 16, ends=False).features()[:, 8:14].any()


def tiny(steps: int = LONG_WINDOW) -> music.ChoraleModel:
    made = onset_chorale_model(steps, width=16, depth=1, heads=2, dropout=0.0)
    generator = torch.Generator().manual_seed(1)
    torch.nn.init.normal_(made.network.head.weight, std=0.3, generator=generator)
    made.network.head.bias.data[20:42] = 5.0
    made.network.head.bias.data[77:99] = 6.0  # the same pitches, held
    made.factorizations = frozenset((Factorization.DIRECT, Factorization.INPAINTING, Factorization.DIFFERENCE))
    return music.ChoraleModel(made.eval())


def test_the_room_loads_a_model_with_onsets_and_asks_it_everything(tmp_path: Path) -> None:
    save_model(tiny().model, tmp_path / "model")
    model = music.load(tmp_path / "model")
    assert model.onsets
    assert music.load().onsets  # so does the model that ships
    tune = Score((tuple(Note(F(n), F(1), 60 + n % 5) for n in range(8)),), bar=F(4))
    first = model.harmonise(tune, n=1, seed=1)[0]
    assert [note.pitch for note in first.score.voices[0]] == [note.pitch for note in tune.voices[0]]
    lower = first.chorale.pitch[1:]
    repeated = first.chorale.onset[1:, 1:] & (lower[:, 1:] == lower[:, :-1]) & (lower[:, 1:] != REST)
    assert repeated.any()  # notes are struck again because the model says so
    assert len(model.generate(bars=2, n=1, seed=0, as_drawn=True)) == 1
    assert model.fill(first, ask="alto 2", n=1, seed=3)[0].written.sum() <= 16
    assert model.continue_(first, bars=1, n=1, seed=3)[0].chorale.steps == 48
    assert model.vary(first, amount=0.1, n=1, seed=3)[0].chorale.steps == 32
    scored = model.score(first)
    assert scored.kind == "exact"
    struck = replace(first.chorale, onset=np.ones_like(first.chorale.onset))
    assert model.score(struck).total != scored.total  # it hears where notes begin


def test_what_the_model_is_told_changes_what_it_says(tmp_path: Path) -> None:
    model = tiny()
    with torch.no_grad():
        model.model.network.context.weight.normal_(std=1.0, generator=torch.Generator().manual_seed(0))
    chorale = random_chorale(np.random.default_rng(0), 32)
    piece = music.read(chorale)
    other = replace(piece, signature=KeySignature(3))
    assert model.score(piece).total != model.score(other).total
    assert per_cell(torch.zeros(1, 3, FEATURES)).shape == (1, 12, FEATURES)


def test_a_context_for_every_cell_agrees_between_one_pass_and_the_cache() -> None:
    """chain() is the same terms that the cached sampler draws from, with a context of its own for every variable."""
    network = tiny(8).model.network
    with torch.no_grad():
        network.context.weight.normal_(generator=torch.Generator().manual_seed(0))
        for block in network.blocks:
            block.mix.weight.normal_(std=0.2, generator=torch.Generator().manual_seed(2))
    generator = torch.Generator().manual_seed(3)
    x = torch.randint(ONSET_CODES, (2, 32), generator=generator)
    context = torch.randn(2, 32, FEATURES, generator=generator)
    rank = torch.arange(32).expand(2, -1).clone()
    rank[:, :5] = -1
    rank[:, 5:] -= 5
    with torch.no_grad():
        whole = network.chain(x, rank, context)
        params, cache = network.open(x, rank, context)
        for variable in range(5, 32):
            torch.testing.assert_close(params, whole[:, variable], atol=1e-5, rtol=1e-5)
            if variable < 31:
                params, cache = network.extend(x[:, variable], cache)


def test_a_note_goes_on_from_its_own_pitch_only() -> None:
    x = torch.tensor([[5, 0, 7, CODES + 3, 0, 0, 0, 0]])
    known = torch.tensor([[True] * 4 + [False] * 4])
    for voice, pitch in ((0, 5), (2, 7), (3, 4)):
        forbidden = GoesOn().forbidden(x, known, torch.tensor([4 + voice]))[0]
        allowed = [code for code in range(CODES, ONSET_CODES) if not forbidden[code]]
        assert allowed == [CODES - 1 + pitch]
    assert GoesOn().forbidden(x, known, torch.tensor([5]))[0, CODES:].all()  # out of silence nothing goes on
    assert GoesOn().forbidden(x, known, torch.tensor([0]))[0, CODES:].all()
    assert not GoesOn().forbidden(x, known, torch.tensor([4]))[0, :CODES].any()


def test_long_pieces_remember_sixteen_bars_at_least() -> None:
    everything = np.ones((4, 60 * 16), dtype=bool)
    found = list(windows(everything, ~everything, size=LONG_WINDOW, back=LONG_BACK))
    assert all(window.first - window.start >= 16 * 16 for window in found[1:])
    model = tiny()
    request = Request.generate(40, ending="open")
    seen = [cells for _, cells, _ in request.passes(model.model)]
    assert seen[0] == slice(0, 4 * LONG_WINDOW)
    assert seen[1].start == 4 * (LONG_WINDOW - LONG_BACK)


def piece_of(seed: int, bars: int = 6) -> Score:
    rng = np.random.default_rng(seed)
    return random_chorale(rng, 16 * bars).score()


def test_crops_begin_with_every_bar_and_hide_what_is_not_told() -> None:
    score = replace(piece_of(0), signs=Signs(keys=((F(0), 1, False),), times=((F(0), 4, 4),)))
    piece = whole_of(ParsedScore(score))
    crops = FormCrops([piece], 48, transpositions=(0, 2))
    assert len(crops) == 2 * 2 * len(TOLD)  # bars 1 and 2 leave four bars of the piece
    rows = crops.rows()
    assert rows.context is not None
    shown = rows.context.reshape(-1, 2, len(TOLD), 48 * 4, FEATURES)
    for version, (_, end, key) in enumerate(TOLD):
        assert bool(shown[:, :, version, :, 11].any()) == end
        assert bool(shown[:, :, version, :, 15].any()) == key
    tonic = shown[0, :, 0, 0, 17:].argmax(-1)
    assert (tonic[1] - tonic[0]) % 12 == 2
    assert torch.equal(rows.x[0][:192], piece.chorale.codes(onsets=True)[:192])


SMALL = {"steps": 2, "batch": 2, "width": 16, "depth": 1, "heads": 2, "dropout": 0.0, "device": "cpu"}


def test_a_folder_trains_a_model_and_what_cannot_be_read_is_listed(tmp_path: Path, capsys) -> None:
    folder = tmp_path / "pieces" / "inner"
    folder.mkdir(parents=True)
    for number in range(10):
        write_score(piece_of(number, 2), folder / f"{number}.mid")
    (tmp_path / "pieces" / "broken.mid").write_bytes(b"MThd no music")
    (tmp_path / "pieces" / "words.txt").write_text("not looked at")
    report = music.train(tmp_path / "pieces", tmp_path / "model", **SMALL)
    assert (report.pieces, report.held_out) == (9, 1)
    assert [Path(name).name for name, _ in report.skipped] == ["broken.mid"]
    assert "left out 1 that could not be read" in str(report)
    assert str(report).count("broken.mid") == 1  # the sentence need not name it again
    assert report.nats_per_note is not None
    # An untrained model gives each of 115 codes the same probability, so a note costs several nats, not hundreds.
    cells = 4 * 32 / np.mean([np.count_nonzero(piece_of(n, 2).voices[0]) for n in range(10)]) / 4
    assert 0.1 < report.nats_per_note < 3 * cells * np.log(ONSET_CODES)
    assert "nats per note" in capsys.readouterr().err
    assert music.load(tmp_path / "model").onsets
    assert load_model(tmp_path / "model").network.context_width == FEATURES


def test_an_empty_folder_a_missing_file_and_a_mixture_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="expected files of music in the folder"):
        music.train(tmp_path / "empty", tmp_path / "m", **SMALL)
    with pytest.raises(ValueError, match=r"one at least to train on, got none: .*nothing\.mid"):
        music.train(tmp_path / "nothing.mid", tmp_path / "m", **SMALL)
    with pytest.raises(ValueError, match=r"JSB files .* or files of music, not both"):
        music.train([tmp_path / "a.json", tmp_path / "b.mid"], tmp_path / "m", **SMALL)
