/** What pointers and the keyboard do on the roll: draw, erase, drag, paint a region away, lock it; two fingers push it along. */
import { pitchName } from "./roll.js";
import { noteAt, VOICES } from "./state.js";

export const TOOLS = [["draw", "Draw", "draw"], ["move", "Move", "hand"], ["erase", "Erase", "erase"], ["away", "Paint away", "region"], ["lock", "Lock", "lock"]];

export function useTools(canvas, roll, state, view, say) {
  let held = null;
  const pressed = new Map(); // where each pointer was last: fingers are several

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return roll.at(event.clientX - box.left, event.clientY - box.top);
  };
  const snapped = (step) => Math.floor(step / view.grid) * view.grid;

  /** The voice that has a note here; the chosen voice first. */
  function touched(step, pitch) {
    const order = [view.voice ?? 0, 0, 1, 2, 3];
    for (const voice of order) {
      const note = noteAt(state.piece, voice, step);
      if (note && Math.abs(note.pitch - pitch) <= 0.5) return { voice, note };
    }
    return null;
  }

  function down(event) {
    if (event.button !== 0) return; // another button asks for a menu
    canvas.setPointerCapture(event.pointerId);
    pressed.set(event.pointerId, [event.clientX, event.clientY]);
    if (pressed.size > 1) return push();
    const { step, pitch } = place(event);
    const found = touched(step, pitch);
    state.begin();
    if (step < 0 || step >= state.piece.steps || (view.tool === "move" && !found)) return push();
    if (view.tool === "away" || view.tool === "lock") {
      const voice = found?.voice ?? view.voice ?? 0;
      held = { kind: view.tool, voice, from: step };
      view.region = { voice, start: step, stop: step + 1 };
    } else if (view.tool === "erase") {
      if (found) refused(state.remove(found.voice, found.note));
      held = { kind: "erase" };
    } else if (found) {
      held = { kind: "move", ...found, step, first: found.note };
      view.choose(found.voice);
    } else if (view.tool === "draw") {
      const start = snapped(step);
      const note = { start, length: view.grid, pitch };
      if (refused(state.put(view.voice ?? 0, note))) held = { kind: "stretch", voice: view.voice ?? 0, note };
    }
    roll.draw();
  }

  /** From now on the roll is pushed along; what the first of two fingers had begun is taken back. */
  function push() {
    state.takeBack();
    held = { kind: "push" };
    view.region = null;
    roll.draw();
  }

  function pushed(event) {
    const [x, y] = pressed.get(event.pointerId);
    canvas.parentElement.scrollLeft -= (event.clientX - x) / pressed.size;
    scrollBy(0, (y - event.clientY) / pressed.size);
    pressed.set(event.pointerId, [event.clientX, event.clientY]);
  }

  function move(event) {
    if (held?.kind === "push") return pressed.has(event.pointerId) && pushed(event);
    const { step, pitch } = place(event);
    if (!held) {
      canvas.style.cursor = view.tool === "erase" || view.tool === "away" || view.tool === "lock" ? "crosshair" : touched(step, pitch) ? "grab" : view.tool === "draw" ? "cell" : "default";
      return;
    }
    if (held.kind === "away" || held.kind === "lock") {
      const [from, to] = [Math.min(held.from, step), Math.max(held.from, step)];
      view.region = { voice: held.voice, start: Math.max(0, snapped(from)), stop: Math.min(state.piece.steps, snapped(to) + view.grid) };
    } else if (held.kind === "erase") {
      const found = touched(step, pitch);
      if (found) state.remove(found.voice, found.note);
    } else if (held.kind === "move") {
      const start = held.first.start + Math.round((step - held.step) / view.grid) * view.grid;
      if (start !== held.note.start || pitch !== held.note.pitch) held.note = state.anew(() => state.move(held.voice, held.first, start, pitch)) ?? held.note;
    } else if (held.kind === "stretch") {
      const length = Math.max(view.grid, snapped(step) + view.grid - held.note.start);
      if (length !== held.note.length && state.anew(() => state.put(held.voice, { ...held.note, length }))) held.note = { ...held.note, length };
    }
    roll.draw();
  }

  function up(event) {
    pressed.delete(event.pointerId);
    if (held?.kind === "push" && pressed.size) return; // the finger that is left goes on pushing
    if (held?.kind === "away" || held?.kind === "lock") mark(held.kind, view.region);
    state.settle();
    held = null;
    view.region = null;
    roll.draw();
  }

  /** The system has taken the pointer away: nothing was meant. */
  function cancel(event) {
    state.takeBack();
    held = null;
    up(event);
  }

  function mark(kind, { voice, start, stop }) {
    const lines = kind === "lock" ? state.now.locked : state.now.erased;
    const isAll = lines[voice].subarray(start, stop).every(Boolean);
    if (kind === "lock") state.lock(voice, start, stop, !isAll);
    else state.erase(voice, start, stop, !isAll);
  }

  function refused(done) {
    if (!done) say("That place is locked.");
    return done;
  }

  /** The keyboard: arrows move a cursor, Enter writes a note, Delete takes one away, P paints its bar away, L locks it. */
  function key(event) {
    const moves = { ArrowRight: [view.grid, 0], ArrowLeft: [-view.grid, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    view.cell ??= { step: 0, pitch: [69, 64, 57, 50][view.voice ?? 0] };
    const cell = view.cell;
    const voice = view.voice ?? 0;
    if (moves[event.key]) {
      cell.step = Math.max(0, Math.min(state.piece.steps - 1, cell.step + moves[event.key][0]));
      cell.pitch = Math.max(30, Math.min(86, cell.pitch + moves[event.key][1]));
    } else if (event.key === "Enter" || event.key === " ") refused(state.put(voice, { start: cell.step, length: view.grid, pitch: cell.pitch }));
    else if (event.key === "Delete" || event.key === "Backspace") {
      const note = noteAt(state.piece, voice, cell.step);
      if (note) refused(state.remove(voice, note));
    } else if (["p", "l"].includes(event.key.toLowerCase()) && !event.ctrlKey && !event.metaKey) {
      const { bar, pickup, steps } = state.piece;
      const first = Math.floor((cell.step - pickup) / bar) * bar + pickup; // below 0 in a pickup
      mark(event.key.toLowerCase() === "l" ? "lock" : "away", { voice, start: Math.max(0, first), stop: Math.min(steps, first + bar) });
    } else return;
    event.preventDefault();
    const note = noteAt(state.piece, voice, cell.step);
    say(`${VOICES[voice]}, bar ${Math.floor((cell.step - state.piece.pickup) / state.piece.bar) + 1}, ${pitchName(cell.pitch)}${note ? `; sounding ${pitchName(note.pitch)}` : ""}`);
    roll.draw();
    roll.bring(cell.step, cell.step + view.grid);
  }

  canvas.addEventListener("pointerdown", down);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", cancel);
  canvas.addEventListener("keydown", key);
  canvas.addEventListener("blur", () => ((view.cell = null), roll.draw()));
}
