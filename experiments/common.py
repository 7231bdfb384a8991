"""What the experiments on tables share: UCI splits, models by name, log-likelihoods of unobserved features, a job pool.

Models are named METHOD or METHOD@FLOOR. The floor (0.001 unless named) is the narrowest that a Gaussian may be, in
standard deviations of a column. It matters: the columns of Energy and Yacht hold few different values, so their
densities are unbounded and every cell that is foreseen for certain earns log(1 / (2.507 floor)) nats: 5.99 at 0.001,
1.38 at 0.1. A negative log-likelihood on such columns says as much about the floor as about the model.

    vae, miwae   MLPs of 3 x 32, Gaussians
    sfarm        the paper's network (3 x 32, Gaussians) and training (2000 epochs, nothing held out)
    sfarm-stop   the same network, stopped early
    mac          the same network, on MAC's questions, those of completions included
    ace          proposal (2 x 128) and energy (2 x 32) networks, 10 Gaussians
    one-pass     a causal transformer (2 x 64); likelihood as auto's
    gaussian     one joint Gaussian
    auto         the default for tables (``recipes.guided``): mixtures with spikes, as wide as the floor, at values that
                 repeat, other components at least 0.02 wide; METHOD@FLOOR with a floor above 0.01 has no spikes

All but sfarm, gaussian and auto (which judges by cells it leaves out) keep a tenth of the training rows aside, stop
when those are no longer better answered, and take the best moving average of the weights; 2000 epochs at most.
"""

import json
import math
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill import recipes
from anyfill.evaluation import log_prob
from anyfill.likelihoods import Gaussian, Mixed, SpikedMixture
from anyfill.model import Model
from anyfill.networks.embed import Mixed as MixedKind
from anyfill.networks.embed import Real
from anyfill.networks.latent import LatentVariable
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.objectives import Objective
from anyfill.questions import Factorization, Question
from anyfill.rows import Rows
from anyfill.tables.ensemble import EnsembleOptions, ensemble_steps
from anyfill.tables.gaussian_em import gaussian_em_model
from anyfill.tables.quantities import infer_number
from anyfill.training import fit
from experiments.where import data_folder as data_folder
from experiments.where import shown as shown

SETS = ("energy", "yacht", "concrete")
FLOOR, WIDE = 1e-3, 0.01


@dataclass(frozen=True, slots=True)
class Split:
    """One of the 20 standard 90/10 splits, standardised by the mean and deviation of its training rows.

    Attributes:
        train, test: float32 (n, N), the target last.
        anchors: for each column the values that repeat in the training rows, in standardised units.
    """

    train: Tensor
    test: Tensor
    anchors: tuple[tuple[float, ...], ...]


