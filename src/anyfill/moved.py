"""Import paths that the documentation of 0.1 showed: for one release they work, and a warning says the new name.

A finder at the end of ``sys.meta_path`` answers for modules that are gone; nothing of it runs for any other import.
Names that have no successor of their own are refused with a sentence that says what to use instead.
"""

import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_FILL = "anyfill.text.load().fill(text, n=...)"
_MUSIC = "anyfill.music.load().fill(piece, ask=..., n=...)"
_SCORE = "anyfill.text.load().score(text)"

_KEPT = {
    "surfaces.estimator": "anyfill: TableModel",
    "surfaces.text.model": "anyfill.text: load",
    "surfaces.text.blanks": "anyfill.text.blanks: Lengths parse",
    "surfaces.music.grading": "anyfill.music.grades: real_bach",
    "data.examples": "anyfill.cli.examples: penguins",
    "data.text": "anyfill.text.vocabulary: TEXT8 as_text8 characters_in",
    "data.words": "anyfill.text.vocabularies: common_words",
    "data.with_end": "anyfill.text.vocabulary: WithEnd",
    "data.utf8": "anyfill.text.vocabulary: Utf8",
    "data.vocabularies": "anyfill.text.vocabularies: vocabulary_notes vocabulary_of",
    "data.corpus_rows": "anyfill.text.tokens: Chunks",
    "data.token_encoding": "anyfill.text.corpus: encode_corpus",
    "data.token_file": "anyfill.text.tokens: open_tokens",
    "data.score": "anyfill.music: Note Score",
    "recipes.text": "anyfill.text.recipes: text_model text_objective",
    "recipes.ising": "anyfill.ising.estimation: fit_ising",
    "networks.ising": "anyfill.ising: Ising",
    "samplers.chains": "anyfill.ising.chains: KGibbs run_chain",
    "questions.blocks": "anyfill.ising.blocks: AdaptiveBlocks k_blocks",
    "evaluation.grades.text": "anyfill.text.metrics: grade_text",
    "evaluation.lab.asymptotics": "anyfill.ising.asymptotics: ising_variance",
    "evaluation.lab.clique": "anyfill.ising.cliques: Clique clique_parallel_matrix",
    "evaluation.lab.parallel": "anyfill.ising.spectra: independent_parallel_law independent_parallel_matrix",
    "evaluation.lab.separation": "anyfill.ising.separation: stuck_bound",
    "evaluation.lab.spectra": "anyfill.ising.spectra: poincare_constant",
}
"""By the old module, below ``anyfill``: the new one, and the names it has under it as before."""

_RENAMED = {
    "surfaces.filling": {"Filler": "anyfill.tables.filling:PartFiller"},
    "surfaces.text.fill": {"Wanted": _FILL, "fill": _FILL},
    "surfaces.text.scoring": {"Scorer": _SCORE, "Totals": _SCORE},
    "surfaces.text.stream": {"Source": _SCORE},
    "surfaces.music.model": {"load": "anyfill.music.model:load_network"},
    "surfaces.music.choose": {"Wanted": _MUSIC},
    "surfaces.music.fill": {"fill": _MUSIC, "question_of": _MUSIC},
    "surfaces.music.whole": {"read_whole": "anyfill.music.read(file)"},
    "data.music_files": {
        "read_chorale": "anyfill.music.files:read_chorale",
        "write_score": "anyfill.music.writing:write_score",
    },
}

MOVED: dict[str, dict[str, str]] = _RENAMED | {
    old: {name: f"{home}:{name}" for name in names.split()}
    for old, (home, names) in ((old, new.split(": ")) for old, new in _KEPT.items())
}
"""By the old module, below ``anyfill``: names and where they are now, as "module:name", or what to use instead."""


class Moved(MetaPathFinder, Loader):
    """Finds the modules of ``MOVED`` and the packages above them, if nobody else has."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package != "anyfill" or not any(f"{old}.".startswith(f"{name}.") for old in MOVED):
            return None
        return ModuleSpec(fullname, self, is_package=name not in MOVED)

    def exec_module(self, module: ModuleType) -> None:
        """A module of names that are looked up when they are asked for."""
        here = module.__name__
        names = MOVED.get(here.removeprefix("anyfill."), {})

        def load(name: str) -> Any:
            if name not in names:
                raise AttributeError(f"module {here!r} has no attribute {name!r}")
            home, _, new = names[name].partition(":")
            if not new:
                raise ImportError(f"{here}.{name} is gone: use {home}")
            warnings.warn(f"{here}.{name} is now {home}.{new}", DeprecationWarning, stacklevel=2)
            return getattr(importlib.import_module(home), new)

        module.__getattr__ = load  # type: ignore[method-assign]


def with_old_names(load: Callable[[str], Any]) -> Callable[[str], Any]:
    """``__getattr__`` of the package itself, which also knows its old names."""

    def load_any(name: str) -> Any:
        if name == "Reading":
            warnings.warn("anyfill.Reading is now anyfill.Factorization", DeprecationWarning, stacklevel=2)
            return load("Factorization")
        return load(name)

    return load_any


def install() -> None:
    """Let old paths be found, once."""
    if not any(isinstance(finder, Moved) for finder in sys.meta_path):
        sys.meta_path.append(Moved())
