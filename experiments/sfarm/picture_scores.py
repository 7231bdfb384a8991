"""How methods are asked about pictures, and scored.

What is asked of whom follows from what each was trained for: one-pass exactly, in its order; ARDM and SFARM over all
orders (a bound); MAC in its own order (an estimate of the exact chain from some of its steps), completions of
``mac-inpainting`` alone.

On CUDA networks are asked in bf16 but for their last layer, whose parameters of distributions, log-probabilities and
sums are of 32 bits and more (``in_halves``). What that changes is measured each time, on 64 rows, and stands beside
the scores.
"""

import argparse
import json
import math
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from anyfill.evaluation import log_prob, mean_of, mixture_log_prob, stratified_bound
from anyfill.model import Model
from anyfill.networks import OnePassGroups
from anyfill.networks.unet_parts import UpHalf
from anyfill.questions import Modes, PerPixel, Question, Strokes, scans
from anyfill.recipes.sfarm import in_mode
from experiments.sfarm.pictures import COMPLETES, ONE_PASS, Data, patch_of, spread, timed

RATES = (5, 10, 20, 30, 50, 90)
EVIDENCE_ROWS, EVIDENCE_DRAWS = 500, 64
"""Of VAE and MIWAE: test rows, evenly spread, and draws of z for each."""


class Whole(nn.Module):
    """A layer in 32 bits, whatever runs around it."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, h: Tensor) -> Tensor:
        with torch.autocast(h.device.type, enabled=False):
            return self.inner(h.float())


@contextmanager
def in_halves(model: Model, *, always: bool = False) -> Generator[None]:
    """Inside, the model's network computes in bf16, its last layer in 32 bits; on CUDA, or ``always``."""
    device = next(model.parameters()).device.type
    if device != "cuda" and not always:
        yield
        return
    ends = [part for part in model.modules() if isinstance(part, UpHalf | OnePassGroups)]
    heads = [cast(nn.Module, part.head) for part in ends]
    for part, head in zip(ends, heads):
        part.head = Whole(head)
    try:
        with torch.autocast(device, torch.bfloat16):
            yield
    finally:
        for part, head in zip(ends, heads):
            part.head = head


def asked_model(method: str, model: Model, mode: str = "random") -> Model:
    """The model to ask: SFARM's that is told a mode answers in this one."""
    told = method.startswith("sfarm") and method != "sfarm-shares"
    return in_mode(model, mode) if told else model  # type: ignore[arg-type]


def structured(shape: tuple[int, int, int], count: int, *, seed: int = 0) -> dict[str, tuple[Tensor, str]]:
    """What is asked, bool (count, H W) each, and SFARM's mode for it: 6 random rates, 6 regions, strokes."""
    height, width = shape[:2]
    family = Modes(height, width)
    found: dict[str, tuple[Tensor, str]] = {}
    for name, mode in (("right", "left to right"), ("left", "right to left"), ("bottom", "top to bottom"),
                       ("top", "bottom to top"), ("outside", "interior"), ("inside", "exterior")):  # fmt: skip
        first = torch.tensor(family.regions_of(mode)[0][0])  # type: ignore[arg-type]
        found[name] = ((~first).expand(count, -1), mode)
    source = torch.Generator().manual_seed(seed)
    tip = max(1.5, min(height, width) / 14)
    found["strokes"] = (
        Strokes(height, width, thinnest=tip, thickest=3 * tip).sample(count, generator=source).asked, "random",
    )  # fmt: skip
    for rate in RATES:
        asked = torch.rand(count, height * width, generator=source) < rate / 100
        asked[:, 0] |= ~asked.any(1)
        found[f"random {rate} %"] = (asked, "random")
    return found


def question_of(asked: Tensor, channels: int, device: torch.device) -> Question:
    """All channels of the asked pixels (B, H W), the rest given."""
    pixels = Question(~asked, asked)
    whole = PerPixel(Modes(2, 2), channels).spread(pixels)
    return Question(whole.given.to(device), whole.asked.to(device))


def scored(
    method: str, model: Model, x: Tensor, question: Question | None, channels: int, *, passes: int, seed: int = 0
) -> Tensor:
    """float64 (B,): log p of the rows, or of what is asked of them: exact, a bound, or an estimate; see above."""
    with in_halves(model):
        return _scored(method, model, x, question, channels, passes, seed)


def _scored(
    method: str, model: Model, x: Tensor, question: Question | None, channels: int, passes: int, seed: int
) -> Tensor:
    device = next(model.parameters()).device
    x = x.to(device)
    if method in ONE_PASS:
        whole = Question.of(x.shape[1], batch=len(x))
        asked = Question(whole.given.to(device), whole.asked.to(device)) if question is None else question
        return log_prob(model, x, asked, rows_per_pass=rows_per_pass(x)).value
    by_pixel = channels if method.startswith("sfarm") else 1
    source = torch.Generator(device).manual_seed(seed)  # the same questions for every method of one kind
    given = None if question is None else question.given
    if question is not None and method not in COMPLETES:
        raise ValueError(f"{method} was not trained to complete pictures")
    order = model.order if method.startswith("mac") else None
    found = stratified_bound(
        *(model, x), passes=passes, channels=by_pixel, given=given, order=order,
        allow_untrained=by_pixel > 1, generator=source, rows_per_pass=rows_per_pass(x),
    )  # fmt: skip
    return found.value