def load_split(data: Path, name: str, split: int) -> Split:
    """Split number ``split`` of a UCI set, all columns as features."""
    with np.load(data / "uci_regression" / f"{name}.npz", allow_pickle=False) as file:
        values = file["data"][:, [*file["index_features"], *file["index_target"]]]
        train, test = values[file["train_idx"][split]], values[file["test_idx"][split]]
    mean, deviation = train.mean(0), train.std(0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    anchors = tuple(
        tuple(((np.array(infer_number("", column, grid="never", warps=False).anchors) - m) / s).tolist())
        for column, m, s in zip(train.T, mean, deviation)
    )
    as_tensor = [torch.tensor((part - mean) / deviation, dtype=torch.float32) for part in (train, test)]
    return Split(as_tensor[0], as_tensor[1], anchors)


def read_name(name: str) -> tuple[str, float]:
    """Method and floor of METHOD or METHOD@FLOOR."""
    method, _, floor = name.partition("@")
    return method, float(floor) if floor else FLOOR


def trained(name: str, split: Split, *, seed: int, steps: int | None = None) -> Model:
    """A model of the training rows; at most ``steps`` steps, where that is said."""
    method, floor = read_name(name)
    rows, count = Rows.from_values(split.train), split.train.shape[1]
    if method == "gaussian":
        return gaussian_em_model(rows, (0,) * count)
    if method == "auto":
        options = EnsembleOptions(seed=seed, steps=steps)
        *_, model = ensemble_steps(rows, spiked(split.anchors, floor), options)
        if not isinstance(model, Model):
            raise RuntimeError("no model came out")
        return model
    model, objective = _untrained(method, split, floor, seed)
    options = recipes.sfarm.options(len(rows), seed=seed)
    options = options if steps is None else replace(options, steps=steps)
    if method == "sfarm":
        fit(model, rows, objective, replace(options, device="cpu"))
        return model.eval()
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
    aside = max(2, len(rows) // 10)
    options = replace(options, device="cpu", ema=0.99, validate_every=50, patience=20, clip_norm=1.0)
    if method in ("one-pass", "ace"):
        options = replace(options, learning_rate=2e-3 if method == "one-pass" else 1e-3, weight_decay=0.05)
    fit(model, rows.take(order[aside:]), objective, options, validation=rows.take(order[:aside]))
    return model.eval()


def _untrained(method: str, split: Split, floor: float, seed: int) -> tuple[Model, Objective]:
    count = split.train.shape[1]
    match method:
        case "sfarm" | "sfarm-stop" | "mac":
            model = recipes.sfarm.model((0,) * count, likelihood=Gaussian(floor), seed=seed)
            return model, recipes.mac.objective_inpainting(count) if method == "mac" else recipes.sfarm.objective(count)
        case "vae":
            return recipes.vae.model(Real(), count, Gaussian(floor), seed=seed), recipes.vae.objective(count)
        case "miwae":
            model = recipes.miwae.model(Real(), count, Gaussian(floor), width=32, draws=256, seed=seed)
            return model, recipes.miwae.objective(count, hidden=0.99)
        case "ace":
            model = recipes.ace.model(
                (0,) * count, width=128, depth=2, latent=16, units=32, blocks=2, dropout=0.1, min_scale=floor, seed=seed
            )
            return model, recipes.ace.objective(count, samples=10)
        case "one-pass":
            likelihood = spiked(split.anchors, floor)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                network = OnePassTransformer(
                    MixedKind((0,) * count),
                    (count,),
                    likelihood.width,
                    width=64,
                    depth=2,
                    heads=4,
                    positions="learned",
                    dropout=0.1,
                )
            return Model(network, likelihood), recipes.one_pass.objective(count)
        case _:
            raise ValueError(f"method: {method!r} is not known")


def spiked(anchors: Sequence[Sequence[float]], floor: float, components: int = 3) -> Mixed:
    """Three Gaussians for each column, and spikes at its anchors unless the floor is wide."""
    if floor > WIDE:
        return Mixed((SpikedMixture(components, min_scale=floor),) * len(anchors))
    return Mixed(
        tuple(SpikedMixture(components, tuple(spikes), spike_scale=floor, min_scale=0.02) for spikes in anchors)
    )


def hidden_cells(rows: int, variables: int, *, seed: int) -> Tensor:
    """bool (rows, variables): each cell unobserved with probability 1/2, one at least in every row."""
    generator = torch.Generator().manual_seed(1000 + seed)
    hidden = torch.rand(rows, variables, generator=generator) < 0.5
    again = torch.randint(variables, (rows,), generator=generator)
    hidden[torch.arange(rows), again] |= ~hidden.any(1)
    return hidden


def inside(log_probs: Tensor, asked: Tensor, log_weights: Tensor | None = None) -> Tensor:
    """(B,): HH-VAEM's - log sum_k w_k exp(log p_k / |U|), the division inside the exponent; w_k = 1/K by default.

    Args:
        log_probs: (K, B), log p(x_U | x_O) by each of K draws or orders.
        asked: (B,), |U|.
        log_weights: (K, B), normalised.
    """
    return -_log_mean(log_probs / asked, log_weights)


def outside(log_probs: Tensor, asked: Tensor, log_weights: Tensor | None = None) -> Tensor:
    """(B,): - (1/|U|) log sum_k w_k p_k, a likelihood; arguments as for ``inside``. Never above it."""
    return -_log_mean(log_probs, log_weights) / asked


def _log_mean(values: Tensor, log_weights: Tensor | None) -> Tensor:
    values = values.double()
    return (values - math.log(len(values)) if log_weights is None else values + log_weights).logsumexp(0)


def nll_of_unobserved(model: Model, x: Tensor, hidden: Tensor, *, orders: int, draws: int, seed: int) -> dict[str, Any]:
    """Both definitions, averaged over rows, and how they were computed."""
    asked = hidden.sum(1)
    if isinstance(model.network, LatentVariable):
        within, exact = latent_nll(model, x, hidden, draws=draws, seed=seed)
        return {"inside": float(within.mean()), "outside": float(exact.mean()), "by": f"{draws} weighted draws of z"}
    question = Question(~hidden, hidden)
    if Factorization.ANY_ORDER in model.factorizations and Factorization.DIRECT not in model.factorizations:
        generator = torch.Generator().manual_seed(seed)
        each = [log_prob(model, x, question, orders=1, generator=generator).value for _ in range(orders)]
        by = f"{orders} orders"
    else:
        each, by = [log_prob(model, x, question).value], "one chain, exact"
    values = torch.stack(each)
    return {"inside": float(inside(values, asked).mean()), "outside": float(outside(values, asked).mean()), "by": by}


@torch.no_grad()
def latent_nll(model: Model, x: Tensor, hidden: Tensor, *, draws: int, seed: int) -> tuple[Tensor, Tensor]:
    """(B,) each: ``inside`` from draws of q(z | x_O), weighted where the model weighs its answers; and ``outside``.

    The second is - (1/|U|) [log p(x) - log p(x_O)], both from the same draws of the mixture of q(z | x), q(z | x_O) and
    the prior in equal parts: whatever the encoder makes of holes, the weights are bounded.
    """
    network, generator = model.network, torch.Generator().manual_seed(seed)
    if not isinstance(network, LatentVariable):
        raise TypeError("not a latent variable model")
    within, exact = [], []
    for row in range(0, len(x), 8):
        values, unknown = x[row : row + 8], hidden[row : row + 8]
        asked = unknown.sum(1)
        told = ~unknown
        noise = torch.randn(len(values), 3, draws, network.latent, generator=generator)
        normals = [network.posterior(values, told), network.posterior(values, torch.ones_like(told))]
        normals.append((torch.zeros_like(normals[0][0]), torch.ones_like(normals[0][1])))
        z = torch.stack([m[:, None] + s[:, None] * noise[:, i] for i, (m, s) in enumerate(normals)], 1)
        prior, others = _log_normal(z, *normals[2]), [_log_normal(z, *one) for one in normals[:2]]
        params = network.decode(z.flatten(1, 2)).flatten(0, 1)
        each = network.likelihood(params).log_prob(values.repeat_interleave(3 * draws, 0)).double()
        each = each.view(len(values), 3, draws, -1)
        rest = torch.where(unknown[:, None, None], each, 0.0).sum(-1)
        known = torch.where(told[:, None, None], each, 0.0).sum(-1)
        alone = (known + prior - others[0])[:, 0]  # the draws of q(z | x_O) alone
        weights = alone.log_softmax(1) if network.importance else torch.full_like(alone, -math.log(draws))
        within.append(inside(rest[:, 0].T, asked, weights.T))
        weight = prior - torch.stack([*others, prior]).logsumexp(0)
        both = (known + rest + weight).flatten(1).logsumexp(1)
        exact.append(-(both - (known + weight).flatten(1).logsumexp(1)) / asked)
    return torch.cat(within), torch.cat(exact)


def _log_normal(z: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    """(B, 3, K): log N(z; mean, scale) of z (B, 3, K, latent)."""
    mean, scale = mean[:, None, None], scale[:, None, None]
    return (-0.5 * ((z - mean) / scale) ** 2 - scale.log() - 0.5 * math.log(2 * math.pi)).double().sum(-1)


def paired(
    first: Sequence[float], second: Sequence[float], *, resamples: int = 5000, seed: int = 0
) -> dict[str, float | int | None]:
    """Mean of first - second over splits, its 95 % bootstrap interval over splits, and in how many splits it is < 0.

    Fewer than five splits have no interval worth the name: both ends are then None.
    """
    gap: NDArray[np.float64] = np.array(first) - np.array(second)
    low = high = None
    if len(gap) >= 5:
        index = np.random.default_rng(seed).integers(len(gap), size=(resamples, len(gap)))
        low, high = np.quantile(gap[index].mean(1), [0.025, 0.975]).tolist()
    return {"mean": float(gap.mean()), "low": low, "high": high, "won": int((gap < 0).sum()), "splits": len(gap)}


Job = dict[str, Any]


def run_jobs(
    work: Callable[[Job], dict[str, Any]], jobs: Sequence[Job], lines: Path, *, workers: int, minutes: float | None
) -> list[dict[str, Any]]:
    """Results of all jobs, those in ``lines`` taken from there; each new one is appended to it at once.

    A job that fails is reported and tried again at the next start. After ``minutes`` no further job is begun.
    """
    wanted = [_identity(job) for job in jobs]
    done = [line for line in read_lines(lines) if _identity(line["job"]) in wanted]
    finished = [_identity(line["job"]) for line in done]
    left = [job for job in jobs if _identity(job) not in finished]
    lines.parent.mkdir(parents=True, exist_ok=True)
    start, total = time.perf_counter(), len(left)
    print(f"{len(done)} jobs done before, {total} to do on {workers} processes", flush=True)
    with lines.open("a") as file:
        for number, result in enumerate(_results(work, left, workers, minutes), 1):
            if "error" in result:
                print(f"failed: {result['job']}\n{result['error']}", flush=True)
                continue
            file.write(json.dumps({**result, "job": _identity(result["job"])}) + "\n")
            file.flush()
            done.append(result)
            label = " ".join(str(part) for part in result["job"].values())
            elapsed = time.perf_counter() - start
            print(f"[{number}/{total}, {elapsed:.0f} s] {label}: {result['cpu_seconds']:.1f} CPU s", flush=True)
    return done


def _identity(job: Job) -> Job:
    """What makes a job the same on another machine: everything but where the data lies."""
    return {name: value for name, value in job.items() if name != "data"}


def _results(
    work: Callable[[Job], dict[str, Any]], left: Sequence[Job], workers: int, minutes: float | None
) -> Iterator[dict[str, Any]]:
    until = time.time() + (1e9 if minutes is None else 60 * minutes)
    if workers == 0:
        yield from (_timed(work, job, until) for job in left)
        return
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_one_thread) as pool:
        futures = [pool.submit(_timed, work, job, until) for job in left]
        yield from (future.result() for future in as_completed(futures))


def _one_thread() -> None:
    torch.set_num_threads(1)


def _timed(work: Callable[[Job], dict[str, Any]], job: Job, until: float) -> dict[str, Any]:
    if time.time() > until:
        return {"job": job, "error": "not begun: no time left"}
    start, cpu = time.perf_counter(), time.process_time()
    try:
        result = work(job)
    except Exception:
        return {"job": job, "error": traceback.format_exc()}
    spent = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}
    return {"job": job, **spent, **result}


def read_lines(path: Path) -> list[dict[str, Any]]:
    """What is in a file of JSON lines; a last line cut short is left out."""
    found: list[dict[str, Any]] = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found
