"""How long a fit of ``auto`` will take: said before it begins, and better with every part of the work that is done.

The parts are the choice of joints, their fits, masked copies, the trees of each column, the networks, and an ending.
What each takes is counted in steps of EM (rows, features, Gaussians), in rows that are conditioned, and in trees'
rows; how long these take is a constant of this file times how slow the machine is, which a few milliseconds tell. The
constants were measured on ten tables of 155 to 5000 rows. Parts that are over correct the rest:

    left = pace (sum of what is ahead),   pace = (spent + e) / (expected of what is over + e),   e = a fifth of it all,

the trees are corrected by their own pace, column by column, and networks by a few steps that are tried before.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from anyfill.tables.asked import LARGE
from anyfill.tables.copies import QUESTIONS
from anyfill.tables.gaussians import Joint, condition
from anyfill.tables.starts import FEW_CELLS, MAX_FACTORED, MAX_FEATURES, MAX_ROWS, enough_rows
from anyfill.training import StepReport

_ROW = 1.75e-5  # seconds of a conditioning at 16 features, of 64 rows together, where the constants were measured
_FEATURE = 7e-7  # seconds of a conditioning of many rows, for each feature
_EM = 3.3e-7  # seconds of a step of EM, for each row, feature and Gaussian
_FACTORED = 3.3e-5  # seconds of a conditioning by factors at 64 features; it grows as D^2.1, as a step of EM does
_NUMBER, _LEVEL = 3.6e-5, 1.9e-5  # seconds of trees a masked row: of a number; of each level, up to 8, of two together
_STEP = 0.0135  # seconds of an optimizer step
_STEPS, _FEWER = 0.8, 0.5  # of the most steps: learning often stops before, with few cells earlier still
_JUDGED = 1.25  # steps, and the judgements between them
_ENDING = 0.07  # of all of it


class Work(NamedTuple):
    """What there is to do.

    Attributes:
        rows: B.
        sizes: of the columns, 0 = a number.
        features: D.
        present: share of the cells.
        folds: G.
        copies: masked copies of each row.
        members, steps: of the networks; 0 = none.
        simple: one joint alone.
        chosen: what joints there are is known.
        jointless: there are none.
    """

    rows: int
    sizes: Sequence[int]
    features: int
    present: float
    folds: int
    copies: int
    members: int
    steps: int
    simple: bool = False
    chosen: bool = False
    jointless: bool = False

    @property
    def is_small(self) -> bool:
        """True of tables whose networks are soon at their best."""
        return self.rows * len(self.sizes) <= FEW_CELLS

    @property
    def learning(self) -> float:
        """Which share of the most steps of the networks is expected to be made."""
        return _FEWER if self.is_small else _STEPS


@dataclass(frozen=True, slots=True)
class Ahead:
    """Seconds of each part of the work; ``trees`` of each column."""

    shape: float
    starts: float
    copies: float
    trees: tuple[float, ...]
    networks: float

    @classmethod
    def of(cls, work: Work, slowness: float) -> "Ahead":
        """By counts, on a machine that is so many times as slow as the one the constants are of."""
        width = min(work.features, MAX_FEATURES)
        rows, row = min(work.rows, enough_rows(width)), _FEATURE * work.features * slowness
        if work.jointless or work.features > MAX_FACTORED or work.rows > MAX_ROWS:
            row = shape = starts = 0.0
        elif work.features > MAX_FEATURES:
            row = _FACTORED * (work.features / 64) ** 2.1 * slowness
            shape, starts = 0.0, 30 * (1 + work.folds) * min(work.rows, 2000) * row
        else:
            used = min(rows, 1000)
            gaussians = sum(count for count in (2, 3, 5, 9) if count <= min(rows // 30, max(2, 150 // width)))
            steps = 60 if work.simple else 155 + 12 * gaussians
            again = 3 if used * work.features * work.present < 4000 else 1
            shape = again * slowness * (0.35 + 0.01 * width + _EM * steps * used * width)
            starts = slowness * (0.35 + _EM * 155 * rows * width)
        shape = 0.0 if work.chosen else shape
        masked = work.rows * work.copies * work.folds / 3
        level = _LEVEL if work.rows * work.copies * len(work.sizes) <= LARGE else _LEVEL / 2  # one model for two
        each = (level * (1 if size <= 2 else min(size, 8)) if size else _NUMBER for size in work.sizes)
        is_wide = work.features > MAX_FEATURES
        most = QUESTIONS // 2 if work.is_small else QUESTIONS
        read = 0 if is_wide or not work.members else min(most, 48 * work.steps)
        lacking = max(0, read - work.rows * work.copies)
        return cls(
            shape,
            starts,
            work.folds * ((work.copies + 3) * work.rows + lacking) * row,
            tuple(slowness * masked * one for one in each),
            work.learning * work.steps * _STEP * slowness if work.members else 0.0,
        )

    @property
    def total(self) -> float:
        """All of it, without the ending."""
        return self.shape + self.starts + self.copies + sum(self.trees) + self.networks


def slowness() -> float:
    """How many times as slow as where the constants were measured this machine is, by some milliseconds of work."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(64, 16, dtype=torch.float64, generator=generator)
    known = torch.rand(64, 16, generator=generator) < 0.5
    covariance = torch.eye(16, dtype=torch.float64).repeat(3, 1, 1)
    joint = Joint(features.new_zeros(3), features.new_zeros(3, 16), covariance)
    taken: list[float] = []
    for _ in range(6):  # the first makes what later ones find ready
        begun = time.monotonic()
        condition(joint, features, known)
        taken.append(time.monotonic() - begun)
    return min(taken) / 64 / _ROW


