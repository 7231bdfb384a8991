"""Sentences of the models of EMNLP2017 News and of captions, at each temperature (``draw`` of ``emnlp.py``)."""

import argparse
import gzip
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from anyfill.checks import refuse
from anyfill.samplers import Draw
from anyfill.text.vocabularies import vocabulary_of
from anyfill.training import load_model, load_notes
from benchmarks.common import environment
from experiments.sunmask import emnlp_common as news
from experiments.sunmask import emnlp_plot


def coarse_first(temperatures: Sequence[float]) -> list[float]:
    """The ends, the middle, then the middles of what is left: whoever is cut off has a curve all the same."""
    rising = sorted(set(temperatures))
    order, gaps = [rising[-1], rising[0]], [(0, len(rising) - 1)]
    while gaps:
        low, high = gaps.pop(0)
        if high - low > 1:
            middle = (low + high) // 2
            order.append(rising[middle])
            gaps += [(low, middle), (middle, high)]
    return list(dict.fromkeys(order))


def draw(arguments: argparse.Namespace) -> None:
    """Sentences at each temperature."""
    label, out = arguments.label or arguments.recipe, arguments.out
    out.mkdir(parents=True, exist_ok=True)
    corpus = news.load_news(arguments.data, arguments.set)
    sampler = None if arguments.recipe in news.MARKOV else Sampler(arguments, corpus)
    news.wait_for(arguments.after)
    if sampler is not None and arguments.recipe in news.CHAINS:
        write_bits(out, label, sampler, corpus, arguments.bits)
    for rounds in arguments.rounds if arguments.recipe in news.DENOISERS else [None]:
        named = label if rounds is None or len(arguments.rounds) == 1 else news.label_of(label, rounds)
        for temperature in coarse_first(arguments.temperatures):
            draw_one(arguments, corpus, sampler, named, rounds, temperature)


KEPT = ("recipe", "model", "sentences", "typical", "top_k", "keep_trusted", "seed")
"""Arguments of a draw that its record says."""


def draw_one(
    arguments: argparse.Namespace,
    corpus: news.News,
    sampler: "Sampler | None",
    label: str,
    rounds: int | None,
    temperature: float,
) -> None:
    """One file of sentences and its line, unless they are there."""
    out, name = arguments.out, f"{label}.{temperature:g}.txt.gz"
    settings = {name: getattr(arguments, name) for name in KEPT}
    settings |= {"rounds": rounds, "temperature": temperature}
    lines = out / f"{label}.draws.jsonl"
    if any(settings.items() <= one.items() for one in news.recorded(lines)) and (out / name).exists():
        return
    started = time.perf_counter()
    if sampler is None:
        words = (None, *corpus.words.words)
        coded = [corpus.words.encode(" ".join(sentence)).tolist() for sentence in corpus.train]
        chain = emnlp_plot.Chain(coded, int(arguments.recipe[-1]))
        found = chain.draw(arguments.sentences, temperature, arguments.seed, longest=corpus.length - 1)
        texts, passes = [" ".join(str(words[code]) for code in codes) for codes in found], 0
    else:
        how = Draw(temperature=temperature, typical=arguments.typical, top_k=arguments.top_k)
        texts, passes = sampler.draw(news.Setting(how, rounds or 1, arguments.keep_trusted))
    text = "".join(line + "\n" for line in texts)
    news.write_whole(out / name, gzip.compress(text.encode(), mtime=0))
    line = {
        "label": label,
        **settings,
        "file": name,
        "passes": passes,
        "rows_together": 0 if sampler is None else sampler.together,
        "seconds": time.perf_counter() - started,
        "environment": environment(arguments.device),
    }
    with lines.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(f"{label} at {temperature:g}: {len(texts)} sentences in {line['seconds']:.1f} s", flush=True)


class Sampler:
    """Draws texts from the model of a recipe, in batches of one size."""

    def __init__(self, arguments: argparse.Namespace, corpus: news.News) -> None:
        self.recipe, self.count, self.seed = arguments.recipe, arguments.sentences, arguments.seed
        self.device = torch.device(arguments.device)
        folder = (arguments.models or arguments.out) / (arguments.model or self.recipe)
        self.model = load_model(folder).float().to(self.device)
        self.vocabulary = vocabulary_of(load_notes(folder), folder.name)
        most = arguments.batch or (2500 if self.device.type == "cuda" else 250)
        self.together = math.ceil(self.count / math.ceil(self.count / most))
        self.lengths = torch.tensor([len(sentence) for sentence in corpus.train], device=self.device)
        if arguments.typical is not None and arguments.typical >= 1.0:  # as in the authors' script: no typical sampling
            raise refuse("typical", expected="a mass below 1 (1 keeps every word)", got=arguments.typical)
        if arguments.keep_trusted and self.recipe != "sunmask":
            raise refuse("keep_trusted", expected="sunmask, which alone trusts some places", got=self.recipe)
        if self.recipe in news.DENOISERS and self.device.type == "cuda" and not arguments.no_compile:
            self.model.capabilities.compile_parts()
            self.batch(news.Setting(Draw(typical=arguments.typical), 2), torch.Generator(self.device).manual_seed(0))

    def read(self, folder: Path) -> None:
        """The weights of another model of the same sizes and words; what was compiled stays."""
        self.model.load_state_dict(load_model(folder).float().state_dict())

    def draw(self, setting: news.Setting) -> tuple[list[str], int]:
        """The texts, and the passes made for all of them."""
        generator = torch.Generator(self.device).manual_seed(self.seed)
        texts: list[str] = []
        total = 0
        while len(texts) < self.count:
            codes, passes = self.batch(setting, generator)
            texts += [self.vocabulary.decode(row) for row in codes]
            total += passes
        return texts[: self.count], total

    def batch(self, setting: news.Setting, generator: torch.Generator) -> tuple[list[torch.Tensor], int]:
        """As many rows as are drawn together, as codes, and the passes made."""
        lengths = news.drawn_lengths(self.lengths, self.together, generator=generator)
        return news.draw_codes(self.model, self.recipe, setting, lengths, generator=generator)


def write_bits(out: Path, label: str, sampler: Sampler, corpus: news.News, most: int) -> None:
    """Exact bits per word of the test sentences without unknown words, the first ``most`` of them, in 32 bits."""
    path = out / f"{label}.bits.json"
    if path.exists() or most < 1:
        return
    known = news.without_unknown(corpus.test, corpus.words)
    rows = news.rows_of(known[:most], sampler.vocabulary, corpus.length).to(sampler.device)
    found = news.bits_per_word(sampler.model, rows)
    left = {"without_unknown": len(known), "of": len(corpus.test)}
    news.write_json(path, {**found, **left, "environment": environment(sampler.device)})
    print(f"{label}: {found['bits_per_word']:.3f} bits per word of the test file ({found['kind']})", flush=True)
