"""What ``text8.py`` asks a model of: the three questions, the time to score and to draw, and how its samples read.

Answers are computed in 32 bits with fast products (TF32 on CUDA); ``rounding`` measures what that moves.
"""

import math
import time
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from anyfill.evaluation import LogProb, log_prob
from anyfill.model import Model
from anyfill.questions import Factorization, Question
from anyfill.samplers import CachedChain, Follow, sample
from anyfill.text.vocabulary import TEXT8
from benchmarks.common import median_seconds


def questions(rows: int, seed: int, device: torch.device | str, length: int) -> dict[str, Question]:
    """The same questions for every recipe: they depend on the number of rows and the seed alone."""
    generator = torch.Generator().manual_seed(seed)
    place = torch.rand(rows, length, generator=generator).argsort(1)
    size = torch.randint(1, length + 1, (rows, 1), generator=generator)
    nothing = torch.zeros(rows, length, dtype=torch.bool)
    told = place < size - 1
    asked = {"joint": (nothing, ~nothing), "marginal": (nothing, place < size), "conditional": (told, ~told)}
    return {name: Question(given.to(device), wanted.to(device)) for name, (given, wanted) in asked.items()}


def stderr(values: Tensor) -> float | None:
    """Standard error of the mean of values (B,); None if there is but one."""
    return (values.std() / math.sqrt(len(values))).item() if len(values) > 1 else None


def figures(value: Tensor, question: Question, answer: LogProb, seconds: float) -> dict[str, Any]:
    """Bits per asked character from log-probabilities (B,): mean over chunks, standard error, and each chunk's own."""
    asked = question.asked.sum(1)
    bits = -value / math.log(2)
    each = bits / asked
    return {
        "bits": each.mean().item(),
        "stderr": stderr(each),
        "bits_pooled": (bits.sum() / asked.sum()).item(),
        "kind": answer.kind,
        "reading": answer.factorization.value,
        "passes": answer.passes,
        "trained": True,
        "seconds": seconds,
        "each": [round(one, 5) for one in each.tolist()],
    }


def timed(
    model: Model, chunks: Tensor, question: Question, factorization: Factorization | None = None
) -> tuple[LogProb, float]:
    """log p(asked | given) and the seconds it took."""
    start = time.perf_counter()
    answer = log_prob(model, chunks, question, factorization=factorization)
    answer.value.sum().item()  # waits for the device
    return answer, time.perf_counter() - start


def ask(model: Model, chunks: Tensor, seed: int) -> dict[str, dict[str, Any]]:
    """Every question that makes sense of the model, on these chunks (B, N)."""
    posed = questions(len(chunks), seed, chunks.device, chunks.shape[1])
    whole, seconds = timed(model, chunks, posed["joint"])
    answers = {"joint": figures(whole.value, posed["joint"], whole, seconds)}
    trained = model.factorizations
    if trained == {Factorization.PREFIX}:
        return answers
    some, some_seconds = timed(model, chunks, posed["marginal"])
    answers["marginal"] = figures(some.value, posed["marginal"], some, some_seconds)
    if trained & {Factorization.DIFFERENCE, Factorization.MARGINAL}:
        # log p(all) is known by now: only log p(given) is left to ask.
        nothing, given = torch.zeros_like(posed["conditional"].given), posed["conditional"].given
        part, part_seconds = timed(model, chunks, Question(nothing, given))
        both = replace(whole, passes=whole.passes + part.passes, factorization=Factorization.DIFFERENCE)
        found = figures(whole.value - part.value, posed["conditional"], both, seconds + part_seconds)
        answers["difference"] = found
    usual = (Factorization.DIRECT, Factorization.INPAINTING, Factorization.ANY_ORDER)
    direct = next((factorization for factorization in usual if factorization in trained), Factorization.DIRECT)
    model.factorizations = trained | {direct}  # MAC: asked all the same, and marked
    try:
        rest, rest_seconds = timed(model, chunks, posed["conditional"], direct)
    finally:
        model.factorizations = trained
    answers["conditional"] = figures(rest.value, posed["conditional"], rest, rest_seconds) | {
        "trained": direct in trained
    }
    return answers


def rounding(model: Model, chunks: Tensor) -> dict[str, float]:
    """How far fast products (TF32 on CUDA) move the joint of these chunks, in bits per character."""
    everything = questions(len(chunks), 0, chunks.device, chunks.shape[1])["joint"]
    values: list[Tensor] = []
    for precision in ("highest", "high"):
        torch.set_float32_matmul_precision(precision)
        values.append(log_prob(model, chunks, everything).value)
    apart = (values[0] - values[1]) / (chunks.shape[1] * math.log(2))
    return {"chunks": len(chunks), "largest": apart.abs().max().item(), "mean": apart.mean().item()}


def score(model: Model, chunks: Tensor, count: int, joint: dict[str, Any]) -> dict[str, Any]:
    """Seconds to score the joint of ``count`` chunks: measured in one-pass networks, else scaled from what fewer took.

    ``joint`` is the answer on those fewer chunks.
    """
    if not model.is_one_pass:
        measured = len(joint["each"])
        seconds = joint["seconds"] * count / measured
        return {"chunks": count, "seconds": seconds, "measured_chunks": measured, "scaled": True}
    several = chunks.repeat(-(-count // len(chunks)), 1)[:count]
    everything = questions(len(several), 0, chunks.device, chunks.shape[1])["joint"]
    seconds = median_seconds(lambda: log_prob(model, several, everything), repeats=3, device=chunks.device)
    return {"chunks": count, "seconds": seconds, "measured_chunks": count, "scaled": False}


def draws(model: Model, rows: int, seed: int, device: torch.device | str) -> dict[str, Any]:
    """Whole chunks drawn one character after another: from the cache in one-pass networks, else a pass for each."""
    policy = CachedChain() if model.is_one_pass else Follow()

    def drawn(count: int) -> Tensor:
        x = torch.zeros(count, model.variables, dtype=torch.int64, device=device)
        everything = torch.ones_like(x, dtype=torch.bool)
        generator = torch.Generator(device).manual_seed(seed)
        return sample(model, x, Question(~everything, everything), policy=policy, generator=generator).x.cpu()

    if model.is_one_pass:
        drawn(2)  # warms up; a masked network has answered thousands of passes by now
    start = time.perf_counter()
    codes = drawn(rows)
    seconds = time.perf_counter() - start
    texts = [TEXT8.decode(row) for row in codes]
    return {
        "chunks": rows,
        "seconds": seconds,
        "passes": model.variables,
        "policy": type(policy).__name__,
        "texts": texts,
    }


def judged(judge: Model, texts: list[str], device: torch.device | str) -> dict[str, float | None]:
    """Bits per character of texts of equal length under the left-to-right model."""
    x = torch.stack([TEXT8.encode(text) for text in texts]).long().to(device)
    everything = questions(len(x), 0, device, x.shape[1])["joint"]
    bits = -log_prob(judge, x, everything).value / (x.shape[1] * math.log(2))
    return {"bits": bits.mean().item(), "stderr": stderr(bits)}
