"""Replayed steps are plain steps: the same losses, gradients and weights; and what cannot be captured is not."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

from anyfill.rows import Rows
from anyfill.training import FitOptions, fit
from anyfill.training.graphs import Replay
from anyfill.training.loss import LossModule, Precision
from tests.training.training_standin import AskOne, tiny_model, tiny_rows

CPU = torch.device("cpu")


class Recorded:
    """Stands in for a CUDA graph: what was captured is done once more."""

    def __init__(self) -> None:
        self.again = lambda: None

    def register_generator_state(self, generator: torch.Generator) -> None:
        pass

    def pool(self) -> int:
        return 1

    def replay(self) -> None:
        self.again()


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.cuda as far as ``Replay`` needs it, on a CPU."""

    @contextmanager
    def graph(recorded: Recorded, pool: Any = None) -> Iterator[None]:
        yield

    class Stream:
        def wait_stream(self, other: object) -> None:
            pass

    stand_ins = {
        "CUDAGraph": Recorded,
        "graph": graph,
        "Stream": Stream,
        "stream": lambda one: nullcontext(),
        "current_stream": Stream,
        "synchronize": lambda: None,
        "initial_seed": lambda: 0,
        "manual_seed": lambda seed: None,
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)


def parts() -> tuple[LossModule, list[tuple[Tensor, Tensor, None, Tensor]]]:
    model, rows = tiny_model(), tiny_rows()
    objective = AskOne()
    module = LossModule(model, objective, Precision("32-true", CPU, model)).eval()  # no dropout
    batches: list[tuple[Tensor, Tensor, None, Tensor]] = []
    for start in (0, 8):
        some: Rows = rows.take(torch.arange(start, start + 8))
        rank = objective.sample_rank(8, generator=torch.Generator().manual_seed(start))
        batches.append((some.x, some.present, None, rank))
    return module, batches


def plainly(module: LossModule, batch: tuple[Any, ...]) -> tuple[float, list[Tensor]]:
    module.generator.manual_seed(0)
    loss = module(*batch)
    loss.backward()
    gradients = [p.grad.clone() for p in module.parameters() if p.grad is not None]
    for parameter in module.parameters():
        parameter.grad = None
    return float(loss.detach()), gradients


@pytest.mark.usefixtures("cuda")
def test_a_shape_is_captured_once_and_later_batches_are_read_by_its_graph() -> None:
    module, batches = parts()
    expected = [plainly(module, batch) for batch in batches]
    replay = Replay(module)
    for number, batch in enumerate(batches):
        if number:
            (found,) = replay.captured.values()

            def again(found: Any = found) -> None:
                loss, gradients = plainly(module, tuple(found.inputs))
                found.loss.fill_(loss)
                for held, new in zip([one for one in found.gradients if one is not None], gradients):
                    held.copy_(new)

            found.graph.again = again
        module.generator.manual_seed(0)
        loss = replay(*batch)
        assert float(loss) == pytest.approx(expected[number][0], rel=1e-6)
        gradients = [p.grad for p in module.parameters() if p.grad is not None]
        assert all(torch.equal(a, b) for a, b in zip(gradients, expected[number][1], strict=True))
        for parameter in module.parameters():
            parameter.grad = None
    assert len(replay.captured) == 1
    assert expected[0][0] != expected[1][0]


@pytest.mark.usefixtures("cuda")
def test_what_cannot_be_captured_is_computed_plainly_and_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    module, batches = parts()
    expected = plainly(module, batches[0])

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(torch.cuda, "graph", broken)
    replay = Replay(module)
    for _ in range(2):
        loss = replay(*batches[0])
        gradients = [p.grad for p in module.parameters() if p.grad is not None]
        assert float(loss) == pytest.approx(expected[0], rel=1e-6)
        assert all(torch.equal(a, b) for a, b in zip(gradients, expected[1], strict=True))
        for parameter in module.parameters():
            parameter.grad = None
    assert caplog.messages == ["training goes on without CUDA graphs: operation not permitted when stream is capturing"]


def test_graphs_are_refused_where_there_is_no_cuda() -> None:
    with pytest.raises(ValueError, match="graphs: expected one process on CUDA, one micro-batch a step, got 1 on cpu"):
        fit(tiny_model(), tiny_rows(), AskOne(), FitOptions(steps=1, batch_size=8, device="cpu", graphs=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_on_cuda_replayed_steps_learn_what_plain_ones_learn() -> None:
    losses: list[float] = []
    for graphs in (False, True):
        options = FitOptions(steps=40, batch_size=16, device="cuda", graphs=graphs)
        losses.append(fit(tiny_model(), tiny_rows(), AskOne(), options).loss)
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