def rows_per_pass(x: Tensor) -> int | None:
    """Of rows (B, N): many on CUDA, where small passes wait for their launch."""
    return max(1, 2**19 // x.shape[1]) if x.is_cuda else None


def joint_scores(method: str, model: Model, data: Data, arguments: argparse.Namespace) -> dict[str, Any]:
    """Nats and bits per dimension of whole test rows, with standard errors; K orders and 8 scans where they apply.

    Kept beside the model, so that a second script that asks does not compute them again; log p of each row, too.
    """
    about = {"set": arguments.set, "rows": len(data.test)}
    path: Path = arguments.out / method / "joint.json"
    if path.exists():
        found = json.loads(path.read_text())
        if found["asked"] == about:
            return found["scores"]
    values: dict[str, Tensor] = {}
    latent = method in ("vae", "miwae")
    with nullcontext() if latent else in_halves(model):
        found, seconds = timed(lambda: _joint_scores(method, model, data, arguments, values))
    if next(model.parameters()).is_cuda and not latent:
        found["bf16 less 32 bits, share"] = halving(method, model, data, arguments.passes)
    found["seconds_of_scoring"] = seconds
    path.write_text(json.dumps({"asked": about, "scores": found}, indent=1) + "\n")
    np.savez_compressed(path.with_suffix(".npz"), **{name: value.cpu().numpy() for name, value in values.items()})
    return found


def halving(method: str, model: Model, data: Data, passes: int, *, rows: int = 64, always: bool = False) -> float:
    """By how much of itself the mean score of some rows changes where the network computes in bf16."""
    asked, x = asked_model(method, model), data.test[spread(len(data.test), rows)]
    whole = _scored(method, asked, x, None, data.shape[2], passes, 0)
    with in_halves(asked, always=always):
        half = _scored(method, asked, x, None, data.shape[2], passes, 0)
    return float((half - whole).mean() / whole.mean().abs())


def _joint_scores(
    method: str, model: Model, data: Data, arguments: argparse.Namespace, values: dict[str, Tensor]
) -> dict[str, Any]:
    """The same, with log p of each row put into ``values`` by name."""
    x, channels, dims = data.test, data.shape[2], math.prod(data.shape)
    if method in ("vae", "miwae"):
        network: Any = model.network
        x = x[spread(len(x), EVIDENCE_ROWS)]
        source = torch.ones_like(x, dtype=torch.bool).to(next(model.parameters()).device)
        with torch.no_grad():
            parts = zip(x.to(source.device).split(100), source.split(100))
            value = torch.cat([network.log_evidence(part, known, EVIDENCE_DRAWS) for part, known in parts])
        values["joint"] = value
        kind = f"bound in expectation: importance-weighted, {EVIDENCE_DRAWS} draws"
        return {"kind": kind, "rows": len(x), **_figures(value, dims)}
    asked = asked_model(method, model)
    value, seconds = timed(lambda: _scored(method, asked, x, None, channels, arguments.passes, 0))
    values["joint"] = value
    kind = f"bound, {arguments.passes} stratified passes"
    if method in ONE_PASS:
        kind = "exact, one order"
    elif method.startswith("mac"):
        kind = f"estimate of the exact chain, {arguments.passes} stratified steps"
    found: dict[str, Any] = {"kind": kind, "rows": len(x), "seconds": seconds, **_figures(value, dims)}
    device = next(model.parameters()).device
    if method in ONE_PASS:
        patch = patch_of(method, arguments)
        orders = scans(*data.shape[:2], patch=patch, channels=channels)
        rows = x[spread(len(x), arguments.mixture_rows)].to(device)
        whole = Question.of(dims, batch=len(rows))
        question = Question(whole.given.to(device), whole.asked.to(device))
        mixed = mixture_log_prob(model, rows, question, orders, rows_per_pass=rows_per_pass(rows))
        values["mixture"] = mixed.value
        found["mixture of 8 scans, exact"] = {"rows": len(rows), **_figures(mixed.value, dims)}
    elif arguments.orders and method.startswith("mac"):
        some = x[spread(len(x), arguments.order_rows)].to(device)
        whole = Question.of(dims, batch=len(some))
        question = Question(whole.given.to(device), whole.asked.to(device))
        exact = log_prob(model, some, question, rows_per_pass=rows_per_pass(some))
        values["exact chain"] = exact.value
        found[f"exact chain, {len(some)} rows"] = _figures(exact.value, dims)
    elif arguments.orders and (channels == 1 or not method.startswith("sfarm")):
        some = x[spread(len(x), arguments.order_rows)].to(device)
        whole = Question.of(dims, batch=len(some))
        question = Question(whole.given.to(device), whole.asked.to(device))
        for estimator in ("bound", "estimate"):
            source = torch.Generator(device).manual_seed(0)
            one = log_prob(asked, some, question, orders=arguments.orders, estimator=estimator, generator=source)
            found[f"{arguments.orders} orders, {estimator}, {len(some)} rows"] = _figures(one.value, dims)
    return found


def _figures(value: Tensor, dims: int) -> dict[str, float]:
    mean = mean_of(-value)
    unit = dims * math.log(2)
    return {
        "nats": mean.value,
        "stderr": mean.stderr,
        "bits_per_dim": mean.value / unit,
        "bits_stderr": mean.stderr / unit,
    }
