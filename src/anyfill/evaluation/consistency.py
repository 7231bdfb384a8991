"""Does a model agree with itself? Two ways round for one joint, and the spread over orders.

A joint has p(a) p(b | a) = p(a, b) = p(b) p(a | b) for every pair of disjoint sets, and one log p(x) whatever the
order. A network that learns each conditional on its own promises neither, so measure, in nats per row,

    gap     = | log p(a) + log p(b | a) - log p(b) - log p(a | b) |
    spread  = variance over K uniform orders z of log p(a, b | z)        (only for networks trained for any order)

Both are 0 for a true joint. The conditionals are read step by step, the condition first, never as a difference of
marginals: a difference would make the gap 0 by construction.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_bool
from anyfill.evaluation.chain import log_prob
from anyfill.model import Model
from anyfill.questions.question import Factorization, Question
from anyfill.questions.supported import step_factorization, untrained


@dataclass(frozen=True, slots=True)
class ConsistencyReport:
    """How far a model is from being one joint.

    Attributes:
        gap: float64 (B,), nats between p(a) p(b | a) and p(b) p(a | b).
        spread: float64 (B,), variance over orders of log p(a, b), in nats squared; None if that is not supported.
        orders: K, how many orders the spread is over; 0 where there is none.
        variables: int64 (B,), how many variables a and b hold together.
        passes: network passes spent on a row.
    """

    gap: Tensor
    spread: Tensor | None
    orders: int
    variables: Tensor
    passes: int

    def summary(self) -> str:
        """Two sentences for a person."""
        if len(self.gap) == 0:
            return "No rows, nothing to compare."
        per_variable = (self.gap / self.variables.clamp(min=1)).mean()
        text = (
            f"p(a) p(b|a) and p(b) p(a|b) differ by {float(self.gap.mean()):.4g} nats on average "
            f"({float(per_variable):.4g} per variable, {float(self.gap.max()):.4g} at most) over {len(self.gap)} rows."
        )
        if self.spread is None:
            return f"{text} The model was not trained for any order, so orders were not compared."
        deviation = float(self.spread.sqrt().mean())
        return f"{text} Over {self.orders} random orders log p(a, b) has a standard deviation of {deviation:.4g} nats."


def consistency(
    model: Model,
    x: Tensor,
    a: Tensor,
    b: Tensor,
    *,
    orders: int = 8,
    context: Tensor | None = None,
    generator: Generator | None = None,
    rows_per_pass: int | None = None,
) -> ConsistencyReport:
    """Compare both ways round for the variables a and b of each row.

    Args:
        model: what is tested; trained for DIRECT or ANY_ORDER, or for INPAINTING if a and b are everything.
        x: values (B, N), finite at a and b.
        a: bool (N,) or (B, N).
        b: bool, as a, disjoint from it.
        orders: K >= 2, how many shuffled orders the spread is taken over, where the model supports it.
        context: optional side information (B, ...).
        generator: for the shuffled orders; needed where they are drawn.
        rows_per_pass: as for ``log_prob``.
    """
    model.check_rows(x)
    a, b = _wide("a", a, x), _wide("b", b, x)
    order = model.fixed_order
    nothing = torch.zeros_like(a)
    terms: list[Tensor] = []
    passes = 0
    for given, asked in ((nothing, a), (a, b), (nothing, b), (b, a)):
        question = Question(given, asked).checked()
        factorization = step_factorization(model.factorizations, question, model.order, order=order)
        if factorization is None:
            raise untrained(model.factorizations, "consistency of p(a), p(b | a), p(b) and p(a | b)")
        term = log_prob(
            model,
            x,
            question,
            factorization=factorization,
            order=order,
            context=context,
            generator=generator,
            rows_per_pass=rows_per_pass,
        )
        terms.append(term.value)
        passes += term.passes
    gap = (terms[0] + terms[1] - terms[2] - terms[3]).abs()
    whole = Question(nothing, a | b)
    if Factorization.ANY_ORDER not in model.factorizations:
        return ConsistencyReport(gap, None, 0, (a | b).sum(1), passes)
    if orders < 2 or generator is None:
        got = f"orders={orders}, generator={'none' if generator is None else 'one'}"
        raise refuse("spread over orders", expected="orders of 2 at least and a generator", got=got)
    values: list[Tensor] = []
    for _ in range(orders):
        value = log_prob(model, x, whole, orders=1, context=context, generator=generator, rows_per_pass=rows_per_pass)
        values.append(value.value)
        passes += value.passes
    stacked = torch.stack(values)
    spread = stacked.var(0) if len(x) else stacked[0]  # torch warns about the variance of no rows
    return ConsistencyReport(gap, spread, orders, (a | b).sum(1), passes)


def _wide(name: str, members: Tensor, x: Tensor) -> Tensor:
    """bool (B, N) from (N,) or (B, N)."""
    require_bool(name, members)
    if tuple(members.shape) not in (tuple(x.shape[1:]), tuple(x.shape)):
        raise refuse(f"shape of {name}", expected=f"(N,) or (B, N) for x {tuple(x.shape)}", got=tuple(members.shape))
    return members.to(x.device).expand(x.shape)
