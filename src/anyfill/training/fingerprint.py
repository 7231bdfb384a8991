"""A short stand-in for the data of a run, so that a run is not resumed with other data by mistake.

Up to ``_CELLS`` values all rows are read. Of more, so that a corpus on disk is not read through, the first and the last
``_ENDS`` rows and ``_SPREAD`` evenly spaced ones: there the number of rows, or whatever moves or changes a good part of
them, is noticed, a single value in between may not be.

Earlier runs noted a fingerprint of the ends alone; such a run is resumed with that one.
"""

import hashlib

import torch
from torch import Tensor

from anyfill.rows import RowSource

_CELLS = 2**22
"""Values that are read wholly."""
_SPREAD = 4096
"""Rows read of more, fewer where so many are more than ``_CELLS`` values."""
_ENDS = 64
"""Rows read at either end."""
_AT_ONCE = 2**18
"""Values held at a time."""
_MARK = "2"
"""What this kind of fingerprint begins with; the earlier kind has 16 digits and no mark."""


def fingerprint(rows: RowSource, *, like: object = None) -> str:
    """The same text for the same values, on whatever device and in however many bits they are kept.

    Args:
        rows: the data.
        like: a fingerprint to be compared with, as it was read from a file; if it is of the earlier kind, so is this.
    """
    if isinstance(like, str) and len(like) == 16:
        return _digest(rows, _ends(len(rows)), 2 * _ENDS)
    return _MARK + _digest(rows, _chosen(len(rows), rows.variables), max(1, _AT_ONCE // max(1, rows.variables)))


def _chosen(count: int, variables: int) -> Tensor:
    """int64: the rows that are read, in order."""
    if count * variables <= _CELLS:
        return torch.arange(count)
    most = max(2, min(_SPREAD, _CELLS // variables, count))
    spread = torch.arange(most) * (count - 1) // (most - 1)
    return torch.cat([_ends(count), spread]).unique()


def _ends(count: int) -> Tensor:
    first, last = min(_ENDS, count), max(_ENDS, count - _ENDS)
    return torch.cat([torch.arange(first), torch.arange(min(last, count), count)])


def _digest(rows: RowSource, index: Tensor, at_once: int) -> str:
    digest = hashlib.sha256(str(len(rows)).encode())
    for part in index.split(at_once):
        some = rows.take(part)
        x = torch.where(
            some.present, some.x, torch.zeros_like(some.x)
        )  # what stands in absent places is nobody's concern
        for tensor in (x, some.present, some.context):
            digest.update(b"none" if tensor is None else _content(tensor))
    return digest.hexdigest()[:16]


def _content(tensor: Tensor) -> bytes:
    wide = tensor.detach().cpu().to(torch.float64 if tensor.dtype.is_floating_point else torch.int64)
    return str(tuple(wide.shape)).encode() + wide.contiguous().numpy().tobytes()
