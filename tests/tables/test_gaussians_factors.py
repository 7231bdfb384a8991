"""A Gaussian by factors answers as the same Gaussian with its covariance written out."""

import math

import torch

from anyfill.tables.gaussians import Factors, Joint, condition, take

D, R = 6, 2


def factors_of(seed: int) -> Factors:
    generator = torch.Generator().manual_seed(seed)
    loadings = torch.randn(D, R, generator=generator, dtype=torch.float64)
    noise = 0.1 + torch.rand(D, generator=generator, dtype=torch.float64)
    return Factors(torch.randn(D, generator=generator, dtype=torch.float64), loadings, noise)


def written_out(factors: Factors) -> Joint:
    covariance = factors.loadings @ factors.loadings.T + torch.diag(factors.noise)
    return Joint(torch.zeros(1, dtype=torch.float64), factors.means.unsqueeze(0), covariance.unsqueeze(0))


def some_rows() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(40, D, generator=generator, dtype=torch.float64)
    known = torch.rand(40, D, generator=generator) < 0.5
    known[0], known[1] = False, True
    return x, known


def test_factors_answer_as_the_covariance_they_stand_for() -> None:
    x, known = some_rows()
    answer, exact = condition(factors_of(0), x, known), condition(written_out(factors_of(0)), x, known)
    torch.testing.assert_close(answer.center, exact.center)
    torch.testing.assert_close(answer.variance, exact.variance)
    torch.testing.assert_close(answer.log_share, exact.log_share)


def test_factors_for_each_row_equal_each_alone() -> None:
    x, known = some_rows()
    stack = Factors(*(torch.stack(parts) for parts in zip(factors_of(1), factors_of(2))))
    which = torch.arange(len(x)) % 2
    together = condition(take(stack, which), x, known)
    for number in (0, 1):
        here = which == number
        alone = condition(factors_of(1 + number), x[here], known[here])
        torch.testing.assert_close(together.center[here], alone.center)
        torch.testing.assert_close(together.variance[here], alone.variance)


def test_unknown_features_are_never_read() -> None:
    x, known = some_rows()
    spoiled = condition(factors_of(0), x.masked_fill(~known, math.nan), known)
    clean = condition(factors_of(0), x.masked_fill(~known, 9.0), known)
    for one, other in zip(spoiled, clean):
        assert torch.equal(one, other)
        assert bool(one.isfinite().all())
