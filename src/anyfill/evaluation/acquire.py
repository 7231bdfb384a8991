"""What to measure next: how many nats each unknown variable is expected to tell about a target (SFARM eq. 15).

With M joint draws (y, x_U) ~ p(. | given), the same for every candidate j (common random numbers),

    draws        I(y; x_j | given)  ~  1/M sum_m [ log p(y_m | x_j^m, given) - log p(y_m | given) ]
    divergence   I(y; x_j | given)  ~  1/M sum_m KL( p(y | x_j^m, given) || p(y | given) )

An any-order model has both terms directly, so there is no latent variable to approximate and there are no bins to
choose (EDDI and HH-VAEM need the one or the other). All pairs (draw, candidate) are packed into as few passes as fit.

The divergence is the first estimator with y_m averaged out (Rao-Blackwell), for targets of one variable: exactly over
the values of a finite one, over ``inner`` draws of a real one. Same mean if the conditionals belong to one joint, never
negative for finite targets, and of far less variance where x_j tells little: for two normals with a small correlation
rho the variance of one term falls from rho^2 to rho^4 / 2. It takes no more passes. The first stays the default, for
the sake of models that are not quite joints: where a network's prediction of y merely jitters with x_j, the divergence
takes the jitter for news, while y_m, which did not follow it, makes the first estimate fall.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Unpack

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_bool, require_count, require_keywords, require_shape
from anyfill.evaluation.chain import PassOptions, log_prob, rows_in_a_pass
from anyfill.likelihoods.marginals import Marginals
from anyfill.likelihoods.mixed import code_sizes, marginals_at
from anyfill.model import Model
from anyfill.questions.question import Question
from anyfill.questions.supported import step_factorization, untrained


@dataclass(frozen=True, slots=True)
class Information:
    """How many nats each variable is expected to tell about the target.

    Attributes:
        value: float64 (B, N), I(target; x_j | given); 0 where x_j is not a candidate. It may fall below 0 by about its
            standard error.
        stderr: float64 (B, N), Monte Carlo standard error. Candidates share their draws, so that differences between
            them are known better than this.
        candidate: bool (B, N), what might be measured: neither given nor a part of the target.
        samples: M, the number of joint draws.
    """

    value: Tensor
    stderr: Tensor
    candidate: Tensor
    samples: int

    def gain_rate(self, cost: Tensor | None = None) -> Tensor:
        """float64 (B, N): expected nats per unit of ``cost``, (N,) or (B, N); 0 where x_j is not a candidate."""
        return self.value if cost is None else self.value / _costs(cost, self.value)

    def worth(self, cost: Tensor | None = None, min_gain: float = 0.0) -> Tensor:
        """bool (B, N): the candidates whose gain (per cost) is above ``min_gain`` by more than its standard error."""
        sure = self.value - self.stderr
        rate = sure if cost is None else sure / _costs(cost, sure)
        return self.candidate & (rate > min_gain)

    def best(self, cost: Tensor | None = None, min_gain: float | None = None) -> Tensor:
        """int64 (B,): the candidate that tells most (per unit of ``cost``); -1 where there is none.

        With ``min_gain`` only what is ``worth`` measuring counts: then -1 says stop.
        """
        allowed = self.candidate if min_gain is None else self.worth(cost, min_gain)
        index = torch.where(allowed, self.gain_rate(cost), -torch.inf).argmax(1)
        return torch.where(allowed.any(1), index, -1)

    def stop(self, cost: Tensor | None = None, min_gain: float = 0.0) -> Tensor:
        """bool (B,): nothing is ``worth`` measuring any more."""
        return ~self.worth(cost, min_gain).any(1)


def _costs(cost: Tensor, like: Tensor) -> Tensor:
    """Costs (N,) or (B, N) in the precision and on the device of ``like`` (B, N); ValueError unless all are above 0."""
    if tuple(cost.shape) not in (tuple(like.shape[1:]), tuple(like.shape)):
        raise refuse("shape of cost", expected=f"(N,) or (B, N) for {tuple(like.shape)}", got=tuple(cost.shape))
    cost = cost.to(like)
    if not bool(((cost > 0) & cost.isfinite()).all()):
        raise refuse("cost", expected="finite numbers above 0", got=cost.tolist())
    return cost


def information(
    model: Model,
    drawn: Tensor,
    given: Tensor,
    target: Tensor,
    *,
    candidate: Tensor | None = None,
    estimator: Literal["draws", "divergence"] = "draws",
    inner: int = 8,
    **options: Unpack[PassOptions],
) -> Information:
    """I(target; x_j | given) for every j that is neither, from joint draws.

    Args:
        model: what is asked.
        drawn: (M, B, N), M >= 2 draws of the candidates and the target beside the given values, which are the same in
            all draws of a row; other variables are not read.
        given: bool (B, N).
        target: bool (B, N), disjoint from ``given``; where a row has none, every answer is 0.
        candidate: bool (B, N), what may be measured; by default everything that is neither given nor target.
        estimator: see the module's text; "divergence" is for targets of one variable.
        inner: how many draws of a real target "divergence" averages over.
        options: see ``PassOptions``; the generator is for these inner draws.
    """
    require_keywords(options, PassOptions)
    require_shape("drawn", drawn, (None, *given.shape))
    samples = len(drawn)
    if samples < 2:
        raise refuse("samples", expected="2 at least", got=samples)
    candidate = open_variables(given, target, candidate)
    if estimator == "draws":
        gain = gains(model, drawn, given, target, candidate, **options)
    elif estimator == "divergence":
        gain = _divergences(model, drawn, given, target, candidate, inner, options)
    else:
        raise refuse("estimator", expected="'draws' or 'divergence'", got=repr(estimator))
    return averaged(gain, candidate)


def averaged(gain: Tensor, candidate: Tensor) -> Information:
    """The mean of M gains (M, B, N), with its standard error."""
    spread = gain.std(0) if gain.numel() else gain.sum(0)  # torch warns about the spread of no rows
    stderr = (spread / len(gain) ** 0.5).nan_to_num(nan=torch.inf)  # an infinite gain has no spread to speak of
    return Information(gain.mean(0), torch.where(candidate, stderr, 0.0), candidate, len(gain))


def open_variables(given: Tensor, target: Tensor, candidate: Tensor | None = None) -> Tensor:
    """bool (B, N): the candidates, none of them given or a part of the target."""
    rest = ~Question(given, target).checked().given & ~target
    if candidate is None:
        return rest
    require_bool("candidate", candidate)
    require_shape("candidate", candidate, tuple(given.shape))
    return candidate & rest


def gains(
    model: Model, drawn: Tensor, given: Tensor, target: Tensor, candidate: Tensor, **options: Unpack[PassOptions]
) -> Tensor:
    """float64 (M, B, N): log p(y_m | x_j^m, given) - log p(y_m | given) for each candidate j; 0 elsewhere."""
    require_keywords(options, PassOptions)
    context, rows_per_pass = options.get("context"), options.get("rows_per_pass")
    order = model.fixed_order  # a random order would blur the difference

    def score(draw: Tensor, row: Tensor, known: Tensor) -> Tensor:
        question = Question(known, target[row])
        # Read step by step: differences of marginals that do not fit together are no information at all.
        factorization = step_factorization(model.factorizations, question, model.order, order=order)
        if factorization is None:
            raise untrained(model.factorizations, "information about the target")
        return log_prob(
            model,
            drawn[draw, row],
            question,
            factorization=factorization,
            order=order,
            context=None if context is None else context[row],
            rows_per_pass=rows_per_pass,
        ).value

    base = torch.zeros(drawn.shape[:2], dtype=torch.float64, device=drawn.device)
    for draw, row in packs(len(drawn), candidate.any(1), model, rows_per_pass):
        base[draw, row] = score(draw, row, given[row])
    gain = torch.zeros(drawn.shape, dtype=torch.float64, device=drawn.device)
    for draw, row, j in packs(len(drawn), candidate, model, rows_per_pass):
        before, after = base[draw, row], score(draw, row, with_one(given[row], j))
        gain[draw, row, j] = torch.where(before == after, 0.0, after - before)  # no NaN where both are impossible
    return gain


def _divergences(
    model: Model, drawn: Tensor, given: Tensor, target: Tensor, candidate: Tensor, inner: int, options: PassOptions
) -> Tensor:
    """float64 (M, B, N): KL(p(y | x_j^m, given) || p(y | given)) for each candidate j; 0 elsewhere."""
    context, generator, rows_per_pass = options.get("context"), options.get("generator"), options.get("rows_per_pass")
    require_count("inner", inner)
    if bool((target.sum(1) > 1).any()):
        raise refuse("target", expected="one variable in each row for the divergence", got=int(target.sum(1).max()))
    at = target.to(torch.uint8).argmax(1, keepdim=True)
    size = code_sizes(model.likelihood, model.variables).to(at.device)[at]
    candidate = candidate & target.any(1, keepdim=True)
    if generator is None and bool((size[candidate.any(1)] == 0).any()):
        raise refuse("generator", expected="one, for the inner draws of a real target", got="none")

    def params(draw: Tensor | int, row: Tensor, known: Tensor) -> Tensor:
        """(R, 1, P): the parameters of each row's target given what is known."""
        model.check_given(drawn[draw, row], known)
        require_each(model, known, target[row])
        return target_parameters(model, drawn[draw, row], known, at[row], None if context is None else context[row])

    gain = torch.zeros(drawn.shape, dtype=torch.float64, device=drawn.device)
    if not len(given):
        return gain
    with model.evaluating():
        rows = portions(len(given), model, rows_per_pass, given.device)
        base = torch.cat([params(0, row, given[row]) for row in rows])
        for draw, row, j in packs(len(drawn), candidate, model, rows_per_pass):
            own = params(draw, row, with_one(given[row], j))
            after, before = (marginals_at(model.likelihood, one, at[row]) for one in (own, base[row]))
            gain[draw, row, j] = _divergence(after, before, size[row], inner, generator)[:, 0]
    return gain


