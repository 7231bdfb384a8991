"""The Ising model: exact conditionals of any block, differentiable in its couplings and fields (GMLM definition 12).

With spins s_i = 2 x_i - 1 and T(x) the sufficient statistics,

    log p(x) = sum_i h_i s_i + c · sum_{ij in E} J_ij s_i s_j - log Z  =  theta · T(x) + fixed fields - log Z

c = 1 counts a pair once (eq. 5), c = 2 twice, as the sum over i != j of eq. (6) does when it runs over ordered pairs.
The conditional of a block K sees the rest through the field it makes,

    p(x_K | x_-K)  ∝  exp( sum_{i in K} (h_i + c sum_{j not in K} J_ij s_j) s_i  +  c sum_{ij in K} J_ij s_i s_j )

so it costs 2^|K| whatever N is; all of it is float64. As a network it answers p(x_j | known) for every j by summing
over the unknown. With couplings alone as parameters (``free_fields=False``) the fields stay what they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Literal, TypedDict, Unpack

import torch
from torch import Generator, Tensor, nn

from anyfill.checks import refuse, require_count, require_shape
from anyfill.networks.exact import EnumeratedJoint, all_codes, require_exact, to_spins
from anyfill.networks.network import Unspecified

Pairs = Literal["once", "twice"]
Edges = tuple[tuple[int, int], ...]


class Kind(TypedDict, total=False):
    """What every way to make a model takes beside its own arguments; see ``Ising``."""

    pairs: Pairs
    free_fields: bool


@dataclass(eq=False, repr=False)
class Ising(nn.Module, Unspecified):
    """(B, N, 2) exact conditional log-probabilities; satisfies ``Network``. It is built with all parameters zero.

    Attributes:
        variables: N.
        edges: pairs (i, j) with i < j that have a coupling.
        pairs: whether the exponent counts each pair once or twice.
        free_fields: whether the fields are parameters to be fitted; otherwise they are fixed.
    """

    variables: int
    edges: Edges
    pairs: Pairs = "once"
    free_fields: bool = True
    context_width = 0

    def __post_init__(self) -> None:
        require_count("variables", self.variables)
        if self.pairs not in ("once", "twice"):
            raise refuse("pairs", expected='"once" or "twice"', got=repr(self.pairs))
        for i, j in self.edges:
            if not 0 <= i < j < self.variables:
                raise refuse("edge", expected=f"(i, j) with 0 <= i < j < {self.variables}", got=(i, j))
        if len(set(self.edges)) != len(self.edges):
            raise refuse("edges", expected="each pair once", got="a pair more than once")
        super().__init__()
        self.couplings = nn.Parameter(torch.zeros(len(self.edges), dtype=torch.float64))
        fields = torch.zeros(self.variables, dtype=torch.float64)
        if self.free_fields:
            self.fields = nn.Parameter(fields)
        else:
            self.register_buffer("fields", fields)
        ends = torch.tensor(self.edges, dtype=torch.int64).reshape(-1, 2)
        self.register_buffer("ends", ends, persistent=False)
        self.called(f"N = {self.variables}, {len(self.edges)} edges")

    # ---- which model

    @classmethod
    def from_matrix(cls, couplings: Tensor, fields: Tensor, **kind: Unpack[Kind]) -> "Ising":
        """From a symmetric matrix J (N, N) with zero diagonal and fields h (N,); an edge wherever J is not zero."""
        couplings, fields = couplings.double(), fields.double()
        require_shape("fields", fields, (None,))
        require_shape("couplings", couplings, (len(fields), len(fields)))
        require_finite("couplings", couplings)
        require_finite("fields", fields)
        apart = (couplings - couplings.T).abs()
        if bool((apart > 0).any()):
            i, j = (int(place) for place in (apart == apart.max()).nonzero()[0])
            got = f"{couplings[i, j].item():g} at ({i}, {j}) and {couplings[j, i].item():g} at ({j}, {i})"
            raise refuse("couplings", expected="a symmetric matrix", got=got)
        if bool((couplings.diagonal() != 0).any()):
            raise refuse("diagonal of couplings", expected="zeros (s_i s_i = 1 is a constant)", got="others")
        edges = tuple((int(i), int(j)) for i, j in couplings.triu(1).nonzero())
        ising = cls(len(fields), edges, **kind)
        ends = ising.get_buffer("ends")
        return ising.with_parameters(couplings[ends[:, 0], ends[:, 1]], fields)

    @classmethod
    def complete(cls, variables: int, coupling: float, field: float = 0.0, **kind: Unpack[Kind]) -> "Ising":
        """Every pair coupled alike."""
        require_count("variables", variables)
        edges = tuple(combinations(range(variables), 2))
        return cls._alike(variables, edges, coupling, field, f"complete graph, N = {variables}", kind)

    @classmethod
    def clique(
        cls, variables: int, size: int, coupling: float, field: float | Sequence[float] = 0.0, **kind: Unpack[Kind]
    ) -> "Ising":
        """Eq. (6): the first ``size`` variables are coupled to each other, the others are alone."""
        require_count("size of the clique", size, minimum=1, maximum=variables)
        edges = tuple(combinations(range(size), 2))
        return cls._alike(variables, edges, coupling, field, f"clique of {size} among N = {variables} spins", kind)

    @classmethod
    def lattice(
        cls,
        height: int,
        width: int,
        coupling: float,
        field: float = 0.0,
        *,
        periodic: bool = False,
        **kind: Unpack[Kind],
    ) -> "Ising":
        """A grid, row by row, neighbours coupled; periodic = a torus (each side then needs at least 3)."""
        require_count("height", height)
        require_count("width", width)
        if periodic and min(height, width) < 3:
            raise refuse("side of a periodic lattice", expected="at least 3", got=min(height, width))
        edges: set[tuple[int, int]] = set()
        for i, j in product(range(height), range(width)):
            for a, b in ((i + 1, j), (i, j + 1)):
                if periodic or (a < height and b < width):
                    one, other = i * width + j, a % height * width + b % width
                    edges.add((min(one, other), max(one, other)))
        words = f"{'torus' if periodic else 'lattice'} {height} x {width}, N = {height * width}"
        return cls._alike(height * width, tuple(sorted(edges)), coupling, field, words, kind)

    @classmethod
    def random(
        cls,
        variables: int,
        *,
        generator: Generator,
        coupling_scale: float = 0.5,
        field_scale: float = 0.5,
        density: float = 1.0,
        **kind: Unpack[Kind],
    ) -> "Ising":
        """Each pair is an edge with probability ``density``; normal couplings and fields of these scales."""
        listed = list(combinations(range(variables), 2))
        kept = torch.rand(len(listed), generator=generator, dtype=torch.float64) < density
        ising = cls(variables, tuple(edge for edge, keep in zip(listed, kept.tolist()) if keep), **kind)
        couplings = coupling_scale * torch.randn(len(ising.edges), generator=generator, dtype=torch.float64)
        fields = field_scale * torch.randn(variables, generator=generator, dtype=torch.float64)
        scales = f"{coupling_scale:g} and {field_scale:g}"
        words = f"random couplings and fields of scales {scales}, N = {variables}"
        return ising.with_parameters(couplings, fields).called(words)

    @classmethod
    def _alike(
        cls, variables: int, edges: Edges, coupling: float, field: float | Sequence[float], graph: str, kind: Kind
    ) -> "Ising":
        """One coupling for all edges; one field for all variables, or one for each."""
        ising, fields = cls(variables, edges, **kind), torch.as_tensor(field, dtype=torch.float64)
        ising.with_parameters(
            torch.full((len(edges),), coupling, dtype=torch.float64),
            fields.expand(variables) if fields.dim() == 0 else fields,
        )
        h = f"{float(fields):g}" if fields.dim() == 0 else "one for each spin"
        return ising.called(f"{graph}, J = {coupling:g}, h = {h}")

    def with_parameters(self, couplings: Tensor, fields: Tensor | None = None) -> "Ising":
        """Set couplings (E,) and, where given, fields (N,), in place; returns the model itself."""
        for name, values, target in (("couplings", couplings, self.couplings), ("fields", fields, self.fields)):
            if values is None:
                continue
            require_shape(name, values, tuple(target.shape))
            require_finite(name, values)
            with torch.no_grad():
                target.copy_(values)
        return self.called(f"N = {self.variables}, {len(self.edges)} edges")

    def with_fixed_fields(self) -> "Ising":
        """A new model, the same but that its fields are not parameters: couplings alone are fitted."""
        fixed = Ising(self.variables, self.edges, self.pairs, free_fields=False)
        fixed.with_parameters(self.couplings.detach(), self.fields.detach()).words = self.words
        return fixed

    def called(self, words: str) -> "Ising":
        """Give the model a few words (``words``) for titles, such as ``complete graph, N = 4, J = 0.3, h = 0``."""
        self.words = words + (", pairs twice" if self.pairs == "twice" else "")
        return self

    def __repr__(self) -> str:
        return f"Ising({self.words})"

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the words, and all parameters."""
        return {
            "description": self.words,
            "variables": self.variables,
            "pairs": self.pairs,
            "edges": [list(edge) for edge in self.edges],
            "couplings": self.couplings.tolist(),
            "fields": self.fields.tolist(),
        }

    # ---- parameters and statistics

    @property
    def count(self) -> float:
        """c: how often the exponent counts a pair."""
        return 1.0 if self.pairs == "once" else 2.0

    @property
    def theta(self) -> Tensor:
        """(P,): couplings, then the fields if they are free; with its gradient."""
        return torch.cat([self.couplings, self.fields]) if self.free_fields else self.couplings

    @property
    def interaction(self) -> Tensor:
        """(N, N), symmetric: c J, so that h + interaction @ s is the field on each spin; with its gradient."""
        ends = self.get_buffer("ends")
        half = self.couplings.new_zeros(self.variables, self.variables)
        half = half.index_put((ends[:, 0], ends[:, 1]), self.count * self.couplings)
        return half + half.T

    def statistics(self, x: Tensor) -> Tensor:
        """float64 (B, P): T(x), so that theta · T(x) (+ fixed fields) is the exponent."""
        spins, ends = to_spins(x), self.get_buffer("ends")
        products = self.count * spins[:, ends[:, 0]] * spins[:, ends[:, 1]]
        return torch.cat([products, spins], 1) if self.free_fields else products

    def exponent(self, x: Tensor) -> Tensor:
        """float64 (B,): log p(x) + log Z."""
        spins = to_spins(x)
        return spins @ self.fields + 0.5 * ((spins @ self.interaction) * spins).sum(1)

    # ---- exact answers

    def block_exponents(self, x: Tensor, members: Tensor) -> Tensor:
        """float64 (B, 2^k): exponents of all states of a block, up to a constant in each row; with their gradients.

        ``members`` int64 (B, k) are the block's variables in increasing order, the last of them running fastest; of
        x (B, N) only the rest is read.
        """
        size = members.shape[1]
        require_exact(size, "the states of a block")
        states = to_spins(all_codes(size)).to(x.device)
        outside = to_spins(torch.where(torch.zeros_like(x, dtype=torch.bool).scatter(1, members, True), 0, x))
        outside = outside.scatter(1, members, 0.0)
        interaction = self.interaction
        field = (self.fields + outside @ interaction).gather(1, members)
        inside = interaction[members.unsqueeze(2), members.unsqueeze(1)]  # (B, k, k)
        pair = 0.5 * torch.einsum("ci,bij,cj->bc", states, inside, states)
        return field @ states.T + pair

    def block_log_prob(self, x: Tensor, asked: Tensor) -> Tensor:
        """float64 (B,): log p(x_asked | the rest), jointly; with its gradient. Blocks may differ in size."""
        self._check(x, asked)
        answer = torch.zeros(len(x), dtype=torch.float64, device=x.device)
        for rows, members in blocks_by_size(asked):
            exponents = self.block_exponents(x[rows], members)
            own = block_number(x[rows], members)
            answer = answer.index_put((rows,), exponents.log_softmax(1).gather(1, own.unsqueeze(1))[:, 0])
        return answer

    def forward(self, x: Tensor, known: Tensor, context: Tensor | None = None) -> Tensor:
        """(B, N, 2): log p(x_j = v | known) for every j; a known variable has probability 1 at its own value."""
        self._check(x, known)
        visible = torch.where(known, x, 0).long()
        answer = nn.functional.one_hot(visible, 2).double().log()
        for rows, members in blocks_by_size(~known):
            probability = self.block_exponents(visible[rows], members).softmax(1)
            up = all_codes(members.shape[1]).double().to(x.device)
            both = torch.stack([probability @ (1.0 - up), probability @ up], 2).log()  # not 1 - p: it has no digits
            answer = answer.index_put((rows.unsqueeze(1), members), both)
        return answer

    def log_joint(self) -> Tensor:
        """float64 (2^N,): log p of every state, the last variable running fastest; with its gradient. N <= 20."""
        return self._exponents("the joint of an Ising model").log_softmax(0)

    def log_partition(self) -> Tensor:
        """float64 (): log Z, with its gradient. N <= 20."""
        return self._exponents("the partition function").logsumexp(0)

    def _exponents(self, what: str) -> Tensor:
        """float64 (2^N,): those of all states."""
        require_exact(self.variables, what)
        nothing = torch.zeros(1, self.variables, dtype=torch.int64, device=self.couplings.device)
        return self.block_exponents(nothing, torch.arange(self.variables, device=nothing.device).unsqueeze(0))[0]

    def joint(self) -> EnumeratedJoint:
        """The same law as a table of all states. N <= 20."""
        return EnumeratedJoint.from_probabilities(self.log_joint().detach().exp().reshape((2,) * self.variables))

    def sample(self, n: int, *, generator: Generator) -> Tensor:
        """(n, N) int64 codes, exact and independent. N <= 20; beyond, run chains (``anyfill.ising.chains``)."""
        require_exact(self.variables, "exact draws")
        drawn = torch.multinomial(self.log_joint().detach().exp(), n, replacement=True, generator=generator)
        shift = torch.arange(self.variables - 1, -1, -1)
        return (drawn.unsqueeze(1) >> shift) & 1

    def _check(self, x: Tensor, flags: Tensor) -> None:
        require_shape("x", x, (None, self.variables))
        require_shape("known or asked", flags, tuple(x.shape))


def blocks_by_size(asked: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Rows of asked (B, N) with blocks of one size together: row numbers (R,) and members (R, k), sorted."""
    sizes = asked.sum(1)
    groups: list[tuple[Tensor, Tensor]] = []
    for size in sizes.unique().tolist():
        rows = (sizes == size).nonzero()[:, 0]
        groups.append((rows, asked[rows].nonzero()[:, 1].reshape(len(rows), size)))
    return groups


def block_number(x: Tensor, members: Tensor) -> Tensor:
    """int64 (B,): which of the 2^k states of its block each row (B, N) is in."""
    shift = torch.arange(members.shape[1] - 1, -1, -1, device=x.device)
    return (x.gather(1, members).long() << shift).sum(1)


def require_finite(name: str, values: Tensor) -> None:
    """Refuse numbers that are none or infinite."""
    if not bool(values.isfinite().all()):
        raise refuse(name, expected="finite numbers", got=f"{values[~values.isfinite()][0].item()}")
