"""``anyfill music``, from the command line inwards: what it prints, writes, refuses, and leaves alone."""

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

from anyfill.cli import main as cli
from anyfill.music.chorale import Chorale
from anyfill.music.features import FEATURES
from anyfill.music.files import read_chorale, read_music
from anyfill.music.model import one_pass_chorale_model
from anyfill.music.score import Note, Score
from anyfill.music.writing import write_score
from anyfill.questions import Factorization
from anyfill.training import save_model


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model, a tune and a piece."""
    folder = tmp_path_factory.mktemp("music")
    model = one_pass_chorale_model(128, width=16, depth=1, heads=2, dropout=0.0)
    torch.nn.init.normal_(model.network.head.weight, std=0.3, generator=torch.Generator().manual_seed(1))
    model.network.head.bias.data[20:42] = 6.0  # middle pitches, so that there is room to transpose
    model.factorizations = frozenset((Factorization.DIRECT, Factorization.INPAINTING))
    save_model(model.half(), folder / "model")
    pitches = (67, 67, None, 69, 71, 72, 71)
    notes = tuple(Note(Fraction(n), Fraction(1), pitch) for n, pitch in enumerate(pitches))
    write_score(Score((notes,), (Fraction(0), Fraction(4)), ("melody",), 132.0, "A tune"), folder / "tune.mid")
    rng = np.random.default_rng(0)
    steps = np.cumsum(rng.integers(-2, 3, (4, 13)), axis=1) + np.array([[70], [64], [58], [48]])
    grid = np.repeat(steps.clip(40, 80), 4, axis=1).astype(np.int16)
    write_score(Chorale.of(grid, pickup=4, tempo=72.0, title="A piece"), folder / "piece.musicxml")
    return folder


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Run ``anyfill music`` in an empty folder; exit code, stdout, stderr. "-M" stands for the model."""
    monkeypatch.delenv(cli.DEBUG, raising=False)
    monkeypatch.chdir(tmp_path)
    there = {name: str(place / name) for name in ("tune.mid", "piece.musicxml")}

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        given: list[str] = []
        for one in arguments:
            given += ["--model", str(place / "model")] if one == "-M" else [there.get(one, one)]
        code = cli.run(["music", *given])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


def refused(answer: tuple[int, str, str], words: str) -> None:
    code, _, err = answer
    assert code == 2
    assert len(err.strip().splitlines()) == 1 or err.strip().splitlines()[-1].startswith("anyfill: ")
    assert re.search(words, err), err


def test_generate_writes_three_files_each_and_a_page_and_lists_them(run) -> None:
    code, out, _ = run("generate", "--bars", "2", "-n", "2", "--seed", "3", "--ending", "open", "-M")
    assert code == 0
    names = [f"out/chorale-3-{n}.{kind}" for n in (1, 2) for kind in ("mid", "musicxml", "png")]
    names.append("out/chorale-3.html")
    assert out.splitlines() == ["seed 3", *(f"wrote {name}" for name in names)]
    assert read_chorale("out/chorale-3-1.mid").steps == 32
    assert (read_chorale("out/chorale-3-2.mid").pitch == read_chorale("out/chorale-3-2.musicxml").pitch).all()


def test_the_same_seed_gives_the_same_bytes_and_nothing_is_overwritten_silently(run) -> None:
    assert run("generate", "--bars", "1", "-n", "1", "--seed", "3", "-M")[0] == 0
    first = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    refused(run("generate", "--bars", "1", "-n", "1", "--seed", "3", "-M"), "is there already: --force replaces it")
    assert run("generate", "--bars", "1", "-n", "1", "--seed", "3", "-M", "--force")[0] == 0
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == first
    assert run("generate", "--bars", "1", "-n", "1", "--seed", "4", "-M", "--only", "midi")[0] == 0
    assert sorted(path.name for path in Path("out").iterdir() if "-4-" in path.name) == ["chorale-4-1.mid"]


def test_without_a_seed_a_new_one_is_taken_and_printed(run) -> None:
    seen = set()
    for folder in ("a", "b"):
        code, out, _ = run("generate", "--bars", "1", "-n", "1", "--only", "midi", "-o", folder, "-M")
        assert code == 0
        seed = re.match(r"seed (\d+)\n", out)
        assert seed
        assert Path(folder, f"chorale-{seed[1]}-1.mid").is_file()
        seen.add(seed[1])
    assert len(seen) == 2  # false alarm: 1 in 100,000


