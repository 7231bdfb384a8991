"""Numbers as people write them: $1,200.50, 12 %, 1.234,56, 3 000 €, (250.00).

A column of text is one of numbers in a ``NumberStyle`` if that reads every one of its different cells:

    sign  prefix  digits  suffix      digits = 1200.5 or, in threes, 1,200.5

Prefix and suffix are a currency (symbol or code) or a percent sign, the same in all cells but for spaces; the digits
may be grouped in threes; the decimal mark is a point or a comma; a negative number has a minus before or behind the
prefix, or brackets around it. Cells that were there stay as they are, byte for byte. Answers are written in the style
of the column: where all cells have as many decimals, ``style.write(style.read(cell)) == cell``.

**Which mark is which.** 1,234 alone may be a thousand and more or a little above one. The first of ``_MARKS`` that
reads all cells counts: groups in threes come before the decimal comma, so a single cell such as 12,5 or 0,123 decides
for the comma. What Python itself reads as a number (1.234) never comes here.

Digits in threes alone, equally many in every cell and seven or more, are a phone number or the like: no quantity.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

CURRENCIES = (
    *("$", "€", "£", "¥", "₹", "₽", "₩", "₺", "₫", "₪", "₴", "฿", "R$", "US$", "zł", "kr", "Kč", "Ft", "Fr."),
    *("USD", "EUR", "GBP", "JPY", "CHF", "CNY", "INR", "CAD", "AUD", "SEK", "NOK", "DKK", "PLN", "BRL", "MXN"),
)
_AFFIXES = "|".join(re.escape(word) for word in sorted((*CURRENCIES, "%", "‰"), key=len, reverse=True))
_SHAPE = re.compile(
    rf"(?P<open>\()?(?P<before>[-+−])?(?P<prefix>(?:{_AFFIXES})?[ \u00a0]?)(?P<after>[-+−])?"
    rf"(?P<digits>\d[\d.,'’ \u00a0\u202f]*?)(?P<suffix>[ \u00a0]?(?:{_AFFIXES})?)(?P<close>\))?"
)
_MARKS = (
    *((",", "."), (".", ","), ("\u202f", ","), ("\u00a0", ","), (" ", ","), ("'", "."), ("’", ".")),
    *(("\u202f", "."), ("\u00a0", "."), (" ", "."), ("", ","), ("", ".")),
)
_PHONE = 7


@dataclass(frozen=True, slots=True)
class NumberStyle:
    """How the numbers of a column are written.

    Attributes:
        prefix, suffix: before and behind the digits, with their space.
        thousands: between groups of three digits; "" = they are not grouped.
        decimal: the mark before the decimals.
        negative: where the minus of a negative number stands: before the prefix, after it, or brackets.
    """

    prefix: str = ""
    suffix: str = ""
    thousands: str = ""
    decimal: str = "."
    negative: str = "before"

    @property
    def is_percent(self) -> bool:
        """True if numbers are percentages."""
        return "%" in self.prefix + self.suffix

    def read(self, word: str) -> float | None:
        """The number that a cell is; None if it is none in this style."""
        parts = _parts(word)
        if parts is None:
            return None
        prefix, digits, suffix, _, is_negative = parts
        body = _body(self.thousands, self.decimal)
        if (prefix.strip(), suffix.strip()) != (self.prefix.strip(), self.suffix.strip()) or not body.fullmatch(digits):
            return None
        plain = digits.replace(self.thousands, "") if self.thousands else digits
        number = float(plain.replace(self.decimal, "."))
        return -number if is_negative else number

    def write(self, plain: str) -> str:
        """A number, as Python writes it without an exponent, in this style."""
        is_negative, digits = plain.startswith("-"), plain.removeprefix("-")
        whole, _, rest = digits.partition(".")
        if self.thousands:
            whole = f"{int(whole):,}".replace(",", self.thousands)
        body = f"{whole}{self.decimal}{rest}" if rest else whole
        if not is_negative:
            return f"{self.prefix}{body}{self.suffix}"
        if self.negative == "brackets":
            return f"({self.prefix}{body}{self.suffix})"
        return (
            f"-{self.prefix}{body}{self.suffix}" if self.negative == "before" else f"{self.prefix}-{body}{self.suffix}"
        )

    def decimals(self, word: str) -> int:
        """How many decimals a cell in this style has."""
        parts = _parts(word)
        return 0 if parts is None else len(parts[1].partition(self.decimal)[2])


def style_of(words: Iterable[object]) -> NumberStyle | None:
    """The style in which all of these different cells are numbers; None if there is none, or if it is the plain one."""
    found = [_parts(word) if isinstance(word, str) else None for word in words]
    parts = [part for part in found if part is not None]
    if not parts or len(parts) < len(found):
        return None
    affixes = {(part[0].strip(), part[2].strip()) for part in parts}
    if len(affixes) > 1:
        return None
    digits = [part[1] for part in parts]
    marks = next((pair for pair in _MARKS if all(map(_body(*pair).fullmatch, digits))), None)
    if marks is None:
        return None
    thousands, decimal = marks
    grouped = bool(thousands) and any(thousands in one for one in digits)
    has_affix = affixes != {("", "")}
    in_brackets = any(part[3] == "brackets" for part in parts)
    if not (has_affix or grouped or in_brackets) and (decimal == "." or not any(decimal in one for one in digits)):
        return None
    lengths = {len(re.sub(r"\D", "", one)) for one in digits}
    if grouped and not has_affix and len(lengths) == 1 and min(lengths) >= _PHONE and len(parts) > 1:
        return None
    signs = [part[3] for part in parts if part[4]]
    return NumberStyle(
        _most(part[0] for part in parts),
        _most(part[2] for part in parts),
        thousands if grouped else "",
        decimal,
        _most(signs) if signs else "before",
    )


def _parts(word: str) -> tuple[str, str, str, str, bool] | None:
    """Prefix, digits, suffix, where a sign stands, and whether it is negative; None if a cell is no number at all."""
    shape = _SHAPE.fullmatch(word.strip())
    if shape is None or (shape["open"] is None) != (shape["close"] is None) or (shape["before"] and shape["after"]):
        return None
    sign = shape["before"] or shape["after"] or ""
    if shape["open"] and sign:
        return None
    where = "brackets" if shape["open"] else "after" if shape["after"] else "before"
    is_negative = bool(shape["open"]) or sign in ("-", "−")
    return shape["prefix"], shape["digits"], shape["suffix"], where, is_negative


@lru_cache(maxsize=64)
def _body(thousands: str, decimal: str) -> re.Pattern[str]:
    """Digits with these marks: in threes, or not grouped; a group does not begin with a zero."""
    rest = rf"(?:{re.escape(decimal)}\d+)?"
    grouped = rf"[1-9]\d{{0,2}}(?:{re.escape(thousands)}\d{{3}})+{rest}|" if thousands else ""
    return re.compile(rf"{grouped}(?:0|[1-9]\d*){rest}")


def _most(words: Iterable[str]) -> str:
    """The most frequent, the first of equals."""
    listed = list(words)
    return max(listed, key=listed.count)
