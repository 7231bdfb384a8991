"""What families of questions share: draws, and lists of small ones.

Of a draw every tensor is born on the generator's device, in one vectorised call.

One fact makes the samplers cheap. Let each of n variables be a member with probability p, independently, and let p
itself be random. If p is uniform, a set of s members has probability

    ∫ p^s (1-p)^(n-s) dp = 1 / [(n+1) C(n, s)]

that is: its size is uniform on 0 .. n and, given its size, it is a uniform subset. If p = √u, of density 2p, it has

    ∫ 2 p^(s+1) (1-p)^(n-s) dp = 2 (s+1) / [(n+1) (n+2) C(n, s)]

that is: its size has probability proportional to s+1. So a uniform subset of random size needs no sort: n comparisons
do. (These are Bayes' billiard table and the beta-binomial law; the papers sort random keys instead.)

Uniforms are float64: a float32 uniform has 24 bits, and its grid would show in a rare event.

Small families are listed one by one with exact probabilities: the definition that samplers are tested against.
``edges_by_definition`` is the training distribution of MAC written as the paper defines it, for any test distribution M
and any protocol w: take each test question, remove its last element under w until nothing is left, and let every edge
met on the way have an equal share of the question's probability. It knows no closed form.
"""

from abc import abstractmethod
from collections.abc import Iterable
from fractions import Fraction

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse
from anyfill.questions.question import Factorization, Family, Order, Questions, Weighted


class AnyOrderOrNothing(Family):
    """A family that trains every (known set, variable), or nothing whole: subclasses say when it is ``complete``."""

    @property
    @abstractmethod
    def complete(self) -> bool:
        """True if every set may be given with everything else asked."""
        ...

    @property
    def factorizations(self) -> frozenset[Factorization]:
        """Any order, if it is complete."""
        return frozenset({Factorization.ANY_ORDER}) if self.complete else frozenset()

    @property
    def path_factorizations(self) -> frozenset[Factorization]:
        """Every completion, if it is complete."""
        return frozenset({Factorization.INPAINTING}) if self.complete else frozenset()


def uniforms(rows: int, columns: int, generator: Generator) -> Tensor:
    """float64 (rows, columns) in [0, 1)."""
    return torch.rand(rows, columns, generator=generator, device=generator.device, dtype=torch.float64)


def below(count: int, rows: int, generator: Generator) -> Tensor:
    """int64 (rows, 1), uniform on 0 .. count-1."""
    return torch.randint(count, (rows, 1), generator=generator, device=generator.device)


def only(index: Tensor, variables: int) -> Tensor:
    """bool (B, N): True at the one variable that ``index`` (B, 1) names."""
    return torch.arange(variables, device=index.device) == index


MAX_VARIABLES = 12


def enumerate_questions(questions: Questions) -> list[Weighted]:
    """Every question of a family, once, in a fixed order; ValueError unless the probabilities sum to exactly 1."""
    listed = merged(questions.support())
    total = sum((question.probability for question in listed), Fraction(0))
    if total != 1:
        raise refuse("sum of the probabilities of the support", expected="exactly 1", got=total)
    return listed


def edges_by_definition(test: Questions, order: Order, reweight: bool) -> list[Weighted]:
    """The edges (known set a, next variable j) on the paths from the questions of ``test``, with their probabilities.

    A test question that asks nothing has no path and is left out. With ``reweight`` the probability of an edge is
    multiplied by its cardinality |a| + 1 and normalised (MAC's cardinality reweighting).
    """
    place = {variable: i for i, variable in enumerate(in_order(order, test.variables))}
    edges: list[Weighted] = []
    for question in enumerate_questions(test):
        left = set(question.asked)
        while left:
            variable = max(left, key=lambda asked: place[asked])
            left.remove(variable)
            known = tuple(sorted({*question.given, *left}))
            share = question.probability / len(question.asked)
            edges.append(Weighted(known, (variable,), share * (len(known) + 1) if reweight else share))
    if not edges:
        raise refuse("test questions", expected="at least one that asks something", got="none")
    total = sum((edge.probability for edge in edges), Fraction(0))
    return merged(edge._replace(probability=edge.probability / total) for edge in edges)


def merged(questions: Iterable[Weighted]) -> list[Weighted]:
    """The same distribution with every question once, those of probability 0 left out, sorted."""
    probability: dict[tuple[tuple[int, ...], tuple[int, ...]], Fraction] = {}
    for question in questions:
        key = (tuple(sorted(question.given)), tuple(sorted(question.asked)))
        probability[key] = probability.get(key, Fraction(0)) + question.probability
    return [Weighted(given, asked, share) for (given, asked), share in sorted(probability.items()) if share]


def rest_of(chosen: Iterable[int], variables: int) -> tuple[int, ...]:
    """The variables of 0 .. N-1 that were not chosen."""
    return tuple(sorted(set(range(variables)).difference(chosen)))


def in_order(order: Order, variables: int) -> list[int]:
    """The variables 0 .. N-1 in the sequence in which the order answers them; ValueError for a random order."""
    if order.random:
        raise refuse("order", expected="one fixed order (a random one has no single path to list)", got=order)
    first_to_last = order.priority(1, variables, generator=None)[0].argsort()
    return [int(variable) for variable in first_to_last]


def require_listable(family: str, variables: int, questions: int) -> None:
    """Refuse to list a family of more than 12 variables, and say how long the list would be."""
    if variables > MAX_VARIABLES:
        length = f"{questions:,}" if variables <= 40 else f"about 2^{questions.bit_length() - 1}"
        raise refuse(
            f"variables of {family} to list",
            expected=f"at most {MAX_VARIABLES}",
            got=f"{variables}, which would be {length} questions; draw from it with .sample instead",
        )