def test_a_key_is_the_key_that_is_found(run) -> None:
    arguments = ("generate", "--bars", "2", "-n", "2", "--seed", "1", "--only", "midi", "--key", "E flat major")
    assert run(*arguments, "-M")[0] == 0
    code, out, _ = run("grade", "out/chorale-1-1.mid", "out/chorale-1-2.mid", "--json")
    assert code == 0
    assert [one["key"] for one in json.loads(out)["files"]] == ["E- major"] * 2


def test_best_says_so_and_keeps_the_best_of_all_that_were_drawn(run) -> None:
    given = ("--bars", "2", "--seed", "5", "--only", "midi", "--ending", "open", "-M")
    run("generate", "-n", "8", "-o", "all", *given)
    code, out, _ = run("generate", "-n", "2", "--best", "4", *given)
    assert code == 0

    def grades(*paths: Path) -> list[float]:
        files = json.loads(run("grade", *map(str, paths), "--json")[1])["files"]
        return [one["key-aware"]["overall"] for one in files]

    kept = grades(Path("out/chorale-5-1.mid"), Path("out/chorale-5-2.mid"))
    assert kept == sorted(grades(*Path("all").iterdir()))[:2]
    assert "kept the best 2 of 8 by the grade (protocol key-aware)" in out


def test_harmonise_keeps_the_tune_its_rests_tempo_and_title(run, place: Path) -> None:
    code, out, _ = run("harmonise", "tune.mid", "-n", "2", "--seed", "0", "-M")
    assert code == 0
    assert "wrote out/tune-harmonised-0-2.musicxml" in out
    tune = read_music(place / "tune.mid").score
    for kind in ("mid", "musicxml"):
        made = read_music(f"out/tune-harmonised-0-1.{kind}").score
        assert len(made.voices) == 4
        sounding = [(note.start, note.length, note.pitch) for note in made.voices[0] if note.pitch is not None]
        assert sounding == [(n.start, n.length, n.pitch) for n in tune.voices[0] if n.pitch is not None]
        assert made.tempo == pytest.approx(132.0, rel=1e-3)
        assert made.title == "A tune"


def test_a_tune_for_the_bass_is_moved_and_moved_back_saying_so(run, place: Path) -> None:
    code, _, err = run("harmonise", "tune.mid", "--voice", "bass", "-n", "1", "--seed", "0", "-M")
    assert code == 0
    assert "does not lie in the range of the bass: put an octave down for the model, and all voices an octave up" in err
    made = read_music("out/tune-harmonised-0-1.musicxml").score
    tune = [note.pitch for note in read_music(place / "tune.mid").score.voices[0] if note.pitch is not None]
    assert [note.pitch for note in made.voices[3] if note.pitch is not None] == tune


def test_harmonise_takes_one_voice_of_a_piece(run) -> None:
    code, _, err = run("harmonise", "piece.musicxml", "--voice", "tenor", "-n", "1", "--only", "midi", "-M")
    assert code == 0
    assert "the tenor of the file is the tune" in err


def test_fill_writes_what_is_asked_and_nothing_else(run, place: Path) -> None:
    code, out, _ = run("fill", "piece.musicxml", "--ask", "alto 1-2, tenor 0", "-n", "3", "--seed", "9", "-M")
    assert code == 0
    before = read_chorale(place / "piece.musicxml")
    locked = np.ones(before.pitch.shape, dtype=bool)
    locked[1, 4:36] = False
    locked[2, :4] = False
    for number in (1, 2, 3):
        for kind in ("mid", "musicxml"):
            after = read_chorale(f"out/piece-filled-9-{number}.{kind}")
            assert (after.pitch[locked] == before.pitch[locked]).all()
            assert after.tempo == pytest.approx(before.tempo, rel=1e-3)
    assert out.startswith("seed 9\n")


def test_fill_without_ask_writes_the_absent_voices(run) -> None:
    code, _, err = run("fill", "tune.mid", "-n", "1", "--seed", "0", "--only", "midi", "-M")
    assert code == 0
    assert "the other voices are absent" in err
    refused(run("fill", "piece.musicxml", "-M"), "nothing to fill")


