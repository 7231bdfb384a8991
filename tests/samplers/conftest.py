"""Laws written out in full, and a chi-square that says whether draws follow them."""

import itertools

import pytest
import torch
from scipy.stats import chisquare
from torch import nn

from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.network import Unspecified
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.questions import Factorization, Question, chain_rank
from anyfill.rank import asked_in
from anyfill.samplers import Draw, reshape_log_probs


class Masked(nn.Module, Unspecified):
    """A network with its chain hidden: the sampler must go through p(x_j | known)."""

    def __init__(self, network):
        super().__init__()
        self.inner = network
        self.variables = network.variables

    def forward(self, x, known, context=None):
        return self.inner(x, known, context)


def all_rows(variables, values):
    """int64 (K^N, N): every row, the last variable running fastest."""
    return torch.tensor(list(itertools.product(range(values), repeat=variables)))


def chain_law(model, question_row, x_row, order, draw=None):
    """(K^N,): the probability of every completed row when the asked variables are drawn one by one.

    Rows that disagree with the given values have probability 0; ignored variables are held at 0.
    """
    draw = Draw() if draw is None else draw
    rows = all_rows(model.variables, model.likelihood.size)
    given, asked = (part.expand(len(rows), -1) for part in question_row)
    agrees = torch.where(given, rows == x_row, asked | (rows == 0)).all(1)
    rank = chain_rank(order, Question(given, asked))
    log_p = torch.zeros(len(rows), dtype=torch.float64)
    for j in range(model.variables):
        known = rank < rank[:, j : j + 1]
        if model.is_one_pass:
            answers = model.chain(
                torch.where(known, rows, 0), torch.where(known | (rank == rank[:, j : j + 1]), rank, 2**31 - 1)
            )
        else:
            answers = model.marginals(rows, known)
        term = reshape_log_probs(answers.log_probs, draw)[:, j].gather(1, rows[:, j : j + 1]).squeeze(1)
        log_p += torch.where(asked_in(rank)[:, j], term, 0.0)
    return torch.where(agrees, log_p.exp(), 0.0)


def p_value(drawn, law):
    """The chi-square p-value of rows (n, N) against a law over all K^N rows; 0 if an impossible row was drawn."""
    variables = drawn.shape[1]
    values = round(len(law) ** (1 / variables))
    power = values ** torch.arange(variables - 1, -1, -1)
    counts = torch.bincount((drawn.long() * power).sum(1), minlength=len(law)).double()
    expected = law.double() * len(drawn)
    if bool(counts[law == 0].any()):
        return 0.0
    big = expected >= 5  # the usual rule; the small cells are counted together
    if bool((~big & (law > 0)).any()) and expected[~big].sum() >= 1:
        counts = torch.cat([counts[big], counts[~big].sum().reshape(1)])
        expected = torch.cat([expected[big], expected[~big].sum().reshape(1)])
    else:
        counts, expected = counts[big], expected[big]
    if len(counts) == 1:
        return 1.0
    return float(chisquare(counts, expected * counts.sum() / expected.sum()).pvalue)


def question_of_row(rows, given, asked, variables):
    """``rows`` copies of one question, from lists of indices."""
    masks = torch.zeros(2, variables, dtype=torch.bool)
    masks[0, given], masks[1, asked] = True, True
    return Question(masks[0].repeat(rows, 1), masks[1].repeat(rows, 1))


def random_transformer(variables, values, seed=0):
    """A one-pass transformer whose random weights make every conditional different."""
    torch.manual_seed(seed)
    network = OnePassTransformer(_discrete(values), (variables,), values, width=16, depth=2, heads=2)
    nn.init.normal_(network.head.weight, std=0.6)
    return network


def _discrete(values):
    from anyfill.networks.embed import Discrete

    return Discrete(values)


class Kit:
    """What the sampler tests share."""

    masked = staticmethod(Masked)
    all_rows = staticmethod(all_rows)
    chain_law = staticmethod(chain_law)
    p_value = staticmethod(p_value)
    question = staticmethod(question_of_row)
    transformer = staticmethod(random_transformer)

    @staticmethod
    def model(network, values, **options):
        """A model that is licensed for everything."""
        return Model(network, Categorical(values), **{"factorizations": list(Factorization), **options})


@pytest.fixture(scope="session")
def kit():
    return Kit
