"""The folder of a run: what the model is made of is worked out once, then each checkpoint is one write."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from torch import Tensor

from anyfill.model import Model
from anyfill.questions.question import Factorization
from anyfill.training.checkpoint import Saved, describe_model, make_config
from anyfill.training.describe import Json
from anyfill.training.folder import write_folder
from anyfill.training.state import require_same


class CheckpointWriter:
    """Writes checkpoints of one run.

    Args:
        folder: where.
        model: ValueError, before any training, if one of its parts cannot be described.
        readings: those it will have when trained.
        notes: kept beside the model.
    """

    def __init__(
        self, folder: Path, model: Model, factorizations: Iterable[Factorization], notes: Mapping[str, Json] | None
    ) -> None:
        self.folder = folder
        self._description, fields = describe_model(model, factorizations)
        self._fields = {name: value.cpu().clone() for name, value in fields.items()}
        self._notes = notes

    def write(
        self, files: Mapping[str, Mapping[str, Tensor]], conditions: dict[str, Json], progress: dict[str, Json]
    ) -> None:
        """Replace what the folder holds, as a whole; CheckpointError if that cannot be done."""
        training: dict[str, Json] = {"conditions": conditions, "progress": progress}
        config = make_config(self._description, notes=self._notes, training=training)
        write_folder(self.folder, config, {**files, "weights": {**files["weights"], **self._fields}})

    def require_same(self, saved: Saved, conditions: Mapping[str, Json]) -> None:
        """ValueError, naming the difference, unless the saved run is of the same model under the same conditions."""
        require_same({"model": saved.config["model"]}, {"model": self._description})
        require_same(saved.config["training"]["conditions"], conditions)
