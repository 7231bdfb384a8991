"""Train a model of text on files of text, into a folder from which the run can be resumed.

The vocabulary is found in one pass over the files, they are encoded into a token file once, and rows are read from it
as they are needed: a corpus may be larger than memory. It lies in FOLDER/corpus.tokens beside the model as long as its
run may have to be resumed. A corpus of lines has a row for each line: what stands behind a line is missing, hence never
asked, and longer lines are cut. Left-to-right models of lines have an end code, for they alone are asked where a line
ends; others are asked for as many places as a line has. Whatever the user does not say is chosen by the corpus and the
device, and said (``settings``).

Ctrl-C leaves a checkpoint: the folder then holds the best model so far, which can be used, and all that ``--resume``
needs to go on as if nothing had happened. Under torchrun the first process reads and encodes while the others wait.

The notes of the model, beside its vocabulary:

    made_by   "anyfill text train"
    text      lines (bool), length (N), recipe; lengths, with lines: how many rows have 0, 1, … N tokens;
              settings: all that ``--resume`` takes over
"""

import math
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, cast

import torch
import torch.distributed
from rich.console import Console

from anyfill.checks import refuse
from anyfill.evaluation import log_prob
from anyfill.interface.options import resumed
from anyfill.interface.progress import clock, in_bits, metered
from anyfill.interface.runs import resumed_notes, run_in_words, watched_to_the_end
from anyfill.interface.threads import best_threads, compute_device, threads
from anyfill.model import Model
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.questions.question import Question
from anyfill.questions.supported import step_factorization
from anyfill.rows import Rows
from anyfill.text.corpus import Corpus, encode_corpus, find_vocabulary, is_encoded, open_corpus
from anyfill.text.model import TextModel, load
from anyfill.text.reading import as_paths
from anyfill.text.recipes import text_model, text_objective
from anyfill.text.report import counted
from anyfill.text.settings import Chosen, Settings, before_reading, chosen, read_settings
from anyfill.text.tokens import open_tokens
from anyfill.text.vocabularies import Words, vocabulary_notes, vocabulary_of
from anyfill.text.vocabulary import Characters, Vocabulary, fingerprint
from anyfill.training import FitOptions, fit_steps, load_notes
from anyfill.training.checkpoint import CONFIG, read_config
from anyfill.training.data import fingerprint as content_of
from anyfill.training.distributed import Processes

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


def train(
    files: Path | str | Sequence[Path | str],
    output: Path | str,
    *,
    vocabulary: Path | str | None = None,
    device: str = "auto",
    shard: bool = False,
    resume: bool = False,
    **settings: Any,
) -> TextModel:
    """Train a model of text, with progress on stderr, and load it.

    Args:
        files: text in UTF-8, plain or .gz.
        output: folder for the model; a new one, or that of the run to be resumed.
        vocabulary: folder of a model whose vocabulary shall be used.
        device: "cpu", "cuda", or "auto" for CUDA if it is there.
        shard: spread the weights over the processes of torchrun, see ``FitOptions``.
        resume: go on with the run in the folder; begin it if there is none.
        settings: recipe, size, units, vocabulary_size, lines, length, steps, batch, learning_rate, dropout, seconds,
            seed and valid_share, see ``Settings``; what is not said is chosen by the corpus and the device.
    """
    options: dict[str, Any] = {"vocabulary": vocabulary, "device": device, "shard": shard, "resume": resume}
    train_in_words(as_paths(files), Path(output), Settings(**settings), **options)
    return load(output)


def train_in_words(
    sources: Sequence[Path],
    folder: Path,
    wanted: Settings,
    *,
    vocabulary: Path | str | None = None,
    device: str = "auto",
    shard: bool = False,
    resume: bool = False,
    say: Callable[[str], None] | None = None,
) -> list[str]:
    """Train, with progress on stderr; lines about what came of it (none in the other processes of torchrun).

    Args:
        sources, folder: as in ``train``, and so are ``vocabulary`` to ``resume``.
        wanted: settings, as far as they are said.
        say: is called with lines about what was chosen.
    """
    console = Console(stderr=True) if is_first() else Console(quiet=True)
    notes = _saved_notes(folder, resume)
    given = None if vocabulary is None else vocabulary_of(load_notes(vocabulary), str(vocabulary))
    if notes is None:
        settings = before_reading(_of_vocabulary(wanted, given))
    else:
        settings = before_reading(resumed(wanted, read_settings(notes["text"]["settings"])))
        given = _same_vocabulary(given, vocabulary_of(notes, str(folder)))
        if _has_ended(folder):
            _remove_tokens(folder)
            return [f"the run in {folder} has ended: there is nothing to resume"] if is_first() else []
    place = compute_device(device)
    is_there = folder.exists()
    try:
        _first_alone(lambda: _encode(sources, folder, settings, given, console), place)
        run = replace(_run(sources, folder, settings, place, is_new=notes is None), shard=shard)
        if is_first() and say is not None:
            for line in run.lines(resume=notes is not None):
                say(line)
        outcome = run.fit(folder, resume, console)
    except BaseException as error:
        is_useless = isinstance(error, ValueError) or not (folder / TOKENS).exists()
        if is_useless and not is_there and not (folder / CONFIG).exists():
            _remove_tokens(folder)
            with suppress(OSError):
                folder.rmdir()
        raise
    _remove_tokens(folder)
    return outcome


