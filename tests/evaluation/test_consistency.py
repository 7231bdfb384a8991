"""Zero for a joint, positive for conditionals that belong to none."""

import pytest
import torch
from torch import Generator

from anyfill.evaluation import consistency
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.exact import EnumeratedJoint, RandomConditionals
from anyfill.questions import Factorization, Shuffled

A = torch.tensor([True, False, True, False, False])
B = torch.tensor([False, True, False, False, True])


def model_of(network, factorizations=(Factorization.DIRECT, Factorization.ANY_ORDER), **options):
    return Model(network, Categorical(network.values), factorizations=factorizations, **options)


def test_a_joint_is_consistent(generator):
    joint = EnumeratedJoint.random(5, 3, generator=generator, concentration=0.5)
    report = consistency(model_of(joint), joint.sample(40, generator=generator), A, B, generator=generator)
    assert float(report.gap.max()) < 1e-10
    assert float(report.spread.max()) < 1e-20
    assert report.passes == 4 + 8


def test_random_conditionals_are_not(generator):
    x = torch.randint(3, (40, 5), generator=generator)
    report = consistency(model_of(RandomConditionals(5, 3)), x, A, B, orders=6, generator=generator)
    assert float(report.gap.min()) > 0
    assert float(report.gap.mean()) > 0.1
    assert float(report.spread.mean()) > 0.01
    assert report.orders == 6
    assert "nats" in report.summary()
    assert "6 random orders" in report.summary()


def test_without_any_order_the_orders_are_not_compared(generator):
    joint = EnumeratedJoint.random(5, 3, generator=generator)
    report = consistency(model_of(joint, [Factorization.DIRECT]), joint.sample(4, generator=generator), A, B)
    assert report.spread is None
    assert "not trained for any order" in report.summary()


def test_completions_and_marginals_are_compared_where_a_and_b_are_everything(generator):
    """MAC trained on both kinds of edges: p(a) is a marginal, p(b | a) a completion."""
    factorizations = [Factorization.DIFFERENCE, Factorization.INPAINTING]
    joint = EnumeratedJoint.random(5, 3, generator=generator)
    x = joint.sample(9, generator=generator)
    assert float(consistency(model_of(joint, factorizations), x, A, ~A).gap.max()) < 1e-10
    assert float(consistency(model_of(RandomConditionals(5, 3), factorizations), x, A, ~A).gap.min()) > 0


def test_a_difference_of_marginals_is_no_test(generator):
    joint = EnumeratedJoint.random(5, 3, generator=generator)
    with pytest.raises(ValueError, match="trained for: difference"):
        consistency(model_of(joint, [Factorization.DIFFERENCE]), joint.sample(4, generator=generator), A, B)


def test_a_random_protocol_is_compared_in_a_fixed_order(generator):
    joint = EnumeratedJoint.random(5, 3, generator=generator)
    model = model_of(joint, [Factorization.ANY_ORDER], order=Shuffled())
    report = consistency(model, joint.sample(4, generator=generator), A, B, generator=generator)
    assert float(report.gap.max()) < 1e-10


def test_bad_sets_are_refused(generator):
    model = model_of(EnumeratedJoint(5, 3))
    x = torch.zeros(2, 5)
    with pytest.raises(ValueError, match="disjoint"):
        consistency(model, x, A, A, generator=generator)
    with pytest.raises(ValueError, match="shape of b"):
        consistency(model, x, A, B[:3], generator=generator)
    with pytest.raises(ValueError, match="dtype of a"):
        consistency(model, x, A.long(), B, generator=generator)
    with pytest.raises(ValueError, match="spread"):
        consistency(model, x, A, B, orders=1, generator=generator)


def test_no_rows():
    report = consistency(model_of(EnumeratedJoint(5, 3)), torch.zeros(0, 5), A, B, generator=Generator())
    assert report.gap.shape == (0,)
    assert "No rows" in report.summary()
