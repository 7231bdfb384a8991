"""Yardsticks in float64: enumerated states, a joint given by all of them, and conditionals that belong to no joint.

Spins as the library's codes: 0 stands for -1, 1 for +1, and states are numbered with the last variable fastest.

spin s_i = 2 x_i - 1,     state number = sum_i x_i 2^(N-1-i)

EnumeratedJoint. With p(x) stored for all K^N rows x, any conditional is a ratio of two sums,

    p(x_j = v | x_known) = sum_{x' : x'_known = x_known, x'_j = v} p(x') / sum_{x' : x'_known = x_known} p(x')

so it is what a perfectly trained network would be: its conditionals are those of one joint, every order gives the same
log-probability, and every sampler must reproduce p. Evidence of probability zero has no conditional: there the answer
is uniform, so that no NaN ever leaves this file.

RandomConditionals. Every (variable, known values in the order they were read) has its own arbitrary distribution. It is
what an untrained network is: every order gives another law. What is claimed of any network must hold for it as well.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor, nn

from anyfill.checks import refuse, require_count, require_positive, require_shape
from anyfill.networks.network import Unspecified
from anyfill.rank import NEVER

MAX_EXACT = 20
"""The most spins whose 2^N states are enumerated: 2^20 float64 are 8 MiB."""


def require_exact(variables: int, what: str) -> None:
    """Refuse exact work on more states than are enumerated; say what it would take and what to do instead."""
    if variables > MAX_EXACT:
        size = f"{2.0 ** (variables - 27):,.3g} GiB" if variables < 1000 else "no machine"
        raise refuse(
            f"variables for {what}",
            expected=f"at most {MAX_EXACT} (all 2^N states are enumerated)",
            got=f"{variables}, which would need {size} for one number per state; "
            "sample with anyfill.ising.chains and fit with k-pseudolikelihood, which need no enumeration",
        )


def all_codes(variables: int) -> Tensor:
    """int64 (2^N, N): every state, the last variable running fastest."""
    require_count("variables", variables, minimum=0)
    require_exact(variables, "listing all states")
    shift = torch.arange(variables - 1, -1, -1)
    return (torch.arange(2**variables).unsqueeze(1) >> shift) & 1


def state_numbers(codes: Tensor) -> Tensor:
    """int64 (...): the number of each state, from codes (..., N)."""
    count = codes.shape[-1]
    return (codes.long() << torch.arange(count - 1, -1, -1, device=codes.device)).sum(-1)


def to_spins(codes: Tensor) -> Tensor:
    """float64, same shape: -1 and +1 from codes 0 and 1."""
    return 2.0 * codes.double() - 1.0


def to_codes(spins: Tensor) -> Tensor:
    """int64, same shape: codes 0 and 1 from -1 and +1; ValueError for anything else."""
    if not bool((spins.abs() == 1).all()):
        raise refuse("spins", expected="-1 and +1", got=f"{spins[spins.abs() != 1].flatten()[0].item()}")
    return (spins > 0).long()


MAX_ROWS = 2**20
"""The largest K^N that is enumerated: 8 MiB of probabilities."""


@dataclass(eq=False, repr=False)
class EnumeratedJoint(nn.Module, Unspecified):
    """(B, N, K) exact conditional log-probabilities; satisfies ``Network`` and ``OnePass``.

    It is built uniform; ``from_probabilities`` and ``random`` set the joint, which travels in the state dict as
    ``log_joint`` (K^N,), the last variable running fastest.

    Attributes:
        variables: N, the number of variables.
        values: K, the number of values 0 … K-1 each variable takes.
    """

    variables: int
    values: int
    context_width = 0

    def __post_init__(self) -> None:
        require_positive("variables", self.variables)
        require_positive("values", self.values)
        if self.values**self.variables > MAX_ROWS:
            raise refuse("values ** variables", expected=f"at most {MAX_ROWS} rows", got=self.values**self.variables)
        super().__init__()
        rows = self.values**self.variables
        self.register_buffer("log_joint", torch.full((rows,), 1.0 / rows, dtype=torch.float64).log())
        self.register_buffer("digits", _digits(self.variables, self.values), persistent=False)

    @classmethod
    def from_probabilities(cls, probabilities: Tensor) -> "EnumeratedJoint":
        """The joint with the given probabilities, (K,) * N, not negative and summing to 1."""
        if probabilities.dim() == 0 or len(set(probabilities.shape)) != 1:
            raise refuse("shape of probabilities", expected="(K,) * N", got=tuple(probabilities.shape))
        probabilities = probabilities.to(torch.float64)
        if bool((probabilities < 0).any()) or not abs(float(probabilities.sum()) - 1.0) < 1e-6:
            raise refuse("probabilities", expected="none negative, with sum 1", got=f"sum {float(probabilities.sum())}")
        joint = cls(probabilities.dim(), probabilities.shape[0])
        joint.get_buffer("log_joint").copy_((probabilities / probabilities.sum()).log().flatten())
        return joint

    @classmethod
    def random(
        cls, variables: int, values: int, *, generator: Generator, concentration: float = 1.0
    ) -> "EnumeratedJoint":
        """A joint drawn from the symmetric Dirichlet over all K^N rows; a small concentration makes it peaked."""
        require_positive("concentration", concentration)
        joint = cls(variables, values)
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        rows = values**variables
        drawn: list[float] = np.random.default_rng(seed).dirichlet([concentration] * rows).tolist()
        joint.get_buffer("log_joint").copy_(torch.tensor(drawn, dtype=torch.float64).log())
        return joint

    @property
    def probabilities(self) -> Tensor:
        """The joint, (K,) * N float64."""
        return self.get_buffer("log_joint").exp().reshape((self.values,) * self.variables)

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, K): log p(x_j = v | known) for every j; a known variable has probability 1 at its own value.

        Impossible evidence gives uniform answers.
        """
        mass = self._mass(x, known)
        of_value = nn.functional.one_hot(self.get_buffer("digits"), self.values).to(mass.dtype)
        answers = (mass @ of_value.flatten(1)).reshape(-1, self.variables, self.values)
        total = mass.sum(1)[:, None, None]
        return torch.where(total > 0, answers / total, 1.0 / self.values).log()

    def chain(self, x: Tensor, rank: Tensor, context: Tensor | None = None, *, strict: bool = False) -> Tensor:
        """(B, N, K): each variable given all that rank strictly before it (the given ones in order of (rank, index)).

        Ignored variables (rank NEVER) are told to nobody; their own answers are given everything that is not ignored.
        """
        require_shape("rank", rank, tuple(x.shape))
        index = torch.arange(self.variables, device=rank.device)
        answers: list[Tensor] = []
        for j in range(self.variables):
            own = rank[:, j : j + 1]
            before = (rank < own) | ((rank == own) & (own < 0) & (index < j))
            answers.append(self.forward(x, before & (rank < NEVER))[:, j])
        return torch.stack(answers, 1)

    def log_prob(self, x: Tensor, asked: Tensor) -> Tensor:
        """(B,) float64: the exact log p(x_asked), every other variable summed out."""
        return self._mass(x, asked).sum(1).log()

    def sample(self, n: int, *, generator: Generator) -> Tensor:
        """(n, N) int64: rows drawn from the joint itself."""
        rows = torch.multinomial(self.get_buffer("log_joint").exp(), n, replacement=True, generator=generator)
        return self.get_buffer("digits")[rows]

    def _mass(self, x: Tensor, known: Tensor) -> Tensor:
        """(B, K^N): the probability of every row that agrees with the known values, 0 for the others."""
        require_shape("x", x, (None, self.variables))
        require_shape("known", known, tuple(x.shape))
        digits = self.get_buffer("digits")
        codes = torch.where(known, x, torch.zeros_like(x)).long()
        agrees = torch.ones(len(x), len(digits), dtype=torch.bool, device=digits.device)
        for j in range(self.variables):  # one variable at a time: (B, K^N) instead of (B, K^N, N) in memory
            agrees &= (codes[:, j : j + 1] == digits[:, j]) | ~known[:, j : j + 1]
        return torch.where(agrees, self.get_buffer("log_joint").exp(), 0.0)


