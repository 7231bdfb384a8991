/** Painting away: a brush, a rectangle or a half of a picture, with pointer or keyboard. */
import { h } from "../dom.js";
import { icon } from "../icons.js";
import { paint, pictureCanvas } from "./canvas.js";

const TOOLS = [["brush", "Brush", "brush"], ["rectangle", "Rectangle", "square"]];
const HALVES = [["left", "Left"], ["right", "Right"], ["top", "Top"], ["bottom", "Bottom"]];

export function makeMask(changed) {
  let picture = null;
  let erased = new Uint8Array(0);
  let tool = "brush";
  let size = 3;
  let held = null;
  let cursor = null;
  const canvas = pictureCanvas(28, 28, "");
  canvas.setAttribute("tabindex", "0");
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", "The picture. Drag to paint away. Arrows move, Space paints away, Delete brings back.");
  canvas.classList.add("big");

  function draw() {
    if (!picture) return;
    paint(canvas, picture, { hidden: erased });
    if (!cursor) return;
    const pen = canvas.getContext("2d");
    pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--focus");
    pen.fillRect(cursor.x, cursor.y, 1, 1);
  }

  function box(x0, y0, x1, y1, value = 1) {
    for (let y = Math.max(0, Math.min(y0, y1)); y <= Math.min(picture.height - 1, Math.max(y0, y1)); y++)
      for (let x = Math.max(0, Math.min(x0, x1)); x <= Math.min(picture.width - 1, Math.max(x0, x1)); x++) erased[y * picture.width + x] = value;
  }

  function dab(x, y, value = 1) {
    const reach = (size - 1) / 2;
    box(Math.round(x - reach), Math.round(y - reach), Math.round(x + reach), Math.round(y + reach), value);
  }

  const place = (event) => {
    const frame = canvas.getBoundingClientRect();
    return [Math.floor(((event.clientX - frame.left) / frame.width) * picture.width), Math.floor(((event.clientY - frame.top) / frame.height) * picture.height)];
  };

  canvas.addEventListener("pointerdown", (event) => {
    const [x, y] = place(event);
    canvas.setPointerCapture(event.pointerId);
    held = { x, y, value: event.button === 2 || event.shiftKey ? 0 : 1, before: erased.slice() };
    if (tool === "brush") dab(x, y, held.value);
    draw();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return;
    const [x, y] = place(event);
    if (tool === "brush") {
      const steps = Math.max(1, Math.abs(x - held.x), Math.abs(y - held.y));
      for (let n = 0; n <= steps; n++) dab(held.x + ((x - held.x) * n) / steps, held.y + ((y - held.y) * n) / steps, held.value);
      Object.assign(held, { x, y });
    } else {
      erased = held.before.slice();
      box(held.x, held.y, x, y, held.value);
    }
    draw();
  });
  const end = () => {
    if (!held) return;
    held = null;
    changed();
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    cursor ??= { x: Math.floor(picture.width / 2), y: Math.floor(picture.height / 2) };
    if (move) Object.assign(cursor, { x: clamp(cursor.x + move[0], picture.width), y: clamp(cursor.y + move[1], picture.height) });
    else if (event.key === " ") (dab(cursor.x, cursor.y), changed());
    else if (event.key === "Delete" || event.key === "Backspace") (dab(cursor.x, cursor.y, 0), changed());
    else return;
    event.preventDefault();
    draw();
  });
  canvas.addEventListener("blur", () => ((cursor = null), draw()));

  const buttons = TOOLS.map(([key, words, name]) => h("button", { type: "button", "aria-pressed": key === tool, onclick: () => pick(key) }, h("span", { class: "tool" }, icon(name), words)));
  function pick(key) {
    tool = key;
    buttons.forEach((button, n) => button.setAttribute("aria-pressed", String(TOOLS[n][0] === key)));
  }
  function half(side) {
    const [w, h2] = [picture.width, picture.height];
    const area = { left: [0, 0, w / 2 - 1, h2], right: [w / 2, 0, w, h2], top: [0, 0, w, h2 / 2 - 1], bottom: [0, h2 / 2, w, h2] }[side].map(Math.floor);
    erased.fill(0);
    box(...area);
    draw();
    changed();
  }
  const brush = h("input", { type: "range", min: 1, max: 9, step: 2, value: size, "aria-label": "Size of the brush", oninput: () => (size = Number(brush.value)) });
  return {
    canvas,
    controls: h("div", { class: "stack" },
      h("div", { class: "row" }, h("div", { class: "segments", role: "group", "aria-label": "How to paint" }, buttons), h("label", { class: "field grow" }, "Brush", brush)),
      h("div", { class: "row" }, HALVES.map(([side, words]) => h("button", { class: "button small", type: "button", onclick: () => half(side) }, words)), h("button", { class: "button small", type: "button", onclick: () => (erased.fill(0), draw(), changed()) }, "Clear"))),
    half,
    draw,
    show(next) {
      if (!picture || next.width * next.height !== erased.length) erased = new Uint8Array(next.width * next.height);
      picture = next;
      canvas.width = next.width;
      canvas.height = next.height;
      draw();
    },
    get erased() {
      return erased;
    },
    /** Paint away what a byte for each pixel says. */
    set(bytes) {
      erased = bytes;
      draw();
    },
  };
}

const clamp = (value, size) => Math.max(0, Math.min(size - 1, value));
