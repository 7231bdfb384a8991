"""A folder of files that changes as a whole: the previous contents or the new ones, never a mixture.

    config.json                     the table of files (name, size, sha256) and all that is not tensors
    ROLE-HASH.safetensors           tensors, named by their content

New files get new names and reach the disk first; then ``config.json`` is replaced in one step, which is the moment the
new contents count; then files no longer in the table are removed. A crash in between leaves only files nobody names.
"""

import hashlib
import json
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load as safetensors_load
from safetensors.torch import save as safetensors_save
from torch import Tensor

from anyfill.disk import sync_folder

FORMAT = 1
CONFIG = "config.json"
_OURS = re.compile(
    r"(weights|resume|reference)-[0-9a-f]{16}\.safetensors|\.(config\.json|(weights|resume|reference)-.*)\.part"
)
_log = logging.getLogger(__name__)


class CheckpointError(ValueError):
    """A model folder that cannot be written or read: which file, what is wrong, what to do."""


def write_folder(folder: Path, config: Mapping[str, Any], files: Mapping[str, Mapping[str, Tensor]]) -> None:
    """Make ``folder`` hold this config and one file of tensors per role, all or nothing."""
    made: list[Path] = []
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
                _write_whole(path, content)
        whole = {"format": FORMAT, **config, "files": table}
        whole["digest"] = _digest(whole)
        sync_folder(folder)
        _write_whole(folder / CONFIG, (json.dumps(whole, indent=2) + "\n").encode())
        sync_folder(folder)
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
    """The config of ``folder``, checked to be whole; CheckpointError otherwise."""
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


def _write_whole(path: Path, content: bytes) -> None:
    """Replace ``path`` by a file with this content that is on the disk before it has the name."""
    partial = path.with_name(f".{path.name}.part")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


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
