"""How to train: every setting of a run, checked when it is written down, and the learning rate that follows from them.

Step t (counted from 0) uses

    rate = peak · min(1, (step + 1) / warmup) · fall(progress),    progress = max(step / steps, elapsed / seconds)

    cosine    fall(p) = f + (1 - f) · (1 + cos(pi p)) / 2
    linear    fall(p) = f + (1 - f) · (1 - p)
    constant  fall(p) = 1                                    with f = final_fraction
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, cast

from anyfill.checks import (
    refuse,
    require_count,
    require_counts,
    require_member,
    require_positive,
    require_probability,
    require_seed,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """Settings of one training run.

    Attributes:
        steps: the most optimizer steps that are made.
        seconds: optional wall-clock budget. Training stops at whichever of the two comes first, and the learning rate
            follows max(step / steps, elapsed / seconds). How many steps fit into a budget depends on the machine, so
            such a run is NOT reproducible.
        batch_size: rows per optimizer step, over all processes and accumulated micro-batches together. A batch larger
            than the data is legal: rows are read epoch after epoch, so some repeat within the batch.
        accumulate: micro-batches per process and step; saves memory, changes nothing else.
        learning_rate: its peak.
        warmup_steps: steps over which the learning rate rises linearly; None = a tenth of the steps, at most 100.
        schedule: how the learning rate falls from its peak at the start to ``final_fraction`` of it at the end.
        final_fraction: see ``schedule``; "constant" does not use it.
        optimizer: "muon" is Muon for the hidden matrices and AdamW for all else.
        betas: of Adam and AdamW.
        weight_decay: on matrices only, never on norms, biases, embeddings or positions.
        clip_norm: longest gradient that is followed at its own length; None = no clipping.
        clip_value: largest entry of a gradient that is followed as it is, entry by entry, before ``clip_norm``.
        ema: decay of the moving average of the weights; None = none is kept.
        precision: "bf16-mixed" keeps 32-bit weights and computes in 16 bits where that is safe.
        shard: spread weights, gradients and optimizer state over the processes (FSDP) instead of copying them to each
            (DDP); what is learnt and saved is the same. With one process there is nothing to spread.
        compile: compile the network (its repeated blocks, where it says how), or else the whole loss.
        graphs: replay forward and backward as one CUDA graph for each shape of batch (``anyfill.training.graphs``): for
            networks so small that the accelerator waits for the host. CUDA, one process, one micro-batch a step.
        report_every: steps between reports; on an accelerator the host waits for it only then.
        validate_every: steps between validations.
        patience: stop after so many validations in a row without a new best; None = never.
        save_every: steps between checkpoints.
        seed: of everything random: data order, questions, noise and dropout.
        device: "auto" takes the accelerator if there is one.
    """

    steps: int = 10_000
    seconds: float | None = None
    batch_size: int = 256
    accumulate: int = 1
    learning_rate: float = 1e-3
    warmup_steps: int | None = None
    schedule: Literal["cosine", "constant", "linear"] = "cosine"
    final_fraction: float = 0.01
    optimizer: Literal["adamw", "adam", "muon"] = "adamw"
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.01
    clip_norm: float | None = 1.0
    clip_value: float | None = None
    ema: float | None = None
    precision: Literal["32-true", "bf16-mixed", "bf16-true"] = "32-true"
    shard: bool = False
    compile: bool = False
    graphs: bool = False
    report_every: int = 10
    validate_every: int = 500
    patience: int | None = None
    save_every: int = 1000
    seed: int = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"

    def __post_init__(self) -> None:
        require_counts(self, "steps", "batch_size", "accumulate", "report_every", "validate_every", "save_every")
        object.__setattr__(self, "seed", require_seed("seed", self.seed))  # numpy's as well, kept as JSON takes it
        if self.warmup_steps is not None:
            require_count("warmup_steps", self.warmup_steps, minimum=0)
        if self.patience is not None:
            require_count("patience", self.patience)
        if self.batch_size % self.accumulate:
            raise refuse("accumulate", expected=f"a divisor of batch_size = {self.batch_size}", got=self.accumulate)
        optional = ("seconds", "clip_norm", "clip_value")
        for name in (*optional, "learning_rate", "final_fraction", "weight_decay"):
            value = getattr(self, name)
            if not (_is_number(value) or (value is None and name in optional)):
                raise refuse(name, expected="a finite number", got=repr(value))
            if name in (*optional, "learning_rate") and value is not None:
                require_positive(name, value)
        require_probability("final_fraction", self.final_fraction)
        if not self.weight_decay >= 0:
            raise refuse("weight_decay", expected="a number from 0 up", got=self.weight_decay)
        # A list (as JSON gives it) is turned into the tuple it stands for, so that equal settings compare equal.
        pair: Any = self.betas
        if not isinstance(pair, list | tuple) or len(cast("tuple[Any, ...]", pair)) != 2:
            raise refuse("betas", expected="two numbers", got=repr(self.betas))
        object.__setattr__(self, "betas", tuple(self.betas))
        for name, rate in (("betas", self.betas[0]), ("betas", self.betas[1]), ("ema", self.ema)):
            if rate is not None and not (_is_number(rate) and 0.0 <= rate < 1.0):
                raise refuse(name, expected="numbers from 0 up to but not 1", got=repr(getattr(self, name)))
        for name, allowed in _CHOICES.items():
            require_member(name, getattr(self, name), allowed)

    @property
    def warmup(self) -> int:
        """The warm-up in steps, with its default worked out."""
        return min(100, self.steps // 10) if self.warmup_steps is None else self.warmup_steps

    def progress_at(self, step: int, elapsed: float) -> float:
        """Share of the run that is over after ``step`` steps and ``elapsed`` seconds, 0 to 1."""
        over = 0.0 if self.seconds is None else elapsed / self.seconds
        return min(max(step / self.steps, over), 1.0)

    def learning_rate_at(self, step: int, elapsed: float) -> float:
        """The learning rate of the update that follows ``step`` finished steps."""
        rise = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        final, progress = self.final_fraction, self.progress_at(step, elapsed)
        fall = 1.0
        if self.schedule == "cosine":
            fall = final + (1 - final) * (1 + math.cos(math.pi * progress)) / 2
        elif self.schedule == "linear":
            fall = final + (1 - final) * (1 - progress)
        return self.learning_rate * rise * fall


_CHOICES: dict[str, tuple[object, ...]] = {
    "schedule": ("cosine", "constant", "linear"),
    "optimizer": ("adamw", "adam", "muon"),
    "precision": ("32-true", "bf16-mixed", "bf16-true"),
    "device": ("auto", "cpu", "cuda"),
    "shard": (True, False),
    "compile": (True, False),
    "graphs": (True, False),
}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
