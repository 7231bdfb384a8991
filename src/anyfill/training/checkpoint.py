"""A model in a folder: ``config.json`` says what it is made of, safetensors hold its weights bit for bit.

    config.json                     the table of files (name, size, sha256) and all that is not tensors
    ROLE-HASH.safetensors           tensors, named by their content

The folder changes as a whole: the previous contents or the new ones, never a mixture. New files get new names and reach
the disk first; then ``config.json`` is replaced in one step, which is the moment the new contents count; then files no
longer in the table are removed. A crash in between leaves only files nobody names.

Nothing is ever unpickled. While a run is under way the folder also holds what the run needs to continue exactly
(``resume``), and ``load_model`` gives the best model so far.
"""

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load as safetensors_load
from safetensors.torch import save as safetensors_save
from torch import Tensor

from anyfill.checks import refuse
from anyfill.disk import require_writable, write_bytes
from anyfill.model import Model
from anyfill.questions.question import Factorization
from anyfill.training.describe import Json, build, describe, modern, part_name
from anyfill.training.quantize import dequantized, quantized
from anyfill.version import __version__

FORMAT = 1
CONFIG = "config.json"
_OURS = re.compile(
    r"(weights|resume|reference)-[0-9a-f]{16}\.safetensors|\.(config\.json|(weights|resume|reference)-.*)\.part"
)
_log = logging.getLogger(__name__)
_PARTS = ("network", "likelihood", "corruption", "order")
_FIELD = "@"
"""Tensors that are options of a part, not weights, are kept in the weights file under keys that begin so."""


class CheckpointError(ValueError):
    """A model folder that cannot be written or read: which file, what is wrong, what to do."""


def save_model(
    model: Model, folder: Path | str, *, notes: Mapping[str, Json] | None = None, eight_bit: bool = False
) -> None:
    """Save a model so that ``load_model`` gives it back bit for bit; CheckpointError if that cannot be done.

    Args:
        model: its network, likelihood, corruption and order must be dataclasses.
        folder: made if it does not exist; a model already there is replaced as a whole.
        notes: anything else as JSON, such as the names of the columns; ``load_notes`` gives it back.
        eight_bit: keep matrices in 8 bits, a scale for each row (``anyfill.training.quantize``): what is loaded are
            the rounded weights, in 32 bits.
    """
    try:
        description, tensors = describe_model(model, model.factorizations)
        config = make_config(description, notes=notes, training=None)
    except ValueError as error:
        raise CheckpointError(f"{folder}: the model cannot be saved: {error}") from error
    weights: dict[str, Tensor] = model.state_dict()
    write_folder(Path(folder), config, {"weights": {**(quantized(weights) if eight_bit else weights), **tensors}})


def load_model(folder: Path | str, *, parts: Sequence[type] = ()) -> Model:
    """The model saved in ``folder``, on the CPU and in evaluation mode; CheckpointError if there is none.

    Args:
        folder: where ``save_model`` or ``fit`` saved it.
        parts: classes of your own that the model is made of, beside those anyfill exports.
    """
    return _build_model(Path(folder), _read(Path(folder), ("weights",)), parts)


def is_model(folder: Path | str) -> bool:
    """Whether a folder holds a model, if only a damaged one; a CONFIG of other programs makes none."""
    path = Path(folder) / CONFIG
    if not path.is_file():
        return False
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return True
    return isinstance(config, dict) and "format" in config


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
    description: dict[str, Json] = {name: describe(getattr(model, name), _FIELD + name, tensors) for name in _PARTS}
    description["factorizations"] = [*sorted(one.value for one in factorizations)]
    return description, tensors


def make_config(
    description: Mapping[str, Json], *, notes: Mapping[str, Json] | None, training: Mapping[str, Json] | None
) -> dict[str, Any]:
    """The config of a model folder, less its table of files; ValueError for notes that JSON cannot write."""
    return {"anyfill": __version__, "model": dict(description), "notes": plain_notes(notes), "training": training}


