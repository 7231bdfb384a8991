"""The third and fourth sittings: which target a source keeps, and what is translated is what may be."""

import pytest

from anyfill.translation.cleaning import is_held_out
from experiments.gmlm.everyday import bare
from experiments.gmlm.schedule import ablations, fourth, third
from experiments.gmlm.third import like_the_others, most_like, one_target_each


def test_of_several_translations_the_one_most_like_the_others_stays() -> None:
    assert like_the_others(["a b c", "x y", "a b d", "a b c e"]) == "a b c"
    assert like_the_others(["first", "second"]) == "first"  # two are equally like one another


def test_a_source_has_one_target_and_a_share_of_sources_is_taken() -> None:
    pairs = [(f"source {n % 50}", f"target {n}") for n in range(150)]
    every = one_target_each(pairs, 1.0)
    assert [source for source, _ in every] == [f"source {n}" for n in range(50)]
    assert all(pair in pairs for pair in every)
    some = one_target_each(pairs, 0.4)
    assert {source for source, _ in some} == {s for s, _ in every if is_held_out(s, 0.4, salt="third")}


@pytest.mark.parametrize(
    ("beams", "found"),
    [
        ([(1, 2, 3), (1, 2, 4), (9,)], (1, 2, 4)),
        ([(4, 2, 1), (1, 2, 4)], (1, 2, 4)),  # the order counts
        ([(7, 8), (8, 7)], (7, 8)),  # equally far: the likeliest
    ],
)
def test_of_a_beam_the_one_most_like_the_reference_is_taken(
    beams: list[tuple[int, ...]], found: tuple[int, ...]
) -> None:
    assert most_like(beams, (1, 2, 4)) == found


def test_ablations_differ_in_one_thing_each() -> None:
    whole, *others = ablations("en-de", 15.0)
    for step in others:
        differences = [
            name
            for name in ("recipe", "data", "options", "rate", "batch", "dropout", "seconds", "begin", "size")
            if getattr(step, name) != getattr(whole, name)
        ]
        assert len(differences) == (2 if step.name == "cmlm-raw" else 1), (step.name, differences)
    for steps in (third("en-de", 50.0, 0.0), fourth("de-en", 50.0, 0.0)):
        assert [step.recipe for step in steps] == ["autoregressive", "padir"]
        assert steps[0].distil
        assert steps[1].data == "distilled"


def test_case_and_marks_do_not_count() -> None:
    assert bare("Guten Morgen!") == bare("guten  morgen") == "guten morgen"
