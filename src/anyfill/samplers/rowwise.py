"""Sampling in which a row's draws depend on its own values and key alone, not on the rows that come with it.

**Noise.** Each row has a 64-bit key, and its c-th random number is a hash of (key, c):

    u = mix(mix(key) + (c + 1) g) / 2^64,    mix = the finaliser of SplitMix64 (Steele, Lea & Flood 2014), g odd

so no row's numbers depend on how many others there are, or where it stands among them. Keys may be neighbours (0, 1, 2
…): the inner mix drives them apart.

**Rounding.** A matrix product may round a row differently when the product has another shape. So rows go through the
network in blocks of one fixed size, filled up with rows nobody looks at, of which two are always there: the first knows
nothing, the last all but one variable. They also hold what a one-pass network sizes its attention by, the longest row
of the block, at its most. Networks that compute rows independently then answer bit for bit alike in any company.
``GaussianJoint`` gathers equal patterns and may differ in the last bits of its float64.

**Law.** Step t draws every row's t-th asked variable given all before it, in the model's order (by index, if that is
random): the law of ``samplers.Follow`` and of ``evaluation.log_prob``.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count, require_shape
from anyfill.likelihoods.mixed import marginals_at
from anyfill.model import Model
from anyfill.questions.question import Question, chain_rank, rank_of
from anyfill.questions.supported import completed
from anyfill.rank import asked_in
from anyfill.samplers.draw import Draw
from anyfill.samplers.loop import run
from anyfill.samplers.policy import Sampler, State, Step, Task, as_values

SPARE = 2
"""Rows of every block that are nobody's."""
LANES = 64
"""No processor computes more numbers at once."""
_CELLS = 2**19  # parameters of one block
_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15
_FIRST, _SECOND = -4658895280553007687, -7723592293110705685  # 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_MISSING = 0x7FC0_0000_0000


def mix(bits: Tensor) -> Tensor:
    """The finaliser of SplitMix64, a bijection of int64 (any shape)."""
    bits = (bits ^ _shifted(bits, 30)) * _FIRST
    bits = (bits ^ _shifted(bits, 27)) * _SECOND
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Tensor, count: int) -> Tensor:
    """bits >> count without the sign."""
    return (bits >> count) & (2 ** (64 - count) - 1)


class RowStreams:
    """Noise for B rows, each its own stream; may stand wherever likelihoods take a generator.

    Args:
        keys: int64 (B,), any values.
    """

    def __init__(self, keys: Tensor) -> None:
        require_shape("keys", keys, (None,))
        if keys.dtype != torch.int64:
            raise refuse("dtype of keys", expected="torch.int64", got=keys.dtype)
        self._start = mix(keys + _GOLDEN)
        self._drawn = 0

    def uniform(self, shape: Sequence[int], device: torch.device) -> Tensor:
        """float64 noise in [0, 1) of a shape (B, ...): row i depends on key i and how many numbers it drew before."""
        if not shape or shape[0] != len(self._start):
            raise refuse("shape of noise", expected=f"({len(self._start)}, ...)", got=tuple(shape))
        count = math.prod(shape[1:])
        number = torch.arange(self._drawn + 1, self._drawn + count + 1, device=self._start.device)
        self._drawn += count
        bits = mix(self._start.unsqueeze(1) + number * _GOLDEN)
        return (_shifted(bits, 11).double() * 2.0**-53).reshape(tuple(shape)).to(device)


def row_keys(x: Tensor, present: Tensor, seed: int) -> Tensor:
    """int64 (B,): a hash of the seed and of which values (B, N) are present and what they are, in 32 bits."""
    require_shape("present", present, tuple(x.shape))
    bits = (x.float() + 0.0).view(torch.int32).long()  # + 0: no minus zero
    bits = torch.where(present, bits, _MISSING)
    key = seed_keys(torch.zeros(len(x), dtype=torch.int64, device=x.device), seed)
    for j in range(x.shape[1]):
        key = mix(key ^ mix(bits[:, j] + (j + 1) * _GOLDEN % 2**62))
    return key


def seed_keys(row_seeds: Tensor, seed: int) -> Tensor:
    """int64 (B,): one key for each of the caller's own numbers (B,), different for each seed (modulo 2^64)."""
    start = torch.tensor((seed + 2**63) % 2**64 - 2**63, dtype=torch.int64, device=row_seeds.device)
    return mix(mix(start + _GOLDEN) ^ mix(row_seeds))


