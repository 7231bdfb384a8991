"""The long run on static MNIST: trained until a time of the day, scored bit by bit, small on made-up pictures."""

import json
import sys
import time
from contextlib import closing

import numpy as np
import pytest
import torch

from anyfill.training import fit_steps, load_model
from experiments.sfarm import static_mnist, static_mnist_head, static_mnist_mix, static_mnist_score

SMALL = ("--width", "64", "--depth", "1", "--batch", "4", "--rows", "8")


@pytest.fixture
def out(tmp_path, monkeypatch):
    """A run's folder, beside a file of random pictures."""
    folder = tmp_path / "data" / "mnist_static_binarized"
    folder.mkdir(parents=True)
    draw = np.random.default_rng(0)
    parts = {part: np.packbits(draw.random((16, 784)) < 0.2, axis=1) for part in ("train", "valid", "test")}
    np.savez(folder / "binarized_mnist_packed.npz", **parts)
    monkeypatch.setenv("ANYFILL_DATA", str(tmp_path / "data"))
    return tmp_path / "run"


def run(monkeypatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["static_mnist", *words])
    static_mnist.main()


def test_it_trains_until_a_time_and_leaves_weights_of_16_bits(out, monkeypatch) -> None:
    begun = time.time()
    run(monkeypatch, "train", "--out", str(out), *SMALL, "--until", str(begun + 4), "--validate-every", "5")
    about = json.loads((out / "train.json").read_text())
    assert about["steps"] >= 1
    assert about["options"]["seconds"] <= 4
    assert time.time() - begun < 60
    whole, half = load_model(out / "model"), load_model(out / "model_16")
    for one, other in zip(whole.parameters(), half.parameters()):
        assert np.allclose(one.detach().numpy(), other.detach().float().numpy(), rtol=2**-7, atol=1e-6)


def test_scores_say_what_time_allowed_for(out, monkeypatch) -> None:
    run(monkeypatch, "train", "--out", str(out), *SMALL, "--steps", "2", "--validate-every", "2")
    run(monkeypatch, "score", "--out", str(out), "--rows", "4", "--question-rows", "2")
    whole = json.loads((out / "score.json").read_text())
    assert len(whole["scans"]) == 8
    assert len(whole["questions"]) == 12
    assert whole["rows_of_questions"] == 2
    worst, best = (pick(scan["nats"] for scan in whole["scans"].values()) for pick in (max, min))
    assert best - np.log(8) <= whole["mixture_of_8_scans"]["nats"] <= worst + 1e-9
    weighted = whole["weighted_mixture_of_8_scans"]
    assert sum(weighted["weights"]) == pytest.approx(1.0)
    assert "mixture_of_scans_and_shifts" not in whole
    (out / "score.json").unlink()
    seconds = iter([0.0, 0.0, *[1e12] * 100])  # time is up after two scans
    monkeypatch.setattr(static_mnist_score.time, "time", lambda: next(seconds))
    run(monkeypatch, "score", "--out", str(out), "--rows", "4", "--until", "1e9")
    part = json.loads((out / "score.json").read_text())
    nats = {key: scan["nats"] for key, scan in part["scans"].items()}
    assert nats == pytest.approx({key: whole["scans"][key]["nats"] for key in ("0", "1")})
    assert "mixture_of_8_scans" not in part
    assert not part["questions"]


def test_weights_of_a_run_that_goes_on_can_be_scored_and_begun_with(out, monkeypatch) -> None:
    told = (*SMALL, "--tokens", "patches", "--shifts", "1")
    brief = ("--save-every", "2", "--validate-every", "2")
    run(monkeypatch, "train", "--out", str(out), *told, *brief, "--steps", "4")
    for _ in range(2):  # whenever it is packed
        run(monkeypatch, "keep", "--out", str(out), *told)
    for name in ("kept", "next"):
        if name == "next":
            more = ("--start", str(out / "kept"), "--rate", "1e-9", "--steps", "1", "--validate-every", "1")
            run(monkeypatch, "train", "--out", str(out / name), *told, *more)
        run(monkeypatch, "score", "--out", str(out / name), *told, "--rows", "4", "--question-rows", "2")
    run(monkeypatch, "score", "--out", str(out), *told, "--rows", "4", "--question-rows", "2")
    found = [
        json.loads((out / part / "score.json").read_text())["scans"]["0"]["nats"] for part in (".", "kept", "next")
    ]
    assert found == pytest.approx([found[0]] * 3, rel=0.01)  # 8 bits