def _divergence(after: Marginals, before: Marginals, size: Tensor, inner: int, generator: Generator | None) -> Tensor:
    """float64 (R, 1): KL(after || before) of one variable per row, which has ``size`` (R, 1) codes, or 0 = real."""

    found = over_codes(after, before, size)
    if generator is None or not bool((size == 0).any()):
        return found
    drawn = torch.zeros_like(found)
    for _ in range(inner):
        drawn += log_ratio(after, before, after.sample(generator=generator))[1] / inner
    return torch.where(size > 0, found, drawn)


def over_codes(after: Marginals, before: Marginals, size: Tensor) -> Tensor:
    """float64 (R, 1): KL(after || before) over the codes of variables that have ``size`` (R, 1) of them; 0 = none."""
    total = torch.zeros(size.shape, dtype=torch.float64, device=size.device)
    for code in range(int(size.max()) if len(size) else 0):
        one, term = log_ratio(after, before, torch.full_like(size, code))
        total += torch.where((code < size) & (one > -torch.inf), one.exp() * term, 0.0)
    return total


def log_ratio(after: Marginals, before: Marginals, value: Tensor) -> tuple[Tensor, Tensor]:
    """float64 (R, 1) each: log after(value), and how far it is above log before(value)."""
    one, other = (marginals.log_prob(value).double() for marginals in (after, before))
    return one, torch.where(one == other, 0.0, one - other)


