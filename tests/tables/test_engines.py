"""Engines: results in order, few parts under way, one sentence for failures."""

import builtins
import importlib
import importlib.util
import os
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anyfill.tables import engines
from anyfill.tables.engines import in_order
from anyfill.tables.files import Part


def parts(count: int, seen: list[int] | None = None) -> Iterator[Part]:
    for i in range(count):
        if seen is not None:
            seen.append(i)
        yield Part(pd.DataFrame({"x": np.arange(3.0) + i}), i, (i + 1) / count)


def add_start(frame: Any, start: int) -> Any:
    return frame["x"].sum() + 100 * start


@pytest.mark.parametrize("engine", ["none", "processes"])
def test_a_single_part_is_done_here(engine: Any) -> None:
    here: list[int] = []

    def call(frame: Any, start: int) -> int:  # not picklable: another process could not call it
        here.append(os.getpid())
        return add_start(frame, start)

    assert list(in_order(engine, call, parts(1))) == [(3.0, 1.0)]
    assert here == [os.getpid()]


def test_parts_are_read_only_as_they_are_needed() -> None:
    seen: list[int] = []
    work = in_order("none", add_start, parts(50, seen))
    next(work)
    assert len(seen) <= 2
    work.close()


def test_no_more_than_the_bound_is_under_way_and_order_is_kept() -> None:
    under_way: list[int] = []
    most = 0

    def submit(_function: Any, _call: Any, _frame: Any, start: int) -> int:
        nonlocal most
        under_way.append(start)
        most = max(most, len(under_way))
        return start

    def collect(start: int) -> int:
        under_way.remove(start)
        return start

    results = list(engines._bounded(add_start, parts(20), submit, collect, 4))
    assert results == [(i, (i + 1) / 20) for i in range(20)]
    assert most == 4


def test_a_process_that_dies_is_one_sentence() -> None:
    """Each call replaces the worker by a program that ends at once."""
    false = shutil.which("false")
    work: list[Any] = [Part(false, ["false"], 0.5)] * 2
    with pytest.raises(ValueError, match=r"a process died.*fewer --workers"):
        list(in_order("processes", os.execv, work, workers=1))  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "engine"), [("distributed", "dask"), ("ray", "ray")])
def test_a_missing_extra_says_what_to_install(name: str, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(module: str) -> Any:
        if module == name:
            raise ModuleNotFoundError(name=name)
        return builtins.__import__(module)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(ValueError, match=rf'pip install "anyfill\[{engine}\]"'):
        engines.require_engine(engine)


@pytest.mark.parametrize(("engine", "address", "words"), [("spark", None, "one of"), ("none", "x:1", "dask or ray")])
def test_unknown_engines_and_useless_addresses_are_refused(engine: Any, address: str | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        engines.require_engine(engine, address)


def test_workers_of_the_engine_that_has_none_are_refused() -> None:
    with pytest.raises(ValueError, match="workers: expected none"):
        list(in_order("none", add_start, parts(3), workers=2))


@pytest.mark.parametrize("workers", [0, -1])
def test_without_workers_nothing_is_begun(workers: int) -> None:
    with pytest.raises(ValueError, match="workers"):
        list(in_order("processes", add_start, parts(3), workers=workers))


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="the extra ray is not installed")
def test_ray_passes_refusals_on_as_they_are() -> None:
    with pytest.raises(ValueError, match="broadcast") as found:
        list(in_order("ray", np.add, [Part(np.zeros(2), np.zeros(3), 1.0)] * 2, workers=1))  # type: ignore[arg-type]
    assert "Traceback" not in str(found.value)
