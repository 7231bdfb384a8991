"""The model: network + corruption + likelihood -> p(x_j | known), the one ``nn.Module`` everything else takes.

    params(x, known)      what the likelihood reads as p(x_j | known), of every j or of some cells: one pass
    marginals(x, known)   p(x_j | known) for every j, one pass
    chain(x, rank)        p(x_j | all that rank before j) for every j, one pass (one-pass networks only)
    chain_at(x, rank, …)  the same for some cells alone

A model also carries the decomposition protocol w it was trained under (``order``) and the
factorizations of log p(asked | given) it was trained for; evaluation uses no other silently.
"""

import copy
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from anyfill.checks import refuse, refuse_cells, require_shape
from anyfill.corruption import Absorbing, Corruption
from anyfill.likelihoods.marginals import Likelihood, Marginals
from anyfill.likelihoods.mixed import code_sizes, marginals_at
from anyfill.networks.embed import Discrete, Mixed
from anyfill.networks.network import AnswersCells, Cached, Capabilities, ChainsCells, Network, OnePass, ReadsContext
from anyfill.questions.order import Increasing
from anyfill.questions.question import Factorization, Order, Question, chain_rank

if TYPE_CHECKING:
    from anyfill.conditional import Conditional

_EVALUATING: set[int] = set()
"""Models (their ids) that are being asked inside ``Model.evaluating``."""


