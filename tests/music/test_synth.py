"""Sound has the right pitches, at the right times, and is a WAV file."""

import io
import wave
from fractions import Fraction

import numpy as np
import pytest

from anyfill.music.score import Note, Score, Signs
from anyfill.music.synth import RATE, Clock, frequency, render, wav

F = Fraction


@pytest.mark.parametrize("pitch", [36, 48, 57, 60, 69, 76, 81])
def test_the_strongest_frequency_of_a_note_is_its_fundamental(pitch: int) -> None:
    """Within half a bin of a transform over one second: 0.5 Hz."""
    sound = render(Score(((Note(F(0), F(2), pitch),),), tempo=60.0))
    heard = sound.sum(0)[RATE // 4 : RATE // 4 + RATE] * np.hanning(RATE)
    spectrum = np.abs(np.fft.rfft(heard))
    assert abs(int(spectrum.argmax()) - frequency(pitch)) <= 0.5
    octave = round(2 * frequency(pitch))
    assert spectrum[octave - 1 : octave + 2].max() > 0.05 * spectrum.max()  # there are harmonics


def test_all_notes_of_a_chord_are_heard_and_none_before_it_begins() -> None:
    voices = tuple((Note(F(2), F(2), pitch),) for pitch in (76, 67, 60, 48))
    sound = render(Score(voices, tempo=60.0))
    assert np.abs(sound[:, : 2 * RATE - 1]).max() < 1e-12
    heard = sound.sum(0)[2 * RATE + RATE // 4 :][:RATE] * np.hanning(RATE)
    spectrum = np.abs(np.fft.rfft(heard))
    for pitch in (76, 67, 60, 48):
        near = round(frequency(pitch))
        assert spectrum[near - 1 : near + 2].max() > 0.2 * spectrum.max()


def test_it_begins_softly_and_never_clips() -> None:
    sound = render(Score(((Note(F(0), F(1), 60),),), tempo=60.0))
    assert np.abs(sound[:, :44]).max() < 0.1 * np.abs(sound).max()
    assert np.abs(sound).max() == pytest.approx(0.89)


def test_times_follow_the_tempos() -> None:
    clock = Clock(((F(0), 60.0), (F(4), 120.0), (F(6), 30.0)))
    assert [clock(F(q)) for q in (0, 2, 4, 5, 6, 7)] == [0.0, 2.0, 4.0, 4.5, 5.0, 7.0]
    slow = Score(((Note(F(0), F(4), 60),),), tempo=60.0, signs=Signs(tempos=((F(0), 60.0), (F(2), 30.0))))
    assert render(slow).shape[1] == render(Score(((Note(F(0), F(6), 60),),), tempo=60.0)).shape[1]


def test_a_wav_file_has_two_channels_of_16_bits_and_the_same_bytes_every_time() -> None:
    score = Score(((Note(F(0), F(1), 60),),), tempo=120.0)
    assert wav(score) == wav(score)
    with wave.open(io.BytesIO(wav(score))) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (2, 2, RATE)
        assert file.getnframes() == render(score).shape[1]


def test_silence_is_silent_and_hours_are_refused() -> None:
    assert not render(Score(((Note(F(0), F(1), None),),))).any()
    with pytest.raises(ValueError, match=r"length of the sound: expected at most 1,200 seconds, got 2,400"):
        render(Score(((Note(F(0), F(2400), 60),),), tempo=60.0))
