"""anyfill: train one model on your data, then ask it any conditional question.

    model.given(row).sample(5) · .log_prob(...) · .mean() · .interval(0.9) · .information(target)

Parts are imported from their packages (``anyfill.questions``, ``anyfill.networks``, ``anyfill.likelihoods``,
``anyfill.objectives``, ``anyfill.samplers``, ``anyfill.evaluation``, ``anyfill.training``, ``anyfill.recipes``);
the names most users need are here, loaded when first used so that ``import anyfill`` is quick.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyfill.conditional import Conditional
    from anyfill.data.rows import Rows
    from anyfill.evaluation import LogProb, consistency, log_prob
    from anyfill.model import Model
    from anyfill.questions import Question, Reading
    from anyfill.samplers import Draw, sample
    from anyfill.surfaces.estimator import TableModel
    from anyfill.training import FitOptions, fit, load_model, save_model

__version__ = "0.1.0"

__all__ = [
    "Conditional",
    "Draw",
    "FitOptions",
    "LogProb",
    "Model",
    "Question",
    "Reading",
    "Rows",
    "TableModel",
    "__version__",
    "consistency",
    "fit",
    "load_model",
    "log_prob",
    "sample",
    "save_model",
]

_HOME = {
    "Conditional": "conditional",
    "Draw": "samplers",
    "FitOptions": "training",
    "LogProb": "evaluation",
    "Model": "model",
    "Question": "questions",
    "Reading": "questions",
    "Rows": "data.rows",
    "TableModel": "surfaces.estimator",
    "consistency": "evaluation",
    "fit": "training",
    "load_model": "training",
    "log_prob": "evaluation",
    "sample": "samplers",
    "save_model": "training",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its home when it is first asked for (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'anyfill' has no attribute {name!r}")
    return getattr(importlib.import_module(f"anyfill.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
