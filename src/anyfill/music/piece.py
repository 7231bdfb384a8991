"""A piece: the grid of sixteenths of a score, with what is known of it and where it came from.

Every beginning and every end goes to the nearest sixteenth (the later one of two as near), so a note that fits stays as
it is, and one that was played a little early is put right. A note that would vanish lasts one step if the step is free
and is left out otherwise. Triplets, runs in 32nds and the like do not fit: the grid is only what a model sees of them.
What is kept of a file keeps its own times (``Piece.score``). Where a model is to learn a piece, one in which more than
a third of the notes begin further than a quarter of a step from the grid is refused.

Which part is which voice: see ``voices.seats``. More than four parts of which never more than four notes sound at once
are thrown together and split anew; of more notes at once the highest and the lowest are taken for soprano and bass. A
voice that has no note in the file is *absent*: its cells are rests in the chorale and False in ``present``, for a model
to fill.

**Written pieces.** A note of the file is kept if no cell of it was written, with its own onset and length. New notes
begin and end with steps, less where a kept note off the grid is in their way.

Music that lies elsewhere is put into the range of the model, or of a voice, and put back afterwards. Ranges are
those of the JSB chorales as they are written. Octaves are tried first, the nearest first; then semitones, the fewest
first (up before down). A tune wider than the range is moved so that as few notes as possible stay outside. A whole
piece is left alone as long as the model has codes for its notes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anyfill.checks import refuse
from anyfill.music.chorale import BAR, HIGHEST, LOWEST, REST, STEP, Chorale
from anyfill.music.keys import Key, KeySignature, find_key
from anyfill.music.score import VOICES, Note, Score, require_length
from anyfill.music.voices import ParsedScore, most_at_once, seats, split, times, top_line

if TYPE_CHECKING:
    from anyfill.music.piano_roll import Panel

RANGES = ((60, 81), (52, 74), (46, 69), (36, 66))
"""Lowest and highest MIDI number of soprano, alto, tenor and bass."""
ONLY_COMMON = "the model has learnt 4/4, and its strong beats fall elsewhere"
"""What is said of other metres, unless the model is told the metre."""
_MIDI = 127
"""The highest note that a file can have."""
_SHIFTS = sorted(range(-127, 128), key=lambda shift: (abs(shift), -shift))
_OCTAVES = [shift for shift in _SHIFTS if shift % 12 == 0]
_NEAR = Fraction(1, 4)
_MAX_OFF = Fraction(1, 3)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Piece:
    """Four-part music: as it was read, or as a model wrote it.

    Attributes:
        chorale: the grid, as a model sees it; rests where a voice is absent.
        present: bool (4, T), False in voices that are absent.
        shift: semitones by which the grid is higher than the music, which lay out of range.
        source: the score that it was read from.
        lines: of the four voices, the notes of the source; none where a voice is absent, or there is no source.
        written: bool (4, T), what a model wrote into a piece; None where nothing was given, or nothing written.
        remarks: one sentence for each thing that was changed on the way here.
        title: above a picture; the chorale's by default.
        seed: what it was drawn with.
        signature: the key signature, stated by the file or its reader; None = the one that fits the notes.
        alone: only its tune was read, and it is one voice of four.
        drops: the other parts of the file are left out where it is written, if only the tune was read.
        new_key: the signature takes the place of those in the file.
    """

    chorale: Chorale
    present: NDArray[np.bool_]
    shift: int = 0
    source: Score | None = None
    lines: tuple[tuple[Note, ...], ...] = ()
    written: NDArray[np.bool_] | None = None
    remarks: tuple[str, ...] = ()
    title: str = ""
    seed: int | None = None
    signature: KeySignature | None = None
    alone: bool = False
    drops: bool = True
    new_key: bool = False

    @property
    def score(self) -> Score:
        """Its notes where they sound. What was read is as it was read, and what was kept of it is as it was."""
        if self.written is None and self.source is not None:
            return self._signed(self.source)
        if self.written is None or self.source is None:
            return self._signed(self.chorale.score().transposed(-self.shift))
        voices = tuple(
            tuple(sorted((*self.kept(voice), *self.added(voice)), key=lambda note: note.start))
            for voice in range(len(VOICES))
        )
        later, end, stated = self.chorale.score(), self.source.length, set(self.source.bars)
        bars = (*self.source.bars, *(bar for bar in later.bars if bar >= end and bar not in stated))
        return self._signed(
            replace(self.source, voices=voices, names=VOICES, bars=bars if len(bars) > 1 else later.bars)
        )

    def _signed(self, score: Score) -> Score:
        """The score with the signature of the piece, where it states none or another one."""
        if self.signature is None or (score.signs.keys and not self.new_key):
            return score
        key = (Fraction(0), self.signature.fifths, self.signature.minor)
        return replace(score, signs=replace(score.signs, keys=(key,)))

    def kept(self, voice: int) -> tuple[Note, ...]:
        """The notes (and rests) of the source in a voice of which nothing was written anew."""
        line = self.lines[voice] if self.lines else ()
        if self.written is None:
            return line
        own = self.written[voice]
        return tuple(note for note in line if not own[cells_of_note(note, self.chorale.steps)].any())

    def added(self, voice: int) -> tuple[Note, ...]:
        """The notes that a model wrote into a voice, in the gaps between those that are kept; no rests."""
        if self.written is None or not self.written[voice].any():
            return ()
        own, chorale = self.written[voice], self.chorale
        kept = sorted((note for note in self.kept(voice) if note.pitch is not None), key=lambda note: note.start)
        cuts = chorale.onset[voice].copy()
        cuts[1:] |= own[1:] != own[:-1]
        starts = np.flatnonzero(cuts).tolist()
        found: list[Note] = []
        for first, end in zip(starts, [*starts[1:], chorale.steps]):
            pitch = int(chorale.pitch[voice, first])
            if not own[first] or pitch == REST:
                continue
            start, stop = first * STEP, end * STEP
            for note in kept:
                if note.start < stop and note.end > start:  # off the grid, by less than half a step
                    start, stop = (note.end, stop) if note.start <= start else (start, note.start)
            if stop > start:
                found.append(Note(start, stop - start, pitch - self.shift))
        return tuple(found)

    @property
    def key(self) -> Key | None:
        """The key it is in, as stated or else as it seems; None where nothing sounds."""
        return key_or_none(self.score) if self.signature is None else self.signature.key

    def save(self, path: str | Path) -> None:
        """Write what the name says: .mid, .musicxml, .mxl, .png, .wav, .html; .svg or .pdf where Verovio is installed.

        MIDI and MusicXML are the file that the piece was read from, if it is of that kind, with the new notes in it.
        """
        from anyfill.music.saving import save_piece

        save_piece(self, path)

    def panel(self) -> "Panel":
        """What a picture shows. Music beyond the range of a chorale is drawn as the model saw it, and says so."""
        from anyfill.music.piano_roll import Panel

        title = self.title or self.chorale.title
        try:
            shown = self.chorale.transposed(-self.shift)
        except ValueError:
            shown, title = self.chorale, f"{title} (drawn {self.shift:+d} semitones)"
        if self.written is None:
            return Panel(shown, title, present=None if self.present.all() else self.present)
        return Panel(shown, title, locked=~self.written)

    def _repr_png_(self) -> bytes:
        from anyfill.music.piano_roll import piano_roll

        return piano_roll(self.panel())

    def __repr__(self) -> str:
        voices = [name for name, there in zip(VOICES, self.present) if there.any()]
        bars = len(self.chorale.bars)
        facts = [
            *([repr(self.chorale.title)] if self.chorale.title else []),
            f"{bars} bar{'s' if bars != 1 else ''}",
            str(self.key or "silence"),
            "four voices" if len(voices) == len(VOICES) else " and ".join(voices),
            *([f"seed {self.seed}"] if self.seed is not None else []),
        ]
        return f"<Piece: {', '.join(facts)}>"


def key_or_none(score: Score) -> Key | None:
    """The key that a score seems to be in; None where nothing sounds."""
    return None if score.last_pitch is None else find_key(score)


def folded(pitch: int) -> int:
    """A pitch moved by octaves to where the model has codes."""
    return LOWEST + (pitch - LOWEST) % 12 if pitch < LOWEST else HIGHEST - (HIGHEST - pitch) % 12


def signature_or_none(score: Score) -> KeySignature | None:
    """The key signature that a score states first; None where it states none."""
    return KeySignature.stated(score, *score.signs.keys[0][1:]) if score.signs.keys else None


def cells_of_note(note: Note, steps: int) -> slice:
    """The steps of a note on the grid, one at least."""
    start = min(_nearest(note.start), steps - 1)
    return slice(start, min(max(_nearest(note.end), start + 1), steps))


def quantise(parsed: ParsedScore | Score, *, transpose: int = 0, source: str = "score", strict: bool = True) -> Piece:
    """The grid of a score; ValueError, in a sentence that begins with ``source``, if it has none.

    Args:
        parsed: what was read, or a score.
        transpose: semitones by which every note is put higher on the way.
        source: what an error calls it.
        strict: refuse music most of which does not fit the grid.
    """
    if isinstance(parsed, Score):
        parsed = ParsedScore(parsed)
    score, remarks = parsed.score, list(parsed.remarks)
    lines = sounding_lines(score)
    if not lines:
        raise refuse(source, expected="notes", got="none")
    require_length(source, score.length)
    names, voices = [name for name, _ in lines], [voice for _, voice in lines]
    if len(lines) > len(VOICES):
        notes = [note for voice in voices for note in voice if note.pitch is not None]
        count, _ = most_at_once(notes)
        if count > len(VOICES):
            voices, names = [top_line(notes), top_line(notes, lowest=True)], [VOICES[0], VOICES[-1]]
            remarks.append(f"{len(lines)} voices, up to {count} at once: the outer ones are read, as soprano and bass")
        else:
            voices, names = split(notes, source), list[str]()
            remarks.append(f"{len(lines)} parts were split anew into {len(voices)} voices")
    chosen = seats(voices, names)
    if len(chosen) < len(VOICES):
        said = " and ".join(VOICES[seat] for seat in chosen)
        remarks.append(f"{times(len(chosen), 'part', 'parts')}: taken as {said}; the other voices are absent")
    bar, pickup = _metre(score, source, remarks)
    count = Counter[str]()
    last = max(note.end for voice in voices for note in voice if note.pitch is not None)
    steps = max(_nearest(score.length), _nearest(last), 1)
    pitch = np.full((len(VOICES), steps), REST, dtype=np.int16)
    onset = np.zeros(pitch.shape, dtype=np.bool_)
    present = np.zeros(pitch.shape, dtype=np.bool_)
    placed: list[tuple[Note, ...]] = [()] * len(VOICES)
    for seat, voice in zip(chosen, voices):
        present[seat], placed[seat] = True, tuple(voice)
        for start, end, note in _on_grid(voice, steps, count):
            number = (note.pitch or 0) + transpose
            if not strict and not LOWEST <= number <= HIGHEST:
                number = folded(number)
                count["folded"] += 1
            if not LOWEST <= number <= HIGHEST:
                where = f"{source}, {VOICES[seat]}, quarter note {float(note.start) + 1:g}"
                raise refuse(where, expected=f"MIDI pitches from {LOWEST} to {HIGHEST}", got=number)
            pitch[seat, start:end] = number
            onset[seat, start] = True
    remarks += _remarks(count, source, strict)
    chorale = Chorale(pitch, onset, bar, pickup, score.tempo, score.title)
    signature = signature_or_none(score)
    return Piece(chorale, present, transpose, score, tuple(placed), remarks=tuple(remarks), signature=signature)


def _remarks(count: Counter[str], source: str, strict: bool) -> list[str]:
    """What the grid did to notes, in words; refused if most of the piece does not fit."""
    if not strict:
        moved = count["moved"] + count["dropped"]
        said = f"{times(moved, 'note lies', 'notes lie')} off the grid of sixteenths: the model sees the nearest one"
        high = (
            f"{times(count['folded'], 'note lies', 'notes lie')} beyond the codes of the model: it sees another octave"
        )
        return [*([said] if moved else []), *([high] if count["folded"] else [])]
    if count["off"] > _MAX_OFF * count["notes"]:
        got = f"{count['off']:,} of {count['notes']:,} notes that begin between them"
        raise refuse(source, expected="music in sixteenths of a steady beat", got=got)
    said = {
        "moved": "moved to the nearest sixteenth",
        "lengthened": "lengthened to a sixteenth",
        "dropped": "left out: too short for a sixteenth",
    }
    return [f"{times(count[of], 'note was', 'notes were')} {what}" for of, what in said.items() if count[of]]


def sounding_lines(score: Score) -> list[tuple[str, tuple[Note, ...]]]:
    """Names ("" where there are none) and notes of the voices of a score in which something sounds."""
    names = [*score.names, *[""] * (len(score.voices) - len(score.names))]
    return [(name, voice) for name, voice in zip(names, score.voices) if any(n.pitch is not None for n in voice)]


def _metre(score: Score, source: str, remarks: list[str]) -> tuple[int, int]:
    """Steps in a bar, and in the pickup."""
    bar = score.bar_length
    if (bar / STEP).denominator != 1:
        raise refuse(source, expected="bars of whole sixteenths", got=f"bars of {bar} quarter notes")
    pickup = score.pickup
    odd = sum((start - pickup) % bar != 0 for start in score.bars[1:])
    if 4 * odd > len(score.bars):  # a bar cut in two at a double bar or a repeat is nothing to speak of
        remarks.append(
            times(odd, "bar begins", "bars begin") + f" off the bar lines, which are {bar} quarter notes apart"
        )
    steps = int(bar / STEP)
    return steps, _nearest(pickup) % steps


def _on_grid(voice: Sequence[Note], steps: int, count: Counter[str]) -> list[tuple[int, int, Note]]:
    """(first step, step behind the last, note) of the notes of one voice that find a place."""
    placed: list[tuple[int, int, Note]] = []
    for note in voice:
        if note.pitch is None:
            continue
        start, end = _nearest(note.start), _nearest(note.end)
        count["notes"] += 1
        count["off"] += abs(note.start / STEP - start) > _NEAR
        count["moved"] += start * STEP != note.start or end * STEP != note.end
        if placed and placed[-1][1] > start:
            # the note before had to be lengthened into this one's step: the longer of the two has it
            count["dropped"] += 1
            if placed[-1][2].length >= note.length:
                continue
            placed.pop()
        if end <= start:
            end = start + 1
            count["lengthened"] += 1
        if end <= steps:
            placed.append((start, end, note))
        else:
            count["dropped"] += 1
    return placed


def _nearest(time: Fraction) -> int:
    """The step nearest to a time in quarters; the later one of two as near."""
    return int((time / STEP + Fraction(1, 2)) // 1)


def shift_into(pitches: Sequence[int], voice: int, *, fold: bool = False) -> int:
    """Semitones by which to move these pitches into the range of a voice; 0 where they lie in it.

    Where they are wider than the codes of the model, they are refused, or with ``fold`` moved so that most lie inside.
    """
    low, high = RANGES[voice]
    lowest, highest = min(pitches), max(pitches)
    shift = _best_shift(low - lowest, high - highest)
    if shift is not None:
        return shift
    possible = [shift for shift in _SHIFTS if lowest + shift >= LOWEST and highest + shift <= HIGHEST]
    if not possible and fold:
        possible = _OCTAVES
    if not possible:
        raise _too_wide(f"tune for the {VOICES[voice]}", highest - lowest)
    return min(possible, key=lambda shift: sum(not low <= pitch + shift <= high for pitch in pitches))


def shift_whole(pitches: Sequence[int], source: str) -> int:
    """Semitones by which to move all voices of a piece; 0 where the model has codes for all its pitches.

    Otherwise into the compass of the four voices, or if it is wider than that to where there are codes for it. A
    ValueError, if there is no such place or one too far away, begins with ``source``.
    """
    lowest, highest = min(pitches), max(pitches)
    if lowest >= LOWEST and highest <= HIGHEST:
        return 0
    for low, high in ((RANGES[-1][0], RANGES[0][1]), (LOWEST, HIGHEST)):
        shift = _best_shift(low - lowest, high - highest)
        if shift is not None:
            return require_near(shift, f"a piece nearer to MIDI {LOWEST} to {HIGHEST}", source)
    raise _too_wide(source, highest - lowest)


def _too_wide(source: str, semitones: int) -> ValueError:
    expected = f"at most {HIGHEST - LOWEST} semitones from its lowest to its highest note"
    return refuse(source, expected=expected, got=semitones)


def _best_shift(low: int, high: int) -> int | None:
    """The best shift from ``low`` to ``high`` semitones: octaves first, the nearest first."""
    return next((shift for shift in (*_OCTAVES, *_SHIFTS) if low <= shift <= high), None)


def require_near(shift: int, expected: str, source: str) -> int:
    """The shift; refused where what the model writes, put back, might be no MIDI notes."""
    if not HIGHEST - _MIDI <= shift <= LOWEST:
        raise refuse(source, expected=expected, got=f"one {in_words(-shift)}")
    return shift


def in_words(semitones: int) -> str:
    """How far, as in "an octave up", "3 semitones down"."""
    count, octaves = abs(semitones), abs(semitones) // 12
    if count % 12 == 0:
        size = "an octave" if octaves == 1 else f"{octaves} octaves"
    else:
        size = "a semitone" if count == 1 else f"{count} semitones"
    return f"{size} {'up' if semitones > 0 else 'down'}"


def whole_of(parsed: ParsedScore, *, source: str = "score", strict: bool = False) -> Piece:
    """All voices of what was read, as they are put to the model; a ValueError begins with ``source``."""
    pitches = [note.pitch or 0 for note in parsed.score.sounding()]
    shift = shift_whole(pitches, source) if pitches else 0
    piece = quantise(parsed, transpose=shift, source=source, strict=strict)
    moved = (
        f"the piece does not lie in the range of the model: put {in_words(shift)} for it, and "
        f"{in_words(-shift)} afterwards"
    )
    return remarked(piece, [*piece.remarks, *([moved] if shift else [])])


def remarked(piece: Piece, remarks: Sequence[str]) -> Piece:
    """With a remark on bars that the model has not learnt."""
    bar = piece.chorale.bar
    odd = f"bars of {bar / 4:g} quarter notes: {ONLY_COMMON}"
    return replace(piece, remarks=(*remarks, *([odd] if bar != BAR else [])))
