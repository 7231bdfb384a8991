"""The settings of ``anyfill translate train``: what the user says, with the defaults of what is left."""

from dataclasses import dataclass
from typing import Literal, get_args

from anyfill.checks import require_count, require_member, require_probability
from anyfill.training import FitOptions
from anyfill.translation.recipes import Recipe, Size


@dataclass(frozen=True, slots=True)
class Settings:
    """How to train; what is not said is chosen by the device.

    Attributes:
        recipe, size: see ``anyfill.translation.recipes``.
        vocabulary_size: the most codes; a small corpus has fewer.
        pieces: how words are cut.
        length: the most pieces of a side; longer pairs are left out.
        steps, seconds: when to stop, whichever comes first; neither said = 20,000 steps (2,000 without a GPU).
        batch: pairs of a step; None = 512 (64 without a GPU).
        learning_rate, dropout, seed: of training.
        valid_share: of the source sentences, held out.
        interface: the pairs are of user interfaces, accelerators are stripped.
    """

    recipe: Recipe = "padir"
    size: Size = "tiny"
    vocabulary_size: int = 8000
    pieces: Literal["unigram", "bpe"] = "unigram"
    length: int = 64
    steps: int | None = None
    seconds: float | None = None
    batch: int | None = None
    learning_rate: float = 2e-3
    dropout: float = 0.1
    seed: int = 0
    valid_share: float = 0.01
    interface: bool = False

    def __post_init__(self) -> None:
        require_member("--recipe", self.recipe, get_args(Recipe))
        require_member("--size", self.size, get_args(Size))
        require_count("--length", self.length, minimum=4, maximum=254)
        require_probability("--valid-share", self.valid_share)
        for name, value in (("--steps", self.steps), ("--batch", self.batch)):
            if value is not None:
                require_count(name, value)

    def options(self, device: Literal["cpu", "cuda"]) -> FitOptions:
        """All settings of the run."""
        cuda = device == "cuda"
        steps = self.steps
        if steps is None:
            steps = 10_000_000 if self.seconds is not None else 20_000 if cuda else 2_000
        often = 500 if cuda else 100
        return FitOptions(
            steps=steps,
            seconds=self.seconds,
            batch_size=self.batch or (512 if cuda else 64),
            learning_rate=self.learning_rate,
            warmup_steps=min(400 if cuda else 50, max(steps // 10, 1)),
            betas=(0.9, 0.98),
            weight_decay=0.01,
            ema=0.998 if cuda else 0.98,
            precision="bf16-mixed" if cuda else "32-true",
            compile=cuda,
            report_every=20 if cuda else 1,
            validate_every=often,
            save_every=often,
            seed=self.seed,
            device=device,
        )
