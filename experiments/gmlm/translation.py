"""What the translation experiments of the GMLM paper share: data, jobs that resume, decoding, a file of results.

Data come from the data folder (Multi30k, Tatoeba) and, by option, from TSV files of the user's own (English, German),
such as ``anyfill translate corpus`` makes. Tests: Multi30k's test 2016, and Tatoeba sentences that are held out by
their English side, none of which is in the training pairs.

A job is one model: its recipe, its data (raw or distilled), its seconds. It is trained into WORK/models/NAME, where a
run that was cut off goes on, and skipped if it has ended. One job runs at a time. Translations lie in
WORK/outputs, so that every number can be made again from them. ``--smoke`` cuts everything to seconds on a CPU.
"""

import argparse
import gzip
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console

from anyfill.disk import write_bytes
from anyfill.interface.threads import compute_device
from anyfill.training.checkpoint import CONFIG, read_config
from anyfill.translation.cleaning import Counts, Rules, cleaned, is_held_out
from anyfill.translation.corpus import Corpus, encode_pairs
from anyfill.translation.hypotheses import Decoding, decoding_options
from anyfill.translation.metrics import evaluated
from anyfill.translation.model import Translator, load
from anyfill.translation.reading import Pair, read_pairs, sources_of
from anyfill.translation.recipes import Options, Recipe, Size
from anyfill.translation.settings import Settings
from anyfill.translation.training import fit_pairs
from anyfill.translation.vocabulary import Joint, learn, plain
from benchmarks.common import environment
from experiments.where import data_folder, shown

RATES = {"toy": 3e-3, "tiny": 3e-3, "small": 2e-3, "compact": 1.5e-3, "medium": 1e-3, "base": 7e-4}
"""Peak learning rates by size."""


@dataclass(frozen=True)
class Plan:
    """What an experiment runs on.

    Attributes:
        work: folder for corpora, models and outputs.
        data: folder of the data sets.
        sets: of "multi30k" and "tatoeba".
        extra: TSV files of English and German.
        source, target: the direction.
        size, vocabulary, length, dropout, batch: of the models.
        device: where.
        limit: pairs of each set, at most; 0 = all.
        test_limit: sentences of each test, at most; 0 = all.
        models: folder of trained models, NAME-DIRECTION, as sittings make them; None = they are trained.
    """

    work: Path
    data: Path
    sets: tuple[str, ...] = ("multi30k",)
    extra: tuple[Path, ...] = ()
    source: str = "en"
    target: str = "de"
    size: Size = "small"
    vocabulary: int = 8000
    length: int = 64
    dropout: float = 0.3
    batch: int = 1024
    device: Literal["cpu", "cuda"] = "cuda"
    limit: int = 0
    test_limit: int = 0
    models: Path | None = None

    @property
    def folder(self) -> Path:
        """Of this direction."""
        return self.work / f"{self.source}-{self.target}"


@dataclass(frozen=True)
class Job:
    """One model to train."""

    name: str
    recipe: Recipe
    seconds: float
    data: Literal["raw", "distilled"] = "raw"
    options: Options = field(default_factory=Options)
    size: Size | None = None
    vocabulary: int | None = None
    seed: int = 0


