"""Numbers for long rows, where one order costs as many passes as there are variables: images under masked networks.

**Stratified bound.** Over uniform orders, E_order log p(x | order) = - N E_t L_t(x) with t uniform on 0 … N-1 and

    L_t(x) = mean over what is not known of - log p(x_j | x_known),   known a uniform set of t        (ARDM eq. 7)

is a bound on log p(x) in nats, by Jensen; given some variables, likewise with N the number of the others, all of which
are asked, and known sets that contain what is given. One random step a row has a huge variance; K passes take one t
from each of K equal strata of steps, each along an order of its own: known sets nested along one order would err
together, so that more passes would hardly help. Different models given the same generator are asked the same questions
(common random numbers).

In a fixed order (MAC's w) one variable is asked at each step, the next one, and the same sum is no bound but an
unbiased estimate of the exact chain, for rows too long to be asked N times.

**Mixture of fixed orders.** A uniform mixture over orders that are fixed is itself a likelihood, and exact:
log 1/K sum_k p(x | order k). Over random orders the same formula is only an estimate (``log_prob(orders=K)``).

**Bits per dimension** is nats / (N ln 2) with N = H W C, also when elements are pixels; of a part, N is what was
asked.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, Unpack

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_keywords, require_shape
from anyfill.evaluation.chain import LogProb, PassOptions, of_one_order, rows_in_a_pass, terms
from anyfill.likelihoods.marginals import Marginals
from anyfill.model import Model
from anyfill.networks.coupled import CoupledChannels
from anyfill.questions.question import Factorization, Order, Question, chain_rank
from anyfill.questions.supported import untrained
from anyfill.rank import asked_in


class Mean(NamedTuple):
    """A mean over rows and its standard error."""

    value: float
    stderr: float


def mean_of(values: Tensor) -> Mean:
    """Of one number a row, (B,)."""
    values = values.double()
    error = float(values.std() / math.sqrt(len(values))) if len(values) > 1 else math.inf
    return Mean(float(values.mean()), error)


def bits_per_dim(nats: Tensor | float, dimensions: int) -> Tensor | float:
    """nats / (N ln 2)."""
    require_count("dimensions", dimensions)
    return nats / (dimensions * math.log(2.0))


class StepNats(NamedTuple):
    """What single steps cost.

    Attributes:
        step: int64 (B, K), how many elements are known at each, given ones included.
        nats: float64 (B, K), L_t per element, see above.
    """

    step: Tensor
    nats: Tensor


def step_nats(
    model: Model,
    x: Tensor,
    *,
    passes: int = 4,
    channels: int = 1,
    given: Tensor | None = None,
    order: Order | None = None,
    allow_untrained: bool = False,
    **options: Unpack[PassOptions],
) -> StepNats:
    """L_t(x) for K steps a row, one from each of K equal strata of its steps.

    Args:
        model: a masked network's, trained for any order.
        x: complete rows (B, N).
        passes: K.
        channels: how many variables side by side are one element, known or unknown together. A network whose channels
            are coupled answers them one after another; of any other they are independent given what is known.
        given: bool (B, N), what is known from the start, whole elements; each row must leave one open.
        order: a fixed one, in which elements follow one another; by default all orders alike.
        allow_untrained: ask a model that does not say it was trained for any order (masks of whole pixels).
        options: context, the generator (required) and rows_per_pass, see ``PassOptions``.
    """
    require_keywords(options, PassOptions)
    model.check_rows(x)
    require_count("channels", channels)
    size, left = divmod(x.shape[1], channels)
    if left:
        raise refuse("channels", expected=f"a divisor of {x.shape[1]} variables", got=channels)
    first = _elements(given, x, channels)
    count = size - first.sum(1, keepdim=True)
    if bool((count < 1).any()):
        raise refuse("given", expected="an element left open in every row", got="all given")
    require_count("passes", passes)
    generator = options.get("generator")
    if generator is None:
        raise refuse("generator", expected="one, to draw steps and known sets from", got="none")
    if model.is_one_pass:
        raise refuse("network", expected="a masked one (log_prob is exact for this)", got=type(model.network).__name__)
    own = order is not None and order == model.order and bool(model.factorizations)
    if Factorization.ANY_ORDER not in model.factorizations and not own and not allow_untrained:
        raise untrained(model.factorizations, "a bound over all orders", else_pass="allow_untrained=True")
    if order is not None and order.random:
        raise refuse("order", expected="a fixed one", got=repr(order))
    # All is drawn for whole rows and from nothing else: what is asked depends on the generator and the sizes alone.
    jitter = torch.rand(len(x), passes, generator=generator, device=generator.device, dtype=torch.float64).to(x.device)
    stratum = torch.arange(passes, device=x.device)
    step = torch.minimum(((stratum + jitter) * count / passes).long(), count - 1)
    nats = torch.empty(step.shape, dtype=torch.float64, device=x.device)
    context = options.get("context")
    parts = torch.arange(len(x), device=x.device).split(rows_in_a_pass(model, options.get("rows_per_pass")))
    with model.evaluating():
        for k in range(passes):
            turn = _turns(first, order, generator)
            for rows in parts:
                known = (first[rows] | (turn[rows] < step[rows, k, None])).repeat_interleave(channels, 1)
                side = None if context is None else context[rows]
                answer = _answer(model, x[rows], known, side, channels)
                due = ~known
                if order is not None:
                    due = (turn[rows] == step[rows, k, None]).repeat_interleave(channels, 1) & due
                lost = -torch.where(due, answer.log_prob(x[rows]).double(), 0.0).sum(1)
                nats[rows, k] = lost if order is not None else lost / (count[rows, 0] - step[rows, k])
    return StepNats(step + size - count, nats)


def _turns(first: Tensor, order: Order | None, generator: Generator) -> Tensor:
    """int64 (B, S): the place of each open element in a fixed order, or in a fresh one of each row; given ones last."""
    if order is None:
        keys = torch.rand(first.shape, generator=generator, device=generator.device).to(first.device)
    else:
        keys = order.priority(1, first.shape[1]).to(first.device).argsort(1).argsort(1) / first.shape[1]
    return torch.where(first, 2.0, keys).argsort(1).argsort(1)


def _elements(given: Tensor | None, x: Tensor, channels: int) -> Tensor:
    """bool (B, N / channels): which elements are given; ValueError where one is given in part."""
    if given is None:
        return torch.zeros(len(x), x.shape[1] // channels, dtype=torch.bool, device=x.device)
    require_shape("given", given, tuple(x.shape))
    parts = given.to(x.device).view(len(x), -1, channels)
    if bool((parts.any(2) != parts.all(2)).any()):
        raise refuse("given", expected="whole elements", got="some in part")
    return parts.all(2)


def _answer(model: Model, x: Tensor, known: Tensor, context: Tensor | None, channels: int) -> Marginals:
    """Every unknown element given the known ones."""
    if channels > 1 and isinstance(model.network, CoupledChannels):
        model.check_context(context)
        return model.likelihood(model.network.within(x, known, context))
    return model.marginals(x, known, context)


def stratified_bound(
    model: Model,
    x: Tensor,
    *,
    passes: int = 4,
    channels: int = 1,
    given: Tensor | None = None,
    order: Order | None = None,
    allow_untrained: bool = False,
    **options: Unpack[PassOptions],
) -> LogProb:
    """A bound on log p(x), or on log p(the rest | given), from K passes a row; arguments as for ``step_nats``.

    In a fixed order it is an estimate, without bias. Its standard error is that over the K steps as if they were drawn
    at random, and strata make it less than that. Over many rows ``mean_of(bound.value)`` has the error that counts.
    """
    found = step_nats(
        *(model, x),
        passes=passes,
        channels=channels,
        given=given,
        order=order,
        allow_untrained=allow_untrained,
        **options,
    )
    count = (~_elements(given, x, channels)).sum(1, keepdim=True)
    value = -found.nats * count
    error = value.std(1) / math.sqrt(passes) if passes > 1 else torch.full_like(value[:, 0], torch.inf)
    kind = "bound" if order is None else "estimate"
    return LogProb(
        value.mean(1), kind, error, passes, Factorization.ANY_ORDER if order is None else Factorization.DIRECT
    )


def nats_by_step(found: StepNats, size: int) -> Tensor:
    """float64 (S,): L_t for every step, the mean of what was measured near it (``samplers.best_cuts`` needs all of it).

    Steps that nobody drew get the mean of their nearest measured neighbours, by interpolation.
    """
    step, nats = found.step.flatten().cpu(), found.nats.flatten().cpu()
    count = torch.bincount(step, minlength=size)
    total = torch.zeros(size, dtype=torch.float64).scatter_add(0, step, nats)
    have = (count > 0).nonzero().flatten()
    value = (total[have] / count[have]).contiguous()
    place = torch.arange(size)
    right = torch.searchsorted(have, place).clamp(max=len(have) - 1)
    left = (right - 1).clamp(min=0)
    width = (have[right] - have[left]).clamp(min=1)
    share = ((place - have[left]) / width).clamp(0, 1).double()
    return value[left] * (1 - share) + value[right] * share


def mixture_log_prob(
    model: Model, x: Tensor, question: Question, orders: Sequence[Order], **options: Unpack[PassOptions]
) -> LogProb:
    """log 1/K sum_k p(x_asked | x_given, in order k), exact, of orders that are fixed.

    They should be those the model was trained in (of a one-pass network the ``joint_orders`` of its loss): nothing here
    can tell.
    """
    if not orders or any(order.random for order in orders):
        raise refuse("orders", expected="one at least, none of them random", got=[repr(order) for order in orders][:3])
    model.check_rows(x)
    question = question.checked()
    each: list[Tensor] = []
    passes = 0
    for order in orders:
        rank = chain_rank(order, question).to(x.device)
        each.append(terms(model, x, rank, **options).sum(1))
        passes += 1 if model.is_one_pass else int(asked_in(rank).sum(1).max())
    value = torch.stack(each).logsumexp(0) - math.log(len(each))
    return of_one_order(model, value, passes, Factorization.DIRECT)
