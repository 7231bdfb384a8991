"""FitOptions refuses what no run could mean."""

import pytest

from anyfill.training import FitOptions

BAD = [
    ("steps", 0),
    ("steps", 1.5),
    ("steps", True),
    ("seconds", 0),
    ("seconds", float("nan")),
    ("seconds", float("inf")),
    ("batch_size", 0),
    ("accumulate", 0),
    ("accumulate", 3),
    ("learning_rate", 0.0),
    ("learning_rate", float("nan")),
    ("learning_rate", "fast"),
    ("warmup_steps", -1),
    ("schedule", "square"),
    ("final_fraction", 1.5),
    ("optimizer", "sgd"),
    ("betas", (0.9,)),
    ("betas", None),
    ("betas", (0.9, 1.0)),
    ("weight_decay", -0.1),
    ("clip_norm", 0.0),
    ("ema", 1.0),
    ("ema", -0.1),
    ("precision", "16-mixed"),
    ("shard", "yes"),
    ("compile", "yes"),
    ("graphs", "yes"),
    ("report_every", 0),
    ("validate_every", 0),
    ("patience", 0),
    ("save_every", 0),
    ("seed", -1),
    ("device", "tpu"),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_option_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        FitOptions(**{"batch_size": 8, name: value})


def test_warm_up_is_by_default_a_tenth_of_the_steps_and_at_most_a_hundred() -> None:
    assert FitOptions(steps=50).warmup == 5
    assert FitOptions(steps=100_000).warmup == 100
    assert FitOptions(steps=50, warmup_steps=0).warmup == 0


def test_options_read_from_json_equal_those_written() -> None:
    assert FitOptions(betas=[0.9, 0.99]) == FitOptions(betas=(0.9, 0.99))
