"""The learning rate at each step: a linear rise over the warm-up, times a fall over the run.

Step t (counted from 0) uses

    rate = peak · min(1, (step + 1) / warmup) · fall(progress),    progress = max(step / steps, elapsed / seconds)

    cosine    fall(p) = f + (1 - f) · (1 + cos(pi p)) / 2
    linear    fall(p) = f + (1 - f) · (1 - p)
    constant  fall(p) = 1                                    with f = final_fraction
"""

import math

from anyfill.training.options import FitOptions


def progress_at(options: FitOptions, step: int, elapsed: float) -> float:
    """Share of the run that is over after ``step`` steps and ``elapsed`` seconds, 0 to 1."""
    share = step / options.steps
    if options.seconds is not None:
        share = max(share, elapsed / options.seconds)
    return min(share, 1.0)


def learning_rate_at(options: FitOptions, step: int, elapsed: float) -> float:
    """The learning rate of the update that follows ``step`` finished steps."""
    rise = min(1.0, (step + 1) / options.warmup) if options.warmup else 1.0
    return options.learning_rate * rise * _fall(options, progress_at(options, step, elapsed))


def _fall(options: FitOptions, progress: float) -> float:
    final = options.final_fraction
    if options.schedule == "cosine":
        return final + (1 - final) * (1 + math.cos(math.pi * progress)) / 2
    if options.schedule == "linear":
        return final + (1 - final) * (1 - progress)
    return 1.0
