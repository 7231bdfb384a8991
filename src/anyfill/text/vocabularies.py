"""Words and pieces of words as codes; any vocabulary as JSON beside a model; a user's text in the codes of a model.

**Words**: the most common ones have a code each, all others share code 0, the unknown. A word is what stands between
white space; with ``punctuation``, marks are words of their own and words with apostrophes ("don't") are one. Decoding
puts one space between words: what the white space was is not kept. Counting the words of a corpus needs memory for each
distinct one, of which there is no end. Above ``MAX_COUNTED`` the rarest are dropped until few enough are left (each
time with all of the same count), so counts of rare words may come out too low, by at most the largest count that was
ever dropped.

**Pieces** (``anyfill.text.bpe``) need nothing else. Those by sentencepiece (extra ``text``; imported only when it is
needed): ``train_pieces`` makes a vocabulary that loses nothing: no normalisation, white space as it was, and characters
that it never saw as bytes; decode(encode(text)) is the text itself, unless it has U+2581, which sentencepiece writes
for a space. A vocabulary that was trained elsewhere keeps its own settings. A text is encoded word by word (each
distinct one once): a word is the spaces before it, its letters, and the end of the line if it is there. Given whole
texts, sentencepiece adds up scores in 32 bits, so which of two equally good cuts of a word it takes depends on what
stands before; here it never does. Words longer than ``MAX_WORD`` are cut.

**A user's text.** The model that ships knows 27 symbols, text8's. What a user writes is folded for it by ``as_text8``,
stretch by stretch: letters in lower case without accents, digits spelt out, every run of anything else one space; the
user's own text is what is shown. Any other vocabulary takes the text as it is, and what it has no code for is refused.

    save_model(model, folder, notes=vocabulary_notes(vocabulary))
    vocabulary = vocabulary_of(load_notes(folder), folder.name)
"""

import base64
import binascii
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any, Literal, cast

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.pieces import processor, trained_model
from anyfill.text.bpe import Bpe, script_of, scripts_of
from anyfill.text.vocabulary import (
    Characters,
    Utf8,
    Vocabulary,
    WithEnd,
    as_text8,
    codes_of,
    fingerprint,
    is_folded,
    require_fingerprint,
    require_foldable,
)

UNKNOWN = "<unk>"
"""How the unknown word is written."""
MAX_COUNTED = 2_000_000
MAX_UNSPACED = 2**20
"""Text without any white space is cut after so many characters."""
MAX_WORD = 1000
"""Characters of the longest word that is cut into pieces as one."""
VOCABULARY, FINGERPRINT = "vocabulary", "vocabulary_fingerprint"
"""Names of the notes."""
_MARKS = re.compile(rf"{UNKNOWN}|\w+(?:['’]\w+)*|[^\w\s]")
_CLOSES, _OPENS = re.compile(r" ([.,;:!?…)\]}%])(?!\S)"), re.compile(r"(?<!\S)([(\[{]) ")
"""A mark that belongs to the word before it, one that belongs to the word behind it."""
_WORD = re.compile(r" *[^ \n]*\n?")
_LINE, _LINES = 200, 50_000
"""Pieces are learnt from so many characters at a time, at most so many times, drawn from all: a few minutes at most."""


@dataclass(frozen=True, slots=True)
class Words(Vocabulary):
    """Code 0 for the unknown word, code k for the k-th word.

    Attributes:
        words: those with a code of their own, the most common first.
        lower: words are read in lower case.
        punctuation: marks are words of their own.
    """

    words: tuple[str, ...]
    lower: bool = False
    punctuation: bool = False
    _codes: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))  # a list, as JSON gives it, will do
        codes = {word: code for code, word in enumerate(self.words, 1)}
        if len(codes) != len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise refuse("words", expected="each of them once", got=f"{twice!r} twice")
        odd = next((word for word in self.words if list(self.split(word)) != [word] or word == UNKNOWN), None)
        if odd is not None:
            raise refuse("words", expected=f"single words as they are read, {UNKNOWN} not among them", got=repr(odd))
        object.__setattr__(self, "_codes", codes)

    @property
    def size(self) -> int:
        """The number of codes, that of the unknown word included."""
        return len(self.words) + 1

    @property
    def units(self) -> str:
        """Words."""
        return "words"

    @property
    def unknown_code(self) -> int:
        """0."""
        return 0

    def spell(self, text: str, codes: Tensor) -> tuple[list[str], list[int]]:
        """As they are written; white space belongs to none of them."""
        seen = text.lower() if self.lower else text
        written = text if len(text) == len(seen) else seen  # a few capitals are longer in lower case
        texts: list[str] = []
        offsets: list[int] = []
        now = 0
        for word in self.split(text):
            start = seen.index(word, now)
            now = start + len(word)
            texts.append(written[start:now])
            offsets.append(start)
        return texts, offsets

    def split(self, text: str) -> list[str]:
        """The words of a text."""
        text = text.lower() if self.lower else text
        return _MARKS.findall(text) if self.punctuation else text.split()

    def encode(self, text: str) -> Tensor:
        """int64 (L,): the code of each word."""
        code = self._codes.get
        return torch.tensor([code(word, 0) for word in self.split(text)], dtype=torch.int64)

    def decode(self, codes: Tensor) -> str:
        """The words of codes (L,), with spaces between them."""
        written = (UNKNOWN, *self.words)
        return " ".join(written[code] for code in codes_of(codes, self.size).tolist())

    def written(self, codes: Tensor) -> str:
        """The words of codes (L,) as people write them: marks stand at the word that they belong to."""
        text = self.decode(codes)
        return _OPENS.sub(r"\1", _CLOSES.sub(r"\1", text)) if self.punctuation else text

    def cut(self, text: str) -> int:
        """Up to the last white space."""
        return cut_at_space(text)

    def to_json(self) -> dict[str, Any]:
        """Kind and fields."""
        return {"kind": "words", "words": list(self.words), "lower": self.lower, "punctuation": self.punctuation}