def test_bad_requests_get_one_sentence(run, tmp_path: Path) -> None:
    refused(
        run("fill", "piece.musicxml", "--ask", "alto 9", "-M"),
        r"got bar 9 at character 6; .*bars 0 to 3 \(0 is the pickup\)",
    )
    refused(run("fill", "piece.musicxml", "--ask", "oboe 1", "-M"), r"expected a voice, got 'oboe' at character 1")
    refused(run("generate", "--key", "H major", "-M"), "--key: expected a key")
    refused(run("generate", "--nucleus", "1.5", "-M"), "nucleus")
    refused(run("generate", "--bars", "0", "-M"), "bars")
    refused(run("harmonise", "nothing.mid", "-M"), "nothing.mid")
    Path("text.mid").write_text("no music")
    refused(run("harmonise", "text.mid", "-M"), "expected a MIDI file")
    refused(run("generate", "--model", str(tmp_path)), "not a model folder")
    refused(run("grade", "tune.mid"), "expected four voices to grade, got 1")
    refused(run("show", "piece.musicxml", "-o", "roll.pdf"), r"ends in \.png")
    refused(run("score", "piece.musicxml", "tune.mid", "--png", "x.png", "-M"), "--png: expected one FILE")
    Path("out").write_text("in the way")
    refused(run("generate", "-M"), "expected a folder for the result, got a file")
    assert sorted(path.name for path in Path().iterdir()) == ["out", "text.mid"]


def test_score_says_exact_and_where_the_surprise_lies(run) -> None:
    code, out, _ = run("score", "piece.musicxml", "-M", "--most", "4", "--png", "s.png")
    assert code == 0
    assert "nats (exact, one pass)" in out
    assert Path("s.png").read_bytes()[:4] == b"\x89PNG"
    refused(run("score", "piece.musicxml", "-M", "--png", "s.png"), "is there already")
    code, out, _ = run("score", "piece.musicxml", "tune.mid", "-M", "--json", "--most", "4")
    assert code == 0
    piece, tune = json.loads(out)
    assert piece["kind"] == "exact"
    assert piece["cells"] == 4 * 52
    assert tune["cells"] == 28
    assert tune["notes"] == 6
    assert len(piece["most_surprising"]) == 4
    assert set(piece["most_surprising"][0]) == {"bar", "beat", "voice", "note", "steps", "nats"}
    assert piece["log_likelihood_per_cell"] == pytest.approx(piece["log_likelihood"] / piece["cells"])


def test_grade_names_both_protocols_and_shows_real_bach(run) -> None:
    run("generate", "--bars", "2", "-n", "2", "--seed", "3", "--only", "midi", "-M")
    code, out, _ = run("grade", "out/chorale-3-1.mid", "out/chorale-3-2.mid")
    assert code == 0
    for words in ("Protocol paper", "Protocol key-aware", "Bach: 8 bars, ", "median ± standard deviation"):
        assert words in out
    assert all(name.replace("_", " ") in out for name in FEATURES)
    code, out, _ = run("grade", "out/chorale-3-1.mid", "--json")
    found = json.loads(out)
    assert found["real_bach"]["notated"]["paper"]["median"]["overall"] == pytest.approx(4.91, abs=0.02)
    assert set(found["files"][0]["paper"]) == {"overall", *FEATURES}


def test_show_draws_a_picture(run) -> None:
    assert run("show", "tune.mid", "-o", "roll.png")[1] == "wrote roll.png\n"
    assert Path("roll.png").read_bytes()[:4] == b"\x89PNG"


def test_train_makes_a_model_that_the_other_commands_take(run) -> None:
    rng = np.random.default_rng(0)
    steps = (rng.integers(-1, 2, (40, 4)).cumsum(0) + np.array([70, 64, 58, 48])).tolist()
    Path("jsb.json").write_text(json.dumps({"train": [steps, steps[:20]], "valid": [steps]}))
    small = ("--steps", "4", "--batch", "2", "--width", "16", "--depth", "1", "--heads", "2", "--device", "cpu")
    code, out, _ = run("train", "jsb.json", "-o", "m", *small)
    assert code == 0
    assert "trained on 2 pieces" in out
    assert run("generate", "--bars", "1", "-n", "1", "--seed", "0", "--only", "midi", "--model", "m")[0] == 0
    refused(run("train", "jsb.json", "-o", "m", *small), "or --resume to go on with its run, got one with a model")
    other = run("train", "jsb.json", "-o", "m", *small, "--resume", "--batch", "3")
    refused(other, "batch_size: expected 2, as in the run that is to be resumed, got 3")
    assert run("train", "jsb.json", "-o", "m", *small, "--resume")[0] == 0
    assert run("train", "tune.mid", "piece.musicxml", "-o", "m2", *small)[0] == 0
    refused(run("train", "nothing.json", "-o", "m3", *small), "nothing.json")
    assert not Path("m3").exists()


