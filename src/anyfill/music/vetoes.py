"""What must not be written, whatever the model says: rules of four-part music as vetoes (``samplers.Veto``).

Parallel fifths and octaves are the one rule of four-part writing that a model of chorales breaks more than Bach. A note
that goes on must go on from its own pitch: that is what the codes of a model with onsets mean.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from anyfill.music.chorale import CODES, ONSET_CODES, plain
from anyfill.music.score import VOICES
from anyfill.samplers import Veto

_FIFTH, _OCTAVE = 7, 0


@dataclass(frozen=True, slots=True)
class NoParallels:
    """Forbids a pitch that would move in parallel fifths or octaves with a voice that is known.

    Two voices that both move from one step to the next, and whose distance is a perfect fifth (an octave or unison)
    before and after, octaves apart or not, are parallel. Models trained on some hundred chorales write one or two such
    errors in eight bars, real chorales hardly any; in everything else that the grade measures they are near Bach.

    Both neighbours in time are looked at, so that it holds as well where a hole is filled between known notes.

    Attributes:
        codes: of the model, with onsets or without.
    """

    codes: int = CODES

    def forbidden(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        batch, voices, x = len(x), len(VOICES), plain(x)
        row = torch.arange(batch, device=x.device)
        step, voice = variable // voices, variable % voices
        grid, seen = x.reshape(batch, -1, voices), known.reshape(batch, -1, voices)
        last = grid.shape[1] - 1
        now, now_seen = grid[row, step], seen[row, step]  # (B, 4)
        code = plain(torch.arange(self.codes, device=x.device))
        answer = torch.zeros(batch, self.codes, dtype=torch.bool, device=x.device)
        for side in (-1, 1):
            beside = (step + side).clamp(0, last)
            then, then_seen = grid[row, beside], seen[row, beside]
            mine = then[row, voice].unsqueeze(1)
            sounds = (mine > 0) & then_seen[row, voice].unsqueeze(1) & (beside != step).unsqueeze(1)
            moves = sounds & now_seen & then_seen & (now > 0) & (then > 0) & (now != then)  # (B, 4); not voice itself,
            moves &= torch.arange(voices, device=x.device) != voice.unsqueeze(1)
            before = (then - mine).abs() % 12
            perfect = moves & ((before == _FIFTH) | (before == _OCTAVE))
            after = (now.unsqueeze(2) - code).abs() % 12  # (B, 4, K)
            parallel = perfect.unsqueeze(2) & (after == before.unsqueeze(2))
            answer |= parallel.any(1) & (code != mine) & (code > 0)
        return answer


@dataclass(frozen=True, slots=True)
class GoesOn:
    """Forbids, with onsets, that a note goes on from another pitch, from silence, or from before the beginning."""

    def forbidden(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        row, before = torch.arange(len(x), device=x.device), variable - len(VOICES)
        there = before.clamp(min=0)
        last, seen = plain(x)[row, there], known[row, there] & (before >= 0)
        code = torch.arange(ONSET_CODES, device=x.device)
        other = plain(code) != last.unsqueeze(1)
        return (code >= CODES) & ((seen.unsqueeze(1) & other) | (before < 0).unsqueeze(1))


@dataclass(frozen=True, slots=True)
class AllOf:
    """What any of several rules forbids."""

    rules: tuple[Veto, ...]

    def forbidden(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        return torch.stack([rule.forbidden(x, known, variable) for rule in self.rules]).any(0)
