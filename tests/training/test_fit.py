"""What fit promises: it learns, it is reproducible, it leaves the model as documented."""

import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import Generator, Tensor
from training_standin import VARIABLES, AskOne, TinyNetwork, tiny_model, tiny_rows

from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.network import Unspecified
from anyfill.questions import Decreasing, Factorization, Increasing
from anyfill.recipes import mac, one_pass
from anyfill.rows import Rows
from anyfill.training import DivergedError, FitOptions, StepReport, fit, fit_steps, load_model

QUICK = FitOptions(steps=12, batch_size=8, report_every=1, learning_rate=1e-2, device="cpu")


def weights_of(model: Model) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def curve(options: FitOptions, objective: AskOne | None = None, **arguments: object) -> list[StepReport]:
    return list(fit_steps(tiny_model(dropout=0.0), tiny_rows(), objective or AskOne(), options, **arguments))


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "muon"])
def test_training_lowers_the_loss(optimizer: str) -> None:
    reports = curve(replace(QUICK, steps=120, report_every=20, optimizer=optimizer, batch_size=32))
    assert reports[-1].loss < 0.85 * reports[0].loss


def test_the_same_seed_gives_the_same_weights_and_another_seed_others() -> None:
    ends = []
    for seed in (0, 0, 1):
        model = tiny_model()
        fit(model, tiny_rows(), AskOne(noise=0.5), replace(QUICK, seed=seed))
        ends.append(weights_of(model))
    assert same(ends[0], ends[1])
    assert not same(ends[0], ends[2])


def test_the_callers_random_numbers_are_untouched() -> None:
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    model = tiny_model()
    for _ in fit_steps(model, tiny_rows(), AskOne(), QUICK, validation=tiny_rows(9)):
        assert torch.equal(torch.rand(3), expected)
        torch.manual_seed(11)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_micro_batches_change_nothing_but_rounding(optimizer: str) -> None:
    # Not Muon's own rounding: it orthogonalises in 16 bits, which the curve still follows to the given tolerance.
    whole = curve(replace(QUICK, optimizer=optimizer))
    parts = curve(replace(QUICK, optimizer=optimizer, accumulate=4))
    tolerance = 1e-5 if optimizer == "adamw" else 1e-2
    assert [r.loss for r in parts] == pytest.approx([r.loss for r in whole], rel=tolerance)
    assert [r.gradient_norm for r in parts] == pytest.approx([r.gradient_norm for r in whole], rel=100 * tolerance)


def test_reports_come_every_so_many_steps_with_the_mean_loss_since_the_last() -> None:
    every = [report.loss for report in curve(QUICK)]
    some = curve(replace(QUICK, report_every=5))
    assert [report.step for report in some] == [5, 10, 12]
    assert [report.loss for report in some] == [
        pytest.approx(sum(part) / len(part)) for part in (every[:5], every[5:10], every[10:])
    ]
    assert some[-1].progress == 1.0
    assert some[-1].eta == 0.0
    assert all(report.rows_per_second > 0 and report.seconds > 0 for report in some)


def test_the_trained_model_knows_its_readings_and_is_ready_to_be_asked() -> None:
    model = Model(TinyNetwork(), Categorical(3), factorizations=[Factorization.DIRECT])
    result = fit(model, tiny_rows(), AskOne(follows=Increasing()), QUICK)
    assert model.factorizations == {Factorization.DIRECT, Factorization.ANY_ORDER}
    assert not model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert (result.steps, result.stopped, result.folder) == (12, "steps", None)


def test_validation_is_the_same_question_every_time() -> None:
    options = replace(QUICK, steps=6, validate_every=2, learning_rate=1e-30)
    values = [report.validation_loss for report in curve(options, AskOne(noise=0.5), validation=tiny_rows(21, seed=5))]
    assert [value is None for value in values] == [True, False] * 3
    assert values[1] == values[3] == values[5]


def test_validation_does_not_depend_on_micro_batches() -> None:
    def last(options: FitOptions) -> float | None:
        return curve(replace(options, steps=1), validation=tiny_rows(21, seed=5))[-1].validation_loss

    assert last(QUICK) == pytest.approx(last(replace(QUICK, accumulate=4)), rel=1e-5)


