"""The tune of a file: which part it is, and the piece in which only it is known.

``--tune`` says it: "top" is the highest note that sounds at any time; "track 2", "channel 1", "part 3" are what the
file counts so (from 1), and any other words the name of a part, or a piece of it. A part with several notes at once
gives its highest line. Without ``--tune`` the only part is the tune; of up to four lines the one that is the
voice; of more parts the only one that is called a melody. Whatever else is unclear is asked back, with a list of what
is in the file.

The other parts are not given to the model. They are left out of the result, or kept beside the harmony as they are.
"""

import re
from dataclasses import replace

from anyfill.checks import refuse
from anyfill.music.piece import Piece
from anyfill.music.quantising import quantise, remarked, sounding_lines
from anyfill.music.score import VOICES, Note
from anyfill.music.transposition import in_words, require_near, shift_into
from anyfill.music.voices import ParsedScore, Part, most_at_once, seats, times, top_line

_MELODY = re.compile(r"melod|vocal|voice|lead|sopran|cantus|canto|gesang|stimme|song|tune|chant|discant", re.IGNORECASE)
_PLACE = re.compile(r"(track|channel|part)\s*#?\s*(\d+)", re.IGNORECASE)
_SHOWN = 16


def tune_of(parsed: ParsedScore, voice: int = 0, *, tune: str | None = None, source: str = "score") -> Piece:
    """The tune in what was read; the other voices are absent.

    Args:
        parsed: what was read.
        voice: which of the four voices it is.
        tune: which of the parts it is; None = there is only one, or the part of the voice.
        source: what an error calls the file.
    """
    score = parsed.score
    line, remarks = _line(parsed, voice, tune, source)
    shift = shift_into([note.pitch for note in line if note.pitch is not None], voice, fold=True)
    require_near(shift, f"a tune nearer to the range of the {VOICES[voice]}", source)
    alone = replace(score, voices=(line,), names=(VOICES[voice],))
    piece = quantise(ParsedScore(alone, tuple(remarks)), transpose=shift, source=source, strict=False)
    remarks = [one for one in piece.remarks if not one.endswith("absent")]
    if shift:
        remarks.append(
            f"the tune does not lie in the range of the {VOICES[voice]}: put {in_words(shift)} for the model, and all "
            f"voices {in_words(-shift)} afterwards"
        )
    return remarked(replace(piece, source=score, alone=True), remarks)


def _line(parsed: ParsedScore, voice: int, tune: str | None, source: str) -> tuple[tuple[Note, ...], list[str]]:
    """The notes of the tune, and what is to be said."""
    remarks, lines = list(parsed.remarks), sounding_lines(parsed.score)
    if not lines:
        raise refuse(source, expected="a tune", got="no notes")
    parts = parsed.parts or tuple(Part(name, notes, f"part {n}") for n, (name, notes) in enumerate(lines, 1))
    if tune is not None:
        return _chosen(parts, tune, source, remarks)
    if len(lines) == 1:
        return lines[0][1], remarks
    said = (
        f"the {VOICES[voice]} of the file is the tune and its other voices are not used (anyfill music fill keeps them)"
    )
    called = [part for part in parts if _MELODY.search(part.name)]
    if len(lines) <= len(VOICES) and len(parts) > 1:
        chosen = seats([notes for _, notes in lines], [name for name, _ in lines])
        if voice not in chosen:
            there = " and ".join(VOICES[seat] for seat in chosen)
            raise refuse(source, expected=f"a tune alone, or a part for the {VOICES[voice]}", got=there)
        return lines[chosen.index(voice)][1], [*remarks, said]
    if len(parts) == 1 and len(lines) == len(VOICES):
        return lines[voice][1], [*remarks, said]
    if len(called) == 1:
        line, reduced = _single(called[0])
        return line, [*remarks, *reduced, f"{describe(called[0])} is the tune"]
    raise refuse(source, expected='--tune, which says what the tune is (as in --tune "top")', got=listed(parts))


def _chosen(parts: tuple[Part, ...], tune: str, source: str, remarks: list[str]) -> tuple[tuple[Note, ...], list[str]]:
    wanted = tune.strip()
    if wanted.casefold() == "top":
        line = top_line([note for part in parts for note in part.notes])
        return line, [*remarks, "the highest note at every time is the tune"]
    place = _PLACE.fullmatch(wanted)
    if place is not None:
        word = re.compile(rf"\b{place[1].lower()} {int(place[2])}\b")
        found = [part for part in parts if word.search(part.label)]
    else:
        exact = [part for part in parts if part.name.casefold() == wanted.casefold()]
        found = exact or [part for part in parts if wanted and wanted.casefold() in part.name.casefold()]
    if len(found) != 1:
        got = f"{times(len(found), 'part', 'parts')} that {wanted!r} may mean" if found else f"no {wanted!r}"
        raise refuse(f'--tune "{wanted}"', expected=f"top, or one part of {source}", got=f"{got} in {listed(parts)}")
    line, reduced = _single(found[0])
    return line, [*remarks, *reduced]


def _single(part: Part) -> tuple[tuple[Note, ...], list[str]]:
    """A part as one line; its highest notes, and what is said of that, where several sound at once."""
    count, _ = most_at_once(part.notes)
    if count < 2:
        return tuple(sorted(part.notes, key=lambda note: note.start)), []
    return top_line(part.notes), [f"{describe(part)} has up to {count} notes at once: its highest line is the tune"]


def describe(part: Part) -> str:
    """A part in words: its place and its name."""
    return f"{part.label} {part.name!r}" if part.name and part.label else part.label or repr(part.name)


def listed(parts: tuple[Part, ...]) -> str:
    """What is in a file, in one sentence."""
    shown = [
        f"{describe(part)} ({sum(note.pitch is not None for note in part.notes):,} notes, up to "
        f"{most_at_once(part.notes)[0]} at once)"
        for part in parts[:_SHOWN]
    ]
    more = [f"and {len(parts) - _SHOWN} more"] if len(parts) > _SHOWN else []
    return f"{times(len(parts), 'part', 'parts')}: " + "; ".join([*shown, *more])
