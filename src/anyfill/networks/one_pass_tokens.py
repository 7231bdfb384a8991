"""The tokens of a one-pass transformer: when each variable is read (``Plan``), and what is kept of them (``Cache``).

**Plan.** What is given is read first, then what is asked, by rank.

Ignored variables are left out, or take part as blanks where nothing is given: a blank is read right before the first
asked variable that lies behind it, by index, so that with asked variables in increasing order every place is read in
turn. If n(i) = 0, 1, … numbers the asked variables i by rank (ties by index) and m(j) is the least n(i) with i > j,

    when(i) = 2 n(i) + 1 for asked i,    when(j) = 2 m(j) for ignored j, and NEVER where nothing behind j is asked.

With blanks, variables that are answered at once need no copies (see ``networks.one_pass``): whoever is not known is a
blank to those behind it, one that is asked as well as one that is ignored. Only the last to be answered may be tied,
for what comes after them would have to read their values.

**Cache.** What has been read, as keys and values, and how several answers are read or foreseen at once.

Row b has read the tokens 0 … place[b]; the last of them predicts variable order[b, place[b]]. Slots beyond ``place``
hold nothing that counts, so taking answers back is moving ``place`` back, and a window of W new tokens is written into
the slots behind it, for each row its own:

    advance   the next W answers, known or guessed. Slot place + 1 + i is read by the tokens from i on (causal).
    peek      one answer, and W - 1 copies of its token aimed at the variables further on. Copy i sees what its original
              saw and itself, in slot place + 1 + i, so it predicts from what was read alone (as ties do in ``chain``).

The last slot is nobody's: the token in it has no variable left to predict. What runs past the end of a row goes there.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from anyfill.checks import refuse
from anyfill.rank import NEVER, asked_in


@dataclass(frozen=True, slots=True)
class Plan:
    """The order of B rows of N variables.

    Attributes:
        when: int64 (B, N), what is read sooner has less; below 0 what is given, NEVER what is not read.
        order: int64 (B, N), the variables as they are read.
        asked: bool (B, N).
        blank: bool (B, N), what is read as a blank where it is read; None = what is ignored is left out.
    """

    when: Tensor
    order: Tensor
    asked: Tensor
    blank: Tensor | None

    @classmethod
    def of(cls, rank: Tensor, *, blanks: bool, strict: bool = False) -> "Plan":
        """The plan of a rank (B, N), see ``anyfill.rank``; ``strict``: no ties, nothing is looked up."""
        asked = asked_in(rank)
        if not blanks:
            return cls(rank, rank.argsort(dim=1, stable=True), asked, None)
        nothing_given = ~(rank < 0).any(1, keepdim=True)
        place = torch.arange(rank.shape[1], device=rank.device).expand_as(rank)
        sorted_rank, by_rank = torch.where(asked, rank, NEVER).sort(dim=1, stable=True)
        number = torch.where(asked, torch.empty_like(rank).scatter(1, by_rank, place), NEVER)
        first_behind = number.flip(1).cummin(1).values.flip(1)
        when = torch.where(asked, 2 * number + 1, torch.where(first_behind < NEVER, 2 * first_behind, NEVER))
        when = torch.where(nothing_given, when, rank)
        blank = nothing_given & (rank == NEVER)
        if not strict:
            last = torch.where(asked, rank, -1).amax(1, keepdim=True)
            tied = (sorted_rank[:, 1:] == sorted_rank[:, :-1]) & (sorted_rank[:, 1:] < last) & nothing_given
            if bool(tied.any()):
                expected = "the last ones only, as what is ignored is read as blanks"
                raise refuse("variables answered at once, with nothing given", expected=expected, got="others")
            blank = blank | (nothing_given & asked & (rank == last))
        return cls(when, when.argsort(dim=1, stable=True), asked, blank)

    @property
    def given(self) -> Tensor:
        """bool (B, N)."""
        return self.when < 0

    def legible(self, x: Tensor, strict: bool = False) -> Tensor:
        """x (B, N) without what nobody is asked after, so that nothing (a NaN, say) can come of it. Masking attention
        would not do: 0 · NaN = NaN. In a strict chain the blanks behind the last asked variable are asked after it."""
        last = torch.where(self.asked, self.when, 0).amax(1, keepdim=True)
        if self.blank is None:
            return torch.where(self.when < last, x, torch.zeros_like(x))
        read = self.when <= last if strict else self.when < last
        return torch.where(read & ~self.blank, x, torch.zeros_like(x))

    def in_copies(self) -> Tensor:
        """bool (B, 1): rows whose tied variables are answered by copies of a token."""
        return torch.ones_like(self.asked[:, :1]) if self.blank is None else self.given.any(1, keepdim=True)

    def ties(self) -> bool:
        """Whether copies are needed."""
        when = self.when.gather(1, self.order)
        tied = (when[:, 1:] == when[:, :-1]) & self.asked.gather(1, self.order)[:, 1:]
        # Rows that need none count if they have ties, too, or a row's last bits would depend on its company.
        blanks = torch.zeros_like(self.asked) if self.blank is None else self.blank & self.asked
        return bool(tied.any()) or bool((blanks.sum(1) > 1).any())

    def length(self) -> int:
        """How many variables the longest row reads, at least 1."""
        return max(int((self.when < NEVER).sum(1).max()), 1) if len(self.when) else 1

    def before_the_first(self) -> Tensor:
        """int64 (B,): how many variables are read before the first asked one."""
        first = torch.where(self.asked, self.when, NEVER).amin(1, keepdim=True)
        return (self.when < first).sum(1)

    def blank_at(self, variable: Tensor) -> Tensor | None:
        """bool (B, L): which of these variables (B, L) are read as blanks."""
        return None if self.blank is None else self.blank.gather(1, variable)

    def blanks_behind(self) -> Tensor | None:
        """int64 (B, N): how many blanks follow the n-th variable read, directly; None = there are none."""
        if self.blank is None:
            return None
        blank = (self.blank & ~self.asked & (self.when < NEVER)).gather(1, self.order)
        if not bool(blank.any()):
            return None
        place = torch.arange(blank.shape[1], device=blank.device)
        other = torch.where(blank, blank.shape[1], place).flip(1).cummin(1).values.flip(1)  # the next that is none
        behind = functional.pad(other[:, 1:], (0, 1), value=blank.shape[1])
        return behind - place - 1


def wide(index: Tensor, like: Tensor) -> Tensor:
    """index (B, L) repeated over the parameters of ``like`` (B, N, P)."""
    return index.unsqueeze(-1).expand(-1, -1, like.shape[-1])


def unsort(params: Tensor, plan: Plan) -> Tensor:
    """(B, N, P): parameters (B, L, P) of the first L variables read, put in their places (others: zero)."""
    batch, variables = plan.order.shape
    out = params.new_zeros(batch, variables, params.shape[-1])
    return out.scatter(1, wide(plan.order[:, : params.shape[1]], out), params)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a pass leaves behind: a state for each token, and which of them answers for each variable.

    States are narrow and parameters, one for each code, may be many times wider. So the head is only fed the states
    of tokens that are asked after, and what was not read costs nothing.

    Attributes:
        states: (B, T, width), of the tokens.
        token: int64 (B, N), the token that aims at each variable; T = none does.
    """

    states: Tensor
    token: Tensor

    @classmethod
    def in_turn(cls, states: Tensor, plan: Plan, length: int) -> "Answers":
        """Token t of the first ``length`` aims at the t-th variable read."""
        step = torch.arange(plan.order.shape[1], device=states.device)
        token = torch.where(step < length, step, states.shape[1]).expand_as(plan.order)
        return cls(states, torch.empty_like(plan.order).scatter(1, plan.order, token))

    def everywhere(self, head: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, N, P): the parameters of all variables, zero where no token aims."""
        params = functional.pad(head(self.states), (0, 0, 0, 1))
        return params.gather(1, wide(self.token, params))

    def at(self, row: Tensor, variable: Tensor, head: Callable[[Tensor], Tensor]) -> Tensor:
        """(H, P): the parameters of the variables (H,) of the rows (H,) alone."""
        token = self.token[row, variable]
        aimed = (token < self.states.shape[1]).unsqueeze(-1)
        return torch.where(aimed, head(self.states[row, token.clamp(max=self.states.shape[1] - 1)]), 0.0)


@dataclass(slots=True)
class Cache:
    """What has been read so far.

    Attributes:
        order: int64 (B, N), the variables in the order they are read.
        place: int64 (B,), index of the token each row read last; it predicts ``order[place]``.
        keys, values: per block (B, H, L, D); entries beyond ``place`` are not yet valid.
        context: the context vector each token gets, if any.
        blanks: int64 (B, N), how many blanks follow the n-th variable of the order; None = none anywhere.
    """

    order: Tensor
    place: Tensor
    keys: list[Tensor]
    values: list[Tensor]
    context: Tensor | None
    blanks: Tensor | None = None

    def at(self, place: Tensor) -> "Cache":
        """The same cache (keys and values shared) with another ``place`` (B,), which may lie past the end."""
        return replace(self, place=place)

    def rows(self, index: Tensor, room: int | None = None) -> "Cache":
        """The cache of the rows ``index`` (R,) alone, copied; with ``room`` (above ``place``), for so many tokens."""
        return Cache(
            self.order[index],
            self.place[index],
            [some_rows(key, index, room) for key in self.keys],
            [some_rows(value, index, room) for value in self.values],
            None if self.context is None else self.context[index],
            None if self.blanks is None else self.blanks[index],
        )


def some_rows(kept: Tensor, index: Tensor, room: int | None) -> Tensor:
    """(R, H, L, D): keys or values (B, H, L, D) of the rows ``index`` (R,), copied; with ``room``, L of them."""
    if room is None or room == kept.shape[2]:
        return kept[index]
    return functional.pad(kept[:, :, :room][index], (0, 0, 0, max(room - kept.shape[2], 0)))


@dataclass(frozen=True, slots=True)
class Window:
    """Where W new tokens go.

    Attributes:
        slots: int64 (B, 1, W, 1), where their keys and values are written.
        own, target: int64 (B, W), the variables they read and predict.
        reach: how many slots are looked at.
        visible: bool (B, 1, W, reach), which of these each of them sees; None = all.
    """

    slots: Tensor
    own: Tensor
    target: Tensor
    reach: int
    visible: Tensor | None

    @classmethod
    def behind(cls, cache: Cache, count: int, *, copies: bool) -> "Window":
        """``count`` tokens right behind what was read: a chain of answers, or one answer and its copies."""
        variables, room = cache.order.shape[1], cache.keys[0].shape[2]
        step = torch.arange(count, device=cache.place.device)
        start = cache.place.unsqueeze(1)
        slots = (start + 1 + step).clamp(max=room - 1)
        reads = start.expand(-1, count) if copies else start + step
        reach = int(slots.max()) + 1 if len(slots) else 1
        visible = None
        # One answer and rows that are equally far, as draws side by side are: attention without a mask is quicker.
        if count > 1 or copies or not len(slots) or int(slots.min()) + 1 < reach:
            slot = torch.arange(reach, device=cache.place.device)
            seen = start if copies else slots
            visible = ((slot <= seen.unsqueeze(2)) | (slot == slots.unsqueeze(2))).unsqueeze(1)
        own = cache.order.gather(1, reads.clamp(max=variables - 1))
        target = cache.order.gather(1, slots.clamp(max=variables - 1))
        return cls(slots[:, None, :, None], own, target, reach, visible)

    def write(self, into: Tensor, new: Tensor) -> Tensor:
        """Put keys or values (B, H, W, D) into their slots of (B, H, L, D); returns the first ``reach`` of them."""
        into.scatter_(2, self.slots.expand_as(new), new.to(into.dtype))
        return into[:, :, : self.reach]
