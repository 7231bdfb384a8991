"""Translation in a few passes: train on pairs of sentences, then translate, fill, post-edit and score.

    model = translation.load("de-en")                        # a folder made by translation.train or the command line
    model.translate("Guten Morgen", passes=4).text
    model.alternatives("Guten Morgen", n=5)
    model.fill("Ich wohne in Berlin.", "I ___ in Berlin.")
    model.adapt("Ich wohne in Wien.", "I live in Berlin.", {"Berlin": "Vienna"})
    model.score("Guten Morgen", "Good morning").nats

Whatever else is here is importable and not advertised: readers of parallel files, joint vocabularies, metrics, latency.
"""

from typing import TYPE_CHECKING

from anyfill.lazy import lazily

if TYPE_CHECKING:
    from anyfill.translation.distillation import distill
    from anyfill.translation.likelihood import Score
    from anyfill.translation.model import Translator, load
    from anyfill.translation.texts import Translation
    from anyfill.translation.training import train

__all__ = ["Score", "Translation", "Translator", "distill", "load", "train"]

_HOME = {
    "Score": "likelihood",
    "Translation": "texts",
    "Translator": "model",
    "distill": "distillation",
    "load": "model",
    "train": "training",
}

__getattr__, __dir__ = lazily(__name__, _HOME)