def test_a_piece_of_a_jsb_file_is_scored_graded_and_filled_by_name(run) -> None:
    rng = np.random.default_rng(0)
    steps = (rng.integers(-1, 2, (40, 4)).cumsum(0) + np.array([70, 64, 58, 48])).tolist()
    Path("jsb.json").write_text(json.dumps({"train": [], "valid": [steps]}))
    assert run("score", "jsb.json:valid:0", "-M")[0] == 0
    assert run("grade", "jsb.json:valid:0")[0] == 0
    arguments = ("--ask", "alto 1", "-n", "1", "--seed", "0", "--only", "midi", "-M")
    assert run("fill", "jsb.json:valid:0", *arguments)[1].splitlines()[-1] == "wrote out/jsb-valid-0-filled-0-1.mid"
    refused(run("score", "jsb.json:valid:1", "-M"), "expected a number from 0 to 0, got 1")
    refused(run("grade", "jsb.json"), "as in jsb.json:valid:3")


def test_an_interrupt_keeps_the_pieces_that_are_done_and_the_seed_is_said_first(run, monkeypatch) -> None:
    from anyfill.music import Piece

    whole = Piece.save

    def interrupted(self: Piece, path: Path) -> None:
        if Path("out/chorale-3-2.mid").exists():
            raise KeyboardInterrupt
        whole(self, path)

    monkeypatch.setattr(Piece, "save", interrupted)
    code, out, _ = run(
        "generate", "--bars", "1", "-n", "3", "--seed", "3", "--only", "midi", "--ending", "open", "-M"
    )  # fmt: skip
    assert code == cli.INTERRUPTED
    assert out.splitlines() == ["seed 3", "wrote out/chorale-3-1.mid", "wrote out/chorale-3-2.mid"]
    assert sorted(path.name for path in Path("out").iterdir()) == ["chorale-3-1.mid", "chorale-3-2.mid"]


def test_score_speaks_of_other_metres_changes_and_moved_pieces_as_fill_does(run) -> None:
    rng = np.random.default_rng(0)
    steps = np.cumsum(rng.integers(-1, 2, (4, 12)), axis=1) + np.array([[82], [76], [70], [64]])
    high = Chorale.of(np.repeat(steps.clip(40, 86), 4, axis=1).astype(np.int16), bar=12)
    write_score(high.score().transposed(12), "high.mid")
    for arguments in (("score", "high.mid", "-M"), ("fill", "high.mid", "--ask", "alto 1", "-n", "1", "-M")):
        code, _, err = run(*arguments)
        assert code == 0
        assert "does not lie in the range of the model: put" in err
        assert "bars of 3 quarter notes: the model has learnt 4/4" in err


def test_alternatives_that_must_be_alike_are_written_once_and_said(run) -> None:
    arguments = ("--ask", "alto 1", "--temperature", "0", "-n", "3", "--seed", "0", "--only", "midi")
    code, out, _ = run("fill", "piece.musicxml", *arguments, "-M")
    assert code == 0
    assert [path.name for path in Path("out").iterdir()] == ["piece-filled-0-1.mid"]
    assert "only 1 distinct of 3" in out


def test_generate_draws_again_where_a_piece_is_still_unless_as_drawn(run, monkeypatch) -> None:
    from anyfill.music import search

    verdicts = iter([True, False, False])
    monkeypatch.setattr(search, "is_still", lambda _: next(verdicts))
    arguments = ("generate", "--bars", "1", "-n", "2", "--seed", "3", "--only", "midi", "--ending", "open", "-M")
    code, out, _ = run(*arguments)
    assert code == 0
    wrote = ["wrote out/chorale-3-1.mid", "wrote out/chorale-3-2.mid"]
    assert out.splitlines() == ["seed 3", *wrote, "drawn again: 1 that hardly moved (--as-drawn keeps all)"]
    code, out, _ = run(*arguments, "--force", "--as-drawn")  # a further verdict would be an error
    assert (code, out.splitlines()) == (0, ["seed 3", *wrote])
