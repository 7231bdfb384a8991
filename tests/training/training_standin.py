"""A small model, objective and data set for the training tests."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import Discrete, OnePassTransformer
from anyfill.networks.network import Unspecified
from anyfill.questions.order import Increasing
from anyfill.questions.question import Factorization, Order
from anyfill.rows import Rows
from anyfill.training import FitOptions

VARIABLES = 4
VALUES = 3
TOGETHER = FitOptions(
    steps=12,
    batch_size=8,
    accumulate=2,
    learning_rate=1e-2,
    report_every=1,
    validate_every=4,
    save_every=3,
    ema=0.9,
    device="cpu",
)
"""What the runs of one and of two processes share."""


@dataclass(eq=False, repr=False)
class TinyNetwork(nn.Module, Unspecified):
    """An MLP with repeated blocks, an embedding, a table of positions, and dropout."""

    variables: int = VARIABLES
    values: int = VALUES
    width: int = 16
    dropout: float = 0.1
    sizes: tuple[int, ...] = (1, 2)
    scale: Tensor | None = None

    def __post_init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(self.values + 1, self.width)
        self.place = nn.Parameter(torch.randn(self.variables, self.width) * 0.1)
        self.mix = nn.Linear(self.variables * self.width, self.width)
        self.blocks = nn.ModuleList(nn.Linear(self.width, self.width) for _ in range(2))
        self.drop = nn.Dropout(self.dropout)
        self.norm = nn.LayerNorm(self.width)
        self.head = nn.Linear(self.width, self.values)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        h = self.embedding(torch.where(known, x.long(), self.values)) + self.place
        h = h + self.mix(h.flatten(1)).unsqueeze(1)
        for block in self.blocks:
            h = h + self.drop(torch.relu(block(self.norm(h))))
        return self.head(h)


@dataclass(eq=False, repr=False)
class UnevenNetwork(TinyNetwork):
    """One with tensors that two processes cannot halve, and a layer that no loss uses."""

    width: int = 15
    dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.gain = nn.Parameter(torch.ones(1))
        self.unused = nn.Linear(5, 3)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        return super().forward(x, known, context) * self.gain


@dataclass(frozen=True)
class AskOne:
    """Ask one variable given a random subset of the others; optionally with noise of its own in the loss."""

    noise: float = 0.0
    follows: Order | None = None
    factorizations: frozenset[Factorization] = frozenset({Factorization.ANY_ORDER})

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        known = torch.rand(batch, VARIABLES, generator=generator, device=generator.device) < 0.5
        known[:, 0] = False
        return torch.where(known, -1, 0)

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        asked = rank >= 0
        terms = -model.marginals(rows.x, rank < 0, rows.context).log_prob(rows.x)
        loss = torch.where(asked & rows.present, terms, 0.0).sum(1)
        if self.noise:
            loss = loss * (1 + self.noise * torch.rand(len(loss), generator=generator, device=loss.device))
        return loss

    def __call__(self, model: Model, rows: Rows, *, generator: Generator) -> Tensor:
        return self.loss(model, rows, self.sample_rank(len(rows), generator=generator), generator=generator)


def tiny_model(seed: int = 0, **options: object) -> Model:
    """The same model for the same seed."""
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    model = Model(TinyNetwork(**options), Categorical(VALUES), order=Increasing())
    torch.set_rng_state(state)
    return model


def uneven_model() -> Model:
    """The model of an ``UnevenNetwork``, always the same."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Model(UnevenNetwork(), Categorical(VALUES), order=Increasing())


def one_pass_model(seed: int = 0) -> Model:
    """A small model of the package's own parts, the same for the same seed."""
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    network = OnePassTransformer(Discrete(VALUES), (VARIABLES,), VALUES, width=16, depth=2, heads=2)
    model = Model(network, Categorical(VALUES), order=Increasing())
    torch.set_rng_state(state)
    return model


def tiny_rows(count: int = 40, seed: int = 1) -> Rows:
    """Rows whose variables depend on each other: a noisy counter modulo VALUES."""
    generator = torch.Generator().manual_seed(seed)
    start = torch.randint(VALUES, (count, 1), generator=generator)
    noise = (torch.rand(count, VARIABLES, generator=generator) < 0.1).long()
    return Rows.from_values((start + torch.arange(VARIABLES) + noise) % VALUES)
