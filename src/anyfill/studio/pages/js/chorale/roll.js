/** The piano roll: four coloured voices on a grid of sixteenths, drawn on a canvas. */
import { VOICES } from "./state.js";

export const GUTTER = 46;
const TOP = 24;
const MIN_STEP = 11;
const NAMES = ["C", "C♯", "D", "E♭", "E", "F", "F♯", "G", "A♭", "A", "B♭", "B"];
const BLACK = new Set([1, 3, 6, 8, 10]);

export const pitchName = (pitch) => `${NAMES[pitch % 12]}${Math.floor(pitch / 12) - 1}`;

export function makeRoll(canvas, state, view) {
  const pen = canvas.getContext("2d");
  let size = { step: MIN_STEP, row: 11, low: 40, high: 80 };

  function measure() {
    const pitches = state.piece.voices.flat().concat(view.cell ?? []).map((one) => one.pitch);
    const low = Math.min(43, ...pitches) - 2;
    const high = Math.max(76, ...pitches) + 2;
    const room = canvas.parentElement.clientWidth - GUTTER - 2;
    const step = Math.max(MIN_STEP, room / state.piece.steps);
    size = { step, row: 11, low, high };
    const wide = GUTTER + step * state.piece.steps;
    const tall = TOP + (high - low + 1) * size.row + 6;
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(wide * ratio) || canvas.height !== Math.round(tall * ratio)) {
      canvas.width = Math.round(wide * ratio);
      canvas.height = Math.round(tall * ratio);
      canvas.style.width = `${wide}px`;
      canvas.style.height = `${tall}px`;
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    return { wide, tall };
  }

  const x = (step) => GUTTER + step * size.step;
  const y = (pitch) => TOP + (size.high - pitch) * size.row;

  function draw() {
    const { wide, tall } = measure();
    const css = getComputedStyle(document.documentElement);
    const colour = (name) => css.getPropertyValue(`--${name}`).trim();
    pen.fillStyle = colour("card");
    pen.fillRect(0, 0, wide, tall);
    lanes(colour, wide);
    lines(colour, tall);
    marks(colour);
    notes(colour);
    cursor(colour, tall);
  }

  function lanes(colour, wide) {
    pen.font = "10px system-ui, sans-serif";
    pen.textBaseline = "middle";
    for (let pitch = size.low; pitch <= size.high; pitch++) {
      if (BLACK.has(pitch % 12)) {
        pen.fillStyle = colour("sunken");
        pen.fillRect(GUTTER, y(pitch), wide, size.row);
      }
      if (pitch % 12 === 0 || pitch % 12 === 7) {
        pen.fillStyle = colour("faint");
        pen.textAlign = "right";
        pen.fillText(pitchName(pitch), GUTTER - 8, y(pitch) + size.row / 2);
      }
    }
  }

  function lines(colour, tall) {
    const { steps, bar, pickup, unit } = state.piece;
    const beat = unit >= 8 && bar > 48 / unit && (bar * unit) % 48 === 0 ? 48 / unit : 4; // three units of 6/8, 9/8, 12/8
    for (let step = 0; step <= steps; step++) {
      const place = (step - pickup + bar) % bar;
      const isBar = place === 0;
      if (step && !isBar && place % beat) continue;
      pen.fillStyle = colour(isBar ? "line-strong" : "line");
      pen.fillRect(x(step) - 0.5, isBar ? 0 : TOP, isBar ? 1.5 : 1, tall);
      if (isBar && step < steps) {
        pen.fillStyle = colour("soft");
        pen.textAlign = "left";
        pen.fillText(String((step - pickup) / bar + 1), x(step) + 5, 11);
      }
    }
  }

  /** Painted-away cells as hatched bands along the voice, locked ones with a line below the note. */
  function marks(colour) {
    const { erased, locked } = state.now;
    erased.forEach((line, voice) => bands(line, (start, stop) => {
      const [low, high] = span(voice, start, stop);
      pen.save();
      pen.globalAlpha = 0.16;
      pen.fillStyle = colour(VOICES[voice]);
      pen.fillRect(x(start), y(high) - 3, (stop - start) * size.step, (high - low + 1) * size.row + 6);
      pen.globalAlpha = 0.9;
      pen.strokeStyle = colour(VOICES[voice]);
      pen.setLineDash([5, 4]);
      pen.lineWidth = 1.3;
      pen.strokeRect(x(start) + 0.5, y(high) - 2.5, (stop - start) * size.step - 1, (high - low + 1) * size.row + 5);
      pen.restore();
    }));
    locked.forEach((line, voice) => bands(line, (start, stop) => {
      pen.fillStyle = colour(VOICES[voice]);
      pen.fillRect(x(start), 18 + voice * 1.5, (stop - start) * size.step, 1.5);
    }));
  }

  function span(voice, start, stop) {
    const inside = state.piece.voices[voice].filter((note) => note.start < stop && note.start + note.length > start).map((note) => note.pitch);
    const centre = [70, 64, 57, 48][voice];
    return inside.length ? [Math.min(...inside) - 1, Math.max(...inside) + 1] : [centre - 3, centre + 3];
  }

  function notes(colour) {
    const { piece, erased, locked } = state.now;
    piece.voices.forEach((line, voice) => {
      for (const note of line) {
        const away = erased[voice][note.start] && erased[voice][note.start + note.length - 1];
        const [left, top, wide, tall] = [x(note.start) + 0.5, y(note.pitch) + 0.5, note.length * size.step - 1.5, size.row - 1];
        pen.globalAlpha = away ? 0.28 : view.voice === null || view.voice === voice ? 1 : 0.82;
        pen.fillStyle = view.surprise ? shade(colour, view.surprise.get(`${voice} ${note.start}`)) : colour(VOICES[voice]);
        pen.beginPath();
        pen.roundRect(left, top, wide, tall, 3);
        pen.fill();
        if (view.surprise) {
          pen.strokeStyle = colour(VOICES[voice]);
          pen.lineWidth = 1.5;
          pen.stroke();
        }
        if (locked[voice][note.start]) {
          pen.fillStyle = colour("card");
          pen.fillRect(left + 3, top + tall / 2 - 1, Math.max(2, wide - 6), 2);
        }
        pen.globalAlpha = 1;
      }
    });
  }

  function cursor(colour, tall) {
    if (view.region) {
      const { voice, start, stop } = view.region;
      pen.save();
      pen.globalAlpha = 0.2;
      pen.fillStyle = colour(VOICES[voice]);
      pen.fillRect(x(start), TOP, (stop - start) * size.step, tall);
      pen.restore();
    }
    if (view.cell) {
      pen.strokeStyle = colour("focus");
      pen.lineWidth = 2;
      pen.strokeRect(x(view.cell.step), y(view.cell.pitch), size.step * view.grid, size.row);
    }
    if (view.time !== null) {
      pen.fillStyle = colour("accent");
      pen.fillRect(x(view.time) - 1, 0, 2, tall);
    }
  }

  return {
    draw,
    x,
    /** Bring some steps into view where the roll is wider than its frame. */
    bring(start, stop) {
      const frame = canvas.parentElement;
      const [left, right] = [x(start) - GUTTER, x(stop)];
      if (left < frame.scrollLeft) frame.scrollLeft = left;
      else if (right > frame.scrollLeft + frame.clientWidth) frame.scrollLeft = right - frame.clientWidth;
    },
    /** Which step and pitch a point of the canvas is. */
    at(px, py) {
      return { step: Math.floor((px - GUTTER) / size.step), pitch: size.high - Math.floor((py - TOP) / size.row) };
    },
  };
}

function bands(line, each) {
  for (let step = 0; step < line.length; step++) {
    if (!line[step]) continue;
    const start = step;
    while (step < line.length && line[step]) step++;
    each(start, step);
  }
}

/** A colour for so many nats. */
function shade(colour, nats) {
  if (nats === undefined) return colour("sunken");
  return colour(nats < 0.7 ? "sunken" : nats < 2 ? "s1" : nats < 4 ? "s2" : nats < 7 ? "s3" : "s4");
}
