"""How likely a piece is, note by note: log p in the order of time, soprano first within a step.

    p(x) = prod over cells of p(cell | all cells before it),   in windows where the piece is longer than one

One pass for each window (``anyfill.music.windows``). The sum is exact: the log-probability that this piece is drawn by
the model's own law (``--nucleus 1 --parallels``, temperature 1). The commands do not draw so by default: they leave out
unlikely pitches and parallels, under which some pieces are impossible and the others at least as likely as here.

A note's surprise is -log p summed over its cells, in nats: how unexpected it is that the voice has this pitch in these
steps, given everything before. A model without onsets finds a note struck again as surprising as one held on.
"""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anyfill.evaluation import terms
from anyfill.model import Model
from anyfill.music.chorale import REST, Chorale
from anyfill.music.keys import KeySignature
from anyfill.music.piece import Piece
from anyfill.music.request import Request
from anyfill.music.score import VOICES
from anyfill.music.windows import has_onsets
from anyfill.questions.question import chain_rank

_SIGNS = {-2: "bb", -1: "b", 0: "", 1: "#", 2: "##"}


@dataclass(frozen=True, slots=True)
class NoteSurprise:
    """A note and how unexpected it is.

    Attributes:
        voice: its name.
        bar: its number, 0 = the pickup.
        beat: in quarters, from 1.
        note: its name, as "F#4"; "rest" for a silence.
        step: where it begins, in the file: the model itself cannot tell a repeated note from one that is held.
        steps: how long it is.
        nats: -log p of its pitch in its steps.
    """

    voice: str
    bar: int
    beat: float
    note: str
    step: int
    steps: int
    nats: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scored:
    """A piece and its log-probability.

    Attributes:
        chorale: the piece, as the model saw it.
        log_prob: float64 (4, T), nats of each cell; 0 in voices that the file does not have.
        present: bool (4, T), False in those.
        kind: "exact", or "estimate" for a model that can do no better.
        windows: how many passes were made.
        shift: semitones by which the model saw it higher than it is.
    """

    chorale: Chorale
    log_prob: NDArray[np.float64]
    present: NDArray[np.bool_]
    kind: str
    windows: int
    shift: int = 0

    @property
    def total(self) -> float:
        """log p of the piece, in nats."""
        return float(self.log_prob.sum())

    @property
    def cells(self) -> int:
        """How many cells were scored."""
        return int(self.present.sum())

    def notes(self) -> list[NoteSurprise]:
        """Every note and rest of the voices that are there, in order of time."""
        chorale, found = self.chorale, list[NoteSurprise]()
        key = KeySignature.of(chorale.score().transposed(-self.shift))
        for voice in np.flatnonzero(self.present.any(1)).tolist():
            for start, end, pitch in chorale.notes(voice):
                name = "rest" if pitch == REST else _name(key, pitch - self.shift)
                nats = -float(self.log_prob[voice, start:end].sum())
                bar, beat = chorale.bar_and_beat(start)
                found.append(NoteSurprise(VOICES[voice], bar, beat, name, start, end - start, nats))
        return sorted(found, key=lambda note: note.step)

    def summary(self, notes: int = 10) -> dict[str, Any]:
        """The figures, with so many of the most surprising notes."""
        found = self.notes()
        sounding = sum(note.note != "rest" for note in found)
        bars: defaultdict[str, float] = defaultdict(float)
        for step, nats in enumerate(-self.log_prob.sum(0)):
            bars[str(self.chorale.bar_and_beat(step)[0])] += float(nats)
        there = [(name, cells) for name, cells, own in zip(VOICES, self.log_prob, self.present) if own.any()]
        return {
            "kind": self.kind,
            "windows": self.windows,
            "log_likelihood": self.total,
            "cells": self.cells,
            "notes": sounding,
            "log_likelihood_per_cell": self.total / self.cells,
            "log_likelihood_per_note": self.total / max(sounding, 1),
            "surprise_of_voice": {name: -float(cells.sum()) for name, cells in there},
            "surprise_of_bar": dict(bars),
            "most_surprising": [
                {name: getattr(n, name) for name in ("bar", "beat", "voice", "note", "steps", "nats")}
                for n in sorted(found, key=lambda note: -note.nats)[:notes]
            ],
        }

    def describe(self, notes: int = 10) -> str:
        """Its log-likelihood and so many of the most surprising notes, in words."""
        found = self.summary(notes)
        how = "one pass" if self.windows == 1 else f"{self.windows} windows"
        lines = [
            f"  log-likelihood {self.total:,.1f} nats ({self.kind}, {how})",
            f"  per cell {found['log_likelihood_per_cell']:.3f}, per note {found['log_likelihood_per_note']:.3f} "
            f"({found['cells']:,} cells, {found['notes']:,} notes)",
        ]
        if found["most_surprising"]:
            lines.append("  most surprising notes:   bar  beat   voice     note   nats")
            lines += [
                f"  {'':<23}{n['bar']:>5}  {n['beat']:<5g}  {n['voice']:<8}  {n['note']:<5}{n['nats']:>6.1f}"
                for n in found["most_surprising"]
            ]
        return "\n".join(lines)

    def save(self, path: str | Path, *, title: str = "") -> None:
        """Write a picture (.png): every note coloured by its surprise."""
        from anyfill.music.piano_roll import write_png

        write_png(self._repr_png_(title), path)

    def _repr_png_(self, title: str = "") -> bytes:
        from anyfill.music.piano_roll import surprise_roll

        return surprise_roll(self, title=title)

    def __repr__(self) -> str:
        return f"<Scored: {self.chorale.title or 'a piece'}\n{self.describe(3)}>"


def score_piece(model: Model, piece: Piece) -> Scored:
    """log p of every cell of the voices that are there."""
    request = Request(piece, np.zeros_like(piece.present), piece.present)
    x, context = request.codes(onsets=has_onsets(model)).unsqueeze(0), request.context(model)
    value, windows = torch.zeros(x.shape[1], dtype=torch.float64), 0
    for seen, cells, question in request.passes(model):
        told = None if context is None else context[:, cells]
        value[cells] += terms(seen, x[:, cells], chain_rank(seen.order, question), context=told)[0]
        windows += 1
    grid = value.reshape(-1, len(VOICES)).T.numpy()[:, request.before :]
    kind = "exact" if model.is_exact else "estimate"
    return Scored(piece.chorale, grid, piece.present, kind, windows, piece.shift)


def _name(key: KeySignature, pitch: int) -> str:
    letter, alteration, octave = key.spell(pitch)
    return f"{letter}{_SIGNS.get(alteration, '?')}{octave}"