def _of_vocabulary(settings: Settings, vocabulary: Vocabulary | None) -> Settings:
    """The settings with the units of the vocabulary, if one is given; ValueError if the user says others."""
    if vocabulary is None:
        return settings
    units = vocabulary.units
    if settings.units not in (None, units):
        raise refuse("--units", expected=f"{units}, as --vocabulary has", got=settings.units)
    if settings.vocabulary_size is not None:
        raise refuse("--vocabulary-size", expected="none with --vocabulary", got=settings.vocabulary_size)
    return replace(settings, units=units)


def _encode(
    sources: Sequence[Path], folder: Path, settings: Settings, given: Vocabulary | None, console: Console
) -> None:
    """Make the token file, unless it is there."""
    vocabulary = find_vocabulary(sources, settings, console) if given is None else given
    folder.mkdir(parents=True, exist_ok=True)
    target, lines = folder / TOKENS, bool(settings.lines)
    if not is_encoded(sources, target, vocabulary, lines=lines):
        reports = encode_corpus(sources, target, vocabulary, lines=lines)
        for _ in metered(((one.tokens, one.progress) for one in reports), "encoding", console=console):
            pass


def _run(
    sources: Sequence[Path], folder: Path, settings: Settings, device: Literal["cpu", "cuda"], *, is_new: bool
) -> TextRun:
    """The run with everything that belongs to it; settings that are missing in a new one are chosen."""
    corpus = open_corpus(sources, open_tokens(folder / TOKENS), settings.valid_share or 0.0)
    if not is_new:
        run = TextRun(corpus, Chosen.of(settings), device)
        _require_same_corpus(folder, corpus, run.settings)
        return run
    made = chosen(settings, corpus, cuda=device == "cuda", processes=processes())
    corpus.rows(made.length)
    corpus.validation(made.length, 1)  # both refuse what is too short, before anything is said of a run
    run = TextRun(corpus, made, device)
    return run if device == "cuda" else replace(run, settings=replace(made, threads=run.fastest_threads()))


def _remove_tokens(folder: Path) -> None:
    """Remove the token file: nothing needs it any more."""
    if is_first():
        with suppress(OSError):  # some systems do not remove what is open: then it stays
            (folder / TOKENS).unlink()


def _saved_notes(folder: Path, resume: bool) -> dict[str, Any] | None:
    """The notes of the run to be resumed, None if one shall begin; ValueError if the folder is not for that."""
    if folder.exists() and not folder.is_dir():
        raise refuse(f"{folder}", expected="a folder for the model", got="a file")
    target, here = folder.resolve(), Path.cwd()
    if target == here or target in here.parents:
        raise refuse(f"{folder}", expected="a folder of its own for the model", got="a folder in use")
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set[str]()
    ours = (".safetensors", ".part")
    others = sorted(name for name in names if name not in (CONFIG, TOKENS) and not name.endswith(ours))
    if others:
        expected = "a new or empty folder, or that of a run to --resume"
        raise refuse(f"{folder}", expected=expected, got=f"one with other things ({others[0]})")
    return resumed_notes(folder, resume, MADE_BY, "text")


def _has_ended(folder: Path) -> bool:
    training: Any = read_config(folder).get("training")
    return bool(training) and training["progress"]["stopped"] is not None


def _require_same_corpus(folder: Path, corpus: Corpus, settings: Chosen) -> None:
    """ValueError if the run in the folder was begun with another text."""
    saved: Any = (read_config(folder).get("training") or {}).get("conditions", {}).get("rows_content")
    if saved is not None and saved != content_of(corpus.rows(settings.length), like=saved):
        expected = "the corpus of the run that is to be resumed"
        raise refuse(", ".join(corpus.names), expected=expected, got="another, or one that was changed")


def _same_vocabulary(given: Vocabulary | None, saved: Vocabulary) -> Vocabulary:
    if given is not None and fingerprint(given) != fingerprint(saved):
        expected = f"that of the run to be resumed, {fingerprint(saved)} ({saved.size:,} codes)"
        raise refuse("--vocabulary", expected=expected, got=f"{fingerprint(given)} ({given.size:,} codes)")
    return saved


def _first_alone(work: Callable[[], None], device: Literal["cpu", "cuda"]) -> None:
    """Do the work in the first process; the others wait until it is done, however long that takes."""
    if processes() == 1:
        work()
        return
    distributed = Processes(FitOptions(device=device))
    waiting = torch.distributed.new_group(backend="gloo", timeout=timedelta(days=30))
    if distributed.is_first:
        work()
    try:
        torch.distributed.barrier(group=cast("torch.distributed.ProcessGroup", waiting))
    except RuntimeError:  # the first process has gone, and has said why
        raise SystemExit(2) from None
