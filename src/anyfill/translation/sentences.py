"""Texts as a model can take them: cut into parts that fit its rows, and looked at for what a reader should know.

A text that fits is one part. A longer one is cut into sentences, and those that are still too long between words:
whatever comes in, every word of it is seen.

A model of sentences has seen hardly any source that does not end in a mark, and doubles what it reads where none does
("Guten Morgen": "Good morning good morning."). So such a text gets a full stop, and its translation loses it again. Nor
has it seen two sentences in one row, and mixes them up: they go one by one, wherever the cut is sure (``sentences``).
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from anyfill.translation.vocabulary import Joint

_SENTENCE = re.compile(r"[.!?…]+[\"'»“”’)\]]*(?=\s)|[。！？]+[」』）]*")
_MARKS = re.compile(r"\s*(?:[^\w\s⟦⟧]|_)+(?:(?:\s+(?:[^\w\s⟦⟧]|[\d_])+){0,200}\s+(?:[^\w\s⟦⟧]|_)+)?(?!\S)")
"""Words without a letter or a symbol, the first and the last of them without a digit: "3. May" and "42 dogs" go on."""
_ABBREVIATIONS = re.compile(
    "dr|mr|mrs|ms|prof|st|nr|no|vs|bzw|ca|evtl|ggf|inkl|usw|etc|vgl|hr|fr|jr|sr|abs|art|bd|sog|str|tel", re.IGNORECASE
)
"""What a full stop stands behind inside a sentence."""
_FULL_STOP = re.compile(r"\s*\.((?:\s*⟦\d⟧)*)\s*$")
_ENDED = re.compile(r"[.!?…。！？][\"'»“”’)\]]*(?:⟦\d⟧)*$")
_FOREIGN = 0.3
"""More bytes of unseen characters than this, and the text is in another script."""
_ODDS = -0.7
"""Mean log-odds of pieces, below which a text looks like the language it should be translated to."""
_FEW_WORDS, _FEW_PIECES = 5, 4000
"""Texts with fewer words and vocabularies with fewer pieces do not tell whether a text is strange."""
_CRUMB, _KNOWN, _SPEAKS = 3, 0.5, 2.0
"""A strange text has less than half of its characters in pieces of three or more, and less than 2 nats a character for
the source language."""
CLOSED = 0.9
"""If more of the training sources than this end in a mark, texts without one get one."""


def is_open(text: str) -> bool:
    """Whether a text ends in a letter, a digit or the symbol of a placeholder, and no mark closes it.

    A mark right before the symbol, as in "Stop.</b>", closes it.
    """
    bare = text.rstrip()
    return not _ENDED.search(bare) if bare.endswith("⟧") else bare[-1:].isalnum()


def opened(text: str) -> str:
    """A text without the full stop at its end, or before the placeholders at its end."""
    return _FULL_STOP.sub(r"\1", text).rstrip()


def sentences(text: str) -> list[str]:
    """The sentences of a plain text, whole: cut where one surely ends and another begins with a capital or a quote.

    Marks that stand alone before such a beginning or the end ("***", "— 42 —") are one, too.
    """
    found, start = list[str](), _marks_end(text, 0)
    if start:
        found.append(text[:start].strip())
    for end in _SENTENCE.finditer(text, start):
        if end.start() < start:
            continue
        before = text[start : end.start()].rpartition(" ")[2].lstrip("\"'(«„“")
        doubtful = end[0][0] == "." and (not before.isalpha() or len(before) < 2 or _ABBREVIATIONS.fullmatch(before))
        marks = end.end() if doubtful else _marks_end(text, end.end())
        if end[0][0] in "。！？" or (not doubtful and (marks > end.end() or _begins(text, end.end()))):
            found += [some for some in (text[start : end.end()].strip(), text[end.end() : marks].strip()) if some]
            start = marks
    rest = text[start:].strip()
    return [*found, rest] if rest else found


def _begins(text: str, place: int) -> bool:
    """Whether a sentence surely begins here, or behind the space here."""
    behind = text[place : place + 2].strip()[:1]
    return behind.isupper() or (behind != "" and behind in "\"'(«»„“¿¡")


def _marks_end(text: str, place: int) -> int:
    """The end of marks that are a sentence of their own, numbers between them, and begin here; ``place`` = none do."""
    found = _MARKS.match(text, place)
    if found is None or not (found.end() == len(text) or _begins(text, found.end())):
        return place
    return found.end()


def fitting(text: str, vocabulary: Joint, limit: int) -> list[str]:
    """A plain text of at most ``limit`` pieces, whole; or what may be the sentences of a longer one, however long."""
    if len(vocabulary.encode(text)) <= limit:
        return [text] if text else []
    ends = [end.end() for end in _SENTENCE.finditer(text)]
    cut = (text[start:end].strip() for start, end in pairwise([0, *ends, len(text)]))
    return [sentence for sentence in cut if sentence]


def segments(text: str, vocabulary: Joint, limit: int) -> list[list[int]]:
    """The codes of a plain text, in parts of at most ``limit``: whole if it fits, else sentences, else words."""
    found: list[list[int]] = []
    for sentence in fitting(text, vocabulary, limit):
        codes = vocabulary.encode(sentence)
        while len(codes) > limit:
            cut = max((i for i in range(1, limit + 1) if vocabulary.begins_word[codes[i]]), default=limit)
            found.append(codes[:cut])
            codes = codes[cut:]
        if codes:
            found.append(codes)
    return found


def _is_strange(codes: Sequence[int], vocabulary: Joint, odds: Sequence[float]) -> bool:
    """Whether a text is in a third language, or like one: cut into crumbs that do not speak for the source language.

    On sentences of five words and more, with the models that ship, this says so of 80 and 94 % of French captions (from
    English, from German), 95 and 99 % of Romanian news and 98 and 99 % of Spanish verses; of 0.5 and 0.8 % of lectures
    in the right language (IWSLT 2014), of none of 1,013 captions. Small vocabularies cut everything into crumbs.
    """
    words = sum(vocabulary.begins_word[code] for code in codes)
    if words < _FEW_WORDS or vocabulary.size < _FEW_PIECES:
        return False
    sizes = [vocabulary.letters[code] for code in codes]
    total = sum(sizes)
    known = sum(size for size in sizes if size >= _CRUMB)
    speaks = sum(odds[code] * size for code, size in zip(codes, sizes))
    return total > 0 and known < _KNOWN * total and speaks < _SPEAKS * total


def _unseen_bytes(codes: Sequence[int], vocabulary: Joint) -> int:
    """The bytes of characters that were never seen, less marks and signs ("…", "’"): these tell no script."""
    unseen = vocabulary.decode(code for code in codes if vocabulary.is_byte[code])
    return sum(len(one.encode()) for one in unseen if unicodedata.category(one)[0] not in "PSZ")


def remarks(
    parts: Sequence[Sequence[int]], limit: int, vocabulary: Joint, languages: tuple[str, str], odds: Sequence[float]
) -> tuple[str, ...]:
    """What a reader should know of a text, translated in these parts.

    Args:
        parts: their codes.
        limit: how many of them the model takes at once.
        vocabulary: of both languages.
        languages: (source, target).
        odds: for each code, log-odds that a piece is of the source language; empty = not known.
    """
    found: list[str] = []
    codes = [code for part in parts for code in part]
    if len(codes) >= 4 and _unseen_bytes(codes, vocabulary) > _FOREIGN * len(codes):
        found.append(f"this is hardly {languages[0]}: most of its characters were never seen in training")
    elif odds and len(codes) >= 4 and sum(odds[code] for code in codes) < _ODDS * len(codes):
        found.append(f"this looks like {languages[1]}, but is translated as {languages[0]}")
    elif odds and _is_strange(codes, vocabulary, odds):
        found.append(f"this is hardly {languages[0]}, or far from what was learnt: most of its words are unknown")
    if len(codes) > limit:
        found.append(f"translated in {len(parts)} parts")
        if not all(_ENDED.search(vocabulary.decode(part)) for part in parts[:-1]):
            found.append(f"a sentence of more than {limit} pieces was cut between words: read what became of it")
    return tuple(found)
