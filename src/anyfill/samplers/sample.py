"""``sample``: run a policy or a decoder to its end and say what it cost."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.networks.network import Cached
from anyfill.questions.question import Question
from anyfill.samplers.cached import CachedChain
from anyfill.samplers.draw import Draw
from anyfill.samplers.loop import trace
from anyfill.samplers.policy import Follow, Policy, State


@runtime_checkable
class Decoder(Protocol):
    """A sampler that needs more of a network than single answers, and so brings its own steps (cache, speculation)."""

    def __call__(
        self,
        model: Model,
        x: Tensor,
        question: Question,
        *,
        draw: Draw | None = None,
        context: Tensor | None = None,
        generator: Generator,
        allow_untrained: bool = False,
    ) -> Iterator[State]: ...


@dataclass(frozen=True, slots=True)
class Sample:
    """What came out.

    Attributes:
        x: (B, N), the asked variables drawn, everything else as it was.
        passes: network passes made one after another.
        row_passes: int64 (B,), in how many of them each row was still being answered.
    """

    x: Tensor
    passes: int
    row_passes: Tensor


def sample(
    model: Model,
    x: Tensor,
    question: Question,
    *,
    policy: Policy | Decoder | None = None,
    draw: Draw | None = None,
    context: Tensor | None = None,
    generator: Generator,
    allow_untrained: bool = False,
    held: Tensor | None = None,
) -> Sample:
    """Draw the asked variables given the given ones; arguments as for ``trace``.

    The default policy is the exact one: one by one in the model's order, from the cache if the network has one.
    """
    states = watch(
        model,
        x,
        question,
        policy=policy,
        draw=draw,
        context=context,
        generator=generator,
        allow_untrained=allow_untrained,
        held=held,
    )
    state = next(states)
    for state in states:  # noqa: B007 - the last state is what is wanted
        pass
    return Sample(state.x, state.passes, state.row_passes)


def watch(
    model: Model,
    x: Tensor,
    question: Question,
    *,
    policy: Policy | Decoder | None = None,
    draw: Draw | None = None,
    context: Tensor | None = None,
    generator: Generator,
    allow_untrained: bool = False,
    held: Tensor | None = None,
) -> Iterator[State]:
    """The states ``sample`` goes through, for whoever wants to look on."""
    if policy is None:
        policy = CachedChain() if isinstance(model.network, Cached) and held is None else Follow()
    if isinstance(policy, Policy):
        return trace(
            model,
            x,
            question,
            policy,
            draw=draw,
            context=context,
            generator=generator,
            allow_untrained=allow_untrained,
            held=held,
        )
    if held is not None:
        raise refuse("held", expected="a policy that goes with it", got=f"the decoder {type(policy).__name__}")
    return policy(model, x, question, draw=draw, context=context, generator=generator, allow_untrained=allow_untrained)
