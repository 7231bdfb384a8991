"""No parallel fifths and octaves: the one rule of four-part writing that a model of chorales breaks more than Bach.

Two voices that both move from one step to the next, and whose distance is a perfect fifth (an octave or unison) before
and after, octaves apart or not, are parallel. Models trained on some hundred chorales write one or two such errors in
eight bars, real chorales hardly any; in everything else that the grade measures they are near Bach.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from anyfill.music.chorale import CODES, VOICES

_FIFTH, _OCTAVE = 7, 0


@dataclass(frozen=True, slots=True)
class NoParallels:
    """Forbids a pitch that would move in parallel fifths or octaves with a voice that is known (``samplers.Veto``).

    Both neighbours in time are looked at, so that it holds as well where a hole is filled between known notes.
    """

    def forbidden(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        batch, voices = len(x), len(VOICES)
        row = torch.arange(batch, device=x.device)
        step, voice = variable // voices, variable % voices
        grid, told = x.reshape(batch, -1, voices), known.reshape(batch, -1, voices)
        last = grid.shape[1] - 1
        now, now_told = grid[row, step], told[row, step]  # (B, 4)
        code = torch.arange(CODES, device=x.device)
        answer = torch.zeros(batch, CODES, dtype=torch.bool, device=x.device)
        for side in (-1, 1):
            beside = (step + side).clamp(0, last)
            then, then_told = grid[row, beside], told[row, beside]
            mine = then[row, voice].unsqueeze(1)
            sounds = (mine > 0) & then_told[row, voice].unsqueeze(1) & (beside != step).unsqueeze(1)
            moves = sounds & now_told & then_told & (now > 0) & (then > 0) & (now != then)  # (B, 4); not voice itself,
            moves &= torch.arange(voices, device=x.device) != voice.unsqueeze(1)
            before = (then - mine).abs() % 12
            perfect = moves & ((before == _FIFTH) | (before == _OCTAVE))
            after = (now.unsqueeze(2) - code).abs() % 12  # (B, 4, K)
            parallel = perfect.unsqueeze(2) & (after == before.unsqueeze(2))
            answer |= parallel.any(1) & (code != mine) & (code > 0)
        return answer
