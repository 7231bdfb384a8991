"""A user's text in the codes of a model, and a model's codes in the user's text.

The model that ships knows 27 symbols, text8's. What a user writes is folded for it by ``as_text8``, stretch by stretch:
letters in lower case without accents, digits spelt out, every run of anything else one space; the user's own text is
what is shown. Any other vocabulary takes the text as it is, and what it has no code for is refused.

The edges of a text. A space before or behind a blank belongs to what is given, and stays one space. Where a text folded
for text8 begins or ends, so does a word: the model is given a space, unless a blank of stated length is there (it may
begin or end within a word). A blank of *several* lengths at an edge needs something to close it, or its lengths could
not be compared (see ``anyfill.text.fill``): the space, the beginning and end of a line where the model is one
of lines; without either it is refused.

Tokens that are words or pieces. A blank stands for whole ones. Words must not touch a blank; a piece brings the space
before it along, so a space before a blank is asked together with its first piece, which must begin with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.text.blanks import Template
from anyfill.text.vocabularies import Pieces, Words
from anyfill.text.vocabulary import TEXT8, Characters, Utf8, Vocabulary, WithEnd, as_text8


def is_folded(vocabulary: Vocabulary) -> bool:
    """Whether text is folded to the 27 symbols of text8 first."""
    inner = plain(vocabulary)
    return isinstance(inner, Characters) and inner.alphabet == TEXT8.alphabet


def plain(vocabulary: Vocabulary) -> Vocabulary:
    """The vocabulary less its end code."""
    return vocabulary.inner if isinstance(vocabulary, WithEnd) else vocabulary


def encode(vocabulary: Vocabulary, text: str) -> Tensor:
    """int64 (L,): the codes of a piece of text, folded where the vocabulary is text8's."""
    return vocabulary.encode(as_text8(text) if is_folded(vocabulary) else text).long()


def boundary(vocabulary: Vocabulary) -> Tensor:
    """int64 (0 or 1,): the code between words, given where a text folded for text8 begins and ends."""
    return encode(vocabulary, " ") if is_folded(vocabulary) else torch.zeros(0, dtype=torch.int64)


def encode_prompt(vocabulary: Vocabulary, text: str, *, lines: bool = False) -> Tensor:
    """int64 (L,): the beginning of a text, which goes on; a text folded for text8 begins with a word.

    Of a prompt for pieces a space at the end is left out: the next piece brings it along.

    Args:
        vocabulary: the model's.
        text: as the user wrote it.
        lines: the model was trained on lines, which it sees from their beginning on.
    """
    if isinstance(plain(vocabulary), Pieces):
        text = text.removesuffix(" ")
    if lines:
        return encode(vocabulary, as_text8(text).lstrip() if is_folded(vocabulary) else text)
    codes, space = encode(vocabulary, text), boundary(vocabulary)
    return codes if len(codes) and len(space) and codes[0] == space[0] else torch.cat([space, codes])