class Clock:
    """Reports of the whole from those of its parts."""

    def __init__(self, work: Work) -> None:
        self.begun = time.monotonic()
        self.learning = work.learning
        self.slowness = slowness()
        self.ahead = Ahead.of(work, self.slowness)
        self.everything = self.ahead.total
        self.progress = 0.0
        self.columns = 0
        self.trees = self.begun

    def know(self, work: Work) -> None:
        """The joints are chosen, so more is known of the work."""
        over = self.ahead.shape
        self.ahead = replace(Ahead.of(work, self.slowness), shape=0.0)
        self.everything = over + self.ahead.total

    def over(self, part: str) -> None:
        """A part is done."""
        self.ahead = replace(self.ahead, **{part: 0.0})

    def trees_begin(self, networks: float) -> None:
        """From now on columns are counted; all steps of the networks would take about so many seconds."""
        self.trees = time.monotonic()
        own = _JUDGED * self.learning * networks
        self.ahead = replace(self.ahead, shape=0.0, starts=0.0, copies=0.0, networks=own)

    def report(self, step: int = 0, columns: int = 0) -> StepReport:
        """What is left, of the trees those after so many columns."""
        now, ahead = time.monotonic(), self.ahead
        if columns:
            spent, expected = now - self.trees, sum(ahead.trees[:columns])
            prior = sum(ahead.trees) / 5
            left = sum(ahead.trees[columns:]) * (spent + prior) / max(expected + prior, 1e-9) + ahead.networks
        else:
            over, prior = max(self.everything - ahead.total, 0.0), self.everything / 5
            left = ahead.total * (now - self.begun + prior) / max(over + prior, 1e-9)
        seconds, eta = self._seconds(left)
        return StepReport(step, math.nan, 0.0, 0.0, None, seconds, 0.0, eta, self.progress)

    def passed(self, report: StepReport) -> StepReport:
        """One of the networks' reports."""
        is_early = not report.progress or not math.isfinite(report.eta)
        seconds, eta = self._seconds(self.ahead.networks if is_early else report.eta * self.learning)
        return replace(report, seconds=seconds, eta=eta, progress=self.progress)

    def _seconds(self, left: float) -> tuple[float, float]:
        """Those so far, and those left, the ending included."""
        seconds = time.monotonic() - self.begun
        eta = left + _ENDING * (seconds + left)
        self.progress = min(max(self.progress, seconds / max(seconds + eta, 1e-9)), 0.999)  # it never goes back
        return seconds, eta
