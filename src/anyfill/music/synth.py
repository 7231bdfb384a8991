"""Scores as sound: a small additive synthesiser, and WAV files.

A note of pitch m has the fundamental f = 440 · 2^((m - 69) / 12) Hz and harmonics k = 1, 2, … below half the sampling
rate, each a sine with an amplitude that falls with k and fades the faster the higher it is,

    a_k(t) = k^(-1.6) · exp(-t · (0.5 + 0.35 k)),        k up to 10,

under an envelope that begins and ends softly (raised cosines: 20 ms attack, 90 ms release). Voices stand side by side
from left to right. The room is an impulse response of noise that fades within a second, the same every time, added
quietly. Times follow the tempos of the score (``Signs.tempos``), or its one tempo. The loudest sample has 0.89.

Sound is float64 (2, samples); ``wav`` makes 16-bit PCM of it. The same score gives the same bytes.
"""

import struct
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse, require_count
from anyfill.disk import write_bytes
from anyfill.music.score import Score

RATE = 44_100
MAX_SECONDS = 1_200
_HARMONICS, _FALL, _FADE = 10, 1.6, (0.5, 0.35)
_ATTACK, _RELEASE, _TAIL = 0.02, 0.09, 1.2
_WET, _PEAK = 0.16, 0.89
Sound = NDArray[np.float64]


def frequency(pitch: int) -> float:
    """Hz of a MIDI number, A4 = 69 = 440 Hz, twelve equal semitones."""
    return 440.0 * 2.0 ** ((pitch - 69) / 12)


def clock_of(score: Score) -> "Clock":
    """Seconds of the times of a score."""
    return Clock(score.signs.tempos or ((Fraction(0), score.tempo),))


class Clock:
    """Seconds from quarter notes, where tempos (start, quarters a minute) hold from their start on."""

    def __init__(self, tempos: Sequence[tuple[Fraction, float]]) -> None:
        self._starts = [float(start) for start, _ in tempos]
        self._starts[0] = min(self._starts[0], 0.0)
        self._speeds = [60.0 / tempo for _, tempo in tempos]
        gaps = np.diff(self._starts) * self._speeds[:-1]
        self._at = [0.0, *np.cumsum(gaps).tolist()]

    def __call__(self, quarters: Fraction) -> float:
        place = max(int(np.searchsorted(self._starts, float(quarters), side="right")) - 1, 0)
        return self._at[place] + (float(quarters) - self._starts[place]) * self._speeds[place]


def render(score: Score, *, rate: int = RATE) -> Sound:
    """float64 (2, samples): the sound of a score, left and right.

    Args:
        score: what to play; rests are silent.
        rate: samples a second.
    """
    require_count("rate", rate)
    clock = clock_of(score)
    seconds = clock(score.length)
    if seconds > MAX_SECONDS:
        raise refuse("length of the sound", expected=f"at most {MAX_SECONDS:,} seconds", got=f"{seconds:,.0f}")
    sound = np.zeros((2, round((seconds + _TAIL) * rate) + 1))
    count = len(score.voices)
    for number, voice in enumerate(score.voices):
        angle = np.pi / 4 * (1 + 0.7 * ((number + 0.5) / count * 2 - 1))  # a quarter circle: equal loudness everywhere
        sides = np.array([[np.cos(angle)], [np.sin(angle)]])
        for note in voice:
            if note.pitch is None:
                continue
            begin, end = clock(note.start), clock(note.end)
            tone = _tone(frequency(note.pitch), end - begin, rate)
            first = round(begin * rate)
            part = sound[:, first : first + len(tone)]
            part += sides * tone[: part.shape[1]]
    sound = sound + _WET * _room(sound, rate)
    loudest = float(np.abs(sound).max())
    return sound * (_PEAK / loudest) if loudest else sound


def wav(score: Score, *, rate: int = RATE) -> bytes:
    """A WAV file: two channels of 16 bits; see ``render``."""
    samples = np.round(render(score, rate=rate).T * 32_767).astype("<i2").tobytes()
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(samples), b"WAVE", b"fmt ", 16, 1, 2, rate, rate * 4, 4,
                       16, b"data", len(samples))  # fmt: skip
    return head + samples


def write_wav(score: Score, path: str | Path) -> None:
    """Write a WAV file, as a whole or not at all."""
    write_bytes(wav(score), path)


def _tone(hertz: float, seconds: float, rate: int) -> Sound:
    """One note, with its release behind its end."""
    time = np.arange(max(round((seconds + _RELEASE) * rate), 2)) / rate
    tone = np.zeros_like(time)
    for k in range(1, _HARMONICS + 1):
        if k * hertz < rate / 2:
            tone += k**-_FALL * np.exp(-time * (_FADE[0] + _FADE[1] * k)) * np.sin(2 * np.pi * k * hertz * time)
    rise = 0.5 - 0.5 * np.cos(np.pi * np.clip(time / _ATTACK, 0, 1))
    fall = 0.5 - 0.5 * np.cos(np.pi * np.clip((seconds + _RELEASE - time) / _RELEASE, 0, 1))
    return tone * rise * fall


def _room(sound: Sound, rate: int) -> Sound:
    """The sound in a small room, by one convolution."""
    length = round(rate * 1.0)
    time = np.arange(length) / rate
    noise = np.random.default_rng(0).standard_normal((2, length)) * np.exp(-6.0 * time) * (time > 0.012)
    noise /= np.sqrt((noise**2).sum(1, keepdims=True))
    size = 1 << (sound.shape[1] + length - 1).bit_length()
    heard = np.fft.irfft(np.fft.rfft(sound, size) * np.fft.rfft(noise, size), size)
    return heard[:, : sound.shape[1]]