def common_words(texts: Iterable[str], size: int, *, lower: bool = False, punctuation: bool = False) -> Words:
    """The vocabulary of at most ``size`` codes for these texts (parts of one text: a word may go over the cut).

    Of equally common words those that were seen first are kept.
    """
    require_count("size", size, minimum=2)
    counts, reader = Counter[str](), Words((), lower, punctuation)
    for text in _in_whole_words(texts):
        counts.update(reader.split(text))
        rarest = 1
        while len(counts) > MAX_COUNTED:
            counts = Counter({word: count for word, count in counts.items() if count > rarest})
            rarest += 1
    counts.pop(UNKNOWN, None)
    if not counts:
        raise refuse("text", expected="at least one word", got="none")
    return Words(tuple(word for word, _ in counts.most_common(size - 1)), lower, punctuation)


def _in_whole_words(texts: Iterable[str]) -> Iterator[str]:
    waiting = ""
    for text in texts:
        waiting += text
        place = cut_at_space(waiting)
        yield waiting[:place]
        waiting = waiting[place:]
    yield waiting


def cut_at_space(text: str) -> int:
    """Where the last white space of ``text`` begins: words before it are whole. 0 if there is none, and it is short."""
    kept = len(text.rstrip())
    if kept == len(text):
        words = text.rsplit(maxsplit=1)
        kept = len(words[0]) if len(words) > 1 else 0
    return kept if kept or len(text) <= MAX_UNSPACED else len(text)


@dataclass(frozen=True, slots=True)
class Pieces(Vocabulary):
    """Codes for pieces of words.

    Attributes:
        model: the content of a sentencepiece model file.
    """

    model: bytes

    def __post_init__(self) -> None:
        processor(self.model)

    @property
    def size(self) -> int:
        """The number of pieces."""
        return int(processor(self.model).get_piece_size())

    @property
    def units(self) -> str:
        """Pieces."""
        return "pieces"

    def encode(self, text: str) -> Tensor:
        """int64 (L,): the code of each piece."""
        found = _WORD.findall(text)
        words = [word[start : start + MAX_WORD] for word in found for start in range(0, len(word), MAX_WORD)]
        each = list(dict.fromkeys(words))
        codes = dict(zip(each, processor(self.model).encode(each, out_type=int, num_threads=1)))
        return torch.tensor(list(chain.from_iterable(map(codes.__getitem__, words))), dtype=torch.int64)

    def decode(self, codes: Tensor) -> str:
        """The text of codes (L,)."""
        return str(processor(self.model).decode(codes_of(codes, self.size).tolist()))

    def cut(self, text: str) -> int:
        """Before the last spaces or behind the last end of a line, which is between two words."""
        spaces = len(text[: text.rfind(" ") + 1].rstrip(" "))
        place = max(spaces, text.rfind("\n") + 1)
        return place if place or len(text) <= MAX_UNSPACED else len(text) - len(text) % MAX_WORD

    def to_json(self) -> dict[str, Any]:
        """Kind, and the model in base64."""
        return {"kind": "pieces", "model": base64.b64encode(self.model).decode("ascii")}


def train_pieces(texts: Iterable[str], size: int, *, kind: Literal["unigram", "bpe"] = "unigram") -> Pieces:
    """A vocabulary of at most ``size`` pieces for these texts (parts of one text), fewer if there are not so many.

    256 of them are bytes, and one is never used.
    """
    options = {"allow_whitespace_only_pieces": True, "input_sentence_size": _LINES}
    return Pieces(trained_model(_lines(texts), size, kind=kind, **options))


def _lines(texts: Iterable[str]) -> Iterator[str]:
    """What sentencepiece learns from: lines, long ones cut before spaces."""
    waiting = ""
    for text in texts:
        *whole, waiting = (waiting + text).split("\n")
        for line in whole:
            yield from _short(line)
        *whole, waiting = _short(waiting)
        yield from whole
    yield waiting


def _short(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > _LINE:
        place = line.rfind(" ", start + 1, start + _LINE)
        place = place if place > start else start + _LINE
        yield line[start:place]
        start = place
    yield line[start:]


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
