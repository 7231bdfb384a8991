"""How fast block dynamics and independent parallel forget: Poincaré constants, relaxation and mixing times.

The Poincaré constant of definition 5, over functions of the state x, is C = 1 / (1 - lambda_2): P is reversible and
positive semi-definite (``anyfill.ising.dynamics``). Written for v = sqrt(p) f it is the symmetric matrix

    A(x, y) = sum_K 1[x_-K = y_-K] r_K(x) r_K(y) / S_K(x_-K),      r_K(x) = sqrt(p(x)) p_K(K | x)

whose largest eigenvector is sqrt(p); that one is projected out before anything is computed, so that a second
eigenvalue close to 1 is not mixed with it. Small cases take all eigenvalues of the dense matrix; larger ones Lanczos
steps with full reorthogonalisation, restarted around the best vectors found, at the cost of one sum over states and
blocks for a step. Either way C is finally read as the largest Var(f) / E(f, f) over the few slowest functions found,
with the subtraction-free Dirichlet form: a gap of 1e-13 keeps its digits, which 1 - lambda_2 does not, and slow
functions whose lambda agree to all digits are separated. It is a value attained, so a constant that has not converged
is too small, never too large.

**Independent parallel** (definition 11, footnote 12). Every spin is redrawn at once from p(s_i | s_-i) of the old
state. With the field on each spin phi_i(s) = h_i + c sum_j J_ij s_j,

    P(s, t)  = prod_i exp(t_i phi_i(s)) / (2 cosh phi_i(s))
    law(s)   ∝ exp(sum_i h_i s_i) prod_i cosh phi_i(s)

because law(s) P(s, t) ∝ exp(sum_i h_i (s_i + t_i) + c sum_ij t_i J_ij s_j) is symmetric in s and t. So the footnote's
question has an answer: the chain is reversible, every P(s, t) > 0 makes it ergodic, and the law is not the model's
unless all couplings are 0. Unlike block dynamics it has negative eigenvalues: its relaxation time is
1 / (1 - max |lambda|), and with strong couplings it swaps between a state and its image for a long time.
"""

import math
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack

import torch
from torch import Generator, Tensor
from torch.nn.functional import logsigmoid

from anyfill.checks import refuse, require_count, require_keywords, require_shape
from anyfill.ising.blocks import Blocks
from anyfill.ising.dynamics import Averages, dirichlet_matrix, mass_of, require_dense, transition_matrix
from anyfill.ising.model import Ising
from anyfill.networks.exact import all_codes, require_exact, to_spins

Method = Literal["auto", "dense", "lanczos"]

MAX_DENSE = 9
"""``auto`` takes the dense matrix up to this many variables: 512 states."""

MIN_GAP = 1e-28
"""A gap below this is rounding: such a chain cannot be distinguished from one that falls apart."""

COMPARED = 6
"""How many of the slowest functions are compared at the end."""

ROOM = 120
"""How many Lanczos vectors are kept before the search restarts from the best."""

NEARLY_STUCK = 1e-6
"""Below this gap Lanczos looks for another slow function: it finds only one for all whose lambda agree."""


@dataclass(frozen=True, slots=True, eq=False)
class SlowestMode:
    """The slowest function of a reversible chain.

    Attributes:
        gap: 1 - lambda_2, as E(f, f) / Var(f).
        function: float64 (2^N,), the eigenfunction f, mean 0 and variance 1 under p; 0 where p is 0.
        error: estimate of how far 1 - gap is from an eigenvalue, by the residual and the distance to the next
            eigenvalue seen; for the dense matrix the rounding in lambda_2, far more than that in the gap.
        steps: applications of the operator; 0 for the dense matrix.
        converged: whether the error is below the tolerance times the gap.
    """

    gap: float
    function: Tensor
    error: float
    steps: int
    converged: bool

    @property
    def constant(self) -> float:
        """The Poincaré constant, for block dynamics also the relaxation time; infinite for a gap below 1e-28."""
        return 1.0 / self.gap if self.gap > MIN_GAP else math.inf


