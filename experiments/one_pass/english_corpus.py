"""Natural English from what lies on this machine, one text a line, for ``experiments.one_pass.english_model``.

    python -m experiments.one_pass.english_corpus --data FOLDER --out OUT [--debian] [--limit N]

Reads whichever of these are there, and says what it found (OUT/sources.json: lines, characters, licence of each):

    tatoeba_de_en     everyday sentences (Tatoeba, CC BY 2.0)
    enja_small        everyday sentences (Tanaka corpus, CC BY), tokenised and in small letters: put together again
    multi30k          captions (Flickr30k, research use)
    coco_captions     captions (COCO, CC BY 4.0)
    emnlp2017_news    news sentences (WMT, research use)
    text_small        State of the Union speeches (PDDL), Wikipedia (WikiText-2, CC BY-SA), Shakespeare (public domain)
    bible_es_en       the World English Bible (public domain)
    Debian packages   with --debian: the fortunes of fortunes-min and fortunes, if installed (copyright file named)

Nothing of it goes into the repository. Texts are put into NFC with straight apostrophes and quotes, single spaces,
tokenised marks at their words again; each distinct line once, in an order drawn with the seed. Sentences that
``benchmarks.cloze`` holds out are left out, from whichever source they come. Writes OUT/english.txt, and
OUT/everyday.json: the numbers of its lines that are everyday sentences, which are what people ask about.
"""

import argparse
import gzip
import json
import random
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.cloze import is_held_out, letters
from experiments.where import data_folder

MAX_LINE = 2000
"""Characters of a line; longer texts are cut behind a sentence."""
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " ", "–": "-"})
_CLOSING = re.compile(r" ([.,;:!?%)\]]|n't\b|'(?:s|re|ve|ll|d|m)\b)")


def lines_in(path: Path) -> Iterator[str]:
    """The lines of a file, plain or .gz."""
    raw = path.read_bytes()
    yield from (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode(errors="replace").splitlines()


def plain(line: str) -> str:
    """A line as people type it."""
    return " ".join(unicodedata.normalize("NFC", line).translate(_QUOTES).split())


def joined(line: str) -> str:
    """A tokenised line with marks at their words."""
    return re.sub(r"([(\[]) ", r"\1", _CLOSING.sub(r"\1", line.replace(" @-@ ", "-").replace(" @,@ ", ",")))


def cased(line: str) -> str:
    """A line in small letters with a capital at its beginning, and "I"."""
    line = re.sub(r"\bi\b", "I", joined(line.replace(" '", "'")))
    return line[:1].upper() + line[1:]


def column(number: int) -> Callable[[str], str]:
    """What stands in a column of a table of tabs."""
    return lambda line: (line.split("\t") + [""] * number)[number]


EVERYDAY = "everyday sentences"
SOURCES: tuple[tuple[str, str, str, Callable[[str], str]], ...] = (
    (EVERYDAY, "tatoeba_de_en/deu-eng.tsv.gz", "CC BY 2.0, Tatoeba", column(0)),
    (EVERYDAY, "enja_small/train.en.gz", "CC BY, Tanaka corpus", cased),
    ("captions", "multi30k/train.en.gz", "Flickr30k, research use", str),
    ("captions", "coco_captions_textgan/coco60_train.txt.gz", "COCO, CC BY 4.0", joined),
    ("news", "emnlp2017_news/valid.txt.gz", "WMT news, research use", joined),
    ("speeches", "text_small/sotu_speeches.txt.gz", "PDDL / CC0", str),
    ("Wikipedia", "text_small/wikitext2_valid.txt.gz", "CC BY-SA", joined),
    ("plays", "text_small/tinyshakespeare.txt.gz", "public domain", str),
    ("Bible", "bible_es_en/bible_es_en.tsv.gz", "World English Bible, public domain", column(-1)),
)
DEBIAN = (
    ("fortunes", "/usr/share/games/fortunes/fortunes", "see /usr/share/doc/fortunes-min/copyright"),
    ("literature", "/usr/share/games/fortunes/literature", "see /usr/share/doc/fortunes-min/copyright"),
    ("riddles", "/usr/share/games/fortunes/riddles", "see /usr/share/doc/fortunes-min/copyright"),
    ("wisdom", "/usr/share/games/fortunes/wisdom", "see /usr/share/doc/fortunes/copyright"),
)


def pieces_of(line: str) -> Iterator[str]:
    """The line, cut behind sentences where it is too long."""
    while len(line) > MAX_LINE:
        place = max(line.rfind(mark, 0, MAX_LINE) for mark in (". ", "? ", "! "))
        place = place + 1 if place > 0 else MAX_LINE
        yield line[:place]
        line = line[place:].lstrip()
    yield line


def clean(lines: Iterable[str], take: Callable[[str], str]) -> list[str]:
    """The lines that may be trained on."""
    found = (part for line in lines for part in pieces_of(plain(take(line))))
    return [one for one in found if len(one) > 3 and any(map(str.isalpha, one)) and not is_held_out(one)]


def main() -> None:
    """Every source that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--debian", action="store_true")
    parser.add_argument("--limit", type=int, help="lines of each source at most")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    table = [(name, arguments.data / path, licence, take) for name, path, licence, take in SOURCES]
    table += [(name, Path(path), licence, str) for name, path, licence in DEBIAN if arguments.debian]
    kept: dict[str, None] = {}
    everyday, seen = set[str](), set[str]()
    about: list[dict[str, Any]] = []
    for name, path, licence, take in table:
        if not path.is_file():
            about.append({"source": name, "file": path.name, "lines": 0, "why": "not there"})
            continue
        lines = clean(list(lines_in(path))[: arguments.limit], take)
        if name == EVERYDAY:  # by letters: both sources have some sentences in common
            lines = [one for one in dict.fromkeys(lines) if (key := letters(one)) not in seen and not seen.add(key)]
            everyday |= set(lines)
        kept |= dict.fromkeys(lines)
        about.append({"source": name, "file": path.name, "licence": licence, "lines": len(lines)})
        about[-1]["characters"] = sum(map(len, lines))
    found = list(kept)
    random.Random(arguments.seed).shuffle(found)
    (arguments.out / "english.txt").write_text("\n".join(found) + "\n")
    numbers = [number for number, line in enumerate(found) if line in everyday]
    (arguments.out / "everyday.json").write_text(json.dumps(numbers) + "\n")
    total = {"lines": len(found), "characters": sum(map(len, found))}
    (arguments.out / "sources.json").write_text(json.dumps({"total": total, "sources": about}, indent=1) + "\n")
    for one in [*about, total]:
        print(json.dumps(one), flush=True)


if __name__ == "__main__":
    main()
