"""Trajectories from files: the human demonstrations of FrankaKitchen as they are, anything else by its groups.

    .npz                  kitchen demonstrations by themselves; other arrays (T, D) with lengths, or (..., T, D)
    .csv, .csv.gz, .parquet   one row for each step; the column ``episode`` tells trajectories apart
    a folder of those     one trajectory in each file

Steps of a trajectory stand in the order of time. What cannot be learnt from is refused with the file, the column and
the step.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anyfill.checks import refuse
from anyfill.policy.demonstrations import Columns, Demonstrations, Floats, Whole, refuse_not_finite
from anyfill.policy.groups import Groups, part_of, read_groups
from anyfill.policy.kitchen import kitchen_demonstrations, looks_like_kitchen

TABLES = (".csv", ".csv.gz", ".parquet")


def read_demonstrations(
    source: str | Path, groups: str | Path | Mapping[str, Any] | Groups | None = None
) -> Demonstrations:
    """The trajectories in a file or folder.

    Args:
        source: .npz, .csv, .csv.gz, .parquet, or a folder of the last three.
        groups: which columns are what, see ``anyfill.policy.groups``; kitchen demonstrations need none.
    """
    path = Path(source)
    if not path.exists():
        raise refuse(f"{path}", expected="a file or folder of trajectories", got="nothing there")
    if path.suffix.lower() == ".npz":
        return _from_npz(path, None if groups is None else read_groups(groups))
    if groups is None:
        expected = "--groups FILE beside it, as when a model was trained (which columns are observation, action, goal)"
        raise refuse(f"{path}", expected=expected, got="none")
    return _from_tables(path, read_groups(groups))


def _from_npz(path: Path, groups: Groups | None) -> Demonstrations:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, OSError, KeyError) as error:
        why = "something else" if "pickle" in str(error) else " ".join(str(error).split())
        raise refuse(f"{path}", expected="an npz file of plain arrays", got=why) from None
    if groups is None:
        if not looks_like_kitchen(arrays):
            expected = (
                "demonstrations of FrankaKitchen (qpos, act, length, when, tasks), or --groups that say what is what"
            )
            raise refuse(f"{path}", expected=expected, got=f"arrays {', '.join(arrays) or 'none'}")
        return kitchen_demonstrations(arrays, path.name)
    length = None if groups.length is None else _lengths(arrays, groups.length, path)
    columns: dict[str, Any] = {}
    counts: list[Whole] = []
    names = {group: _spelt(arrays, getattr(groups, group) or (), path) for group in ("observation", "action", "goal")}
    for word in (word for group in names.values() for word in group):
        name, part = part_of(word)
        flat, own = _steps(arrays[name], length, f"{name} of {path}")
        columns[word] = flat[:, part.start if part is not None else 0]
        counts.append(own)
    for own in counts[1:]:
        if not np.array_equal(own, counts[0]):
            raise refuse(f"{path}", expected="arrays of the same trajectories", got="other lengths in some of them")
    foreseen = None if groups.next is None else _spelt(arrays, groups.next, path)
    return _made(columns, names, foreseen, counts[0], path.name, missing=groups.missing)


def _lengths(arrays: Mapping[str, Any], name: str, path: Path) -> Whole:
    if name not in arrays or arrays[name].ndim != 1 or arrays[name].dtype.kind not in "iu":
        raise refuse(f"length in {path}", expected=f"whole numbers in an array {name!r}", got="none such")
    return arrays[name].astype(np.int64)


def _spelt(arrays: Mapping[str, Any], words: Sequence[str], path: Path) -> list[str]:
    """Every column by itself, ``name[place]``; an array with one column by its name."""
    spelt: list[str] = []
    for word in words:
        name, part = part_of(word)
        if name not in arrays:
            raise refuse(f"{path}", expected=f"an array {name!r}", got=", ".join(arrays))
        width = 1 if arrays[name].ndim == 1 else int(arrays[name].shape[-1])
        wanted = range(width) if part is None else range(part.start, part.stop)
        if not len(wanted) or wanted[-1] >= width:
            raise refuse(f"{word} of {path}", expected=f"columns 0 to {width - 1}", got=word)
        spelt += [name] if width == 1 else [f"{name}[{place}]" for place in wanted]
    return spelt


def _steps(array: Any, length: Whole | None, what: str) -> tuple[Any, Whole]:
    """(T, D), all trajectories behind one another, and their lengths."""
    if length is not None:
        flat = array.reshape(-1, 1) if array.ndim == 1 else array
        if flat.ndim != 2:
            raise refuse(what, expected="steps and columns, (T, D)", got=f"shape {array.shape}")
        if len(flat) != int(length.sum()):
            raise refuse(what, expected=f"{int(length.sum()):,} steps, the sum of the lengths", got=f"{len(flat):,}")
        return flat, length
    if array.ndim < 2:
        raise refuse(what, expected="an array (..., T, D), or length in the groups", got=f"shape {array.shape}")
    count = int(np.prod(array.shape[:-2], dtype=np.int64))
    return array.reshape(-1, array.shape[-1]), np.full(count, array.shape[-2], dtype=np.int64)


def _from_tables(path: Path, groups: Groups) -> Demonstrations:
    import pandas as pd

    files = sorted(one for one in path.iterdir() if one.name.lower().endswith(TABLES)) if path.is_dir() else [path]
    if not files:
        raise refuse(f"{path}", expected="CSV or Parquet files in the folder", got="none")
    if groups.episode is None and not path.is_dir():
        expected = (
            "episode in the groups (the column that tells trajectories apart), or a folder with one file for each"
        )
        raise refuse(f"{path}", expected=expected, got="neither")
    wanted = (*groups.observation, *groups.action, *groups.goal)
    parts: list[Any] = []
    lengths: list[int] = []
    for file in files:
        frame = _frame(file, pd)
        absent = [name for name in (*wanted, *([groups.episode] if groups.episode else [])) if name not in frame]
        if absent:
            got = f"{', '.join(map(str, frame.columns[:12]))}"
            raise refuse(f"{file}", expected=f"a column {absent[0]!r}", got=got or "no columns")
        if groups.episode is not None and bool(frame[groups.episode].isna().any()):
            row = int(frame[groups.episode].isna().to_numpy().argmax()) + 1
            raise refuse(f"{groups.episode!r} at row {row} of {file}", expected="its trajectory", got="an empty cell")
        cut = [frame] if groups.episode is None else [one for _, one in frame.groupby(groups.episode, sort=False)]
        parts += cut
        lengths += [len(one) for one in cut]
    whole = pd.concat(parts) if parts else pd.DataFrame(columns=list(wanted))
    columns = {name: _values(whole[name], goal=name in groups.goal) for name in wanted}
    names = {group: list(getattr(groups, group)) for group in ("observation", "action", "goal")}
    length = np.array(lengths, dtype=np.int64)
    foreseen = None if groups.next is None else list(groups.next)
    return _made(columns, names, foreseen, length, path.name, missing=groups.missing)


def _values(column: Any, *, goal: bool) -> Any:
    """(T,): a column as an array; whole numbers of a goal stay whole where pandas had to write a gap among them."""
    gaps = column.isna().to_numpy()
    values = column.to_numpy()
    if values.dtype.kind == "O":  # pandas has several words for nothing
        return np.where(gaps, None, values)
    if not goal or values.dtype.kind != "f" or not gaps.any() or bool((values[~gaps] % 1 != 0).any()):
        return values
    return np.array([None if gap else int(value) for value, gap in zip(values, gaps)], dtype=object)


def _frame(file: Path, pd: Any) -> Any:
    try:
        return pd.read_parquet(file) if file.suffix.lower() == ".parquet" else pd.read_csv(file)
    except Exception as error:  # pandas and pyarrow have a dozen kinds of them for a file that is none
        expected = "a table (CSV or Parquet) that can be read"
        raise refuse(f"{file}", expected=expected, got=" ".join(str(error).split())[:120]) from None


def _made(
    columns: Mapping[str, Any],
    names: Mapping[str, list[str]],
    foreseen: list[str] | None,
    length: Whole,
    name: str,
    *,
    missing: bool,
) -> Demonstrations:
    observed = names["observation"]
    unknown = [one for one in foreseen or () if one not in observed]
    if unknown:
        raise refuse(f"next in {name}", expected="columns that are observed", got=unknown[0])
    # Without a word about it, what is observed is foreseen where there are actions that lead to it.
    chosen = observed if foreseen is None and names["action"] else foreseen or []
    categories: list[tuple[str, ...]] = []
    goals: list[Any] = []
    for goal in names["goal"]:
        codes, values = _coded(columns[goal])
        categories.append(codes)
        goals.append(values)
    made = Columns(
        tuple(observed),
        tuple(names["action"]),
        tuple(names["goal"]),
        tuple(observed.index(one) for one in chosen),
        tuple(categories),
    )
    steps = len(next(iter(columns.values())))
    numbers = [_numbers(columns, names[group], steps, name, missing=missing) for group in ("observation", "action")]
    goal = np.stack(goals, 1).astype(np.float32) if goals else np.zeros((steps, 0), dtype=np.float32)
    return Demonstrations(made, numbers[0], numbers[1], goal, length, name)


def _coded(values: Any) -> tuple[tuple[str, ...], Any]:
    """Names of codes and the codes, if these are words or whole numbers; else none, and the numbers."""
    if values.dtype.kind == "f":
        return (), values
    absent = np.array([value is None or value != value for value in values.tolist()])
    words = np.array([str(value) for value in values.tolist()])
    found = sorted(set(words[~absent].tolist()))
    code = {word: float(number) for number, word in enumerate(found)}
    return tuple(found), np.array([np.nan if gone else code[word] for word, gone in zip(words.tolist(), absent)])


def _numbers(columns: Mapping[str, Any], names: list[str], steps: int, where: str, *, missing: bool) -> Floats:
    """float32 (T, columns), finite; ValueError for the first cell that is no number."""
    table = np.zeros((steps, len(names)), dtype=np.float32)
    for place, name in enumerate(names):
        try:
            table[:, place] = columns[name].astype(np.float32)
        except (TypeError, ValueError):
            raise refuse(f"column {name!r} of {where}", expected="numbers", got="words") from None
    refuse_not_finite(table, names, where, missing=missing)
    return table
