"""One run that trains a model of text: what it fits, what it saves beside the weights, and what it says at the end.

The notes of the model, beside its vocabulary:

    made_by   "anyfill text train"
    text      lines (bool), length (N), recipe; lengths, with lines: how many rows have 0, 1, … N tokens;
              settings: all that ``--resume`` takes over
"""

import math
import os
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed
from rich.console import Console

from anyfill.checks import counted
from anyfill.evaluation import log_prob
from anyfill.interface.progress import clock, in_bits
from anyfill.interface.runs import run_in_words, watched_to_the_end
from anyfill.interface.threads import best_threads, threads
from anyfill.model import Model
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.questions.question import Question
from anyfill.questions.supported import step_factorization
from anyfill.rows import Rows
from anyfill.text.corpus import Corpus
from anyfill.text.recipes import text_model, text_objective
from anyfill.text.settings import Chosen
from anyfill.text.vocabularies import vocabulary_notes
from anyfill.text.vocabulary import Characters, Vocabulary
from anyfill.text.words import Words
from anyfill.training import FitOptions, fit_steps

MADE_BY = "anyfill text train"
"""What the notes of a model say of its origin."""
_PASSES = 4096
"""Passes of a masked network that are spent on the last validation; a one-pass network needs one for each row."""
TOKENS = "corpus.tokens"


def processes() -> int:
    """How many processes torchrun has started; 1 without it."""
    return int(os.environ["WORLD_SIZE"]) if torch.distributed.is_torchelastic_launched() else 1


def is_first() -> bool:
    """Whether this is the first of them."""
    return not torch.distributed.is_torchelastic_launched() or os.environ["RANK"] == "0"


