"""What is supported: the conditionals a network was trained on, and so the questions to be read off it step by step.

Answering the asked variables one after another, the given ones known from the start, meets the conditionals

    p(x_j | x_given, x_i for every asked i answered before j)

With w the protocol of training, a network was trained for p(x_j | x_K) for the known sets K

    ANY_ORDER    that are any subset of the others
    DIRECT       that are any subset of the others, when the steps follow w
    WHOLE        that are whole elements of w, and, answered, those of j's own element before j, when steps follow w
    INPAINTING   that hold everything before j in w, and any part of what comes after
    DIFFERENCE   that hold nothing after j in w (the edges of MAC's mask lattice)
    MARGINAL     likewise, all of them answered, none given
    PREFIX       that hold everything before j in w and nothing else

so a chain in w's order is covered by INPAINTING when no ignored variable comes in w before an asked one, and by
DIFFERENCE when no given variable comes after an asked one; by PREFIX when both hold; by MARGINAL when nothing is given.
Samplers and evaluation both ask here, and nothing is read off a network that was never trained for it unless the caller
says so.
"""

from collections.abc import Collection

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.questions.question import Factorization, InElements, Order, Question

PREFERENCE = (
    *(Factorization.DIRECT, Factorization.ANY_ORDER, Factorization.WHOLE, Factorization.INPAINTING),
    *(Factorization.DIFFERENCE, Factorization.MARGINAL, Factorization.PREFIX),
)
"""Where several factorizations cover a question, the first of these is used: the most direct one."""


def covers(
    factorization: Factorization, question: Question, w: Order, *, order: Order | None, parallel: bool = False
) -> bool:
    """True if a network trained for ``factorization`` under ``w`` was trained for every step of answering ``question``.

    Args:
        factorization: what the network was trained for.
        question: B questions; all of them must be covered.
        w: the protocol of training.
        order: the order of the steps; None = chosen as they go, hence possibly any.
        parallel: variables may be answered without knowing those just before them (groups, or each on its own).
    """
    if factorization is Factorization.ANY_ORDER:
        return True
    if order is None or order != w:
        return False
    if factorization is Factorization.DIRECT:
        return True
    if factorization is Factorization.WHOLE:
        return _is_whole(question.given, w) and (
            _is_first(question.asked, w) if parallel else _is_whole(question.asked, w)
        )
    if factorization is Factorization.MARGINAL:
        return not bool((question.given.any(1) & question.asked.any(1)).any())
    if factorization is not Factorization.INPAINTING and bool(_any_after(question.given, question.asked, w).any()):
        return False
    if factorization is Factorization.DIFFERENCE:
        return True
    if parallel:
        ungiven = ~question.given
        return not bool((_any_after(question.asked, ungiven, w) & (ungiven.sum(1) > 1)).any())
    return not bool(_any_after(question.asked, question.ignored, w).any())


def step_factorization(
    factorizations: Collection[Factorization],
    question: Question,
    w: Order,
    *,
    order: Order | None,
    parallel: bool = False,
) -> Factorization | None:
    """The factorization of ``PREFERENCE`` that covers answering ``question`` step by step; None if no one does."""
    for factorization in PREFERENCE:
        if factorization in factorizations and covers(factorization, question, w, order=order, parallel=parallel):
            return factorization
    return None


def completed(
    factorizations: Collection[Factorization],
    question: Question,
    w: Order,
    *,
    order: Order | None,
    parallel: bool = False,
) -> Question:
    """The question to sample so that its asked part has the law of p(asked | given); ValueError if there is none.

    It is ``question`` itself where a factorization covers it. A network trained for INPAINTING only answers everything
    that is not given: then that is asked, and dropping the ignored variables afterwards sums them out exactly.
    """
    if step_factorization(factorizations, question, w, order=order, parallel=parallel) is not None:
        return question
    everything = Question(question.given, ~question.given)
    if step_factorization(factorizations, everything, w, order=order, parallel=parallel) is not None:
        return everything
    raise untrained(factorizations, "sampling p(asked | given) in this order", else_pass="allow_untrained=True")


def untrained(factorizations: Collection[Factorization], what: str, *, else_pass: str = "") -> ValueError:
    """The error for a question that the network was not trained to answer: what it was trained for, what to do."""
    anyway = f", or pass {else_pass}" if else_pass else ""
    if not factorizations:
        expected = f"a trained model (fit sets model.factorizations{anyway})"
        return refuse(what, expected=expected, got="one whose factorizations are empty, that is, never trained")
    advice = (
        "train with recipes.mac.objective_inpainting to complete rows in the model's order, "
        f"with recipes.one_pass.objective or recipes.ardm.objective for any part{anyway}"
    )
    trained = ", ".join(factorization.value for factorization in PREFERENCE if factorization in factorizations)
    return refuse(what, expected=f"a model trained on these conditionals ({advice})", got=f"one trained for: {trained}")


def _is_whole(part: Tensor, w: Order) -> bool:
    """Whether each element of w is in ``part`` (B, N) as a whole or not at all."""
    each = part.unflatten(1, (-1, _element(w)))
    return not bool((each.any(2) & ~each.all(2)).any())


def _is_first(part: Tensor, w: Order) -> bool:
    """Whether nothing but the first of an element's variables is in ``part`` (B, N)."""
    return not bool(part.unflatten(1, (-1, _element(w)))[..., 1:].any())


def _element(w: Order) -> int:
    return w.element if isinstance(w, InElements) else 1


def _any_after(late: Tensor, early: Tensor, w: Order) -> Tensor:
    """bool (B,): some variable of ``late`` comes in w after some variable of ``early`` (both bool (B, N))."""
    if w.random:  # its next draw may put them either way
        return late.any(1) & early.any(1)
    priority = w.priority(*late.shape, generator=None).to(late.device)
    ends = torch.iinfo(torch.int64)
    last = torch.where(late, priority, ends.min).amax(1)
    first = torch.where(early, priority, ends.max).amin(1)
    return last > first
