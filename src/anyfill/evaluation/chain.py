"""log p(asked | given), exact where the order is fixed, bounded or estimated where it is drawn.

In one order the chain rule gives log p(x_asked | x_given) = sum_j log p(x_j | x_given, asked ones before j): one pass
of a one-pass network, one pass per asked variable of a masked one. A network whose conditionals do not fit together
gives another value in another order z; as a mixture over uniform orders its likelihood is p(x) = E_z p(x | z), and with
K orders drawn

    bound     1/K sum_k log p(x | z_k)      below log p(x) in expectation, by Jensen (SFARM eq. 5)
    estimate  log 1/K sum_k p(x | z_k)      log of an unbiased estimate, tends to log p(x) (SFARM eq. 14)

Standard errors: the bound's is std_k(log p_k) / sqrt(K); the estimate's, by the delta method, std_k(p_k) / (mean_k(p_k)
sqrt(K)). With one order there is no telling: infinity.

Factorizations, if none is named, in this order of preference: DIRECT or ANY_ORDER (the given block, then the asked
variables in w's order); WHOLE (the same, of whole elements); INPAINTING (the same, if no ignored variable comes in w
before an asked one: always if everything that is not given is asked); DIFFERENCE, log p(given, asked) - log p(given).
Where all given variables come first in w the difference is the same chain, and is computed as one (unless roles matter
to the network, which then supports MARGINAL in its place). Elsewhere it is the last choice for a reason: p(given,
asked) and p(given) come from different chains, so their ratio is a distribution over the asked values only if the
network is consistent. An inconsistent one can seem to predict better than any true conditional.
"""

import math
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, refuse_cells, require_count, require_keywords, require_member, require_shape
from anyfill.likelihoods.marginals import PerVariable
from anyfill.model import Model
from anyfill.questions.order import Shuffled
from anyfill.questions.question import Factorization, Order, Question, chain_rank
from anyfill.questions.supported import PREFERENCE, covers, step_factorization, untrained
from anyfill.rank import asked_in, known_before

CELLS_PER_PASS = 2**16
"""Rows of a pass times N, where the caller does not say: bounds the memory of packed passes."""
_COMPLETE = {
    Factorization.INPAINTING: "everything that is not given to be asked",
    Factorization.PREFIX: "what comes next in the model's order to be asked, given all that is before it",
    Factorization.MARGINAL: "nothing to be given",
    Factorization.WHOLE: "elements to be given, asked and ignored as a whole",
}
_DIFFERENCES = frozenset({Factorization.DIFFERENCE, Factorization.MARGINAL})
"""Whoever is trained for one of these has marginals to subtract."""


@dataclass(frozen=True, slots=True)
class LogProb:
    """A log-probability with what kind of number it is.

    Attributes:
        value: float64 (B,), nats.
        kind: "exact" under the model in its order; "bound" = below the exact value in expectation; "estimate", also
            where the model's conditionals are estimates themselves (energies, latent variables).
        stderr: float64 (B,), standard error over the orders drawn; 0 where exact, infinite where not known.
        passes: network passes spent on a row, the most over rows (packing rows together does not change it).
        factorization: how it was read off the network. A DIFFERENCE is the exact difference of two exact marginals, but
            sums to one over the asked values only as far as the conditionals fit together (see ``consistency``).
    """

    value: Tensor
    kind: Literal["exact", "bound", "estimate"]
    stderr: Tensor
    passes: int
    factorization: Factorization


class PassOptions(TypedDict, total=False):
    """How rows go through the network.

    Attributes:
        context: optional side information (B, ...).
        generator: for random orders, and for corruptions that show noise.
        rows_per_pass: most rows in one call of the network; by default 2^16 / N.
    """

    context: Tensor | None
    generator: Generator | None
    rows_per_pass: int | None


def log_prob(
    model: Model,
    x: Tensor,
    question: Question,
    *,
    factorization: Factorization | str | None = None,
    order: Order | None = None,
    orders: int | None = None,
    estimator: Literal["estimate", "bound"] = "estimate",
    **options: Unpack[PassOptions],
) -> LogProb:
    """log p(x_asked | x_given) for each row.

    Args:
        model: what is asked.
        x: values (B, N), finite where given or asked; anything (NaN too) elsewhere.
        question: B questions, within what is present.
        factorization: how to read it off the network; by default the first supported one (see the module's text).
        order: another order than the model's own; needs ANY_ORDER.
        orders: K, average over K uniformly shuffled orders instead; needs ANY_ORDER and a generator.
        estimator: what to make of K orders.
        options: context, generator and rows_per_pass, see ``PassOptions``.
    """
    model.check_rows(x)
    require_shape("given", question.given, tuple(x.shape))
    question = question.checked()
    require_member("estimator", estimator, ("estimate", "bound"))
    model.check_given(x, question.given)
    used = question.given | question.asked
    refuse_cells(question.asked & ~x.isfinite(), x, "a finite number where asked")
    factorization = None if factorization is None else _named(factorization)
    require_keywords(options, PassOptions)
    rows_in_a_pass(model, options.get("rows_per_pass"))
    rows = _Rows(model, torch.where(used, x, torch.zeros_like(x)), options)
    if orders is not None:
        return _over_orders(rows, question, factorization, order, orders, estimator)
    factorization = _factorization(model, question, factorization, order)
    order = model.order if order is None else order
    _refuse_chance(model, question, factorization, order)
    return rows.answer(question, factorization, order)


