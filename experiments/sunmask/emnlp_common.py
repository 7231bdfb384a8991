"""EMNLP2017 News, or captions, as rows of words, and how each kind of model is asked for a sentence.

Words are what stands between white space; every word of the training sentences has a code, all others are the unknown.
A row has 52 places: no sentence has more than 51 words, and one place is left for an end. Captions (Image COCO, 59,000
to learn from, 8,900 words) have 25 words at most: 26 places.

    one_pass, left_to_right   sentences are followed by an end code; all 52 places are asked in increasing order, from
                              the cache, and what was drawn is read up to the end. What lies behind it means nothing.
    sunmask, sundae           there is no end. A length n is drawn from those of the training sentences, the first n
                              places are asked and nothing behind them; there noise stays, as it did in training. The
                              network is told n as context (a one-hot vector): it cannot see where the noise that it
                              should replace ends and the noise that stays begins. (The paper lets the model write the
                              end and the padding.) Of four sentences of different lengths learned by heart, 300 steps,
                              17 of 40 samples were right without being told, and 40 of 40 with it.
    sunmask, sundae, written  the paper's way: behind the sentence stands the end, up to the last place; all places are
                              asked, and what was drawn is read up to the first end.

The training never meets the unknown, so a model gives it next to no probability, and how little says nothing: sentences
with unknown words are left out wherever nats are summed.
"""

import gzip
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Generator, Tensor
from torch.nn import functional

from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.networks.transformer import Transformer
from anyfill.questions import Question
from anyfill.rows import Rows
from anyfill.samplers import Anneal, CachedChain, Draw, Rewrite, sample
from anyfill.text.corpus import encode
from anyfill.text.recipes import text_model
from anyfill.text.tokens import Sentences
from anyfill.text.vocabulary import Vocabulary, WithEnd
from anyfill.text.words import Words, common_words
from experiments.sunmask.emnlp_cells import Cells

LENGTH, TRAINING, CAPTION = 52, 9000, 26
CHAINS, DENOISERS = ("left_to_right", "one_pass"), ("sunmask", "sundae")
RECIPES = (*CHAINS, *DENOISERS)
MARKOV = ("chain1", "chain2", "chain3")
"""Markov chains of ``emnlp_plot.Chain``, which need no training."""


@dataclass(frozen=True, slots=True)
class News:
    """The sentences, each a list of words, and the vocabulary of the training part."""

    train: list[list[str]]
    valid: list[list[str]]
    test: list[list[str]]
    length: int = LENGTH
    words: Words = field(init=False)

    def __post_init__(self) -> None:
        text = ["\n".join(map(" ".join, self.train))]
        types = len({word for sentence in self.train for word in sentence})
        object.__setattr__(self, "words", common_words(text, types + 1))


def read_sentences(path: Path) -> list[list[str]]:
    """One sentence a line; an empty line is an empty sentence."""
    text = gzip.decompress(path.read_bytes()).decode()
    return [line.split() for line in text.removesuffix("\n").split("\n")]


def load_news(data: Path, name: str = "news") -> News:
    """The first 9,000 sentences of the validation file to train, the others to validate, and the test file.

    Captions: all but the last 1,000 of the training file to train, those to validate, 10,000 of the test file.
    """
    if name == "captions":
        folder = data / "coco_captions_textgan"
        known = [one for one in read_sentences(folder / "coco60_train.txt.gz") if one]
        test = [one for one in read_sentences(folder / "coco60_test.txt.gz") if one]
        return News(known[:-1000], known[-1000:], test[:10_000], CAPTION)
    known = read_sentences(data / "emnlp2017_news" / "valid.txt.gz")
    return News(known[:TRAINING], known[TRAINING:], read_sentences(data / "emnlp2017_news" / "test.txt.gz"))


def vocabulary_for(recipe: str, words: Words, *, written: bool = False) -> Vocabulary:
    """With an end for what is read from left to right, and where ends are written."""
    return WithEnd(words) if recipe in CHAINS or written else words


def rows_of(sentences: Sequence[Sequence[str]], vocabulary: Vocabulary, length: int = LENGTH) -> Rows:
    """Rows (S, length), missing behind the end."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "sentences.txt"
        text.write_text("".join(" ".join(sentence) + "\n" for sentence in sentences))
        source = Sentences(encode(text, Path(folder) / "tokens", vocabulary, lines=True), length)
        return source.take(torch.arange(len(source)))


def length_context(lengths: Tensor, variables: int = LENGTH) -> Tensor:
    """float32 (B, 52): the lengths (B,), from 1 on, as one-hot vectors."""
    return functional.one_hot(lengths - 1, variables).float()


def rows_for(
    recipe: str, sentences: Sequence[Sequence[str]], words: Words, length: int = LENGTH, *, written: bool = False
) -> Rows:
    """Rows as this recipe takes them: with an end, with ends up to the last place, or with their length as context."""
    vocabulary = vocabulary_for(recipe, words, written=written)
    rows = rows_of(sentences, vocabulary, length)
    if recipe in CHAINS:
        return rows
    if isinstance(vocabulary, WithEnd):
        return Rows.from_values(torch.where(rows.present, rows.x, vocabulary.end))
    return Rows(rows.x, rows.present, length_context(rows.present.sum(1), length))


def made(
    recipe: Any,
    codes: int,
    length: int = LENGTH,
    *,
    size: Any,
    depth: int | None = None,
    dropout: float = 0.0,
    written: bool = False,
    seed: int = 0,
) -> Model:
    """An untrained model, as deep as asked; a denoiser's network also takes the length, unless ends are written."""
    model = text_model(recipe, length, codes, size=size, dropout=dropout, seed=seed)
    changes: dict[str, Any] = {} if depth is None else {"depth": depth}
    if recipe in DENOISERS and not written:
        changes["context_width"] = length
    if not changes:
        return model
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network: Any = replace(cast(Transformer, model.network), **changes)
    return Model(network, model.likelihood, corruption=model.corruption, order=model.order)


