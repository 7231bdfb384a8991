"""Train a model that translates, from files of pairs to a folder.

The pairs are read twice: once to learn the joint vocabulary, once to be encoded into FOLDER/corpus, from which rows are
read as they are needed. It stays there as long as the run may have to be resumed. Ctrl-C leaves a checkpoint.

The notes of the model: made_by, and translation = recipe, languages, length, vocabulary, odds, closed, settings.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from rich.console import Console

from anyfill.checks import counted, refuse
from anyfill.disk import require_writable
from anyfill.interface.options import option_name
from anyfill.interface.progress import clock
from anyfill.interface.runs import watched_to_the_end
from anyfill.interface.threads import compute_device
from anyfill.model import Model
from anyfill.networks.encoder_decoder_layers import Attention
from anyfill.rows import Rows
from anyfill.training import FitOptions, MetricSink, fit_steps, load_notes
from anyfill.training.checkpoint import CONFIG
from anyfill.translation.cleaning import Counts, Rules, cleaned
from anyfill.translation.corpus import Corpus, encode_pairs, fingerprint
from anyfill.translation.model import MADE_BY, NOTES, Translator, load
from anyfill.translation.reading import Pair, Source, read_pairs, sources_of
from anyfill.translation.recipes import Options, layout_of, make_model, make_objective
from anyfill.translation.settings import Settings
from anyfill.translation.vocabulary import Joint, learn

CORPUS = "corpus"
_VALID = 512
"""Rows of what is held out that training looks at."""


def _silent(line: str) -> None:
    """Say nothing."""


def clean_pairs(
    sources: Sequence[Source], source: str, rules: Rules, counts: Counts, *, spelt: bool = False
) -> Iterator[Pair]:
    """(source, target) of all files, worth training on; ``spelt`` = placeholders as they are, not as symbols."""
    return cleaned(read_pairs(sources, source), rules, counts, spelt=spelt)


def prepare(
    sources: Sequence[Source],
    languages: tuple[str, str],
    settings: Settings,
    folder: Path,
    *,
    vocabulary: Joint | None = None,
    say: Callable[[str], None] | None = None,
) -> tuple[Joint, Corpus]:
    """Learn the vocabulary, unless it is given, and encode the corpus into a folder."""
    tell = say or _silent
    rules = Rules(interface=settings.interface)
    if vocabulary is None:
        counts = Counts()
        texts = (side for pair in clean_pairs(sources, languages[0], rules, counts) for side in pair)
        if (first := next(texts, None)) is None:
            names = ", ".join(f"{path}" for one in sources for path in one.paths)
            raise refuse(names, expected="at least one pair to train on", got=counts)
        vocabulary = learn(chain([first], texts), settings.vocabulary_size, kind=settings.pieces)
        tell(f"corpus    {counts}; {vocabulary.size:,} pieces for both languages")
    counts = Counts()
    pairs = clean_pairs(sources, languages[0], rules, counts)
    for _ in encode_pairs(
        pairs,
        folder,
        vocabulary,
        length=settings.length,
        languages=languages,
        valid_share=settings.valid_share,
    ):
        pass
    corpus = Corpus.open(folder, vocabulary)
    held, longer = corpus.about["pairs"]["valid"], corpus.about["longer"]
    cut = f", {longer:,} longer than {settings.length} pieces left out" if longer else ""
    taught = counted(corpus.about["pairs"]["train"], "pair")
    tell(f"          {taught} to train on, {held:,} held out by their source{cut}")
    return vocabulary, corpus


def odds_of(corpus: Corpus, codes: int) -> list[int]:
    """For each code, ten times the log-odds that a piece is of the source language, by counts in the training part."""
    counts = [
        np.bincount(corpus.side("train", side).codes[:2_000_000], minlength=codes) for side in ("source", "target")
    ]
    shares = [(one + 1.0) / (one.sum() + codes) for one in counts]
    return [round(10 * float(value)) for value in np.clip(np.log(shares[0] / shares[1]), -5, 5)]


def closed_share(corpus: Corpus, vocabulary: Joint) -> float:
    """Which share of the training sources (the first 100,000) ends in a mark."""
    sources = corpus.side("train", "source")
    ends = np.asarray([not vocabulary.piece(code)[-1].isalnum() for code in range(vocabulary.size)])
    last = sources.codes[sources.bounds[1:100_001].astype(np.int64) - 1]
    return round(float(ends[last].mean()), 3) if len(last) else 0.0


def notes_of(corpus: Corpus, vocabulary: Joint, settings: Settings, languages: tuple[str, str]) -> dict[str, Any]:
    """What is kept with the model."""
    about = {
        "recipe": settings.recipe,
        "languages": list(languages),
        "length": settings.length,
        "vocabulary": vocabulary.to_json(),
        "odds": odds_of(corpus, vocabulary.size),
        "closed": closed_share(corpus, vocabulary),
        "settings": asdict(settings),
        "pairs": corpus.about["pairs"],
    }
    return {"made_by": MADE_BY, NOTES: about}


def fit_pairs(
    corpus: Corpus,
    vocabulary: Joint,
    settings: Settings,
    *,
    device: Literal["cpu", "cuda"],
    languages: tuple[str, str],
    folder: Path | None = None,
    resume: bool = False,
    options: Options | None = None,
    how: FitOptions | None = None,
    begin: Model | None = None,
    console: Console | None = None,
    metrics: Sequence[MetricSink] = (),
) -> tuple[Model, dict[str, Any]]:
    """Train on an encoded corpus; the model, and steps, seconds and losses of the run.

    ``how``, if it is said, stands for the settings' own options of training. With ``begin`` weights of that model are
    the first ones, see ``take_weights``. Reports are also written to ``metrics``.
    """
    layout = layout_of(settings.recipe)
    how = settings.options(device) if how is None else how
    rows = corpus.rows("train", layout, settings.length, square=how.graphs)
    held = corpus.rows("valid", layout, settings.length)
    valid: Rows | None = held.whole(torch.arange(min(len(held), _VALID))) if len(held) else None
    model = make_model(
        settings.recipe,
        vocabulary.size,
        settings.length,
        settings.size,
        dropout=settings.dropout,
        seed=settings.seed,
        options=options,
    )
    if begin is not None:
        take_weights(model, begin)
    objective = make_objective(settings.recipe, settings.length, options)
    keep: dict[str, Any] = {"metrics": metrics}
    if folder is not None:
        keep |= {"folder": folder, "resume": resume, "notes": notes_of(corpus, vocabulary, settings, languages)}
    reports = fit_steps(model, rows, objective, how, validation=valid, **keep)
    total = None if settings.seconds is not None and settings.steps is None else how.steps
    last = watched_to_the_end(reports, total, f"training {settings.recipe}", console=console)
    found = {"steps": 0, "seconds": 0.0} if last is None else {"steps": last.step, "seconds": last.seconds}
    if last is not None:
        found |= {"loss": last.loss, "valid_loss": last.validation_loss}
    return model, found


@torch.no_grad()
def take_weights(model: Model, other: Model) -> int:
    """Put into a model those weights of another that have its names and shapes; how many tensors.

    So a parallel decoder may begin from its teacher: the table, the encoder, and most of the decoder are the same. A
    branch of which the other model has nothing (positional attention) begins by adding zero, so that at first it does
    not disturb what was taken over.
    """
    given, taken = other.state_dict(), set[str]()
    for name, weight in model.named_parameters():
        if name in given and given[name].shape == weight.shape:
            weight.copy_(given[name].to(weight.device))
            taken.add(name)
    for name, part in model.named_modules():
        if taken and isinstance(part, Attention) and not any(one.startswith(f"{name}.") for one in taken):
            part.out.weight.zero_()
    return len(taken)


def train(
    files: Path | str | Sequence[Path | str],
    output: Path | str,
    *,
    source: str,
    target: str,
    columns: tuple[str, str] | None = None,
    vocabulary: Path | str | None = None,
    device: str = "auto",
    resume: bool = False,
    say: Callable[[str], None] | None = None,
    **settings: Any,
) -> Translator:
    """Train a model on files of pairs, with progress on stderr, and load it.

    Args:
        files: TSV, two files of lines (X.de X.en), .po, .mo or TMX, plain or .gz; see ``anyfill.translation.reading``.
        output: folder for the model; a new one, or that of the run to be resumed.
        source, target: languages, as "de" and "en".
        columns: the languages of the columns of TSV files; None = (source, target).
        vocabulary: folder of a model whose vocabulary shall be used.
        device: "cpu", "cuda", or "auto" for CUDA if it is there.
        resume: go on with the run in the folder; pairs and settings are its own, others are refused.
        say: is called with lines about what was chosen.
        settings: see ``Settings``.
    """
    tell, folder = say or _silent, Path(output)
    require_writable(folder)
    place = compute_device(device)
    if source == target:
        raise refuse("--to", expected="another language than --from", got=target)
    if resume and (folder / CONFIG).is_file():
        return _resumed(folder, place, tell, settings, (source, target), vocabulary)
    wanted = Settings(**settings)
    if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]):
        raise refuse(
            f"{folder}", expected="a new or empty folder (--resume goes on with a run)", got="one with things in it"
        )
    paths = [Path(one) for one in ([files] if isinstance(files, str | Path) else files)]
    sources = sources_of(paths, source, target, columns)
    given = None if vocabulary is None else load(vocabulary).vocabulary
    is_there = folder.exists()
    try:
        known, corpus = prepare(sources, (source, target), wanted, folder / CORPUS, vocabulary=given, say=tell)
        _run(folder, corpus, known, wanted, place, (source, target), tell, resume=False)
    except BaseException:
        if not (folder / CONFIG).is_file():  # nothing was learnt: leave no trace
            shutil.rmtree(folder / CORPUS, ignore_errors=True)
            if not is_there and folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        raise
    return load(folder)


def _run(
    folder: Path,
    corpus: Corpus,
    vocabulary: Joint,
    settings: Settings,
    place: Literal["cpu", "cuda"],
    languages: tuple[str, str],
    tell: Callable[[str], None],
    *,
    resume: bool,
) -> None:
    model, found = fit_pairs(
        corpus, vocabulary, settings, device=place, languages=languages, folder=folder, resume=resume
    )
    weights = sum(one.numel() for one in model.parameters())
    about = f"{settings.recipe}, size {settings.size} ({weights:,} weights)"
    tell(f"model     {about}, {counted(found['steps'], 'step')} in {clock(found['seconds'])} on {place}")
    shutil.rmtree(folder / CORPUS, ignore_errors=True)  # the run has ended: nobody resumes it


def _resumed(
    folder: Path,
    place: Literal["cpu", "cuda"],
    tell: Callable[[str], None],
    said: dict[str, Any],
    languages: tuple[str, str],
    vocabulary: Path | str | None,
) -> Translator:
    notes: Any = load_notes(folder).get(NOTES) or {}
    if "settings" not in notes:
        raise refuse(f"{folder}", expected=f"a run of {MADE_BY}", got="a model that was made in another way")
    own, known = Settings(**notes["settings"]), Joint.from_json(notes["vocabulary"])
    Settings(**said)  # names that are none are refused as in a new run
    for name, before, now in zip(("--from", "--to"), notes["languages"], languages):
        if now != before:
            raise refuse(name, expected=f"{before}, as the run has", got=now)
    for name, value in said.items():
        if value is not None and value != getattr(own, name):
            raise refuse(option_name(name), expected=f"{getattr(own, name) or 'none'}, as the run has", got=value)
    if vocabulary is not None and fingerprint(load(vocabulary).vocabulary) != fingerprint(known):
        raise refuse("--vocabulary", expected="that of the run", got=f"another, of {vocabulary}")
    if not (folder / CORPUS).is_dir():
        tell(f"the run in {folder} has ended: there is nothing to resume")
        return load(folder)
    tell(f"pairs     as the run in {folder} has them, from when it began")
    _run(folder, Corpus.open(folder / CORPUS, known), known, own, place, languages, tell, resume=True)
    return load(folder)
