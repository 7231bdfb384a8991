"""An ensemble of MLPs that starts from closed-form conditionals: the network for tables of up to ten thousand rows.

On a few hundred rows a network alone loses to a joint Gaussian, and the Gaussian loses wherever relations bend. So each
member m begins where a joint fitted beforehand (``gaussians``) already is, with center c_j and spread s_j of every
unknown variable j given the known ones, and learns only the rest, h = MLP_m(known values, c, s):

    numbers   weights of the spikes     [log share_a - (v_a - c_j)^2 / 2 (s_j^2 + 0.05^2)  + h] sharpen
              weights of K components   [log share of the rest - log K                     + h] sharpen
              centers                   c_j + s_j (spread_k + h)
              scales                    0.7 s_j e^h widen
    codes     logits                    [log p_j(code) of the joint                       + h] sharpen

which a ``SpikedMixture`` or ``Categorical`` reads. At h = 0 a member *is* its joint. Numbers enter as themselves and as
T bins between quantiles (``piecewise_linear``). The answer is the pool of all members and, with h = 0, of the joints
themselves, with weights for each variable that a recipe sets (``set_weights``), and so are ``widen`` and ``sharpen``,
factors on its scales and logits. All members are computed in one batched product.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse, require_count, require_probability
from anyfill.networks.embed import Cycle, cycle_owners
from anyfill.networks.network import Unspecified
from anyfill.tables.conditioning import condition_each
from anyfill.tables.gaussians import Expansion, Factors, Joint, condition
from anyfill.tables.piecewise_linear import in_bins, quantile_bins
from anyfill.tables.residual_head import Cells, CellStart, Head, Start, head_layout, log_chances, read_center

_EVERY = slice(None)


@dataclass(eq=False, repr=False)
class GaussianResidualEnsemble(nn.Module, Unspecified):
    """(B, N, outputs) from N variables: the pool of M members and J joints, for ``Pooled(Mixed(...), M + J, True)``.

    Attributes:
        sizes: number of codes of each variable, 0 = a number.
        spikes: for each variable where its values repeat (own likelihood's spikes); empty for codes.
        shares: for each variable how often each spike, or each code, is seen.
        min_scales: for each variable the floor of its likelihood's scales.
        components: K Gaussians of each number.
        member_outputs: P, the width of the ``Mixed`` that reads one member.
        joints: for each joint its number of Gaussians; 0 = the marginals only, for tables too large for one.
        members: M, spread evenly over the joints; 0 = the joints alone.
        bins: T.
        width, depth, dropout: of each member.
        rank: the first joint is one Gaussian by so many factors; 0 = with a full covariance, as the others.
        cycles: of numbers that go round.
    """

    sizes: tuple[int, ...]
    spikes: tuple[tuple[float, ...], ...]
    shares: tuple[tuple[float, ...], ...]
    min_scales: tuple[float, ...]
    components: int
    member_outputs: int
    joints: tuple[int, ...] = (1,)
    members: int = 8
    bins: int = 12
    width: int = 64
    depth: int = 2
    dropout: float = 0.1
    rank: int = 0
    cycles: tuple[Cycle, ...] = ()

    def __post_init__(self) -> None:
        self.sizes, self.joints = tuple(self.sizes), tuple(self.joints)
        self.spikes, self.shares = (tuple(map(tuple, part)) for part in (self.spikes, self.shares))
        for name in ("components", "member_outputs", "width", "depth"):
            require_count(name, getattr(self, name))
        for name in ("members", "bins", "rank"):
            require_count(name, getattr(self, name), minimum=0)
        require_probability("dropout", self.dropout)
        if not self.joints or self.members % len(self.joints):
            raise refuse("members", expected=f"a multiple of the {len(self.joints)} joints", got=self.members)
        if 0 in self.joints and len(self.joints) > 1:
            raise refuse("joints", expected="(0,) alone, or numbers of Gaussians", got=self.joints)
        if self.rank and self.joints[:1] != (1,):
            raise refuse("joints", expected="1 first, where there are factors", got=self.joints)
        super().__init__()
        self.expansion = Expansion(self.sizes, self.cycles)
        features, numbers = self.expansion.features, self.expansion.numbers
        for number, count in enumerate(self.joints):
            blank = Joint(torch.zeros(count), torch.zeros(count, features), torch.eye(features).repeat(count, 1, 1))
            if self.rank and number == 0:
                blank = Factors(torch.zeros(features), torch.zeros(features, self.rank), torch.ones(features))
            for name, part in zip(blank._fields, blank):
                self.register_buffer(f"{name}_{number}", part)
        self.register_buffer("edges", torch.zeros(numbers, self.bins))
        self.register_buffer("reach", torch.ones(numbers, self.bins))
        self.register_buffer("pool", torch.zeros(self.variables, self.candidates))
        for name in ("widen", "sharpen"):
            self.register_buffer(name, torch.zeros(self.variables, 1))
        self.register_load_state_dict_pre_hook(_complete)
        self._has_spikes = any(self.spikes)
        logits, other = max(map(len, self.spikes)) + self.components, 2 * self.components
        alike = not self.has_codes and len({len(some) for some in self.spikes}) == 1
        has_room = logits + other < self.member_outputs
        self._shared = [logits, self.components, self.components] if alike and not has_room else None
        layout = head_layout(
            self.sizes,
            self.spikes,
            self.shares,
            self.components,
            self.member_outputs,
            len(cycle_owners(self.cycles)),
        )
        for name, buffer in zip(layout._fields, layout):
            self.register_buffer(name, buffer, persistent=False)
        inputs = features + self.variables + numbers * self.bins
        if self.has_joints:
            inputs += features + numbers + max(self.joints)
        self.enter = Batched(self.members, inputs, self.width)
        square = self.members, self.width, self.width
        self.up = nn.ModuleList(Batched(*square) for _ in range(self.depth))
        self.down = nn.ModuleList(Batched(*square, zero=True) for _ in range(self.depth))
        self.leave = Batched(self.members, self.width, self.variables * self.member_outputs, zero=True)

    @property
    def variables(self) -> int:
        """N."""
        return len(self.sizes)

    @property
    def has_joints(self) -> bool:
        """False if the members start from the marginals only."""
        return self.joints != (0,)

    @property
    def has_codes(self) -> bool:
        """True if a variable is no number."""
        return self.expansion.numbers < self.variables

    @property
    def each(self) -> int:
        """The members of each group: M / J."""
        return self.members // len(self.joints)

    @property
    def candidates(self) -> int:
        """How many answers are pooled: M + J, or M without joints; of neither, the marginals alone."""
        return self.members + (len(self.joints) if self.has_joints or not self.members else 0)

    @property
    def outputs(self) -> int:
        """(M + J) (P + 1): the members' parameters, then the joints' own, then the log-weights."""
        return self.candidates * (self.member_outputs + 1)

    @property
    def context_width(self) -> int:
        """0: none is taken."""
        return 0

    def set_joint(self, number: int, joint: Joint | Factors) -> None:
        """Start members of group ``number`` from this joint."""
        for name, part in zip(joint._fields, joint):
            self.get_buffer(f"{name}_{number}").copy_(part)

    def set_bins(self, x: Tensor, present: Tensor) -> None:
        """Put the bins of each number between quantiles of its present values (B, N)."""
        if self.bins:
            number = self.expansion.number_index
            for name, part in zip(("edges", "reach"), quantile_bins(x[:, number], present[:, number], self.bins)):
                self.get_buffer(name).copy_(part)

    def set_weights(self, log_weights: Tensor, widen: Tensor, sharpen: Tensor | None = None) -> None:
        """For each variable the weights (N, M + J) in its pool, and factors (N,) on its scales and logits (1)."""
        self.get_buffer("pool").copy_(log_weights)
        self.get_buffer("widen").copy_(widen.log().unsqueeze(1))
        self.get_buffer("sharpen").copy_(widen.new_zeros(1) if sharpen is None else sharpen.log().unsqueeze(1))

    def joint(self, number: int) -> Joint | Factors:
        """The joint of a group, as it is kept."""
        if self.rank and number == 0:
            return Factors(*(self.get_buffer(f"{name}_0") for name in Factors._fields))
        return Joint(*(self.get_buffer(f"{name}_{number}") for name in Joint._fields))

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, outputs): every variable given the known ones (B, N)."""
        members = self.answers(*self.begun(x, known)).movedim(0, 2).flatten(2)
        return torch.cat([members, self.get_buffer("pool").expand(len(x), -1, -1)], -1)

    def at(self, x: Tensor, known: Tensor, row: Tensor, variable: Tensor) -> Tensor:
        """(H, outputs): what ``forward`` says of the variables ``variable`` (H,) of the rows ``row`` (H,) alone."""
        members = self.answers_at(x, known, row, variable)[1].movedim(0, 1).flatten(1)
        return torch.cat([members, self.get_buffer("pool").index_select(0, variable)], -1)

    def answers_at(self, x: Tensor, known: Tensor, row: Tensor, variable: Tensor) -> tuple[list[Start], Tensor]:
        """Each joint's start, and (M + J, H, P): of ``at`` the answers of members and joints, without their weights."""
        starts, learned = self.begun(x, known, (row, variable))
        wanted = learned.flatten(1, 2).index_select(1, row * self.variables + variable)  # (M, H, P)
        return starts, self.answers(starts, wanted, (row, variable))

    def at_start(self, starts: list[Start], row: Tensor, variable: Tensor) -> Tensor:
        """(J, H, P): what starts (made for these cells) say by themselves."""
        head = self._head().at(variable)
        cells = row, variable
        begun = [(*start.numbers(self.expansion.place, cells), start.log_chances) for start in starts]
        return torch.stack([head.read(*one, None) for one in begun])

    def centers_at(self, x: Tensor, known: Tensor, row: Tensor, variable: Tensor) -> Tensor | None:
        """(H,): of ``at`` the center of each cell without the rest, bit for bit; None where there are several."""
        if self._shared != [1, 1, 1] or self.members > 1 or self.has_joints or self._has_spikes:
            return None
        _, learned = self.begun(x, known)
        mean = learned.flatten().index_select(0, (row * self.variables + variable) * self.member_outputs + 1)
        center = self.get_buffer("plain_center").index_select(0, variable)
        variance = self.get_buffer("plain_variance").index_select(0, variable)
        return read_center(center, variance.clamp(min=1e-4).sqrt(), mean, self.get_buffer("value")[0, 1])

    def start(self, x: Tensor, known: Tensor, joint: Joint | Factors, cells: Cells | None = None) -> Start:
        """Where a joint (one, or one for each row) says the variables are, given the known ones of x (B, N).

        ``cells``: those whose log-chances (H, P) are wanted, instead of those of all codes.
        """
        features, spread = x.float(), known
        plain = self.expansion.is_plain
        if not plain:
            features, spread = self.expansion.expand(x), self.expansion.spread(known)
        if self.has_joints:
            features, variance, log_share, _ = condition(joint, features, spread)
            center, share = features, log_share.exp()
        else:
            center, variance = (self.get_buffer(f"plain_{name}").expand(len(x), -1) for name in ("center", "variance"))
            features = features if plain else torch.where(spread, features, center)
            share = features.new_zeros(len(x), 0)
        chances, own = None, center
        if not plain:
            real = self.expansion.real
            own, variance = center[:, real], variance[:, real]
        if self.has_codes:
            layout = (self.get_buffer(name) for name in ("code_feature", "role", "floor"))
            chances = log_chances(center, *layout, cells=cells)
        return Start(own, variance.clamp(min=1e-4).sqrt(), chances, share, features, spread)

    def start_each(self, x: Tensor, known: Tensor, joint: Joint | Factors) -> Start:
        """``start`` (to rounding) for many rows that know different variables, without the log-chances of codes."""
        if not self.has_joints:
            return replace(self.start(x, known, joint), log_chances=None)
        plain = self.expansion.is_plain
        features = x.float() if plain else self.expansion.expand(x)
        spread = known if plain else self.expansion.spread(known)
        each = isinstance(joint, Joint)
        said = condition_each(joint, features, spread) if each else condition(joint, features, spread)
        features, variance, log_share, _ = said
        real = self.expansion.real
        own, scale = features[:, real], variance[:, real].clamp(min=1e-4).sqrt()
        return Start(own, scale, None, log_share.exp(), features, spread)

    def inputs(self, x: Tensor, known: Tensor, start: Start) -> Tensor:
        """(B, F): what the members see of values x (B, N), 0 where not known."""
        # x is 0 where it is not known, but a code of 0 is a feature of 1.
        nothing = torch.zeros_like(start.features)
        values = x.float() if self.expansion.is_plain else torch.where(start.known, start.features, nothing)
        seen = [values, known.to(values.dtype)]
        is_known = known[:, self.expansion.number_index]
        if self.bins:
            real = x[:, self.expansion.number_index]
            seen.append(in_bins(real, is_known, self.get_buffer("edges"), self.get_buffer("reach")))
        if self.has_joints:
            seen.append(torch.where(start.known, nothing, start.features))
            seen.append(torch.where(is_known, 0.0, start.scale.log()))
            seen.append(functional.pad(start.share, (0, max(self.joints) - start.share.shape[1])))
        return torch.cat(seen, -1)

    def learned(self, inputs: Tensor, members: slice = _EVERY) -> Tensor:
        """(M, b, N, P): what each member, or each of some, adds, from inputs (M, b, F)."""
        h = self.enter(inputs, members)
        for up, down in zip(self.up, self.down):
            inner = functional.silu(up(functional.rms_norm(h, (self.width,)), members))
            h = h + down(functional.dropout(inner, self.dropout, self.training), members)
        h = functional.dropout(functional.rms_norm(h, (self.width,)), self.dropout, self.training)
        return self.leave(h, members).unflatten(-1, (self.variables, self.member_outputs))

    def read(self, start: Start, learned: Tensor | None) -> Tensor:
        """(..., b, N, P): parameters for the likelihood, from a start and what was learned beyond it (..., b, N, P)."""
        return self._head().read(*start.numbers(self.expansion.place), start.log_chances, learned)

    def read_at(self, start: Start, learned: Tensor | None, row: Tensor, variable: Tensor) -> Tensor:
        """(H, P): what ``read`` says of the variables ``variable`` (H,) of the rows ``row`` (H,) alone."""
        own = None if learned is None else self.learned_at(learned, row, variable)
        return self.read_cells(self.start_at(start, row, variable), own, variable)

    def start_at(self, start: Start, row: Tensor, variable: Tensor) -> CellStart:
        """Center and scale (H, 1) of some cells, and log-chances (H, P) if there are codes."""
        chances = None
        if self.has_codes:
            layout = (self.get_buffer(name) for name in ("code_feature", "role", "floor"))
            chances = log_chances(start.features, *layout, cells=(row, variable))
        return CellStart(*start.numbers(self.expansion.place, (row, variable)), chances)

    def learned_at(self, learned: Tensor, row: Tensor, variable: Tensor) -> Tensor:
        """(H, P): of what was learned (b, N, P) that of some cells."""
        return learned.flatten(0, 1).index_select(0, row * self.variables + variable)

    def read_cells(self, start: CellStart, learned: Tensor | None, variable: Tensor) -> Tensor:
        """(H, P): parameters of some cells, from where they start and what was learned beyond it (H, P)."""
        return self._head().at(variable).read(*start, learned)

    def begun(self, x: Tensor, known: Tensor, cells: Cells | None = None) -> tuple[list[Start], Tensor]:
        """Each joint's start (see ``start``), and what each member adds, (M, B, N, P)."""
        x = torch.where(known, x, torch.zeros_like(x))
        starts = [self.start(x, known, self.joint(number), cells) for number in range(len(self.joints))]
        if not self.members:
            return starts, x.new_zeros(0, *x.shape, self.member_outputs, dtype=torch.float32)
        inputs = torch.stack([self.inputs(x, known, start) for start in starts])
        return starts, self.learned(inputs if self.each == 1 else inputs.repeat_interleave(self.each, 0))

    def answers(self, starts: list[Start], learned: Tensor, cells: Cells | None = None) -> Tensor:
        """(M + J, ..., P): the parameters of all members, then of the joints by themselves."""
        head = self._head() if cells is None else self._head().at(cells[1])
        begun = [(*start.numbers(self.expansion.place, cells), start.log_chances) for start in starts]
        parts = learned.split(self.each) if self.members else ()
        answers = [head.read(*one, part) for one, part in zip(begun, parts)]
        if self.has_joints or not self.members:
            answers += [head.read(*one, None).unsqueeze(0) for one in begun]
        return torch.cat(answers)

    def _head(self) -> Head:
        """The head of all variables (N, P)."""
        parts = (self.get_buffer(name) for name in ("role", "value", "log_start", "widen", "sharpen"))
        return Head(*parts, has_spikes=self._has_spikes, shared=self._shared)


def _complete(module: nn.Module, state: dict[str, Any], prefix: str, *_: object) -> None:
    """Weights that were saved before there was a factor on logits mean a factor of 1."""
    state.setdefault(f"{prefix}sharpen", torch.zeros_like(module.get_buffer("sharpen")))


class Batched(nn.Module):
    """M linear maps at once: (M, b, inputs) -> (M, b, outputs)."""

    def __init__(self, members: int, inputs: int, outputs: int, zero: bool = False) -> None:
        super().__init__()
        weight = torch.zeros(members, inputs, outputs)
        self.weight = nn.Parameter(weight if zero else nn.init.normal_(weight, std=1 / math.sqrt(inputs)))
        self.bias = nn.Parameter(torch.zeros(members, 1, outputs))

    def forward(self, h: Tensor, members: slice = _EVERY) -> Tensor:
        """That of all maps, or of some on as many parts."""
        return torch.baddbmm(self.bias[members], h, self.weight[members])
