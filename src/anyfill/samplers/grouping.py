"""Which groups to answer in parallel: ARDM's dynamic programme (Hoogeboom et al. 2022, section 4).

Answered one by one, a step with t variables known costs L_t nats, the mean over what may come next. Answered at once,
the variables a, a+1, …, b-1 all see what the first of them sees, so the group costs (b - a) L_a in place of
sum_(a <= t < b) L_t. Into S' groups with cuts 0 = c_0 < c_1 < … the whole costs

    sum_i (c_(i+1) - c_i) L_(c_i)          least over all cuts: D_k[b] = min_a D_(k-1)[a] + (b - a) L_a

which is also the likelihood of sampling in these groups. L_t is measured and noisy; it falls with t, so it is made
monotone by sorting first, or the programme exploits the noise.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count, require_shape


def best_cuts(step_nats: Tensor, groups: int) -> tuple[int, ...]:
    """Where ``groups`` groups begin so that they cost least, from the nats (S,) of every step."""
    falling = _falling(step_nats)
    size = len(falling)
    require_count("groups", groups, maximum=size)
    place = torch.arange(size + 1, dtype=torch.float64, device=falling.device)
    width = place.unsqueeze(0) - place[:-1].unsqueeze(1)  # (S, S + 1): b - a
    cost = torch.where(width > 0, width * falling.unsqueeze(1), torch.inf)
    best = cost[0]  # one group, [0, b)
    begins: list[Tensor] = []
    for _ in range(groups - 1):
        best, begin = (best[:-1].unsqueeze(1) + cost).min(0)
        begins.append(begin)
    cuts, end = list[int](), size
    for begin in reversed(begins):
        end = int(begin[end])
        cuts.append(end)
    return (0, *reversed(cuts))


def grouped_cost(step_nats: Tensor, cuts: Sequence[int]) -> float:
    """Nats of a row drawn in the groups that begin at ``cuts``, from the nats (S,) of every step."""
    falling = _falling(step_nats)
    begin = torch.tensor(list(cuts), device=falling.device)
    end = torch.tensor([*list(cuts)[1:], len(falling)], device=falling.device)
    if not len(begin) or int(begin[0]) != 0 or bool((end <= begin).any()):
        raise refuse("cuts", expected=f"0 and rising numbers below {len(falling)}", got=tuple(cuts)[:6])
    return float(((end - begin) * falling[begin]).sum())


def _falling(step_nats: Tensor) -> Tensor:
    require_shape("step_nats", step_nats, (None,))
    if not len(step_nats) or not bool(step_nats.isfinite().all()):
        raise refuse("step_nats", expected="a finite number for every step", got=tuple(step_nats.shape))
    return step_nats.double().sort(descending=True).values
