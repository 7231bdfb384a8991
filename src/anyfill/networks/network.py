"""What a network is: (values, known) in, parameters of every variable out."""

from collections.abc import Iterable
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn

from anyfill.networks.embed import Kind, Real


@runtime_checkable
class Capabilities(Protocol):
    """What a network may say of itself; networks subclass this and state what differs.

    The first three are fields of some networks and computed by others, which is why they are typed so loosely.
    """

    outputs: Any
    """int: P, how many parameters it gives for each variable; None = as many as the likelihood needs."""
    kind: Any
    """Kind: how it reads values; its codes are compared with the likelihood's."""
    context_width: Any = None
    """int: the length of the context vectors it takes, 0 = it takes none; None = not said, so nothing is checked."""

    @property
    def exact(self) -> bool:
        """False if its conditionals are estimates of those of its joint."""
        return True

    @property
    def takes_beginnings(self) -> bool:
        """True if rows may be cut: of N variables the first L alone, which are answered as if there were no more."""
        return False

    @property
    def roles_matter(self) -> bool:
        """True if it reads a value that is given (rank < 0) otherwise than one that was answered."""
        return self.reads_both_ways or self.reads_blanks

    @property
    def reads_both_ways(self) -> bool:
        """True if a given value sees the given ones behind it, too (one-pass networks)."""
        return False

    @property
    def reads_blanks(self) -> bool:
        """True if ignored variables are read as blanks where nothing is given (one-pass networks)."""
        return False

    def compile_parts(self) -> bool:
        """Compile the parts that repeat; False = it has none, compile the whole."""
        return False

    def room(self, rank: Tensor) -> int | None:
        """How long a strict chain of these ranks (B, N) is, where that depends on them; None = it does not.

        A network that has such a length holds it in ``reserved`` if it was looked up before, and then looks up nothing.
        """
        return None

    def for_means(self) -> Any:
        """The network to be asked where only means are wanted; itself, unless another errs less."""
        return self

    def centers_at(self, x: Tensor, known: Tensor, row: Tensor, variable: Tensor) -> Tensor | None:
        """(H,): the means of the variables ``variable`` (H,) of the rows ``row`` (H,) alone; None = all or nothing."""
        return None


class Unspecified(Capabilities):
    """What a network subclasses that leaves open how many parameters it gives and how it reads values."""

    outputs = None
    kind = Real()


@runtime_checkable
class Network(Capabilities, Protocol):
    """Parameters of every variable given the known ones."""

    @property
    def variables(self) -> int: ...

    def __call__(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, P) from values (B, N) as the corruption shows them and known (B, N)."""
        ...


@runtime_checkable
class ReadsContext(Protocol):
    """A network that reads its context once for many passes: it takes what was read in place of the context."""

    def read_context(self, context: Tensor | None) -> Any:
        """What every pass needs of the context; ``what[rows]`` is that of some rows (R,)."""
        ...


@runtime_checkable
class OnePass(Protocol):
    """What a network has besides if it answers a whole chain of conditionals in one pass.

    This and what follows are methods alone: asking whether a network has them is then quick, and samplers often ask.
    """

    def chain(self, x: Tensor, rank: Tensor, context: Tensor | None = None, *, strict: bool = False) -> Tensor:
        """(B, N, P): parameters of each variable given all that rank strictly before it, in ONE pass.

        Given variables (rank < 0) are ordered among themselves by (rank, index) and get parameters too.
        Parameters at ignored variables (rank NEVER) are unspecified, unless a network says more. ``strict=True`` is a
        promise that no two asked variables tie; training makes it to spare the check and to keep shapes static.
        """
        ...


@runtime_checkable
class ChainsCells(OnePass, Protocol):
    """A one-pass network that can be asked for some terms of a chain alone: the rest costs no parameters."""

    def chain_at(self, x: Tensor, rank: Tensor, row: Tensor, variable: Tensor, context: Tensor | None = None) -> Tensor:
        """(H, P): what ``chain`` gives for the variables ``variable`` (H,) of the rows ``row`` (H,)."""
        ...


@runtime_checkable
class Cached(OnePass, Protocol):
    """A one-pass network that can answer a chain step by step without recomputing what it has read."""

    def open(self, x: Tensor, rank: Tensor, context: Tensor | None = None) -> tuple[Tensor, Any]:
        """Read the given block: parameters (B, P) of each row's first asked variable, and a cache."""
        ...

    def extend(self, value: Tensor, cache: Any) -> tuple[Tensor, Any]:
        """Take in the answers (B,) to each row's current variable: parameters (B, P) of its next one."""
        ...


@runtime_checkable
class Branching(Cached, Protocol):
    """A cached network that can go on from the same place in several ways."""

    def select(self, cache: Any, rows: Tensor, *, room: int | None = None) -> Any:
        """The cache of some rows (R,) alone, apart from the old one; with ``room``, for so many tokens from now on."""
        ...


@runtime_checkable
class Foresees(Branching, Protocol):
    """A cached network that answers about any variable from what it has read of the given block."""

    def foresee(self, cache: Any, variable: Tensor) -> Tensor:
        """(B, K, P): parameters of the variables (B, K), each given the given block and no more.

        The cache is one that ``open`` made, which is left as it is. Given variables may be anything in the answer.
        """
        ...


@runtime_checkable
class Windowed(Branching, Protocol):
    """A cached network that reads several answers at once, foresees several, and takes answers back."""

    def advance(self, values: Tensor, cache: Any) -> tuple[Tensor, Any]:
        """Take in each row's next W answers (B, W): parameters (B, W, P) of the variable behind each of them.

        What runs past a row's last asked variable may be anything in range; parameters there mean nothing.
        """
        ...

    def peek(self, value: Tensor, cache: Any, count: int) -> tuple[Tensor, Any]:
        """Take in each row's answer (B,): parameters (B, count, P) of its next variables, each given that and no more.

        The first of them are those that ``extend`` gives.
        """
        ...

    def rewind(self, cache: Any, steps: Tensor) -> Any:
        """Take back each row's last answers, as many as ``steps`` (B,) says."""
        ...


@runtime_checkable
class AnswersCells(Protocol):
    """A network that can be asked for some cells alone, which is cheaper than for all."""

    def at(self, x: Tensor, known: Tensor, row: Tensor, variable: Tensor) -> Tensor:
        """(H, P): the parameters of the variables ``variable`` (H,) of the rows ``row`` (H,), given what is known.

        Values x (B, N) are read where known (B, N) only, whatever stands elsewhere.
        """
        ...


class Around(nn.Module, Capabilities):
    """A network around another, ``network``: of the same variables, which it reads alike."""

    network: nn.Module

    @property
    def kind(self) -> Kind:
        """What a value is."""
        return cast(Network, self.network).kind

    @property
    def variables(self) -> int:
        """N."""
        return cast(Network, self.network).variables

    @property
    def outputs(self) -> Any:
        """P."""
        return self.network.outputs


def compile_each(parts: Iterable[nn.Module]) -> bool:
    """Compile these parts of a network, once for each of their sizes (by default torch gives up at the eighth)."""
    config: Any = torch._dynamo.config  # pyright: ignore[reportPrivateUsage]
    config.recompile_limit = max(config.recompile_limit, 256)
    config.accumulated_recompile_limit = max(config.accumulated_recompile_limit, 1024)
    for part in parts:
        part.compile(dynamic=False)
    return True