class Model(nn.Module):
    """p(x_j | known) for every variable j and every set of known variables.

    Args:
        network: parameters of every variable given the known ones.
        likelihood: how those parameters are read as distributions.
        corruption: what stands in unknown places and what of it the network is shown.
        order: the protocol w in which asked variables are answered.
        factorizations: what the network was trained for (``fit`` fills this in from the objective).
    """

    def __init__(
        self,
        network: Network,
        likelihood: Likelihood,
        *,
        corruption: Corruption | None = None,
        order: Order | None = None,
        factorizations: Iterable[Factorization] = (),
    ) -> None:
        super().__init__()
        if network.outputs not in (None, likelihood.width):
            expected = f"{likelihood.width}, as {likelihood} needs"
            raise refuse("outputs of the network", expected=expected, got=network.outputs)
        _check_kind(network, likelihood)
        self.network = cast(nn.Module, network)
        self.likelihood = likelihood
        self.corruption: Corruption = Absorbing() if corruption is None else corruption
        self.order: Order = Increasing() if order is None else order
        self.factorizations = frozenset(Factorization(factorization) for factorization in factorizations)
        if network.reads_blanks and self.order != Increasing():
            raise refuse("order", expected=f"{Increasing()}, as blanks are read by index", got=repr(self.order))

    def extra_repr(self) -> str:
        """What ``repr`` shows beside the network: above all what the model may be asked."""
        factorizations = ", ".join(sorted(self.factorizations)) or "none: not trained"
        return f"{self.likelihood}, {self.corruption}, {self.order}, factorizations: {factorizations}"

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """What the network was trained for. To one that reads a given value and an answered one differently, marginals
        do not support going on from given values: set to DIFFERENCE, it is MARGINAL."""
        return self._factorizations

    @factorizations.setter
    def factorizations(self, factorizations: Iterable[Factorization]) -> None:
        roles_matter = self.capabilities.roles_matter
        supported = {
            Factorization.MARGINAL if one is Factorization.DIFFERENCE and roles_matter else one
            for one in factorizations
        }
        self._factorizations = frozenset(supported)

    @property
    def capabilities(self) -> Capabilities:
        """What the network says of itself."""
        return cast(Capabilities, self.network)

    @property
    def variables(self) -> int:
        """N, the number of variables of a row."""
        return cast(Network, self.network).variables

    @property
    def is_exact(self) -> bool:
        """False if its conditionals are themselves estimates: of a normaliser (energies) or of a latent variable."""
        return self.capabilities.exact and self.likelihood.exact

    @property
    def is_one_pass(self) -> bool:
        """True if the network answers a whole chain in one pass."""
        return isinstance(self.network, OnePass)

    @property
    def one_pass(self) -> OnePass:
        """The network, if it answers a whole chain in one pass; ValueError otherwise."""
        if not isinstance(self.network, OnePass):
            raise refuse("network", expected="a one-pass network (with .chain)", got=type(self.network).__name__)
        return self.network

    @property
    def cached(self) -> Cached:
        """The network, if it can answer step by step from a cache; ValueError otherwise."""
        if not isinstance(self.network, Cached):
            raise refuse("network", expected="a cached network (.open, .extend)", got=type(self.network).__name__)
        return self.network

    @property
    def fixed_order(self) -> Order:
        """The order w, or by index if w is random."""
        return Increasing() if self.order.random else self.order

    def known_rank(self, known: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """int64 (B, N): the known variables (B, N) in w's order, -g … -1, and each other one answered next, by itself.

        A random w is drawn from the generator; without one, known variables are read by index.
        """
        order = self.fixed_order if generator is None else self.order
        block = chain_rank(order, Question(known, torch.zeros_like(known)), generator=generator)
        return torch.where(known, block, 0)

    def params(
        self,
        x: Tensor,
        known: Tensor,
        *,
        rank: Tensor | None = None,
        context: Tensor | None = None,
        cells: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """(B, N, P): what the likelihood reads as p(x_j | known) for every j; meaningless where j is known.

        Args:
            x: values (B, N); unknown ones are read only if the corruption shows them.
            known: bool (B, N).
            rank: int64 (B, N), in which order a one-pass network reads the known variables, the others tied behind
                them (NEVER = not asked); by default ``known_rank(known)``. Other networks know no order.
            context: optional side information (B, ...).
            cells: (row, variable), each (H,): the parameters of these cells alone, (H, P), which may be cheaper.
        """
        self.check_context(context)
        if self.is_one_pass:
            x = torch.where(known, x, torch.zeros_like(x))
            params = self.one_pass.chain(x, self.known_rank(known) if rank is None else rank, context)
        elif cells is not None and context is None and isinstance(self.network, AnswersCells):
            # It looks at nothing that would have to be blanked.
            shown, trusted = self.corruption.show(x, known) if self.corruption.shows_unknown else (x, known)
            return self.network.at(shown, trusted, *cells)
        else:
            params = self.network(*self.corruption.show(x, known), context)
        return params if cells is None else params[cells]

    def marginals(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Marginals:
        """p(x_j | known) for every j, from values (B, N) and known (B, N), as ``params``."""
        return self.likelihood(self.params(x, known, context=context))

    def chain(self, x: Tensor, rank: Tensor, context: Tensor | None = None, *, strict: bool = False) -> Marginals:
        """p(x_j | all that rank before j) for every j, in one pass, from values (B, N) and rank (B, N).

        ``strict=True`` promises that no two asked variables tie (see ``OnePass.chain``).
        """
        self.check_context(context)
        return self.likelihood(self.one_pass.chain(x, rank, context, strict=strict))

    def chain_at(
        self, x: Tensor, rank: Tensor, cells: tuple[Tensor, Tensor], context: Tensor | None = None
    ) -> Marginals:
        """(H, 1): what ``chain`` gives for the cells (row, variable), each (H,), alone, which may be far cheaper."""
        row, variable = cells
        self.check_context(context)
        if isinstance(self.network, ChainsCells):
            params = self.network.chain_at(x, rank, row, variable, context)
        else:
            params = self.one_pass.chain(x, rank, context)[row, variable]
        return marginals_at(self.likelihood, params.unsqueeze(1), variable.unsqueeze(1))

    def for_means(self) -> "Model":
        """What to ask where only means are wanted (``Capabilities.for_means``): itself, or its network otherwise."""
        network = self.capabilities.for_means()
        if network is self.network:
            return self
        other = copy.copy(self)
        other._modules = {**self._modules, "network": network}
        return other

    def given(self, x: Tensor, known: Tensor | None = None, context: Tensor | None = None) -> "Conditional":
        """Condition on values: ``model.given(x, known).sample(5)``.

        Args:
            x: values (B, N) or one row (N,); NaN means not known.
            known: bool, same shape, True = given; by default every value that is not NaN.
            context: optional side information (B, ...).
        """
        # The one upward import of the package: sugar, deferred to the call (see the import-linter contract).
        from anyfill.conditional import Conditional

        return Conditional.on(self, x, known, context)

    @contextmanager
    def evaluating(self) -> Generator[None]:
        """Inside: no gradients, and no dropout; afterwards every part is in the mode it was in.

        Looking at every part takes time where a pass is short: inside another ``evaluating`` of this model it is not
        done again, so whoever asks many times does so inside one.
        """
        inside = id(self) in _EVALUATING
        was_training = [] if inside else [part for part in self.modules() if part.training]
        for part in was_training:
            part.training = False
        _EVALUATING.add(id(self))
        try:
            with torch.no_grad():
                yield
        finally:
            if not inside:
                _EVALUATING.discard(id(self))
            for part in was_training:
                part.training = True

    def check_given(self, x: Tensor, given: Tensor) -> None:
        """ValueError if a given value (B, N) is not finite, or no code of its variable: a network would not notice."""
        sizes = code_sizes(self.likelihood, self.variables)[: x.shape[1]].to(x.device)
        bad = given & (~x.isfinite() | ((sizes > 0) & ((x < 0) | (x >= sizes) | (x != x.round()))))
        refuse_cells(
            bad, x, lambda j: f"a code from 0 to {sizes[j] - 1}" if sizes[j] else "a finite number", what="given value"
        )

    def read(self, context: Tensor | None) -> Any:
        """The context as every pass takes it: read once, if the network can (``ReadsContext``), else as it is."""
        return self.network.read_context(context) if isinstance(self.network, ReadsContext) else context

    def check_context(self, context: Tensor | None) -> None:
        """ValueError unless there is a context where, and only where, the network takes one."""
        width: int | None = self.capabilities.context_width
        if width is None:
            return
        if (context is None) != (width == 0) or (context is not None and context.shape[-1] != width):
            expected = "none (context_width=0)" if width == 0 else f"vectors of length {width}"
            raise refuse("context", expected=expected, got="none" if context is None else tuple(context.shape))

    def check_rows(self, x: Tensor) -> None:
        """ValueError unless x is (B, N) for this model's N, or less where the network takes the beginnings of rows."""
        shorter = self.capabilities.takes_beginnings and 0 < x.shape[-1] < self.variables
        require_shape("x", x, (None, None if shorter else self.variables))


@contextmanager
def seeded(seed: int) -> Generator[None]:
    """Inside: first weights follow from the seed; afterwards torch's global state is as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _check_kind(network: Network, likelihood: Likelihood) -> None:
    """ValueError if the network has fewer codes for a variable than its likelihood: it would read some as others."""
    kind = network.kind
    if not isinstance(kind, Discrete | Mixed):
        return
    sizes = code_sizes(likelihood, network.variables).tolist()
    codes = [kind.size] * network.variables if isinstance(kind, Discrete) else list(kind.sizes)
    for variable, (have, need) in enumerate(zip(codes, sizes)):
        if 0 < have < need:
            what = f"kind of variable {variable}"
            raise refuse(what, expected=f"{need} codes, as its likelihood has", got=f"{have} in {kind}")
