"""The commands: a text, a file, blanks, passes; and one sentence for whatever cannot be done."""

import io
import json
from itertools import pairwise

import pytest

from anyfill.cli.main import run
from anyfill.training import save_model
from anyfill.translation.model import MADE_BY, NOTES


@pytest.fixture(scope="module")
def folders(translators, vocabulary, tmp_path_factory):
    """A function: the folder of an untrained model of a recipe."""
    root = tmp_path_factory.mktemp("models")

    def of(recipe):
        folder = root / recipe
        if not folder.exists():
            about = {"recipe": recipe, "languages": ["de", "en"], "vocabulary": vocabulary.to_json(), "odds": []}
            notes = {"made_by": MADE_BY, NOTES: about}
            save_model(translators(recipe).decoder.model, folder, notes=notes)
        return str(folder)

    return of


def said(capsys, *arguments):
    """Exit code, stdout, stderr."""
    code = run(["translate", *map(str, arguments)])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_a_text_is_a_command_of_its_own(folders, translators, capsys):
    code, out, _ = said(capsys, "Guten Morgen", "--to", "en", "--model", folders("padir"))
    assert code == 0
    assert out == translators("padir").translate("Guten Morgen").text + "\n"
    again = said(capsys, "text", "Guten Morgen", "--model", folders("padir"))
    assert again[1] == out
    assert said(capsys, "--model", folders("padir"), "Guten Morgen")[1] == out
    assert said(capsys, "Guten Morgen", "--to", "EN", "--model", folders("padir"))[1] == out


def test_passes_are_shown_and_json_has_them(folders, capsys):
    code, out, err = said(capsys, "Guten Morgen", "--show-passes", "--json", "--passes", 3, "--model", folders("cmlm"))
    assert code == 0
    assert [line.split()[:2] for line in err.splitlines() if line.startswith("pass")] == [
        ["pass", "1"],
        ["pass", "2"],
        ["pass", "3"],
    ]
    assert len(json.loads(out)[0]["history"]) == 4


def test_what_a_pass_changed_is_in_colour(folders, translators, capsys, monkeypatch):
    """As text, with spaces. Every piece of the first pass, and of those behind it only what was not there before."""
    monkeypatch.setattr("typer.echo", lambda text="", **options: print(text))
    _, out, _ = said(capsys, "Ich wohne in Wien.", "--show-passes", "--passes", 3, "--model", folders("cmlm"))
    lines = [line for line in out.splitlines() if line.startswith("pass")]
    history = translators("cmlm").translate("Ich wohne in Wien.", passes=3, history=True).history
    assert len(lines) == len(history) - 1 == 3
    for number, (before, row) in enumerate(pairwise(history), 1):
        shown = [
            piece if number > 1 and piece == old else f"\x1b[32m\x1b[1m{piece}\x1b[0m"
            for old, piece in zip(before, row)
        ]
        changed = sum(old != piece for old, piece in zip(before, row))
        assert lines[number - 1] == f"pass {number} {''.join(shown)}   ({changed} changed)".replace("▁", " ")


def test_a_file_goes_line_by_line_and_empty_lines_stay(folders, capsys, tmp_path):
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("Guten Morgen\n\nDatei %s nicht gefunden\n", "utf-8")
    code, _, err = said(capsys, "--file", source, "-o", target, "--model", folders("padir"), "--passes", 1)
    lines = target.read_text("utf-8").split("\n")
    assert code == 0
    assert len(lines) == 4
    assert lines[1] == ""
    assert "%s" in lines[2]
    assert "wrote" in err
    assert said(capsys, "--file", source, "-o", target, "--model", folders("padir"))[0] == 2
    assert said(capsys, "--file", source, "-o", target, "--force", "--model", folders("padir"))[0] == 0


def test_a_table_is_no_file_of_lines_but_lines_may_have_tabs(folders, capsys, tmp_path, pairs_tsv):
    options = ("--model", folders("padir"), "--passes", 1)
    code, out, err = said(capsys, "--file", pairs_tsv, *options)
    assert (code, out) == (2, "")
    assert "--file: expected lines of text, one column of the table in a file of its own, got a .tsv file" in err
    assert len(err.strip().splitlines()) == 1
    text, column = tmp_path / "lines.txt", tmp_path / "column.tsv"
    text.write_text("Guten\tMorgen\nGuten Abend\n", "utf-8")
    column.write_text("Guten Morgen\nGuten Abend\n", "utf-8")
    code, out, _ = said(capsys, "--file", text, *options)
    assert (code, out.count("\n")) == (0, 2)
    assert said(capsys, "--file", column, *options)[1] == out


