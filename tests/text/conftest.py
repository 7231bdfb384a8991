"""Tiny models of text with random weights, so that everything they could answer can be listed."""

import sys
from pathlib import Path

import pytest

from anyfill.text.model import TextModel
from anyfill.text.vocabulary import Characters, Vocabulary

sys.path.insert(0, str(Path(__file__).parent))  # plain_bleu

ABC = Characters("abc")


@pytest.fixture(scope="session")
def tiny(tiny_model):
    """Makes a tiny ``TextModel``."""

    def make(vocabulary: Vocabulary = ABC, length: int = 6, **options) -> TextModel:
        fields = {name: options.pop(name) for name in ("lines", "lengths") if name in options}
        return TextModel(tiny_model(vocabulary.size, length, **options), vocabulary, "tiny", **fields)

    return make
