"""Losses of two trainings compared step by step, and how hard the questions of a validation were."""

import numpy as np
import pytest

from experiments.sunmask import starts


def record(factor: float, seconds: float = 100.0) -> starts.Record:
    random = np.random.default_rng(0)
    losses = np.exp(-np.arange(1, 13) / 6 + random.normal(0.0, 0.1, 12))
    log = [
        {"step": 50 * i, "seconds": 5.0 * i, "loss": factor * float(loss), "validation": 0.3}
        for i, loss in enumerate(losses, 1)
    ]
    return {"log": log, "arguments": {"options": {"seconds": seconds, "seed": 1}}, "nats": [0.2, 0.4]}


def test_of_the_same_rows_a_constant_factor_is_found_without_doubt() -> None:
    found = starts.ratio(record(1.1), record(1.0))
    assert found["steps"] == [150, 600]
    assert (found["ratio"], found["low"], found["high"]) == pytest.approx((1.1, 1.1, 1.1))


def test_a_rate_that_falls_sooner_turns_less_and_questions_as_hard_as_all_give_one() -> None:
    slow, fast = record(1.0), record(1.0, seconds=60.0)
    assert starts.turned(fast, 600) < starts.turned(slow, 600) < 600
    assert starts.turned(fast, 600) == pytest.approx(300, abs=30)  # half of a whole cosine, less what 12 reports miss
    assert starts.questions(slow) == pytest.approx(1.0)
    assert starts.questions({**slow, "nats": None}) is None
