"""The model: network + corruption + likelihood -> p(x_j | known), the one ``nn.Module`` everything else takes.

    marginals(x, known)   p(x_j | known) for every j, one pass
    chain(x, rank)        p(x_j | all that rank before j) for every j, one pass (one-pass networks only)

A model also carries the decomposition protocol w it was trained under (``order``) and the readings of
log p(asked | given) it was trained for (``readings``); evaluation uses no other silently.
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from anyfill.checks import refuse, require_shape
from anyfill.corruption import Absorb, Corruption
from anyfill.likelihoods.marginals import Likelihood, Marginals
from anyfill.networks.network import Cached, Network, OnePass
from anyfill.questions.order import Increasing
from anyfill.questions.question import Order, Reading

if TYPE_CHECKING:
    from anyfill.conditional import Conditional


class Model(nn.Module):
    """p(x_j | known) for every variable j and every set of known variables.

    Args:
        network: parameters of every variable given the known ones.
        likelihood: how those parameters are read as distributions.
        corruption: what stands in unknown places and what of it the network is shown.
        order: the protocol w in which asked variables are answered.
        readings: what the network was trained for (``fit`` fills this in from the objective).
    """

    def __init__(
        self,
        network: Network,
        likelihood: Likelihood,
        *,
        corruption: Corruption | None = None,
        order: Order | None = None,
        readings: Iterable[Reading] = (),
    ) -> None:
        super().__init__()
        outputs = getattr(network, "outputs", likelihood.width)
        if outputs != likelihood.width:
            raise refuse("outputs of the network", expected=f"{likelihood.width}, as {likelihood} needs", got=outputs)
        self.network = cast(nn.Module, network)
        self.likelihood = likelihood
        self.corruption: Corruption = Absorb() if corruption is None else corruption
        self.order: Order = Increasing() if order is None else order
        self.readings = frozenset(Reading(reading) for reading in readings)

    def extra_repr(self) -> str:
        """What ``repr`` shows beside the network: above all what the model may be asked."""
        readings = ", ".join(sorted(self.readings)) or "none: not trained"
        return f"{self.likelihood}, {self.corruption}, {self.order}, readings: {readings}"

    @property
    def variables(self) -> int:
        """N, the number of variables of a row."""
        return cast(Network, self.network).variables

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

    def marginals(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Marginals:
        """p(x_j | known) for every j, from values (B, N) and known (B, N); unknown values are not read."""
        shown, told = self.corruption.show(x, known)
        return self.likelihood(self.network(shown, told, context))

    def chain(self, x: Tensor, rank: Tensor, context: Tensor | None = None, *, strict: bool = False) -> Marginals:
        """p(x_j | all that rank before j) for every j, in one pass, from values (B, N) and rank (B, N).

        ``strict=True`` promises that no two asked variables tie (see ``OnePass.chain``).
        """
        return self.likelihood(self.one_pass.chain(x, rank, context, strict=strict))

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
        """Inside: no gradients, and no dropout; afterwards every part is in the mode it was in."""
        was_training = [part for part in self.modules() if part.training] if self.training else []
        for part in was_training:
            part.training = False
        try:
            with torch.no_grad():
                yield
        finally:
            for part in was_training:
                part.training = True

    def check_rows(self, x: Tensor) -> None:
        """ValueError unless x is (B, N) for this model's N."""
        require_shape("x", x, (None, self.variables))
