"""log p of cells, each row by itself: the blocks of ``anyfill.samplers.rowwise``, one term a row.

The same numbers as ``anyfill.evaluation.log_prob`` in the model's own order; but a row's does not depend, not even by
rounding, on the rows that come with it, and each row is read in the most direct way the model was trained for.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.evaluation import LogProb
from anyfill.evaluation.chain import of_one_order
from anyfill.interface.threads import threads
from anyfill.likelihoods import Mixed, Pooled, SpikedMixture
from anyfill.likelihoods.marginals import Likelihood
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.questions.question import Factorization, Question, chain_rank
from anyfill.questions.supported import step_factorization, untrained
from anyfill.rank import asked_in
from anyfill.rows import Rows
from anyfill.samplers.rowwise import block_size, chain_parameters, parameters, portions
from anyfill.tables.filler import Filler
from anyfill.tables.frames import Frame
from anyfill.tables.table import Names, Table


def score(model: Model, x: Tensor, question: Question) -> LogProb:
    """log p(x_asked | x_given) of rows (B, N), in the units of the model."""
    model.check_rows(x)
    question = question.checked()
    used = question.given | question.asked
    model.check_given(x, question.given)
    if model.corruption.shows_unknown:
        raise refuse("corruption", expected="one that shows no noise", got=repr(model.corruption))
    x = torch.where(used, x, torch.zeros_like(x))
    direct = _is_direct(model, question)
    order = model.fixed_order

    def chain(rows: Tensor, given: Tensor, asked: Tensor) -> Tensor:
        return _chain(model, x[rows], chain_rank(order, Question(given[rows], asked[rows])))

    value = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    one, other = direct.nonzero()[:, 0], (~direct).nonzero()[:, 0]
    value[one] = chain(one, question.given, question.asked)
    factorization = step_factorization(model.factorizations, question, model.order, order=order)
    if len(other):
        nothing, factorization = torch.zeros_like(used), Factorization.DIFFERENCE
        both, part = chain(other, nothing, used), chain(other, nothing, question.given)
        value[other] = torch.where(both.isneginf(), both, both - part)  # impossible evidence: -inf, not NaN
    passes = 1 if model.is_one_pass else int(question.asked.sum(1).max()) if len(x) else 0
    return of_one_order(model, value, passes, factorization or Factorization.DIRECT)


def score_columns(filler: Filler, frame: Frame, rows: Rows, *, asked: Names, given: Names, own_units: bool) -> LogProb:
    """log p(asked | given) of columns by their names, see ``TableModel.log_prob``."""
    table = filler.table
    known = table.members(given)
    wanted = ~known if asked is None else table.members(asked)
    if bool((known & wanted).any()):
        both = table.names[int((known & wanted).nonzero()[0])]
        raise refuse("asked and given", expected="different columns", got=f"{both!r} in both")
    x, present = filler.given(rows)
    question = Question(*(part.to(x.device).expand(x.shape) for part in (known, wanted))).within(present)
    with threads(1):
        answer = score(filler.model, x, question)
    value = answer.value.cpu()
    if own_units:
        units = log_units(filler.model, table, rows.x, frame)
        value = value + torch.where(question.asked.cpu(), units, 0.0).sum(1)
    return replace(answer, value=value, stderr=answer.stderr.cpu())


def score_cells(filler: Filler, frame: Frame, rows: Rows, *, own_units: bool) -> Tensor:
    """float64 (B, N): log p of each present cell given all others of its row, see ``TableModel.cell_log_prob``."""
    with threads(1):
        value = _each_cell(filler.model, *filler.given(rows)).cpu()
    return value + log_units(filler.model, filler.table, rows.x, frame) if own_units else value


def _each_cell(model: Model, x: Tensor, present: Tensor) -> Tensor:
    """float64 (B, N): log p(x_j | all other present values) of each present value; NaN elsewhere."""
    answer = torch.full(x.shape, torch.nan, dtype=torch.float64, device=x.device)
    places = present.nonzero()
    for some in places.split(2**14):
        row, j = some.unbind(1)
        asked = torch.zeros(len(some), x.shape[1], dtype=torch.bool, device=x.device)
        asked[torch.arange(len(some), device=x.device), j] = True
        answer[row, j] = score(model, x[row], Question(present[row] & ~asked, asked)).value
    return answer


def log_units(model: Model, table: Table, x: Tensor, data: Any = None) -> Tensor:
    """float64 (B, N): what makes a log-probability of each value of x (B, N) one per unit of the table.

    ``Table.log_units``, where the likelihood of a column of whole numbers has masses; where it has densities (a plain
    Gaussian, an energy) the slope. ``data``, the table behind x, tells apart the levels that share a code.
    """
    units = table.log_units(x, data).cpu()
    for j, column in enumerate(_columns(model.likelihood, len(table.columns))):
        number = table.number(j)
        if number is not None and number.step > 0 and not (isinstance(column, SpikedMixture) and column.step > 0):
            units[:, j] = torch.from_numpy(number.log_slope_at(x[:, j].double().cpu().numpy()))
    return units


def _columns(likelihood: Likelihood, count: int) -> Sequence[Likelihood]:
    """The likelihood of each column."""
    while isinstance(likelihood, Pooled):
        likelihood = likelihood.base
    return likelihood.columns if isinstance(likelihood, Mixed) else [likelihood] * count


def _is_direct(model: Model, question: Question) -> Tensor:
    """bool (B,): which rows are read step by step; the others as differences. ValueError if one is neither."""
    order = model.fixed_order
    asking = question.asked.any(1)
    if step_factorization(model.factorizations, question, model.order, order=order) is not None:
        return torch.ones_like(asking)
    both = torch.cat([question.given, question.asked], 1)
    patterns, which = both.unique(dim=0, return_inverse=True)
    each = [Question(*pattern.chunk(2, 1)) for pattern in patterns.split(1)]
    covered = [step_factorization(model.factorizations, one, model.order, order=order) is not None for one in each]
    direct = torch.tensor(covered, device=asking.device)[which] | ~asking
    if Factorization.DIFFERENCE not in model.factorizations and not bool(direct.all()):
        raise untrained(model.factorizations, "log p(asked | given)")
    return direct


def _chain(model: Model, x: Tensor, rank: Tensor) -> Tensor:
    """float64 (B,): the sum over asked variables of log p(x_j | all that rank before j)."""
    value = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    size = block_size(model)
    asked = asked_in(rank)
    with model.evaluating():
        if model.is_one_pass:
            for rows in portions(asked.any(1).nonzero()[:, 0], size):
                params = chain_parameters(model, x[rows], rank[rows], size)
                terms = model.likelihood(params).log_prob(_padded(x[rows], size))[: len(rows)].double()
                value[rows] = torch.where(asked[rows], terms, 0.0).sum(1)
            return value
        for some in portions(asked.nonzero(), size):
            rows, variable = some[:, 0], some[:, 1:]
            when = rank[rows]
            known = when < when.gather(1, variable)
            params = parameters(model, x[rows], known, when, size)
            wanted = _padded(variable, size)
            own = params.gather(1, wanted.unsqueeze(-1).expand(-1, 1, params.shape[2]))
            term = marginals_at(model.likelihood, own, wanted).log_prob(_padded(x[rows].gather(1, variable), size))
            value.index_add_(0, rows, term[: len(rows), 0].double())
    return value


def _padded(part: Tensor, size: int) -> Tensor:
    """(size, n): the first rows, and zeros."""
    whole = part.new_zeros(size, part.shape[1])
    whole[: len(part)] = part
    return whole
