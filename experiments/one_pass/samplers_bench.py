"""What ``samplers.py`` measures a way by: time, the judge, variety, restored words, and the way's own law."""

import math
import time
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import Generator, Tensor

from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.questions import Question
from anyfill.samplers import Sample, sample, watch
from anyfill.text.metrics import blank_matches, distinct, ngram_entropy, self_bleu, stutter
from anyfill.text.vocabulary import TEXT8
from experiments.one_pass.samplers_ways import DRAWS, JUDGE, SortedBlock, Way, own_log_prob, supported

SPACE = TEXT8.alphabet.index(" ")
QUICK = 0.2
"""Seconds under which a run is timed again."""


def blank_words(x: Tensor, share: float, *, generator: Generator) -> Tensor:
    """bool (B, N): in each row of codes a share of the whole words, one at least, chosen at random.

    A word is whole if a space stands on both sides of it; those are never blanked. A row without one has no blank.
    """
    asked = torch.zeros_like(x, dtype=torch.bool)
    for row, codes in enumerate(x.tolist()):
        gaps = [place for place, code in enumerate(codes) if code == SPACE]
        words = [(before + 1, after) for before, after in pairwise(gaps) if after - before > 1]
        count = max(1, round(share * len(words)))
        for choice in torch.randperm(len(words), generator=generator)[:count].tolist():
            first, last = words[choice]
            asked[row, first:last] = True
    return asked


def everything(x: Tensor) -> Question:
    """Nothing given, all asked."""
    nothing = torch.zeros_like(x, dtype=torch.bool)
    return Question(nothing, ~nothing)


def per_character(nats: Tensor, count: Tensor) -> dict[str, float]:
    """Bits per character from log-probabilities (B,) of so many characters (B,): mean over rows, standard error."""
    bits = -nats / (count * math.log(2))
    return {"bits": bits.mean().item(), "stderr": (bits.std() / math.sqrt(len(bits))).item()}