def test_a_run_that_was_stopped_goes_on_with_its_log(out, monkeypatch) -> None:
    some = ("train", "--out", str(out), *SMALL, "--save-every", "2", "--validate-every", "2", "--steps", "6")
    whole = out.parent / "whole"
    run(monkeypatch, "train", "--out", str(whole), *some[3:])

    def stopped(*positional, **named):
        with closing(fit_steps(*positional, **named)) as reports:
            yield next(reports)
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(static_mnist, "fit_steps", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(monkeypatch, *some)
    assert not (out / "train.json").exists()
    assert json.loads((out / "arguments.json").read_text())["steps"] == 6
    run(monkeypatch, *some)
    steps = [json.loads(line)["step"] for line in (out / "train.jsonl").read_text().splitlines()]
    assert (steps[0], steps[-1]) == (2, 6)
    one, other = load_model(out / "model"), load_model(whole / "model")
    assert all(torch.equal(mine, its) for mine, its in zip(one.parameters(), other.parameters()))


def test_a_run_begins_where_another_ended(out, monkeypatch) -> None:
    run(monkeypatch, "train", "--out", str(out), *SMALL, "--steps", "12", "--validate-every", "12", "--ema", "0.1")
    first = json.loads((out / "train.json").read_text())["best_validation"]
    more = (*SMALL, "--steps", "1", "--validate-every", "1", "--rate", "1e-9", "--start", str(out))
    run(monkeypatch, "train", "--out", str(out.parent / "next"), *more)
    found = json.loads((out.parent / "next" / "train.json").read_text())["best_validation"]
    assert found == pytest.approx(first, abs=0.01)


def test_runs_that_share_a_beginning_are_mixed_and_the_best_by_validation_is_kept(out, monkeypatch) -> None:
    told, few = (*SMALL, "--tokens", "patches", "--shifts", "1"), ("--steps", "3", "--validate-every", "3")
    runs = [out / name for name in ("first", "second")]
    run(monkeypatch, "train", "--out", str(runs[0]), *told, *few)
    run(monkeypatch, "train", "--out", str(runs[1]), *told, *few, "--start", str(runs[0]), "--seed", "1")
    run(monkeypatch, "mix", "--out", str(out / "mix"), *told, "--of", *map(str, runs))
    about = json.loads((out / "mix" / "train.json").read_text())
    each = [json.loads((one / "train.json").read_text())["best_validation"] for one in runs]
    assert [about["validation"][one.name] for one in runs] == pytest.approx(each, abs=1e-2)
    best, mixed = min(about["validation"], key=about["validation"].get), load_model(out / "mix" / "model")
    first, second = (load_model(one / "model") for one in runs)
    mean = static_mnist_mix.mean_of([first, second])
    for name, one in mean.state_dict().items():
        if one.is_floating_point():
            assert torch.allclose(one, (first.state_dict()[name] + second.state_dict()[name]) / 2)
    kept = {"first": first, "second": second, "mean": mean}[best]
    assert all(torch.equal(one, other) for one, other in zip(mixed.parameters(), kept.parameters()))
    run(monkeypatch, "score", "--out", str(out / "mix"), *told, "--rows", "4", "--question-rows", "2")
    assert len(json.loads((out / "mix" / "score.json").read_text())["scans"]) == 8
    for words in (["mix", "--out", "x"], ["train", "--out", "x", "--of", "y"]):
        with pytest.raises(SystemExit):
            static_mnist.options_of(words)


def test_the_last_layer_is_fitted_to_rows_kept_aside_and_to_nothing_else(out, monkeypatch) -> None:
    told = (*SMALL, "--tokens", "patches", "--shifts", "1")
    run(monkeypatch, "train", "--out", str(out), *told, "--steps", "40", "--validate-every", "40")
    run(monkeypatch, "head", "--out", str(out / "head"), *told, "--of", str(out))
    about = json.loads((out / "head" / "train.json").read_text())
    before, after = load_model(out / "model"), load_model(out / "head" / "model")
    assert after.capabilities.context_width == 0
    assert about["nats_before"] == pytest.approx(
        json.loads((out / "train.json").read_text())["best_validation"], abs=1e-2
    )
    assert about["nats_of_the_rows_fitted_to"] < about["nats_before"]
    assert about["cross_validated"][f"{about['ridge']:g}"] == min(about["cross_validated"].values())
    own = {name for name, one in after.state_dict().items() if name.startswith("network.head.")}
    settled = static_mnist.settled(before, static_mnist.options_of(["score", "--out", str(out), *told])).state_dict()
    changed = {name for name, one in after.state_dict().items() if not torch.equal(one, settled[name])}
    assert changed <= own
    run(monkeypatch, "score", "--out", str(out / "head"), *SMALL, "--tokens", "patches", "--scans", "1")
    found = json.loads((out / "head" / "score.json").read_text())
    assert list(found["scans"]) == ["0"]
    assert not found["questions"]
    assert "mixture_of_8_scans" not in found
    # What it says of the rows it was fitted to is what the model says, term by term.
    scorer = static_mnist_score.Scorer(
        static_mnist.options_of(["score", "--out", str(out / "head"), *SMALL, *told[-4:-2]])
    )
    nats = float(-scorer.whole(static_mnist.read("valid")[:8], 0).mean())
    assert nats == pytest.approx(about["nats_of_the_rows_fitted_to"], rel=2e-3)  # states of 16 bits
    for words in (["head", "--out", "x"], ["head", "--out", "x", "--of", "y", "z"]):
        with pytest.raises(SystemExit):
            static_mnist.options_of(words)


def test_a_last_layer_that_is_right_is_left_as_it_is() -> None:
    source = torch.Generator().manual_seed(0)
    z, weight = torch.randn(400, 50, 3, generator=source), torch.tensor([1.0, -2.0, 0.5])
    x = (torch.rand(400, 50, generator=source) < (z @ weight + 0.3).sigmoid()).long()
    wrong = (torch.zeros(3), torch.tensor(0.0))
    found, bias = static_mnist_head.fitted_layer(z, x, *wrong, 1e-6)
    assert torch.allclose(torch.cat([found, bias.view(1)]), torch.tensor([1.0, -2.0, 0.5, 0.3]), atol=0.1)  # 4 sigma
    kept, bias = static_mnist_head.fitted_layer(z, x, *wrong, 1e6)
    assert float(kept.abs().max()) < 1e-3
    assert abs(float(bias)) < 1e-3


def test_compiling_trains_nothing_that_is_kept(out, monkeypatch) -> None:
    run(monkeypatch, "compile", "--out", str(out), *SMALL)
    assert not (out / "model").exists()
    assert not (out / "train.json").exists()


def test_told_shifts_end_in_a_model_without_a_context(out, monkeypatch) -> None:
    told = (*SMALL, "--tokens", "patches", "--shifts", "2", "--raster", "0.3", "--joint", "0.5")
    run(monkeypatch, "train", "--out", str(out), *told, "--steps", "3", "--validate-every", "2")
    about = json.loads((out / "train.json").read_text())
    assert load_model(out / "model_16").capabilities.context_width == 0
    assert load_model(out / "model").capabilities.context_width == 10
    run(monkeypatch, "score", "--out", str(out), *told, "--rows", "8", "--question-rows", "2")
    found = json.loads((out / "score.json").read_text())
    assert found["mixture_of_scans_and_shifts"]["members"] == 32
    eight = found["mixture_of_8_orders"]
    assert eight["chosen_among"] == 8 * 9
    assert len({(one["scan"], *one["down_and_right"]) for one in eight["orders"]}) == 8
    assert sum(found["weighted_mixture_of_8_orders"]["weights"]) == pytest.approx(1.0)
    assert found["raster_of_model_16"]["nats"] == pytest.approx(found["scans"]["0"]["nats"], rel=0.01)
    x = static_mnist.read("valid")[:8]
    scorer = static_mnist_score.Scorer(static_mnist.options_of(["score", "--out", str(out), *told]))
    # What validation said is the exact raster nats of the weights that were kept.
    assert about["best_validation"] == pytest.approx(float(-scorer.whole(x, 0).mean()), abs=1e-2)


def test_told_shears_go_with_shifts_and_end_in_a_model_without_a_context(out, monkeypatch) -> None:
    told = (*SMALL, "--tokens", "patches", "--shifts", "1", "--shears", "2")
    run(monkeypatch, "train", "--out", str(out), *told, "--steps", "3", "--validate-every", "2")
    about = json.loads((out / "train.json").read_text())
    assert about["arguments"]["shears"] == 2
    assert about["trained_on"] == "training rows"
    assert load_model(out / "model").capabilities.context_width == 16
    assert load_model(out / "model_16").capabilities.context_width == 0
    run(monkeypatch, "score", "--out", str(out), *told, "--rows", "8", "--question-rows", "2")
    found = json.loads((out / "score.json").read_text())
    assert found["mixture_of_scans_and_shifts"]["members"] == 32
    assert found["weighted_mixture_of_8_scans"]["validation_rows"] <= 2000
    eight = found["mixture_of_8_orders"]
    assert eight["chosen_among"] == 8 * (9 + 8)
    each = [one["nats"] for one in eight["orders"]]
    assert max(each) >= eight["nats"] >= min(each) - np.log(8)
    x = static_mnist.read("valid")[:8]
    scorer = static_mnist_score.Scorer(static_mnist.options_of(["score", "--out", str(out), *told]))
    assert about["best_validation"] == pytest.approx(float(-scorer.whole(x, 0).mean()), abs=1e-2)


def test_shears_alone_are_told_too(out, monkeypatch) -> None:
    told = (*SMALL, "--tokens", "patches", "--shears", "1")
    run(monkeypatch, "train", "--out", str(out), *told, "--steps", "2", "--validate-every", "2")
    assert load_model(out / "model").capabilities.context_width == 2 + 6
    assert load_model(out / "model_16").capabilities.context_width == 0


def test_soft_targets_are_written_and_trained_towards(out, monkeypatch) -> None:
    few = ("--restore-steps", "2", "--restore-width", "8")
    run(monkeypatch, "targets", "--out", str(out / "restore"), *SMALL, *few)
    path = out / "restore" / "targets.npy"
    targets = np.load(path)
    assert targets.shape == (8, 784)
    assert ((targets > 0) & (targets < 1)).all()
    about = json.loads((out / "restore" / "targets.json").read_text())
    assert about["nats_of_rows_trained_on"] > 0
    path.unlink()
    run(monkeypatch, "targets", "--out", str(out / "restore"), *SMALL, "--restore-steps", "9")  # asked, not trained
    assert np.array_equal(np.load(path), targets)
    assert json.loads((out / "restore" / "targets.json").read_text())["steps"] == 2
    with pytest.raises(SystemExit, match="other rows, valid_too=False"):  # it would say more than it may know
        run(monkeypatch, "targets", "--out", str(out / "restore"), *SMALL, "--valid-too")
    run(monkeypatch, "targets", "--out", str(out / "other"), *SMALL, *few, "--restore-only")
    assert sorted(one.name for one in (out / "other").iterdir()) == ["restorer", "restorer.json", "targets.jsonl"]
    told = (*SMALL, "--tokens", "patches", "--shifts", "1", "--targets", str(path), "--tossed", "0.5")
    run(monkeypatch, "train", "--out", str(out), *told, "--steps", "3", "--validate-every", "2")
    about = json.loads((out / "train.json").read_text())
    assert about["arguments"]["targets"] == "targets.npy"
    arguments = static_mnist.options_of(["train", "--out", str(out), *told])
    rows, valid = static_mnist.sources(arguments, torch.device("cpu"))
    context = rows.take(torch.arange(3)).context
    assert valid is not None
    assert context is not None
    assert (context.shape[1], valid.context.shape[1]) == (6 + 784, 6)
    x = static_mnist.read("valid")[:8]
    scorer = static_mnist_score.Scorer(static_mnist.options_of(["score", "--out", str(out), *told]))
    # Validation is of the pixels as they are, whatever the loss is towards.
    assert about["best_validation"] == pytest.approx(float(-scorer.whole(x, 0).mean()), abs=1e-2)
    plain = static_mnist.sources(static_mnist.options_of(["train", "--out", str(out), *told[:-2]]), x.device)[0]
    assert not torch.equal(plain.take(torch.arange(8)).x, rows.take(torch.arange(8)).x)
    for words in (["--target-share", "0.5"], ["--tossed", "0.5", "--shifts", "1"], [*told[-4:]]):
        with pytest.raises(SystemExit):
            static_mnist.options_of(["train", "--out", str(out), *words])
    with pytest.raises(FileNotFoundError):
        static_mnist.read_targets(out / "none.npy", x.device, wait=0.0)


def test_validation_rows_that_choose_nothing_can_be_trained_on(out, monkeypatch) -> None:
    both = (*SMALL, "--valid-too", "--valid-rows", "3")
    few = ("--restore-steps", "2", "--restore-width", "8")
    run(monkeypatch, "targets", "--out", str(out / "restore"), *both, *few)
    more = ("--targets", str(out / "restore" / "targets.npy"))
    run(monkeypatch, "train", "--out", str(out), *both, *more, "--steps", "3", "--validate-every", "1")
    about = json.loads((out / "train.json").read_text())
    assert about["trained_on"] == "training rows, and validation rows behind the first 3"
    assert about["train_rows"] == 16
    rows, held = static_mnist.sources(static_mnist.options_of(["train", "--out", str(out), *both]), torch.device("cpu"))
    valid = static_mnist.read("valid")
    assert torch.equal(rows.take(torch.arange(16)).x, torch.cat([static_mnist.read("train")[:8], valid[3:11]]))
    assert torch.equal(held.x, valid[:3])
    run(monkeypatch, "score", "--out", str(out), "--rows", "4", "--question-rows", "2")
    found = json.loads((out / "score.json").read_text())
    assert found["weighted_mixture_of_8_scans"]["validation_rows"] == 3  # as training had it, not as scoring is told
    with pytest.raises(ValueError, match="targets"):  # of other rows than these
        static_mnist.sources(static_mnist.options_of(["train", "--out", str(out), *SMALL, *more]), torch.device("cpu"))


def test_weights_too_many_for_16_bits_come_home_in_8(out, monkeypatch) -> None:
    monkeypatch.setattr(static_mnist, "LARGEST", 1e4)
    run(monkeypatch, "train", "--out", str(out), *SMALL, "--steps", "2", "--validate-every", "2")
    assert not (out / "model_16").exists()
    whole, eight = load_model(out / "model"), load_model(out / "model_8")
    for one, other in zip(whole.parameters(), eight.parameters()):
        assert torch.allclose(one, other, atol=float(one.detach().abs().max()) / 127 + 1e-6)


def test_a_probe_says_what_each_setting_came_to(out, monkeypatch, capsys) -> None:
    only = ("--only", "few-told", "pixels", "--seconds", "1")
    run(monkeypatch, "probe", "--out", str(out), *SMALL, *only, "--steps", "2", "--validate-every", "1")
    lines = [json.loads(line) for line in (out / "probe.jsonl").read_text().splitlines()]
    assert [line["name"] for line in lines] == ["few-told", "pixels"]
    assert [line["arguments"]["shifts"] for line in lines] == [2, 0]
    assert "few-told: step 1" in capsys.readouterr().out
    run(monkeypatch, "probe", "--out", str(out), *SMALL, *only, "--until", str(time.time() - 1))
    assert "no time left" in capsys.readouterr().out


def test_weights_of_a_mixture_are_those_under_which_rows_are_likeliest() -> None:
    source = torch.Generator().manual_seed(0)
    log_prob = torch.rand(3, 400, generator=source, dtype=torch.float64).log()
    log_prob[1] += 0.3
    weights = static_mnist_score.mixture_weights(log_prob)
    assert float(weights.sum()) == pytest.approx(1.0)

    def mean(some: torch.Tensor) -> float:
        return float((some.log().unsqueeze(1) + log_prob).logsumexp(0).mean())

    best = mean(weights)
    for _ in range(50):
        other = weights * (1 + 0.2 * torch.rand(3, generator=source, dtype=torch.float64))
        assert mean(other / other.sum()) <= best + 1e-9
    assert best > mean(torch.full((3,), 1 / 3, dtype=torch.float64)) + 1e-3


def test_orders_that_go_together_are_each_the_one_that_adds_most() -> None:
    log_prob = torch.rand(5, 100, generator=torch.Generator().manual_seed(0), dtype=torch.float64).log()
    log_prob[4] = log_prob[0]

    def mean(taken: list[int]) -> float:
        return float(log_prob[taken].logsumexp(0).mean()) - np.log(len(taken))

    taken = static_mnist_score.that_go_together(log_prob, 4)
    assert len(set(taken)) == 4
    for count in range(1, 5):
        others = [one for one in range(5) if one not in taken[: count - 1]]
        assert mean(taken[:count]) == pytest.approx(max(mean([*taken[: count - 1], one]) for one in others))
