"""A user's text in the codes of a model, and codes as people write them.

The model of text8 knows 27 symbols. What a user writes is folded for it by ``as_text8``, stretch by stretch: letters in
lower case without accents, digits spelt out, every run of anything else one space; the user's own text is what is
shown. Any other vocabulary takes the text as it is, and what it has no code for is refused.
"""

import unicodedata
from functools import lru_cache
from itertools import pairwise

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.text.bpe import Bpe, script_of, scripts_of
from anyfill.text.folding import as_text8, require_foldable
from anyfill.text.sentencepieces import Pieces
from anyfill.text.vocabulary import Vocabulary, is_folded
from anyfill.text.words import Words


def encode_text(vocabulary: Vocabulary, text: str) -> Tensor:
    """int64 (L,): the codes of a piece of text, folded where the vocabulary is text8's."""
    return vocabulary.encode(as_text8(text) if is_folded(vocabulary) else text).long()


def require_letters(vocabulary: Vocabulary, text: str, what: str = "text", *, offset: int = 0) -> None:
    """ValueError if the text has letters of a script that the vocabulary reads, if at all, byte by byte.

    That is what text8's symbols cannot be folded from, and what none of the pieces is written in.
    """
    if is_folded(vocabulary):
        require_foldable(text, what, offset=offset)
    elif isinstance(plain := vocabulary.plain, Bpe) and (place := unread_letter(plain, text)) is not None:
        one, known = text[place], sorted(map(str.capitalize, scripts_of(plain.merges)))
        name = unicodedata.name(one, f"U+{ord(one):04X}")
        expected = f"letters that the model knows ({', '.join(known)})"
        raise refuse(what, expected=expected, got=f"{one!r} ({name}) at character {offset + place + 1:,}")


def unread_letter(pieces: Bpe, text: str) -> int | None:
    """Where the first letter stands of a script that no piece is written in; None if there is none."""
    if text.isascii():
        return None
    known = scripts_of(pieces.merges)
    strange = (one.isalpha() and not one.isascii() and script_of(one) not in known for one in text)
    return next((place for place, is_strange in enumerate(strange) if is_strange), None)


def brings_space(vocabulary: Vocabulary) -> bool:
    """Whether the code of a word brings the space before it along."""
    return isinstance(vocabulary.plain, Pieces | Bpe)


def boundary(vocabulary: Vocabulary) -> Tensor:
    """int64 (0 or 1,): the code between words, given where a text folded for text8 begins and ends."""
    return encode_text(vocabulary, " ") if is_folded(vocabulary) else torch.zeros(0, dtype=torch.int64)


def encode_prompt(vocabulary: Vocabulary, text: str, *, lines: bool = False) -> Tensor:
    """int64 (L,): the beginning of a text, which goes on; a text folded for text8 begins with a word.

    Of a prompt for pieces a space at the end is left out: the next piece brings it along.

    Args:
        vocabulary: the model's.
        text: as the user wrote it.
        lines: the model was trained on lines, which it sees from their beginning on.
    """
    if brings_space(vocabulary):
        text = text.removesuffix(" ")
    if lines:
        return encode_text(vocabulary, as_text8(text).lstrip() if is_folded(vocabulary) else text)
    codes, space = encode_text(vocabulary, text), boundary(vocabulary)
    return codes if len(codes) and len(space) and codes[0] == space[0] else torch.cat([space, codes])


def decode_text(vocabulary: Vocabulary, codes: Tensor) -> str:
    """The text of codes (L,); each end of a line is one."""
    if vocabulary.end is None:
        return written(vocabulary, codes)
    ends = [-1, *(codes == vocabulary.end).nonzero().flatten().tolist(), len(codes)]
    return "\n".join(written(vocabulary, codes[start + 1 : stop]) for start, stop in pairwise(ends))


def written(vocabulary: Vocabulary, codes: Tensor) -> str:
    """The text of codes (L,) as people write it, up to the first end of a line."""
    plain = vocabulary.plain
    if not isinstance(plain, Words):
        return vocabulary.decode(codes)
    ends = (codes == vocabulary.end).nonzero() if vocabulary.end is not None else codes[:0].unsqueeze(1)
    return plain.written(codes[: int(ends[0])] if len(ends) else codes)


@lru_cache(maxsize=4)
def texts_of(vocabulary: Vocabulary) -> tuple[str, ...]:
    """(V,): what each code stands for by itself, U+FFFD where that is no text, nothing for an end."""
    plain = vocabulary.plain
    texts = (plain.decode(code) for code in torch.arange(plain.size).unsqueeze(1))
    return (*texts, *[""] * (vocabulary.size - plain.size))
