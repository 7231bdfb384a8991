"""``anyfill text fill`` and ``generate``, from the command line inwards: what they print, write and refuse."""

import io
import json
import re
import sys
from pathlib import Path

import pytest

from anyfill.cli import main as cli
from anyfill.text.generate import Writer
from anyfill.text.vocabularies import vocabulary_notes
from anyfill.text.vocabulary import TEXT8, Characters
from anyfill.text.words import Words
from anyfill.training import save_model


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, tiny) -> Path:
    """A folder with three tiny models: of text8's characters, of others, and of words."""
    folder = tmp_path_factory.mktemp("text")
    for name, vocabulary in (("m", TEXT8), ("other", Characters(" ab!")), ("words", Words(("the", "cat")))):
        save_model(tiny(vocabulary, 24).model.half(), folder / name, notes=vocabulary_notes(vocabulary))
    return folder


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Run ``anyfill text`` in an empty folder; exit code, stdout, stderr. "-M" stands for the model of text8."""
    monkeypatch.delenv(cli.DEBUG, raising=False)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, stdin: bytes | None = None) -> tuple[int, str, str]:
        capsys.readouterr()
        told: list[str] = []
        for one in arguments:
            told += (
                ["--model", str(place / {"-M": "m", "-O": "other", "-W": "words"}[one])]
                if one
                in (
                    "-M",
                    "-O",
                    "-W",
                )
                else [one]
            )
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = cli.run(["text", *told])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


def refused(answer: tuple[int, str, str], words: str) -> None:
    code, out, err = answer
    assert code == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert err.startswith("anyfill: ")
    assert re.search(words, err), err


def test_fill_shows_fills_best_first_with_their_bits_and_shares(run) -> None:
    code, out, err = run("fill", "The ____ sat, ___!", "--n", "3", "--seed", "1", "-M")
    assert code == 0
    seed, heads, *fills = out.splitlines()
    assert (seed, heads.split()) == ("seed 1", ["share", "log2", "p", "text"])
    rows = [re.fullmatch(r" *([\d.]+)% +(-[\d.]+)  (The [a-z]+ sat, [a-z]+!)", fill) for fill in fills]
    assert len(rows) == 3
    assert all(rows)
    shares, bits, texts = zip(*(row.groups() for row in rows if row))
    assert sorted(map(float, shares), reverse=True) == list(map(float, shares))
    assert sorted(map(float, bits), reverse=True) == list(map(float, bits))
    assert len(set(texts)) == 3
    assert "filling: done" in err
    assert run("fill", "The ____ sat, ___!", "--n", "3", "--seed", "1", "-M")[1] == out
    assert run("fill", "The ____ sat, ___!", "--n", "3", "--seed", "1", "--word", "-M")[1] == out
    assert "note: the model reads 'the ____ sat ____'" in err
    code, out, _ = run("fill", "The ____ sat, ___!", "--n", "3", "--seed", "1", "--letters", "-M")
    for fill in out.splitlines()[2:]:
        assert re.fullmatch(r" *([\d.]+)% +(-[\d.]+)  (The [a-z ]{4} sat, [a-z ]{3}!)", fill)


def test_fill_as_json_says_everything(run) -> None:
    code, out, _ = run("fill", "a [] b [2-3]c", "--seed", "1", "--json", "--draws", "2", "--lengths", "1-4", "-M")
    assert code == 0
    found = json.loads(out)
    assert found["seed"] == 1
    assert found["combinations"] == {"all": 8, "tried": 8, "all_compared": 0, "draws_each": 2}
    assert found["all_compared"] is False
    assert len(found["fills"]) == 5 <= found["candidates"] <= 16
    for one in found["fills"]:
        assert one["text"] == f"a {one['answers'][0]} b {one['answers'][1]}c"
        assert one["log2_probability"] < 0 < one["share"] <= 1
    code, out, _ = run("fill", "a ____ b", "--free", "--lengths", "2-3", "--seed", "1", "--json", "-M")
    assert {len(one["answers"][0]) for one in json.loads(out)["fills"]} <= {2, 3}


def test_fill_reads_stdin_and_files(run) -> None:
    arguments = ("--seed", "1", "-n", "2", "-M")
    expected = run("fill", "the c_t", *arguments)[1]
    assert run("fill", "-", *arguments, stdin=b"the c_t\n")[1] == expected
    Path("in.txt").write_bytes("\ufeffthe c_t\r\n".encode())
    assert run("fill", "--file", "in.txt", *arguments)[1] == expected
    refused(run("fill", "in.txt", *arguments), "text: expected text, or --file .*, got the name of a file, 'in.txt'")


def test_broken_utf8_is_one_sentence_with_the_byte(run) -> None:
    Path("bad.txt").write_bytes(b"the \xff ____")
    refused(run("fill", "--file", "bad.txt", "-M"), r"bad\.txt: expected text in UTF-8, got byte 0xff at byte offset 4")
    refused(run("fill", "-", "-M", stdin=b"the \xc3( ____"), "stdin: .* got byte 0xc3 at byte offset 4")
    refused(run("fill", "the \udcff ____", "-M"), "text: .* got byte 0xff at character 5")
    refused(run("generate", "--prompt", "\udce9", "-M"), "--prompt: .* got byte 0xe9 at character 1")


def test_fill_refuses_what_cannot_be_filled(run) -> None:
    refused(run("fill", "", "-M"), "text: expected some text")
    refused(run("fill", "nothing here", "-M"), "expected a blank in it")
    refused(run("fill", "-M"), "text: expected TEXT or --file, one of them, got none")
    refused(run("fill", "a _", "--file", "x", "-M"), "one of them, got both")
    refused(run("fill", "--file", "missing.txt", "-M"), "missing.txt: expected a text file, got none")
    refused(run("fill", "so [sic] _", "-M"), r"bracket at character 4: expected \[\]")
    refused(run("fill", "a " + "_" * 30 + " b", "--letters", "-M"), "blank: expected at most 22 characters, .* got 30")
    refused(run("fill", "a _", "--lengths", "x", "-M"), "--lengths: expected a length or a range")
    refused(run("fill", "x_y", "-O"), "characters from ' ab!' only, got 'x'")
    refused(run("fill", "a_b", "--sampler", "confidence", "-M"), "--sampler confidence: expected a model trained for")
    refused(run("fill", "a_b", "--nucleus", "2", "-M"), "nucleus: expected a mass above 0 and up to 1")
    refused(run("fill", "a_b", "--model", "nowhere"), "nowhere")
    refused(run("fill", "a_b", "--n", "0", "-M"), "anyfill text fill --help")


def test_what_changes_nothing_about_the_blanks_is_said(run) -> None:
    for text, option, words in (
        ("a [3] b", ("--lengths", "2-4"), "--lengths changes nothing: every blank says how long it is"),
        ("a_b", ("--lengths", "1"), "--lengths changes nothing"),
        ("a [1-2] b", ("--free",), "--free changes nothing: there is no run of underscores"),
        ("a_b [1]", ("--letters",), "--letters changes nothing"),
        ("a _ b", ("--letters", "--free", "--lengths", "1"), "--letters changes nothing"),
    ):
        code, _, err = run("fill", text, *option, "--draws", "1", "--seed", "1", "-M")
        assert code == 0
        assert f"note: {words}" in err
        assert err.count("changes nothing") == 1
    for text, option in (("a [] b", ("--lengths", "1")), ("a_b", ("--free",)), ("a _ b", ("--letters",))):
        assert "changes nothing" not in run("fill", text, *option, "--draws", "1", "--seed", "1", "-M")[2]


def test_whoever_says_how_to_draw_gets_draws(run) -> None:
    assert run("fill", "the c_t", "--seed", "1", "-M")[1].startswith("all 27 fills compared")
    for option in (("--draws", "2"), ("--top-k", "3"), ("--temperature", "0.5"), ("--sampler", "speculative")):
        code, out, _ = run("fill", "the c_t", *option, "--seed", "1", "-M")
        assert code == 0
        assert out.startswith("seed 1\n"), option


def test_counts_are_refused_where_no_word_is_searched_for(run) -> None:
    Path("some.txt").write_text("the cat sat\nthe cat ran\n")
    assert run("count", "some.txt", "-o", "some.counts", "--order", "2")[0] == 0
    counted = ("--counts", "some.counts", "-M")
    refused(run("fill", "the [3] sat", *counted), "--counts: expected none where no blank is a word")
    refused(run("fill", "the ____ sat", "--draws", "2", *counted), "--counts: expected none where no blank is a word")
    assert run("fill", "the ____ sat", "--seed", "1", *counted)[0] == 0
    refused(run("check", "the cat", "--counts", "some.counts", "--weights", "1,1"), "--weights: expected a --model")


def test_unknown_words_of_a_model_that_has_none_are_refused(run) -> None:
    refused(run("generate", "--unknown", "-M"), "--unknown: expected a model that has a code for unknown words")


def test_notes_say_what_was_not_tried_and_what_was_not_found(run) -> None:
    _, _, err = run("fill", "[] a [] b []", "--draws", "1", "--lengths", "1-5", "--seed", "1", "-M")
    assert "note: 64 of 125 combinations of lengths were tried, drawn at random" in err
    _, out, err = run("fill", "a _ b", "--letters", "--draws", "1", "--seed", "1", "-M")
    assert "note: only 1 fill was found (more --draws may find more)" in err
    _, _, err = run("fill", "a __ b", "--letters", "--temperature", "0", "--draws", "9", "--seed", "1", "-M")
    assert "note: only 1 fill was found (a --temperature above 0 may find more)" in err
    assert len(out.splitlines()) == 3
    text = "some long text with a _ in it and then still another _"
    _, out, err = run("fill", text, "--letters", "--draws", "4", "-n", "2", "-M")
    assert "longer than the model sees at a time: its blanks were filled in 2 steps, ranked by what stands" in err
    text = "some long text with only _ blank in it"
    _, _, err = run("fill", text, "--letters", "--draws", "4", "-n", "2", "-M")
    assert "longer than the model sees at a time: ranked by what stands around them" in err
    assert all(line.count("some long text with") for line in out.splitlines()[2:])


def test_of_a_long_text_the_surroundings_are_shown_and_the_best_in_full(run) -> None:
    Path("in.txt").write_text("The first line\nand the c_t sat on the mat where nobody else had ever sat before s_t.\n")
    code, out, _ = run("fill", "--file", "in.txt", "-n", "2", "--seed", "1", "--draws", "9", "-M")
    assert code == 0
    _, _, one, two, nothing, title, *full = out.splitlines()
    shape = r" *[\d.]+% +-[\d.]+  The first line⏎and the c\[(.)\]t sat on the mat where n … "
    for row in (one, two):
        assert re.fullmatch(shape + r"se had ever sat before s\[(.)\]t\.", row), row
    answers = re.findall(r"\[(.)\]", one)
    assert (nothing, title) == ("", "the first one in full:")
    assert full[1] == f"and the c{answers[0]}t sat on the mat where nobody else had ever sat before s{answers[1]}t."


def test_where_all_fills_are_compared_that_is_said(run) -> None:
    _, out, err = run("fill", "the c_t s_t", "-n", "3", "-M")
    assert out.splitlines()[0] == "all 729 fills compared"
    assert len(out.splitlines()) == 5
    assert "note" not in err
    _, out, err = run("fill", "the c_t", "-n", "99", "--json", "-M")
    found = json.loads(out)
    assert (found["all_compared"], found["candidates"], len(found["fills"])) == (True, 27, 27)
    assert sum(one["share"] for one in found["fills"]) == pytest.approx(1.0)
    assert found["remarks"] == []


def test_words_fill_words(run) -> None:
    code, out, _ = run("fill", "the ____ the", "--seed", "1", "-n", "2", "-W")
    assert code == 0
    assert sorted(line.split("  ")[-1] for line in out.splitlines()[2:]) == ["the cat the", "the the the"]


def test_answers_are_marked_on_a_terminal_only(run, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("fill", "\x1b[1mthe _\x1b[0m c_t".replace("[", r"\["), "--seed", "1", "-n", "1", "-M")
    plain = run(*arguments)[1]
    assert plain.count("\x1b") == 2  # what was given stays, whatever it is
    monkeypatch.setattr("anyfill.text.cli.is_terminal", lambda: True)
    marked = run(*arguments)[1]
    assert marked.count("\x1b") > 2
    assert re.sub("\x1b\\[[0-9]+m", "", marked) == re.sub("\x1b\\[[0-9]+m", "", plain)


def test_generate_prints_one_text_a_line(run) -> None:
    _, out, err = run("generate", "--length", "9", "--seed", "1", "-M")
    assert re.fullmatch("[a-z ]{9}\n", out)
    code, out, err = run("generate", "-n", "3", "--length", "50", "--prompt", "The city of ", "--seed", "1", "-M")
    assert code == 0
    lines = out.splitlines()
    assert [len(line) for line in lines] == [62] * 3
    assert all(line.startswith("The city of ") for line in lines)
    assert err.startswith("seed 1\n")
    assert run("generate", "-n", "3", "--length", "50", "--prompt", "The city of ", "--seed", "1", "-M")[1] == out
    code, out, _ = run(
        "generate", "-n", "3", "--length", "50", "--prompt", "The city of ", "--seed", "1", "--json", "-M"
    )
    assert json.loads(out) | {"model": ""} == {"seed": 1, "model": "", "texts": lines}


class Watched(io.StringIO):
    """A stdout that remembers what was there whenever it was flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed = list[str]()

    def flush(self) -> None:
        if not self.flushed or self.flushed[-1] != self.getvalue():
            self.flushed.append(self.getvalue())


