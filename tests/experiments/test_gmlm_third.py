"""The third and fourth sittings: which target a source keeps, and what is translated is what may be."""

from typing import Any

import pytest
import torch

from anyfill.translation.cleaning import is_held_out
from anyfill.translation.recipes import make_model
from experiments.gmlm.everyday import bare
from experiments.gmlm.schedule import ablations, fourth, third
from experiments.gmlm.scores import onto
from experiments.gmlm.soup import mean_of
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
        assert len(differences) == 1, (step.name, differences)
        assert step.like in ("", whole.name)
    for steps in (third("en-de", 50.0, 0.0), fourth("de-en", 50.0, 0.0)):
        assert [step.recipe for step in steps] == ["autoregressive", "padir"]
        assert steps[0].distil
        assert steps[1].data == "distilled"


def test_case_and_marks_do_not_count() -> None:
    assert bare("Guten Morgen!") == bare("guten  morgen") == "guten morgen"


def test_a_mean_of_weights_is_one_and_unlike_models_are_refused() -> None:
    one, other = (make_model("padir", 60, 16, "toy", seed=seed) for seed in (0, 1))
    wanted = {name: (a + b) / 2 for (name, a), b in zip(one.state_dict().items(), other.state_dict().values())}
    for name, value in mean_of([one, other]).state_dict().items():
        torch.testing.assert_close(value, wanted[name])
    with pytest.raises(ValueError, match="names and shapes"):
        mean_of([one, make_model("autoregressive", 60, 16, "toy")])


def test_rows_of_an_earlier_table_stay_unless_they_are_scored_anew() -> None:
    def table(**bleu: float) -> dict[str, Any]:
        rows = [{"system": name, "direction": "en-de", "test": "t", "bleu": value} for name, value in bleu.items()]
        return {"systems": rows, "gaps": [row | {"against": "x"} for row in rows], "training": dict(bleu)}

    merged = onto(table(a=1.0, b=2.0), table(b=3.0, c=4.0))
    assert [(row["system"], row["bleu"]) for row in merged["systems"]] == [("a", 1.0), ("b", 3.0), ("c", 4.0)]
    assert len(merged["gaps"]) == 3
    assert merged["training"] == {"a": 1.0, "b": 3.0, "c": 4.0}
