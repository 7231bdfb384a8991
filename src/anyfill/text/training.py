"""Train a model of text on files of text, into a folder from which the run can be resumed.

The vocabulary is found in one pass over the files, they are encoded into a token file once, and rows are read from it
as they are needed: a corpus may be larger than memory. It lies in FOLDER/corpus.tokens beside the model as long as its
run may have to be resumed. A corpus of lines has a row for each line: what stands behind a line is missing, hence never
asked, and longer lines are cut. Left-to-right models of lines have an end code, for they alone are asked where a line
ends; others are asked for as many places as a line has. Whatever the user does not say is chosen by the corpus and the
device, and said (``settings``).

Ctrl-C leaves a checkpoint: the folder then holds the best model so far, which can be used, and all that ``--resume``
needs to go on as if nothing had happened. Under torchrun the first process reads and encodes while the others wait.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, cast

import torch
import torch.distributed
from rich.console import Console

from anyfill.checks import refuse
from anyfill.disk import require_writable
from anyfill.interface.options import resumed
from anyfill.interface.progress import metered
from anyfill.interface.runs import resumed_notes
from anyfill.interface.threads import compute_device
from anyfill.text.corpus import Corpus, encode_corpus, find_vocabulary, is_encoded, open_corpus
from anyfill.text.model import TextModel, load
from anyfill.text.reading import as_paths
from anyfill.text.settings import Chosen, Settings, before_reading, chosen, read_settings
from anyfill.text.text_run import MADE_BY, TOKENS, TextRun, is_first, processes
from anyfill.text.token_file import open_tokens
from anyfill.text.vocabularies import vocabulary_of
from anyfill.text.vocabulary import Vocabulary, fingerprint
from anyfill.training import FitOptions, load_notes
from anyfill.training.checkpoint import CONFIG, read_config
from anyfill.training.data import fingerprint as content_of
from anyfill.training.distributed import Processes


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
    require_writable(folder)
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