def test_a_line_that_was_cut_between_words_is_remarked_on_and_one_of_many_sentences_is_not(folders, capsys, tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("Das Haus ist rot. " * 9 + "\n" + "Haus " * 60 + "\n", "utf-8")
    code, _, err = said(capsys, "--file", path, "--model", folders("padir"), "--passes", 1)
    assert code == 0
    assert [line for line in err.splitlines() if line.startswith("note")] == [
        "note: 1 of 2 lines: a sentence of more than 16 pieces was cut between words: read what became of it"
    ]


def test_lines_of_stdin_are_those_that_a_file_has(folders, capsys, tmp_path, monkeypatch):
    content = "Guten Morgen\x0b Abend\u2028\n\nDas Haus\x0c\r\n".encode()
    path = tmp_path / "in.txt"
    path.write_bytes(content)
    options = ["--model", folders("padir"), "--passes", 1]
    code, out, _ = said(capsys, "--file", path, *options)
    assert code == 0
    assert out.count("\n") == 3
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert said(capsys, "-", *options)[1] == out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"gut\n\xff\n"), errors="surrogateescape"))
    code, out, err = said(capsys, "-", *options)
    assert (code, out) == (2, "")
    assert "stdin, line 2: expected text in UTF-8, got byte 0xff" in err


def test_a_catalogue_is_filled_with_plural_forms_and_placeholders(folders, capsys, tmp_path):
    path = tmp_path / "app.po"
    path.write_text(
        'msgid "Datei %s"\nmsgstr ""\n\nmsgid "%d Haus"\nmsgid_plural "%d Hund"\nmsgstr[0] ""\nmsgstr[1] ""\n', "utf-8"
    )
    code, out, err = said(capsys, "--file", path, "--model", folders("padir"), "--passes", 1)
    assert code == 0
    assert "2 empty entries were translated" in err
    assert out.count("#, fuzzy") == 2
    assert out.count("%s") == 2
    assert out.count("%d") == 4
    path.write_text('msgid "Datei %s"\nmsgstr ""\n', "utf-8")
    err = said(capsys, "--file", path, "--model", folders("padir"), "--passes", 1)[2]
    assert "1 empty entry was translated" in err
    (tmp_path / "x.mo").write_bytes(b"")
    code, _, err = said(capsys, "--file", tmp_path / "x.mo", "--model", folders("padir"))
    assert code == 2
    assert "a .po catalogue, got a .mo file" in err


def test_blanks_edits_and_scores(folders, capsys):
    code, out, _ = said(capsys, "fill", "Guten Morgen", "Good [2]", "-n", 2, "--model", folders("disco"))
    assert code == 0
    assert all(line.startswith("Good") for line in out.splitlines())
    code, out, _ = said(
        capsys, "edit", "Ich wohne in Wien.", "I live in Berlin.", "Berlin=Vienna", "--model", folders("padir")
    )
    assert code == 0
    assert "Vienna" in out
    code, out, _ = said(capsys, "score", "Guten Morgen", "Good morning", "--json", "--model", folders("autoregressive"))
    assert code == 0
    assert json.loads(out)["nats"] < 0


def test_a_one_pass_model_keeps_fills_guesses_and_has_alternatives(folders, capsys):
    model = ["--model", folders("one_pass")]
    code, out, _ = said(capsys, "Ich wohne in Berlin.", "--keep", "Berlin@3", *model)
    assert code == 0
    assert out.split()[2].startswith("Berlin")
    assert said(capsys, "Guten Morgen", "--speculative", *model)[1] == said(capsys, "Guten Morgen", *model)[1]
    assert said(capsys, "Guten Morgen", "--alternatives", 3, *model)[1].count("\n") > 1
    assert said(capsys, "fill", "Guten Morgen", "Good [2]", *model)[1].startswith("Good")


def test_int8_is_for_those_that_can(folders, capsys):
    code, out, _ = said(capsys, "Guten Morgen", "--int8", "--model", folders("autoregressive"))
    assert code == 0
    assert out.strip()
    code, _, err = said(capsys, "Guten Morgen", "--int8", "--model", folders("one_pass"))
    assert code == 2
    assert "int8: expected an encoder-decoder" in err


def test_a_model_is_evaluated_on_pairs(folders, capsys, pairs_tsv):
    pytest.importorskip("sacrebleu")
    code, out, _ = said(capsys, "evaluate", pairs_tsv, "--model", folders("padir"), "--json", "--limit", 4)
    assert code == 0
    assert json.loads(out)["sentences"] == 4
    code, out, _ = said(capsys, "evaluate", pairs_tsv, "--model", folders("padir"), "--passes", 1)
    assert "13a" in out
    assert "distinct" in out


def test_training_from_the_command_line(capsys, pairs_tsv, tmp_path):
    options = [
        "--size",
        "toy",
        "--vocabulary-size",
        340,
        "--length",
        24,
        "--batch",
        4,
        "--steps",
        2,
        "--valid-share",
        0,
    ]
    folder = tmp_path / "m"
    code, out, err = said(
        capsys, "train", pairs_tsv, "-o", folder, "--from", "de", "--to", "en", "--device", "cpu", *options
    )
    assert code == 0, err
    assert "anyfill translate" in out
    assert said(capsys, "Guten Morgen", "--model", folder)[0] == 0


