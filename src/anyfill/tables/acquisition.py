"""Sequential acquisition of information (SAIA; EDDI, HH-VAEM, SFARM section 4.2): measure, predict, choose, measure.

For every test row, from O = what is given (nothing by default):

    record how well y is predicted from x_O;  j <- chooser;  O <- O + j, x_j its true value;  until all is known

which makes d + 1 points for d measurable variables. A row stops early where its chooser answers -1, and its curve stays
flat from there. A value that is missing in the data cannot be measured, so it is no candidate; nor is it ever given.

Rows go through in one batch and each follows its own way, but they share the generator: what a row draws depends on
which rows come with it. Chooser and metrics look at nothing else of the other rows; for a result of one row that
repeats whatever its company, run it alone with its own seed.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import ParamSpec, TypeVar

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_bool, require_count, require_positive
from anyfill.evaluation.acquire import each_given, portions
from anyfill.evaluation.chain import log_prob
from anyfill.likelihoods.marginals import Marginals
from anyfill.likelihoods.mixed import code_sizes
from anyfill.model import Model
from anyfill.questions.order import Increasing
from anyfill.questions.question import Question
from anyfill.questions.supported import step_factorization, untrained
from anyfill.rows import Rows
from anyfill.tables.acquisition_curves import Acquired, Curves
from anyfill.tables.choosers import Chooser, Informed, Rewarding, Standing

_P = ParamSpec("_P")
_Step = TypeVar("_Step")
_All = TypeVar("_All")


def acquire_steps(
    model: Model,
    rows: Rows,
    target: int | Sequence[int] | Tensor,
    chooser: Chooser,
    *,
    given: Tensor | None = None,
    costs: Sequence[float] | None = None,
    generator: Generator,
    rows_per_pass: int | None = None,
) -> Iterator[Acquired]:
    """Measure one variable after another, each row its own; ends when no row can or wants to go on.

    Args:
        model: what predicts.
        rows: test rows; the target must be present in all of them.
        target: the variables to predict: one, several, or bool (B, N) for different ones in each row.
        chooser: what is measured next.
        given: bool (N,) or (B, N), known from the start (where present), at no cost; by default nothing.
        costs: N prices to add up (those of targets are not read); by default 1 each. The chooser has its own.
        generator: the source of all randomness.
        rows_per_pass: most rows in one call of the network when predictions are scored.
    """
    model.check_rows(rows.x)
    rows = rows.to(next(chain(model.parameters(), model.buffers()), rows.x).device)
    wanted = _wanted(target, rows)
    if bool((wanted & ~rows.present).any()):
        row, variable = (wanted & ~rows.present).nonzero()[0].tolist()
        raise refuse("target", expected="present in every row", got=f"row {row}, variable {variable} missing")
    known = _given(given, rows, wanted)
    price = _price(costs, rows)
    candidate = rows.present & ~known & ~wanted
    open_rows = candidate.any(1)
    steps = int(candidate.sum(1).max()) if len(rows) else 0
    chosen = torch.full((len(rows),), -1, device=known.device)
    gain = torch.full((len(rows),), torch.nan, dtype=torch.float64, device=known.device)
    cost = torch.zeros_like(gain)
    scores = _scores(model, rows, known, wanted, rows_per_pass)
    yield Acquired(chosen, gain, cost, *scores, known=known, step=0, steps=steps)
    for step in range(1, steps + 1):
        index = open_rows.nonzero()[:, 0]
        if not len(index):
            return
        standing = Standing.of(rows.take(index), known[index], candidate[index], wanted[index])
        choice = chooser.choose(model, standing, generator=generator)
        _check_choice(choice.variable, standing.candidate)
        chosen, gain = torch.full_like(chosen, -1), torch.full_like(gain, torch.nan)
        chosen[index], gain[index] = choice.variable, choice.gain
        moved = (chosen >= 0).nonzero()[:, 0]
        now = torch.zeros_like(known)
        now[moved, chosen[moved]] = True
        known, candidate = known | now, candidate & ~now
        cost = cost + torch.where(now, price, 0.0).sum(1)
        scores = scores.clone()
        scores[:, moved] = _scores(model, rows.take(moved), known[moved], wanted[moved], rows_per_pass)
        open_rows = (chosen >= 0) & candidate.any(1)
        yield Acquired(chosen, gain, cost, *scores, known=known, step=step, steps=steps)


def global_order_steps(
    model: Model,
    rows: Rows,
    target: int | Sequence[int] | Tensor,
    *,
    by: Rewarding | None = None,
    given: Tensor | None = None,
    generator: Generator,
) -> Iterator[tuple[int, float]]:
    """The next variable of the order and its mean reward, chosen greedily.

    Each step takes the variable with the greatest mean reward (per cost) over all rows, where every row knows what it
    has of the variables taken so far. A missing value is not given, but its reward counts; a given one has none left.

    Args:
        model: what predicts.
        rows: *training* rows: an order chosen on test rows would know them. A few hundred are enough.
        target: as for ``acquire_steps``; its values are read by a reward that looks at true values alone.
        by: whose reward; by default ``Informed()``.
        given: as for ``acquire_steps``; what is given in every row is no part of the order.
        generator: the source of all randomness.
    """
    model.check_rows(rows.x)
    by = Informed() if by is None else by
    rows = rows.to(next(chain(model.parameters(), model.buffers()), rows.x).device)
    if not len(rows):
        raise refuse("rows", expected="one at least", got="none")
    wanted = _wanted(target, rows)
    start = _given(given, rows, wanted)
    price = _price(by.costs, rows)
    left = ~(wanted | start).all(0)
    taken = torch.zeros_like(left)
    while bool(left.any()):
        known = start | (rows.present & taken)
        standing = Standing.of(rows, known, left & ~(wanted | start), wanted)
        reward = by.reward(model, standing, generator=generator).value.mean(0)
        best = int(torch.where(left, reward / price, -torch.inf).argmax())
        left[best], taken[best] = False, True
        yield best, float(reward[best])


def _to_the_end(steps: Callable[_P, Iterator[_Step]], gather: Callable[[list[_Step]], _All]) -> Callable[_P, _All]:
    """What ``gather`` makes of all steps."""

    def run(*args: _P.args, **options: _P.kwargs) -> _All:
        return gather(list(steps(*args, **options)))

    return run


acquire_rows = _to_the_end(acquire_steps, Curves.of)
"""The curves of a chooser on test rows: ``acquire_steps`` run to its end."""
global_order = _to_the_end(global_order_steps, lambda steps: tuple(variable for variable, _ in steps))
"""One order for all rows, for ``InOrder`` (SING): ``global_order_steps`` run to its end."""


def _scores(model: Model, rows: Rows, known: Tensor, wanted: Tensor, rows_per_pass: int | None) -> Tensor:
    """float64 (3, B): squared error of the mean, log p(y | x_known), share of wrong codes."""
    scores = torch.zeros(3, len(rows), dtype=torch.float64, device=known.device)
    if not len(rows):
        return scores
    order = Increasing() if model.order.random else None
    question = Question(known, wanted)
    factorization = step_factorization(
        model.factorizations, question, model.order, order=model.order if order is None else order
    )
    if factorization is None:
        raise untrained(model.factorizations, "log p(target | measured)")
    answer = log_prob(
        model,
        rows.x,
        question,
        factorization=factorization,
        order=order,
        context=rows.context,
        rows_per_pass=rows_per_pass,
    )
    scores[1] = answer.value
    sizes = code_sizes(model.likelihood, model.variables).to(known.device)
    with model.evaluating():
        for part in portions(len(rows), model, rows_per_pass, known.device):
            some, asked = rows.take(part), wanted[part]
            marginals = each_given(model, some.x, known[part], asked, some.context)
            error, wrong = _errors(marginals, some.x, sizes)
            coded = asked & (sizes > 0)
            scores[0, part] = torch.where(asked, error, 0.0).sum(1) / asked.sum(1)
            scores[2, part] = torch.where(coded, wrong, 0.0).sum(1) / coded.sum(1)  # NaN where there is none
    return scores


def _errors(marginals: Marginals, x: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """float64 (B, N) each: squared error of the mean (half the Brier score, for codes), and 1.0 = a wrong code."""
    error = (marginals.mean().double() - x.double()) ** 2
    brier, right, most = torch.zeros_like(error), torch.zeros_like(error), torch.full_like(error, -1.0)
    for code in range(int(sizes.max())):
        hit = (x == code).double()
        p = torch.where(code < sizes, marginals.log_prob(torch.full_like(x, code)).double().exp(), 0.0)
        brier += 0.5 * (p - hit) ** 2
        right, most = torch.where(p > most, hit, right), torch.maximum(p, most)
    return torch.where(sizes > 0, brier, error), 1.0 - right


def _wanted(target: int | Sequence[int] | Tensor, rows: Rows) -> Tensor:
    """bool (B, N): the target of each row, one variable at least."""
    if isinstance(target, Tensor):
        wanted = _widened("target", target, rows)
    else:
        wanted = torch.zeros_like(rows.present)
        for variable in [target] if isinstance(target, int) else target:
            require_count("target", variable, minimum=0, maximum=rows.variables - 1)
            wanted[:, variable] = True
    if not bool(wanted.any(1).all()):
        raise refuse("target", expected="one variable at least in every row", got="none")
    return wanted


def _given(given: Tensor | None, rows: Rows, wanted: Tensor) -> Tensor:
    """bool (B, N): what is known from the start."""
    if given is None:
        return torch.zeros_like(wanted)
    return Question(_widened("given", given, rows) & rows.present, wanted).checked().given


def _widened(name: str, flags: Tensor, rows: Rows) -> Tensor:
    """bool (B, N): flags (N,) or (B, N), where the rows are."""
    require_bool(name, flags)
    if tuple(flags.shape) not in (tuple(rows.x.shape[1:]), tuple(rows.x.shape)):
        raise refuse(f"shape of {name}", expected=f"{tuple(rows.x.shape)}", got=tuple(flags.shape))
    return flags.to(rows.x.device).expand(rows.x.shape)


def _price(costs: Sequence[float] | None, rows: Rows) -> Tensor:
    """float64 (N,): what each variable costs."""
    if costs is None:
        return torch.ones(rows.variables, dtype=torch.float64, device=rows.x.device)
    if len(costs) != rows.variables:
        raise refuse("costs", expected=f"one for each of {rows.variables} variables", got=len(costs))
    for cost in costs:
        require_positive("cost", cost)
    return torch.tensor(list(costs), dtype=torch.float64, device=rows.x.device)


def _check_choice(variable: Tensor, candidate: Tensor) -> None:
    """ValueError if a chooser names what is no candidate: a value would be measured twice, or the target given."""
    named = candidate.gather(1, variable.clamp(min=0)[:, None])[:, 0]
    if bool(((variable >= 0) & ~named).any()):
        raise refuse("choice", expected="a candidate of its row, or -1", got=variable.tolist())
