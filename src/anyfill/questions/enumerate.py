"""Families of questions listed one by one with exact probabilities: the definition that samplers are tested against.

``edges_by_definition`` is the training distribution of MAC written as the paper defines it, for any test distribution M
and any protocol w: take each test question, remove its last element under w until nothing is left, and let every edge
met on the way have an equal share of the question's probability. It knows no closed form.
"""

from collections.abc import Iterable
from fractions import Fraction

from anyfill.checks import refuse
from anyfill.questions.question import Order, Questions, Weighted

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
