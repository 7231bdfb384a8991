"""The third and fourth sittings, one direction: a teacher of Multi30k by the published settings; what ships goes on.

    python -m experiments.gmlm.third prepare --work FOLDER                    here: FOLDER/work.tar.gz, what travels
    python -m experiments.gmlm.third run --work FOLDER --out OUT --direction en-de --until T
    python -m experiments.gmlm.third again --work FOLDER --out OUT --direction en-de --until T     the fourth sitting
    python -m experiments.gmlm.third pack --out OUT                           of both directions: few files

The fourth's FOLDER has the third's teacher as models/tiny-DIRECTION.

Steps are those of ``experiments.gmlm.schedule.third``, run by the engine of ``experiments.gmlm.sitting``; the two
directions are two processes side by side, each in a FOLDER of its own. The tiny teacher translates Multi30k's sources,
by the beam's length penalty that validation takes. PaDIR, begun from the weights in the package, learns from

    mixed    TIMES x Multi30k as the tiny teacher wrote it, and SHARE of Tatoeba's sources, each with one translation

In the fourth sitting Multi30k's target is the one of the teacher's beam that is most like the reference, by F1 over
pieces and pairs of them (Kim and Rush 2016 call it sequence-level interpolation): it is as easy to learn, and better.

A source of Tatoeba that people translated in several ways keeps the translation that is most like the others: by the
mean of its F1 against each, over pieces. So no teacher of Tatoeba is needed, and one source has one target.
"""

import argparse
import gc
import itertools
import json
import shutil
import tarfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from anyfill.networks.encoder_decoder import END
from anyfill.translation.cleaning import Counts, Rules, cleaned, is_held_out
from anyfill.translation.corpus import encode_pairs, store_codes
from anyfill.translation.decode import Decoder
from anyfill.translation.hypotheses import ROWS, Decoding
from anyfill.translation.model import load
from anyfill.translation.reading import Pair
from anyfill.translation.vocabulary import FIRST, Joint
from experiments.gmlm.schedule import fourth, third
from experiments.gmlm.ship import HOME
from experiments.gmlm.sitting import LENGTH, TIMES, Sitting, best_of_many, packed, sentences, unique
from experiments.gmlm.sitting import prepare as prepare_all
from experiments.gmlm.translation import Plan, training_pairs
from experiments.where import data_folder

SHARE = 0.6
"""Of Tatoeba's sources, those that PaDIR goes on with."""
LONGEST = 40
"""Pieces of a side that PaDIR goes on with, at most: graphs of the few longer ones would take half the memory."""
BLOCK = 2048
"""Sources distilled side by side: some 10 GB of an accelerator."""
WAYS = ("en-de", "de-en")


def like_the_others(texts: list[str]) -> str:
    """The text with the largest mean F1 of words against the others; the first of several."""
    if len(texts) < 3:
        return texts[0]
    bags = [Counter(text.split()) for text in texts]

    def likeness(one: Counter[str]) -> float:
        return sum(2 * (one & other).total() / (one.total() + other.total()) for other in bags)

    return texts[max(range(len(texts)), key=lambda number: (likeness(bags[number]), -number))]


def one_target_each(pairs: list[Pair], share: float) -> list[Pair]:
    """A share of the sources, each with one of its targets."""
    targets: dict[str, list[str]] = {}
    for source, target in pairs:
        targets.setdefault(source, []).append(target)
    chosen = (source for source in targets if is_held_out(source, share, salt="third"))
    return [(source, like_the_others(list(dict.fromkeys(targets[source])))) for source in chosen]


def prepare(work: Path, data: Path) -> None:
    """WORK/work.tar.gz: the shipped vocabulary, tests, Multi30k and the Tatoeba pairs of both directions, encoded."""
    folder = work / "prepared"
    model = load(HOME / "translation-en-de").vocabulary.model
    folder.mkdir(parents=True, exist_ok=True)
    (work / "vocabulary.model").write_bytes(model)
    prepare_all(folder, data, work / "vocabulary.model")
    shutil.rmtree(folder / "corpus-all-raw-en-de")
    for way in WAYS:
        source, target = way.split("-")
        plan = Plan(work=folder, data=data, sets=("tatoeba",), source=source, target=target)
        pairs = one_target_each(list(cleaned(training_pairs(plan), Rules(), Counts())), SHARE)
        options: dict[str, Any] = {"length": LENGTH, "languages": (source, target), "valid_share": 0.0}
        for _ in encode_pairs(pairs, folder / f"corpus-tatoeba-raw-{way}", Joint(model), **options):
            pass
        print(f"{way}: {len(pairs):,} pairs of Tatoeba", flush=True)
    packed([folder], work / "work.tar.gz")


def most_like(beams: list[tuple[int, ...]], reference: tuple[int, ...]) -> tuple[int, ...]:
    """The beam with the largest F1 of pieces and of pairs of them against a reference; the first of several."""
    wanted = _grams(reference)

    def likeness(beam: tuple[int, ...]) -> float:
        own = _grams(beam)
        return 2 * (own & wanted).total() / max(own.total() + wanted.total(), 1)

    return max(beams, key=likeness)


def _grams(codes: tuple[int, ...]) -> Counter[tuple[int, ...]]:
    return Counter([*((code,) for code in codes), *itertools.pairwise(codes)])