class Search(TypedDict, total=False):
    """How the slowest function is searched for.

    Attributes:
        method: "dense" (all of a 2^N matrix), "lanczos" (matrix-free), or by default "auto", the quicker of them.
        tolerance: relative error of the gap at which Lanczos stops; 1e-10 by default.
        max_steps: the most Lanczos steps; 1000 by default.
        generator: for the vector Lanczos starts from; without one it is always the same.
    """

    method: Method
    tolerance: float
    max_steps: int
    generator: Generator


def poincare_constant(log_joint: Tensor, blocks: Blocks, **search: Unpack[Search]) -> float:
    """C = 1 / (1 - lambda_2) of the (adaptive) block dynamics of log p (2^N,); as ``slowest_mode``, and refuses a
    search that did not converge."""
    mode = slowest_mode(log_joint, blocks, **search)
    if not mode.converged:
        expected = f"an error below {search.get('tolerance', 1e-10):g} of the gap"
        got = f"{mode.error:.2g} of {mode.gap:.4g} after {mode.steps} steps; allow more with max_steps"
        raise refuse("Lanczos search for the Poincaré constant", expected=expected, got=got)
    return mode.constant


def slowest_mode(log_joint: Tensor, blocks: Blocks, **search: Unpack[Search]) -> SlowestMode:
    """The second eigenvalue of the (adaptive) block dynamics of log p (2^N,), and its function; N <= 20 for Lanczos."""
    require_keywords(search, Search)
    method, tolerance = search.get("method", "auto"), search.get("tolerance", 1e-10)
    max_steps = search.get("max_steps", 1000)
    if method not in ("auto", "dense", "lanczos"):
        raise refuse("method", expected='"auto", "dense" or "lanczos"', got=repr(method))
    variables = blocks.subsets.shape[1]
    mass = mass_of(log_joint, variables)
    if method == "dense" or (method == "auto" and variables <= MAX_DENSE):
        vectors, error, steps = _dense(mass, transition_matrix(log_joint, blocks))
    else:
        require_count("max_steps", max_steps)
        vectors, error, steps = _slow_vectors(mass, blocks, tolerance, max_steps, search.get("generator"))
    functions = torch.where(mass > 0, 1.0 / torch.where(mass > 0, mass, 1.0).sqrt(), 0.0).unsqueeze(1) * vectors
    functions = functions - mass @ functions
    function, gap = _slowest(functions, mass, dirichlet_matrix(functions, log_joint, blocks))
    return SlowestMode(gap, function, error, steps, converged=steps == 0 or error <= tolerance * gap)


def spectrum(transition: Tensor, law: Tensor) -> Tensor:
    """float64 (S,): all eigenvalues, descending, of a chain (S, S) that is reversible with respect to law (S,) > 0."""
    root = law.sqrt()
    symmetric = root.unsqueeze(1) * transition / root
    apart = float((symmetric - symmetric.T).abs().max())
    if not apart < 1e-8:
        raise refuse("transition", expected="reversible with respect to the law", got=f"sides {apart:.2g} apart")
    return torch.linalg.eigvalsh(0.5 * (symmetric + symmetric.T)).flip(0)


def mixing_time(transition: Tensor, law: Tensor, *, epsilon: float = 0.25, maximum: int = 2**40) -> int:
    """Steps until the total variation distance to the law (S,) is at most epsilon from the worst start.

    By squaring the matrix (S, S): the distance never grows, so the time is found bit by bit. Refuses more than
    ``maximum`` steps.
    """
    if not 0.0 < epsilon < 1.0:
        raise refuse("epsilon", expected="a number between 0 and 1", got=epsilon)
    require_shape("transition", transition, (len(law), len(law)))

    def far(power: Tensor) -> bool:
        return float(0.5 * (power - law).abs().sum(1).max()) > epsilon

    now = torch.eye(len(law), dtype=torch.float64)
    if not far(now):
        return 0
    powers = [transition]
    while far(powers[-1]):
        if 2 ** len(powers) > maximum:
            raise refuse("mixing time", expected=f"at most {maximum:,} steps", got="more: the chain is nearly stuck")
        powers.append(powers[-1] @ powers[-1])
    steps = 0
    for bit in range(len(powers) - 1, -1, -1):
        further = now @ powers[bit]
        if far(further):
            now, steps = further, steps + 2**bit
    return steps + 1


