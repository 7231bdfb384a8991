"""Sentences of trained SUNMASK and SUNDAE on captions, in one process, most valuable first, until a time.

What is drawn is told by ``plan``: each line one file of ``emnlp draw``, with the same records. SUNMASK comes in four
ways (labels of curves):

    sunmask                  the paper's chain: in every round all places are drawn, trusted ones too
    sunmask-untrusted        only places that are not trusted accept (``trusted.py`` says why)
    sunmask-kept-untrusted   likewise, of a model trained with given words kept in both steps, if there is one
    sunmask-typical          the paper's chain with typical words of mass 0.9: Figure 2 shows typical sampling

Besides, left to right with its bits per word, emphasis (``emnlp_emphasis``) and other numbers of rounds at one
temperature. A draw that would not end in time, by what others like it have taken, is left out. A model that is not
there leaves out its draws.

With --go it compiles at once, with untrained weights, and draws in turns: each begins when the next of these files is
there, which says until when, and leaves FILE.ended behind. What had no time in one turn is tried again in the next.

    python -m experiments.sunmask.captions_late --models DIR --out DIR --until 1795000000
    python -m experiments.sunmask.captions_late --models DIR --out DIR --go go.1 go.2
    python -m experiments.sunmask.captions_late --out DIR --warm    # fills the caches of compilers and ends
"""

import argparse
import json
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from anyfill.samplers import Draw
from anyfill.text.recipes import TEXT_SIZES, text_objective
from anyfill.text.vocabularies import vocabulary_notes
from anyfill.training import save_model
from benchmarks.common import environment
from experiments.sunmask import emnlp_common as news
from experiments.sunmask.emnlp_draw import Sampler, coarse_first, draw_one, write_bits
from experiments.sunmask.emnlp_emphasis import study
from experiments.sunmask.emnlp_pairs import frequent_pairs
from experiments.where import data_folder

TEMPERATURES = (0.4, 0.55, 0.7, 0.8, 0.9, 1.0)
ROUNDS, MASS, AT = 52, 0.9, 0.8
"""Rounds of a curve, mass of typical words, and the temperature at which other numbers of rounds are drawn."""
KEPT = "sunmask-kept"
"""SUNMASK whose given words stayed in both steps of its training."""
GUESS = 0.2
"""Seconds of a round before one was measured."""
CHAIN, BITS = 6.0, 20.0
"""Seconds of left to right at one temperature, and of its bits per word, at most."""
EMPHASIS = {"samples": 200, "rounds": ROUNDS, "temperature": 0.6, "seed": 0, "shown": 2, "real": 2, "set": "captions"}


@dataclass(frozen=True, slots=True)
class Line:
    """One file of sentences.

    Attributes:
        label: of the curve; the name of the file begins with it.
        recipe: which model.
        temperature, rounds: of the chain; no rounds for left to right.
        typical: mass of typical words.
        keep_trusted: only places that are not trusted accept.
        model: the folder, if it is not the recipe.
    """

    label: str
    recipe: str
    temperature: float
    rounds: int | None = ROUNDS
    typical: float | None = None
    keep_trusted: bool = False
    model: str | None = None

    @property
    def folder(self) -> str:
        """Of the model."""
        return self.model or self.recipe


