"""Pieces of music21's corpus by name ("bwv66.6"), read from the files that come with that package.

music21 is an extra and is imported only here, when a name is asked for. Its MusicXML files are read by our own reader;
what it keeps in other formats it is asked to write as MusicXML first. Most of the chorales that are kept aside for
grading are in this corpus: it is for reading and comparing, not for training.
"""

import importlib
import re
import tempfile
from pathlib import Path
from typing import Any

from anyfill.checks import refuse
from anyfill.music.musicxml import read_musicxml
from anyfill.music.parts import Factorization

_NAME = re.compile(r"[A-Za-z0-9][\w./-]*")


def read_corpus(name: str) -> Factorization:
    """A piece of the corpus; ValueError if there is none of that name, or music21 is not installed."""
    source = f"piece {name}"
    if not _NAME.fullmatch(name) or ".." in name:
        raise refuse(source, expected='a name of music21\'s corpus, as "bwv66.6"', got=repr(name))
    corpus = _corpus(source)
    try:
        found: Any = corpus.getWork(name)
    except Exception as error:  # its CorpusException, and others for odd names
        raise refuse(source, expected="a name of music21's corpus", got=" ".join(str(error).split())) from None
    path = Path(str(found[0] if isinstance(found, list) else found))
    if path.suffix.lower() in (".xml", ".musicxml", ".mxl"):
        return read_musicxml(path.read_bytes(), source)
    with tempfile.TemporaryDirectory() as folder:
        written: Any = corpus.parse(name).write("musicxml", fp=Path(folder) / "piece.musicxml")
        return read_musicxml(Path(str(written)).read_bytes(), source)


def _corpus(source: str) -> Any:
    try:
        return importlib.import_module("music21.corpus")
    except ModuleNotFoundError:
        expected = 'a file, or a name of music21\'s corpus with music21 installed (pip install "anyfill[music]")'
        raise refuse(source, expected=expected, got="neither") from None
