/** A chorale that is being worked on: notes of four voices, what is painted away, what is locked; with undo and redo. */

export const VOICES = ["soprano", "alto", "tenor", "bass"];
const MAX_HISTORY = 200;

const TUNE = [64, 64, 65, 67, 67, 65, 64, 62, 60, 60, 62, 64];

/** The example: the beginning of the Ode to Joy, alone, to be harmonised. */
export function example() {
  const soprano = TUNE.map((pitch, n) => ({ start: 4 * n, length: 4, pitch: pitch + 7 }));
  soprano.push({ start: 48, length: 6, pitch: 71 }, { start: 54, length: 2, pitch: 69 }, { start: 56, length: 8, pitch: 69 });
  return { voices: [soprano, [], [], []], steps: 64, bar: 16, pickup: 0, tempo: 88, title: "Ode to Joy" };
}

export function makeState(first, marks = { erased: [], locked: [] }) {
  const listeners = new Set();
  let now = { piece: first, erased: covered(first.steps, marks.erased), locked: covered(first.steps, marks.locked) };
  let past = [];
  let future = [];
  let gesture = null; // from pressing to letting go: one step for undo

  function tell() {
    for (const listen of listeners) listen(now);
  }

  function set(next, remember = true) {
    if (remember && !gesture?.isKept) {
      past.push(now);
      if (past.length > MAX_HISTORY) past.shift();
      future = [];
      if (gesture) gesture.isKept = true;
    }
    now = next;
    tell();
  }

  const api = {
    get now() {
      return now;
    },
    get piece() {
      return now.piece;
    },
    listen: (listener) => (listeners.add(listener), () => listeners.delete(listener)),
    canUndo: () => past.length > 0,
    canRedo: () => future.length > 0,
    /** From here to `settle` all that is done is one step for undo. */
    begin: () => (gesture = { before: now, future, isKept: false }),
    settle: () => (gesture = null),
    /** Do something in place of all that was done since `begin`: what a note is dragged across is not eaten. */
    anew(act) {
      const last = now;
      if (gesture) now = gesture.before;
      const done = act();
      if (!done) now = last;
      return done;
    },
    /** As it was at `begin`, and nothing to undo or redo that was not there then. */
    takeBack() {
      const { before, future: then, isKept } = gesture ?? {};
      gesture = null;
      if (!isKept) return;
      past.pop();
      future = then;
      set(before, false);
    },
    undo() {
      gesture = null;
      if (!past.length) return;
      future.push(now);
      set(past.pop(), false);
    },
    redo() {
      gesture = null;
      if (!future.length) return;
      past.push(now);
      set(future.pop(), false);
    },
    /** Another piece in place of this one; what is locked stays locked where it still is. */
    replace(piece, { keepMarks = false } = {}) {
      const locked = keepMarks ? fitted(now.locked, piece.steps) : empty(piece.steps);
      set({ piece: clean(piece), erased: empty(piece.steps), locked });
    },
    about: (some) => set({ ...now, piece: { ...now.piece, ...some } }),
    /** Put a note into a voice; what it covers makes room. False where something is locked. */
    put(voice, note) {
      const last = Math.min(note.start + note.length, now.piece.steps);
      if (note.start >= last || anyIn(now.locked[voice], note.start, last)) return false;
      const line = cut(now.piece.voices[voice], note.start, last);
      line.push({ ...note, length: last - note.start });
      set({ ...now, piece: withVoice(voice, line), erased: marked(now.erased, voice, note.start, last, false) });
      return true;
    },
    /** Take a note away. */
    remove(voice, note) {
      if (anyIn(now.locked[voice], note.start, note.start + note.length)) return false;
      set({ ...now, piece: withVoice(voice, now.piece.voices[voice].filter((one) => one !== note)) });
      return true;
    },
    /** Move a note to another place or pitch. */
    move(voice, note, start, pitch) {
      const to = Math.max(0, Math.min(now.piece.steps - note.length, start));
      const locks = now.locked[voice];
      if (anyIn(locks, note.start, note.start + note.length) || anyIn(locks, to, to + note.length)) return null;
      const line = cut(now.piece.voices[voice].filter((one) => one !== note), to, to + note.length);
      const moved = { ...note, start: to, pitch: Math.max(30, Math.min(90, pitch)) };
      line.push(moved);
      set({ ...now, piece: withVoice(voice, line) });
      return moved;
    },
    /** Mark cells to be rewritten (or not); locked ones cannot be. */
    erase(voice, start, stop, value = true) {
      const erased = marked(now.erased, voice, start, stop, value);
      for (let step = start; step < stop; step++) if (now.locked[voice][step]) erased[voice][step] = 0;
      set({ ...now, erased });
    },
    lock(voice, start, stop, value = true) {
      set({ ...now, locked: marked(now.locked, voice, start, stop, value), erased: value ? marked(now.erased, voice, start, stop, false) : now.erased });
    },
    clearMarks: () => set({ ...now, erased: empty(now.piece.steps) }),
    /** What is painted away, as regions. */
    regions: () => runs(now.erased),
    /** What is painted away and what is locked, as regions. */
    marks: () => ({ erased: runs(now.erased), locked: runs(now.locked) }),
    /** What is not locked, as regions. */
    unlocked: () => runs(now.locked.map((line) => line.map((cell) => (cell ? 0 : 1)))),
  };
  const withVoice = (voice, line) => {
    const voices = now.piece.voices.map((own, n) => (n === voice ? line.sort((a, b) => a.start - b.start) : own));
    return { ...now.piece, voices, key: voices.some((own) => own.length) ? now.piece.key : "" }; // nothing is left of its key
  };
  return api;
}

/** The note of a voice at a step, or undefined. */
export const noteAt = (piece, voice, step) => piece.voices[voice].find((one) => one.start <= step && step < one.start + one.length);

const empty = (steps) => VOICES.map(() => new Uint8Array(steps));
const covered = (steps, regions) => regions.reduce((lines, { voice, start, stop }) => marked(lines, voice, start, stop, true), empty(steps));
const anyIn = (line, start, stop) => line.subarray(Math.max(0, start), stop).some(Boolean);
const clean = (piece) => ({ ...piece, voices: piece.voices.map((line) => line.map(({ start, length, pitch }) => ({ start, length, pitch }))) });

function fitted(lines, steps) {
  return lines.map((line) => {
    const next = new Uint8Array(steps);
    next.set(line.subarray(0, steps));
    return next;
  });
}

function marked(lines, voice, start, stop, value) {
  return lines.map((line, n) => {
    if (n !== voice) return line;
    const next = line.slice();
    next.fill(value ? 1 : 0, Math.max(0, start), stop);
    return next;
  });
}

/** The notes of a line without what lies between two steps. */
function cut(line, start, stop) {
  return line.flatMap((note) => {
    const end = note.start + note.length;
    if (end <= start || note.start >= stop) return [note];
    const parts = [];
    if (note.start < start) parts.push({ ...note, length: start - note.start });
    if (end > stop) parts.push({ ...note, start: stop, length: end - stop });
    return parts;
  });
}

function runs(lines) {
  const found = [];
  lines.forEach((line, voice) => {
    for (let step = 0; step < line.length; step++) {
      if (!line[step]) continue;
      const start = step;
      while (step < line.length && line[step]) step++;
      found.push({ voice, start, stop: step });
    }
  });
  return found;
}
