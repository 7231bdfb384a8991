"""SUNMASK's Table 3: the same words kept in a sentence in different manners, and what is written around them.

    trusted   given: the value stays in place, and the network is told that it holds
    held      the value stays in place too, but the network takes it for noise, which it may be for all it knows
    free      not kept at all: the place is asked like any other

The network sees a held word and is not told to follow it, so it counts for less; that is the paper's emphasis
("unmasked" is trusted, "masked" is held). First the paper's pairs of words: two words at fixed places, each pair in
four manners, and sentences without either. Then real sentences of the test file, of which the three words that are
rarest in training are kept. For captions (--set captions) the pairs are chosen by a rule (``emnlp_pairs``) and stand at
a third and two thirds of a caption.

What the paper shows by chosen examples is also counted here. For a pair (a, b) a sentence *leans* towards a by

    mean over its other words w of  log p(w | a in the sentence) - log p(w | b in the sentence),

the two estimated from the training sentences with 50 words' worth of the words' overall shares added. If emphasis does
what it should, sentences lean more towards a where a is trusted and b held than the other way round: ``emphasis`` is
that difference with its standard error (none of fewer than 8 samples). For real sentences the share of the other words
that come out as they were is counted. Nothing is selected: examples are the first ones drawn. A model that writes its
ends itself is told no length; a sentence may then end before a kept word, and how many do is counted, too.

    python -m experiments.sunmask.emnlp_emphasis --out runs/emnlp [--samples 200 --rounds 208]  # reads DIR/sunmask
    python -m experiments.sunmask.emnlp_emphasis --out runs/captions --set captions --name sunmask/captions_emphasis
"""

import argparse
import json
import math
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.questions import Question
from anyfill.samplers import Anneal, Draw, Rewrite, sample
from anyfill.text.vocabularies import vocabulary_of
from anyfill.text.vocabulary import Vocabulary
from anyfill.training import load_model, load_notes
from benchmarks.common import write_result
from experiments.sunmask import emnlp_common as news
from experiments.sunmask.emnlp_pairs import frequent_pairs, leaning
from experiments.where import data_folder

PAIRS = (("success", "disaster"), ("celebration", "crime"), ("war", "play"), ("police", "season"))
"""The paper's three, and one whose words are common in the training sentences."""
PLACES, CAPTION_PLACES, WORDS = (6, 11), (3, 7), 26
"""Where the words of a pair stand, about as in the paper, and how many words a sentence of news has."""
FEW, TOGETHER = 8, 1600
"""Fewer samples have no error; so many rows are drawn at once."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How some words of a sentence are kept.

    Attributes:
        name: of the manner.
        length: words of the sentence.
        trusted, held: the words kept, by their places.
    """

    name: str
    length: int
    trusted: dict[int, str]
    held: dict[int, str]


def pair_manners(first: str, second: str, places: tuple[int, int] = PLACES) -> list[Manner]:
    """The four ways to keep both."""
    a, b = {places[0]: first}, {places[1]: second}
    return [
        Manner(f"{first} trusted, {second} held", WORDS, a, b),
        Manner(f"{first} held, {second} trusted", WORDS, b, a),
        Manner("both trusted", WORDS, a | b, {}),
        Manner("both held", WORDS, {}, a | b),
    ]


def sentence_manners(sentence: Sequence[str], times: Counter[str], kept: int = 3) -> list[Manner]:
    """The ``kept`` words that are rarest in training: trusted, held, and free."""
    places = sorted(range(len(sentence)), key=lambda place: (times[sentence[place]], place))[:kept]
    words = {place: sentence[place] for place in sorted(places)}
    count = len(sentence)
    return [Manner("trusted", count, words, {}), Manner("held", count, {}, words), Manner("free", count, {}, {})]


def sample_rank(
    manners: Sequence[Manner], samples: int, vocabulary: Vocabulary, variables: int = news.LENGTH
) -> tuple[Tensor, Question, Tensor]:
    """Values (B, N), questions and held (B, N), ``samples`` rows of each manner one after another.

    All places are asked where the vocabulary has an end, which the model writes then.
    """
    shape = (len(manners), variables)
    x = torch.zeros(shape, dtype=torch.int64)
    given, held, asked = (torch.zeros(shape, dtype=torch.bool) for _ in range(3))
    for row, manner in enumerate(manners):
        asked[row, : manner.length if vocabulary.end is None else variables] = True
        for kept, words in ((given, manner.trusted), (held, manner.held)):
            for place, word in words.items():
                code = vocabulary.encode(word).tolist()
                if vocabulary.decode(torch.tensor(code)) != word or len(code) != 1:
                    raise refuse("word to keep", expected="one of the training sentences", got=repr(word))
                x[row, place] = code[0]
                kept[row, place], asked[row, place] = True, False
    each = [one.repeat_interleave(samples, 0) for one in (x, given, asked, held)]
    return each[0], Question(each[1], each[2]), each[3]