def target_parameters(
    model: Model, x: Tensor, known: Tensor, variable: Tensor, context: Tensor | None = None
) -> Tensor:
    """(R, 1, P): what the likelihood reads as p(x_j | known) of one variable ``variable`` (R, 1) in each row."""
    every = torch.arange(len(x), device=x.device)
    return model.params(x, known, context=context, cells=(every, variable[:, 0])).unsqueeze(1)


def each_given(model: Model, x: Tensor, known: Tensor, asked: Tensor, context: Tensor | None = None) -> Marginals:
    """p(x_j | known) for each asked j by itself, in one pass; meaningless elsewhere. All but ``context`` is (B, N)."""
    require_each(model, known, asked)
    return model.marginals(x, known, context)


def require_each(model: Model, known: Tensor, asked: Tensor) -> None:
    """ValueError unless the model is trained to answer each asked variable by itself, without chance."""
    question = Question(known, asked)
    if step_factorization(model.factorizations, question, model.order, order=model.fixed_order, parallel=True) is None:
        raise untrained(model.factorizations, "p(x_j | given) for each target variable by itself")
    if model.corruption.shows_unknown:
        raise refuse("corruption", expected="one that shows no noise", got=repr(model.corruption))


def with_one(known: Tensor, j: Tensor) -> Tensor:
    """bool (R, N): ``known`` and variable ``j`` (R,) of each row."""
    return known.scatter(1, j[:, None], True)


def packs(samples: int, members: Tensor, model: Model, rows_per_pass: int | None) -> Iterator[tuple[Tensor, ...]]:
    """Every (draw, index of a member), as index tensors of so many entries as one call of the network may take."""
    places = members.nonzero()
    for flat in portions(samples * len(places), model, rows_per_pass, members.device):
        yield flat // len(places), *places[flat % len(places)].unbind(1)


def portions(count: int, model: Model, rows_per_pass: int | None, device: torch.device) -> Iterator[Tensor]:
    """0 … count-1 in portions of so many rows as one call of the network may take."""
    size = rows_in_a_pass(model, rows_per_pass)
    for start in range(0, count, size):
        yield torch.arange(start, min(start + size, count), device=device)
