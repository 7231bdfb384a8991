"""Ising models from data: maximum likelihood and weighted, k- and adaptive pseudolikelihood (GMLM definitions 2, 3, 7).

    theta^ = argmin  1/(n m) sum_i sum_j  - log p_theta(x_K | x_-K)          x = x^(i),  K = K_j^(i)

The m masks of each row are drawn once and kept, as in the paper's definitions: with one mask per row this is the
estimator of theorem 1. The loss is convex and smooth (proposition 11), so every method ends in the same place:

    lbfgs      torch.optim.LBFGS with strong Wolfe steps (default)
    newton     Newton steps damped by the gradient's norm: the fewest steps, P^3 each
    gradient   gradient descent as in the paper; along each gradient the longest step, to a factor of 2, that does not
               overshoot (there the slope is still downhill, which for a convex loss means that the loss fell)

It may have no minimum: where data are separable (a spin that is never -1, a pair that never disagrees) some
parameters grow without end while loss and gradient approach their limits. A small gradient alone is therefore no proof
of having arrived; ``converged`` also demands that a further Newton step would move no parameter by more than 1e-4.
There ``converged`` is False and ``note`` says so; a ``ridge`` makes the minimum finite.

The loss itself, with its derivatives in closed form, is ``anyfill.ising.block_loss``.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypedDict, Unpack, get_args

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count, require_keywords, require_positive, require_shape
from anyfill.ising.block_loss import BlockLoss
from anyfill.ising.blocks import Blocks
from anyfill.ising.model import Ising
from anyfill.networks.exact import require_exact
from anyfill.questions.question import Questions
from anyfill.questions.subsets import KSubset
from anyfill.rows import Rows

Method = Literal["lbfgs", "newton", "gradient"]

STILL = 1e-4
"""A fit has converged only if a further Newton step moves no parameter by more than this."""
MAX_CHECKED = 1500
"""With more parameters than this the Newton step is not made, and a small gradient counts as converged."""


class IsingStep(NamedTuple):
    """Where a fit stands.

    Attributes:
        step: how many steps were made.
        theta: (P,), the parameters (as ``Ising.theta``).
        loss: nats per row.
        gradient_norm: the largest absolute entry of the gradient.
    """

    step: int
    theta: Tensor
    loss: float
    gradient_norm: float


@dataclass(frozen=True, slots=True)
class IsingFit:
    """A fitted Ising model.

    Attributes:
        ising: the model, a new one.
        loss: nats per row at the end, ridge included.
        steps: how many steps were made.
        gradient_norm: the largest absolute entry of the gradient at the end.
        converged: whether this is the minimum; if not, ``note`` says why in a sentence.
        note: empty if converged.
    """

    ising: Ising
    loss: float
    steps: int
    gradient_norm: float
    converged: bool
    note: str


class Drawn(TypedDict, total=False):
    """What a fit answers, and how the blocks of it are drawn.

    Attributes:
        blocks: which blocks are answered together; adaptive ones are scored by eq. (1).
        k: instead of blocks: all subsets of size k. Neither = maximum likelihood, for N up to 20.
        masks: m, blocks drawn for each row; 1 by default.
        ridge: weight of |theta|² / 2 beside the nats per row; 0 by default.
        generator: draws the blocks; needed unless there is nothing to draw.
    """

    blocks: Blocks | Questions | None
    k: int | None
    masks: int
    ridge: float
    generator: Generator | None


def fit_ising(
    ising: Ising,
    data: Rows | Tensor,
    *,
    method: Method = "lbfgs",
    tolerance: float = 1e-9,
    steps: int | None = None,
    start: Tensor | None = None,
    names: Sequence[str] | None = None,
    **drawn: Unpack[Drawn],
) -> IsingFit:
    """Fit the parameters of an Ising model.

    Args:
        ising: which edges, how pairs count, whether fields are free; fixed fields are taken from it, nothing else.
        data: codes (n, N), no value missing.
        method: how to descend.
        tolerance: the largest entry that the gradient may have at the end.
        steps: the most steps; by default 1000, for gradient descent 100,000.
        start: theta (P,) to begin with; zeros by default.
        names: of the P parameters, for the note; by default those of ``Ising.theta`` by the numbers of their variables.
        drawn: see ``Drawn``.
    """
    loss = ising_loss(ising, data, **drawn)
    *_, last = ising_steps(loss, method=method, tolerance=tolerance, steps=steps, start=start)
    return finish(loss, last, tolerance=tolerance, names=names)


def ising_loss(ising: Ising, data: Rows | Tensor, **drawn: Unpack[Drawn]) -> BlockLoss:
    """Draw the blocks, once, and return the loss that ``ising_steps`` descends; arguments as for ``fit_ising``."""
    require_keywords(drawn, Drawn)
    blocks, k, generator = drawn.get("blocks"), drawn.get("k"), drawn.get("generator")
    masks, ridge = drawn.get("masks", 1), drawn.get("ridge", 0.0)
    x = _codes(ising, data)
    if not len(ising.theta):
        raise refuse("ising", expected="a model with parameters to fit", got="no edges and fixed fields")
    require_count("masks", masks)
    if not 0.0 <= ridge < float("inf"):
        raise refuse("ridge", expected="a number from 0", got=ridge)
    if blocks is not None and k is not None:
        raise refuse("blocks and k", expected="at most one of them", got="both")
    if k is not None:
        require_count("k", k, maximum=ising.variables)
        blocks = None if k == ising.variables else KSubset(ising.variables, k)
    if blocks is None:
        require_exact(ising.variables, "maximum likelihood")
        return BlockLoss(ising, x, torch.ones_like(x, dtype=torch.bool), ridge=ridge)
    if generator is None:
        raise refuse("generator", expected="one, to draw the blocks", got="none")
    x = x.repeat_interleave(masks, 0)
    if isinstance(blocks, Blocks):
        if blocks.subsets.shape[1] != ising.variables:
            raise refuse("variables of the blocks", expected=str(ising.variables), got=blocks.subsets.shape[1])
        asked = blocks.sample(x, generator=generator)
        return BlockLoss(ising, x, asked, adaptive=blocks if blocks.adaptive else None, ridge=ridge)
    if blocks.variables != ising.variables:
        raise refuse("variables of the questions", expected=str(ising.variables), got=blocks.variables)
    question = blocks.sample(len(x), generator=generator)
    if bool(question.ignored.any()):
        raise refuse("questions", expected="everything given or asked", got="questions that ignore variables")
    return BlockLoss(ising, x, question.asked.to(x.device), ridge=ridge)


def ising_steps(
    loss: BlockLoss,
    *,
    method: Method = "lbfgs",
    tolerance: float = 1e-9,
    steps: int | None = None,
    start: Tensor | None = None,
) -> Iterator[IsingStep]:
    """The start and every step after it, until the gradient is small, steps are spent or nothing moves any more."""
    if method not in get_args(Method):
        raise refuse("method", expected='"lbfgs", "newton" or "gradient"', got=repr(method))
    require_positive("tolerance", tolerance)
    maximum = steps if steps is not None else 100_000 if method == "gradient" else 1000
    require_count("steps", maximum, minimum=0)
    theta = torch.zeros_like(loss.mean_statistics)
    if start is not None:
        require_shape("start", start, tuple(theta.shape))
        theta = start.detach().double().clone()
    ways = {"lbfgs": _lbfgs, "newton": _newton, "gradient": _gradient}
    return _until(ways[method](loss, theta), tolerance, maximum)


def finish(
    loss: BlockLoss, last: IsingStep, *, tolerance: float = 1e-9, names: Sequence[str] | None = None
) -> IsingFit:
    """The fit that ends with this step (of ``ising_steps``): a new model, and whether it is the minimum."""
    edges = len(loss.ising.edges)
    fitted = deepcopy(loss.ising)
    fields = last.theta[edges:] if fitted.free_fields else None
    fitted.with_parameters(last.theta[:edges], fields)
    note = _why_not(loss, last, tolerance, names)
    return IsingFit(fitted, last.loss, last.step, last.gradient_norm, not note, note)


def _why_not(loss: BlockLoss, last: IsingStep, tolerance: float, names: Sequence[str] | None) -> str:
    """Why this is not the minimum; empty if it is."""
    short = f"The descent ended after {last.step} steps with a gradient of {last.gradient_norm:.2g}: allow more steps."
    small = last.gradient_norm <= 100 * tolerance  # rounding may end the descent a little earlier
    if len(last.theta) > MAX_CHECKED:
        return "" if small else short
    move, is_flat = _newton_move(loss, last.theta, loss.value_and_gradient(last.theta)[1])
    if not small or float(move.abs().max()) > STILL:
        *_, end = _until(_newton(loss, last.theta), tolerance, 100)
        ahead, _ = _newton_move(loss, end.theta, loss.value_and_gradient(end.theta)[1])
        if float(ahead.abs().max()) <= STILL:
            return short
        far, edges = int(ahead.abs().argmax()), loss.ising.edges
        own = [
            *(f"the coupling of {edge}" for edge in edges),
            *(f"field {i}" for i in range(len(last.theta) - len(edges))),
        ]
        named = own if names is None else names
        return (
            "The data are separable, so that no finite parameters are best "
            f"({named[far]} would grow without end): use more data or a ridge."
        )
    return "Some parameters do not change the loss on these data and blocks: they stay where they began." * is_flat


def _until(path: "Iterator[tuple[Tensor, float, Tensor]]", tolerance: float, maximum: int) -> Iterator[IsingStep]:
    """Steps along a path of (theta, loss, gradient)."""
    for step, (theta, value, gradient) in enumerate(path):
        norm = float(gradient.abs().max()) if len(gradient) else 0.0
        yield IsingStep(step, theta, value, norm)
        if norm <= tolerance or step >= maximum:
            return


def _lbfgs(loss: BlockLoss, theta: Tensor) -> Iterator[tuple[Tensor, float, Tensor]]:
    held = theta.clone().requires_grad_()
    optimizer = torch.optim.LBFGS(  # one step at a time: _until decides when it is enough
        [held], max_iter=1, max_eval=30, tolerance_grad=0.0, tolerance_change=0.0, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        value, held.grad = loss.value_and_gradient(held.detach())
        return torch.tensor(value, dtype=torch.float64)

    while True:
        before = held.detach().clone()
        yield before, *loss.value_and_gradient(before)
        optimizer.step(closure)  # pyright: ignore[reportUnknownMemberType, reportArgumentType]
        if torch.equal(before, held.detach()):
            return


def _newton(loss: BlockLoss, theta: Tensor) -> Iterator[tuple[Tensor, float, Tensor]]:
    value, gradient = loss.value_and_gradient(theta)
    while True:
        yield theta, value, gradient
        move, _ = _newton_move(loss, theta, gradient, damping=float(gradient.norm()))
        for halvings in range(60):
            tried = theta + 0.5**halvings * move
            tried_value, tried_gradient = loss.value_and_gradient(tried)
            if tried_value <= value + 1e-14 * abs(value):
                break
        else:
            return
        theta, value, gradient = tried, tried_value, tried_gradient


def _newton_move(loss: BlockLoss, theta: Tensor, gradient: Tensor, *, damping: float = 0.0) -> tuple[Tensor, bool]:
    """The step -(H + damping I)^-1 g (P,), and whether there are directions that change nothing (it is 0 in those).

    Damped by the norm of the gradient, steps are at most 1 long where the loss is flat and still converge fast.
    """
    values, vectors = torch.linalg.eigh(loss.hessian(theta))
    slope = vectors.T @ gradient
    flat = (values <= 1e-14 * values[-1]) & (slope.abs() <= 1e-14)
    slope, values = torch.where(flat, 0.0, slope), values.clamp(min=1e-300) + damping
    return -vectors @ (slope / values), bool(flat.any())


def _gradient(loss: BlockLoss, theta: Tensor) -> Iterator[tuple[Tensor, float, Tensor]]:
    value, gradient = loss.value_and_gradient(theta)
    rate = 1.0
    while True:
        yield theta, value, gradient
        for _ in range(60):
            tried = theta - rate * gradient
            tried_value, tried_gradient = loss.value_and_gradient(tried)
            if float(tried_gradient @ gradient) >= 0.0:  # not overshot: this needs no digits of the loss
                break
            rate *= 0.5
        else:
            return
        theta, value, gradient, rate = tried, tried_value, tried_gradient, 2.0 * rate


def _codes(ising: Ising, data: Rows | Tensor) -> Tensor:
    """int64 (n, N), all 0 or 1; ValueError otherwise."""
    rows = data if isinstance(data, Rows) else Rows.from_values(data)
    require_shape("data", rows.x, (None, ising.variables))
    if not len(rows):
        raise refuse("data", expected="at least one row", got="none")
    if not bool(rows.present.all()):
        row, variable = (int(place) for place in (~rows.present).nonzero()[0])
        expected = "no missing value (training.fit with Pseudolikelihood sums them out)"
        raise refuse("data", expected=expected, got=f"one at row {row}, variable {variable}")
    other = (rows.x != 0) & (rows.x != 1)
    if bool(other.any()):
        row, variable = (int(place) for place in other.nonzero()[0])
        got = f"{rows.x[row, variable].item()} at row {row}, variable {variable}"
        raise refuse("data", expected="codes 0 and 1 (0 stands for spin -1)", got=got)
    return rows.x.long()