def test_validation_is_the_mean_over_the_rows_of_the_objectives_own_loss() -> None:
    rows, model = tiny_rows(7, seed=5), tiny_model(dropout=0.5)

    @dataclass(frozen=True)
    class AskAll(AskOne):
        def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
            return torch.zeros(batch, VARIABLES, dtype=torch.int64, device=generator.device)

    (report,) = fit_steps(model, tiny_rows(), AskOne(), replace(QUICK, steps=1), validation=rows,
                          validation_objective=AskAll())  # fmt: skip
    with torch.no_grad():
        expected = AskAll().loss(model, rows, torch.zeros(7, VARIABLES, dtype=torch.int64)).mean()
    assert report.validation_loss == pytest.approx(float(expected), rel=1e-5)


def test_the_best_weights_are_kept_and_patience_stops_the_run() -> None:
    model = tiny_model(dropout=0.0)
    options = replace(QUICK, steps=400, validate_every=4, patience=2, learning_rate=0.3, schedule="constant")
    validation = tiny_rows(20, seed=9)
    seen: dict[int, tuple[float, dict[str, Tensor]]] = {}
    reports = fit_steps(model, tiny_rows(), AskOne(), options, validation=validation)
    last = 0
    for report in reports:
        last = report.step
        if report.validation_loss is not None and not model.eval().training and report.step < options.steps:
            seen[report.step] = (report.validation_loss, weights_of(model))
    steps = sorted(seen)
    losses = [seen[step][0] for step in steps]
    best = min(range(len(steps)), key=lambda i: losses[i])
    assert last == steps[-1] < 400
    assert best == len(steps) - 3, "it stops two validations after the best"
    assert same(weights_of(model), seen[steps[best]][1])


def test_without_validation_the_model_ends_with_the_average_if_there_is_one() -> None:
    plain, averaged, name = tiny_model(), tiny_model(), "network.head.weight"
    expected = weights_of(plain)[name].double()
    for report in fit_steps(plain, tiny_rows(), AskOne(), QUICK):
        decay = min(0.9, (1 + report.step) / (10 + report.step))
        expected = decay * expected + (1 - decay) * weights_of(plain)[name].double()
    fit(averaged, tiny_rows(), AskOne(), replace(QUICK, ema=0.9))
    torch.testing.assert_close(weights_of(averaged)[name].double(), expected, rtol=1e-5, atol=1e-7)
    assert not torch.allclose(weights_of(plain)[name].double(), expected, rtol=1e-4)


def test_the_average_is_what_is_validated() -> None:
    model = tiny_model(dropout=0.0)
    validation = tiny_rows(8, seed=5)
    options = replace(QUICK, ema=0.9, steps=5, validate_every=5)
    *_, last = fit_steps(model, tiny_rows(), AskOne(), options, validation=validation)
    again = list(fit_steps(model, tiny_rows(), AskOne(), replace(QUICK, steps=1, learning_rate=1e-30),
                           validation=validation))  # fmt: skip
    assert again[0].validation_loss == pytest.approx(last.validation_loss, rel=1e-6)


def test_a_time_budget_ends_the_run() -> None:
    model = tiny_model()
    result = fit(model, tiny_rows(), AskOne(), replace(QUICK, steps=10**9, seconds=0.3))
    assert result.stopped == "seconds"
    assert 0.3 <= result.seconds < 10
    assert 0 < result.steps < 10**6


@pytest.mark.parametrize("precision", ["bf16-mixed", "bf16-true"])
def test_a_model_trained_in_sixteen_bits_comes_back_in_thirty_two(precision: str) -> None:
    model = tiny_model()
    table = torch.rand(7) + 1e-6
    model.network.register_buffer("table", table.clone())
    model.network.register_buffer("other", table.clone(), persistent=False)
    before = weights_of(model)
    options = replace(QUICK, precision=precision, steps=60, batch_size=32, report_every=10)
    reports = list(fit_steps(model, tiny_rows(), AskOne(), options))
    assert reports[-1].loss < reports[0].loss
    assert all(value.dtype == torch.float32 for value in model.state_dict().values())
    assert torch.equal(model.network.table, table)
    assert torch.equal(model.network.other, table)
    assert not same(before, weights_of(model))


def test_rows_in_small_whole_numbers_and_in_doubles_are_fine() -> None:
    rows = tiny_rows()
    expected = [report.loss for report in curve(QUICK)]
    for dtype in (torch.uint8, torch.float64):
        model = tiny_model(dropout=0.0)
        other = Rows(rows.x.to(dtype), rows.present)
        assert [report.loss for report in fit_steps(model, other, AskOne(), QUICK)] == expected


def test_a_batch_larger_than_the_data_repeats_rows() -> None:
    assert len(curve(replace(QUICK, batch_size=100))) == 12