def _slowest(functions: Tensor, mass: Tensor, energy: Tensor) -> tuple[Tensor, float]:
    """The combination of functions (2^N, F) with the smallest E(f, f) / Var(f), and that; energy (F, F) is E."""
    variance = functions.T @ (mass.unsqueeze(1) * functions)
    quotients = energy.diagonal() / variance.diagonal()
    best = int(quotients.argmin())
    mixed = torch.zeros(len(energy), dtype=torch.float64)
    mixed[best] = 1.0
    if float(quotients[best]) > MIN_GAP:
        # The largest eigenvalue of Var in units of E, scaled so that gaps of very different sizes keep their digits.
        scale = energy.diagonal().rsqrt()
        factor, failed = torch.linalg.cholesky_ex(energy * scale * scale.unsqueeze(1))
        if not int(failed):
            half = torch.linalg.solve_triangular(factor, variance * scale * scale.unsqueeze(1), upper=False)
            whole = torch.linalg.solve_triangular(factor, half.T.contiguous(), upper=False)
            top = torch.linalg.eigh(0.5 * (whole + whole.T))[1][:, -1:]
            mixed = scale * torch.linalg.solve_triangular(factor.T, top, upper=True)[:, 0]
    function = functions @ mixed
    size = mass @ function.square()
    return function / size.sqrt(), float(mixed @ energy @ mixed / size)


def _dense(mass: Tensor, transition: Tensor) -> tuple[Tensor, float, int]:
    """Unit vectors (2^N, F), the slowest last; rounding error of an eigenvalue; no steps."""
    root = mass.sqrt()
    # A(x, y) = sqrt(p(x)) P(x, y) / sqrt(p(y)) where p > 0. Its top eigenvector is moved to -1, states without mass
    # to -2: below all others, which are not negative.
    inverse = torch.where(mass > 0, 1.0 / torch.where(mass > 0, root, 1.0), 0.0)
    symmetric = root.unsqueeze(1) * transition * inverse
    symmetric = 0.5 * (symmetric + symmetric.T) - 2.0 * torch.outer(root, root) - 2.0 * (mass == 0).double().diag()
    values, vectors = torch.linalg.eigh(symmetric)
    if not bool(values[-1] > -0.5):
        raise refuse("log_joint", expected="at least two states with positive probability", got="one")
    return vectors[:, values > -0.5][:, -COMPARED:], len(mass) * torch.finfo(torch.float64).eps, 0


def _slow_vectors(
    mass: Tensor, blocks: Blocks, tolerance: float, max_steps: int, generator: Generator | None
) -> tuple[Tensor, float, int]:
    """Unit vectors (2^N, F); the largest error of those that matter; steps of all searches."""
    generator = torch.Generator().manual_seed(0) if generator is None else generator
    averages = Averages(mass, blocks)
    away, found, error, steps = mass.sqrt().unsqueeze(0), list[Tensor](), 0.0, 0
    while True:
        start = torch.randn(len(mass), generator=generator, dtype=torch.float64) * (mass > 0)
        vectors, gap, off, took = _lanczos(averages, away, start, tolerance, max_steps)
        if not found or gap <= NEARLY_STUCK:  # one more that is not stuck ends the search, and counts no further
            error = max(error, off)
        found, steps = [*found, vectors], steps + took
        away = torch.cat([away, vectors[:, -1:].T])
        if gap > NEARLY_STUCK or len(found) == COMPARED or len(away) >= int((mass > 0).sum()):
            return torch.cat([found[0], *(more[:, -1:] for more in found[1:])], 1), error, steps


