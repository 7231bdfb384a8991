"""``anyfill image``: files in, files out; one sentence for everything that goes wrong."""

import json
import os
import shutil
import tempfile

import numpy as np
import pytest
from PIL import Image

from anyfill.cli import main as cli
from anyfill.images.seeing import Eye

RNG = np.random.default_rng(2)


def run(*arguments, capsys) -> tuple[int, str, str]:
    code = cli.run([str(one) for one in arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "four.png"
    Image.fromarray(RNG.integers(0, 2, (8, 8)).astype(np.uint8) * 255).save(path)
    return path


def test_fill_writes_alternatives_and_a_sheet(picture, folder, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    options = ("--model", folder, "-o", out, "-n", 3, "--seed", 5)
    code, said, _ = run("image", "fill", picture, "--erase", "bottom", *options, capsys=capsys)
    assert code == 0
    names = sorted(path.name for path in out.iterdir())
    assert names == ["four-filled-5-1.png", "four-filled-5-2.png", "four-filled-5-3.png", "four-filled-5-sheet.png"]
    assert said.count("wrote ") == 4
    before = np.asarray(Image.open(picture))
    for number in (1, 2, 3):
        assert np.array_equal(np.asarray(Image.open(out / f"four-filled-5-{number}.png"))[:4], before[:4])
    code, _, error = run("image", "fill", picture, "--erase", "bottom", *options, capsys=capsys)
    assert code == 2
    assert "--force replaces it" in error
    assert run("image", "fill", picture, "--erase", "bottom", *options, "--force", capsys=capsys)[0] == 0


def test_a_picture_is_prepared_once(picture, folder, tmp_path, capsys, monkeypatch) -> None:
    calls, prepared = list[int](), Eye.prepared

    def counted(*arguments, **options):
        calls.append(1)
        return prepared(*arguments, **options)

    monkeypatch.setattr(Eye, "prepared", counted)
    options = ("--model", folder, "-o", tmp_path / "out", "-n", 40, "--seed", 5)
    assert run("image", "fill", picture, "--erase", "bottom", *options, capsys=capsys)[0] == 0
    assert len(calls) == 1


def test_what_is_filled_can_be_scored(picture, folder, tmp_path, capsys) -> None:
    white = np.zeros((8, 8), dtype=np.uint8)
    white[:2] = 255
    Image.fromarray(white).save(tmp_path / "m.png")
    ask = ("image", "score", picture, "--model", folder, "--json")
    _, both, _ = run(*ask, "--mask", tmp_path / "m.png", "--erase", "0,6,8,2", capsys=capsys)
    _, rectangles, _ = run(*ask, "--erase", "0,0,8,2", "--erase", "0,6,8,2", capsys=capsys)
    assert json.loads(both) == json.loads(rectangles)
    assert json.loads(both)[0]["dimensions"] == 32


def test_a_refusal_is_all_that_is_said(picture, folder, capsys, tmp_path) -> None:
    options = ("--model", folder, "-o", tmp_path / "out", "--seed", 5)
    code, said, error = run("image", "generate", *options, "--sampler", "speculative", "--steps", 3, capsys=capsys)
    assert (code, said) == (2, "")
    assert error.count("\n") == 1


def test_mask_alpha_and_erase_add_up(picture, folder, tmp_path, capsys) -> None:
    pixels = np.asarray(Image.open(picture))
    alpha = np.full((8, 8), 255, dtype=np.uint8)
    alpha[0] = 0
    Image.fromarray(np.stack([pixels, alpha], axis=2)).save(tmp_path / "alpha.png")
    mask = np.zeros((8, 8), dtype=np.uint8)
    mask[7] = 255
    Image.fromarray(mask).save(tmp_path / "m.png")
    erasing = ("--mask", tmp_path / "m.png", "--erase", "0,3,8,1")
    place = ("--model", folder, "-o", tmp_path / "out", "--seed", 1, "-n", 40)
    assert run("image", "fill", tmp_path / "alpha.png", *erasing, *place, capsys=capsys)[0] == 0
    drawn = np.stack([np.asarray(Image.open(tmp_path / f"out/alpha-filled-1-{k}.png")) for k in range(1, 41)])
    changed = (drawn != drawn[:1]).any(0).any(1)
    assert set(np.flatnonzero(changed)) == {0, 3, 7}


def test_score_says_nats_and_bits_as_text_and_as_json(picture, folder, tmp_path, capsys) -> None:
    code, said, _ = run("image", "score", picture, "--model", folder, "--heat", tmp_path / "h.png", capsys=capsys)
    assert code == 0
    assert "bits per dimension of 64 (exact)" in said
    assert (tmp_path / "h.png").is_file()
    code, said, _ = run("image", "score", picture, picture, "--model", folder, "--json", capsys=capsys)
    found = json.loads(said)
    assert len(found) == 2
    assert found[0]["bits_per_dimension"] == pytest.approx(found[0]["nats"] / 64 / np.log(2))
    part = json.loads(run("image", "score", picture, "--erase", "top", "--model", folder, "--json", capsys=capsys)[1])
    assert part[0]["dimensions"] == 32


def test_generate_and_show(folder, tmp_path, capsys, monkeypatch) -> None:
    options = ("--model", folder, "-o", tmp_path / "out", "-n", 2, "--seed", 1)
    code, said, progress = run("image", "generate", *options, capsys=capsys)
    assert "drawing: done" in progress
    assert (code, said.count("wrote")) == (0, 3)
    code, said, _ = run("image", "show", tmp_path / "out", "-o", tmp_path / "s.png", capsys=capsys)
    assert code == 0
    assert "3 of 32x32" in said
    assert (tmp_path / "s.png").is_file()
    assert "8x8, black and white" in run("image", "show", folder, capsys=capsys)[1]
    (tmp_path / "out" / "config.json").write_text("{}")  # of another program: a folder of pictures still
    monkeypatch.chdir(tmp_path / "out")
    assert run("image", "show", ".", capsys=capsys)[1].startswith("<Pictures out: 3 of ")
    monkeypatch.chdir(folder)
    assert run("image", "generate", *options[2:], "--force", "--model", ".", capsys=capsys)[0] == 0
    assert (tmp_path / "out" / f"{folder.name}-1-1.png").is_file()


def test_what_is_changed_is_said(folder, tmp_path, capsys) -> None:
    Image.fromarray(RNG.integers(0, 256, (20, 24, 3)).astype(np.uint8)).save(tmp_path / "a.png")
    place = ("--model", folder, "-o", tmp_path / "out", "-n", 1, "--seed", 1)
    _, _, error = run("image", "fill", tmp_path / "a.png", "--erase", "6,6,4,4", *place, capsys=capsys)
    for words in ("a.png is 24x20: filled in one window of 8x8", "has colours", "black and white"):
        assert words in error
    _, _, error = run(
        "image", "fill", tmp_path / "a.png", "--erase", "left", "--resize", *place, "--force", capsys=capsys
    )
    assert "cropped and resized to 8x8" in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fill", "{picture}"), "got nothing erased"),
        (("fill", "{picture}", "--erase", "99,0,2,2"), "a rectangle inside 8x8"),
        (("fill", "{picture}", "--erase", "top", "--mask", "{wide}"), "expected 8x8, as four.png has, got 9x8"),
        (("fill", "{text}", "--erase", "top"), "got something else"),
        (("fill", "{picture}", "--erase", ""), "what is erased: expected LEFT,TOP"),
        (("fill", "{empty}", "--erase", "top"), "got an empty file"),
        (("fill", "{nothing}", "--erase", "top"), "No such file"),
        (("fill", "{picture}", "--erase", "top", "-n", "0"), "Invalid value for '-n'"),
        (("fill", "{picture}", "--erase", "top", "--model", "{nothing}"), "digits, fashion, or the folder"),
        (("fill", "{picture}", "--erase", "top", "-o", "{text}"), "got a file"),
        (("score", "{picture}", "--model", ""), "model: expected digits, fashion, or the folder of a model, got ''"),
        (("fill", "{picture}", "--erase", "top", "--sampler", "confidence"), "expected steps beside it"),
        (("score", "{picture}", "--heat", "h.jpg"), "ends in .png"),
        (("score", "{picture}", "--mask", "{wide}"), "got 9x8"),
        (("score", "{text}"), "got something else"),
        (("show", "{text}"), "got something else"),
        (("show", "{picture}", "-o", "s.png", "-n", "3"), "--n: expected none for one PICTURE"),
        (("show", "{none}", "-n", "3"), "--n: expected none without --output"),
        (("show", "digits", "-o", "s.png"), "--output: expected none for a model"),
        (("train", "{text}", "-o", "{nothing}"), "got something else"),
        (
            ("train", "{none}", "-o", "{nothing}", "--seed", "99999999999999999999"),
            "equal to 4294967295",
        ),
        (("train", "{none}", "-o", "{nothing}"), "expected pictures"),
        (("train", "{picture}", "-o", "{nothing}", "--size", "9"), "WIDTHxHEIGHT"),
        (("train", "{none}", "-o", "{nothing}", "--binary", "soft"), "--binary"),
        (("train", "{none}", "-o", "{text}"), "got a file"),
    ],
)
def test_everything_that_is_wrong_is_one_sentence(arguments, words, picture, folder, tmp_path, capsys) -> None:
    files = {"picture": picture, "nothing": tmp_path / "nothing", "none": tmp_path / "none"}
    files["none"].mkdir()
    for name, content in (("text", b"plain words\n"), ("empty", b"")):
        files[name] = tmp_path / f"{name}.dat"
        files[name].write_bytes(content)
    files["wide"] = tmp_path / "wide.png"
    Image.fromarray(np.zeros((8, 9), dtype=np.uint8)).save(files["wide"])
    said = [one.format(**files) for one in arguments]
    if "--model" not in said and said[0] in ("fill", "score"):
        said += ["--model", str(folder)]
    code, _, error = run("image", *said, capsys=capsys)
    assert code == 2
    assert error.startswith("anyfill: ")
    assert error.count("\n") == 1
    assert words in error


def test_a_folder_called_like_a_model_that_ships_is_meant_by_its_path_alone(
    picture, folder, tmp_path, capsys, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ask = ("image", "score", picture, "--json")
    _, ships, quiet = run(*ask, capsys=capsys)
    shutil.copytree(folder, "digits")
    note = "note: digits is the model that ships with anyfill; the one in the folder here is ./digits\n"
    for model, is_own in (((), False), (("--model", "digits"), False), (("--model", "./digits"), True)):
        _, said, error = run(*ask, *model, capsys=capsys)
        assert (said == ships) != is_own
        assert (note in error) != is_own
        erase = ("--erase", "top", "-n", 1, "--seed", 1, "--force", *model)
        assert (note in run("image", "fill", picture, *erase, capsys=capsys)[2]) != is_own
        assert (note in run("image", "generate", "-n", 1, "--seed", 1, "--force", *model, capsys=capsys)[2]) != is_own
    assert note not in quiet
    assert "8x8, black and white" in run("image", "show", "./digits", capsys=capsys)[1]
    _, said, error = run("image", "show", "digits", capsys=capsys)
    assert "28x28, black and white" in said
    assert note == error
    (tmp_path / "none").mkdir()
    assert note in run("image", "train", "none", "-o", "new", "--start", "digits", capsys=capsys)[2]


def test_a_mask_that_is_both_white_and_transparent_is_remarked_upon_by_scores_too(
    picture, folder, tmp_path, capsys
) -> None:
    mask = np.full((8, 8, 4), 255, dtype=np.uint8)
    mask[:4, :, 3] = 0
    Image.fromarray(mask).save(tmp_path / "m.png")
    place = ("--model", folder, "-o", tmp_path / "out", "-n", 1)
    asked = (("fill", *place), ("score", "--model", folder))
    for verb, *options in asked:
        _, _, error = run("image", verb, picture, "--mask", tmp_path / "m.png", *options, capsys=capsys)
        assert "note: m.png: its transparent pixels are erased, not its white ones\n" in error


def test_a_folder_that_cannot_be_written_is_found_before_anything_is_drawn(
    picture, folder, tmp_path, capsys, monkeypatch
) -> None:
    def refused(*_, dir, **__):
        raise OSError(30, "Read-only file system", f"{dir}/tmpabc")

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    own = ("--model", folder, "-o", tmp_path / "out" / "deep")
    for asked in (
        ("fill", picture, "--erase", "top", *own),
        ("generate", *own),
        ("score", picture, "--model", folder, "--heat", tmp_path / "h.png"),
    ):
        code, said, error = run("image", *asked, capsys=capsys)
        assert (code, said) == (2, "")
        assert "expected a folder that can be written to, got one that cannot (Read-only file system)" in error
        assert error.count("\n") == 1


def test_a_name_that_is_no_text_is_valid_json(picture, folder, tmp_path, capsys) -> None:
    odd = os.fsencode(tmp_path) + b"/f\xfcr.png"
    try:
        shutil.copy(os.fsencode(picture), odd)
    except OSError:
        pytest.skip("file names are text here")
    _, said, _ = run("image", "score", os.fsdecode(odd), "--model", folder, "--json", capsys=capsys)
    assert json.loads(said)[0]["file"].encode() == os.fsencode(tmp_path) + "/f\ufffdr.png".encode()
