"""How a piece ends: on the tonic, on the dominant, or as it comes.

``tonic`` is the triad of the key's tonic in root position, ``half`` that of its dominant (major in minor, too). In
minor the tonic's third may be raised, as Bach often does. An ``Ending`` is a rule for the last chord (a ``Veto``):

    bass           the root, below all others
    other voices   root, third or fifth; the last of them to be drawn has the third, if no other has it
    all            each below the voice above it, as in 207 of 209 of Bach's, where that leaves a pitch

Without a key (a new piece, of which nothing is known yet) any triad in root position is allowed. What is drawn is
p(chord | given) less what the rule forbids, voice by voice; where nothing would be left, it forbids nothing.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.music.chorale import CODES, LOWEST, REST, Chorale, plain
from anyfill.music.keys import Key
from anyfill.music.score import VOICES

ENDINGS = ("tonic", "half", "open")
_BASS = len(VOICES) - 1
_TRIADS = ((0, 4, 7), (0, 3, 7))


def require_ending(ending: str | None) -> None:
    """Refuse what is no ending."""
    if ending is not None and ending not in ENDINGS:
        raise refuse("--ending", expected=" or ".join(ENDINGS), got=repr(ending))


@dataclass(frozen=True, slots=True)
class Ending:
    """The last chord of a piece.

    Attributes:
        kind: "tonic" or "half".
        tonic: pitch class of the key's tonic, as the model sees it; None = any triad will do.
        minor: the mode.
        hold: steps that the chord lasts.
        last: its last step; None = that of the piece.
    """

    kind: str
    tonic: int | None
    minor: bool = False
    hold: int = 4
    last: int | None = None

    def final(self, steps: int) -> int:
        """The last step of the chord in a piece of so many."""
        return steps - 1 if self.last is None else self.last

    def first(self, steps: int) -> int:
        """Its first step."""
        return max(self.final(steps) - self.hold + 1, 0)

    def chords(self) -> list[frozenset[int]]:
        """Pitch classes of the triads that are allowed."""
        return [frozenset((root + tone) % 12 for tone in kind) for root, kind in self._triads()]

    def _triads(self) -> list[tuple[int, tuple[int, ...]]]:
        if self.tonic is None:
            return [(root, kind) for root in range(12) for kind in _TRIADS]
        if self.kind == "half":
            return [((self.tonic + 7) % 12, _TRIADS[0])]
        return [(self.tonic, kind) for kind in (_TRIADS if self.minor else _TRIADS[:1])]

    def allows(self, voice: int, pitch: int) -> bool:
        """Whether a voice may have this pitch, as the model sees it."""
        return any(
            pitch % 12 == root if voice == _BASS else (pitch - root) % 12 in kind for root, kind in self._triads()
        )

    def forbidden(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        """bool (B, K): codes that do not belong to a chord that is allowed, given the voices that are known.

        Codes are as many as the greatest that x (B, N) may have, with onsets or without: see ``Triad``.
        """
        codes = 2 * CODES - 1
        batch, voices = len(x), len(VOICES)
        row, step, voice = torch.arange(batch), variable // voices, variable % voices
        now = plain(x.reshape(batch, -1, voices)[row, step])
        seen = known.reshape(batch, -1, voices)[row, step] & (now > 0)
        sounds = plain(torch.arange(codes))
        pitch = (sounds + LOWEST - 1) % 12
        allowed = torch.zeros(batch, codes, dtype=torch.bool)
        for root, kind in self._triads():
            member = torch.tensor([(tone + root) % 12 for tone in kind])
            own = (now + LOWEST - 1) % 12
            bass_ok = ~seen[:, _BASS] | (own[:, _BASS] == root)
            inside = (own.unsqueeze(2) == member).any(2) | ~seen
            others = torch.arange(voices) != voice.unsqueeze(1)
            possible = (inside | ~others).all(1) & bass_ok
            has_third = (seen & others & (own == member[1])).any(1)
            last_upper = (voice != _BASS) & ~((~known.reshape(batch, -1, voices)[row, step])[:, :_BASS]
                                              & others[:, :_BASS]).any(1)  # fmt: skip
            tones = torch.where(
                (voice == _BASS).unsqueeze(1), pitch == root,
                torch.where((last_upper & ~has_third).unsqueeze(1), pitch == member[1],
                            (pitch.unsqueeze(1) == member).any(1)),
            )  # fmt: skip
            room = sounds > (root - LOWEST) % 12  # below it the bass has no root
            allowed |= tones & possible.unsqueeze(1) & room
        allowed &= sounds > 0
        upper = torch.where(seen[:, :_BASS], now[:, :_BASS], codes).amin(1, keepdim=True)
        bass = torch.where(seen[:, _BASS:], now[:, _BASS:], 0)
        allowed &= torch.where((voice == _BASS).unsqueeze(1), sounds <= upper, sounds >= bass)
        number = torch.arange(voices)
        above = torch.where(seen & (number < voice.unsqueeze(1)), now, codes).amin(1, keepdim=True)
        below = torch.where(seen & (number > voice.unsqueeze(1)), now, 0).amax(1, keepdim=True)
        apart = allowed & (sounds < above) & (sounds > below)
        allowed = torch.where(apart.any(1, keepdim=True), apart, allowed)
        return ~(allowed | ~allowed.any(1, keepdim=True))


@dataclass(frozen=True, slots=True)
class Triad:
    """An ``Ending`` as a rule for a model of so many codes."""

    ending: Ending
    codes: int

    def forbidden(self, x: Tensor, known: Tensor, variable: Tensor) -> Tensor:
        return self.ending.forbidden(x, known, variable)[:, : self.codes]


def ends_on(chorale: Chorale, key: Key, kind: str) -> bool:
    """Whether the last chord that sounds is the triad of the tonic ("half": of the dominant) in root position."""
    sounding = (chorale.pitch != REST).any(0).nonzero()[0]
    if not len(sounding):
        return False
    chord = [int(pitch) for pitch in chorale.pitch[:, sounding[-1]] if pitch != REST]
    rule = Ending(kind, key.pitch_class, key.mode == "minor")
    classes = {pitch % 12 for pitch in chord}
    root = (key.pitch_class + (7 if kind == "half" else 0)) % 12
    has_third = bool(classes & {(root + 3) % 12, (root + 4) % 12})
    return min(chord) % 12 == root and has_third and any(classes <= tones for tones in rule.chords())
