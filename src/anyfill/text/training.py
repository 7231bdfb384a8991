"""Train a model of text on files of text, into a folder from which the run can be resumed.

The vocabulary is found in one pass over the files, they are encoded into a token file once, and rows are read from it
as they are needed: a corpus may be larger than memory (``corpus``). Whatever the user does not say is chosen by the
corpus and the device, and told (``settings``).

Ctrl-C leaves a checkpoint: the folder then holds the best model so far, which can be used, and all that ``--resume``
needs to go on as if nothing had happened. Under torchrun the first process reads and encodes while the others wait.

The notes of the model, beside its vocabulary:

    made_by   "anyfill text train"
    text      lines (bool), length (N), recipe; lengths, with lines: how many rows have 0, 1, … N tokens;
              settings: all that ``--resume`` takes over
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console

from anyfill.checks import refuse
from anyfill.text.alphabet import unit
from anyfill.text.corpus import TOKENS, Corpus, encode, find_vocabulary, open_corpus
from anyfill.text.run import MADE_BY, TextRun
from anyfill.text.settings import Chosen, Settings, before_reading, chosen, read_settings, resumed
from anyfill.text.together import first_alone, is_first, processes
from anyfill.text.token_file import open_tokens
from anyfill.text.vocabularies import vocabulary_of
from anyfill.text.vocabulary import Vocabulary, fingerprint
from anyfill.training import load_notes
from anyfill.training.checkpoint import CONFIG, read_config
from anyfill.training.data import fingerprint as content_of

Device = Literal["auto", "cpu", "cuda"]


def train(
    sources: Sequence[Path],
    folder: Path,
    wanted: Settings,
    *,
    vocabulary: Path | None = None,
    device: Device = "auto",
    shard: bool = False,
    resume: bool = False,
    say: Callable[[str], None],
    console: Console | None = None,
) -> list[str]:
    """Train, with progress on stderr; lines about what came of it (none in the other processes of torchrun).

    Args:
        sources: text files.
        folder: for the model; a new one, or that of the run to be resumed.
        wanted: settings, as far as they are said.
        vocabulary: folder of a model whose vocabulary shall be used.
        device: "auto" takes CUDA if it is there.
        shard: spread the weights over the processes of torchrun, see ``FitOptions``.
        resume: go on with the run in the folder; begin it if there is none.
        say: is told what was chosen.
        console: where progress is shown; stderr by default.
    """
    console = Console(stderr=True) if console is None else console
    console = console if is_first() else Console(quiet=True)
    notes = _saved_notes(folder, resume)
    given = None if vocabulary is None else vocabulary_of(load_notes(vocabulary), str(vocabulary))
    settings = wanted if notes is None else resumed(wanted, read_settings(notes["text"]["settings"]))
    if notes is None and given is not None:
        settings = _of_vocabulary(settings, given)
    settings = before_reading(settings)
    if notes is not None:
        given = _same_vocabulary(given, vocabulary_of(notes, str(folder)))
        if _has_ended(folder):
            _forget(folder)
            return [f"the run in {folder} has ended: there is nothing to resume"] if is_first() else []
    place = _place(device)
    is_there = folder.exists()
    try:
        first_alone(lambda: _encode(sources, folder, settings, given, console), place)
        run = replace(_run(sources, folder, settings, place, is_new=notes is None), shard=shard)
        if is_first():
            for line in run.lines(resume=notes is not None):
                say(line)
        outcome = run.fit(folder, resume, console)
    except BaseException as error:
        if not is_there and not (folder / CONFIG).exists() and (isinstance(error, ValueError) or not _tokens(folder)):
            _forget(folder)
            with suppress(OSError):
                folder.rmdir()
        raise
    _forget(folder)
    return outcome


def _of_vocabulary(settings: Settings, vocabulary: Vocabulary) -> Settings:
    """The settings with the units of a vocabulary that is given; ValueError if the user says others."""
    units = unit(vocabulary)
    if settings.units not in (None, units):
        raise refuse("--units", expected=f"{units}, as --vocabulary has", got=settings.units)
    if settings.vocabulary_size is not None:
        raise refuse("--vocabulary-size", expected="none with --vocabulary", got=settings.vocabulary_size)
    return replace(settings, units=units)


def _place(device: Device) -> Literal["cpu", "cuda"]:
    if device == "cuda" and not torch.cuda.is_available():
        raise refuse("--device", expected="cpu (torch finds no CUDA device here)", got="cuda")
    return "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"


def _encode(
    sources: Sequence[Path], folder: Path, settings: Settings, given: Vocabulary | None, console: Console
) -> None:
    """Make the token file, unless it is there."""
    lines = bool(settings.lines)
    end = lines and settings.recipe == "left_to_right"
    units, size = settings.units or "characters", settings.vocabulary_size
    vocabulary = given
    if vocabulary is None:
        vocabulary = find_vocabulary(sources, units, size, lines=lines, end=end, console=console)
    folder.mkdir(parents=True, exist_ok=True)
    encode(sources, folder / TOKENS, vocabulary, lines=lines, console=console)


def _run(
    sources: Sequence[Path], folder: Path, settings: Settings, device: Literal["cpu", "cuda"], *, is_new: bool
) -> TextRun:
    """The run with everything that belongs to it; settings that are missing in a new one are chosen."""
    tokens = open_tokens(folder / TOKENS)
    corpus = open_corpus(sources, tokens, settings.valid_share or 0.0)
    if not is_new:
        _require_same_corpus(folder, corpus, Chosen.of(settings))
        return TextRun(corpus, tokens.vocabulary, Chosen.of(settings), device)
    made = chosen(settings, corpus, cuda=device == "cuda", processes=processes())
    corpus.rows(made.length)
    corpus.validation(made.length, 1)  # both refuse what is too short, before anything is said of a run
    run = TextRun(corpus, tokens.vocabulary, made, device)
    return run if device == "cuda" else replace(run, settings=replace(made, threads=run.fastest_threads()))


def _tokens(folder: Path) -> bool:
    return (folder / TOKENS).exists()


def _forget(folder: Path) -> None:
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
    others = sorted(name for name in names if not _is_ours(name))
    if others:
        expected = "a new or empty folder, or that of a run to --resume"
        raise refuse(f"{folder}", expected=expected, got=f"one with other things ({others[0]})")
    if CONFIG not in names:
        return None
    if not resume:
        raise refuse(f"{folder}", expected="a new folder, or --resume to go on with its run", got="one with a model")
    notes: dict[str, Any] = load_notes(folder)
    text: Any = notes.get("text")
    if notes.get("made_by") != MADE_BY or not isinstance(text, dict) or "settings" not in text:
        raise refuse(f"{folder}", expected=f"a run of {MADE_BY}", got="a model that was made in another way")
    return notes


def _is_ours(name: str) -> bool:
    return name in (CONFIG, TOKENS) or name.endswith((".safetensors", ".part"))


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
