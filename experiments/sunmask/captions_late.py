"""Sentences of trained SUNMASK and SUNDAE on captions, in one process, most valuable first, until a time.

What is drawn is told by ``plan``: each line one file of ``emnlp draw``, with the same records. SUNMASK comes in four
ways (labels of curves):

    sunmask                  the paper's chain: in every round all places are drawn, trusted ones too
    sunmask-untrusted        only places that are not trusted accept (``trusted.py`` says why)
    sunmask-kept-untrusted   likewise, of a model trained with given words kept in both steps, if there is one
    sunmask-typical          the paper's chain with typical words of mass 0.9: Figure 2 shows typical sampling

Besides, emphasis (``emnlp_emphasis``) and other numbers of rounds at one temperature. A draw that would not end in
time, by what others like it have taken, is left out. A model that is not there leaves out its draws.

    python -m experiments.sunmask.captions_late --models DIR --out DIR --until 1795000000
    python -m experiments.sunmask.captions_late --out DIR --warm    # untrained weights: fills the caches of compilers
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from anyfill.samplers import Draw
from anyfill.text.recipes import text_objective
from anyfill.text.vocabularies import vocabulary_notes
from anyfill.training import save_model
from benchmarks.common import environment
from experiments.sunmask import emnlp_common as news
from experiments.sunmask.emnlp_draw import Sampler, coarse_first, draw_one
from experiments.sunmask.emnlp_emphasis import study
from experiments.where import data_folder

TEMPERATURES = (0.4, 0.55, 0.7, 0.8, 0.9, 1.0)
ROUNDS, MASS, AT = 52, 0.9, 0.8
"""Rounds of a curve, mass of typical words, and the temperature at which other numbers of rounds are drawn."""
KEPT = "sunmask-kept"
"""SUNMASK whose given words stayed in both steps of its training."""
GUESS = 0.2
"""Seconds of a round before one was measured."""
EMPHASIS = {"samples": 200, "rounds": ROUNDS, "temperature": 0.6, "seed": 0, "shown": 2, "real": 2, "set": "captions"}


@dataclass(frozen=True, slots=True)
class Line:
    """One file of sentences.

    Attributes:
        label: of the curve; the name of the file begins with it.
        recipe: which model.
        temperature, rounds: of the chain.
        typical: mass of typical words.
        keep_trusted: only places that are not trusted accept.
        model: the folder, if it is not the recipe.
    """

    label: str
    recipe: str
    temperature: float
    rounds: int = ROUNDS
    typical: float | None = None
    keep_trusted: bool = False
    model: str | None = None

    @property
    def folder(self) -> str:
        """Of the model."""
        return self.model or self.recipe


def plan(rounds: int = ROUNDS) -> Iterator[Line | str]:
    """What is drawn, in this order; the name of a record of emphasis where its turn is."""
    order = coarse_first(TEMPERATURES)

    def chains(temperature: float) -> Iterator[Line]:
        yield Line("sunmask-untrusted", "sunmask", temperature, rounds, keep_trusted=True)
        yield Line("sunmask", "sunmask", temperature, rounds)
        yield Line("sundae", "sundae", temperature, rounds)
        yield Line("sunmask-kept-untrusted", "sunmask", temperature, rounds, keep_trusted=True, model=KEPT)

    def swept(count: int) -> Iterator[Line]:
        yield Line(news.label_of("sunmask-untrusted", count), "sunmask", AT, count, keep_trusted=True)
        yield Line(news.label_of("sunmask", count), "sunmask", AT, count)
        yield Line(news.label_of("sundae", count), "sundae", AT, count)

    for temperature in order[:3]:
        yield from chains(temperature)
        yield Line("sunmask-typical", "sunmask", temperature, rounds, MASS)
    yield "emphasis"
    for temperature in order[3:]:
        yield from chains(temperature)
    for count in (rounds // 4, rounds // 2, 2 * rounds):
        yield from swept(count)
    yield "emphasis-untrusted"
    for temperature in order[3:]:
        yield Line("sunmask-typical", "sunmask", temperature, rounds, MASS)
    for count in (4 * rounds, 10 * rounds):
        yield from swept(count)


class Late:
    """Draws lines of the plan as long as there is time."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.corpus = news.load_news(arguments.data, "captions")
        self.samplers: dict[str, Sampler] = {}
        self.pace: dict[bool, float] = {}

    def told(self, line: Line) -> argparse.Namespace:
        """A line as ``emnlp draw`` takes it."""
        return argparse.Namespace(**{**vars(self.arguments), **{name: getattr(line, name) for name in line.__slots__}})

    def draws(self, line: Line) -> bool:
        """Draw it, unless there is no time or no model."""
        here, is_typical = self.arguments, line.typical is not None
        guess = line.rounds * self.pace.get(is_typical, GUESS * (3 if is_typical else 1))
        if time.time() + guess > here.until or not (here.models / line.folder / "config.json").exists():
            return False
        told, started = self.told(line), time.time()
        for attempt in range(3):
            try:
                if line.folder not in self.samplers:
                    self.samplers[line.folder] = Sampler(told, self.corpus)
                    started = time.time()
                draw_one(told, self.corpus, self.samplers[line.folder], line.label, line.rounds, line.temperature)
                break
            except torch.OutOfMemoryError:
                if attempt == 2:
                    raise
                torch.cuda.empty_cache()
                time.sleep(3.0)
        took = time.time() - started
        if took > 0.05:  # else it was there
            self.pace[is_typical] = took / line.rounds
        return True

    def emphasises(self, name: str) -> bool:
        """Table 3's pairs by one of SUNMASK's chains, unless there is no time or no model."""
        here, path = self.arguments, self.arguments.out / f"{name}.json"
        settings: dict[str, Any] = {**EMPHASIS, **here.emphasis, "data": here.data, "device": here.device}
        share = 39 * settings["samples"] / here.sentences  # manners
        guess = 2 * share * settings["rounds"] * self.pace.get(False, GUESS)
        if time.time() + guess > here.until or not (here.models / "sunmask" / "config.json").exists():
            return False
        if not path.exists():
            kept = name.endswith("untrusted")
            found = study(argparse.Namespace(**settings, out=here.models, keep_trusted=kept))
            news.write_json(path, {**found, "environment": environment(here.device)})
            print(f"{path.name}: written", flush=True)
        return True


