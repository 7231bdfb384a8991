"""p(x_j | known) of single cells, read off a model without reading everything else, where it may be read at all."""

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.likelihoods.marginals import Marginals
from anyfill.model import Model
from anyfill.networks.network import cells_of
from anyfill.questions.order import Increasing
from anyfill.questions.question import Question, chain_rank
from anyfill.questions.supported import step_factorization, untrained


def all_parameters(model: Model, x: Tensor, known: Tensor, context: Tensor | None) -> Tensor:
    """(R, N, P): what ``model.marginals`` reads: most of it is of no interest here, and reading it is dear."""
    x = torch.where(known, x, torch.zeros_like(x))
    if not model.is_one_pass:
        return model.network(*model.corruption.show(x, known), context)
    order = Increasing() if model.order.random else model.order
    block = chain_rank(order, Question(known, torch.zeros_like(known)))
    return model.one_pass.chain(x, torch.where(known, block, 0), context)


def target_parameters(
    model: Model, x: Tensor, known: Tensor, variable: Tensor, context: Tensor | None = None
) -> Tensor:
    """(R, 1, P): what the likelihood reads as p(x_j | known) of one variable ``variable`` (R, 1) in each row."""
    if model.is_one_pass:
        params = all_parameters(model, x, known, context)
        return params.gather(1, variable[:, :, None].expand(-1, 1, params.shape[2]))
    x = torch.where(known, x, torch.zeros_like(x))
    every = torch.arange(len(x), device=x.device)
    return cells_of(model.network, *model.corruption.show(x, known), every, variable[:, 0], context).unsqueeze(1)


def each_given(model: Model, x: Tensor, known: Tensor, asked: Tensor, context: Tensor | None = None) -> Marginals:
    """p(x_j | known) for each asked j by itself, in one pass; meaningless elsewhere. All but ``context`` is (B, N)."""
    require_each(model, known, asked)
    return model.marginals(torch.where(known, x, torch.zeros_like(x)), known, context)


def require_each(model: Model, known: Tensor, asked: Tensor) -> None:
    """ValueError unless the model is trained to answer each asked variable by itself, without chance."""
    order = Increasing() if model.order.random else model.order
    if (
        step_factorization(model.factorizations, Question(known, asked), model.order, order=order, parallel=True)
        is None
    ):
        raise untrained(model.factorizations, "p(x_j | given) for each target variable by itself")
    if model.corruption.shows_unknown:
        raise refuse("corruption", expected="one that shows no noise", got=repr(model.corruption))