def decode(vocabulary: Vocabulary, codes: Tensor) -> str:
    """The text of codes (L,); each end of a line is one."""
    if vocabulary.end is None:
        return vocabulary.decode(codes)
    ends = [-1, *(codes == vocabulary.end).nonzero().flatten().tolist(), len(codes)]
    return "\n".join(vocabulary.decode(codes[start + 1 : stop]) for start, stop in pairwise(ends))


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """A template in the codes of a vocabulary.

    Attributes:
        template: as the user wrote it.
        vocabulary: whose codes.
        stretches: the codes of each of the k + 1 given stretches, int64 (any,).
        leads: text that each of the k blanks must begin with, given by the user and asked with the blank ("" or " ").
    """

    template: Template
    vocabulary: Vocabulary
    stretches: tuple[Tensor, ...]
    leads: tuple[str, ...]

    def codes(self, answers: Sequence[Tensor], blanks: int) -> Tensor:
        """int64 (L,): the text up to the stretch behind the first ``blanks`` blanks, with these answers in them."""
        known = [piece for pair in zip(self.stretches, answers[:blanks]) for piece in pair]
        return torch.cat([*known, self.stretches[blanks]])

    def answer(self, blank: int, codes: Tensor) -> str | None:
        """What the codes (L,) say in a blank; None if they cannot be written there.

        That is where they are no text (broken UTF-8), where they end the line, where they say "unknown", and where the
        text would have other codes (all but pieces, which can be cut in several ways).
        """
        inner = plain(self.vocabulary)
        if any(code in (inner.unknown_code, self.vocabulary.end) for code in codes.tolist()):
            return None
        text = self.vocabulary.decode(codes)
        if isinstance(inner, Pieces):
            if "\ufffd" in text or not text.startswith(self.leads[blank]):
                return None
            return text[len(self.leads[blank]) :] or None
        again = self.vocabulary.encode(text)
        return text if len(again) == len(codes) and bool((again == codes).all()) else None


def sheet_of(template: Template, vocabulary: Vocabulary, *, lines: bool = False) -> Sheet:
    """The codes of a text with blanks.

    Args:
        template: what is given and what is asked.
        vocabulary: the model's.
        lines: the model was trained on lines, each from its beginning to its end.
    """
    inner = plain(vocabulary)
    stretches, leads = list(template.stretches), [""] * len(template.blanks)
    if isinstance(inner, Words):
        _require_whole_words(template, inner)
    if isinstance(inner, Pieces):
        for blank, before in enumerate(stretches[:-1]):
            if before.endswith(" "):
                stretches[blank], leads[blank] = before[:-1], " "
    if lines and is_folded(vocabulary):  # lines are folded without the spaces around them
        stretches[0], stretches[-1] = as_text8(stretches[0]).lstrip(), as_text8(stretches[-1]).rstrip()
    codes = [encode(vocabulary, stretch) for stretch in stretches]
    _close(codes, template, vocabulary, lines)
    return Sheet(template, vocabulary, tuple(codes), tuple(leads))


def _close(codes: list[Tensor], template: Template, vocabulary: Vocabulary, lines: bool) -> None:
    """Put what the model is given at the two edges of the text there, or refuse what cannot be answered without."""
    if lines:
        if vocabulary.end is not None:
            codes[-1] = torch.cat([codes[-1], torch.tensor([vocabulary.end])])
        return
    for edge, place in ((0, "beginning"), (-1, "end")):
        is_open = template.blanks[edge].is_open
        if not len(codes[edge]):
            if not is_open:
                continue
            space = _between(vocabulary)
            if not len(space):
                expected = "one stated length, as [2], for nothing says where it begins or ends"
                raise refuse(f"blank at the {place} of the text", expected=expected, got="several lengths")
        else:
            space = boundary(vocabulary)
        if len(space) and not (len(codes[edge]) and codes[edge][edge] == space[0]):
            codes[edge] = torch.cat([space, codes[edge]] if edge == 0 else [codes[edge], space])


def _between(vocabulary: Vocabulary) -> Tensor:
    """int64 (0 or 1,): what stands between texts or words: the end of a line, else a space, if there is one."""
    if vocabulary.end is not None:
        return torch.tensor([vocabulary.end])
    if isinstance(vocabulary, Utf8) or (isinstance(vocabulary, Characters) and " " in vocabulary.alphabet):
        return vocabulary.encode(" ").long()
    return torch.zeros(0, dtype=torch.int64)


def _require_whole_words(template: Template, words: Words) -> None:
    """ValueError if a blank touches a word."""
    for before, behind in zip(template.stretches, template.stretches[1:]):
        if words.split(f"{before}a{behind}") != [*words.split(before), "a", *words.split(behind)]:
            glued = f"{before[-12:]}____{behind[:12]}"
            raise refuse("blank", expected="space around it, for it stands for whole words", got=repr(glued))
