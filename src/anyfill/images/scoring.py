"""How likely a picture is, or a part of it given the rest, and where it surprises."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.evaluation import log_prob
from anyfill.evaluation.chain import terms
from anyfill.images.erasing import Erasing, erased_in
from anyfill.images.filling import Bits
from anyfill.images.picture import Picture, Places
from anyfill.images.reading import codes_of
from anyfill.images.seeing import Eye
from anyfill.images.sheets import heat_sheet
from anyfill.images.windows import windows
from anyfill.interface.threads import free_threads, threads
from anyfill.model import Model
from anyfill.questions.question import Question, chain_rank


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Score:
    """How likely a picture is, or a part of it given the rest.

    Attributes:
        picture: as the model saw it; what is erased of it was neither asked nor given.
        nats: - log p, natural logarithms.
        asked: how many numbers that is of (pixels times channels).
        kind: "exact", "bound" or "estimate".
        places: bool (H, W): the pixels that were asked.
        surprise: bits (H, W) of each asked pixel, given all that came before it in the model's order; they sum to the
            score of an exact one.
        remarks: what was changed on the way.
    """

    picture: Picture
    nats: float
    asked: int
    kind: str
    places: Places
    surprise: Bits
    remarks: tuple[str, ...] = ()

    @property
    def bits_per_dimension(self) -> float:
        """nats / (asked numbers · ln 2)."""
        return self.nats / self.asked / math.log(2) if self.asked else 0.0

    def __repr__(self) -> str:
        return f"<Score of {self.picture.name}: {self.describe()}>"

    def describe(self) -> str:
        """In words."""
        return f"{self.nats:.2f} nats, {self.bits_per_dimension:.4f} bits per dimension of {self.asked:,} ({self.kind})"

    def sheet(self) -> Picture:
        """The picture, a line around the part that was asked, beside the heat map of its surprise."""
        return heat_sheet(self.picture, self.surprise, self.places)

    def save(self, path: str | Path) -> None:
        """Write the sheet as a PNG file."""
        self.sheet().save(path)


def scored(
    model: Model, eye: Eye, whole: Picture, erased: Erasing | None, *, invert: bool | None, generator: Generator
) -> Score:
    """The score of a picture; see ``ImageModel.score``."""
    about, whole, part = eye.about, whole.plain(), None
    if erased is not None:
        part = erased_in(replace(whole, erased=None, remarks=()), erased, generator=generator)
        whole = replace(whole, remarks=(*whole.remarks, *part.remarks))
    if whole.height > about.height or whole.width > about.width:
        whole, part = eye.resized(whole), None if part is None else eye.with_holes(part)
    elif whole.pixels.shape[:2] != about.shape[:2]:
        whole = replace(whole, remarks=(*whole.remarks, eye.lies_within(whole)))
    there = whole.known
    asked = there if part is None else there & ~part.known
    if not asked.any():
        raise refuse(f"{whole.name}", expected="a pixel at least to be scored", got="none")
    whole, inverted = eye.seen(whole, invert)
    window, *_ = windows(np.ones_like(there), about.height, about.width)
    inside, own = window.inside(there.shape), window.own(there.shape)
    x = torch.zeros(1, *about.shape, dtype=torch.int64)
    seen = whole.with_channels(about.channels).pixels
    x[0, own[0], own[1]] = codes_of(255 - seen if inverted else seen, about.levels)[inside]

    def variables(places: np.ndarray[Any, np.dtype[np.bool_]]) -> Tensor:
        """bool (1, N): the variables of these places inside the window."""
        full = np.zeros(about.shape[:2], dtype=bool)
        full[own] = places
        return torch.from_numpy(full).flatten().repeat_interleave(about.channels).unsqueeze(0)

    question = Question(*(variables(places[inside]) for places in (there & ~asked, asked)))
    with threads(free_threads()):
        found = log_prob(model, x.flatten(1), question)
        bits = -terms(model, x.flatten(1), chain_rank(model.order, question))[0] / math.log(2)
    surprise = np.zeros(there.shape)
    surprise[inside] = bits.reshape(about.shape).sum(2).numpy()[own]
    count = int(question.asked.sum())
    return Score(whole, -float(found.value[0]), count, found.kind, asked, surprise, whole.remarks)
