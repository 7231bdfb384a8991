"""A page that plays pieces: a piano roll for each, a button, and a line that moves; nothing is fetched from anywhere.

The notes stand in the page as numbers. The browser makes the sound with its own oscillators, after the recipe of
``synth`` (the same harmonics and envelope, no room), and draws the roll as SVG, so a page of four pieces has some tens
of kilobytes. Given notes are filled, written ones are hollow, as in the pictures.
"""

import json
from collections.abc import Sequence
from fractions import Fraction
from html import escape

from anyfill.interface import page
from anyfill.music.piece import Piece
from anyfill.music.score import VOICES, Note, Score
from anyfill.music.synth import clock_of

COLOURS = ("#c2410c", "#b8860b", "#0f766e", "#3730a3")
"""Of soprano, alto, tenor and bass, as in the pictures."""
_STYLE = """
<style>
.roll { overflow-x: auto; border: 1px solid var(--line); border-radius: .5rem; margin: .6rem 0 1.6rem;
        background: #fff; }
.roll svg { display: block; }
.play { font: inherit; border: 1px solid var(--accent); color: var(--accent); background: none; border-radius: 2rem;
        padding: .35rem 1.3rem; cursor: pointer; min-width: 6.5rem; }
.play[aria-pressed="true"] { background: var(--accent); color: var(--page); }
.voices label { margin-right: 1.1rem; font-size: .92rem; white-space: nowrap; }
.voices i { display: inline-block; width: .8rem; height: .8rem; border-radius: .2rem; margin: 0 .35rem -.05rem .2rem; }
</style>
"""
_SCRIPT = """
<script>
"use strict";
let context = null, playing = null;
function stop() {
  if (!playing) return;
  for (const node of playing.nodes) { try { node.stop(); } catch (error) { /* it has ended by itself */ } }
  cancelAnimationFrame(playing.frame);
  playing.line.setAttribute("x1", -9); playing.line.setAttribute("x2", -9);
  playing.button.textContent = "Play"; playing.button.setAttribute("aria-pressed", "false");
  playing = null;
}
function tone(out, when, length, pitch, pan) {
  const volume = context.createGain(), place = context.createStereoPanner(), wave = context.createOscillator();
  const size = 11, real = new Float32Array(size), imag = new Float32Array(size);
  for (let k = 1; k < size; k++) imag[k] = Math.pow(k, -1.6);
  wave.setPeriodicWave(context.createPeriodicWave(real, imag));
  wave.frequency.value = 440 * Math.pow(2, (pitch - 69) / 12);
  place.pan.value = pan;
  volume.gain.setValueAtTime(0, when);
  volume.gain.linearRampToValueAtTime(0.16, when + 0.02);
  volume.gain.setTargetAtTime(0.07, when + 0.02, 0.9);
  volume.gain.setTargetAtTime(0, when + length, 0.03);
  wave.connect(volume).connect(place).connect(out);
  wave.start(when); wave.stop(when + length + 0.25);
  return wave;
}
function play(button, piece, section) {
  const mine = playing && playing.button === button;
  stop();
  if (mine) return;
  context = context || new (window.AudioContext || window.webkitAudioContext)();
  context.resume();
  const heard = [...section.querySelectorAll("input")].map(box => box.checked);
  const out = context.createDynamicsCompressor(); out.connect(context.destination);
  const begin = context.currentTime + 0.1, nodes = [];
  piece.voices.forEach((voice, number) => {
    const pan = piece.voices.length > 1 ? -0.5 + number / (piece.voices.length - 1) : 0;
    for (const [start, length, pitch] of heard[number] ? voice : [])
      nodes.push(tone(out, begin + start, length, pitch, pan));
  });
  const line = section.querySelector("line.now"), box = section.querySelector(".roll");
  button.textContent = "Stop"; button.setAttribute("aria-pressed", "true");
  playing = { nodes, button, line, frame: 0 };
  const step = () => {
    const now = context.currentTime - begin;
    if (now > piece.seconds + 0.4) { stop(); return; }
    let place = 0;
    while (place + 1 < piece.times.length && piece.times[place + 1][0] <= now) place++;
    const [time, at] = piece.times[place], next = piece.times[place + 1] || [piece.seconds + 1, at + 1];
    const x = piece.scale * (at + Math.max(0, Math.min(1, (now - time) / (next[0] - time))) * (next[1] - at));
    line.setAttribute("x1", x); line.setAttribute("x2", x);
    if (x > box.scrollLeft + box.clientWidth * 0.8) box.scrollLeft = x - box.clientWidth * 0.2;
    playing.frame = requestAnimationFrame(step);
  };
  step();
}
const pieces = JSON.parse(document.getElementById("pieces").textContent);
document.querySelectorAll("section.piece").forEach((section, number) => {
  const button = section.querySelector("button");
  button.addEventListener("click", () => play(button, pieces[number], section));
});
</script>
"""
_SCALE, _ROW = 26.0, 7.0
"""Pixels of a quarter, and of a semitone."""


