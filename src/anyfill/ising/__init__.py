"""The exact lab: Ising models, what theory says of them, and ``anyfill lab ising``."""

from typing import TYPE_CHECKING

from anyfill.lazy import lazily

if TYPE_CHECKING:
    from anyfill.ising.model import Ising

__all__ = ["Ising"]

__getattr__, __dir__ = lazily(__name__, {"Ising": "model"})