def told_apart(keys: Tensor) -> Tensor:
    """int64 (B,): the same keys, but of equal ones each after the first gets its own, by how many came before."""
    order = keys.argsort(stable=True)
    place = torch.arange(len(keys), device=keys.device)
    fresh = torch.ones_like(place, dtype=torch.bool)
    fresh[1:] = keys[order][1:] != keys[order][:-1]
    number = torch.empty_like(place)
    number[order] = place - torch.where(fresh, place, 0).cummax(0).values
    return torch.where(number == 0, keys, mix(keys ^ mix(number * _GOLDEN)))


def draw_keys(keys: Tensor, draws: int) -> Tensor:
    """int64 (draws, B): one key for each draw of each row."""
    number = torch.arange(1, draws + 1, device=keys.device).unsqueeze(1)
    return mix(keys ^ mix(number * _FIRST))


def block_size(model: Model, most: int = 1024) -> int:
    """Rows of a block, a power of two by the size of the model alone: 32 to ``most``, itself one."""
    wanted = _CELLS / max(1, model.variables * model.likelihood.width)
    return min(2 ** max(round(math.log2(max(wanted, 1))), 5), most)


def portions(rows: Tensor, size: int) -> Iterator[Tensor]:
    """An index (M,) in portions that fit into blocks."""
    for start in range(0, len(rows), size - SPARE):
        yield rows[start : start + size - SPARE]


def parameters(model: Model, x: Tensor, known: Tensor, rank: Tensor | None, size: int) -> Tensor:
    """(size, N, P): what the likelihood reads as p(x_j | known) for every unknown j, in a block of fixed size.

    Args:
        model: what is asked; call it inside ``model.evaluating()``.
        x: values of the first rows of the block (b, N), b at most size - 2; read where known.
        known: bool (b, N).
        rank: int64 (b, N), in which order known variables became known; matters to one-pass networks only. None: as
            ``Model.known_rank`` says.
        size: rows of the block.
    """
    return _in_block(model, x, known, rank, size, None)


def cell_parameters(
    model: Model, x: Tensor, known: Tensor, rank: Tensor | None, size: int, row: Tensor, variable: Tensor
) -> Tensor:
    """(H, P): of these ``parameters`` those of the variables ``variable`` (H,) of the rows ``row`` (H,).

    Cells are independent once the network has computed its rows. Give a multiple of ``LANES`` of them where their
    number may vary: what is left over in a vector of the processor may be rounded differently.
    """
    return _in_block(model, x, known, rank, size, (row, variable))


def _in_block(
    model: Model, x: Tensor, known: Tensor, rank: Tensor | None, size: int, cells: tuple[Tensor, Tensor] | None
) -> Tensor:
    """``Model.params`` in a block of fixed size."""
    shown, trusted = _block(x, known, size)
    when = None
    if model.is_one_pass:
        when = torch.arange(x.shape[1], device=x.device).repeat(size, 1)
        when[: len(x)] = model.known_rank(known) if rank is None else rank
        when = torch.where(trusted, when, x.shape[1])
    return model.params(shown, trusted, rank=when, cells=cells)


def cell_centers(model: Model, x: Tensor, known: Tensor, size: int, row: Tensor, variable: Tensor) -> Tensor | None:
    """(H,): the means of these cells, from a network that can tell them without the rest; None from others."""
    if model.corruption.shows_unknown:
        return None
    return model.capabilities.centers_at(*_block(x, known, size), row, variable)


