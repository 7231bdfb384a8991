"""What is asked of a model: some cells of a piece, given others.

**Locks.** A note of which any part is locked is locked as a whole, with its onset and its length: what is tied over the
border of a written bar is kept, and the cells it needs are not asked. No locked note ever grows either: what is written
behind it is struck anew.

A piece that is longer than what the model was trained on is asked in ``anyfill.music.windows``.

**Endings.** With an ``Ending`` the chord of the last step is drawn first, from p(last chord | given) less what does not
belong to the chord that is wanted, and is held from where the last given note begins; all the rest is then drawn given
it. A model that answers any question needs nothing else for that.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.checks import refuse, require_count, require_member
from anyfill.model import Model
from anyfill.music.ask import cells_of
from anyfill.music.chorale import BAR, REST, Chorale, cells_of_note
from anyfill.music.endings import Ending, ends_on, require_ending
from anyfill.music.files import Music, parse, read
from anyfill.music.form import Form, per_cell
from anyfill.music.keys import KeySignature, parse_key
from anyfill.music.keys import named as named_note
from anyfill.music.piece import Piece, key_or_none
from anyfill.music.score import VOICES
from anyfill.music.transposition import shift_home, shift_to
from anyfill.music.tunes import tune_of
from anyfill.music.windows import BACK, LONG_BACK, LONG_WINDOW, WINDOW, has_onsets, resized, tells_form, windows
from anyfill.questions.question import Question

MAX_BARS = 512


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A question about a piece, and which of its answers are wanted.

    Attributes:
        piece: what stands in cells that are not given means nothing.
        given: bool (4, T), given to the model and never changed.
        asked: bool (4, T), to be written; cells that are neither are not looked at.
        what: a word for what is being done.
        fits: an answer for which this is not True is drawn again.
        moving: draw again where an answer hardly moves.
        finish: makes a piece of an answer, its number and the seed.
        ending: the last chord; None = whatever comes.
        prefers: an answer for which this is not True is drawn again, some times.
        amount: how much of what is asked may change, where it is a variation of what stands there; None = all is new.
        ends: whether the piece ends with its last step, as far as the model is told.
    """

    piece: Piece
    given: NDArray[np.bool_]
    asked: NDArray[np.bool_]
    what: str = "filling"
    fits: Callable[[Chorale], bool] | None = None
    moving: bool = False
    finish: Callable[[Chorale, int, int], Piece] | None = None
    ending: Ending | None = None
    prefers: Callable[[Chorale], bool] | None = None
    amount: float | None = None
    ends: bool = True

    @classmethod
    def generate(cls, bars: int = 8, key: str | None = None, ending: str | None = None) -> "Request":
        """A new chorale of so many bars of 4/4.

        A key is found after the fact: pieces are drawn until enough are in its mode, and transposed. Without one they
        are moved to the nearest common key (``COMMON_KEYS``). Unless the ending is open, the last chord is a triad in
        root position, and pieces of whose key it is not the tonic (the dominant, for "half") are drawn again.
        """
        require_count("--bars", bars, maximum=MAX_BARS)
        require_ending(ending)
        named = None if key is None else parse_key(key)
        blank = Chorale.of(np.full((len(VOICES), bars * BAR), REST, dtype=np.int16))
        everything = np.ones(blank.pitch.shape, dtype=np.bool_)

        def shift(chorale: Chorale) -> int | None:
            if key_or_none(chorale.score()) is None:
                return None
            return shift_home(chorale) if named is None else shift_to(chorale, named)

        def finish(chorale: Chorale, number: int, seed: int) -> Piece:
            title = f"Chorale {seed}-{number}"
            placed = replace(chorale.transposed(shift(chorale) or 0), title=title)
            about = f"{title}, {key_or_none(placed.score()) or 'silence'}"
            return Piece(placed, everything, title=about, seed=seed)

        def fits(chorale: Chorale) -> bool:
            return shift(chorale) is not None

        def ends(chorale: Chorale) -> bool:
            found = key_or_none(chorale.score())
            return found is not None and ends_on(chorale, found, ending or "tonic")

        closed = ending != "open"
        return cls(
            Piece(blank, ~everything), ~everything, everything, "writing", fits if named else None, moving=True,
            finish=finish, ending=Ending(ending or "tonic", None, hold=BAR // 2) if closed else None,
            prefers=ends if closed else None,
        )  # fmt: skip

    @classmethod
    def harmonise(
        cls, tune: Music, voice: str = "soprano", *, choose: str | None = None, key: str | None = None,
        ending: str | None = None, others: str = "drop",
    ) -> "Request":  # fmt: skip
        """The three other voices of a tune, which is never changed."""
        if voice not in VOICES:
            raise refuse("voice", expected=" or ".join(VOICES), got=repr(voice))
        require_member("--others", others, ("drop", "keep"))
        require_ending(ending)
        parsed, source = parse(tune)
        piece = tune_of(parsed, VOICES.index(voice), tune=choose, source=source)
        piece = _keyed(replace(piece, drops=others == "drop"), key)
        asked = ~piece.present
        return cls(piece, piece.present, asked, "harmonising", ending=_ending_of(piece, asked, ending))

    @classmethod
    def fill(
        cls, music: Music, ask: str | None = None, *, key: str | None = None, ending: str | None = None
    ) -> "Request":
        """Some cells of a piece, all others locked; without ``ask`` the voices that the file does not have.

        A voice that the file does not have is never given: where it is not asked, it stays silent and is not looked at.
        """
        require_ending(ending)
        piece = read(music)
        wanted = ~piece.present if ask is None else cells_of(ask, piece.chorale)
        if not wanted.any():
            bars = piece.chorale.bars
            raise ValueError(
                "nothing to fill, for all four voices are in the file: --ask says what to write anew, as in "
                f'--ask "alto {bars[0]}-{bars[-1]}"'
            )
        asked = whole_notes(piece, wanted)
        if not asked.any():
            raise ValueError("nothing to fill: every note there is tied to one that is locked, and stays with it")
        kept = (wanted & ~asked & (piece.chorale.pitch != REST)).any(1)
        if kept.any():
            names = " and ".join(name for name, there in zip(VOICES, kept) if there)
            said = f"notes of the {names} that go on beyond the written bars are locked, and kept as a whole"
            piece = replace(piece, remarks=(*piece.remarks, said))
        piece = _keyed(piece, key)
        last = _ending_of(piece, asked, ending) if ending is not None else None
        return cls(piece, piece.present & ~asked, asked, ending=last)

    @classmethod
    def go_on(cls, music: Music, bars: int = 4, *, key: str | None = None, ending: str | None = None) -> "Request":
        """So many bars more behind the end of a piece, in all four voices; an unfinished last bar is finished first."""
        require_count("--bars", bars, maximum=MAX_BARS)
        require_ending(ending)
        piece = _keyed(read(music), key)
        chorale = piece.chorale
        left = (chorale.pickup - chorale.steps) % chorale.bar
        more = left + bars * chorale.bar
        edge = ((0, 0), (0, more))
        longer = replace(
            chorale, pitch=np.pad(chorale.pitch, edge, constant_values=REST), onset=np.pad(chorale.onset, edge)
        )
        given = np.pad(piece.present, edge)
        asked = np.zeros_like(given)
        asked[:, chorale.steps :] = True
        piece = replace(piece, chorale=longer, present=given)
        final = None if ending == "open" else _tonic(piece, ending or "tonic", longer.steps - 1, BAR // 2)
        return cls(piece, given, asked, "continuing", ending=final)

    @classmethod
    def vary(cls, music: Music, amount: float = 0.3, ask: str | None = None, *, key: str | None = None) -> "Request":
        """A variation of a piece, or of some of its cells: SUNMASK's chain, begun with what stands there."""
        if not 0.0 <= amount <= 1.0:
            raise refuse("--amount", expected="a number from 0 (nothing changes) to 1 (all may)", got=amount)
        piece = _keyed(read(music), key)
        asked = piece.present if ask is None else whole_notes(piece, cells_of(ask, piece.chorale)) & piece.present
        if not asked.any():
            raise ValueError("nothing to vary: --ask names only voices that the piece does not have")
        return cls(piece, piece.present & ~asked, asked, "varying", amount=amount)

    def piece_of(self, answer: Chorale, number: int, seed: int) -> Piece:
        """The answer as the user gets it."""
        if self.finish is not None:
            return self.finish(answer, number, seed)
        words = {"harmonising": "Harmonised", "continuing": "Continued", "varying": "Varied"}
        name = answer.title or words.get(self.what, "Filled")
        title = f"{name}, seed {seed}, {number}"
        present = self.piece.present | self.asked
        written = self.asked if self.amount is None else changed_notes(self.piece, answer) & self.asked
        return replace(self.piece, chorale=answer, present=present, written=written, title=title, seed=seed, remarks=())

    @property
    def before(self) -> int:
        """Steps of the first bar that are not in the piece."""
        return -self.piece.chorale.pickup % self.piece.chorale.bar

    def row(self, cells: NDArray[np.bool_]) -> Tensor:
        """bool (4 (before + T),) in the order of the model's variables, from cells (4, T); False before the piece."""
        return torch.from_numpy(np.pad(cells, ((0, 0), (self.before, 0))).T.reshape(-1))

    def codes(self, *, onsets: bool = False) -> Tensor:
        """int64 (4 (before + T),), zero before the beginning."""
        return torch.nn.functional.pad(self.piece.chorale.codes(onsets=onsets), (len(VOICES) * self.before, 0))

    def context(self, model: Model) -> Tensor | None:
        """(1, 4 (before + T), F): what a model is told of the form; None for one that is told nothing."""
        if not tells_form(model):
            return None
        features = Form.of(self.piece, ends=self.ends).features()
        return per_cell(torch.nn.functional.pad(features, (0, 0, self.before, 0)).unsqueeze(0))

    def passes(self, model: Model, *, known: Tensor | None = None) -> Iterator[tuple[Model, slice, Question]]:
        """For each window: the model for its length, the cells C of a row, and what is given and asked there (1, C).

        What one window answers is given to the next. ``known`` (4 (before + T),) are cells that are known by now.
        """
        asked, now = self.row(self.asked), self.row(self.given)
        if known is not None:
            asked, now = asked & ~known, now | known
        size, back = (LONG_WINDOW, LONG_BACK) if has_onsets(model) else (WINDOW, BACK)
        bar = self.piece.chorale.bar if tells_form(model) else BAR
        grids = (cells.reshape(-1, len(VOICES)).T.numpy() for cells in (asked, now))
        for window in windows(*grids, size=size, back=back, bar=bar):
            cells, answered = window.cells, window.answers(asked)
            question = Question((now & ~answered)[cells].unsqueeze(0), answered[cells].unsqueeze(0))
            yield resized(model, window.stop - window.start), cells, question
            now = now | answered

    def last_chord(self, model: Model) -> tuple[Model, slice, Question, Tensor] | None:
        """The pass that draws the last chord: as ``passes``, and the cells (4 (before + T),) that then hold it."""
        if self.ending is None:
            return None
        final, hold = self.ending.final(self.asked.shape[1]), self.ending.first(self.asked.shape[1])
        chord = np.zeros_like(self.asked)
        chord[:, final] = self.asked[:, final]
        if not chord.any():
            return None
        held = np.zeros_like(self.asked)
        held[:, hold : final + 1] = self.asked[:, hold : final + 1] & chord[:, final : final + 1]
        size = LONG_WINDOW if has_onsets(model) else WINDOW
        stop = self.before + final + 1
        bar = self.piece.chorale.bar if tells_form(model) else BAR
        start = -(-max(0, stop - size) // bar) * bar
        cells = slice(len(VOICES) * start, len(VOICES) * stop)
        question = Question(self.row(self.given)[cells].unsqueeze(0), self.row(chord)[cells].unsqueeze(0))
        return resized(model, stop - start), cells, question, self.row(held)


def whole_notes(piece: Piece, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The cells that are asked where these are wanted: less those of notes that are not wanted as a whole."""
    asked = wanted.copy()
    for voice, cells in _sounding(piece):
        if not wanted[voice, cells].all():
            asked[voice, cells] = False
    return asked


def changed_notes(piece: Piece, answer: Chorale) -> NDArray[np.bool_]:
    """bool (4, T): the notes of a piece of which an answer changes anything, and what is new between them."""
    differs = answer.pitch != piece.chorale.pitch
    changed = differs.copy()
    for voice, cells in _sounding(piece):
        if differs[voice, cells].any():
            changed[voice, cells] = True
    return changed


def _sounding(piece: Piece) -> Iterator[tuple[int, slice]]:
    """(voice, steps) of every note of a piece, as it was read where it was."""
    for voice, line in enumerate(piece.lines or piece.chorale.score().voices):
        yield from ((voice, cells_of_note(note, piece.chorale.steps)) for note in line if note.pitch is not None)


def _keyed(piece: Piece, key: str | None) -> Piece:
    """The piece with the key that is named, or that its file states, or that it seems to be in: one for all answers."""
    if key is not None:
        return replace(piece, signature=KeySignature.in_key(parse_key(key)), new_key=True)
    if piece.signature is not None:
        return piece
    heard = piece.chorale.score().transposed(-piece.shift)
    found = key_or_none(heard)
    return piece if found is None else replace(piece, signature=KeySignature.in_key(found))


def _tonic(piece: Piece, kind: str, final: int, hold: int) -> Ending | None:
    signature = piece.signature
    if signature is None:
        return None
    root = (signature.key.pitch_class + piece.shift) % 12
    return Ending(kind, root, signature.minor, hold=hold, last=final)


def _ending_of(piece: Piece, asked: NDArray[np.bool_], wanted: str | None) -> Ending | None:
    """The last chord of a piece some of whose notes are given: as wanted, or else as they allow it."""
    chorale, signature = piece.chorale, piece.signature
    given = (chorale.pitch != REST) & piece.present & ~asked
    sounding = np.flatnonzero(given.any(0) | (asked.all(0)))
    if wanted == "open" or signature is None or not len(sounding):
        return None
    final = int(sounding[-1])
    there = [(voice, int(chorale.pitch[voice, final])) for voice in range(len(VOICES)) if given[voice, final]]
    begins = [int(np.flatnonzero(chorale.onset[voice, : final + 1])[-1]) for voice, _ in there]
    hold = min(final - max(begins) + 1 if begins else BAR // 2, BAR)
    for kind in ("tonic", "half") if wanted is None else (wanted,):
        ending = _tonic(piece, kind, final, hold)
        if ending is not None and all(ending.allows(voice, pitch) for voice, pitch in there):
            return ending
    if wanted is None:
        # Old tunes end on a final that their signature does not name (Dorian, Phrygian): the triad on it.
        scale = {(7 * (signature.fifths + place) + piece.shift) % 12 for place in range(-1, 6)}
        modal = len(there) == 1 and there[0][1] % 12 in scale and not piece.new_key
        return Ending("tonic", there[0][1] % 12, minor=True, hold=hold, last=final) if modal else None
    said = " and ".join(f"the {VOICES[voice]} on {spelled(signature, pitch - piece.shift)}" for voice, pitch in there)
    chord = {"tonic": "tonic", "half": "dominant"}[wanted]
    raise refuse(f"--ending {wanted}", expected=f"notes of the {chord} of {signature.key} at the end", got=said)


def spelled(signature: KeySignature, pitch: int) -> str:
    """The name of a pitch in a key."""
    letter, alteration, _ = signature.spell(pitch)
    return named_note(letter, alteration)
