"""An ensemble of MLPs that start from closed-form conditionals: the network for tables of up to some ten thousand rows.

On a few hundred rows a network alone loses to a joint Gaussian, and the Gaussian loses wherever relations bend. So each
member m begins where a joint fitted beforehand (``networks.joint``) already is, with center c_j and spread s_j of every
unknown variable j given the known ones, and learns only the rest, h = MLP_m(known values, c, s):

    numbers   weights of the spikes     [log share_a - (v_a - c_j)^2 / 2 (s_j^2 + 0.05^2)  + h] sharpen
              weights of K components   [log share of the rest - log K                     + h] sharpen
              centers                   c_j + s_j (spread_k + h)
              scales                    0.7 s_j e^h widen
    codes     logits                    [log p_j(code) of the joint                       + h] sharpen

which a ``SpikedMixture`` or ``Categorical`` reads. At h = 0 a member *is* its joint. Numbers enter as themselves and as
T bins between quantiles (``networks.bins``). The answer is the pool of all members and, with h = 0, of the joints
themselves, with weights for each variable that a recipe sets (``set_weights``), and so are ``widen`` and ``sharpen``,
factors on its scales and logits. All members are computed in one batched product.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyfill.checks import refuse, require_count, require_probability
from anyfill.networks.network import Unspecified
from anyfill.tables.batched import Batched
from anyfill.tables.bins import in_bins, quantile_bins
from anyfill.tables.expansion import Expansion
from anyfill.tables.factors import Factors
from anyfill.tables.joint import Joint
from anyfill.tables.residual_cells import head_at, log_chances, numbers_at
from anyfill.tables.residual_head import Head, Start, head_layout, read_center, read_head
from anyfill.tables.runs import condition_runs


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
        members: M, spread evenly over the joints.
        bins: T.
        width, depth, dropout: of each member.
        rank: the first joint is one Gaussian by so many factors; 0 = with a full covariance, as the others.
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

    def __post_init__(self) -> None:
        self.sizes, self.joints = tuple(self.sizes), tuple(self.joints)
        self.spikes, self.shares = (tuple(map(tuple, part)) for part in (self.spikes, self.shares))
        for name in ("components", "member_outputs", "members", "width", "depth"):
            require_count(name, getattr(self, name))
        for name in ("bins", "rank"):
            require_count(name, getattr(self, name), minimum=0)
        require_probability("dropout", self.dropout)
        if not self.joints or self.members % len(self.joints):
            raise refuse("members", expected=f"a multiple of the {len(self.joints)} joints", got=self.members)
        if 0 in self.joints and len(self.joints) > 1:
            raise refuse("joints", expected="(0,) alone, or numbers of Gaussians", got=self.joints)
        if self.rank and self.joints[:1] != (1,):
            raise refuse("joints", expected="1 first, where there are factors", got=self.joints)
        super().__init__()
        self.expansion = Expansion(self.sizes)
        features, numbers = self.expansion.features, self.expansion.numbers
        for number, count in enumerate(self.joints):
            if self.rank and number == 0:
                self._keep("means_0", torch.zeros(features))
                self._keep("loadings_0", torch.zeros(features, self.rank))
                self._keep("noise_0", torch.ones(features))
                continue
            self._keep(f"log_weights_{number}", torch.zeros(count))
            self._keep(f"means_{number}", torch.zeros(count, features))
            self._keep(f"covariances_{number}", torch.eye(features).repeat(count, 1, 1))
        self._keep("edges", torch.zeros(numbers, self.bins))
        self._keep("reach", torch.ones(numbers, self.bins))
        self._keep("pool", torch.zeros(self.variables, self.candidates))
        self._keep("widen", torch.zeros(self.variables, 1))
        self._keep("sharpen", torch.zeros(self.variables, 1))
        self.register_load_state_dict_pre_hook(_complete)
        self._has_spikes = any(self.spikes)
        logits, other = max(map(len, self.spikes)) + self.components, 2 * self.components
        alike = not self.has_codes and len({len(some) for some in self.spikes}) == 1
        has_room = logits + other < self.member_outputs
        self._shared = [logits, self.components, self.components] if alike and not has_room else None
        layout = head_layout(self.sizes, self.spikes, self.shares, self.components, self.member_outputs)
        for name, buffer in zip(layout._fields, layout):
            self._keep(name, buffer, persistent=False)
        inputs = features + self.variables + numbers * self.bins
        if self.has_joints:
            inputs += features + numbers + max(self.joints)
        self.enter = Batched(self.members, inputs, self.width)
        self.up = nn.ModuleList(Batched(self.members, self.width, self.width) for _ in range(self.depth))
        self.down = nn.ModuleList(Batched(self.members, self.width, self.width, zero=True) for _ in range(self.depth))
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
    def candidates(self) -> int:
        """How many answers are pooled: M + J, or M without joints."""
        return self.members + (len(self.joints) if self.has_joints else 0)

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
        starts, learned = self._heard(x, known)
        each = self.members // len(self.joints)
        answers = [self.read(start, part) for start, part in zip(starts, learned.split(each))]
        if self.has_joints:
            answers += [self.read(start, None).unsqueeze(0) for start in starts]
        members = torch.cat(answers).movedim(0, 2).flatten(2)
        return torch.cat([members, self.get_buffer("pool").expand(len(x), -1, -1)], -1)

    def at(self, x: Tensor, known: Tensor, row: Tensor, variable: Tensor) -> Tensor:
        """(H, outputs): what ``forward`` says of the variables ``variable`` (H,) of the rows ``row`` (H,) alone."""
        starts, learned = self._heard(x, known, (row, variable))
        each = self.members // len(self.joints)
        wanted = learned.flatten(1, 2).index_select(1, row * self.variables + variable)  # (M, H, P)
        head = head_at(self._head(), variable)
        begun = [(*numbers_at(start, self.expansion.place, row, variable), start.log_chances) for start in starts]
        answers = [read_head(*one, part, head) for one, part in zip(begun, wanted.split(each))]
        if self.has_joints:
            answers += [read_head(*one, None, head).unsqueeze(0) for one in begun]
        members = torch.cat(answers).movedim(0, 1).flatten(1)
        return torch.cat([members, self.get_buffer("pool").index_select(0, variable)], -1)

    def centers_at(self, x: Tensor, known: Tensor, row: Tensor, variable: Tensor) -> Tensor | None:
        """(H,): of ``at`` the center of each cell without the rest, bit for bit; None where there are several."""
        if self._shared != [1, 1, 1] or self.members > 1 or self.has_joints or self._has_spikes:
            return None
        _, learned = self._heard(x, known)
        mean = learned.flatten().index_select(0, (row * self.variables + variable) * self.member_outputs + 1)
        center = self.get_buffer("plain_center").index_select(0, variable)
        variance = self.get_buffer("plain_variance").index_select(0, variable)
        return read_center(center, variance.clamp(min=1e-4).sqrt(), mean, self.get_buffer("value")[0, 1])

    def _heard(
        self, x: Tensor, known: Tensor, cells: tuple[Tensor, Tensor] | None = None
    ) -> tuple[list[Start], Tensor]:
        """Each joint's start (see ``start``), and what each member adds, (M, B, N, P)."""
        x = torch.where(known, x, torch.zeros_like(x))
        starts = [self.start(x, known, self.joint(number), cells) for number in range(len(self.joints))]
        each = self.members // len(self.joints)
        inputs = torch.stack([self.told(x, known, start) for start in starts])
        return starts, self.learned(inputs if each == 1 else inputs.repeat_interleave(each, 0))

    def start(
        self, x: Tensor, known: Tensor, joint: Joint | Factors, cells: tuple[Tensor, Tensor] | None = None
    ) -> Start:
        """Where a joint (one, or one for each row) says the variables are, given the known ones of x (B, N).

        ``cells``: rows and variables (H,) whose log-chances (H, P) are wanted, instead of those of all codes.
        """
        features, told = (
            (self.expansion.expand(x), self.expansion.spread(known)) if self.has_codes else (x.float(), known)
        )
        if not self.has_joints:
            center, variance = (self.get_buffer(f"plain_{name}").expand(len(x), -1) for name in ("center", "variance"))
            features = torch.where(told, features, center) if self.has_codes else features
            share = features.new_zeros(len(x), 0)
        else:
            answer = condition_runs(joint, features, told)
            center, variance, share = answer.center, answer.variance, answer.log_share.exp()
            features = center
        real = self.expansion.real
        own, variance = (center[:, real], variance[:, real]) if self.has_codes else (center, variance)
        feature, role, least = (self.get_buffer(name) for name in ("code_feature", "role", "least"))
        chances = log_chances(center, feature, role, least, cells) if self.has_codes else None
        return Start(own, variance.clamp(min=1e-4).sqrt(), chances, share, features, told)

    def told(self, x: Tensor, known: Tensor, start: Start) -> Tensor:
        """(B, F): what the members are told of values x (B, N), 0 where not known."""
        # x is 0 where it is not known, but a code of 0 is a feature of 1.
        values = (
            torch.where(start.told, start.features, torch.zeros_like(start.features)) if self.has_codes else x.float()
        )
        told = [values, known.to(values.dtype)]
        is_known = known[:, self.expansion.number_index]
        if self.bins:
            real = x[:, self.expansion.number_index]
            told.append(in_bins(real, is_known, self.get_buffer("edges"), self.get_buffer("reach")))
        if self.has_joints:
            told.append(torch.where(start.told, torch.zeros_like(values), start.features))
            told.append(torch.where(is_known, 0.0, start.scale.log()))
            told.append(functional.pad(start.share, (0, max(self.joints) - start.share.shape[1])))
        return torch.cat(told, -1)

    def learned(self, inputs: Tensor) -> Tensor:
        """(M, b, N, P): what each member adds, from inputs (M, b, F)."""
        h = self.enter(inputs)
        for up, down in zip(self._layers(self.up), self._layers(self.down)):
            inner = functional.silu(up(functional.rms_norm(h, (self.width,))))
            h = h + down(functional.dropout(inner, self.dropout, self.training))
        h = functional.dropout(functional.rms_norm(h, (self.width,)), self.dropout, self.training)
        return self.leave(h).unflatten(-1, (self.variables, self.member_outputs))

    def read(self, start: Start, learned: Tensor | None) -> Tensor:
        """(..., b, N, P): parameters for the likelihood, from a start and what was learned beyond it (..., b, N, P)."""
        place = self.expansion.place  # (N,), the number among the numbers; 0 for codes, whose answer is not used
        if self.expansion.numbers:
            center, scale = start.center[:, place].unsqueeze(-1), start.scale[:, place].unsqueeze(-1)
        else:
            center = scale = start.features.new_ones(len(start.features), self.variables, 1)
        return read_head(center, scale, start.log_chances, learned, self._head())

    def _head(self) -> Head:
        """The head of all variables (N, P)."""
        role, value, log_start = (self.get_buffer(name) for name in ("role", "value", "log_start"))
        widen, sharpen = (self.get_buffer(name) for name in ("widen", "sharpen"))
        return Head(role, value, log_start, widen, sharpen, self._has_spikes, self._shared)

    def _keep(self, name: str, value: Tensor, persistent: bool = True) -> None:
        self.register_buffer(name, value, persistent=persistent)

    @staticmethod
    def _layers(layers: nn.ModuleList) -> Sequence[Any]:
        return list(layers)


def _complete(module: nn.Module, state: dict[str, Any], prefix: str, *_: object) -> None:
    """Weights that were saved before there was a factor on logits mean a factor of 1."""
    state.setdefault(f"{prefix}sharpen", torch.zeros_like(module.get_buffer("sharpen")))