def warm(arguments: argparse.Namespace) -> None:
    """Draw two rounds of each kind with untrained weights, from which nothing is kept but compiled code."""
    corpus = news.load_news(arguments.data, "captions")
    vocabulary = news.vocabulary_for("sunmask", corpus.words, written=True)
    folder = arguments.out / "untrained"
    for recipe in news.DENOISERS:
        model = news.made(recipe, vocabulary.size, corpus.length, size="25M", depth=arguments.depth, written=True)
        model.factorizations = text_objective(recipe, corpus.length).factorizations  # or nothing may be asked of it
        save_model(model.half(), folder / recipe, notes=vocabulary_notes(vocabulary))
        told = argparse.Namespace(**{**vars(arguments), "models": folder, "recipe": recipe})
        sampler = Sampler(told, corpus)
        generator = torch.Generator(sampler.device).manual_seed(0)
        for setting in (news.Setting(Draw(), 2), news.Setting(Draw(temperature=0.5, typical=MASS), 2)):
            sampler.batch(setting, generator)
        print(f"{recipe}: warm", flush=True)


def main() -> None:
    """Draw all that there is time for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    is_cuda = torch.cuda.is_available()
    parser.add_argument("--models", type=Path, help="where the folders sunmask and sundae are")
    parser.add_argument("--out", type=Path, required=True, help="sentences and records")
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--until", type=float, default=float("inf"), help="seconds since 1970")
    parser.add_argument("--sentences", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of a curve")
    parser.add_argument("--batch", type=int, help="rows at once; 2,500 on a GPU")
    parser.add_argument("--depth", type=int, default=16, help="layers of the untrained weights of --warm")
    parser.add_argument("--emphasis", type=json.loads, default={}, help="JSON: other settings of emphasis")
    parser.add_argument("--only", help="draw from the model in this folder only, and no emphasis")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--device", default="cuda" if is_cuda else "cpu")
    arguments = parser.parse_args()
    more = {"seed": 0, "top_k": None, "typical": None, "keep_trusted": False, "model": None, "no_compile": False}
    arguments = argparse.Namespace(**vars(arguments), **more)
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.warm:
        warm(arguments)
        return
    arguments.models = arguments.models or arguments.out
    late = Late(arguments)
    for line in plan(arguments.rounds):
        if arguments.only and (not isinstance(line, Line) or line.folder != arguments.only):
            continue
        done = late.draws(line) if isinstance(line, Line) else late.emphasises(line)
        if not done:
            print(f"left out: {line}", flush=True)


if __name__ == "__main__":
    main()