def _block(x: Tensor, known: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Values and what is known (size, N): the rows (b, N), then those that are nobody's."""
    _require_room(x, size)
    trusted = torch.empty(size, x.shape[1], dtype=torch.bool, device=x.device)
    trusted[: len(x)], trusted[len(x) :] = known, False
    trusted[-1, :-1] = True
    shown = torch.empty(size, x.shape[1], dtype=x.dtype, device=x.device)
    shown[: len(x)], shown[len(x) :] = x, 0
    return shown, trusted


def chain_parameters(model: Model, x: Tensor, rank: Tensor, size: int) -> Tensor:
    """(size, N, P): p(x_j | all that rank before j) in one pass of a one-pass network, in a block of fixed size.

    ``x`` and ``rank`` (b, N) are of the first rows, b at most size - 2; no two asked variables may tie.
    """
    _require_room(x, size)
    shown = torch.zeros(size, x.shape[1], dtype=x.dtype, device=x.device)
    shown[: len(x)] = x
    when = torch.arange(x.shape[1], device=x.device).repeat(size, 1)  # the other rows: all asked, one by one
    when[: len(x)] = rank
    return model.one_pass.chain(shown, when)


def _require_room(x: Tensor, size: int) -> None:
    if len(x) > size - SPARE:
        raise refuse("rows of a block", expected=f"at most {size} - {SPARE}", got=len(x))


def sample_rowwise(
    model: Model,
    x: Tensor,
    known: Tensor,
    asked: Tensor,
    *,
    keys: Tensor,
    draws: int = 1,
    rows_per_pass: int | None = None,
) -> Tensor:
    """(draws, B, N): joint draws of the asked variables given the known ones; the rest as it is in x.

    Args:
        model: what answers; ValueError if it was not trained for these questions.
        x: values (B, N), read where known.
        known: bool (B, N).
        asked: bool (B, N), disjoint from known.
        keys: int64 (B,), of each row's noise.
        draws: how many for each row.
        rows_per_pass: rows of a block; by default ``block_size(model)``. Answers may differ in rounding between sizes.
    """
    model.check_rows(x)
    require_shape("known", known, tuple(x.shape))
    question = Question(known, asked).checked()
    model.check_given(x, known)
    require_shape("keys", keys, (len(x),))
    require_count("draws", draws)
    size = block_size(model) if rows_per_pass is None else rows_per_pass
    require_count("rows_per_pass", size, minimum=SPARE + 1)
    if model.corruption.shows_unknown:
        raise refuse("corruption", expected="one that shows no noise", got=repr(model.corruption))
    order = model.fixed_order
    question = completed(model.factorizations, question, model.order, order=order)
    whole = (x, known, chain_rank(order, Question(known, torch.zeros_like(known))), rank_of(order, question))
    source = draw_keys(keys, draws).flatten()
    out = x.repeat(draws, 1)
    # Rows with equally many holes go together, so that few wait for others.
    waiting = question.asked.sum(1)
    # Draws of one row side by side, as they know the same: what depends on that alone is computed once.
    place = torch.arange(len(x), device=x.device)
    rows = (waiting * len(x) + place).repeat(draws).argsort(stable=True)
    rows = rows[waiting.repeat(draws)[rows] > 0]
    with model.evaluating():
        for part in portions(rows, size):
            out[part] = _draw_block(model, source[part], size, *(one[part % len(x)] for one in whole))
    return torch.where(asked, out.unflatten(0, (draws, len(x))), x)


def _draw_block(model: Model, keys: Tensor, size: int, x: Tensor, known: Tensor, read: Tensor, rank: Tensor) -> Tensor:
    """(b, N): one draw of everything that has a rank, the known variables read in the order ``read``, all (b, N)."""
    task = Task(model, x, Question(known, asked_in(rank)), Draw(), None, torch.Generator())
    first = replace(State.first(x, read), plan=rank)
    return deque(run(_InBlocks(keys, size), task, first), maxlen=1).pop().x


@dataclass(frozen=True, slots=True, eq=False)
class _InBlocks(Sampler):
    """Answers one by one, each row with noise of its own; ``State.plan`` is the rank.

    Attributes:
        keys: int64 (b,), of each row's noise.
        size: rows of a block.
    """

    keys: Tensor
    size: int

    def done(self, state: State, question: Question) -> bool:
        return False  # the number of steps is known beforehand

    def begin(self, task: Task) -> Step:
        model, size = task.model, self.size
        noise = RowStreams(torch.cat([self.keys, self.keys.new_zeros(size - len(self.keys))]))
        everyone = torch.arange(size, device=task.x.device)

        def step(state: State) -> State:
            due = state.plan == state.step
            wanted = torch.zeros(size, 1, dtype=torch.int64, device=due.device)
            wanted[: len(due)] = due.to(torch.uint8).argmax(1, keepdim=True)  # rows that are finished: any
            own = cell_parameters(model, state.x, state.known, state.rank, size, everyone, wanted[:, 0]).unsqueeze(1)
            drawn = marginals_at(model.likelihood, own, wanted).sample(generator=noise)
            value = as_values(drawn, state.x)[: len(due)]
            return state.committed(due, value, state.score, due.any(1))

        return step
