"""anyfill: train one model on your data, then ask it any conditional question.

    model.given(row).sample(5) · .log_prob(...) · .mean() · .interval(0.9) · .information(target)

Parts are imported from their packages (``anyfill.questions``, ``anyfill.networks``, ``anyfill.likelihoods``,
``anyfill.objectives``, ``anyfill.samplers``, ``anyfill.evaluation``, ``anyfill.training``, ``anyfill.recipes``);
the names most users need are here, loaded when first used so that ``import anyfill`` is quick.
"""

from typing import TYPE_CHECKING

from anyfill.lazy import lazily
from anyfill.moved import install, with_old_names
from anyfill.version import __version__

if TYPE_CHECKING:
    from anyfill import images, ising, music, policy, text, translation
    from anyfill.conditional import Conditional
    from anyfill.evaluation import LogProb, consistency, log_prob
    from anyfill.model import Model
    from anyfill.questions import Factorization, Question
    from anyfill.rows import Rows
    from anyfill.samplers import Draw, sample
    from anyfill.tables.estimator import TableModel
    from anyfill.training import FitOptions, fit, load_model, save_model

__all__ = [
    "Conditional",
    "Draw",
    "Factorization",
    "FitOptions",
    "LogProb",
    "Model",
    "Question",
    "Rows",
    "TableModel",
    "__version__",
    "consistency",
    "fit",
    "images",
    "ising",
    "load_model",
    "log_prob",
    "music",
    "policy",
    "sample",
    "save_model",
    "text",
    "translation",
]

_HOME = {
    "Conditional": "conditional",
    "Draw": "samplers",
    "FitOptions": "training",
    "LogProb": "evaluation",
    "Model": "model",
    "Question": "questions",
    "Factorization": "questions",
    "Rows": "rows",
    "TableModel": "tables.estimator",
    "consistency": "evaluation",
    "fit": "training",
    "images": "images",
    "ising": "ising",
    "load_model": "training",
    "log_prob": "evaluation",
    "music": "music",
    "policy": "policy",
    "sample": "samplers",
    "save_model": "training",
    "text": "text",
    "translation": "translation",
}

_load, __dir__ = lazily(__name__, _HOME)
__getattr__ = with_old_names(_load)
install()
