"""The data of ``experiments.gmlm.table1_all``: Multi30k, Tatoeba and catalogues, three tests that nothing leaks into.

    anyfill translate corpus -o CATALOGUES --package libreoffice-help-de --package libreoffice-help-en-us \\
        --package libreoffice-l10n-de --package gcc-12-locales
    python -m experiments.gmlm.table1_all_data --catalogues CATALOGUES/pairs.tsv --work FOLDER

Tests: Multi30k's test 2016; sentences of Tatoeba and of the catalogues that are held out by a hash of their English
side. A training pair of which either side is a side of any test pair (whatever its case and marks) is left out, so
nothing leaks in either direction. Tests and training pairs have at most ``LENGTH`` pieces a side, of one vocabulary
that is learnt from all training pairs.

    corpus-all      Multi30k three times, Tatoeba, catalogues: teachers and the one-pass model
    corpus-study    Multi30k three times and a random share of the others: what is distilled, and what methods learn
                    from, raw and distilled, so that both kinds have the same sources

FOLDER/data.tar.xz is all that a machine needs; ``unpacked`` makes the folder of one direction of it.
"""

import argparse
import json
import random
import re
import shutil
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from anyfill.disk import write_bytes
from anyfill.translation.cleaning import Counts, Rules, cleaned, is_held_out
from anyfill.translation.corpus import Corpus, encode_pairs, store_codes
from anyfill.translation.reading import Pair
from anyfill.translation.vocabulary import Joint, learn
from experiments.gmlm.sitting import sentences
from experiments.gmlm.translation import Plan, test_pairs, training_pairs, validation_pairs
from experiments.where import data_folder

VOCABULARY, LENGTH = 8000, 48
SHORT = 40
"""Pieces of a side where both sides are one row: rows of the one-pass model are not cut."""
TIMES = 3
"""How often each pair of Multi30k is in a corpus."""
STUDY = {"tatoeba": 50_000, "catalogues": 25_000}
"""Pairs of the study beside Multi30k."""
TESTS = {"multi30k": 1000, "tatoeba": 1000, "catalogues": 500}
VALID = {"multi30k": 200, "tatoeba": 100, "catalogues": 100}
WAYS = ("en-de", "de-en")
ARCHIVE = "data.tar.xz"
_WORD = re.compile(r"\w+")


def key_of(text: str) -> str:
    """A sentence whatever its case, marks and spaces."""
    return " ".join(_WORD.findall(text.casefold())) or text


def without(pairs: Iterable[Pair], tested: set[str]) -> list[Pair]:
    """The pairs of which no side is a side of a test."""
    return [pair for pair in pairs if not any(key_of(side) in tested for side in pair)]


def split(pairs: Sequence[Pair], fits: Any, tests: int, valid: int, share: float) -> tuple[list[Pair], list[Pair]]:
    """Test and validation pairs by a hash of the first side, one for each; what remains is left to ``without``."""
    held = {key_of(pair[0]): pair for pair in pairs if is_held_out(pair[0], share, salt="test") and fits(pair)}
    chosen = list(held.values())
    random.Random(0).shuffle(chosen)
    return chosen[:tests], chosen[tests : tests + valid]


