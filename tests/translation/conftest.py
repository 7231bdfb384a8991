"""A small bilingual vocabulary, and untrained models of every recipe: what must hold holds before training, too."""

import pytest

pytest.importorskip("sentencepiece")

from anyfill.questions import Factorization
from anyfill.translation.decode import Decoder
from anyfill.translation.model import Translator
from anyfill.translation.recipes import make_model
from anyfill.translation.vocabulary import learn

PAIRS = [
    ("Ich wohne in Berlin.", "I live in Berlin."),
    ("Ich wohne in Wien.", "I live in Vienna."),
    ("Guten Morgen", "Good morning"),
    ("Guten Abend", "Good evening"),
    ("Das Haus ist rot.", "The house is red."),
    ("Das Haus ist gross und der Hund ist klein.", "The house is big and the dog is small."),
    ("Der Hund schläft.", "The dog is asleep."),
    ("Wo ist der Bahnhof?", "Where is the station?"),
    ("Datei ⟦0⟧ nicht gefunden", "File ⟦0⟧ not found"),
    ("⟦0⟧ von ⟦1⟧ Dateien", "⟦0⟧ of ⟦1⟧ files"),
]
LENGTH = 16
EXPECTED = {
    "autoregressive": Factorization.PREFIX,
    "deep_shallow": Factorization.PREFIX,
    "one_pass": Factorization.DIRECT,
}


@pytest.fixture(scope="session")
def vocabulary():
    return learn((side for pair in PAIRS for side in pair), 360)


@pytest.fixture(scope="session")
def translators(vocabulary):
    """A function: the untrained translator of a recipe, always the same."""
    made = {}

    def of(recipe):
        if recipe not in made:
            model = make_model(recipe, vocabulary.size, LENGTH, "toy", dropout=0.0).eval()
            model.factorizations = {EXPECTED.get(recipe, Factorization.ANY_ORDER)}
            made[recipe] = Translator(Decoder(model, recipe, vocabulary), ("de", "en"), f"untrained {recipe}")
        return made[recipe]

    return of


@pytest.fixture
def pairs_tsv(tmp_path):
    path = tmp_path / "pairs.tsv"
    lines = [f"{a}\t{b}" for a, b in PAIRS if "⟦" not in a]
    path.write_text("".join(f"{line}\n" for line in [*lines, "Datei %s nicht gefunden\tFile %s not found"]), "utf-8")
    return path