def arguments(description: str, **defaults: Any) -> argparse.ArgumentParser:
    """The options that all of them have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--work", type=Path, default=Path("/tmp/gmlm-translation"), help="corpora, models, outputs")
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of the data sets")
    parser.add_argument(
        "--sets", nargs="+", default=defaults.get("sets", ["multi30k"]), choices=["multi30k", "tatoeba"]
    )
    parser.add_argument("--extra", nargs="*", type=Path, default=[], help="TSV files of English and German")
    parser.add_argument("--directions", nargs="+", default=defaults.get("directions", ["en-de"]))
    parser.add_argument("--size", default=defaults.get("size", "small"))
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seconds", type=float, default=defaults.get("seconds", 120.0), help="of one model")
    parser.add_argument("--teacher-seconds", type=float, default=defaults.get("teacher", 240.0))
    parser.add_argument("--models", type=Path, help="trained models, NAME-DIRECTION, as sittings make them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, default=0, help="pairs of each set, 0 = all")
    parser.add_argument("--test-limit", type=int, default=0, help="sentences of each test, 0 = all")
    parser.add_argument("--out", type=Path, default=None, help="the JSON; by default results/gmlm/NAME.json")
    parser.add_argument("--smoke", action="store_true", help="a slice, a toy, seconds: does it run?")
    return parser


def plans(options: argparse.Namespace) -> list[Plan]:
    """One for each direction."""
    made: list[Plan] = []
    for direction in options.directions:
        source, _, target = direction.partition("-")
        made.append(
            Plan(
                work=options.work,
                data=options.data,
                sets=tuple(options.sets),
                extra=tuple(options.extra),
                source=source,
                target=target,
                size=options.size,
                vocabulary=options.vocabulary,
                batch=options.batch,
                device=compute_device(options.device),
                limit=options.limit,
                test_limit=options.test_limit,
                models=options.models,
            )
        )
    if options.smoke:
        options.seconds, options.teacher_seconds = 4.0, 4.0
        small: dict[str, Any] = {"size": "toy", "vocabulary": 1000, "length": 40, "batch": 16, "dropout": 0.0}
        made = [replace(one, **small, device="cpu", limit=400, test_limit=6) for one in made]
    return made


def training_pairs(plan: Plan) -> Iterator[Pair]:
    """(source, target), uncleaned; Tatoeba without what is tested on."""
    own = {"multi30k": _multi30k(plan, "train"), "tatoeba": (p for p in _tatoeba(plan) if not _is_test(p, plan))}
    for name in plan.sets:
        yield from _first(own[name], plan.limit)
    if plan.extra:
        sources = sources_of(list(plan.extra), plan.source, plan.target, ("en", "de"))
        yield from _first(read_pairs(sources, plan.source), plan.limit)


def test_pairs(plan: Plan) -> dict[str, list[Pair]]:
    """The tests of a plan: Multi30k's test 2016; Tatoeba's held-out sentences, 2,000 at most."""
    found: dict[str, list[Pair]] = {}
    if "multi30k" in plan.sets:
        found["multi30k"] = list(_first(_multi30k(plan, "test_2016_flickr"), plan.test_limit))
    if "tatoeba" in plan.sets:
        held = (pair for pair in _tatoeba(plan) if _is_test(pair, plan))
        once = {pair[0]: pair for pair in held}  # one reference for each source
        found["tatoeba"] = list(_first(iter(once.values()), plan.test_limit or 2000))
    return {name: [(plain(a), plain(b)) for a, b in pairs] for name, pairs in found.items()}


def validation_pairs(plan: Plan, most: int) -> list[Pair]:
    """Some of Multi30k's validation pairs, for choices that must not look at a test."""
    return [(plain(a), plain(b)) for a, b in _first(_multi30k(plan, "val"), most)]


def _first(pairs: Iterator[Pair], limit: int) -> Iterator[Pair]:
    for number, pair in enumerate(pairs):
        if limit and number >= limit:
            return
        yield pair


def _multi30k(plan: Plan, part: str) -> Iterator[Pair]:
    paths = [plan.data / "multi30k" / f"{part}.{language}.gz" for language in (plan.source, plan.target)]
    return read_pairs(sources_of(paths, plan.source, plan.target), plan.source)


def _tatoeba(plan: Plan) -> Iterator[Pair]:
    path = plan.data / "tatoeba_de_en" / "deu-eng.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            english, german = line.rstrip("\n").split("\t")[:2]
            yield (english, german) if plan.source == "en" else (german, english)


def _is_test(pair: Pair, plan: Plan) -> bool:
    return is_held_out(pair[0 if plan.source == "en" else 1], 0.02, salt="test")


def corpus_of(plan: Plan, data: str, vocabulary_size: int) -> tuple[Joint, Corpus]:
    """The encoded corpus, made once; the vocabulary is that of the raw pairs."""
    folder = plan.folder / f"corpus-{data}-{vocabulary_size}"
    stored = plan.folder / f"vocabulary-{vocabulary_size}.model"
    counts = Counts()
    if not stored.exists():
        texts = (side for pair in cleaned(training_pairs(plan), Rules(), counts) for side in pair)
        vocabulary = learn(texts, vocabulary_size, kind="bpe" if plan.size == "toy" else "unigram")
        write_bytes(vocabulary.model, stored)
        print(f"{plan.source}-{plan.target}: {counts}, {vocabulary.size} pieces", flush=True)
    vocabulary = Joint(stored.read_bytes())
    if not folder.exists():
        pairs = cleaned(training_pairs(plan), Rules(), Counts())
        if data == "distilled":
            sources = sources_of([plan.folder / "distilled.tsv"], plan.source, plan.target)
            pairs = iter(list(read_pairs(sources, plan.source)))
        options = {"length": plan.length, "languages": (plan.source, plan.target), "valid_share": 0.01}
        for _ in encode_pairs(pairs, folder, vocabulary, **options):
            pass
    return vocabulary, Corpus.open(folder, vocabulary)


