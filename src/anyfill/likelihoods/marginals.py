"""What a likelihood is: network parameters (B, N, P) in, one distribution per variable out."""

from typing import Protocol, runtime_checkable

from torch import Generator, Tensor


@runtime_checkable
class Marginals(Protocol):
    """One distribution for each of (B, N) variables, never summed over them."""

    def log_prob(self, x: Tensor) -> Tensor:
        """log p(x) per variable, (B, N)."""
        ...

    def sample(self, *, generator: Generator, temperature: float = 1.0) -> Tensor:
        """One draw per variable, (B, N). Temperature 0 is the mode."""
        ...

    def mode(self) -> Tensor:
        """The most probable value, (B, N)."""
        ...

    def mean(self) -> Tensor:
        """The expected value, (B, N), float (of the code, for discrete variables)."""
        ...

    def quantile(self, q: float) -> Tensor:
        """The smallest value v with P(X <= v) >= q, (B, N)."""
        ...

    def entropy(self) -> Tensor:
        """Entropy in nats (differential for continuous variables), (B, N)."""
        ...


@runtime_checkable
class DiscreteMarginals(Marginals, Protocol):
    """Marginals over finitely many values, whose probabilities a sampler may reshape (top-k, nucleus, typical)."""

    @property
    def log_probs(self) -> Tensor:
        """(B, N, K) normalised log-probabilities of the values 0 … K-1."""
        ...


@runtime_checkable
class Likelihood(Protocol):
    """Reads network outputs as distributions."""

    @property
    def width(self) -> int:
        """P, the number of parameters a network must give for each variable."""
        ...

    def __call__(self, params: Tensor) -> Marginals: ...
