"""SUNDAE (Savinov et al. 2022), as SUNMASK's Table 1 has it: see there how the two compare; and of translations.

For a target of words under a length (``objective_words``, ``model_words``, ``sampler_words``) the length is a variable
of its own in front, given in training and never replaced by an answer.
"""

from typing import Any, Literal

from anyfill.checks import refuse, require_member
from anyfill.corruption import Uniform
from anyfill.model import Model
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import Everyone, HeadCounts
from anyfill.questions.subsets import Bernoulli, HeadGiven
from anyfill.recipes import padir, sunmask
from anyfill.samplers.annealed import Rewrite
from anyfill.samplers.draw import Draw

VARIANTS = ("", "A", "T", "AT")
"""Active balance, typical sampling; there is no N, because nothing is distrusted."""


def objective(variables: int, *, unroll: int = 2) -> MaskedLoss:
    """Loss on every cell, alike, over two steps or three; the second sees nothing but the first one's answers."""
    return MaskedLoss(Bernoulli(variables), Everyone(), unroll=unroll, redraw_given=True)


def model(
    codes: int,
    shape: tuple[int, int],
    *,
    network: Literal["pitch", "time", "transformer"] = "pitch",
    width: int | None = None,
    dropout: float = 0.0,
    even: bool = False,
    seed: int = 0,
) -> Model:
    """SD, untrained: the networks of SMc or SMt, not shown which cells to trust; ``even`` as for SMc."""
    require_member("network", network, ("pitch", "time", "transformer"))
    corruption = Uniform(codes, mask_visible=False)
    if network != "transformer":
        return sunmask.model(
            codes, shape, network=network, width=width, dropout=dropout, even=even, corruption=corruption, seed=seed
        )
    if even:
        raise refuse("even", expected="a network over (time, pitch)", got="a transformer")
    return sunmask.transformer_model(
        codes, shape, width=width or 256, dropout=dropout, corruption=corruption, seed=seed
    )


def objective_words(length: int, *, unroll: int = 2) -> MaskedLoss:
    """Of targets of at most ``length`` words: the length is given, its nats count beside those of all words."""
    questions = HeadGiven(Bernoulli(length))
    return MaskedLoss(questions, HeadCounts(Everyone()), unroll=unroll, redraw_given=True, kept=1)


def model_words(codes: int, length: int, *, seed: int = 0, **size: Any) -> Model:
    """An encoder-decoder that sees noise as words, untrained; sizes as in ``recipes.padir.model``."""
    return padir.model(codes, length, positional=False, seed=seed, **size)


def sampler_words(passes: int = 10, *, share: float = 0.3, temperature: float = 0.4) -> tuple[Rewrite, Draw]:
    """Low-temperature rewriting of a share of the words (SUNDAE section 3.2: T = 0.4, 0.3 at a time, 10 steps)."""
    return Rewrite(passes, share=share), Draw(temperature=temperature)


def sampler(
    letters: str = "", *, rounds: int = 1024, temperature: float = 0.8, values: int = 3, share: float = 0.3
) -> tuple[Rewrite, Draw]:
    """SD, SD-A, SD-T or SD-AT, by letters out of ``VARIANTS``."""
    require_member("variant", letters, VARIANTS)
    policy = Rewrite(rounds, share=share, balanced="A" in letters)
    return policy, sunmask.draw_of(letters, temperature, values)