def without_unknown(sentences: Sequence[list[str]], words: Words) -> list[list[str]]:
    """The sentences all of whose words have a code."""
    known = set(words.words)
    return [sentence for sentence in sentences if known.issuperset(sentence)]


@dataclass(frozen=True, slots=True)
class Setting:
    """How words are drawn.

    Attributes:
        draw: temperature and filters.
        rounds: passes of a denoising chain; the others need one for each word.
        keep_trusted: SUNMASK accepts words in places that are not trusted only; the paper does in all.
    """

    draw: Draw
    rounds: int = 2 * LENGTH
    keep_trusted: bool = False

    def policy(self, recipe: str) -> Rewrite | CachedChain:
        """SUNMASK: annealed trust and the triangle; SUNDAE: everything is told, a share of 0.3 is accepted."""
        if recipe in CHAINS:
            return CachedChain()
        if recipe == "sunmask":
            return Rewrite(self.rounds, trust=Anneal(), keep_trusted=self.keep_trusted)
        return Rewrite(self.rounds, share=0.3)


def in_bf16(device: torch.device) -> AbstractContextManager[Any]:
    """Networks in 16 bits on a GPU."""
    return torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else nullcontext()


def first_places(lengths: Tensor, variables: int = LENGTH) -> Question:
    """Nothing given, and of each row the first n places asked, for lengths n (B,)."""
    asked = torch.arange(variables, device=lengths.device) < lengths.unsqueeze(1)
    return Question(torch.zeros_like(asked), asked)


def draw_codes(
    model: Model, recipe: str, setting: Setting, lengths: Tensor, *, generator: Generator
) -> tuple[list[Tensor], int]:
    """Sentences as codes, one for each of ``lengths`` (B,), and the passes made.

    Only denoisers that take a length look at them; the others come with their end, if they have one within the places.
    """
    told = recipe in DENOISERS and bool(model.capabilities.context_width)
    asked_lengths = lengths if told else torch.full_like(lengths, model.variables)
    question = first_places(asked_lengths, model.variables)
    x = torch.zeros_like(question.asked, dtype=torch.int64)
    draw: Any = Cells(setting.draw, question.asked) if recipe in DENOISERS else setting.draw
    context = length_context(lengths, model.variables) if told else None
    with in_bf16(x.device):
        found = sample(
            model, x, question, policy=setting.policy(recipe), draw=draw, context=context, generator=generator
        )
    return [row[:n] for row, n in zip(found.x.cpu(), asked_lengths.tolist())], found.passes


def drawn_lengths(lengths: Tensor, count: int, *, generator: Generator) -> Tensor:
    """int64 (count,): drawn from ``lengths`` (S,), each of them alike."""
    place = torch.randint(len(lengths), (count,), generator=generator, device=generator.device)
    return lengths.to(place.device)[place]


def bits_per_word(model: Model, rows: Rows, *, rows_per_pass: int = 256) -> dict[str, Any]:
    """Exact bits of whole rows, their ends included; per word, and per token (words and ends).

    The error of the bits per word is that of a ratio, over sentences.
    """
    asked = rows.present
    found: list[Tensor] = []
    kinds: set[str] = set()
    for part in torch.arange(len(rows)).split(rows_per_pass):
        answer = log_prob(model, rows.x[part], Question(torch.zeros_like(asked[part]), asked[part]))
        found.append(-answer.value.double().cpu() / math.log(2))
        kinds.add(answer.kind)
    each, tokens = torch.cat(found), int(asked.sum())
    words, bits = tokens - len(rows), float(each.sum())
    apart = each - bits / words * (asked.sum(1).cpu() - 1)
    return {
        "bits_per_word": bits / words,
        "bits_per_word_stderr": float(apart.square().sum().sqrt()) / words,
        "bits_per_token": bits / tokens,
        "sentences": len(rows),
        "words": words,
        "kind": " and ".join(sorted(kinds)),
    }


def label_of(label: str, rounds: int) -> str:
    """The name of sentences drawn in so many rounds, where there are several such."""
    return f"{label}_{rounds}"


def wait_for(lock: Path | None) -> str:
    """Until no one holds this lock exclusively; it is not kept. What the file says then."""
    if lock is None:
        return ""
    import fcntl

    with lock.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        file.seek(0)
        return file.read().strip()


def write_whole(path: Path, content: bytes) -> None:
    """All of it, or nothing."""
    partial = path.with_name(f".{path.name}.part")
    partial.write_bytes(content)
    partial.replace(path)


def write_json(path: Path, found: Mapping[str, Any]) -> None:
    """Likewise, as JSON."""
    write_whole(path, (json.dumps(found, indent=1, allow_nan=False) + "\n").encode())


def recorded(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of JSON lines, the last of each temperature; a line cut short is none."""
    found: dict[float, dict[str, Any]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            one = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[one["temperature"]] = one
    return list(found.values())
