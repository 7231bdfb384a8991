"""The scores of ``static_mnist``: every test row, exactly, written as they come to RUN/score.json.

In nats per picture: each of the eight scans by itself (one order, one pass); their equal mixture,

    log 1/8 sum_k p(x | scan k),

which is exact too; the same with unequal weights, fixed by validation rows (EM) before the test rows are mixed; the
raster scan under the weights of fewer bits. Then
halves, a hole and its frame, and random pixels given others, in bits per asked pixel. Last, of a model that was told
shifts, the equal mixture over scans and shifts by 0 or 1 pixel: a shift around the edges is a bijection of pictures, so

    log 1/32 sum_(k, s) p(shift_s(x) | scan k, told s)

is exact as well; patches have other borders in each of the four. A scan of shifted pictures is one more fixed order of
the pixels as they were. So there are 72 orders to mix, eight scans at shifts by -1, 0 or 1 along each axis, and of a
model that was told shears 64 more, at shears around the edges, which are bijections, too, by -1, 0 or 1 tenth. Eight
of them are taken that go well together: one after the other, whichever makes validation rows likeliest in the equal
mixture of what is taken. The first of them is the best single order by validation rows.
"""

import argparse
import json
import math
import time
from itertools import product
from typing import Any

import torch
from torch import Tensor

from anyfill.images.shifts import sheared, shifted, told_shift
from anyfill.model import Model
from anyfill.questions import Question
from anyfill.questions.question import chain_rank, rank_of
from anyfill.questions.regions import scans
from anyfill.rank import asked_in
from anyfill.training import load_model
from benchmarks.common import environment
from experiments.sfarm.static_mnist import SHAPE, SIDE, device_of, patch_of, read, said, settled

SHIFTS = tuple(product((0, 1), repeat=2))
NEAR = tuple(product((-1, 0, 1), repeat=2))


@torch.no_grad()
def terms(model: Model, x: Tensor, rank: Tensor, told: Tensor | None = None, rows: int = 250) -> Tensor:
    """float64 (B,): log p of what has a rank from 0 on, given what ranks before it; ``told`` is a context (C,)."""
    found: list[Tensor] = []
    for part, when in zip(x.split(rows), rank.split(rows)):
        context = None if told is None else told.expand(len(part), -1)
        log_prob = model.chain(part, when, context).log_prob(part).double()
        found.append(torch.where(asked_in(when), log_prob, 0.0).sum(1))
    return torch.cat(found)


def raster_rank(model: Model, x: Tensor) -> Tensor:
    """int64 (B, N): the ranks of whole pictures x (B, N) in the model's own order."""
    asked = torch.ones(1, x.shape[1], dtype=torch.bool)
    return rank_of(model.order, Question(~asked, asked)).to(x.device).expand(len(x), -1)


def structured(count: int) -> dict[str, Tensor]:
    """bool (784,) each: what is asked."""
    grid = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    asked = {name: grid.clone() for name in ("top", "bottom", "left", "right", "hole", "frame")}
    half, quarter = SIDE // 2, SIDE // 4
    asked["top"][:half], asked["bottom"][half:] = True, True
    asked["left"][:, :half], asked["right"][:, half:] = True, True
    asked["hole"][quarter : SIDE - quarter, quarter : SIDE - quarter] = True
    asked["frame"] = ~asked["hole"]
    source = torch.Generator().manual_seed(count)
    for share in (5, 10, 20, 30, 50, 90):
        asked[f"random {share} %"] = torch.rand(SIDE, SIDE, generator=source) < share / 100
    return {name: one.flatten() for name, one in asked.items()}


def mixture_weights(log_prob: Tensor, steps: int = 500) -> Tensor:
    """(K,): the weights under which rows with log-probabilities (K, B) are likeliest, by EM from equal ones."""
    weights = log_prob.new_full((len(log_prob),), 1 / len(log_prob))
    for _ in range(steps):
        weights = (weights.log().unsqueeze(1) + log_prob).softmax(0).mean(1)
    return weights


