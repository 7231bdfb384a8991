/** Chorale: draw four voices, paint away what shall be written anew, listen to alternatives, take one. */
import { post } from "../api.js";
import { calm, h, show } from "../dom.js";
import { onDrop } from "../drop.js";
import { open as openHow } from "../how.js";
import { icon } from "../icons.js";
import { begin, forget, resume } from "../job.js";
import { modelChoice } from "../models.js";
import { shown } from "../progress.js";
import { toast } from "../toast.js";
import { makeAlternatives } from "./alternatives.js";
import { drawSettings, toolControls } from "./controls.js";
import { fileButtons } from "./files.js";
import { makeNotation } from "./notation.js";
import { makeRoll } from "./roll.js";
import { makePlayer } from "./sound.js";
import { example, makeState, VOICES } from "./state.js";
import { useTools } from "./tools.js";

const KEY = "chorale page";
const MARKS = "chorale marks";

export function open(place) {
  const kept = (key) => JSON.parse(sessionStorage.getItem(key) ?? "null") ?? undefined;
  const state = makeState(kept(KEY) ?? example(), kept(MARKS));
  const view = { tool: "draw", voice: 0, grid: 4, surprise: null, region: null, cell: null, time: null, choose: () => {} };
  const canvas = h("canvas", { tabindex: 0, role: "application", "aria-label": "Piano roll. Arrows move, Enter writes a note, Delete takes it away, P paints the bar away, L locks it." });
  const roll = makeRoll(canvas, state, view);
  const player = makePlayer((time) => ((view.time = time), playButton(), roll.draw()));
  const model = modelChoice("music");
  const settings = drawSettings();
  const status = h("div", { class: "draw-status" });
  const spoken = h("p", { class: "faint spoken", role: "status" }, `Draw a tune, or press Harmonise.${matchMedia("(pointer: coarse)").matches ? " Two fingers push the roll along." : ""}`);
  const notation = makeNotation(state);
  const alternatives = makeAlternatives(player, (piece) => {
    state.replace(piece, { keepMarks: true });
    spoken.textContent = `Alternative ${piece.number} is taken; undo takes it back.`;
  });
  const files = fileButtons(state, (piece) => {
    job?.drop();
    forget("chorale");
    state.replace(piece);
    alternatives.clear();
  });
  let job = null;

  const on = {
    piece: (piece) => alternatives.add(piece),
    done: (found) => (alternatives.end(found), settings.lastSeed(found.seed)),
    failed: (words) => (alternatives.rest(), show(status, h("p", { class: "message bad", role: "alert" }, words))),
    cancelled: () => (alternatives.rest(), toast("Cancelled.")),
  };

  function draw(verb, more = {}) {
    job?.drop();
    alternatives.begin();
    const piece = verb === "generate" ? null : state.piece;
    const body = { verb, piece, voice: VOICES[view.voice ?? 0], model: model.key, ...settings.body, ...more };
    job = shown(status, (handlers) => begin("chorale", "/api/chorale/draw", body, handlers), on);
  }

  const verbs = [
    ["harmonise", "Harmonise", "Write three voices to the chosen one", () => draw("harmonise", { voice: VOICES[melody()] })],
    ["rewrite", "Rewrite erased", "Write anew what is painted away; all else stays", () => draw("rewrite", { asked: state.regions() })],
    ["continue", "Continue", "Write so many bars more", () => draw("continue")],
    ["vary", "Vary", "A piece like this one; locked notes stay", () => draw("vary", { asked: state.unlocked() })],
    ["generate", "New", "A new chorale", () => draw("generate")],
  ].map(([key, words, about, act]) => h("button", { class: `button ${key === "harmonise" ? "main" : ""}`, type: "button", title: about, "data-verb": key, onclick: act }, words));

  /** The voice that is the tune: the only one that has notes, or the chosen one. */
  function melody() {
    const sounding = VOICES.map((_, n) => n).filter((n) => state.piece.voices[n].length);
    return sounding.length === 1 ? sounding[0] : view.voice ?? 0;
  }

  const play = h("button", { class: "button", type: "button", onclick: () => (player.isPlaying ? player.halt() : player.play(state.piece)) });
  function playButton() {
    if (play.dataset.plays === String(player.isPlaying)) return; // this is asked for every frame
    play.dataset.plays = player.isPlaying;
    show(play, icon(player.isPlaying ? "stop" : "play"), player.isPlaying ? "Stop" : "Play");
  }
  const undo = h("button", { class: "icon-button", type: "button", "aria-label": "Undo", onclick: () => state.undo() }, icon("undo"));
  const redo = h("button", { class: "icon-button", type: "button", "aria-label": "Redo", onclick: () => state.redo() }, icon("redo"));
  const surprise = h("button", { class: "button", type: "button", "aria-pressed": "false", onclick: () => colour(!view.surprise) }, "Surprise");
  const rollOrScore = h("button", { class: "button", type: "button", "aria-pressed": "false", onclick: () => {
    notation.element.hidden = !notation.element.hidden;
    canvas.parentElement.hidden = !notation.element.hidden;
    rollOrScore.setAttribute("aria-pressed", String(!notation.element.hidden));
    notation.element.hidden ? roll.draw() : notation.draw();
  } }, "Score");

  async function colour(yes) {
    if (view.surprise) spoken.textContent = ""; // what it said was of the piece as it was
    view.surprise = null;
    if (yes) {
      try {
        const found = await post("/api/chorale/surprise", { piece: state.piece, model: model.key });
        view.surprise = new Map(found.notes.map((note) => [`${VOICES.indexOf(note.voice)} ${note.start}`, note.nats]));
        show(spoken, `log p = ${found.log_likelihood.toFixed(1)} nats; the darker, the more surprising. `, h("button", { class: "button link", type: "button", onclick: (event) => openHow(found.how, event.currentTarget) }, "How?"));
      } catch (error) {
        toast(error.message, "bad");
      }
    }
    surprise.setAttribute("aria-pressed", String(Boolean(view.surprise)));
    roll.draw();
  }

  const words = h("input", { class: "plain", placeholder: "alto 3-6, tenor 5", "aria-label": "Voices and bars to paint away" });
  async function paint(lock) {
    try {
      const found = await post("/api/chorale/regions", { piece: state.piece, ask: words.value });
      state.begin(); // all that is said at once is undone at once
      for (const { voice, start, stop } of found) lock ? state.lock(voice, start, stop) : state.erase(voice, start, stop);
      state.settle();
      spoken.textContent = lock ? `Locked: ${words.value}.` : `Painted away: ${words.value}. Rewrite erased writes it anew; the rest stays.`;
    } catch (error) {
      toast(error.message, "bad");
    }
  }
  words.addEventListener("keydown", (event) => event.key === "Enter" && paint(false));

  settings.tempo.addEventListener("change", () => state.about({ tempo: Math.max(20, Math.min(300, Number(settings.tempo.value) || 80)) }));
  const rescore = calm(300, () => notation.draw());
  const stop = state.listen((now) => {
    if (view.surprise) colour(false);
    undo.disabled = !state.canUndo();
    redo.disabled = !state.canRedo();
    settings.tempo.value = now.piece.tempo;
    sessionStorage.setItem(KEY, JSON.stringify(now.piece));
    sessionStorage.setItem(MARKS, JSON.stringify(state.marks()));
    roll.draw();
    rescore();
  });
  const undrop = onDrop(files.take);
  useTools(canvas, roll, state, view, (said) => (spoken.textContent = said));

  const shortcut = (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.target.tagName === "INPUT") return;
    if (event.key === "z") (event.preventDefault(), event.shiftKey ? state.redo() : state.undo());
    if (event.key === "y") (event.preventDefault(), state.redo());
  };
  addEventListener("keydown", shortcut);
  const repaint = () => roll.draw();
  addEventListener("resize", repaint);
  addEventListener("themechange", repaint);

  show(place,
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Chorale"), h("p", {}, "Four voices in the manner of Bach. What you do not paint away is never changed.")), model.element),
    h("div", { class: "toolbar" }, verbs, h("span", { class: "grow" }), play, surprise, rollOrScore, undo, redo, files.elements),
    status,
    h("section", { class: "card roll-card", "aria-label": "The piece" },
      h("div", { class: "head" }, toolControls(view, () => roll.draw())),
      h("div", { class: "roll" }, canvas), notation.element,
      h("div", { class: "settings" }, words, h("button", { class: "button small", type: "button", onclick: () => paint(false) }, "Paint away"), h("button", { class: "button small", type: "button", onclick: () => paint(true) }, "Lock"), h("button", { class: "button small", type: "button", onclick: () => state.clearMarks() }, "Clear marks"), spoken),
      h("div", { class: "settings" }, settings.elements)),
    alternatives.element);
  playButton();
  settings.tempo.value = state.piece.tempo;
  undo.disabled = redo.disabled = true;
  roll.draw();
  job = shown(status, (handlers) => resume("chorale", handlers), on);
  return () => {
    stop();
    undrop();
    player.halt();
    notation.leave();
    job?.leave();
    removeEventListener("keydown", shortcut);
    removeEventListener("resize", repaint);
    removeEventListener("themechange", repaint);
  };
}
