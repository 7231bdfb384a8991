"""Left to right against a span last: no gap in a joint, one in conditionals that belong to none."""

import pytest
import torch

from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint, RandomConditionals
from anyfill.questions import Factorization
from benchmarks.text_consistency import Asked, span_gap, span_summary


def _model(network) -> Model:
    return Model(network, Categorical(network.values), factorizations=(Factorization.DIRECT,))


@pytest.mark.parametrize(("start", "size"), [(0, 1), (1, 2), (3, 2)])
def test_a_joint_is_read_alike_in_both_ways(start: int, size: int) -> None:
    generator = torch.Generator().manual_seed(0)
    joint = EnumeratedJoint.random(6, 3, generator=generator)
    for row in joint.sample(5, generator=generator):
        gap, inside = span_gap(_model(joint), Asked(row[:5], start, size))
        assert abs(gap) < 1e-9
        assert inside < 0


def test_conditionals_of_no_joint_have_a_gap_which_is_summed_up() -> None:
    model = _model(RandomConditionals(6, 3))
    rows = torch.randint(3, (20, 6), generator=torch.Generator().manual_seed(1))
    gaps = [span_gap(model, Asked(row, 2, 2)) for row in rows]
    found = span_summary(gaps, 2)
    assert found["spans"] == 20
    assert found["median_gap"] > 0.05
    assert found["nats_a_code_given_both_sides"] > 0
