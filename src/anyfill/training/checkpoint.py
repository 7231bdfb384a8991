"""A model in a folder: ``config.json`` says what it is made of, safetensors hold its weights bit for bit.

Nothing is ever unpickled. While a run is under way the folder also holds what the run needs to continue exactly
(``resume``), and ``load_model`` gives the best model so far.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from anyfill.model import Model
from anyfill.questions.question import Factorization
from anyfill.training.describe import Json, build, describe, part_name
from anyfill.training.folder import CONFIG, CheckpointError, read_config, read_tensors, write_folder

_FIELD = "@"
"""Tensors that are options of a part, not weights, are kept in the weights file under keys that begin so."""


def save_model(model: Model, folder: Path | str, *, notes: Mapping[str, Json] | None = None) -> None:
    """Save a model so that ``load_model`` gives it back bit for bit; CheckpointError if that cannot be done.

    Args:
        model: its network, likelihood, corruption and order must be dataclasses.
        folder: made if it does not exist; a model already there is replaced as a whole.
        notes: anything else as JSON, such as the names of the columns; ``load_notes`` gives it back.
    """
    try:
        description, tensors = describe_model(model, model.factorizations)
    except ValueError as error:
        raise CheckpointError(f"{folder}: the model cannot be saved: {error}") from error
    config = make_config(description, notes=notes, training=None)
    write_folder(Path(folder), config, {"weights": {**model.state_dict(), **tensors}})


def load_model(folder: Path | str, *, parts: Sequence[type] = ()) -> Model:
    """The model saved in ``folder``, on the CPU and in evaluation mode; CheckpointError if there is none.

    Args:
        folder: where ``save_model`` or ``fit`` saved it.
        parts: classes of your own that the model is made of, beside those anyfill exports.
    """
    saved = _read(Path(folder), ("weights",))
    return _build_model(Path(folder), saved, parts)


def load_notes(folder: Path | str) -> dict[str, Json]:
    """The notes saved with a model."""
    return read_config(Path(folder))["notes"]


@dataclass(frozen=True, slots=True)
class Saved:
    """The contents of a model folder: config, weights, and the state of its run if it is unfinished."""

    config: dict[str, Any]
    weights: dict[str, Tensor]
    resume: dict[str, Tensor]


def describe_model(model: Model, factorizations: Iterable[Factorization]) -> tuple[dict[str, Json], dict[str, Tensor]]:
    """What the model is made of, and the tensors among its options; ValueError if a part cannot be described."""
    tensors: dict[str, Tensor] = {}
    description: dict[str, Json] = {
        name: describe(getattr(model, name), _FIELD + name, tensors)
        for name in ("network", "likelihood", "corruption", "order")
    }
    description["factorizations"] = [*sorted(factorization.value for factorization in factorizations)]
    return description, tensors


def make_config(
    description: Mapping[str, Json], *, notes: Mapping[str, Json] | None, training: Mapping[str, Json] | None
) -> dict[str, Any]:
    """The config of a model folder, less its table of files."""
    try:
        ours = version("anyfill")
    except PackageNotFoundError:  # run from a checkout that was never installed
        ours = "unknown"
    return {"anyfill": ours, "model": dict(description), "notes": dict(notes or {}), "training": training}


def has_checkpoint(folder: Path) -> bool:
    """True if there is a model, whole or damaged, in ``folder``."""
    return (folder / CONFIG).exists()


def load_saved(folder: Path) -> Saved:
    """All that a folder holds, for a run that resumes; CheckpointError if it is not whole."""
    config = read_config(folder)
    roles = ("weights", "resume") if "resume" in config["files"] else ("weights",)
    return _read(folder, roles)


def load_weights(model: Model, weights: Mapping[str, Tensor]) -> None:
    """Copy saved weights into the model bit for bit; ValueError if they do not fit."""
    state = model.state_dict(keep_vars=True)
    weights = {name: value for name, value in weights.items() if not name.startswith(_FIELD)}
    for name in state.keys() & weights.keys():
        if state[name].dtype != weights[name].dtype:
            state[name].data = state[name].data.to(weights[name].dtype)  # in place, so that tied weights stay tied
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(str(error).splitlines()[-1].strip()) from error


def _read(folder: Path, roles: Sequence[str]) -> Saved:
    """The files of these roles. A run that saves at this very moment may take them away: then read again."""
    for _ in range(3):
        config = read_config(folder)
        try:
            tensors = {role: read_tensors(folder, config, role) for role in roles}
        except CheckpointError:
            if read_config(folder)["digest"] == config["digest"]:
                raise
        else:
            return Saved(config, tensors["weights"], tensors.get("resume", {}))
    raise CheckpointError(f"{folder}: keeps changing while it is read; try again when its run has finished")


def _build_model(folder: Path, saved: Saved, parts: Sequence[type]) -> Model:
    description = cast("dict[str, Any]", saved.config["model"])
    table = {part_name(part): part for part in parts}
    # A network draws its first weights when it is made; that must not move the caller's random numbers.
    state = torch.default_generator.get_state()
    try:
        built = {
            name: build(description[name], table, saved.weights)
            for name in ("network", "likelihood", "corruption", "order")
        }
        model = Model(
            built["network"],
            built["likelihood"],
            corruption=built["corruption"],
            order=built["order"],
            factorizations=description[
                "factorizations" if "factorizations" in description else "readings"
            ],  # readings: 0.1
        )
        load_weights(model, saved.weights)
    except (ValueError, TypeError, KeyError, RuntimeError) as error:
        raise CheckpointError(f"{folder / CONFIG}: describes no model that can be built here ({error})") from error
    finally:
        torch.default_generator.set_state(state)
    return model.eval()
