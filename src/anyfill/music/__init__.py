"""Four-part music in the manner of Bach's chorales: write it, harmonise a tune, fill, go on, vary, score and grade.

>>> from fractions import Fraction
>>> from anyfill import music
>>> pitches = [67, 69, 71, 72, 71, 69, 67, 67]
>>> tune = music.Score((tuple(music.Note(Fraction(n), Fraction(1), pitch) for n, pitch in enumerate(pitches)),))
>>> music.read(tune)
<Piece: 2 bars, G major, soprano>
>>> first, second = music.load().harmonise(tune, n=2, seed=1)
>>> [note.pitch for note in first.score.voices[0]] == pitches
True
>>> len(first.score.voices), first.seed
(4, 1)

``first.save("harmonised.musicxml")`` writes a file (or .mid, .wav, .html, .png); a notebook shows its piano roll. Tunes
and pieces may be names of files as well, ``music.load().fill("piece.mid", ask="alto 3-6, tenor 5")``, and what is
written is then put into that file.
"""

from typing import TYPE_CHECKING

from anyfill.lazy import lazily

if TYPE_CHECKING:
    from anyfill.music.chorale import Chorale
    from anyfill.music.files import read
    from anyfill.music.grades import grade
    from anyfill.music.model import ChoraleModel, load
    from anyfill.music.piece import Piece
    from anyfill.music.score import Note, Score
    from anyfill.music.synth import wav
    from anyfill.music.training import train

__all__ = ["Chorale", "ChoraleModel", "Note", "Piece", "Score", "grade", "load", "read", "train", "wav"]

_HOME = {
    "Chorale": "chorale",
    "ChoraleModel": "model",
    "Note": "score",
    "Piece": "piece",
    "Score": "score",
    "grade": "grades",
    "load": "model",
    "read": "files",
    "train": "training",
    "wav": "synth",
}

__getattr__, __dir__ = lazily(__name__, _HOME)
