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
    wanted = [code for code in dict.fromkeys(source) if is_placeholder(code)]
    missing = [code for code in wanted if code not in best.codes]
    pieces = [decoder.vocabulary.piece(code) for code in wanted]
    room = bool(keeps) or sum(len(decoder.vocabulary.encode(piece)) for piece in pieces) <= decoder.length
    if missing and room and layout_of(decoder.recipe) != "end":
        said = " ".join(keep.text for keep in keeps)
        symbols = [Keep(piece) for piece in pieces if piece not in said]
        ways = keeping(decoder, [*keeps, *symbols], how)
        best = decoder.decode([source], how, ways=ways, history=history)[0][0]
    elif missing:
        best = replace(best, codes=(*best.codes, *missing))
    return placeholders_once(best)


def all_with_placeholders(
    decoder: Decoder, source: Sequence[int], found: Sequence[Hypothesis], how: Decoding
) -> list[Hypothesis]:
    """The hypotheses with every placeholder of the source; what is kept by force is the same for all, so it is once."""
    made: dict[tuple[int, ...], Hypothesis] = {}
    forced = False
    for one in found:
        complete = {code for code in source if is_placeholder(code)} <= {*one.codes}
        if complete or not forced:
            best = with_placeholders(decoder, source, one, how, ())
            made.setdefault(best.codes, best)
            forced = forced or (not complete and best.codes[: len(one.codes)] != one.codes)
    return list(made.values())


def placeholders_once(found: Hypothesis) -> Hypothesis:
    """The hypothesis without placeholders that it has written before."""
    first = {code: place for place, code in reversed(list(enumerate(found.codes)))}
    codes = (code for place, code in enumerate(found.codes) if first[code] == place or not is_placeholder(code))
    return replace(found, codes=tuple(codes))
