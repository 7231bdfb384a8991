"""Training on a folder: progress, a better model than counting, a checkpoint that goes on exactly."""

import math
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from anyfill import images
from anyfill.images import training as images_training
from anyfill.images.reading import PictureRows, Pictures, read_pictures
from anyfill.images.training import Settings, about_of, chosen, counting, train_in_words
from anyfill.training import load_model


def draw_folder(folder: Path, count: int, side: int = 8) -> Path:
    """Crosses at random places on grey of a random level."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for number in range(count):
        pixels = np.full((side, side), rng.integers(0, 100), dtype=np.uint8)
        row, column = rng.integers(1, side - 1, 2)
        pixels[row], pixels[:, column] = 220, 220
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_model(folder).state_dict()


def cut_off(reports, *_, **__) -> None:
    """Ctrl-C after a checkpoint."""
    for report in reports:
        if report.validation_loss is not None:
            raise KeyboardInterrupt


SMALL = {"width": 32, "depth": 1, "batch": 8, "seed": 3}


def test_a_short_run_is_usable_says_what_it_chose_and_beats_counting(tmp_path) -> None:
    source, said = draw_folder(tmp_path / "p", 60), list[str]()
    settings = Settings(steps=60, levels=16, **SMALL)
    outcome = train_in_words(source, tmp_path / "m", settings, device="cpu", say=said.append)
    assert "60 of 8x8, grey, 16 levels; 6 of them held out" in said[0]
    assert "60 steps of 8" in said[2]
    ours, theirs = (float(words.split()[k]) for words, k in ((outcome[1], 0), (outcome[1], -1)))
    assert ours < theirs
    model = images.load(tmp_path / "m")
    assert len(model.fill(source / "0.png", "bottom", n=2, seed=0)) == 2
    assert model.about.border > 0


def test_a_run_that_a_clock_ends_is_told_by_the_clock(tmp_path, capsys) -> None:
    source, said = draw_folder(tmp_path / "p", 12), list[str]()
    settings = Settings(seconds=1.0, levels=4, **SMALL)
    outcome = train_in_words(source, tmp_path / "m", settings, device="cpu", say=said.append)
    assert said[2] == "training  1 s in steps of 8, on cpu"
    assert outcome[0].startswith("trained ")
    assert "1,000,000" not in capsys.readouterr().err


def test_a_run_that_is_interrupted_and_resumed_ends_as_if_it_had_not_been(tmp_path) -> None:
    source = draw_folder(tmp_path / "p", 40)
    options = {"levels": 8, "steps": 10, **SMALL}
    images.train(source, tmp_path / "whole", device="cpu", **options)
    from anyfill.images import training

    settings = Settings(**options)
    pictures = read_pictures(source)
    made = chosen(settings, pictures, cuda=False)
    run = training.ImageRun(pictures, made, about_of(pictures, made), "cpu")
    train_rows, held = run.rows()
    objective = training.picture_objective(run.about)
    reports = training.fit_steps(
        run.model(),
        train_rows,
        objective,
        run.options(),
        folder=tmp_path / "cut",
        notes=run.notes(),
        validation=held.rows(training.SCORED),
        validation_objective=replace(objective, alone_share=0.0),
    )
    for report in reports:
        if report.step == 5:
            break
    reports.close()
    images.train(source, tmp_path / "cut", device="cpu", resume=True)  # takes its settings over
    one, other = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_resuming_with_other_settings_or_over_a_model_is_refused(tmp_path) -> None:
    source = draw_folder(tmp_path / "p", 12)
    images.train(source, tmp_path / "m", device="cpu", steps=2, levels=4, **SMALL)
    with pytest.raises(ValueError, match="--levels: expected 4"):
        images.train(source, tmp_path / "m", device="cpu", resume=True, levels=8)
    with pytest.raises(ValueError, match="--resume"):
        images.train(source, tmp_path / "m", device="cpu")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="other things"):
        images.train(source, tmp_path / "other", device="cpu")


def test_a_run_begins_with_the_weights_of_a_model_and_reads_pictures_as_it_does(tmp_path) -> None:
    source, said = draw_folder(tmp_path / "p", 12), list[str]()
    images.train(source, tmp_path / "m", device="cpu", steps=3, levels=4, **SMALL)
    same = Settings(start=str(tmp_path / "m"), steps=1, learning_rate=1e-9)
    train_in_words(source, tmp_path / "n", same, device="cpu", say=said.append)
    assert "8x8, grey, 4 levels" in said[0]
    assert said[1].endswith(f"begun with {tmp_path / 'm'}")
    one, other = weights(tmp_path / "m"), weights(tmp_path / "n")
    assert all(torch.allclose(one[name], other[name], atol=1e-6) for name in one)
    again = train_in_words(source, tmp_path / "o", same, device="cpu")
    assert f"held-out pictures (if {tmp_path / 'm'} was not trained on them)" in again[1]
    shutil.rmtree(tmp_path / "m")  # a run that goes on needs it no longer
    assert "--start" in train_in_words(source, tmp_path / "n", Settings(), device="cpu", resume=True)[0]


def test_a_start_of_other_pictures_or_with_another_network_is_refused(tmp_path) -> None:
    source = draw_folder(tmp_path / "p", 12)
    images.train(source, tmp_path / "m", device="cpu", steps=2, levels=4, **SMALL)
    start = str(tmp_path / "m")
    with pytest.raises(ValueError, match=r"--start: expected a model of 5x4, .* got .* 8x8, grey, 4 levels"):
        images.train(source, tmp_path / "n", device="cpu", start=start, size="5x4")
    with pytest.raises(ValueError, match="--start: expected a model of 8x8, grey, 16 levels"):
        images.train(source, tmp_path / "n", device="cpu", start=start, levels=16)
    with pytest.raises(ValueError, match="--depth: expected none with --start"):
        images.train(source, tmp_path / "n", device="cpu", start=start, depth=1)
    with pytest.raises(ValueError, match=r"--start: .* or the folder of a model"):
        images.train(source, tmp_path / "n", device="cpu", start=str(tmp_path / "none"))
    for name, own in ((start, {"binary": "dynamic"}), ("digits", {"levels": 256})):
        with pytest.raises(ValueError, match="--start: expected a model of "):
            images.train(source, tmp_path / "n", device="cpu", start=name, **own)
    assert not (tmp_path / "n").exists()


def test_a_run_of_another_version_is_told_apart_and_its_weights_can_be_gone_on_with(tmp_path, monkeypatch) -> None:
    source = draw_folder(tmp_path / "p", 12)
    recipe = images_training.picture_model
    with monkeypatch.context() as before:
        before.setattr(images_training, "picture_model", lambda about, **sizes: recipe(about, neighbours=0, **sizes))
        before.setattr(images_training, "watched_to_the_end", cut_off)
        with pytest.raises(KeyboardInterrupt):
            images.train(source, tmp_path / "m", device="cpu", steps=20, levels=4, **SMALL)
    with pytest.raises(ValueError, match=r"expected a run that was begun by this version .* \(--start .*m goes on"):
        images.train(source, tmp_path / "m", device="cpu", resume=True)
    images.train(source, tmp_path / "n", device="cpu", start=str(tmp_path / "m"), steps=1)


@pytest.mark.parametrize("how", ["threshold", "dynamic", "static"])
def test_black_and_white_in_every_way_and_colour_train(how, tmp_path) -> None:
    source = draw_folder(tmp_path / "p", 12)
    model = images.train(source, tmp_path / how, device="cpu", steps=2, binary=how, **SMALL)
    assert (model.about.levels, model.about.binary) == (2, how)
    if how == "static":
        coloured = images.train(source, tmp_path / "rgb", device="cpu", steps=2, grey=False, size="5x4", **SMALL)
        assert coloured.about.shape == (4, 5, 3)


def test_large_seeds_train(tmp_path) -> None:
    source = draw_folder(tmp_path / "p", 12)
    for seed in (20_000_000, 2**32 - 1):
        images.train(source, tmp_path / f"{seed}", device="cpu", steps=2, binary="dynamic", **{**SMALL, "seed": seed})
    with pytest.raises(ValueError, match="--seed: expected a whole number from 0 to 4294967295"):
        images.train(source, tmp_path / "m", device="cpu", seed=2**32)


def test_a_file_of_black_and_white_is_named_static_and_grey_is_cut() -> None:
    """Nats of the one say nothing of the other, so a model notes which it is of."""
    grey = Pictures(np.array([[[[0], [99], [255]]]] * 2, dtype=np.uint8))
    both = Pictures(np.array([[[[0], [255], [255]]]] * 2, dtype=np.uint8))
    found = [chosen(Settings(**said), one, cuda=False) for one in (grey, both) for said in ({}, {"levels": 2})]
    assert [(one.levels, one.binary) for one in found] == [(256, None), (2, "threshold"), (2, "static"), (2, "static")]
    assert chosen(Settings(binary="threshold"), both, cuda=False).binary == "threshold"
    rows = PictureRows(both, 2, "static")
    assert rows.take(torch.tensor([0, 1])).x.tolist() == [[0, 1, 1]] * 2  # nothing is left to chance


def test_counting_is_each_pixel_by_its_own_frequencies_and_those_of_all() -> None:
    learnt, rows = [[0, 1], [0, 0], [2, 1], [0, 1]], [[0, 1], [1, 1]]
    share = [5 / 11, 4 / 11, 2 / 11]  # four, three and one of the eight values, each once more

    def p(value: int, seen: list[int], weight: float) -> float:
        return (seen.count(value) + weight * share[value]) / (len(seen) + weight)

    def left_out(weight: float) -> float:
        columns = [[row[j] for row in learnt] for j in range(2)]
        return sum(math.log(p(own[i], own[:i] + own[i + 1 :], weight)) for own in columns for i in range(len(own)))

    weight = max((4.0**power for power in range(-1, 8)), key=left_out)
    expected = [sum(math.log(p(row[j], [one[j] for one in learnt], weight)) for j in range(2)) for row in rows]
    assert counting(torch.tensor(learnt), torch.tensor(rows), 3).tolist() == pytest.approx(expected)


def test_counting_is_no_worse_than_knowing_nothing_where_pictures_are_few(generator) -> None:
    learnt, rows = torch.randint(256, (2, 20, 500), generator=generator)
    assert -float(counting(learnt, rows, 256).mean()) / 500 / math.log(2) < 8.05


@pytest.mark.slow
def test_ctrl_c_leaves_a_checkpoint_and_says_how_to_go_on(tmp_path) -> None:
    source = draw_folder(tmp_path / "p", 30)
    command = [sys.executable, "-m", "anyfill", "image", "train", str(source), "-o", str(tmp_path / "m")]
    command += ["--steps", "4000", "--batch", "4", "--width", "32", "--depth", "1", "--device", "cpu"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not (tmp_path / "m" / "config.json").exists() and time.monotonic() < until:
        time.sleep(0.2)
    process.send_signal(2)
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "--resume goes on" in error
    assert images.load(tmp_path / "m").about.height == 8