def draw(
    model: Model,
    manners: Sequence[Manner],
    vocabulary: Vocabulary,
    *,
    samples: int,
    rounds: int,
    temperature: float,
    seed: int,
    keep_trusted: bool = False,
) -> list[list[list[str]]]:
    """For each manner its sentences, by SUNMASK's chain, so many rows at once."""
    device = next(model.parameters()).device
    generator = torch.Generator(device).manual_seed(seed)
    most = max(1, TOGETHER // samples)
    found: list[list[list[str]]] = []
    for some in (manners[first : first + most] for first in range(0, len(manners), most)):
        x, question, held = sample_rank(some, samples, vocabulary, model.variables)
        question = Question(question.given.to(device), question.asked.to(device))
        lengths = torch.tensor([manner.length for manner in some]).repeat_interleave(samples)
        context = news.length_context(lengths, model.variables).to(device) if vocabulary.end is None else None
        cells: Any = news.Cells(Draw(temperature=temperature), question.asked)
        with news.in_bf16(device):
            drawn = sample(
                model,
                x.to(device),
                question,
                policy=Rewrite(rounds, trust=Anneal(), keep_trusted=keep_trusted),
                draw=cells,
                held=held.to(device),
                context=context,
                generator=generator,
            ).x.cpu()
        ends = [manner.length if vocabulary.end is None else model.variables for manner in some]
        found += [
            [vocabulary.decode(row[:end]).split() for row in rows] for end, rows in zip(ends, drawn.split(samples))
        ]
    return found


def with_error(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and its standard error, which a few values do not tell."""
    return {"mean": mean(values), "stderr": stdev(values) / math.sqrt(len(values)) if len(values) >= FEW else None}


def agreement(text: Sequence[str], sentence: Sequence[str], kept: Container[int]) -> float:
    """The share of the words of ``sentence`` outside the places ``kept`` that stand in ``text``, each in its place."""
    others = [place for place in range(len(sentence)) if place not in kept]
    return mean(float(text[place : place + 1] == [sentence[place]]) for place in others) if others else 1.0


def marked(sentence: Sequence[str], manner: Manner) -> str:
    """Trusted words in bold, held ones in italics."""
    form = {**dict.fromkeys(manner.trusted, "**"), **dict.fromkeys(manner.held, "*")}
    return " ".join(form.get(place, "") + word + form.get(place, "") for place, word in enumerate(sentence))


def study(
    arguments: argparse.Namespace,
    *,
    corpus: news.News | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> dict[str, Any]:
    """All samples and what was counted; who has the sentences, and the pairs of captions, need not wait for them."""
    corpus, of_news = corpus or news.load_news(arguments.data, arguments.set), arguments.set == "news"
    folder = arguments.out / "sunmask"
    model, vocabulary = load_model(folder).float().to(arguments.device), vocabulary_of(load_notes(folder), folder.name)
    times = Counter(word for sentence in corpus.train for word in sentence)
    usable = [one for one in news.without_unknown(corpus.test, corpus.words) if len(one) <= WORDS + 4]
    chosen = usable[: arguments.real]
    words, places = (PAIRS, PLACES) if of_news else (pairs or frequent_pairs(corpus.train), CAPTION_PLACES)
    groups = [*((pair, pair_manners(*pair, places)) for pair in words), (None, [Manner("free", WORDS, {}, {})])]
    manners = [manner for _, some in groups for manner in some]
    of_real = [sentence_manners(sentence, times) for sentence in chosen]
    settings = {name: getattr(arguments, name) for name in ("samples", "rounds", "temperature", "seed", "keep_trusted")}
    everything = [*manners, *(manner for some in of_real for manner in some)]
    drawn = dict(zip(map(id, everything), draw(model, everything, vocabulary, **settings)))

    def shown(manner: Manner) -> dict[str, Any]:
        texts = drawn[id(manner)]
        last = max([*manner.trusted, *manner.held], default=-1)
        cut = mean(float(len(text) <= last) for text in texts)
        samples = [marked(text, manner) for text in texts[: arguments.shown]]
        return {"manner": manner.name, "samples": samples, "ended_before_a_kept_word": cut}

    each_pair: list[dict[str, Any]] = []
    for pair, some in groups:
        if pair is None:
            continue
        lean = leaning(corpus.train, *pair)
        each = [{**shown(manner), "lean": with_error([*map(lean, drawn[id(manner)])])} for manner in some]
        free = with_error([*map(lean, drawn[id(manners[-1])])])
        one, other = (with_error([*map(lean, drawn[id(manner)])]) for manner in some[:2])
        errors = [value for value in (one["stderr"], other["stderr"]) if value is not None]
        difference = (one["mean"] or 0.0) - (other["mean"] or 0.0)
        emphasis = {"mean": difference, "stderr": math.hypot(*errors) if len(errors) == 2 else None}
        counts = {word: sum(word in sentence for sentence in corpus.train) for word in pair}
        each_pair.append({"words": pair, "sentences_with": counts, "manners": each, "free": free, "emphasis": emphasis})
    real: list[dict[str, Any]] = []
    for sentence, some in zip(chosen, of_real):
        kept = some[0].trusted
        found = [
            {
                **shown(manner),
                "as_it_was": with_error([agreement(text, sentence, kept) for text in drawn[id(manner)]]),
            }
            for manner in some
        ]
        real.append({"sentence": marked(sentence, some[0]), "manners": found})
    settings["set"] = arguments.set
    return {"arguments": settings, "pairs": each_pair, "free": shown(manners[-1]), "real": real}


def table(found: dict[str, Any]) -> str:
    """The samples in Markdown."""

    def number(value: dict[str, Any]) -> str:
        return f"{value['mean']:+.3f}" + ("" if value["stderr"] is None else f" ± {value['stderr']:.3f}")

    lines = [
        "**bold**: given and trusted; *italic*: held only. Lean: nats per word towards the first word of a pair.",
        "",
        "| words | manner | lean | first samples |",
        "|---|---|---|---|",
    ]
    for pair in found["pairs"]:
        for one in pair["manners"]:
            samples = "<br>".join(one["samples"])
            lines.append(f"| {' / '.join(pair['words'])} | {one['manner']} | {number(one['lean'])} | {samples} |")
        lines.append(f"| {' / '.join(pair['words'])} | free | {number(pair['free'])} | |")
    lines.append(f"| – | free | | {'<br>'.join(found['free']['samples'])} |")
    lines += ["", "| pair | emphasis: lean of the first manner minus that of the second |", "|---|---|"]
    lines += [f"| {' / '.join(pair['words'])} | {number(pair['emphasis'])} |" for pair in found["pairs"]]
    lines += ["", "| sentence | kept words are | other words as they were | first samples |", "|---|---|---|---|"]
    for one in found["real"]:
        for manner in one["manners"]:
            right, samples = manner["as_it_was"], "<br>".join(manner["samples"])
            lines.append(f"| {one['sentence']} | {manner['manner']} | {right['mean']:.3f} | {samples} |")
    return "\n".join(line.replace("<unk>", "&lt;unk&gt;") for line in lines) + "\n"


def main() -> None:
    """Draw, print, write results/sunmask/emnlp_emphasis.json and .md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    is_cuda = torch.cuda.is_available()
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--out", type=Path, help="the folder in which the model sunmask is")
    source.add_argument("--record", type=Path, help="what was drawn before (``captions_late``): only to be written")
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--set", choices=["news", "captions"], default="news")
    parser.add_argument("--samples", type=int, default=200 if is_cuda else 2, help="of each manner")
    parser.add_argument("--shown", type=int, default=2, help="of these, written down")
    parser.add_argument("--real", type=int, default=2, help="sentences of the test file")
    parser.add_argument("--rounds", type=int, default=(4 if is_cuda else 1) * news.LENGTH)
    parser.add_argument("--temperature", type=float, default=0.6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep-trusted", action="store_true", help="only places that are not trusted accept")
    parser.add_argument("--device", default="cuda" if is_cuda else "cpu")
    parser.add_argument("--name", default="sunmask/emnlp_emphasis")
    arguments = parser.parse_args()
    found = study(arguments) if arguments.record is None else json.loads(arguments.record.read_text())
    path = write_result(arguments.name, found, device=arguments.device)
    text = table(found)
    path.with_suffix(".md").write_text(text)
    print(text)
    print(f"wrote {path.name} and {path.with_suffix('.md').name} to {path.parent}/")


if __name__ == "__main__":
    main()