def plain_notes(notes: Mapping[str, Json] | None) -> dict[str, Json]:
    """Notes as they will be read back (keys that are numbers as text): the digest is of that, not of what came in."""
    try:
        return json.loads(json.dumps(dict(notes or {})))
    except (TypeError, ValueError) as error:
        raise refuse("notes", expected="a dict of what JSON can write", got=f"something else ({error})") from None


def load_saved(folder: Path) -> Saved:
    """All that a folder holds, for a run that resumes; CheckpointError if it is not whole."""
    return _read(folder, ("weights", "resume"))


def load_weights(model: Model, weights: Mapping[str, Tensor]) -> None:
    """Copy saved weights into the model bit for bit; ValueError if they do not fit."""
    state = model.state_dict(keep_vars=True)
    weights = dequantized({name: value for name, value in weights.items() if not name.startswith(_FIELD)})
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
            there = [role for role in roles if role != "resume" or role in config["files"]]
            tensors = {role: read_tensors(folder, config, role) for role in there}
        except CheckpointError:
            if read_config(folder)["digest"] == config["digest"]:
                raise
        else:
            resume = {re.sub("^optimiser/", "optimizer/", name): t for name, t in tensors.get("resume", {}).items()}
            return Saved(config, tensors["weights"], resume)  # optimiser: so version 0.1 calls it
    raise CheckpointError(f"{folder}: keeps changing while it is read; try again when its run has finished")


def _build_model(folder: Path, saved: Saved, parts: Sequence[type]) -> Model:
    description = cast("dict[str, Any]", saved.config["model"])
    if not isinstance(parts, (list, tuple, set, frozenset)):
        raise refuse("parts", expected="a list of classes", got=repr(parts))
    table = {part_name(part): part for part in parts}
    # A network draws its first weights when it is made; that must not move the caller's random numbers.
    state = torch.default_generator.get_state()
    try:
        built = {name: build(description[name], table, saved.weights) for name in _PARTS}
        model = Model(**built, factorizations=description["factorizations"])
        load_weights(model, saved.weights)
    except (ValueError, TypeError, KeyError, RuntimeError) as error:
        raise CheckpointError(f"{folder / CONFIG}: describes no model that can be built here ({error})") from error
    finally:
        torch.default_generator.set_state(state)
    return model.eval()


def require_savable(folder: Path) -> None:
    """CheckpointError, before any work, if nothing can be written to a folder that may have to be made."""
    try:
        require_writable(folder)
    except ValueError as error:
        raise CheckpointError(str(error)) from None