def test_a_seed_is_remarked_on_where_there_is_no_noise(folders, capsys):
    code, out, err = said(capsys, "Guten Morgen", "--seed", 9, "--model", folders("cmlm"))
    assert code == 0
    assert "note: --seed changes nothing: models of the recipe cmlm start from no noise" in err
    assert said(capsys, "Guten Morgen", "--model", folders("cmlm"))[1:] == (out, "")
    assert "note:" not in said(capsys, "Guten Morgen", "--seed", 9, "--model", folders("padir"))[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Guten Morgen", "--to", "fr"], "anyfill translate train"),
        (["Guten Morgen", "--model", "nowhere"], "not a model folder"),
        (["Guten Morgen", "--to", "fr", "--model", "PADIR"], "expected en"),
        (["PAIRS", "--to", "en", "--model", "PADIR"], "text, or --file and the name of a file"),
        (["--model", "PADIR"], "a TEXT or --file"),
        (["Guten Morgen", "--file", "x.txt", "--model", "PADIR"], "both"),
        (["--file", "nowhere.txt", "--model", "PADIR"], "nowhere.txt"),
        (["--file", "BROKEN", "--model", "PADIR"], "line 2: expected text in UTF-8"),
        (["Guten Morgen", "--keep", "Berlin@99", "--model", "PADIR"], "words that fit"),
        (["Guten Morgen", "--keep", "Berlin", "--model", "AR"], "any place"),
        (["Guten \udcff Morgen", "--model", "PADIR"], "expected text in UTF-8, got byte 0xff"),
        (["fill", "Guten Morgen", "nothing to fill", "--model", "PADIR"], "a blank in it"),
        (["edit", "a b", "a b", "oops", "--model", "PADIR"], "OLD=NEW"),
        (["score", "Guten Morgen", "Good morning", "--model", "PADIR"], "a model with a likelihood"),
        (["train", "BROKEN", "-o", "m", "--from", "de", "--to", "en"], "two columns"),
        (["train", "nowhere.tsv", "-o", "m", "--from", "de", "--to", "en"], "nowhere.tsv"),
        (["train", "PAIRS", "-o", "m", "--from", "de", "--to", "de"], "another language"),
        (["train", "PAIRS", "-o", "m", "--from", "de", "--to", "en", "--columns", "en"], "two languages"),
        (["evaluate", "nowhere.tsv", "--model", "PADIR"], "nowhere.tsv"),
        (["distill", "PAIRS", "-o", "PAIRS", "--model", "AR"], "--force"),
        (["corpus", "-o", "new", "--package", "../evil"], "Debian"),
        (["Guten Morgen", "--passes", "0", "--model", "PADIR"], "passes"),
        (["Guten Morgen", "--beam", "9", "--model", "PADIR"], "--beam: expected none with the recipe padir"),
        (["Guten Morgen", "--passes", "4", "--model", "AR"], "--passes: expected none"),
        (["Guten Morgen", "--speculative", "--model", "AR"], "--speculative: expected none"),
        (["Guten Morgen", "--length-penalty", "2", "--model", "PADIR"], "--length-penalty: expected none"),
        (["Guten Morgen", "--lengths", "3", "--model", "AR"], "--lengths: expected none"),
        (
            ["Guten Morgen", "--show-passes", "--model", "AR"],
            "--show-passes: expected a model that decodes in parallel",
        ),
        (["Guten Morgen", "--alternatives", "2", "--lengths", "3"], "--lengths: expected none with --alternatives"),
        (["Guten Morgen", "--alternatives", "2", "--keep", "Berlin"], "--keep: expected none with --alternatives"),
        (["Guten Morgen", "--alternatives", "2", "--show-passes"], "--show-passes: expected none with --alternatives"),
        (["--file", "PAIRS", "--json"], "--json: expected none for lines"),
        (["--file", "PAIRS", "--alternatives", "2"], "--alternatives: expected none for lines"),
        (["--file", "PAIRS", "--keep", "Berlin"], "--keep: expected none for lines"),
        (["evaluate", "PAIRS", "--beam", "9", "--model", "PADIR"], "--beam: expected none"),
        (["distill", "PAIRS", "-o", "new.tsv", "--beam", "9", "--model", "PADIR"], "--beam: expected none"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    folders, capsys, tmp_path, pairs_tsv, arguments, message, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    broken = tmp_path / "broken.txt"
    broken.write_bytes(b"gut\n\xff\xfe\n")
    names = {"PADIR": folders("padir"), "AR": folders("autoregressive"), "BROKEN": broken, "PAIRS": pairs_tsv}
    code, _, err = said(capsys, *(names.get(one, one) for one in arguments))
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in err
