"""What must stand in a translation: phrases that are kept, and placeholders, each of them once.

The model sees symbols in the place of placeholders, and each comes out once, as it went in; one that the model forgot
is kept by force, at the place it likes best (models from left to right, and rows too short for all: at the end).

A word that the model would not have written may have more pieces than the one it stands for ("pup pi es" for "dogs").
The length that the model predicts is that of its own words, so lengths that are longer by what the phrases have beyond
a piece a word are tried as well; ``decode.py`` ranks them.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from torch import Tensor

from anyfill.checks import refuse
from anyfill.translation.constraints import Fixed, Keep, placements
from anyfill.translation.decode import Decoder, likeliest_lengths
from anyfill.translation.hypotheses import MOST, Decoding, Hypothesis, Ways
from anyfill.translation.recipes import layout_of
from anyfill.translation.vocabulary import is_placeholder


def keeping(decoder: Decoder, keeps: Sequence[Keep], how: Decoding) -> Ways:
    """The ways to keep phrases: the likeliest lengths that have room for them, as they are and longer, all places."""
    if layout_of(decoder.recipe) == "end":
        expected = "a model that takes words at any place (padir, cmlm, disco, sundae, one_pass)"
        raise refuse("--keep", expected=expected, got=f"one of the recipe {decoder.recipe}")
    encode = partial(decoder.vocabulary.encode, spelt=True)
    # The length that is predicted counts placeholders, which the source has; if nothing else is kept, all is joint.
    words = [word for one in keeps for word in one.text.split() if not any(map(is_placeholder, encode(word)))]
    extra = sum(len(encode(word)) - 1 for word in words)
    share = max(1, MOST // (how.lengths + min(extra, how.lengths)))  # most of the longer lengths are likely ones, too

    def ways(log_lengths: Tensor) -> list[Fixed]:
        found: dict[int, list[Fixed]] = {}
        longest = len(log_lengths)
        for shift in dict.fromkeys((0, min(extra, longest - 1))):
            tried = 0
            for one in likeliest_lengths(log_lengths, longest):
                length = one.length + shift
                if length > longest:
                    continue
                if length not in found:
                    found[length] = placements(keeps, length, decoder.vocabulary, most=share)
                tried += bool(found[length])
                if tried == how.lengths:
                    break
        return [replace(one, extra=extra if words else None) for some in found.values() for one in some]

    return ways


def with_placeholders(
    decoder: Decoder,
    source: Sequence[int],
    best: Hypothesis,
    how: Decoding,
    keeps: Sequence[Keep],
    *,
    history: bool = False,
) -> Hypothesis:
    """The hypothesis with every placeholder of the source in it, once; ``history`` = with the row after each pass."""
    missing = _missing(source, best)
    if missing and _can_force(decoder, source, keeps):
        said = " ".join(keep.text for keep in keeps)
        pieces = [decoder.vocabulary.piece(code) for code in _placeholders(source)]
        symbols = [Keep(piece) for piece in pieces if piece not in said]
        ways = keeping(decoder, [*keeps, *symbols], how)
        best = decoder.decode([source], how, ways=ways, history=history)[0][0]
    elif missing:
        best = replace(best, codes=(*best.codes, *missing))
    return placeholders_once(best)


def all_with_placeholders(
    decoder: Decoder, source: Sequence[int], found: Sequence[Hypothesis], how: Decoding
) -> list[Hypothesis]:
    """The hypotheses with every placeholder of the source, best first as they came.

    What is kept by force does not depend on the hypothesis that forgot it: of those that did, the first stands for all.
    """
    forgetful = [one for one in found if _missing(source, one)]
    left_out = forgetful[1:] if forgetful and _can_force(decoder, source, ()) else []
    return [with_placeholders(decoder, source, one, how, ()) for one in found if one not in left_out]


def _placeholders(source: Sequence[int]) -> list[int]:
    return [code for code in dict.fromkeys(source) if is_placeholder(code)]


def _missing(source: Sequence[int], found: Hypothesis) -> list[int]:
    return [code for code in _placeholders(source) if code not in found.codes]


def _can_force(decoder: Decoder, source: Sequence[int], keeps: Sequence[Keep]) -> bool:
    """Whether placeholders can be put anywhere, and there is room for all (phrases to keep have seen to theirs)."""
    pieces = [decoder.vocabulary.piece(code) for code in _placeholders(source)]
    room = bool(keeps) or sum(len(decoder.vocabulary.encode(piece)) for piece in pieces) <= decoder.length
    return room and layout_of(decoder.recipe) != "end"


def placeholders_once(found: Hypothesis) -> Hypothesis:
    """The hypothesis without placeholders that it has written before."""
    first = {code: place for place, code in reversed(list(enumerate(found.codes)))}
    codes = (code for place, code in enumerate(found.codes) if first[code] == place or not is_placeholder(code))
    return replace(found, codes=tuple(codes))