def plan(rounds: int = ROUNDS) -> Iterator[Line | str]:
    """What is drawn, in this order; the name of a record where the turn of emphasis, or of bits per word, is."""
    order = coarse_first(TEMPERATURES)

    def main(temperature: float) -> Iterator[Line]:
        yield Line("sunmask", "sunmask", temperature, rounds)
        yield Line("sundae", "sundae", temperature, rounds)
        yield Line("left_to_right", "left_to_right", temperature, None)

    def others(temperature: float) -> Iterator[Line]:
        yield Line("sunmask-untrusted", "sunmask", temperature, rounds, keep_trusted=True)
        yield Line("sunmask-kept-untrusted", "sunmask", temperature, rounds, keep_trusted=True, model=KEPT)

    def swept(label: str, count: int) -> Line:
        return Line(news.label_of(label, count), label.partition("-")[0], AT, count, keep_trusted="-" in label)

    for temperature in order[:3]:
        yield from main(temperature)
        yield Line("sunmask-typical", "sunmask", temperature, rounds, MASS)
    yield "emphasis"
    for temperature in order[3:]:
        yield from main(temperature)
    labels = ("sunmask", "sundae", "sunmask-untrusted")
    for count in (2 * rounds, rounds // 2):
        yield from (swept(label, count) for label in labels[:2])
    for temperature in order[:3]:
        yield from others(temperature)
    yield "left_to_right.bits"
    yield swept("sunmask", 4 * rounds)
    for temperature in order[3:]:
        yield Line("sunmask-typical", "sunmask", temperature, rounds, MASS)
        yield from others(temperature)
    yield from (swept(label, rounds // 4) for label in labels)
    yield swept("sunmask", 10 * rounds)
    yield "emphasis-untrusted"
    yield from (swept(labels[2], count) for count in (2 * rounds, rounds // 2))
    for label in labels[1:]:
        yield from (swept(label, count) for count in (4 * rounds, 10 * rounds))


class Late:
    """Draws lines of the plan as long as there is time."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.corpus = news.load_news(arguments.data, "captions")
        self.samplers: dict[str, Sampler] = {}
        self.compiled: dict[str, Sampler] = {}
        self.pace: dict[bool, float] = {}
        self.pairs: list[tuple[str, str]] | None = None

    def prepare(self) -> None:
        """All that needs no trained weights."""
        self.pairs = frequent_pairs(self.corpus.train)
        self.compiled = warm(self.arguments, self.corpus)

    def does(self, line: Line | str) -> bool:
        """Whether a line of the plan was done, had been, or cannot be: what fails is said and not tried again."""
        try:
            if isinstance(line, Line):
                return self.draws(line)
            return self.scores(line) if line.endswith(".bits") else self.emphasises(line)
        except Exception:
            traceback.print_exc()
            return True

    def sampler(self, line: Line) -> Sampler:
        """Of a line's model, in the place of an untrained one that was compiled, if there is one."""
        if line.folder not in self.samplers:
            told, ready = self.told(line), self.compiled.pop(line.folder, None)
            if ready is None:
                ready = Sampler(told, self.corpus)
            else:
                ready.read(self.arguments.models / line.folder)
            self.samplers[line.folder] = ready
        return self.samplers[line.folder]

    def told(self, line: Line) -> argparse.Namespace:
        """A line as ``emnlp draw`` takes it."""
        return argparse.Namespace(**{**vars(self.arguments), **{name: getattr(line, name) for name in line.__slots__}})

    def is_there(self, folder: str) -> bool:
        """Whether it was trained."""
        return (self.arguments.models / folder / "config.json").exists()

    def draws(self, line: Line) -> bool:
        """Draw it, unless there is no time or no model."""
        is_typical = line.typical is not None
        guess = CHAIN
        if line.rounds is not None:
            guess = line.rounds * self.pace.get(is_typical, GUESS * (3 if is_typical else 1))
        if time.time() + guess > self.arguments.until or not self.is_there(line.folder):
            return False
        told, started = self.told(line), time.time()
        for attempt in range(3):
            try:
                if line.folder not in self.samplers:
                    self.sampler(line)
                    started = time.time()
                draw_one(told, self.corpus, self.samplers[line.folder], line.label, line.rounds, line.temperature)
                break
            except torch.OutOfMemoryError:
                if attempt == 2:
                    raise
                torch.cuda.empty_cache()
                time.sleep(3.0)
        took = time.time() - started
        if took > 0.05 and line.rounds is not None:  # else it was there
            self.pace[is_typical] = took / line.rounds
        return True

    def scores(self, name: str) -> bool:
        """Exact bits per word of left to right, unless there is no time or no model."""
        recipe = name.partition(".")[0]
        if time.time() + BITS > self.arguments.until or not self.is_there(recipe):
            return False
        write_bits(
            self.arguments.out, recipe, self.sampler(Line(recipe, recipe, 1.0, None)), self.corpus, self.arguments.bits
        )
        return True

    def emphasises(self, name: str) -> bool:
        """Table 3's pairs by one of SUNMASK's chains, unless there is no time or no model."""
        here, path = self.arguments, self.arguments.out / f"{name}.json"
        settings: dict[str, Any] = {**EMPHASIS, **here.emphasis, "data": here.data, "device": here.device}
        share = 39 * settings["samples"] / here.sentences  # manners
        guess = 2 * share * settings["rounds"] * self.pace.get(False, GUESS)
        if time.time() + guess > here.until or not self.is_there("sunmask"):
            return False
        if not path.exists():
            kept = name.endswith("untrusted")
            told = argparse.Namespace(**settings, out=here.models, keep_trusted=kept)
            found = study(told, corpus=self.corpus, pairs=self.pairs)
            news.write_json(path, {**found, "environment": environment(here.device)})
            print(f"{path.name}: written", flush=True)
        return True


def warm(arguments: argparse.Namespace, corpus: news.News) -> dict[str, Sampler]:
    """Samplers of untrained weights that have drawn two rounds of each kind: nothing is kept but compiled code."""
    vocabulary = news.vocabulary_for("sunmask", corpus.words, written=True)
    folder = arguments.out / "untrained"
    found: dict[str, Sampler] = {}
    for recipe in news.DENOISERS:
        model = news.made(
            recipe, vocabulary.size, corpus.length, size=arguments.size, depth=arguments.depth, written=True
        )
        model.factorizations = text_objective(recipe, corpus.length).factorizations  # or nothing may be asked of it
        save_model(model.half(), folder / recipe, notes=vocabulary_notes(vocabulary))
        told = argparse.Namespace(**{**vars(arguments), "models": folder, "recipe": recipe})
        found[recipe] = sampler = Sampler(told, corpus)
        generator = torch.Generator(sampler.device).manual_seed(0)
        for setting in (news.Setting(Draw(), 2), news.Setting(Draw(temperature=0.5, typical=MASS), 2)):
            sampler.batch(setting, generator)
        print(f"{recipe}: warm", flush=True)
    return found


def turns(arguments: argparse.Namespace) -> Iterator[float]:
    """Until when it may draw, each time that it is its turn."""
    for file in arguments.go or ():
        while not file.exists():
            time.sleep(0.2)
        yield float(file.read_text())
        torch.cuda.empty_cache()  # others have their turn; nothing is done where there is no GPU
        file.with_name(f"{file.name}.ended").touch()
    if not arguments.go:
        yield arguments.until


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
    parser.add_argument("--size", default="25M", choices=list(TEXT_SIZES), help="of the models, as trained")
    parser.add_argument("--depth", type=int, default=16, help="likewise, layers")
    parser.add_argument("--bits", type=int, default=10**9 if is_cuda else 500, help="sentences scored by left to right")
    parser.add_argument("--go", type=Path, nargs="+", help="turns: begin when such a file is there; it says --until")
    parser.add_argument("--emphasis", type=json.loads, default={}, help="JSON: other settings of emphasis")
    parser.add_argument("--only", help="draw from the model in this folder only, and no emphasis")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--device", default="cuda" if is_cuda else "cpu")
    arguments = parser.parse_args()
    more = {"seed": 0, "top_k": None, "typical": None, "keep_trusted": False, "model": None, "no_compile": False}
    arguments = argparse.Namespace(**vars(arguments), **more)
    arguments.out.mkdir(parents=True, exist_ok=True)
    late = Late(arguments)
    if arguments.warm:
        warm(arguments, late.corpus)
        return
    arguments.models = arguments.models or arguments.out
    if arguments.go:
        late.prepare()
        torch.cuda.empty_cache()
        print("ready", flush=True)
    left = [
        line for line in plan(arguments.rounds)
        if not arguments.only or (isinstance(line, Line) and line.folder == arguments.only)
    ]  # fmt: skip
    for until in turns(arguments):
        arguments.until = until
        left = [line for line in left if not late.does(line)]
        for line in left:
            print(f"left out: {line}", flush=True)


if __name__ == "__main__":
    main()
