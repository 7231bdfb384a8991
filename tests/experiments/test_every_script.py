"""Every experiment and benchmark can be imported: what the library renames is renamed there, too."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in ("experiments", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
    if not path.stem.endswith("_peers")  # those run in an environment of their own
)


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_can_be_imported(name):
    assert importlib.import_module(name).__doc__
