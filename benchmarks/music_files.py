"""Sixty real files of music, none of them ours: which can be harmonised, and does the tune stay as it is?

Gathers MIDI files of Debian packages (``apt-get download``; games and a piano teacher: whole bands, drums, played by
hand) and MusicXML files of music21's corpus (songs, quartets, piano music of many centuries), takes so many of each at
random, and puts each through what ``anyfill music harmonise`` does. Where it asks which part is the tune, ``--tune
top`` is said. The harmony is of random notes: files are what is tested, not the model. For every result, MIDI or
MusicXML as the file, it is checked that

    the tune is in it with its own pitches, onsets and lengths, and there are three voices more,
    signatures and tempos are those of the file.

A file that takes longer than ``--limit`` seconds of CPU time counts as a failure. Results are written after every file.

    python -m benchmarks.music_files          # results/music_files.json; needs apt and music21
"""

import argparse
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from anyfill.music.files import read_music
from anyfill.music.piece import Piece
from anyfill.music.request import Request
from anyfill.music.saving import score_bytes
from anyfill.music.score import Note, Score
from benchmarks.common import write_result

PACKAGES = ("openttd-openmsx", "freedink-data", "pianobooster")
MIDI_FILES, XML_FILES = 30, 30


def answered(request: Request, rng: np.random.Generator) -> Piece:
    """A request answered with random notes."""
    chorale = request.piece.chorale
    pitch, onset = chorale.pitch.copy(), chorale.onset.copy()
    for voice, step in np.argwhere(request.asked):
        if step == 0 or not request.asked[voice, step - 1] or rng.random() < 0.3:
            held, begins = rng.choice([-1, *range(50, 75)]), True
        else:
            held, begins = pitch[voice, step - 1], rng.random() < 0.1
        pitch[voice, step], onset[voice, step] = held, begins
    return request.piece_of(replace(chorale, pitch=pitch, onset=onset), 1, 0)


def gather(folder: Path, seed: int) -> list[Path]:
    """The files: MIDI out of Debian packages, then MusicXML of the corpus, each at random."""
    for package in PACKAGES:
        subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True, capture_output=True)
        (archive,) = folder.glob(f"{package}_*.deb")
        subprocess.run(["dpkg-deb", "-x", archive.name, package], cwd=folder, check=True)
    midi = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".mid", ".midi"))
    with resources.as_file(resources.files("music21").joinpath("corpus")) as corpus:
        xml = sorted(path for path in corpus.rglob("*") if path.suffix.lower() in (".mxl", ".xml", ".musicxml"))
    rng = np.random.default_rng(seed)
    chosen = [xml[n] for n in rng.permutation(len(xml))]
    by_composer: dict[str, Path] = {}
    for path in chosen:  # not all of one composer
        by_composer.setdefault(path.parent.as_posix(), path)
    xml = [*dict.fromkeys([*by_composer.values(), *chosen])][:XML_FILES]
    return [midi[n] for n in rng.permutation(len(midi))][:MIDI_FILES] + xml


def heard(notes: tuple[Note, ...]) -> list[tuple[Fraction, Fraction, int]]:
    """What sounds."""
    return sorted((note.start, note.length, note.pitch) for note in notes if note.pitch is not None)


def about(score: Score) -> tuple[object, ...]:
    """What must not change."""
    signs = score.signs
    return signs.times, signs.keys, signs.tempos


def tried(path: Path, seed: int) -> dict[str, Any]:
    """What became of one file."""
    rng = np.random.default_rng(seed)
    said: list[str] = []
    for tune in (None, "top"):
        try:
            request = Request.harmonise(path, choose=tune)
        except ValueError as error:
            said.append(str(error).replace(str(path.parent), "")[:200])
            if "--tune" not in said[-1]:
                return {"file": path.name, "outcome": "refused", "why": said[-1]}
            continue
        piece = answered(request, rng)
        kind = "midi" if path.suffix.lower() in (".mid", ".midi") else "musicxml"
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / ("out.mid" if kind == "midi" else "out.musicxml")
            out.write_bytes(score_bytes(piece, kind))
            back = read_music(out).score
        own = heard(piece.kept(0))
        same = any(heard(voice) == own for voice in back.voices)
        extra = [f"{len(back.voices)} voices"] if len(back.voices) != 4 else []
        return {
            "file": path.name, "outcome": "at once" if tune is None else "with --tune top", "tune_kept": same,
            "signs_kept": about(back) == about(read_music(path).score), "notes": len(own), "remarks": extra,
        }  # fmt: skip
    return {"file": path.name, "outcome": "refused", "why": said[-1]}


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """TimeoutError after so many seconds of CPU time."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def judged(path: Path, seed: int, limit: float) -> dict[str, Any]:
    """What became of one file, and in what time; anything but an answer or a refusal is a failure."""
    begun = time.process_time()
    try:
        with limited(limit):
            found = tried(path, seed)
    except TimeoutError:
        found = {"file": path.name, "outcome": "failed", "why": f"more than {limit:g} s"}
    except Exception as error:  # what this benchmark looks for
        found = {"file": path.name, "outcome": "failed", "why": repr(error)[:200]}
    return {**found, "cpu_seconds": round(time.process_time() - begun, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of CPU time for one file")
    parser.add_argument("--output", default="music_files", help="results/NAME.json")
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for path in gather(Path(folder), options.seed):
            found.append(judged(path, options.seed, options.limit))
            print(found[-1], flush=True)
            record(options.output, options.seed, found)


def record(name: str, seed: int, found: list[dict[str, Any]]) -> None:
    """Write what was found so far."""
    outcomes = ("at once", "with --tune top", "refused", "failed")
    counts = {outcome: sum(one["outcome"] == outcome for one in found) for outcome in outcomes}
    kept = {name: sum(bool(one.get(name)) for one in found) for name in ("tune_kept", "signs_kept")}
    print(len(found), counts, kept, flush=True)
    write_result(name, {"seed": seed, "counts": counts, **kept, "files": found})


if __name__ == "__main__":
    main()