def prepare(work: Path, data: Path, catalogues: Path) -> None:
    """WORK: vocabulary.model, corpora en-de, tests of both directions, data.json, and all of it as data.tar.xz."""
    plan = Plan(work=work, data=data)
    work.mkdir(parents=True, exist_ok=True)
    counts = {name: Counts() for name in TESTS}
    lines = (line.split("\t")[:2] for line in catalogues.read_text(encoding="utf-8").splitlines())
    read: dict[str, Iterable[Pair]] = {
        "multi30k": training_pairs(plan),
        "tatoeba": training_pairs(replace(plan, sets=("tatoeba",))),
        "catalogues": ((a, b) for a, b in lines),
    }
    pairs = {name: list(cleaned(some, Rules(), counts[name])) for name, some in read.items()}
    tests = test_pairs(replace(plan, sets=("multi30k", "tatoeba")))
    near = {key_of(side) for some in tests.values() for pair in some for side in pair}
    texts = (side for name in TESTS for pair in without(pairs[name], near) for side in pair)
    joint = Joint(learn(texts, VOCABULARY, sentences=150_000).model)
    write_bytes(joint.model, work / "vocabulary.model")

    def fits(pair: Pair) -> bool:
        return all(0 < len(joint.encode(side)) <= LENGTH for side in pair)

    held = [pair for pair in tests["tatoeba"] if fits(pair)]
    random.Random(0).shuffle(held)
    tests["tatoeba"], own = held[: TESTS["tatoeba"]], held[-VALID["tatoeba"] :]
    plain = [pair for pair in pairs["catalogues"] if not any(ord("⟦") == ord(c) for side in pair for c in side)]
    tests["catalogues"], others = split(plain, fits, TESTS["catalogues"], VALID["catalogues"], 0.02)
    valid = [*validation_pairs(plan, VALID["multi30k"]), *own, *others]
    tested = near | {key_of(side) for some in (*tests.values(), valid) for pair in some for side in pair}
    kept = {name: without(some, tested) for name, some in pairs.items()}
    fit = {name: [pair for pair in some if fits(pair)] for name, some in kept.items()}
    draw = random.Random(1)
    study = [*fit["multi30k"], *(pair for name, n in STUDY.items() for pair in draw.sample(fit[name], n))]
    everything = [pair for some in fit.values() for pair in some]
    options: dict[str, Any] = {"length": LENGTH, "languages": ("en", "de"), "valid_share": 0.0}
    for name, some in (("all", everything), ("study", study)):
        many = [*(TIMES - 1) * fit["multi30k"], *some]
        for _ in encode_pairs(many, work / f"corpus-{name}-raw-en-de", joint, **options):
            pass
    for way in WAYS:
        turned = 1 if way == "en-de" else -1
        sets = {name: [pair[::turned] for pair in some] for name, some in {**tests, "valid": valid}.items()}
        write_bytes(json.dumps(sets, ensure_ascii=False).encode(), work / f"tests-{way}.json")
    about = {
        "read": {name: str(one) for name, one in counts.items()},
        "without_tests": {name: len(some) for name, some in kept.items()},
        "fitting": {name: len(some) for name, some in fit.items()},
        "study": {"multi30k": len(fit["multi30k"]), **STUDY},
        "multi30k_times": TIMES,
        "tests": {name: len(some) for name, some in tests.items()},
        "valid": VALID,
        "pieces": joint.size,
        "length": LENGTH,
    }
    write_bytes((json.dumps(about, indent=1) + "\n").encode(), work / "data.json")
    print(json.dumps(about, indent=1), flush=True)
    names = ["vocabulary.model", "data.json", *(f"tests-{way}.json" for way in WAYS)]
    names += [f"corpus-{name}-raw-en-de" for name in ("all", "study")]
    with tarfile.open(work / ARCHIVE, "w:xz", preset=9) as tar:
        for name in names:
            tar.add(work / name, name)


def unpacked(archive: Path, work: Path, way: str) -> None:
    """WORK: the folder of one direction, its raw corpora turned where that is needed."""
    with tarfile.open(archive) as tar:
        tar.extractall(work, filter="data")
    for name in ("all", "study") if way != "en-de" else ():
        other, folder = work / f"corpus-{name}-raw-en-de", work / f"corpus-{name}-raw-{way}"
        other.rename(folder)
        for part in ("train", "valid"):
            for kind in ("codes", "bounds"):
                source, target = (folder / f"{part}-{side}.{kind}" for side in ("source", "target"))
                aside = folder / "aside"
                for a, b in ((source, aside), (target, source), (aside, target)):
                    a.rename(b)
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        write_bytes(json.dumps(about | {"languages": way.split("-")}).encode(), folder / "about.json")


def ready(archive: Path, work: Path, way: str) -> None:
    """WORK as training wants it, once."""
    if not (work / f"corpus-short-raw-{way}").is_dir():
        unpacked(archive, work, way)
        shortened(work, way)


def shortened(work: Path, way: str) -> None:
    """WORK/corpus-short-raw-WAY: the pairs of all that fit into the rows of the one-pass model."""
    joint = Joint((work / "vocabulary.model").read_bytes())
    whole = Corpus.open(work / f"corpus-all-raw-{way}", joint)
    pairs = zip(*(sentences(whole.side("train", side)) for side in ("source", "target")), strict=True)
    short = [("train", a, b) for a, b in pairs if max(len(a), len(b)) <= SHORT]
    source, target = way.split("-")
    folder = work / f"corpus-short-raw-{way}"
    for _ in store_codes([short], folder, joint, length=SHORT, languages=(source, target)):
        pass


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--catalogues", type=Path, required=True, help="pairs.tsv of anyfill translate corpus")
    options = parser.parse_args(argv)
    shutil.rmtree(options.work, ignore_errors=True)
    prepare(options.work, options.data, options.catalogues)


if __name__ == "__main__":
    main()