def test_generate_prints_what_is_made_as_soon_as_it_is_made(run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run("generate", "--length", "50", "--prompt", "The ", "--seed", "1", "-M")[1]
    monkeypatch.setattr(sys, "stdout", watched := Watched())
    run("generate", "--length", "50", "--prompt", "The ", "--seed", "1", "-M")
    assert watched.getvalue() == whole
    assert len(watched.flushed) >= 50
    assert all(whole.startswith(some) for some in watched.flushed)
    monkeypatch.setattr(sys, "stdout", watched := Watched())
    asked_again: list[int] = []
    make = Writer.texts

    def observed(*arguments):
        for texts, share in make(*arguments):
            yield texts, share
            if texts:
                asked_again.append(watched.flushed[-1].count("\n"))

    monkeypatch.setattr(Writer, "texts", observed)
    run("generate", "-n", "70", "--length", "3", "--seed", "1", "-M")
    assert asked_again == [64, 70]


@pytest.mark.parametrize("count", ["1", "3"])
def test_an_interrupted_generate_ends_with_a_whole_line(run, monkeypatch: pytest.MonkeyPatch, count: str) -> None:
    write = Writer._write

    def interrupted(*arguments):
        for number, done in enumerate(write(*arguments)):
            if number == 10:
                raise KeyboardInterrupt
            yield done

    monkeypatch.setattr(Writer, "_write", interrupted)
    code, out, err = run("generate", "-n", count, "--length", "50", "--seed", "1", "-M")
    assert code == 130
    assert err.splitlines()[-1] == "anyfill: interrupted"
    assert "Traceback" not in err
    assert out == "" if count == "3" else re.fullmatch(r"[a-z ]{10}\n", out)
    code, out, _ = run("generate", "-n", count, "--length", "50", "--seed", "1", "-o", "x.txt", "-M")
    assert (code, out, list(Path().iterdir())) == (130, "", [])


def test_generate_writes_a_file_once(run) -> None:
    arguments = ("generate", "--length", "20", "--seed", "1", "-o", "new/text.txt")
    code, out, err = run(*arguments, "-M")
    assert (code, out) == (0, "")
    assert "wrote new/text.txt" in err
    first = Path("new/text.txt").read_text()
    assert len(first) == 21
    refused(run(*arguments, "-M"), "new/text.txt is there already: --force replaces it")
    assert run(*arguments, "--force", "--temperature", "0.5", "-M")[0] == 0
    assert Path("new/text.txt").read_text() != first
    assert [path.name for path in Path("new").iterdir()] == ["text.txt"]
    refused(run("generate", "-o", "new", "-M"), "new: expected the name of a file, got a folder")
    inside = ("generate", "--length", "20", "-o", "new/text.txt/more/x.txt", "-M")
    refused(run(*inside), "new/text.txt/more/x.txt: expected a name in a folder, got one in the file new/text.txt")


def test_without_a_seed_a_new_one_is_taken_and_printed(run) -> None:
    seeds = {re.match(r"seed (\d+)\n", run("fill", "a_____b", "-M")[1])[1] for _ in range(2)}
    assert len(seeds) == 2  # false alarm: 1 in 100,000


def test_help_needs_no_torch_and_names_all_commands(run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert all(re.search(rf"^  {name} ", out, re.M) for name in ("fill", "generate", "score", "train"))