class Bench:
    """The models, the held-out text and the judge, on one device."""

    def __init__(
        self,
        models: Mapping[str, Model],
        rows: Tensor,
        blanked: Tensor,
        train: str,
        *,
        device: torch.device,
        seed: int,
        bfloat16: bool,
    ) -> None:
        """Held-out rows (B, N) to compare with, rows (B', N) to blank words in, and a text whose words are known."""
        self.models = {name: model.to(device).eval() for name, model in models.items()}
        self.views = {name: SortedBlock.of(model) for name, model in self.models.items() if model.is_one_pass}
        self.judge = self.models[JUDGE]
        asked = blank_words(blanked, 0.15, generator=Generator().manual_seed(seed))
        has = asked.any(1)
        self.rows, self.blanked = rows.to(device), blanked[has].to(device)
        self.asked = asked[has].to(device)
        words = Counter(train.split())
        self.vocabulary = frozenset(words)
        by_length: dict[int, str] = {}
        for word, _ in words.most_common():
            by_length.setdefault(len(word), word)
        self.commonest = by_length
        self.device, self.seed, self.half = device, seed, bfloat16
        self._warm: set[tuple[str, type, str, bool]] = set()

    def measured(self, way: Way) -> dict[str, Any]:
        """All there is to say about one way."""
        model = (self.views if way.sorted_block else self.models)[way.model]
        x, question = self.posed(way)
        allowed = supported(way, model, question)
        found: dict[str, Any] = {"licensed": allowed, "yardstick": self.yardstick()}
        if way.task == "text":
            return found | {"law": self.law(way, model, x, question, allowed)}
        drawn, seconds = self.drawn(way, model, torch.where(question.asked, SPACE, x), question, allowed)
        found |= {
            "passes": drawn.passes,
            "row_passes": drawn.row_passes.double().mean().item(),
            "seconds": min(seconds),
            "runs": seconds,
        }
        if way.task == "free":
            return found | self.graded(drawn.x)
        found |= self.filled(drawn.x)
        return found if way.law is None else found | {"law": self.law(way, model, x, question, allowed)}

    def posed(self, way: Way) -> tuple[Tensor, Question]:
        """The rows and what is asked of them."""
        if way.task == "blanks":
            return self.blanked, Question(~self.asked, self.asked)
        return (self.rows if way.task == "text" else torch.zeros_like(self.rows)), everything(self.rows)

    def drawn(self, way: Way, model: Model, x: Tensor, question: Question, allowed: bool) -> tuple[Sample, list[float]]:
        """What is sampled, and the seconds of each run; the first few steps of a new kind are tried out beforehand."""
        options: dict[str, Any] = {"policy": way.policy, "draw": DRAWS[way.draw], "allow_untrained": not allowed}
        seconds: list[float] = []
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.half):
            kind = (way.model, type(way.policy), way.task, way.sorted_block)
            if kind not in self._warm:
                for _ in zip(range(4), watch(model, x, question, generator=self.generator(), **options)):
                    pass
                self._warm.add(kind)
            while True:
                self.wait()
                start = time.perf_counter()
                result = sample(model, x, question, generator=self.generator(), **options)
                self.wait()
                seconds.append(time.perf_counter() - start)
                if len(seconds) == 3 or seconds[-1] > QUICK:
                    return result, seconds

    def law(self, way: Way, model: Model, x: Tensor, question: Question, allowed: bool) -> dict[str, Any]:
        """Bits per character of the asked in x (B, N) under the law of the way itself."""
        nats = own_log_prob(way, model, x, question, allow_untrained=not allowed, generator=self.generator())
        return {"kind": way.law, **per_character(nats, question.asked.sum(1))}

    def judged(self, x: Tensor) -> dict[str, float]:
        """Bits per character of whole rows (B, N) under the judge."""
        question = everything(x)
        return per_character(log_prob(self.judge, x, question).value, question.asked.sum(1))

    def graded(self, x: Tensor) -> dict[str, Any]:
        """Whole chunks (B, N): the judge's bits, variety, spelling, and the first two as they are."""
        texts = [TEXT8.decode(row) for row in x.cpu()]
        sentences = [text.split() for text in texts]
        words = [word for sentence in sentences for word in sentence[1:-1]]  # those at the ends may be cut
        return {
            "judge": self.judged(x),
            "self_bleu_4": float(self_bleu(sentences, max_n=4)[:, 3].mean()),
            "distinct_2": distinct(sentences, 2),
            "entropy": ngram_entropy(sentences, 1),
            "stutter": stutter(sentences),
            "spelt": sum(word in self.vocabulary for word in words) / max(1, len(words)),
            "samples": texts[:2],
        }

    def filled(self, x: Tensor) -> dict[str, Any]:
        """Filled blanks in x (B, N): shares restored exactly, and the judge's bits of the whole."""
        matches = blank_matches(x, self.blanked, self.asked)
        count = int((self.asked & ~self.asked.roll(1, 1)).sum())  # the first place of a row is never asked
        error = math.sqrt(max(matches.blanks * (1 - matches.blanks), 0.0) / count)
        return {
            "words": matches.blanks,
            "words_stderr": error,
            "blanks": count,
            "letters": matches.tokens,
            "judge": self.judged(x),
        }

    def references(self) -> list[dict[str, Any]]:
        """What the measurements are to be held against: real text, and the commonest word of each length."""
        x = self.blanked.cpu().clone()
        for row, codes in enumerate(self.asked.cpu().tolist()):
            ends = [place for place in range(1, len(codes)) if codes[place - 1] and not codes[place]]
            for end in ends:
                first = max(place for place in range(end) if not codes[place]) + 1
                word = self.commonest.get(end - first, "e" * (end - first))
                x[row, first:end] = TEXT8.encode(word).long()
        return [
            {"reference": "held-out text", "task": "free", **self.graded(self.rows)},
            {"reference": "held-out text", "task": "blanks", "judge": self.judged(self.blanked)},
            {"reference": "commonest word of the length", "task": "blanks", **self.filled(x.to(self.device))},
        ]

    def yardstick(self) -> float:
        """Seconds of three passes of the judge over the rows: how busy the device is."""
        self.wait()
        start = time.perf_counter()
        for _ in range(3):
            self.judged(self.rows)
        self.wait()
        return time.perf_counter() - start

    def generator(self) -> Generator:
        """The same for every run."""
        return Generator(self.device).manual_seed(self.seed)

    def wait(self) -> None:
        """Until the device has done all it was told."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