@dataclass(eq=False, repr=False)
class RandomConditionals(nn.Module, Unspecified):
    """(B, N, K) logits that depend on the known values and on their order; satisfies ``Network`` and ``OnePass``.

    Attributes:
        variables: N, the number of variables.
        values: K, the number of values 0 … K-1 each variable takes.
        seed: which random conditionals.
        scale: logits are uniform in [-scale, scale].
    """

    variables: int
    values: int
    seed: int = 0
    scale: float = 1.5
    context_width = 0

    def __post_init__(self) -> None:
        require_positive("variables", self.variables)
        require_positive("values", self.values)
        super().__init__()

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, K): each variable given the known ones, read by position."""
        rank = torch.where(known, -1, 0)
        return self.chain(x, rank)

    def chain(self, x: Tensor, rank: Tensor, context: Tensor | None = None, *, strict: bool = False) -> Tensor:
        """(B, N, K): each variable given all that rank strictly before it, read in order of (rank, index)."""
        order = rank.argsort(dim=1, stable=True)
        token = 1 + order * self.values + torch.where(rank < NEVER, x, torch.zeros_like(x)).long().gather(1, order)
        place = order.argsort(1)
        step = torch.arange(self.variables, device=x.device)
        before = torch.where(rank < 0, place, (rank.unsqueeze(1) < rank.unsqueeze(2)).sum(2))  # (B, N) tokens read
        read = torch.where(step < before.unsqueeze(2), token.unsqueeze(1), 0)  # (B, N, N)
        # A sum of incommensurable multiples of the tokens, then the classic sine hash: arbitrary but repeatable.
        weight = (step + 2.0).to(torch.float64).sqrt() * (step + 1)
        code = (read * weight).sum(2).unsqueeze(2) + 7.13 * step[:, None] + self.seed * 0.7371
        noise = (code + 3.77 * torch.arange(self.values, device=x.device)).sin() * 43758.5453
        return self.scale * (2.0 * (noise - noise.floor()) - 1.0)


def _digits(variables: int, values: int) -> Tensor:
    """int64 (K^N, N): every row of values, the last variable running fastest."""
    rows = torch.arange(values**variables)
    return torch.stack([rows // values ** (variables - 1 - j) % values for j in range(variables)], 1)