@dataclass(frozen=True, slots=True, eq=False)
class TextRun:
    """All that a run is made of."""

    corpus: Corpus
    settings: Chosen
    device: Literal["cpu", "cuda"]
    shard: bool = False

    @property
    def vocabulary(self) -> Vocabulary:
        """What the tokens of the corpus mean."""
        return self.corpus.train.vocabulary

    def model(self) -> Model:
        s = self.settings
        return text_model(s.recipe, s.length, self.vocabulary.size, size=s.size, dropout=s.dropout, seed=s.seed)

    def options(self) -> FitOptions:
        s = self.settings
        cuda, unending = self.device == "cuda", s.is_unending
        often = (500 if cuda else 100) if unending else max(1, min(500, s.steps // 8))
        return FitOptions(
            steps=s.steps,
            seconds=s.seconds,
            batch_size=s.batch,
            learning_rate=s.learning_rate,
            warmup_steps=100 if cuda and (unending or s.steps > 1000) else min(30, s.steps // 10),
            optimizer="muon",
            betas=(0.9, 0.95),
            weight_decay=0.1,
            precision="bf16-mixed" if cuda else "32-true",
            shard=self.shard,
            compile=cuda,
            report_every=20 if cuda else 1,
            validate_every=often,
            save_every=often,
            seed=s.seed,
            device=self.device,
        )

    def notes(self) -> dict[str, Any]:
        """What is kept with the model."""
        s = self.settings
        text: dict[str, Any] = {"lines": bool(s.lines), "length": s.length, "recipe": s.recipe}
        if s.lines:
            text["lengths"] = self.corpus.counts(s.length).tolist()
        return vocabulary_notes(self.vocabulary) | {"text": text | {"settings": asdict(s)}, "made_by": MADE_BY}

    def fit(self, folder: Path, resume: bool, console: Console) -> list[str]:
        """Train; what came of it."""
        s = self.settings
        rows = self.corpus.rows(s.length)
        valid = self.corpus.validation(s.length, 1024 if self.device == "cuda" else 128)
        model, objective = self.model(), text_objective(s.recipe, s.length)
        keep: dict[str, Any] = {"folder": folder, "resume": resume, "notes": self.notes()}
        title = "training"
        with threads(min(s.threads, torch.get_num_threads())) if s.threads else nullcontext():
            reports = fit_steps(model, rows, objective, self.options(), validation=valid, **keep)
            if isinstance(objective, OnePassLoss):  # nats of a whole row: bits of a token say more
                reports = in_bits(reports, self.corpus.mean_length(s.length))
                title = f"training (loss in bits per {self._unit})"
            last = watched_to_the_end(reports, None if s.is_unending else s.steps, title, console=console)
            if not is_first():
                return []
            return [run_in_words(last), *self._held_out(model, valid)]

    def fastest_threads(self) -> int:
        """How many threads of the CPU a training step is fastest with."""
        if torch.get_num_threads() == 1:
            return 1
        s = self.settings
        model, objective = self.model(), text_objective(s.recipe, s.length)
        source = self.corpus.rows(s.length)
        rows = source.take(torch.arange(s.batch) % len(source))
        generator = torch.Generator().manual_seed(0)

        def step() -> None:
            objective(model, rows, generator=generator).mean().backward()

        return best_threads(step, repeats=1)

    def lines(self, *, resume: bool) -> list[str]:
        """The corpus, the model and the training in words."""
        s = self.settings
        corpus, each = self.corpus, self._unit
        held = "nothing is" if corpus.valid is None else f"the last {100 * s.valid_share:g} % are"
        amount, rows = f"{corpus.tokens:,} {each}s", f"rows of {s.length} {each}s"
        weights = sum(parameter.numel() for parameter in self.model().parameters())
        if corpus.line_lengths is not None:
            count = sum(part.lines or 0 for part in (corpus.train, corpus.valid) if part is not None)
            amount = f"{count:,} lines, {amount}"
            longer = corpus.line_lengths[s.length + 1 :].sum() / corpus.line_lengths.sum()
            cut = f" ({longer:.1%} are longer and are cut)" if longer else ""
            rows = f"lines of at most {s.length} {each}s{cut}"
        where = self.device if self.device == "cuda" else f"the CPU, {counted(s.threads or 1, 'thread')}"
        if processes() > 1:
            where += f", {processes()} processes" + (", weights spread over them" if self.shard else "")
        elif self.shard:
            where += ", one process, so nothing to shard (start several with torchrun)"
        if s.is_unending:
            work = f"{clock(s.seconds or 0.0)} in steps of {s.batch} rows"
        else:
            times = s.steps * s.batch * corpus.mean_length(s.length) / corpus.row_tokens(s.length)
            often = f"{times:,.0f}" if times >= 9.5 else f"{times:.2g}"
            work = f"{s.steps:,} steps of {s.batch} rows, {often} times through the corpus"
            work += "" if s.seconds is None else f", at most {clock(s.seconds)}"
        verb = "resumed" if resume else "training"
        dropout = f", dropout {s.dropout:g}" if s.dropout else ""
        return [
            f"corpus    {', '.join(corpus.names)}: {amount}, {_about(self.vocabulary)}; {held} held out",
            f"model     {s.recipe}, size {s.size} ({weights:,} weights), {rows}",
            f"{verb:<9} {work}, rate {s.learning_rate:g}{dropout}, on {where}",
        ]

    @property
    def _unit(self) -> str:
        return self.vocabulary.units.removesuffix("s")

    def _held_out(self, model: Model, rows: Rows | None) -> list[str]:
        """Bits per token of some rows that were held out, all asked in the model's order."""
        if rows is None or model.corruption.shows_unknown:
            return []
        max_rows = len(rows) if model.is_one_pass else max(1, _PASSES // self.settings.length)
        rows = rows.take(torch.arange(min(max_rows, len(rows)))).to(next(model.parameters()).device)
        question = Question(torch.zeros_like(rows.present), rows.present)
        if step_factorization(model.factorizations, question, model.order, order=model.order) is None:
            return []
        answer = log_prob(model, rows.x, question)
        bits = -float(answer.value.sum()) / math.log(2) / int(rows.present.sum())
        which = f"{counted(len(rows), 'row')} held out"
        return [f"{bits:.3f} bits per {self._unit} on {which} ({answer.kind}, each row from nothing)"]


def _about(vocabulary: Vocabulary) -> str:
    """How many codes of which kind, in words: "65 different ones"."""
    match vocabulary.plain:
        case Words(words=words):
            return f"{len(words):,} different ones, any others as <unk>"
        case Characters(unknown=unknown) as characters if unknown:
            return f"{characters.size:,} different ones, rarer ones as {unknown!r}"
        case other:
            return f"{other.size:,} different ones"