def all_of_many(decoder: Decoder, sources: list[tuple[int, ...]], how: Decoding) -> list[list[tuple[int, ...]]]:
    """All beams of each source, best first, many sources at once."""
    usual = ROWS["cuda"]
    ROWS["cuda"] = how.beam * BLOCK
    found: list[list[tuple[int, ...]]] = []
    try:
        for _, beams in decoder.beams(sources, how):
            for rows in beams:
                ended = (row[: row.index(END)] if END in row else row[:-1] for row in rows.tolist())
                found.append([tuple(code for code in row if code >= FIRST) for row in ended])
    finally:
        ROWS["cuda"] = usual
    return found


class Third(Sitting):
    """One direction; the model in the package counts among those to begin from."""

    def model_of(self, name: str, direction: str) -> Path | None:
        """Folder of a model."""
        if name == "package":
            return HOME / f"translation-{direction}"
        return super().model_of(name, direction)

    def distil(self, direction: str, valid: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Multi30k as the tiny teacher writes it; corpora "multi30k" and "mixed"."""
        begun = time.perf_counter()
        name = next(one for one in valid if one != "teacher")
        gc.collect()
        if self.device == "cuda":
            torch.cuda.empty_cache()  # what the training's graphs held
        teacher = load(self.work / "models" / f"{name}-{direction}", device=self.device)
        penalty = float(valid[name].get("penalty", 1.0))
        raw = self.corpus("tatoeba", "raw", direction)
        own = self.corpus("multi30k", "raw", direction)
        sources = unique(own.side("train", "source"))
        references = dict(zip(*(sentences(own.side("train", side)) for side in ("source", "target"))))
        far = list(zip(*(sentences(raw.side("train", side)) for side in ("source", "target"))))
        if self.trial:
            sources, far = sources[:64], far[:64]
        sources.sort(key=len)
        near: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = []
        for start in range(0, len(sources), BLOCK):
            some = sources[start : start + BLOCK]
            how = Decoding(beam=4, length_penalty=penalty)
            if name == "tiny":
                made = best_of_many(teacher.decoder, some, how)
            else:
                made = [
                    most_like(beams, references[source])
                    for source, beams in zip(some, all_of_many(teacher.decoder, some, how))
                ]
            near += [("train", a, b) for a, b in zip(some, made) if b and len(b) <= LENGTH]
        languages = (direction[:2], direction[-2:])
        every = [*TIMES * near, *(("train", a, b) for a, b in far)]
        mixed = [pair for pair in every if max(map(len, pair[1:])) <= LONGEST]
        for corpus, pairs in (("multi30k", near), ("mixed", mixed)):
            folder = self.work / f"corpus-{corpus}-distilled-{direction}"
            for _ in store_codes([pairs], folder, self.vocabulary, length=LENGTH, languages=languages):
                pass
        packed([self.work / f"corpus-multi30k-distilled-{direction}"], self.out / "distilled.tar.gz")
        seconds = time.perf_counter() - begun
        found = {"distilled": len(near), "of": len(sources), "seconds": seconds, "multi30k_by": name}
        found |= {"length_penalty": penalty, "tatoeba_raw": len(far)}
        print(f"  distilled {found}", flush=True)
        return found


def run(options: argparse.Namespace) -> None:
    """Train, distil, train on, translate."""
    torch.set_float32_matmul_precision("high")
    options.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sitting = Third(options.work, options.out, options.until, options.trial, device, try_graphs=False)
    steps = third(options.direction, options.teacher, options.padir)
    if options.part == "again":
        steps = fourth(options.direction, options.teacher, options.padir)
    if options.trial:
        steps = [replace(step, seconds=2.0) for step in steps]
    sitting.run(steps)


def pack(out: Path) -> None:
    """OUT/rest.tar.gz: results and teachers of both directions; OUT/NAME-DIRECTION.tar: PaDIR. The rest goes."""
    with tarfile.open(out / "rest.tar.gz", "w:gz") as tar:
        for way in WAYS:
            for path in sorted((out / way).glob("*")):
                if path.name in (f"third-{way}.tar", f"fourth-{way}.tar"):
                    path.rename(out / path.name)
                else:
                    tar.add(path, f"{way}/{path.name}")
    for way in WAYS:
        shutil.rmtree(out / way, ignore_errors=True)
    print(json.dumps({path.name: path.stat().st_size for path in sorted(out.iterdir()) if path.is_file()}), flush=True)


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("prepare", "run", "again", "pack"))
    parser.add_argument("--work", type=Path, default=Path("carry/translation"))
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--direction", choices=WAYS, default="en-de")
    parser.add_argument("--until", type=float, default=time.time() + 160, help="seconds since 1970")
    parser.add_argument("--teacher", type=float, default=56.0, help="seconds")
    parser.add_argument("--padir", type=float, default=0.0, help="seconds; 0 = what is left")
    parser.add_argument("--trial", action="store_true", help="seconds for each step: does it run?")
    options = parser.parse_args(argv)
    if options.part == "prepare":
        prepare(options.work, options.data)
    elif options.part == "pack":
        pack(options.out)
    else:
        run(options)


if __name__ == "__main__":
    main()
