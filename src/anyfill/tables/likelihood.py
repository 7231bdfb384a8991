"""A model for a table: which network input and which likelihood each kind of column gets.

Numbers and dates become mixtures of Gaussians with spikes at the values that repeat, rounded where the column is a
grid; categories become categoricals. The data layer knows neither networks nor likelihoods: the two meet here.
"""

import torch

from anyfill.likelihoods import Categorical, Mixed, SpikedMixture
from anyfill.likelihoods.marginals import Likelihood
from anyfill.model import Model
from anyfill.networks import embed
from anyfill.networks.mlp import ResidualMLP
from anyfill.tables.table import Table


def kind_of(table: Table) -> embed.Mixed:
    """What the values of each column are, for a network."""
    return embed.Mixed(table.sizes)


def likelihood_of(table: Table, *, components: int = 3, min_scale: float = 0.02) -> Mixed:
    """A spiked mixture of Gaussians for each number, a categorical for each category.

    Args:
        table: the columns.
        components: Gaussians in each mixture.
        min_scale: the narrowest a Gaussian may be, in standard deviations of the column. Measured values are rounded,
            so they repeat; a floor well above the rounding keeps components from standing on single values.
    """
    return Mixed(tuple(_column(table, j, components, min_scale) for j in range(len(table.columns))))


def _column(table: Table, j: int, components: int, min_scale: float) -> Likelihood:
    number = table.number(j)
    if number is None:
        return Categorical(table.sizes[j])
    return SpikedMixture(
        components,
        spikes=tuple(number.encode(torch.tensor(number.anchors, dtype=torch.float64).numpy()).tolist()),
        spike_scale=number.spike_scale,
        step=number.step / number.scale,
        min_scale=min_scale,
    )


def table_model(
    table: Table, *, width: int = 64, depth: int = 2, dropout: float = 0.1, components: int = 4, seed: int = 0
) -> Model:
    """An untrained model of a small table: a residual MLP. ``seed`` is of its first weights."""
    likelihood = likelihood_of(table, components=components, min_scale=0.05)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ResidualMLP(
            kind_of(table), len(table.columns), likelihood.width, width=width, depth=depth, dropout=dropout
        )
    return Model(network, likelihood)
