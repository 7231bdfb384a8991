"""Any text in the 27 symbols of text8, and what cannot be written in them."""

import re
import unicodedata

from anyfill.checks import refuse

_PLAIN = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ı": "i"}
"""Latin letters that Unicode does not take apart, as they are written without them."""
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def as_text8(text: str) -> str:
    """Any text in the 27 symbols of text8, as that corpus was made: letters in lower case, digits spelt out.

    Accents are taken off first (text8 has none); each run of anything else is one space.
    """
    plain = unicodedata.normalize("NFKD", text.lower().translate(str.maketrans(_PLAIN)))
    plain = "".join(one for one in plain if not unicodedata.combining(one))
    spelt = re.sub("[0-9]", lambda digit: f" {_DIGITS[int(digit[0])]} ", plain)
    return re.sub("[^a-z]+", " ", spelt)


def require_foldable(text: str, what: str = "text", *, offset: int = 0) -> None:
    """ValueError if the text has a letter or a numeral of which folding to text8 would leave nothing."""
    if text.isascii():
        return
    foreign = {one for one in set(text) if not one.isascii() and _is_foreign(one)}
    place = next((place for place, one in enumerate(text) if one in foreign), None)
    if place is not None:
        name = unicodedata.name(text[place], f"U+{ord(text[place]):04X}")
        got = f"{text[place]!r} ({name}) at character {offset + place + 1:,}"
        raise refuse(what, expected="letters that the model knows (a to z; accents are taken off)", got=got)


def _is_foreign(one: str) -> bool:
    """A letter (no mark that modifies one) or a numeral, in a script that text8 has not."""
    kind = unicodedata.category(one)
    return kind[0] in "LN" and kind != "Lm" and not as_text8(one).strip()
