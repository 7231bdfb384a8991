"""How to draw: what can be said, and what is refused."""

import pytest

from anyfill.samplers import Draw
from anyfill.text import sampling
from anyfill.text.cli import Sampler
from anyfill.text.sampling import SamplingOptions


def test_the_command_line_names_all_samplers() -> None:
    assert tuple(one.value for one in Sampler) == sampling.SAMPLERS


def test_options_say_how_one_value_is_drawn() -> None:
    assert SamplingOptions().draw == Draw()
    assert SamplingOptions(temperature=0.5, top_k=3).draw == Draw(temperature=0.5, top_k=3)
    with pytest.raises(ValueError, match="nucleus: expected a mass above 0"):
        SamplingOptions(nucleus=0.0)
    with pytest.raises(ValueError, match="--sampler"):
        SamplingOptions("other")
