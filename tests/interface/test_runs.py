"""Runs that people begin, watch and resume: one set of rules for every application."""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from anyfill.interface.runs import resumed_settings, run_in_words, watched_to_the_end
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import Discrete, ResidualMLP
from anyfill.training import StepReport, save_model


@dataclass(frozen=True)
class Wanted:
    width: int = 8
    seed: int = 0


def saved(folder: Path, notes: dict[str, Any]) -> Path:
    save_model(Model(ResidualMLP(Discrete(2), 3, outputs=2, width=8, depth=1), Categorical(2)), folder, notes=notes)
    return folder


def test_a_new_folder_has_no_run_to_resume(tmp_path: Path) -> None:
    for resume in (False, True):
        assert resumed_settings(tmp_path / "new", resume, "anyfill x train", "x", Wanted) is None


def test_a_run_is_resumed_with_its_own_settings_and_unknown_ones_are_left_out(
    tmp_path: Path,
) -> None:
    folder = saved(tmp_path / "run", {"made_by": "anyfill x train", "x": {"settings": {"width": 3, "gone": 1}}})
    assert resumed_settings(folder, True, "anyfill x train", "x", Wanted) == Wanted(width=3)


@pytest.mark.parametrize(
    ("notes", "resume", "words"),
    [
        ({"made_by": "anyfill x train", "x": {"settings": {}}}, False, "a new folder, or --resume"),
        ({"made_by": "anyfill y train", "x": {"settings": {}}}, True, "a run of anyfill x train"),
        ({"made_by": "anyfill x train"}, True, "made in another way"),
        ({"made_by": "anyfill x train", "x": [1]}, True, "made in another way"),
    ],
)
def test_a_folder_with_another_model_is_refused_in_one_sentence(
    tmp_path: Path, notes: dict[str, Any], resume: bool, words: str
) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        resumed_settings(saved(tmp_path / "run", notes), resume, "anyfill x train", "x", Wanted)
    assert "\n" not in str(caught.value)


def test_the_last_report_is_told_in_words_and_the_run_behind_is_closed() -> None:
    closed: list[bool] = []

    def run() -> Generator[StepReport]:
        try:
            for step in (1, 1500):
                yield StepReport(step, 1.0, 0.1, 1.0, None, 61.0 * step / 1500, 10.0, 0.0, step / 1500)
        finally:
            closed.append(True)

    last = watched_to_the_end(run(), 1500, "training", console=Console(quiet=True))
    assert run_in_words(last) == "trained 1,500 steps in 1 min 1 s"
    assert closed == [True]
    assert run_in_words(watched_to_the_end((one for one in ()), 1, "training", console=Console(quiet=True))) == (
        "the run had ended before; for a longer one, train into another folder"
    )
