"""All kinds of vocabularies, and any of them as JSON beside a model.

A vocabulary is one of

    Characters, Utf8, WithEnd   ``anyfill.text.vocabulary``
    Words                       ``anyfill.text.words``
    Bpe                         ``anyfill.text.bpe``
    Pieces                      ``anyfill.text.sentencepieces``

and comes back with the model that it was saved with:

    save_model(model, folder, notes=vocabulary_notes(vocabulary))
    vocabulary = vocabulary_of(load_notes(folder), folder.name)

Names of other files that are imported here can be imported from here, too.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, cast

from anyfill.checks import refuse
from anyfill.text.bpe import Bpe
from anyfill.text.sentencepieces import Pieces as Pieces
from anyfill.text.sentencepieces import train_pieces as train_pieces
from anyfill.text.vocabulary import Characters, Utf8, Vocabulary, WithEnd, fingerprint, require_fingerprint
from anyfill.text.words import Words as Words
from anyfill.text.words import common_words as common_words

VOCABULARY, FINGERPRINT = "vocabulary", "vocabulary_fingerprint"
"""Names of the notes."""


def vocabulary_from_json(description: object) -> Vocabulary:
    """The vocabulary that ``to_json`` described; ValueError if it is no such description."""
    if not isinstance(description, Mapping):
        raise refuse("vocabulary", expected="a description of one (JSON with its kind)", got=repr(description)[:80])
    fields = cast("Mapping[str, Any]", description)
    try:
        match fields.get("kind"):
            case "characters":
                return Characters(str(fields["alphabet"]), str(fields["unknown"]))
            case "utf8":
                return Utf8()
            case "words":
                words = tuple(str(word) for word in fields["words"])
                return Words(words, bool(fields["lower"]), bool(fields["punctuation"]))
            case "pieces":
                return Pieces(base64.b64decode(fields["model"], validate=True))
            case "bpe":
                return Bpe(tuple((int(left), int(right)) for left, right in fields["merges"]))
            case "with_end":
                return WithEnd(vocabulary_from_json(fields["inner"]))
            case kind:
                known = "'characters', 'utf8', 'words', 'bpe', 'pieces' or 'with_end'"
                raise refuse("kind of vocabulary", expected=known, got=repr(kind))
    except (KeyError, TypeError, binascii.Error) as error:
        got = f"{fields.get('kind')!r} without them ({type(error).__name__}: {error})"
        raise refuse("vocabulary", expected="all fields of its kind", got=got) from None


def vocabulary_notes(vocabulary: Vocabulary) -> dict[str, Any]:
    """Notes to be saved with a model: the vocabulary and its fingerprint."""
    return {VOCABULARY: vocabulary.to_json(), FINGERPRINT: fingerprint(vocabulary)}


def vocabulary_of(notes: Mapping[str, Any], source: str = "model") -> Vocabulary:
    """The vocabulary in the notes of a model; ValueError if it has none."""
    if VOCABULARY not in notes or FINGERPRINT not in notes:
        raise refuse(source, expected="a model of text, saved with its vocabulary", got="one without a vocabulary")
    vocabulary = vocabulary_from_json(notes[VOCABULARY])
    require_fingerprint(f"vocabulary of {source}", str(notes[FINGERPRINT]), vocabulary)
    return vocabulary
