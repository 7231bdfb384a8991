"""What must not be translated: placeholders (``%s``, ``{name}``), markup (``<b>``, ``&amp;``), and where they stand.

They are replaced by symbols ⟦0⟧ … ⟦9⟧ before encoding, numbered as they come in the source, and put back afterwards: a
network cannot misspell what it never sees. Protected are

    %s %1$d %-5.2f %* %@ %%   of C and its kin, %1 and %L1 of Qt, %(name)s and %(n).2f of Python
    {} {name} {0:.2f} {user.name} {{name}} ${name} $1
    <b> </a> <img …>          tags
    &amp; &#39; &#x27;        characters by name or number

"100%ig" and "50%off" hold none: a letter behind a number's percent sign that goes on as a word is text.
"""

import re
from collections import Counter
from collections.abc import Sequence

from anyfill.translation.vocabulary import MAX_PLACEHOLDERS

_C = r"%(?:\d+\$)?[-+#0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t|L)?(?:[sdiufFxXcgGeEp@]|[onr](?![^\W\d_]))"
_PLACEHOLDER = re.compile(
    r"%%"
    rf"|(?<!\d){_C}|{_C}(?![^\W\d_])"
    r"|%\([\w.-]+\)[-+#0]*\d*(?:\.\d+)?[sdifFrgGeExXoc]"
    r"|%L?\d{1,2}(?!\d)"
    r"|\{\{ ?[\w.]+ ?\}\}|\$?\{[\w.\[\]-]*(?:![rsa])?(?::[^{}\s]{0,20})?\}|\$[1-9](?![\d.,]*\d)"
    r"|</?[A-Za-z][^<>]{0,1000}>"
    r"|&(?:[A-Za-z][A-Za-z0-9]{1,30}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});"
)
_SYMBOL = re.compile("⟦([0-9])⟧")


def placeholders(text: str) -> list[str]:
    """The placeholders of a text as they come; one that comes twice is two of them."""
    return _PLACEHOLDER.findall(text)


def placeholder_spans(text: str) -> list[tuple[int, int]]:
    """Where they stand: the first character of each, and the one behind it."""
    return [found.span() for found in _PLACEHOLDER.finditer(text)]


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


def restored(text: str, kept: Sequence[str]) -> str:
    """The text with its symbols as the placeholders they stand for; symbols that stand for none are dropped."""
    known = _SYMBOL.sub(lambda found: found[0] if int(found[1]) < len(kept) else "", text)
    return _SYMBOL.sub(lambda found: kept[int(found[1])], " ".join(known.split()))