def page_of(pieces: Sequence[Piece], title: str = "") -> str:
    """A whole page (HTML) that shows and plays these pieces."""
    scores = [piece.score for piece in pieces]
    title = title or next((score.title for score in scores if score.title), "") or "Four-part music"
    body = [_STYLE, page.heading(title, 1)]
    lead = "Filled notes were given, hollow ones are new." if any(p.written is not None for p in pieces) else ""
    body.append(page.paragraph(lead or "Written by a model of chorales.", "lead"))
    for number, (piece, score) in enumerate(zip(pieces, scores), 1):
        body.append(_section(piece, score, number, len(pieces)))
    data = json.dumps([_data(score) for score in scores], separators=(",", ":")).replace("<", "\\u003c")
    body += [f'<script type="application/json" id="pieces">{data}</script>', _SCRIPT]
    body.append(page.footer("Made by anyfill. The sound is made by your browser; nothing is loaded from elsewhere."))
    return page.page(title, body)


def _section(piece: Piece, score: Score, number: int, count: int) -> str:
    names = [*score.names, *(f"voice {n + 1}" for n in range(len(score.names), len(score.voices)))]
    boxes = "".join(
        f'<label><input type="checkbox" checked><i style="background:{COLOURS[n % 4]}"></i>{escape(name)}</label>'
        for n, name in enumerate(names[: len(score.voices)])
    )
    title = piece.title or piece.chorale.title or f"Piece {number}"
    about = ", ".join([str(piece.key or ""), f"{len(piece.chorale.bars)} bars", f"{score.tempo:g} quarters a minute"])
    head = page.heading(f"{number}. {title}" if count > 1 else title)
    return (
        f'<section class="piece">{head}<p class="faint">{escape(about)}</p>'
        f'<p><button class="play" aria-pressed="false">Play</button></p><p class="voices">{boxes}</p>'
        f'<div class="roll">{_roll(piece, score)}</div></section>'
    )


def _data(score: Score) -> dict[str, object]:
    """What the script reads: notes in seconds, and where times are on the roll."""
    clock = clock_of(score)
    voices = [
        [
            [round(clock(n.start), 4), round(clock(n.end) - clock(n.start), 4), n.pitch]
            for n in voice
            if n.pitch is not None
        ]
        for voice in score.voices
    ]
    quarters = [*range(int(score.length) + 1)]
    times = [[round(clock(Fraction(q)), 4), q] for q in quarters]
    return {"voices": voices, "seconds": round(clock(score.length), 4), "times": times, "scale": _SCALE}


def _roll(piece: Piece, score: Score) -> str:
    """The piano roll as SVG."""
    pitches = [note.pitch for note in score.sounding() if note.pitch is not None] or [60]
    low, high = min(pitches) - 2, max(pitches) + 2
    width, height = float(score.length) * _SCALE, (high - low + 1) * _ROW + 16
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'aria-label="piano roll">'
    ]
    lines += [
        f'<rect x="0" y="{(high - pitch) * _ROW:g}" width="100%" height="{_ROW:g}" fill="#f5f3ef"/>'
        for pitch in range(low, high + 1)
        if pitch % 12 in (1, 3, 6, 8, 10)
    ]
    starts = [start for start, _ in score.measures()]
    first = 0 if len(starts) > 1 and score.pickup else 1
    for number, start in enumerate(starts, first):
        x = float(start) * _SCALE
        lines.append(f'<line x1="{x:g}" x2="{x:g}" y1="0" y2="{height:g}" stroke="#b9b6ae" stroke-width=".8"/>')
        lines.append(f'<text x="{x + 2:g}" y="{height - 3:g}" font-size="10" fill="#6d7178">{number}</text>')
    for voice, notes in enumerate(score.voices):
        given = (
            {id(note) for note in piece.kept(voice)}
            if piece.written is not None and voice < len(VOICES)
            else set[int]()
        )
        fresh = piece.written is None
        lines += [_bar(note, voice, high, fresh or id(note) in given) for note in notes if note.pitch is not None]
    lines.append(
        f'<line class="now" x1="-9" x2="-9" y1="0" y2="{height:g}" stroke="#c2410c" stroke-width="1.5"/></svg>'
    )
    return "".join(lines)


def _bar(note: Note, voice: int, high: int, filled: bool) -> str:
    colour = COLOURS[voice % 4]
    x, y = float(note.start) * _SCALE + 1, (high - (note.pitch or 0)) * _ROW + 0.6
    thick = _ROW - 1.2 - 0.8 * voice  # lower voices are thinner, so that a unison shows both
    y += 0.4 * voice
    size = f'width="{max(float(note.length) * _SCALE - 2, 1):.2f}" height="{max(thick, 1.5):.1f}" rx="1.5"'
    fill = colour if filled else "#fff"
    return f'<rect x="{x:.2f}" y="{y:.2f}" {size} fill="{fill}" stroke="{colour}"/>'
