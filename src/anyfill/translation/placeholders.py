"""What must not be translated: placeholders (``%s``, ``{name}``), markup (``<b>``, ``&amp;``), and where they stand.

They are replaced by symbols ⟦0⟧ … ⟦9⟧ before encoding, numbered as they come in the source, and put back afterwards: a
network cannot misspell what it never sees. Protected are

    %s %1$d %-5.2f %* %@ %%   of C and its kin, %1 and %L1 of Qt, %(name)s and %(n).2f of Python
    {} {name} {0:.2f} {user.name} {{name}} ${name} $1
    <b> </a> <img …>          tags, and addresses: <me@example.org>
    &amp; &#39; &#x27;        characters by name or number

"100%ig" and "50%off" hold none: a letter behind a number's percent sign that goes on as a word is text.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from anyfill.checks import refuse
from anyfill.translation.vocabulary import MAX_PLACEHOLDERS

_C = r"%(?:\d+\$)?[-+#0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t|L)?(?:[sdiufFxXcgGeEp@]|[onr](?![^\W\d_]))"
_VALUED = r"""(?:\s+[\w:.@-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+))*"""
_TAG = rf"</?[A-Za-z](?:[^\s<>]*|[\w:.-]*(?:{_VALUED}\s+[\w:.@%${{}}-]+){{0,2}}{_VALUED}\s*/?)>"
"""Attributes with values, and at most two words without: more of these are prose, as in "x <y the rule holds> z"."""
_PLACEHOLDER = re.compile(
    r"%%"
    rf"|(?<!\d){_C}|{_C}(?![^\W\d_])"
    r"|%\([\w.-]+\)[-+#0]*\d*(?:\.\d+)?[sdifFrgGeExXoc]"
    r"|%L?\d{1,2}(?!\d)"
    r"|\{\{\s*[\w.]+\s*\}\}|\$?\{[\w.\[\]-]*(?:![rsa])?(?::[^{}\s]{0,20})?\}|\$[1-9](?![\d.,]*\d)"
    rf"|{_TAG}"
    r"|&(?:[A-Za-z][A-Za-z0-9]{1,30}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});"
)
_SYMBOL = re.compile("⟦([0-9])⟧")
_SYMBOLS = re.compile("(⟦[0-9]⟧)")
_SENTENCE = re.compile(r"[.!?…。！？][\"'»“”’)\]]*\s")


def placeholders(text: str) -> list[str]:
    """The placeholders of a text as they come; one that comes twice is two of them."""
    return _PLACEHOLDER.findall(text)


def invented(text: str, kept: Sequence[str]) -> bool:
    """Whether a text has a placeholder that is none of these, or one more often than they have it."""
    return bool(Counter(placeholders(text)) - Counter(kept))


def placeholder_spans(text: str) -> list[tuple[int, int]]:
    """Where they stand: the first character of each, and the one behind it."""
    return [found.span() for found in _PLACEHOLDER.finditer(text)]


def spelt_placeholders(text: str, bare: str) -> list[str]:
    """The placeholders of a plain text as they are spelt in the text that it was, with their spaces inside.

    Where both have not the same ones, as they are in the plain text.
    """
    found, spelt = placeholders(bare), placeholders(text)
    return spelt if [" ".join(one.split()) for one in spelt] == found else found


def same_placeholders(source: str, target: str) -> bool:
    """Whether both sides have the same ones, as often."""
    return Counter(placeholders(source)) == Counter(placeholders(target))


def protected(text: str, kept: Sequence[str]) -> str:
    """The text with the placeholders of this list as symbols, the others as they are.

    Of those that are equal the first in the text is the first in the list, and so on: arguments come in their order.
    """
    numbers: dict[str, list[int]] = {}
    for number, one in enumerate(kept[:MAX_PLACEHOLDERS]):
        numbers.setdefault(" ".join(one.split()), []).append(number)

    def symbol(found: re.Match[str]) -> str:
        left = numbers.get(" ".join(found[0].split()))
        return f"⟦{left.pop(0)}⟧" if left else found[0]

    return _PLACEHOLDER.sub(symbol, text)


def restored(text: str, kept: Sequence[str], source: str = "") -> str:
    """The text with its symbols as the placeholders they stand for; symbols that stand for none are dropped.

    With ``source``, the protected text that it translates, there are spaces around markup as there are in that: none
    between ``<b>`` and the word it begins with, nor between two placeholders that touch.
    """
    known = _SYMBOL.sub(lambda found: found[0] if int(found[1]) < len(kept) else "", text)
    spaced = _spaced_like(source, " ".join(known.split()), kept) if source else " ".join(known.split())
    return _SYMBOL.sub(lambda found: kept[int(found[1])], spaced)


def has_words(text: str, *, protect: bool = True) -> bool:
    """Whether there is a letter in a text, outside of placeholders if these are protected."""
    return any(one.isalpha() for one in (_PLACEHOLDER.sub("", text) if protect else text))


def passages(text: str) -> list[str]:
    """The text in stretches that have symbols for all their placeholders; put together they are the text.

    It is cut behind a sentence if one ends early enough, else at a space, else between two placeholders.
    """
    spans = placeholder_spans(text)
    found, start, number = list[str](), 0, 0
    while len(spans) - number > MAX_PLACEHOLDERS:
        some = spans[number : number + MAX_PLACEHOLDERS]
        cut = _cut(text, some[0][1], spans[number + MAX_PLACEHOLDERS][0], some)
        found.append(text[start:cut])
        start, number = cut, number + sum(end <= cut for _, end in some)
    return [*found, text[start:]]


def passages_like(text: str, kept: Sequence[Sequence[str]], name: str) -> list[str]:
    """A plain text beside one that is in passages, in as many stretches; put together they are the text.

    A placeholder is in the stretch of the passage that has it, and what is in none stays with its neighbours. A passage
    that none of them is of has an empty stretch, or what stands before the first of the next.

    Args:
        text: a translation of the other, or a part of one.
        kept: the placeholders of each passage.
        name: of the text, for complaints.

    Raises:
        ValueError: one of a passage stands behind one of a later passage.
    """
    left = [Counter(" ".join(one.split()) for one in some) for some in kept]
    found, start, behind = list[str](), 0, 0
    for first, last in placeholder_spans(text):
        one = " ".join(text[first:last].split())
        own = next((i for i in range(len(found), len(left)) if left[i][one]), None)
        if own is None and any(some[one] for some in left):
            expected = f"placeholders in the order of the text, which goes in {len(left)} parts, for it has so many"
            raise refuse(name, expected=expected, got=f"{one} behind those of a later part")
        if own is not None:
            left[own][one] -= 1
            if own > len(found):
                cut = _cut(text, behind, first)
                found += [text[start:cut], *[""] * (own - len(found) - 1)]
                start = cut
        behind = last
    return [*found, text[start:], *[""] * (len(left) - len(found) - 1)]


def _cut(text: str, first: int, last: int, spans: Sequence[tuple[int, int]] = ()) -> int:
    """Where between two places to cut: behind the last sentence there, else the last space, else at the end."""
    ends = _outside(spans, (end.end() for end in _SENTENCE.finditer(text, first, last)))
    spaces = _outside(spans, (place + 1 for place in range(first, last) if text[place].isspace()))
    return max(ends or spaces, default=last)


def _outside(spans: Sequence[tuple[int, int]], places: Iterable[int]) -> list[int]:
    """The places where a cut goes through none of these spans."""
    return [place for place in places if not any(start < place < end for start, end in spans)]


def _spaced_like(source: str, text: str, kept: Sequence[str]) -> str:
    """A text with symbols whose spaces around markup are those of its source."""
    asked, parts = _SYMBOLS.split(source), _SYMBOLS.split(text)
    beside = {
        asked[i]: (
            asked[i - 1][-1:] or ("⟧" if i > 1 else ""),
            asked[i + 1][:1] or ("⟦" if i + 2 < len(asked) else ""),
        )
        for i in range(1, len(asked), 2)
    }
    between = {(asked[i], asked[i + 2]): asked[i + 1] for i in range(1, len(asked) - 2, 2)}
    for i in range(0, len(parts), 2):
        left, right = parts[i - 1] if i else "", parts[i + 1] if i + 1 < len(parts) else ""
        gap = between.get((left, right), "x")
        if not parts[i].strip() and not gap.strip():
            parts[i] = gap
            continue
        if left in beside and (tag := kept[int(left[1])]).startswith("<"):
            parts[i] = _beside(parts[i][::-1], beside[left][1], inside=not tag.startswith("</"))[::-1]
        if right in beside and (tag := kept[int(right[1])]).startswith("<"):
            parts[i] = _beside(parts[i], beside[right][0], inside=tag.startswith("</") or tag.endswith("/>"))
    return "".join(parts).strip()


def _beside(text: str, neighbour: str, *, inside: bool) -> str:
    """What stands before a tag, whose neighbour in the source is this character: with a space at its end, or none."""
    if neighbour in ("", " "):
        return text + " " if text[-1:].isalnum() else text
    bare = text.rstrip()
    return bare if inside or not (neighbour.isalnum() or bare[-1:].isalnum()) else text


_TAGS = re.compile(r"<(/?)([A-Za-z][\w.-]*)(?:\s[^<>]*)?>")


def is_emptied(source: str, translation: str) -> bool:
    """Whether fewer elements (``<b>…</b>``) have something between their tags than in the source."""
    return _full_elements(translation) < _full_elements(source)


def _full_elements(text: str) -> int:
    """How many elements hold something that is not white space: words, or other tags."""
    count, behind, last = 0, 0, 0  # behind the last tag, and behind the last of anything
    begun = dict[str, list[int]]()  # where the content of elements begins that are not closed yet, by name
    for tag in _TAGS.finditer(text):
        if text[behind : tag.start()].strip():
            last = tag.start()
        if not tag[1]:
            begun.setdefault(tag[2], []).append(tag.end())
        elif begun.get(tag[2]):
            count += begun[tag[2]].pop() < last
        behind = last = tag.end()
    return count
