"""Typographic marks and their plain counterparts, for vocabularies that have no piece for them.

A mark that a vocabulary can only spell in bytes is three pieces that a model has hardly ever seen: “Open the door…”
made it stutter. Its counterpart in ASCII says the same. What is no mark, a letter with an accent, a digit that is
raised, an emoji, stays as it is: another sign would say something else.
"""

import re
import unicodedata
from functools import cache

_PLAIN = {
    '"': "“”„‟«»″〝〞〟「」『』",
    "'": "‘’‚‛‹›′´ʼ",
    "-": "‐‑‒–−⁃•",
    " - ": "—―⸺",  # English sets no spaces around it: "the door—and" is not one word
    "/": "⁄∕",
    ".": "。",
    ",": "、",
    "": "\u00ad\u2060\u200e\u200f",  # where a word may break or must not, and which way it goes
}
_COUNTERPARTS = {mark: plain for plain, marks in _PLAIN.items() for mark in marks}
_OTHER_FORMS = ("<compat>", "<wide>", "<narrow>")
"""Of what NFKC undoes, what says the same: ligatures, "…", fullwidth forms; neither "²" nor "½" nor "™"."""
_QUOTED = re.compile(
    r"([“”„‟«»‹›]\s*)([^“”„‟«»‹›\"]+?)(\s*[“”„‟«»‹›])"
    r"|([“„‟«»‹›]\s*)([^“”„‟«»‹›\"]+)()"
    r"|()([^“”„‟«»‹›\"]+?)(\s*[“”«»‹›])"
    r"|([‘‚]\s*)([^‘‚\"]+?)(\s*[‘’])"
)
"""A text that a quotation mark opens or closes, or both, without one inside."""


@cache
def counterpart(mark: str) -> str:
    """What says the same as a character in ASCII, or the character itself if nothing does or it is no mark."""
    if mark in _COUNTERPARTS:
        return _COUNTERPARTS[mark]
    found = unicodedata.normalize("NFKC", mark)
    same = unicodedata.decomposition(mark).startswith(_OTHER_FORMS) and found.isascii()
    return found if same else mark


def quoted(text: str) -> tuple[str, str, str]:
    """The typographic quotation mark that opens a plain text, what stands behind it, and the one that closes it.

    Either is empty where there is none, and both are if more of them stand inside.
    """
    found = _QUOTED.fullmatch(text)
    if found is None:
        return "", text, ""
    opens, inside, closes = (one for one in found.groups() if one is not None)
    return opens, inside, closes