def of_one_order(model: Model, value: Tensor, passes: int, factorization: Factorization) -> LogProb:
    """A log-probability from one order: exact, unless the model's conditionals are estimates (error not known)."""
    if model.is_exact:
        return LogProb(value, "exact", torch.zeros_like(value), passes, factorization)
    return LogProb(value, "estimate", torch.full_like(value, torch.inf), passes, factorization)


def _named(factorization: Factorization | str) -> Factorization:
    """The factorization of this name: a plain string equals its member but is not the same object."""
    if factorization not in tuple(Factorization):
        raise refuse(
            "factorization", expected=" or ".join(repr(one.value) for one in Factorization), got=repr(factorization)
        )
    return Factorization(factorization)


def _factorization(
    model: Model, question: Question, factorization: Factorization | None, order: Order | None
) -> Factorization:
    """The factorization to use, supported by what the model was trained for; else ValueError."""
    what = "log p(asked | given)"
    own = order is None or order == model.order
    any_order = Factorization.ANY_ORDER in model.factorizations
    if factorization is None:
        found = step_factorization(model.factorizations, question, model.order, order=model.order if own else order)
        if found is None and own and model.factorizations & _DIFFERENCES:
            found = Factorization.DIFFERENCE
        if found is None:
            raise untrained(model.factorizations, what)
        return found
    supported = (
        bool(model.factorizations & _DIFFERENCES)
        if factorization is Factorization.DIFFERENCE
        else factorization in model.factorizations
    )
    if not supported and not (any_order and own):  # any order: w's own among them
        trained = ", ".join(one.value for one in PREFERENCE if one in model.factorizations) or "nothing (never trained)"
        raise refuse(
            "factorization", expected=f"what the model was trained for ({trained})", got=repr(factorization.value)
        )
    if not own and factorization is not Factorization.ANY_ORDER:
        raise refuse(
            "order", expected=f"the model's own for the factorization {factorization.value!r}", got=repr(order)
        )
    if factorization in _COMPLETE and not covers(factorization, question, model.order, order=model.order):
        got = {Factorization.MARGINAL: "given values", Factorization.WHOLE: "parts of them"}.get(
            factorization, "ignored or later ones in between"
        )
        raise refuse(what, expected=f"{_COMPLETE[factorization]} ({factorization.name})", got=got)
    return factorization


def _refuse_chance(model: Model, question: Question, factorization: Factorization, order: Order) -> None:
    """ValueError if the answer would depend on chance and no number of draws was named."""
    advice = "pass orders=K for a bound or an estimate, or order=... for a fixed order"
    together = question.given | question.asked
    ordered = together if model.is_one_pass or factorization is Factorization.DIFFERENCE else question.asked
    if order.random and bool(((ordered.sum(1) > 1) & question.asked.any(1)).any()):
        raise refuse("order", expected=f"one that is not random ({advice})", got=repr(order))
    if model.corruption.shows_unknown and bool(question.asked.any()):
        raise refuse("corruption", expected=f"one that shows no noise ({advice})", got=repr(model.corruption))


def _over_orders(
    rows: "_Rows",
    question: Question,
    factorization: Factorization | None,
    order: Order | None,
    orders: int,
    estimator: Literal["estimate", "bound"],
) -> LogProb:
    """The bound or the estimate from K shuffled orders."""
    require_count("orders", orders)
    if order is not None:
        raise refuse("order with orders=K", expected="none: K uniform orders are drawn", got=repr(order))
    if factorization not in (None, Factorization.ANY_ORDER) or Factorization.ANY_ORDER not in rows.model.factorizations:
        raise untrained(
            rows.model.factorizations, f"{orders} shuffled orders (the factorization {Factorization.ANY_ORDER.value!r})"
        )
    if rows.generator is None:
        raise refuse("generator", expected="one, to draw the orders from", got="none")
    draws = [rows.answer(question, Factorization.ANY_ORDER, Shuffled()) for _ in range(orders)]
    values = torch.stack([one.value for one in draws])
    passes = sum(one.passes for one in draws)
    if passes == 0:
        return draws[0]
    if estimator == "bound":
        return LogProb(values.mean(0), "bound", _standard_error(values), passes, Factorization.ANY_ORDER)
    mean = values.logsumexp(0) - math.log(orders)
    relative = torch.where(mean.isneginf(), 1.0, (values - mean).exp())  # p_k / mean of p
    return LogProb(mean, "estimate", _standard_error(relative), passes, Factorization.ANY_ORDER)


