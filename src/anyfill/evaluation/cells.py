"""p(x_j | known) of single cells, read off a model without reading everything else, where it may be read at all."""

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.likelihoods.marginals import Marginals
from anyfill.model import Model
from anyfill.questions.question import Question
from anyfill.questions.supported import step_factorization, untrained


def all_parameters(model: Model, x: Tensor, known: Tensor, context: Tensor | None) -> Tensor:
    """(R, N, P): what ``model.marginals`` reads: most of it is of no interest here, and reading it is dear."""
    return model.params(x, known, context=context)


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
