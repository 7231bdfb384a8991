"""New chorales from nothing, of any number of bars, in the key that is named or in a common one."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from anyfill.checks import require_count
from anyfill.model import Model
from anyfill.music.choose import Tally, Wanted, draw_pieces, key_of
from anyfill.music.chorale import REST, VOICES, Chorale
from anyfill.music.draws import Asked
from anyfill.music.keys import NamedKey, shift_home, shift_to
from anyfill.music.output import Written
from anyfill.music.windows import BAR

MAX_BARS = 512


def generate(
    model: Model, bars: int, wanted: Wanted, *, key: NamedKey | None = None, tally: Tally | None = None
) -> Iterator[Written]:
    """New chorales of so many bars of 4/4, each as soon as it is done; those that hardly move are drawn again.

    A key is found after the fact: pieces are drawn until enough are in its mode, and transposed. Without one they are
    moved to the nearest common key (``keys.COMMON``).
    """
    require_count("--bars", bars, maximum=MAX_BARS)
    blank = Chorale.of(np.full((len(VOICES), bars * BAR), REST, dtype=np.int16))
    everything = np.ones(blank.pitch.shape, dtype=np.bool_)

    def fits(chorale: Chorale) -> bool:
        return key is not None and key_of(chorale) is not None and shift_to(chorale, key) is not None

    question = Asked(blank, ~everything, everything)
    wish = None if key is None else fits
    drawn = draw_pieces(model, question, wanted, fits=wish, moving=True, what="writing", tally=tally)
    for number, chorale in enumerate(drawn, 1):
        placed = chorale.transposed(shift_home(chorale) if key is None else shift_to(chorale, key) or 0)
        title = f"Chorale {wanted.seed}-{number}"
        about = f"{title}, {key_of(placed) or 'silence'}"
        yield Written(replace(placed, title=title), title=about)