def _standard_error(values: Tensor) -> Tensor:
    """(B,) from K values each (K, B)."""
    if len(values) == 1:
        return torch.full_like(values[0], torch.inf)
    return values.std(0) / math.sqrt(len(values))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows to be scored, with all but the rank that ``terms`` takes."""

    model: Model
    x: Tensor
    options: PassOptions

    @property
    def generator(self) -> Generator | None:
        return self.options.get("generator")

    def answer(self, question: Question, factorization: Factorization, order: Order) -> LogProb:
        """log p(asked | given) under one factorization, in one order."""
        model = self.model
        one_chain = Factorization.MARGINAL not in model.factorizations and covers(
            factorization, question, model.order, order=order
        )
        if factorization is not Factorization.DIFFERENCE or one_chain:
            value, passes = self.chain(chain_rank(order, question, generator=self.generator))
        else:
            nothing = torch.zeros_like(question.given)
            whole = Question(nothing, question.given | question.asked)
            both, passes_both = self.chain(chain_rank(order, whole, generator=self.generator))
            alone = Question(nothing, question.given)
            part, passes_part = self.chain(chain_rank(order, alone, generator=self.generator))
            value = torch.where(both.isneginf(), both, both - part)  # impossible evidence: -inf, not NaN
            passes = passes_both + passes_part
        return of_one_order(model, value, passes, factorization)

    def chain(self, rank: Tensor) -> tuple[Tensor, int]:
        """float64 (B,): the sum over asked variables of log p(x_j | all that rank before j), and the passes it took."""
        found = terms(self.model, self.x, rank, **self.options)
        longest = int(asked_in(rank).sum(1).max()) if len(rank) else 0
        return found.sum(1), min(longest, 1) if self.model.is_one_pass else longest


def rows_in_a_pass(model: Model, rows_per_pass: int | None) -> int:
    """How many rows one call of the network takes: 2^16 / N, if the caller does not say."""
    if rows_per_pass is None:
        return max(1, CELLS_PER_PASS // model.variables)
    require_count("rows_per_pass", rows_per_pass)
    return rows_per_pass


def terms(model: Model, x: Tensor, rank: Tensor, **options: Unpack[PassOptions]) -> Tensor:
    """float64 (B, N): log p(x_j | all that rank before j) for every asked j, 0 elsewhere.

    One pass of a one-pass network; of another one packed row for each asked variable: nothing couples them, so any
    number of them fits in a call. Nothing is checked here, neither values nor what the model was trained for.

    Args:
        model: what is asked.
        x: values (B, N).
        rank: int64 (B, N), see ``anyfill.rank``.
        options: see ``PassOptions``.
    """
    require_keywords(options, PassOptions)
    context, generator = options.get("context"), options.get("generator")
    asked = asked_in(rank)
    value = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    size = rows_in_a_pass(model, options.get("rows_per_pass"))
    with model.evaluating():
        if model.is_one_pass:
            for rows in asked.any(1).nonzero().squeeze(1).split(size):
                value[rows] = _chain_terms(model, x[rows], rank[rows], _take(context, rows))
            return value
        for places in asked.nonzero().split(size):
            rows, variable = places[:, 0], places[:, 1:]
            own = rank[rows]
            known = known_before(own, own.gather(1, variable))
            shown = model.corruption.fill(x[rows], known, generator=generator)
            found = model.marginals(shown, known, _take(context, rows)).log_prob(x[rows])
            value[rows, variable[:, 0]] = found.gather(1, variable)[:, 0].double()
    return value


def _chain_terms(model: Model, x: Tensor, rank: Tensor, context: Tensor | None) -> Tensor:
    """float64 (B, N): ``terms`` of a one-pass network, in one pass."""
    asked = asked_in(rank)
    if isinstance(model.likelihood, PerVariable):  # which reads all variables of a kind at once
        return torch.where(asked, model.chain(x, rank, context).log_prob(x).double(), 0.0)
    cells = asked.nonzero(as_tuple=True)
    found = model.chain_at(x, rank, (cells[0], cells[1]), context).log_prob(x[cells].unsqueeze(1))
    value = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    return value.index_put(cells, found.squeeze(1).double())


def _take(context: Tensor | None, rows: Tensor) -> Tensor | None:
    return None if context is None else context[rows]
