"""``anyfill text train``: a run that is cut off goes on exactly, a corpus is encoded once, bad input is refused."""

import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from anyfill.cli import main as cli
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.questions import Factorization
from anyfill.text import corpus, training
from anyfill.text.corpus import Corpus, open_corpus
from anyfill.text.model import load
from anyfill.text.recipes import TEXT_SIZES
from anyfill.text.settings import Settings, chosen
from anyfill.text.vocabularies import vocabulary_of
from anyfill.text.vocabulary import WithEnd
from anyfill.training import load_model, load_notes

TEXT = "".join("abc de\n"[i] for i in np.random.default_rng(0).integers(0, 7, 600))
SMALL = ("--steps", "6", "--batch", "2", "--length", "8")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run ``anyfill text`` in a folder with corpus.txt; exit code, stdout, stderr. The smallest size is tiny."""
    monkeypatch.delenv(cli.DEBUG, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(TEXT_SIZES, "1M", (16, 1, 2))
    Path("corpus.txt").write_text(TEXT)

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.run(["text", *arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


@pytest.fixture
def interrupt(monkeypatch):
    """Press Ctrl-C in the so-manieth loss from now on."""
    loss = OnePassLoss.loss

    def when(number: int) -> None:
        left = [number]

        def pressed(self, *arguments, **more):
            left[0] -= 1
            if left[0] == 0:
                signal.raise_signal(signal.SIGINT)
            return loss(self, *arguments, **more)

        monkeypatch.setattr(OnePassLoss, "loss", pressed)

    return when


def refused(answer: tuple[int, str, str], words: str) -> None:
    code, out, error = answer
    assert (code, out) == (2, ""), answer
    assert error.splitlines()[-1].startswith("anyfill: ")
    assert error.count("anyfill: ") == 1
    assert words in error


def weights(folder: str) -> dict[str, list[float]]:
    return {name: value.tolist() for name, value in load_model(folder).state_dict().items()}


def test_training_says_what_was_chosen_and_makes_a_model_that_the_other_commands_take(run) -> None:
    code, out, error = run("train", "corpus.txt", "-o", "m", *SMALL)
    assert code == 0, error
    assert "corpus    corpus.txt: 600 characters, 7 different ones; the last 5 % are held out\n" in error
    assert "model     one_pass_spans, size 1M (" in error
    assert "training  6 steps of 2 rows" in error
    assert "bits per character on 3 rows held out (exact, each row from nothing)\n" in out
    assert out.endswith("model saved in m: try anyfill text generate --model m\n")
    notes = load_notes("m")
    assert notes["made_by"] == "anyfill text train"
    text = notes["text"]
    assert (text["lines"], text["length"], text["recipe"]) == (False, 8, "one_pass_spans")
    assert vocabulary_of(notes).alphabet == "\n abcde"
    assert Factorization.DIRECT in load_model("m").factorizations
    assert sorted(path.suffix for path in Path("m").iterdir()) == [".json", ".safetensors"], "no corpus left behind"
    code, out, _ = run("score", "corpus.txt", "--model", "m", "--json")
    assert code == 0
    assert json.loads(out)[0]["tokens"] == 600
    assert run("generate", "--model", "m", "--length", "9", "--seed", "1")[0] == 0
    refused(run("train", "corpus.txt", "-o", "m"), "--resume to go on with its run, got one with a model")


def test_the_same_seed_gives_the_same_model_and_another_seed_another(run) -> None:
    for name, seed in (("one", "3"), ("two", "3"), ("three", "4")):
        assert run("train", "corpus.txt", "-o", name, *SMALL, "--seed", seed)[0] == 0
    assert weights("one") == weights("two")
    assert weights("one") != weights("three")


@pytest.mark.parametrize("call", [1, 3, 5])
def test_a_run_that_is_interrupted_leaves_a_usable_model_and_goes_on_exactly(run, interrupt, monkeypatch, call) -> None:
    assert run("train", "corpus.txt", "-o", "whole", *SMALL, "--valid-share", "0")[0] == 0
    interrupt(call)
    code, _, error = run("train", "corpus.txt", "-o", "m", *SMALL, "--valid-share", "0")
    assert code == 130
    assert error.endswith(
        "what was learnt so far is in m; the same command with --resume goes on\nanyfill: interrupted\n"
    )
    assert json.loads(Path("m/config.json").read_text())["training"]["progress"]["step"] == call
    assert run("score", "corpus.txt", "--model", "m")[0] == 0
    before = Path("m/corpus.tokens").stat()

    def never(*_, **__):
        raise AssertionError("the corpus is encoded once")

    monkeypatch.setattr(training, "encode_corpus", never)
    monkeypatch.setattr(corpus, "text_blocks", never)
    interrupt(1)
    if call < 4:
        assert run("train", "corpus.txt", "-o", "m", "--resume")[0] == 130
        now = Path("m/corpus.tokens").stat()
        assert (now.st_ino, now.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    interrupt(0)
    code, out, error = run("train", "corpus.txt", "-o", "m", "--resume")
    assert code == 0
    assert "resumed   6 steps of 2 rows" in error
    assert weights("m") == weights("whole")
    assert not Path("m/corpus.tokens").exists()
    code, out, _ = run("train", "corpus.txt", "-o", "m", "--resume")
    assert (code, out.splitlines()[0]) == (0, "the run in m has ended: there is nothing to resume")
    assert weights("m") == weights("whole")


def test_one_process_says_that_there_is_nothing_to_shard(run) -> None:
    code, _, error = run("train", "corpus.txt", "-o", "plain", *SMALL, "--size", "1M", "--shard")
    assert code == 0
    assert "one process, so nothing to shard" in error


def test_what_is_said_again_when_a_run_is_resumed_must_agree(run, interrupt) -> None:
    assert run("train", "corpus.txt", "-o", "other", *SMALL, "--units", "bytes")[0] == 0
    interrupt(2)
    assert run("train", "corpus.txt", "-o", "m", *SMALL)[0] == 130
    again = ("train", "corpus.txt", "-o", "m", "--resume")
    as_before = "as in the run that is to be resumed"
    refused(run(*again, "--recipe", "one_pass"), f"--recipe: expected one_pass_spans, {as_before}")
    refused(run(*again, "--units", "words"), f"--units: expected characters, {as_before}")
    refused(run(*again, "--vocabulary-size", "3"), f"--vocabulary-size: expected none, {as_before}")
    refused(run(*again, "--lines"), f"--lines: expected none, {as_before}")
    refused(run(*again, "--steps", "7"), f"--steps: expected 6, {as_before}")
    refused(run(*again, "--vocabulary", "other"), "--vocabulary: expected that of the run to be resumed")
    Path("corpus.txt").write_text(TEXT + "x")
    refused(run(*again), "corpus.txt, byte offset 600: text: expected characters from '\\n abcde' only, got 'x'")
    Path("corpus.txt").write_text(TEXT[::-1])
    refused(run(*again), "corpus.txt: expected the corpus of the run that is to be resumed, got another")
    Path("corpus.txt").write_text(TEXT)
    interrupt(0)
    assert run(*again, "--steps", "6", "--recipe", "one_pass_spans")[0] == 0


def test_resuming_where_nothing_is_begins(run) -> None:
    assert run("train", "corpus.txt", "-o", "m", *SMALL, "--resume")[0] == 0
    assert run("train", "corpus.txt", "-o", "n", *SMALL)[0] == 0
    assert weights("m") == weights("n")


def test_a_budget_of_seconds_ends_the_run(run) -> None:
    code, out, error = run("train", "corpus.txt", "-o", "m", "--batch", "2", "--length", "8", "--seconds", "0.3")
    assert code == 0
    assert "training  0 s in steps of 2 rows" in error
    progress = json.loads(Path("m/config.json").read_text())["training"]["progress"]
    assert progress["stopped"] == "seconds"
    assert out.startswith(f"trained {progress['step']:,} steps in ")


def test_ctrl_c_while_the_corpus_is_read_leaves_nothing(run, monkeypatch) -> None:
    def pressed(*_, **__):
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "encode_corpus", pressed)
    code, out, error = run("train", "corpus.txt", "-o", "m", *SMALL)
    assert (code, out) == (130, "")
    assert error.endswith("anyfill: interrupted\n")
    assert not Path("m").exists()


def test_lines_are_rows_and_their_lengths_are_noted(run) -> None:
    lines = ["ab", "abc", "a", "abcabcabcabc", "bca"] * 8
    Path("lines.txt").write_text("\r\n\n".join(lines) + "\n")
    tiny = ("--steps", "2", "--batch", "3", "--length", "5", "--lines", "--valid-share", "0.2")
    code, _, error = run("train", "lines.txt", "-o", "m", *tiny)
    assert code == 0, error
    assert "40 lines, 168 characters, 3 different ones" in error
    assert "lines of at most 5 characters (18.8% are longer and are cut)" in error
    notes = load_notes("m")
    train = lines[:32]
    expected = [sum(min(len(line), 5) == size for line in train) for size in range(6)]
    assert notes["text"]["lengths"] == expected
    assert vocabulary_of(notes).alphabet == "abc"
    code, out, _ = run("score", "lines.txt", "--model", "m", "--json")
    assert code == 0
    assert json.loads(out)[0]["lines"] is True
    assert run("train", "lines.txt", "-o", "ar", *tiny, "--recipe", "left_to_right")[0] == 0
    assert isinstance(vocabulary_of(load_notes("ar")), WithEnd)
    assert run("score", "lines.txt", "--model", "ar")[0] == 0
    assert run("generate", "--model", "ar", "--seed", "0")[0] == 0
    assert run("generate", "--model", "m", "--seed", "0")[0] == 0


@pytest.mark.parametrize("recipe", ["one_pass", "ardm", "mac_next", "sunmask", "left_to_right"])
@pytest.mark.parametrize("units", ["words", "bytes"])
def test_every_recipe_and_unit_trains(run, recipe, units) -> None:
    with gzip.open("corpus.txt.gz", "wt") as file:
        file.write(TEXT)
    arguments = ("--recipe", recipe, "--units", units, "--vocabulary-size", "9")
    arguments = arguments if units == "words" else arguments[:-2]
    code, out, error = run("train", "corpus.txt", "corpus.txt.gz", "-o", "m", *SMALL, *arguments)
    assert code == 0, error
    assert "corpus.txt, corpus.txt.gz: " in error
    assert ("held out (exact" in out) == (recipe != "sunmask")
    vocabulary = vocabulary_of(load_notes("m"))
    assert vocabulary.size == (9 if units == "words" else 256)


def test_a_vocabulary_can_be_taken_from_another_model(run) -> None:
    assert run("train", "corpus.txt", "-o", "m", *SMALL)[0] == 0
    Path("less.txt").write_text("abab" * 100)
    assert run("train", "less.txt", "-o", "n", *SMALL, "--vocabulary", "m")[0] == 0
    assert vocabulary_of(load_notes("n")) == vocabulary_of(load_notes("m"))
    Path("more.txt").write_text("ababé" * 100)
    lacking = "more.txt, byte offset 4: text: expected characters from '\\n abcde' only, got 'é'"
    refused(run("train", "more.txt", "-o", "o", *SMALL, "--vocabulary", "m"), lacking)
    assert not Path("o").exists()
    refused(run("train", "more.txt", "-o", "o", "--vocabulary", "m", "--vocabulary-size", "5"), "--vocabulary-size")
    refused(
        run("train", "more.txt", "-o", "o", "--vocabulary", "m", "--units", "words"), "--units: expected characters"
    )


def test_bad_input_is_refused_in_one_sentence_and_leaves_nothing(run, monkeypatch) -> None:
    Path("broken.txt").write_bytes(b"ab" * 300 + b"\xff")
    Path("empty.txt").write_text("")
    Path("blank.txt").write_text(" \n\n ")
    Path("short.txt").write_text("ab" * 10)
    Path("full").mkdir()
    Path("full/mine.txt").write_text("mine")
    new = ("-o", "m")
    broken = "broken.txt: expected text in UTF-8, got byte 0xff at byte offset 600 (invalid start byte)"
    refused(run("train", "corpus.txt", "broken.txt", *new), broken)
    refused(run("train", "empty.txt", *new), "empty.txt: expected text, got none")
    refused(run("train", "blank.txt", *new, "--units", "words"), "blank.txt: expected text, got none")
    refused(run("train", "empty.txt", *new, "--units", "bytes"), "empty.txt: expected text, got none")
    refused(run("train", "nowhere.txt", *new), "nowhere.txt: expected a text file, got none")
    refused(run("train", "short.txt", *new), "short.txt: expected at least 160 tokens of text, got 20")
    row = "corpus.txt: expected text for a row of 99 tokens at least, got 30 that are held out"
    refused(run("train", "corpus.txt", *new, "--length", "99"), row)
    row = "short.txt: expected text for a row of 99 tokens at least, got 20 that are left to train on"
    answer = run("train", "short.txt", *new, "--length", "99", "--valid-share", "0")
    refused(answer, row)
    assert "times through the corpus" not in answer[2]  # what cannot be trained is not announced
    refused(run("train", "corpus.txt", "-o", "full"), "full: expected a new or empty folder")
    refused(run("train", "corpus.txt", "-o", "full", "--resume"), "got one with other things (mine.txt)")
    refused(run("train", "corpus.txt", "-o", "corpus.txt"), "corpus.txt: expected a folder for the model, got a file")
    refused(run("train", "corpus.txt", "-o", "."), "a folder of its own")
    refused(run("train", "corpus.txt", *new, "--recipe", "gpt"), "--recipe: expected 'ardm', 'mac_next', ")
    refused(
        run("train", "corpus.txt", *new, "--size", "2M"), "--size: expected '1M', '6M', '10M', '25M' or '85M', got '2M'"
    )
    refused(run("train", "corpus.txt", *new, "--units", "letters"), "--units: expected 'characters', 'bytes', ")
    refused(run("train", "corpus.txt", *new, "--units", "bytes", "--vocabulary-size", "9"), "--vocabulary-size")
    refused(run("train", "corpus.txt", *new, "--units", "pieces", "--vocabulary-size", "9"), "from 300 up, got 9")
    refused(run("train", "corpus.txt", *new, "--valid-share", "0.7"), "--valid-share")
    refused(run("train", "corpus.txt", *new, "--seconds", "0"), "--seconds: expected a number above 0")
    refused(run("train", "corpus.txt", *new, "--learning-rate", "-1"), "--learning-rate: expected a number above 0")
    if not torch.cuda.is_available():
        refused(run("train", "corpus.txt", *new, *SMALL, "--device", "cuda"), "finds no CUDA device")
    assert {path.name for path in Path().iterdir()} == {
        *("corpus.txt", "broken.txt", "empty.txt", "blank.txt", "short.txt", "full")
    }


def test_a_model_made_in_another_way_is_not_resumed(run) -> None:
    from anyfill.text.recipes import text_model
    from anyfill.training import save_model

    save_model(text_model("one_pass", 8, 3, size="1M"), "m")
    refused(run("train", "corpus.txt", "-o", "m", "--resume"), "m: expected a run of anyfill text train, got a model")


def facts(tokens: int, valid_share: float = 0.05, lengths: list[int] | None = None) -> Corpus:
    from anyfill.text.token_file import Tokens
    from anyfill.text.vocabulary import Utf8

    bounds = None if lengths is None else np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
    codes = np.zeros(tokens if lengths is None else sum(lengths), dtype=np.uint8)
    return open_corpus([Path("c.txt")], Tokens(codes, bounds, Utf8(), {}), valid_share)


def test_what_is_not_said_is_chosen_by_corpus_and_device() -> None:
    large = chosen(Settings(), facts(10_000_000), cuda=False)
    assert (large.size, large.length, large.recipe, large.dropout) == ("1M", 128, "one_pass_spans", 0.0)
    assert large.steps * large.batch * 128 < 3e6, "minutes on two cores"
    small = chosen(Settings(), facts(20_000), cuda=False)
    assert small.steps < large.steps
    assert small.dropout == 0.1
    fast = chosen(Settings(), facts(10_000_000), cuda=True, processes=3)
    assert (fast.size, fast.length, fast.batch % 3) == ("25M", 256, 0)
    assert chosen(Settings(), facts(1_000), cuda=False).length == 50, "never more than is held out"
    assert chosen(Settings(units="words"), facts(10_000_000), cuda=False).length == 32
    said = Settings(size="6M", length=20, batch=3, steps=7, learning_rate=0.1, dropout=0.5, seed=9, valid_share=0.1)
    made = chosen(said, facts(10_000), cuda=False)
    for name in ("size", "length", "batch", "steps", "learning_rate", "dropout", "seed", "valid_share"):
        assert getattr(made, name) == getattr(said, name)
    lines = [5] * 990 + [9] * 8 + [40] * 2
    assert chosen(Settings(lines=True), facts(0, 0, lines), cuda=False).length == 5


@pytest.mark.slow
def test_two_processes_of_torchrun_learn_what_one_learns(tmp_path) -> None:
    (tmp_path / "corpus.txt").write_text(TEXT)
    arguments = ["-m", "anyfill", "text", "train", "corpus.txt", *SMALL, "--device", "cpu", "-o"]
    together = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run([*together, *arguments, "two"], cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("model saved in two") == 1
    assert done.stderr.count("corpus    corpus.txt") == 1
    alone = subprocess.run([sys.executable, *arguments, "one"], cwd=tmp_path, capture_output=True, timeout=500)
    assert alone.returncode == 0
    one, two = (load_model(tmp_path / name).state_dict() for name in ("one", "two"))
    for name in one:
        torch.testing.assert_close(one[name], two[name], rtol=1e-3, atol=1e-3)
    (tmp_path / "broken.txt").write_bytes(b"\xff" * 100)
    arguments[4] = "broken.txt"
    done = subprocess.run([*together, *arguments, "bad"], cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert done.returncode != 0
    assert done.stderr.count("anyfill: broken.txt: expected text in UTF-8") == 1
    assert "a mistake in anyfill" not in done.stderr


def test_words_are_trained_without_the_marks_at_them_and_pieces_without_sentencepiece(
    run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("corpus.txt").write_text("the United States, of America. (a cat, the cat!) " * 30)
    assert run("train", "corpus.txt", "-o", "words", "--units", "words", *SMALL)[0] == 0
    words = load("words").vocabulary
    assert {"States", ",", "(", "!"} <= set(words.words)
    assert "States," not in words.words
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    assert run("train", "corpus.txt", "-o", "pieces", "--units", "pieces", *SMALL)[0] == 0
    pieces = load("pieces").vocabulary
    assert pieces.decode(pieces.encode("Été 1984, ¿no?")) == "Été 1984, ¿no?"
