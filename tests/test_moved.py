"""Old import paths still lead somewhere, say where, and get in nobody's way."""

import importlib

import pytest

from anyfill.moved import MOVED

NAMES = [(module, name, new) for module, names in MOVED.items() for name, new in names.items()]


@pytest.mark.parametrize(("module", "name", "new"), NAMES, ids=lambda word: str(word))
def test_an_old_name_is_the_new_one_or_says_what_to_use(module, name, new):
    old = importlib.import_module(f"anyfill.{module}")
    home, _, now = new.partition(":")
    if not now:
        with pytest.raises(ImportError, match="is gone: use anyfill"):
            getattr(old, name)
        return
    with pytest.warns(DeprecationWarning, match=f"is now {home}.{now}"):
        found = getattr(old, name)
    assert found is getattr(importlib.import_module(home), now)


def test_reading_is_now_factorization():
    import anyfill

    with pytest.warns(DeprecationWarning, match="Factorization"):
        assert anyfill.Reading is anyfill.Factorization


def test_what_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("anyfill.surfaces.nothing")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("anyfill.nothing")
    with pytest.raises(ImportError):
        from anyfill.surfaces.text.model import nothing  # noqa: F401