def that_go_together(log_prob: Tensor, count: int) -> list[int]:
    """Of K laws with log-probabilities (K, B), so many, each the one that adds most to the equal mixture so far."""
    taken: list[int] = []
    total = torch.full_like(log_prob[0], -math.inf)
    for _ in range(min(count, len(log_prob))):
        with_each = torch.logaddexp(total, log_prob).mean(1)
        with_each[taken] = -math.inf
        taken.append(int(with_each.argmax()))
        total = torch.logaddexp(total, log_prob[taken[-1]])
    return taken


class Scorer:
    """The scores of one run, as they come."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments, self.device = arguments, device_of()
        torch.set_float32_matmul_precision("high")
        self.model = settled(self.load(), arguments).eval()
        self.x = self.some("test", arguments.rows)
        self.found: dict[str, Any] = {
            "arguments": said(arguments), "rows": len(self.x), "environment": environment(self.device),
            "scans": {}, "questions": {},
        }  # fmt: skip
        self.orders = scans(SIDE, SIDE, patch=patch_of(arguments))

    def load(self) -> Model:
        """The model as it was trained, told or not."""
        return load_model(self.arguments.out / "model").to(self.device).eval()

    def some(self, part: str, count: int | None) -> Tensor:
        """Rows of a part, evenly spread."""
        x = read(part)
        return (x if count is None else x[:: max(1, len(x) // count)]).to(self.device)

    def aside(self) -> int:
        """How many validation rows chose the checkpoint: no row of a run behind these is sure to be unseen."""
        record = self.arguments.out / "train.json"
        about = json.loads(record.read_text())["arguments"] if record.is_file() else {}
        return about.get("valid_rows", self.arguments.valid_rows)

    def validation(self) -> Tensor:
        """int64 (rows, 784): validation rows that weights, or orders, may be chosen by."""
        count = min(self.aside(), self.arguments.weight_rows, self.arguments.rows or self.aside())
        return read("valid")[:count].to(self.device)

    def late(self) -> bool:
        """Whether nothing more is to be begun."""
        return self.arguments.until is not None and time.time() >= self.arguments.until

    def note(self, **found: Any) -> None:
        """What was found so far: whatever ends it, that is there."""
        self.found |= found
        part = self.arguments.out / "score.part"
        part.write_text(json.dumps(self.found, indent=1) + "\n")
        part.replace(self.arguments.out / "score.json")

    def rank(self, order: Any, asked: Tensor, rows: int) -> Tensor:
        """The rank of one question, for so many rows."""
        question, source = Question(~asked.unsqueeze(0), asked.unsqueeze(0)), torch.Generator(self.device)
        return chain_rank(order, question, generator=source).expand(rows, -1)

    def whole(self, x: Tensor, number: int, model: Model | None = None, told: Tensor | None = None) -> Tensor:
        """float64 (B,): log p of whole rows in a scan."""
        asked = torch.ones(SIDE * SIDE, dtype=torch.bool, device=self.device)
        return terms(model or self.model, x, self.rank(self.orders[number], asked, len(x)), told)

    def scans(self) -> None:
        """Each by itself, and mixed."""
        each: list[Tensor] = []
        for number, scan in enumerate(self.orders[: self.arguments.scans]):
            if self.late():
                return
            start = time.perf_counter()
            each.append(self.whole(self.x, number))
            took = time.perf_counter() - start
            self.found["scans"][str(number)] = {"scan": repr(scan), **nats(each[-1]), "seconds": took}
            self.note()
        if len(each) < len(self.orders):
            return
        self.note(mixture_of_8_scans=nats(torch.stack(each).logsumexp(0) - math.log(len(each))))
        self.kept()
        valid = self.validation()
        held_out: list[Tensor] = []
        for number in range(len(each)):
            if self.late():
                return
            held_out.append(self.whole(valid, number))
        weights = mixture_weights(torch.stack(held_out))
        mixed = (weights.log().unsqueeze(1) + torch.stack(each)).logsumexp(0)
        shown = {"weights": weights.tolist(), "validation_rows": len(valid)}
        self.note(weighted_mixture_of_8_scans={**nats(mixed), **shown})

    def kept(self) -> None:
        """The raster scan under the weights that were brought home, of 16 bits or of 8."""
        for name in ("model_16", "model_8"):
            if (self.arguments.out / name).is_dir() and not self.late():
                model = load_model(self.arguments.out / name).float().to(self.device).eval()
                self.note(**{f"raster_of_{name}": nats(self.whole(self.x, 0, model))})

    def questions(self) -> None:
        """What people ask, of some of the rows."""
        count = min(self.arguments.question_rows or len(self.x), len(self.x))
        x = self.x[torch.linspace(0, len(self.x) - 1, count).round().long().to(self.device)]
        self.note(rows_of_questions=len(x))
        for name, asked in structured(0).items():
            if self.late():
                return
            rank = self.rank(self.model.order, asked.to(self.device), len(x))
            bits = -terms(self.model, x, rank) / int(asked.sum()) / math.log(2)
            self.found["questions"][name] = {"bits_per_asked_pixel": float(bits.mean()), "stderr": _error(bits)}
            self.note()

    def shifts(self) -> None:
        """The mixture over scans and shifts."""
        if not self.arguments.shifts:
            return
        told = self.load()
        total: Tensor | None = None
        for number, shift in product(range(len(self.orders)), SHIFTS):
            if self.late():
                return
            one = self.moved(self.x, number, (*shift, 0, 0), told)
            total = one if total is None else torch.logaddexp(total, one)
        if total is not None:
            count = len(self.orders) * len(SHIFTS)
            self.note(mixture_of_scans_and_shifts={"members": count, **nats(total - math.log(count))})

    def eight(self) -> None:
        """The equal mixture of eight orders, scans at shifts and shears, that go together on validation rows."""
        if not self.arguments.shifts:
            return
        told, valid = self.load(), self.validation()
        shears = [(0, 0, *shear) for shear in NEAR if any(shear) and self.arguments.shears]
        orders = list(product(range(len(self.orders)), [*((*shift, 0, 0) for shift in NEAR), *shears]))
        each: list[Tensor] = []
        for number, change in orders:
            if self.late():
                return
            each.append(self.moved(valid, number, change, told))
        held_out = torch.stack(each)
        taken = that_go_together(held_out, 8)
        weights = mixture_weights(held_out[taken])
        tested = torch.stack([self.moved(self.x, *orders[one], told) for one in taken])
        self.note(
            mixture_of_8_orders={
                **nats(tested.logsumexp(0) - math.log(len(taken))),
                "orders": [
                    {"scan": scan, "down_and_right": change[:2], "slanted": change[2:], **nats(by_itself)}
                    for (scan, change), by_itself in zip((orders[one] for one in taken), tested)
                ],
                "chosen_among": len(orders),
                "validation_rows": len(valid),
                "validation_nats": -float(held_out[taken].logsumexp(0).mean()) + math.log(len(taken)),
            },
            weighted_mixture_of_8_orders={
                **nats((weights.log().unsqueeze(1) + tested).logsumexp(0)),
                "weights": weights.tolist(),
            },
        )

    def moved(self, x: Tensor, number: int, change: tuple[int, int, int, int], told: Model) -> Tensor:
        """float64 (B,): log p of whole rows in a scan, sheared and then shifted around the edges, and told so."""
        by, shears = torch.tensor([change], device=self.device), self.arguments.shears
        context = told_shift(by if shears else by[:, :2], self.arguments.shifts, shears)[0]
        by = by.expand(len(x), -1)
        slanted = sheared(x, by[:, 2:], SHAPE, around=True)
        return self.whole(shifted(slanted, by[:, :2], SHAPE), number, told, context)


def score(arguments: argparse.Namespace) -> None:
    """Every test row, exactly, most wanted first."""
    scorer = Scorer(arguments)
    scorer.scans()
    if arguments.scans == len(scorer.orders):
        scorer.eight()
        scorer.questions()
        scorer.shifts()
    found = scorer.found
    names = ("mixture_of_8_scans", "weighted_mixture_of_8_scans", "mixture_of_8_orders", "mixture_of_scans_and_shifts")
    raster = found["scans"].get("0", {"nats": math.nan})["nats"]
    mixtures = ", ".join(f"{name} {found[name]['nats']:.3f}" for name in names if name in found)
    print(f"raster {raster:.3f}, {mixtures}", flush=True)


def nats(log_prob: Tensor) -> dict[str, float]:
    """The mean over rows, with its standard error."""
    return {"nats": float(-log_prob.mean()), "stderr": _error(log_prob)}


def _error(values: Tensor) -> float:
    return float(values.std() / math.sqrt(len(values)))
