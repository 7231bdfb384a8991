"""A text file as a stream of tokens, each with the characters it stands for; memory does not grow with the file.

Text for a model of text8's 27 symbols is folded on the way (``as_text8``), block by block with the same result as at
once: where two spaces meet between blocks, one is dropped. Offsets count characters of the text as the model sees it.
The ends of lines that such a text ends with are how files end, and no space.

For a model of lines each line is a text of its own: blank ones are left out, what ends a line is no text, and the
vocabulary's end code, if it has one, stands for it.

A token that writes nothing of its own (the second byte of a character) stands for "".
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.text.alphabet import is_folded, plain
from anyfill.text.encoding import MAX_LINE
from anyfill.text.reading import Source
from anyfill.text.vocabulary import Characters, Vocabulary, as_text8

_BLOCK = 2**16


class Stretch(NamedTuple):
    """Some tokens of a text.

    Attributes:
        codes: int64 (L,).
        texts: L, the characters that each token stands for.
        offsets: L, where they begin in the text.
        is_new: a text begins here, of which nothing comes before.
        characters, words, unknown: how many there are of each.
        share: of the whole work that is done when these are.
    """

    codes: Tensor
    texts: list[str]
    offsets: list[int]
    is_new: bool
    characters: int
    words: int
    unknown: int
    share: float


def stretches(source: Source, vocabulary: Vocabulary, *, lines: bool = False, block: int = _BLOCK) -> Iterator[Stretch]:
    """The tokens of a text, a stretch at a time; ValueError if it has none, or a character without a code."""
    found = _lines(source, vocabulary, block) if lines else _text(source, vocabulary, block)
    words = tokens = 0
    for stretch in found:
        words, tokens = words + stretch.words, tokens + len(stretch.codes)
        yield stretch
    if not tokens or (is_folded(vocabulary) and not words):
        expected = "text with letters from a to z" if is_folded(vocabulary) else "text"
        raise refuse(source.name, expected=expected, got="none")


def _text(source: Source, vocabulary: Vocabulary, block: int) -> Iterator[Stretch]:
    waiting, offset, is_new, in_word, ends_in_space, end = "", 0, True, False, False, ""
    for part in source.blocks(block):
        text = part.text
        if is_folded(vocabulary):
            text = end + text
            lines = text.rstrip("\r\n")
            end = "\n" if len(lines) < len(text) else ""  # folded it is one space, if more text comes
            text = as_text8(lines)
            text = text[1:] if ends_in_space and text.startswith(" ") else text
            ends_in_space = text.endswith(" ") if text else ends_in_space
        text = waiting + text
        place = len(text) if part.is_last else vocabulary.cut(text)
        text, waiting = text[:place], text[place:]
        if text:
            words = len(text.split()) - (in_word and not text[0].isspace())
            in_word = not text[-1].isspace()
            yield _stretch(source, vocabulary, text, offset, is_new, words, part.read / max(part.total, 1))
            offset, is_new = offset + len(text), False


def _lines(source: Source, vocabulary: Vocabulary, block: int) -> Iterator[Stretch]:
    waiting, offset = "", 0
    for part in source.blocks(block):
        *whole, waiting = (waiting + part.text).split("\n")
        if part.is_last:
            whole.append(waiting)
        elif len(waiting) > MAX_LINE:
            got = f"a longer one at character {offset:,}"
            raise refuse(source.name, expected=f"lines of at most {MAX_LINE:,} characters", got=got)
        for line in whole:
            text = line.removesuffix("\r")
            text = as_text8(text).strip() if is_folded(vocabulary) else text
            if text.strip():
                yield _line(source, vocabulary, text, offset, part.read / max(part.total, 1))
            offset += (len(text) if is_folded(vocabulary) else len(line)) + 1


def _line(source: Source, vocabulary: Vocabulary, text: str, offset: int, share: float) -> Stretch:
    stretch = _stretch(source, vocabulary, text, offset, True, len(text.split()), share)
    if vocabulary.end is None:
        return stretch
    codes = torch.cat([stretch.codes, torch.tensor([vocabulary.end])])
    texts, offsets = [*stretch.texts, "\n"], [*stretch.offsets, offset + len(text)]
    return stretch._replace(codes=codes, texts=texts, offsets=offsets, characters=stretch.characters + 1)


def _stretch(
    source: Source, vocabulary: Vocabulary, text: str, offset: int, is_new: bool, words: int, share: float
) -> Stretch:
    inner = plain(vocabulary)
    try:
        codes = inner.encode(text).long()
    except ValueError as error:
        place = next((i for i, one in enumerate(text) if not _has_code(inner, one)), 0)
        raise ValueError(f"{source.name}, offset {offset + place:,}: {str(error).removeprefix('text: ')}") from None
    texts, offsets = inner.spell(text, codes)
    unknown = inner.unknown_code
    count = 0 if unknown is None else int((codes == unknown).sum())
    if isinstance(inner, Characters) and unknown is not None:
        count -= text.count(inner.unknown)  # it may stand for itself
    return Stretch(codes, texts, [offset + place for place in offsets], is_new, len(text), words, count, share)


def _has_code(vocabulary: Vocabulary, character: str) -> bool:
    try:
        vocabulary.encode(character)
    except ValueError:
        return False
    return True