def _lanczos(
    averages: Averages, away: Tensor, start: Tensor, tolerance: float, max_steps: int
) -> tuple[Tensor, float, float, int]:
    """Unit vectors (2^N, F), the slowest last; its gap and the error of that; steps.

    Rows of ``basis`` are orthonormal and orthogonal to the rows of ``away`` (R, 2^N), sqrt(p) first among them.
    """
    root = away[0]
    room = max(8, min(ROOM, max_steps, 2**27 // len(root), len(root) - 1))
    kept = min(room // 4, 12)
    basis = torch.zeros(room + 1, len(root), dtype=torch.float64)
    inner = torch.zeros(room, room, dtype=torch.float64)
    basis[0] = _orthogonal(start, basis[:0], away)[0]
    count, steps = 0, 0
    while True:
        image = root * averages((root * basis[count]).unsqueeze(1))[:, 0]
        steps += 1
        image, along, length = _orthogonal(image, basis[: count + 1], away)
        inner[: count + 1, count] = along
        inner[count, : count + 1] = along
        count += 1
        basis[count] = image
        done = steps == max_steps or length < 1e-14
        if not done and count < room and steps % 5:
            continue
        values, vectors = torch.linalg.eigh(inner[:count, :count])
        residual = length * float(vectors[-1, -1].abs())
        gap = 1.0 - float(values[-1])
        # Kato and Temple: the eigenvalue is off by the residual squared over the distance to the next. Those nearly
        # stuck as well are compared in the end and do not count here.
        others = values[:-1] if gap > NEARLY_STUCK else values[values < 1.0 - NEARLY_STUCK]
        apart = float(values[-1] - others[-1]) if len(others) > 0 else 0.0
        error = residual**2 / apart if residual < 0.5 * apart else residual
        if done or error <= 0.1 * tolerance * max(gap, 1e-15):
            return (vectors[:, -COMPARED:].T @ basis[:count]).T, gap, error, steps
        if count == room:
            best = vectors[:, -kept:].T @ basis[:count]
            basis[:kept], basis[kept] = best, image
            inner.zero_()
            inner[:kept, :kept] = values[-kept:].diag()
            count = kept


def _orthogonal(vector: Tensor, basis: Tensor, away: Tensor) -> tuple[Tensor, Tensor, float]:
    """The unit vector left orthogonal to the rows of away and basis (twice is enough, and once is not), its parts
    along the basis, and the length that was left; a zero vector where that is nothing."""
    along = torch.zeros(len(basis), dtype=torch.float64)
    for _ in range(2):
        vector = vector - (away @ vector) @ away
        part = basis @ vector
        vector = vector - part @ basis
        along = along + part
    length = float(vector.norm())
    return vector / length if length > 0 else vector, along, length


def independent_parallel_matrix(ising: Ising) -> Tensor:
    """float64 (2^N, 2^N): P(x, y), the states in their usual order. N <= 14."""
    require_dense(ising.variables)
    spins = to_spins(all_codes(ising.variables))
    field = _field(ising, spins)
    # log p(t_i | s) = logsigmoid(2 t_i phi_i): summed over i as the part for +1 and the part for -1.
    up, down = logsigmoid(2.0 * field), logsigmoid(-2.0 * field)
    return (up @ (spins > 0).double().T + down @ (spins < 0).double().T).exp()


def independent_parallel_law(ising: Ising) -> Tensor:
    """float64 (2^N,): log-probabilities of the stationary law. N <= 20."""
    require_exact(ising.variables, "the law of the independent parallel chain")
    spins = to_spins(all_codes(ising.variables))
    size = _field(ising, spins).abs()
    log_cosh = (size + torch.log1p((-2.0 * size).exp())).sum(1)
    return (spins @ ising.fields.detach() + log_cosh).log_softmax(0)


def _field(ising: Ising, spins: Tensor) -> Tensor:
    return ising.fields.detach() + spins @ ising.interaction.detach()
