r"""A text with blanks in it, as people write it: what is given, and how long each blank may be.

    ____      between spaces or marks: one word, of any length; with ``letters`` exactly so many characters
    l_st      beside letters or digits: exactly so many characters; of one token, where tokens are words; of pieces, a
              word that is spelt so (``anyfill.text.patterns``)
    []        a blank of unstated length (``--lengths`` says which lengths are tried)
    [5]       a blank of exactly 5
    [3-8]     a blank of 3 to 8
    \_  \[    an underscore, a bracket

With ``free`` every run of underscores is a blank of unstated length. Blanks side by side are one blank, whose lengths
are their sums. A closing bracket stands for itself, and so does a backslash, unless backslashes stand directly before
an underscore or a bracket: there each two of them are one, and one that is left over makes the next character a
character.
"""

import re
from dataclasses import dataclass

from anyfill.checks import refuse
from anyfill.text.patterns import letters_before, letters_behind

_RANGE = r"([0-9]{1,6})(?:-([0-9]{1,6}))?"
_TOKEN = re.compile(
    r"(?<!\\)(?P<escaped>\\(?:\\\\)*[_\[])|(?<!\\)(?P<slashes>(?:\\\\)+)(?=[_\[])"
    r"|(?P<run>_+)|(?P<bracket>\[[^\[\]\n]{0,20}\]?)"
)
_WAYS = r"[], [5] or [3-8] (\[ writes a bracket)"


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths from ``minimum`` to ``maximum``, both included; ``is_word``: what stands there is one word; ``pattern``:
    how it is spelt, "" = anyhow."""

    minimum: int
    maximum: int
    is_word: bool = False
    pattern: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.minimum <= self.maximum:
            expected = "at least 1, the smaller one first"
            raise refuse("lengths of a blank", expected=expected, got=f"{self.minimum}-{self.maximum}")

    @property
    def is_open(self) -> bool:
        """Whether there is more than one of them."""
        return self.minimum < self.maximum

    def __add__(self, other: "Lengths") -> "Lengths":
        return Lengths(self.minimum + other.minimum, self.maximum + other.maximum)


@dataclass(frozen=True, slots=True)
class Template:
    """A text with k blanks.

    Attributes:
        stretches: k + 1 pieces of given text, as written but for the escapes; empty ones only at the two ends.
        blanks: the lengths of each of the k blanks; blank i stands between stretches i and i + 1.
    """

    stretches: tuple[str, ...]
    blanks: tuple[Lengths, ...]

    def filled(self, answers: tuple[str, ...]) -> str:
        """The text with the k answers in their places."""
        return self.stretches[0] + "".join(one + more for one, more in zip(answers, self.stretches[1:]))


def parse_lengths(text: str, what: str = "--lengths") -> Lengths:
    """Lengths as ``5`` or ``3-8``; ValueError otherwise."""
    found = re.fullmatch(_RANGE, text.strip())
    if found is None:
        raise refuse(what, expected="a length or a range of lengths, as 5 or 3-8", got=repr(text))
    minimum, maximum = int(found[1]), int(found[2] or found[1])
    if not 1 <= minimum <= maximum:
        raise refuse(what, expected="lengths from 1 up, the smaller one first", got=repr(text))
    return Lengths(minimum, maximum)


def parse(
    text: str,
    *,
    unstated: Lengths,
    free: bool = False,
    tokens: bool = False,
    word: Lengths | None = None,
    spelt: bool = False,
) -> Template:
    """Read a text with blanks.

    Args:
        text: see the top of this file.
        unstated: the lengths of a blank that states none.
        free: treat every run of underscores as such a blank.
        tokens: lengths count words or pieces; a run of underscores is one of them.
        word: the lengths of a run of underscores that stands by itself and so is one word; None = it is as long as it
            is written.
        spelt: letters are counted, tokens are not: a run of underscores beside letters, or that is no word, is a word
            of so many letters.

    Raises:
        ValueError: there is no text, no blank in it, or brackets that say nothing.
    """
    if not text:
        raise refuse("text", expected="some text with a blank in it, as 'the ____ sat'", got="none")
    stretches, blanks, now = [""], list[Lengths](), 0
    runs: list[int] = []  # of blanks that are one run of underscores and nothing else, how many; else 0
    for found in _TOKEN.finditer(text):
        stretches[-1] += text[now : found.start()]
        now = found.end()
        literal = found["escaped"] or found["slashes"]
        if literal is not None:
            kept = literal[: len(literal) // 2 - 1] + literal[-1] if found["escaped"] else literal[: len(literal) // 2]
            stretches[-1] += kept
            continue
        if found["run"] is not None:
            size = 1 if tokens else len(found["run"])
            blank = unstated if free else Lengths(size, size)
        else:
            blank = _bracket(found["bracket"], found.start(), unstated)
        if blanks and stretches[-1] == "":
            blanks[-1], runs[-1] = blanks[-1] + blank, 0
        else:
            blanks.append(blank)
            runs.append(len(found["run"]) if found["run"] is not None and not free else 0)
            stretches.append("")
    stretches[-1] += text[now:]
    if not blanks:
        shown = text if len(text) <= 40 else text[:40] + " …"
        raise refuse("text", expected=r"a blank in it: ____, [] or [3-8]", got=repr(shown))
    if spelt:
        _spell(stretches, blanks, runs, is_word=word is not None)
    if word is not None:
        for number, is_run in enumerate(runs):
            touching = stretches[number][-1:] + stretches[number + 1][:1]
            if is_run and not any(one.isalnum() for one in touching):
                blanks[number] = Lengths(word.minimum, word.maximum, is_word=True)
    return Template(tuple(stretches), tuple(blanks))


def _spell(stretches: list[str], blanks: list[Lengths], runs: list[int], *, is_word: bool) -> None:
    """Put the letters beside runs of underscores into the blanks, as patterns; runs by themselves too, if no words."""
    number = 0
    while number < len(blanks):
        size = runs[number]
        before = letters_before(stretches[number]) if size else ""
        behind = letters_behind(stretches[number + 1]) if size else ""
        if not size or (is_word and not before and not behind):
            number += 1
            continue
        pattern = before + "_" * size + behind
        stretches[number] = stretches[number].removesuffix(before)
        stretches[number + 1] = stretches[number + 1].removeprefix(behind)
        while not stretches[number + 1] and number + 1 < len(blanks) and runs[number + 1]:  # the same word goes on
            behind = letters_behind(stretches[number + 2])
            pattern += "_" * runs[number + 1] + behind
            stretches[number + 2] = stretches[number + 2].removeprefix(behind)
            del stretches[number + 1], blanks[number + 1], runs[number + 1]
        blanks[number], runs[number] = Lengths(1, len(pattern), is_word=True, pattern=pattern), 0
        number += 1


def _bracket(written: str, place: int, unstated: Lengths) -> Lengths:
    what = f"bracket at character {place + 1}"
    inside = written.removeprefix("[").removesuffix("]")
    if not written.endswith("]") or (inside and re.fullmatch(_RANGE, inside) is None):
        raise refuse(what, expected=_WAYS, got=repr(written))
    return parse_lengths(inside, what) if inside else unstated
