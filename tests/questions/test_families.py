"""What holds for every exported family of questions: the protocol, disjointness, its listed law, and what it trains."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import pytest
import torch
from torch import Generator

from anyfill.questions import (
    Bernoulli,
    Decreasing,
    Edges,
    Factorization,
    Family,
    Increasing,
    InpaintingEdges,
    KSubset,
    MacEdges,
    Mixture,
    Order,
    Question,
    Questions,
    Spaced,
    Staged,
    TheRest,
    UniformCardinality,
    UniformSplits,
    Weighted,
    enumerate_questions,
)
from anyfill.questions.enumerate import in_order

Make = Callable[[int], Questions]
FAMILIES: dict[str, Make] = {
    "uniform cardinality, the rest given": lambda n: UniformCardinality(n),
    "uniform cardinality, nothing given": lambda n: UniformCardinality(n, "nothing"),
    "uniform splits": lambda n: UniformSplits(n),
    "Bernoulli, a rate for each row": lambda n: Bernoulli(n),
    "Bernoulli, 0.3": lambda n: Bernoulli(n, 0.3),
    "Bernoulli, always": lambda n: Bernoulli(n, 1.0),
    "Bernoulli, never": lambda n: Bernoulli(n, 0.0),
    "1-subsets": lambda n: KSubset(n, 1),
    "half subsets": lambda n: KSubset(n, (n + 1) // 2),
    "N-subsets": lambda n: KSubset(n, n),
    "two stages": lambda n: Staged(tuple(j % 2 == 0 for j in range(n))),
    "one stage": lambda n: Staged((True,) * n),
    "mixture": lambda n: Mixture((KSubset(n, 1), UniformCardinality(n, "nothing"), Bernoulli(n))),
    "MAC's edges, reweighted": lambda n: MacEdges(n),
    "MAC's edges": lambda n: MacEdges(n, Decreasing(), reweight=False),
    "inpainting edges": lambda n: InpaintingEdges(n, Spaced(2)),
    "edges of splits": lambda n: Edges(UniformSplits(n), Decreasing()),
    "edges of coins": lambda n: Edges(Bernoulli(n), reweight="none"),
    "the rest of MAC's edges": lambda n: TheRest(MacEdges(n)),
    "the rest of inpainting edges": lambda n: TheRest(InpaintingEdges(n)),
}
every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())


@every_family
@pytest.mark.parametrize("variables", [1, 2, 5])
def test_draws_are_disjoint_boolean_questions_on_the_generators_device(family: Make, variables: int) -> None:
    questions = family(variables)
    assert questions.variables == variables
    for batch in (0, 1, 33):
        draws = questions.sample(batch, generator=torch.Generator().manual_seed(batch))
        assert draws.checked().given.shape == (batch, variables)
        assert draws.given.device.type == "cpu"


@every_family
def test_the_same_generator_gives_the_same_draw_and_goes_on_to_another(family: Make) -> None:
    questions = family(7)
    one, two = (torch.Generator().manual_seed(5) for _ in range(2))
    first, again, other = (questions.sample(64, generator=g) for g in (one, two, two))
    assert torch.equal(first.given, again.given)
    assert torch.equal(first.asked, again.asked)
    constant = len(enumerate_questions(questions)) == 1
    assert torch.equal(first.asked, other.asked) == constant


@every_family
def test_the_global_random_state_is_neither_read_nor_written(family: Make) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = family(6).sample(32, generator=torch.Generator().manual_seed(1))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    assert torch.equal(first.given, family(6).sample(32, generator=torch.Generator().manual_seed(1)).given)


@every_family
@pytest.mark.parametrize("variables", [1, 2, 4])
def test_support_lists_each_question_once_and_sums_to_exactly_1(family: Make, variables: int) -> None:
    questions = family(variables)
    support = questions.support()
    assert sum(question.probability for question in support) == 1
    assert all(question.probability > 0 for question in support)
    assert len({(question.given, question.asked) for question in support}) == len(support)
    assert sorted(support) == enumerate_questions(questions)
    for given, asked, _ in support:
        assert list(given) == sorted(set(given))
        assert list(asked) == sorted(set(asked))
        assert not set(given) & set(asked)


@every_family
def test_draws_follow_the_support(
    family: Make, generator: Generator, fit: Callable[[Question, list[Weighted]], float]
) -> None:
    """Chi-square at N = 4, 40 000 draws; false-alarm rate 0.001 each, fixed seed."""
    questions = family(4)
    assert fit(questions.sample(40_000, generator=generator), enumerate_questions(questions)) > 0.001


def test_the_chi_square_test_tells_near_families_apart(
    generator: Generator, fit: Callable[[Question, list[Weighted]], float]
) -> None:
    """The power of the tests above: a law that is nearly right is refused at the same number of draws."""
    pairs: list[tuple[Questions, Questions]] = [
        (Bernoulli(4, 0.3), Bernoulli(4, 0.31)),
        (UniformCardinality(4), Edges(UniformCardinality(4))),
        (TheRest(MacEdges(4)), TheRest(MacEdges(4, reweight=False))),
        (MacEdges(4), MacEdges(4, reweight=False)),
    ]
    for drawn, wrong in pairs:
        assert fit(drawn.sample(40_000, generator=generator), enumerate_questions(wrong)) < 1e-6


def trained(questions: Questions) -> set[tuple[frozenset[int], int]]:
    """Every (known set, variable) that a network trained on these questions has seen."""
    return {(frozenset(q.given), j) for q in enumerate_questions(questions) for j in q.asked}


def needed(factorization: Factorization, order: Order, variables: int) -> set[tuple[frozenset[int], int]]:
    """Every (known set, variable) that a reading looks up, over all pairs (given, asked)."""
    place = {variable: i for i, variable in enumerate(in_order(order, variables))}
    edges = {
        (frozenset(known), j)
        for j in range(variables)
        for size in range(variables)
        for known in combinations(sorted(set(range(variables)) - {j}), size)
    }
    if factorization is Factorization.DIFFERENCE:  # marginals: known is a prefix of a subset
        return {(known, j) for known, j in edges if all(place[i] < place[j] for i in known)}
    if factorization is Factorization.INPAINTING:  # completions: nothing before j is unknown
        return {(known, j) for known, j in edges if all(i in known for i in place if place[i] < place[j])}
    if factorization is Factorization.PREFIX:  # one chain: known is all that comes before
        return {(known, j) for known, j in edges if known == {i for i in place if place[i] < place[j]}}
    return edges  # DIRECT (given any set, asked one variable) and ANY_ORDER


READ: list[tuple[Questions, Order]] = [
    *((family(4), Increasing()) for name, family in FAMILIES.items() if "edges" not in name),
    *((MacEdges(4, order, cr), order) for order in (Increasing(), Spaced(3)) for cr in (False, True)),
    (InpaintingEdges(4, Decreasing()), Decreasing()),
    *((Edges(FAMILIES[name](4), order), order) for order in (Increasing(), Spaced(3)) for name in list(FAMILIES)[:5]),
    (Edges(KSubset(4, 2)), Increasing()),
    (Edges(Mixture((UniformCardinality(4), UniformCardinality(4, "nothing")))), Increasing()),
    (KSubset(1, 1), Increasing()),
]


@pytest.mark.parametrize(("questions", "order"), READ, ids=lambda part: str(part)[:70])
def test_the_readings_claimed_are_those_whose_every_term_is_trained(questions: Questions, order: Order) -> None:
    """Under N = 4 the claim is also complete: a reading whose every term is trained is claimed or implied."""
    seen = trained(questions)
    supported = {
        factorization for factorization in Factorization if needed(factorization, order, questions.variables) <= seen
    }
    claimed = (
        set(Factorization) if Factorization.ANY_ORDER in questions.factorizations else set(questions.factorizations)
    )
    assert (
        claimed | {Factorization.PREFIX} if claimed else claimed
    ) == supported  # every other reading implies this one


@pytest.mark.parametrize("edges", [MacEdges(4), InpaintingEdges(4)])
def test_asking_the_rest_trains_at_least_what_the_edges_train(edges: Questions) -> None:
    assert TheRest(edges).factorizations == edges.factorizations
    assert trained(TheRest(edges)) > trained(edges)


@every_family
def test_listing_many_variables_is_refused_with_the_length_of_the_list(family: Make) -> None:
    for variables, length in ((13, r"[\d,]+ questions"), (200, r"\d+ questions")):
        with pytest.raises(ValueError, match=f"at most 12, got {variables}, which would be .*{length}"):
            enumerate_questions(family(variables))


@pytest.mark.parametrize("variables", [0, -3, float("nan"), 2.0, True, None])
@pytest.mark.parametrize(
    "make", [UniformCardinality, UniformSplits, Bernoulli, MacEdges, InpaintingEdges, lambda n: KSubset(n, 1)]
)
def test_a_number_of_variables_that_is_not_a_whole_number_from_1_is_refused(
    make: Callable[[int], Questions], variables: int
) -> None:
    with pytest.raises(ValueError, match="variables: expected a whole number from 1"):
        make(variables)


def test_path_factorizations_are_those_of_test_families_that_cover_all_their_paths() -> None:
    said = {name for name, family in FAMILIES.items() if family(3).path_factorizations}
    partial = ("subsets", "always", "never", "two stages", "edges")  # of edges nobody asks for paths
    assert said == {name for name in FAMILIES if not any(word in name for word in partial)}


def test_a_family_that_cannot_be_listed_is_refused_by_name() -> None:
    class Opaque(Family):
        variables = 2
        factorizations = frozenset[Factorization]()

        def sample(self, batch: int, *, generator: Generator) -> Question:
            return UniformSplits(2).sample(batch, generator=generator)

    with pytest.raises(ValueError, match="Opaque"):
        enumerate_questions(Opaque())
    assert Edges(Opaque()).factorizations == frozenset()


def test_a_support_that_does_not_sum_to_1_is_refused() -> None:
    class Short(Family):
        variables = 1
        factorizations = frozenset[Factorization]()

        def sample(self, batch: int, *, generator: Generator) -> Question:
            return UniformSplits(1).sample(batch, generator=generator)

        def support(self) -> list[Weighted]:
            return [Weighted((), (0,), Fraction(1, 2)), Weighted((), (0,), Fraction(1, 3))]

    with pytest.raises(ValueError, match="exactly 1, got 5/6"):
        enumerate_questions(Short())