def trained(plan: Plan, job: Job) -> tuple[Translator, dict[str, Any]]:
    """The model of a job, trained now or before; and what its training was like."""
    if plan.models is not None:
        return load(plan.models / f"{job.name}-{plan.source}-{plan.target}", device=plan.device), {}
    folder = plan.folder / "models" / job.name
    noted = folder.with_suffix(".json")
    if noted.exists() and (folder / CONFIG).exists():
        return load(folder, device=plan.device), json.loads(noted.read_text())
    size = job.size or plan.size
    vocabulary, corpus = corpus_of(plan, job.data, job.vocabulary or plan.vocabulary)
    settings = Settings(
        recipe=job.recipe,
        size=size,
        length=plan.length,
        seconds=job.seconds,
        batch=plan.batch,
        dropout=plan.dropout,
        learning_rate=RATES[size],
        seed=job.seed,
        vocabulary_size=vocabulary.size,
    )
    resume = (folder / CONFIG).exists() and read_config(folder).get("training") is not None
    model, found = fit_pairs(
        corpus,
        vocabulary,
        settings,
        device=plan.device,
        languages=(plan.source, plan.target),
        folder=folder,
        resume=resume,
        options=job.options,
        console=Console(stderr=True, force_terminal=False),
    )
    found |= {"name": job.name, "recipe": job.recipe, "data": job.data, "size": size, "seed": job.seed}
    found["weights"] = sum(one.numel() for one in model.parameters())
    found["pairs"] = corpus.about["pairs"]["train"]
    found["pairs_per_second"] = found["steps"] * plan.batch / max(found["seconds"], 1e-9)
    write_bytes((json.dumps(found, indent=1) + "\n").encode(), noted)
    return load(folder, device=plan.device), found


def distilled(plan: Plan, teacher: Translator, *, beam: int = 4) -> None:
    """WORK/…/distilled.tsv: the teacher's translations of every training source, made once."""
    path = plan.folder / "distilled.tsv"
    if plan.models is not None or path.exists():
        return
    sources = list(dict.fromkeys(pair[0] for pair in cleaned(training_pairs(plan), Rules(), Counts())))
    sources.sort(key=len)
    lines: list[str] = []
    begun = time.perf_counter()
    size = teacher.decoder.rows_at_once
    for start in range(0, len(sources), size):
        some = [(text, teacher.vocabulary.encode(text)) for text in sources[start : start + size]]
        some = [(text, codes) for text, codes in some if 0 < len(codes) <= teacher.decoder.length]
        best = teacher.decoder.decode([codes for _, codes in some], Decoding(beam=beam)) if some else []
        for (text, _), found in zip(some, best):
            written = teacher.vocabulary.decode(found[0].codes)
            if written:
                lines.append(f"{text}\t{written}\n")
    write_bytes("".join(lines).encode(), path)
    print(f"distilled {len(lines)} pairs in {time.perf_counter() - begun:.0f} s", flush=True)


def translated(
    plan: Plan, name: str, translator: Translator, pairs: Sequence[Pair], how: Decoding, test: str
) -> tuple[list[str], dict[str, Any]]:
    """Translations of a test and what they are worth; written to WORK/…/outputs."""
    begun = time.perf_counter()
    options = {name: getattr(how, name) for name in ("passes", "lengths", "beam")}
    used = {name: value for name, value in options.items() if name in decoding_options(translator.recipe)}
    made = translator.translate([pair[0] for pair in pairs], **used, protect=False)
    seconds = time.perf_counter() - begun
    outputs = [one.text for one in made]
    path = plan.folder / "outputs" / f"{name}.{test}.T{how.passes}.L{how.lengths}.B{how.beam}.txt"
    write_bytes("".join(f"{one}\n" for one in outputs).encode(), path)
    found = evaluated(outputs, [pair[1] for pair in pairs])
    found |= {"system": name, "test": test, "passes": how.passes, "lengths": how.lengths, "beam": how.beam}
    found["mean_passes"] = sum(one.passes for one in made) / len(made)
    found["seconds"] = seconds
    print(f"{name} {test} T={how.passes} L={how.lengths} B={how.beam}: BLEU {found['bleu']:.2f}", flush=True)
    return outputs, found


def write(name: str, payload: dict[str, Any], options: argparse.Namespace, device: str) -> Path:
    """results/gmlm/NAME.json, or wherever --out says; smoke runs never go to results."""
    from benchmarks.common import RESULTS

    default = options.work / f"{name}-smoke.json" if options.smoke else RESULTS / "gmlm" / f"{name}.json"
    path = options.out or default
    said = shown(vars(options))
    document = {"name": f"gmlm/{name}", "environment": environment(device), "arguments": said, **payload}
    write_bytes((json.dumps(document, indent=2, allow_nan=False, default=str) + "\n").encode(), path)
    print(f"wrote {path}", flush=True)
    return path


def one_thread() -> None:
    """Torch with one thread, for CPU measurements."""
    torch.set_num_threads(1)
