"""Training a model and keeping it: ``fit``, ``fit_steps``, ``save_model``, ``load_model``."""

from anyfill.training.checkpoint import CheckpointError, load_model, load_notes, save_model
from anyfill.training.fit import fit, fit_steps
from anyfill.training.options import FitOptions
from anyfill.training.reports import (
    DivergedError,
    FitResult,
    JsonLines,
    MetricsError,
    MetricSink,
    StepReport,
    TensorBoard,
)

__all__ = [
    "CheckpointError",
    "DivergedError",
    "FitOptions",
    "FitResult",
    "JsonLines",
    "MetricSink",
    "MetricsError",
    "StepReport",
    "TensorBoard",
    "fit",
    "fit_steps",
    "load_model",
    "load_notes",
    "save_model",
]