def test_compile_uses_the_networks_own_way_if_it_has_one() -> None:
    model, calls = tiny_model(), []
    model.network.compile_parts = lambda: calls.append(1)
    fit(model, tiny_rows(), AskOne(), replace(QUICK, compile=True))
    assert calls == [1]


@dataclass(frozen=True)
class Breaks(AskOne):
    """Not a number from a given call on."""

    at: int = 5

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        calls.append(1)
        loss = super().loss(model, rows, rank, generator=generator)
        return loss * math.nan if len(calls) == self.at else loss


calls: list[int] = []


def test_a_loss_that_is_not_a_number_stops_the_run_and_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    calls.clear()
    model = tiny_model()
    with pytest.raises(DivergedError, match=r"step 5.*loss is nan.*checkpoint of step 3 is kept"):
        fit(model, tiny_rows(), Breaks(), replace(QUICK, save_every=3), folder=tmp_path / "run")
    kept = load_model(tmp_path / "run", parts=[TinyNetwork])
    assert all(bool(value.isfinite().all()) for value in kept.state_dict().values())


class Plain(torch.nn.Linear, Unspecified):
    variables = VARIABLES


def test_what_does_not_fit_together_is_refused_before_training(tmp_path: Path) -> None:
    rows, model, ask = tiny_rows(), tiny_model(), AskOne()
    before = weights_of(model)

    def refused(message: str, *arguments: object, **options: object) -> None:
        with pytest.raises(ValueError, match=message):
            fit_steps(*arguments, **options)

    refused("at least one row", model, rows.take(torch.empty(0, dtype=torch.int64)), ask)
    refused("variables of rows", model, Rows.from_values(rows.x[:, :2]), ask)
    refused("variables of validation", model, rows, ask, validation=Rows.from_values(rows.x[:, :2]))
    refused("dtype of rows", model, Rows(rows.x > 0, rows.present), ask)
    refused("order of objective", model, rows, AskOne(follows=Decreasing()))
    refused("order of validation_objective", model, rows, ask, validation=rows,
            validation_objective=AskOne(follows=Decreasing()))  # fmt: skip
    refused(
        "objective: expected one for masked networks.*TinyNetwork.*got OnePass",
        model,
        rows,
        one_pass.objective(VARIABLES),
    )
    refused("validation_objective: expected one for masked.*got OnePass", model, rows, ask, validation=rows,
            validation_objective=one_pass.objective(VARIABLES))  # fmt: skip
    refused("variables of objective: expected 4, as the model has, got 5", model, rows, mac.objective_rest(5))
    refused("variables of validation_objective: expected 4.*got 3", model, rows, ask, validation=rows,
            validation_objective=mac.objective_rest(3))  # fmt: skip
    refused("validation", model, rows, ask, FitOptions(patience=3))
    refused("validation", model, rows, ask, validation_objective=ask)
    refused("resume", model, rows, ask, resume=True)
    refused("notes: expected a dict of what JSON can write", model, rows, ask, folder=tmp_path, notes={"a": {1}})
    refused("options: expected FitOptions", model, rows, ask, {"steps": 3})
    refused("metrics: expected a list of sinks", model, rows, ask, metrics=["lines.jsonl"])
    refused("rows: expected Rows", model, rows.x, ask)
    refused("validation: expected Rows", model, rows, ask, validation=rows.x)
    refused("objective: expected one, such as", model, rows, mac.objective_rest)
    (tmp_path / "file").write_text("something else")
    refused("expected a folder that can be written to", model, rows, ask, folder=tmp_path / "file" / "model")
    (tmp_path / "file").unlink()
    refused("dataclass", Model(Plain(4, 4), Categorical(4)), rows, ask, folder=tmp_path)
    if not torch.cuda.is_available():
        refused("device", model, rows, ask, FitOptions(device="cuda"))
    assert same(before, weights_of(model))
    assert list(tmp_path.iterdir()) == []


def test_a_loss_that_is_not_one_number_per_row_is_refused() -> None:
    class Summed(AskOne):
        def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
            return super().loss(model, rows, rank, generator=generator).sum()

    with pytest.raises(ValueError, match="shape of the loss"):
        fit(tiny_model(), tiny_rows(), Summed(), QUICK)


def test_importing_training_does_not_import_what_only_sharding_needs() -> None:
    import subprocess

    code = "import sys, anyfill.training; sys.exit('torch.distributed.fsdp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