def write_folder(folder: Path, config: Mapping[str, Any], files: Mapping[str, Mapping[str, Tensor]]) -> None:
    """Make ``folder`` hold this config and one file of tensors per role, all or nothing.

    CheckpointError where that cannot be done, and where the ``CONFIG`` of another program would be lost.
    """
    made: list[Path] = []
    if (folder / CONFIG).is_file() and not is_model(folder):
        raise CheckpointError(f"{folder / CONFIG}: is there already and is not of anyfill; choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        table: dict[str, dict[str, str | int]] = {}
        for role, tensors in files.items():
            content = _serialise(tensors)
            digest = hashlib.sha256(content).hexdigest()
            path = folder / f"{role}-{digest[:16]}.safetensors"
            table[role] = {"name": path.name, "sha256": digest, "bytes": len(content)}
            if not (path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest):
                made.append(path)
                write_bytes(content, path, sole_writer=True)
        whole = {"format": FORMAT, **config, "files": table}
        whole["digest"] = _digest(whole)
        write_bytes((json.dumps(whole, indent=2) + "\n").encode(), folder / CONFIG, sole_writer=True)
    except OSError as error:
        _remove_unnamed(folder, made)
        reason = error.strerror or str(error)
        raise CheckpointError(
            f"{folder}: the model could not be saved there ({reason}); what the folder held before is unchanged, "
            "so make room or choose another folder and save again"
        ) from error
    except BaseException:
        _remove_unnamed(folder, made)
        raise
    _remove_unnamed(folder, [path for path in folder.iterdir() if _OURS.fullmatch(path.name)])


def read_config(folder: Path) -> dict[str, Any]:
    """The config of ``folder``, checked to be whole, in today's names; CheckpointError otherwise."""
    if folder.is_file():
        raise CheckpointError(
            f"{folder}: this is a file, but a model is a folder with {CONFIG} and safetensors files; "
            "pass the folder (pickled models are never read)"
        )
    path = folder / CONFIG
    if not path.is_file():
        raise CheckpointError(f"{path}: there is no such file, so this is not a model folder; check the path")
    try:
        config = json.loads(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); check the permissions") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: is not JSON, so it is damaged or something else; restore a copy") from error
    if not isinstance(config, dict) or "format" not in config:
        raise CheckpointError(f"{path}: is not the description of an anyfill model; check the path")
    config = cast("dict[str, Any]", config)
    if config["format"] != FORMAT:
        raise CheckpointError(
            f"{path}: has format {config['format']!r} but this anyfill reads format {FORMAT}; "
            f"use the anyfill that wrote it ({config.get('anyfill', 'unknown version')})"
        )
    if config.get("digest") != _digest(config):
        raise CheckpointError(f"{path}: was changed after it was written (its digest differs); restore a copy")
    for place, key in ((config, "model"), (config.get("training") or {}, "conditions")):
        if key in place:
            place[key] = modern(place[key])
    return config


def read_tensors(folder: Path, config: Mapping[str, Any], role: str) -> dict[str, Tensor]:
    """The tensors of one role, checked against the table of files; CheckpointError otherwise."""
    entry = config["files"].get(role)
    if entry is None:
        raise CheckpointError(f"{folder / CONFIG}: names no {role} file; this folder cannot be used for that")
    if Path(entry["name"]).name != entry["name"]:
        raise CheckpointError(f"{folder / CONFIG}: names the file {entry['name']!r} outside the folder; restore a copy")
    path = folder / entry["name"]
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: is missing; restore a copy of the whole folder") from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); check the file") from error
    if len(content) != entry["bytes"]:
        raise CheckpointError(
            f"{path}: has {len(content)} bytes instead of {entry['bytes']}, so it is cut off or damaged; restore a copy"
        )
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise CheckpointError(f"{path}: was changed after it was written (its sha256 differs); restore a copy")
    try:
        return safetensors_load(content)
    except SafetensorError as error:
        raise CheckpointError(f"{path}: is not a safetensors file ({error}); restore a copy") from error


def _serialise(tensors: Mapping[str, Tensor]) -> bytes:
    # A copy of each: parameters that share memory (tied weights) are written twice, and read back as two equal ones.
    return safetensors_save({name: torch.clone(tensor.detach().cpu()).contiguous() for name, tensor in tensors.items()})


def _digest(config: Mapping[str, Any]) -> str:
    """sha256 of the config without its digest, however it is spaced and ordered."""
    rest = {key: value for key, value in config.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _remove_unnamed(folder: Path, paths: list[Path]) -> None:
    """Remove those of ``paths`` that the table of files on the disk, whichever that is by now, does not name."""
    try:
        table: dict[str, dict[str, str]] = json.loads((folder / CONFIG).read_bytes())["files"]
    except FileNotFoundError:
        table = {}
    except (OSError, ValueError, KeyError, TypeError):
        return  # better some rubbish than to remove what a damaged table may have named
    named = {entry["name"] for entry in table.values()}
    for path in paths:
        if path.name in named:
            continue
        try:
            path.unlink(missing_ok=True)
        except OSError as error:  # the model is safe either way: this only leaves rubbish behind
            _log.warning("%s could not be removed (%s)", path, error.strerror)
