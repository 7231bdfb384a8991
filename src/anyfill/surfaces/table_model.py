"""A model for a table: which network input and which likelihood each kind of column gets.

Numbers become mixtures of Gaussians, categories become categoricals. The data layer knows neither: the two meet here.
"""

import torch

from anyfill.data.table import Table
from anyfill.likelihoods import Categorical, GaussianMixture, Mixed
from anyfill.model import Model
from anyfill.networks import embed
from anyfill.networks.mlp import ResidualMLP


def kind_of(table: Table) -> embed.Mixed:
    """What the values of each column are, for a network."""
    return embed.Mixed(table.sizes)


def likelihood_of(table: Table, *, components: int = 4, min_scale: float = 0.05) -> Mixed:
    """A mixture of Gaussians for each number, a categorical for each category.

    Args:
        table: the columns.
        components: Gaussians in each mixture.
        min_scale: the narrowest a Gaussian may be, in standard deviations of the column. Measured values are rounded,
            so they repeat; a floor well above the rounding keeps components from standing on single values.
    """
    number = GaussianMixture(components, min_scale=min_scale)
    return Mixed(tuple(Categorical(size) if size else number for size in table.sizes))


def table_model(
    table: Table, *, width: int = 64, depth: int = 2, dropout: float = 0.1, components: int = 4, seed: int = 0
) -> Model:
    """An untrained model of a small table: a residual MLP. ``seed`` is of its first weights."""
    likelihood = likelihood_of(table, components=components)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ResidualMLP(
            kind_of(table), len(table.columns), likelihood.width, width=width, depth=depth, dropout=dropout
        )
    return Model(network, likelihood)
