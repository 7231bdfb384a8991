"""The experiments on pictures: every method is made, trained, saved, loaded and asked what it was trained for."""

import json
import sys

import pytest
import torch

from experiments.mac import images as mac_images
from experiments.sfarm import fig3, fig4, fig6_7_8, table2, table3
from experiments.sfarm.picture_scores import RATES, question_of, scored, structured
from experiments.sfarm.pictures import COMPLETES, METHODS, fewer, load, made, parser_of, trained

TINY = (
    *("--set", "digits", "--steps", "2", "--rows", "4", "--passes", "2", "--width", "64", "--depth", "1"),
    *("--unet-width", "8", "--unet-blocks", "1", "--batch", "8", "--patch", "2"),
)


def arguments(out, *more: str):
    return parser_of("", sets=("static",), methods=("one-pass",)).parse_args(["--out", str(out), *TINY, *more])


def run(module, out, monkeypatch, *more: str) -> None:
    monkeypatch.setattr(sys, "argv", [module.__name__, "--out", str(out), *TINY, *more])
    module.main()


def test_every_method_is_a_model_and_a_loss_that_fit_together(tmp_path) -> None:
    options = arguments(tmp_path)
    data = load(options)
    for method in METHODS:
        model, objective = made(method, data, options)
        assert model.variables == 64
        rank = objective.sample_rank(2, generator=torch.Generator().manual_seed(0))
        assert rank.shape == (2, 64)


def test_a_method_is_trained_once_and_loaded_after_that(tmp_path, capsys) -> None:
    options = arguments(tmp_path)
    data = load(options)
    first = trained("sfarm", data, options)
    about = json.loads((tmp_path / "sfarm" / "run.json").read_text())
    assert about["steps"] == 2
    assert {"commit", "device", "torch", "seconds", "parameters"} <= about.keys()
    again = trained("sfarm", data, options)
    assert capsys.readouterr().out.count("2 steps") == 1
    for one, other in zip(first.parameters(), again.parameters()):
        assert torch.equal(one.cpu(), other.cpu())
    assert len(data.test) == 4  # evenly spread, not the first ones
    assert not torch.equal(data.test, load(arguments(tmp_path, "--rows", "200")).test[:4])


def test_whoever_was_not_trained_to_complete_is_not_asked_to(tmp_path) -> None:
    options = arguments(tmp_path)
    data = load(options)
    asked, _ = structured(data.shape, 4)["right"]
    question = question_of(asked, 1, torch.device("cpu"))
    assert "mac-next" not in COMPLETES
    model, _ = made("mac-next", data, options)
    with pytest.raises(ValueError, match="mac-next was not trained to complete"):
        scored("mac-next", model, data.test, question, 1, passes=2)


def test_regions_are_those_whose_mode_begins_with_the_rest() -> None:
    masks = structured((8, 8, 1), 3)
    assert len(masks) == 6 + 1 + 6
    assert bool(masks["right"][0].view(3, 8, 8)[:, :, 4:].all())
    assert not bool(masks["right"][0].view(3, 8, 8)[:, :, :4].any())
    assert masks["right"][1] == "left to right"
    assert torch.equal(masks["inside"][0], ~masks["outside"][0])
    assert 0.8 < float(masks["random 90 %"][0].float().mean()) < 1.0


@pytest.mark.parametrize("method", ["sfarm", "vae", "ddpm", "one-pass"])
def test_what_was_drawn_for_figure_3_is_kept_and_needs_no_model_again(method, tmp_path) -> None:
    options = arguments(tmp_path)
    options.draws, options.fill_steps = 2, 2
    data = fewer(load(options), 2)
    assert len(data.test) == len(data.labels) == 2
    with pytest.raises(ValueError, match="no model to draw it"):
        fig3.completed(method, None, data, options)
    drawn = fig3.completed(method, trained(method, data, options), data, options)
    again = fig3.completed(method, None, data, options)
    masks = structured(data.shape, 2)
    assert list(drawn) == list(again) == [f"{rate} %" for rate in RATES]
    for rate, (codes, seconds) in drawn.items():
        assert torch.equal(codes, again[rate][0])
        assert seconds == again[rate][1] > 0
        given = ~masks[f"random {rate}"][0]
        assert torch.equal(codes[:, given], data.test[given].expand(2, -1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "more", "name"),
    [
        (
            table2,
            ("--methods", "one-pass", "mac", "sfarm", "vae", "--orders", "1", "--order-rows", "2"),
            "table2_digits",
        ),
        (fig4, ("--fill-steps", "2"), "fig4_digits"),
        (fig3, ("--draws", "2", "--fill-steps", "2", "--methods", "vae", "sfarm", "one-pass"), "fig3_digits"),
        (fig6_7_8, ("--samples", "8", "--methods", "one-pass", "sfarm"), "fig6_7_8_digits"),
        (table3, ("--marginal-rows", "2", "--longest", "10", "--methods", "one-pass", "mac"), "table3_digits"),
        (mac_images, ("--fill-steps", "2"), "mac_images_digits"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_every_script_writes_what_it_found(module, more, name, tmp_path, monkeypatch) -> None:
    run(module, tmp_path, monkeypatch, *more)
    found = json.loads((tmp_path / f"{name}.json").read_text())
    assert {"arguments", "commit", "device"} <= found.keys()
