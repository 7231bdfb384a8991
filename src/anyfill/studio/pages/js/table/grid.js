/** The rows of a table, as many as there are: only those in view exist, and the server is asked for pages of them. */
import { h, show } from "../dom.js";

const HEIGHT = 32;
const PAGE = 100;
const WIDTH = 132;
const MAX_PIXELS = 12_000_000; // browsers have an end; beyond it the scroll bar is a scale, not a length
const KINDS = ["number", "int", "category", "bool", "datetime", "ignore", "number[0,1]", "ordinal:low<mid<high"];

export function makeGrid(ask) {
  const head = h("div", { class: "head-row", role: "row" });
  const sheet = h("div", { class: "sheet" });
  const element = h("div", { class: "grid", role: "grid", "aria-label": "Rows of the table", tabindex: 0 }, head, sheet, datalist());
  let about = null;
  let pages = new Map();
  let lines = new Map();
  let chosen = { row: -1, column: "" };
  let turn = 0;

  const scale = () => Math.max(1, (about.rows * HEIGHT) / MAX_PIXELS);

  function visible() {
    const room = Math.ceil(element.clientHeight / HEIGHT) + 8;
    const first = Math.max(0, Math.floor((element.scrollTop * scale()) / HEIGHT) - 4);
    return [first, Math.min(about.rows, first + room)];
  }

  function draw() {
    if (!about) return;
    const [first, stop] = visible();
    const shift = element.scrollTop - (element.scrollTop * scale()); // rows lie where the view is, whatever the scale
    const kept = new Map();
    for (let row = first; row < stop; row++) {
      const page = pages.get(Math.floor(row / PAGE));
      if (!page) need(Math.floor(row / PAGE));
      const values = page instanceof Array ? page[row % PAGE] : null;
      const old = lines.get(row);
      const line = old && old.values === values ? old : { values, element: makeLine(row, values) };
      line.element.style.transform = `translateY(${row * HEIGHT + shift}px)`;
      line.element.classList.toggle("chosen", row === chosen.row);
      kept.set(row, line);
    }
    const focused = document.activeElement?.dataset?.cell;
    show(sheet, [...kept.values()].map((one) => one.element));
    if (focused) sheet.querySelector(`[data-cell="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    lines = kept;
  }

  async function need(number) {
    const mine = turn;
    pages.set(number, "asked");
    try {
      const found = await ask.page(number * PAGE, PAGE);
      if (mine !== turn) return;
      pages.set(number, found.rows);
      if (pages.size > 60) pages.delete(pages.keys().next().value);
    } catch {
      if (mine === turn) pages.delete(number);
      return;
    }
    draw();
  }

  function makeLine(row, values) {
    const cells = about.columns.map((column, j) => {
      const value = values?.[j];
      const answer = Array.isArray(value);
      const kind = !values ? "" : answer ? "answer" : value === null ? "hole" : "";
      const words = !values ? "" : answer ? value[0] ?? "" : value ?? "";
      const range = answer && value[1] !== null ? `${about.filled ? Math.round(100 * about.filled.level) : 90} %: ${value[1]} to ${value[2]}` : answer ? "filled" : "";
      const name = `${column.name}, row ${row + 1}: ${answer ? `filled, ${words}` : words || "missing"}${range ? `; ${range}` : ""}`;
      return h("button", {
        class: `cell ${kind} ${column.number ? "numeric" : ""}`, type: "button", title: range || words, "aria-label": name, tabindex: -1, role: "gridcell",
        "data-cell": `${row} ${j}`, style: { width: `${WIDTH}px` }, onclick: () => pick(row, column.name),
      }, words);
    });
    return h("div", { class: "line", role: "row", "aria-rowindex": row + 1 }, h("span", { class: "number", role: "rowheader" }, row + 1), cells);
  }

  function pick(row, column) {
    chosen = { row, column };
    draw();
    ask.choose(row, column);
  }

  function header(column) {
    const input = h("input", { value: column.kind, list: "kinds", "aria-label": `Kind of ${column.name}`, title: column.details, onchange: () => ask.kinds(column.name, input.value.trim()) });
    const note = column.row_number ? "looks like a row number" : column.missing ? `${(100 * column.missing).toFixed(1)} % missing` : "complete";
    return h("div", { class: "column-head", role: "columnheader", style: { width: `${WIDTH}px` } }, h("b", { title: column.name }, column.name), input,
      h("span", { class: "track", "aria-hidden": "true" }, h("i", { style: { width: `${100 * column.missing}%` } })), h("small", {}, note));
  }

  element.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  element.addEventListener("keydown", (event) => {
    const moves = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], PageDown: [15, 0], PageUp: [-15, 0] };
    const move = moves[event.key];
    if (!move || event.target.tagName === "INPUT" || !about) return;
    event.preventDefault();
    const [row, column] = (event.target.dataset?.cell ?? `${visible()[0]} 0`).split(" ").map(Number);
    const to = [Math.min(about.rows - 1, Math.max(0, row + move[0])), Math.min(about.columns.length - 1, Math.max(0, column + move[1]))];
    bring(to[0]);
    draw();
    sheet.querySelector(`[data-cell="${to.join(" ")}"]`)?.focus();
  });
  new ResizeObserver(draw).observe(element);

  function bring(row) {
    const top = (row * HEIGHT) / scale();
    const room = element.clientHeight - head.offsetHeight - HEIGHT;
    if (top < element.scrollTop || top > element.scrollTop + room) element.scrollTop = Math.max(0, top - room / 2);
  }

  return {
    element,
    show(next) {
      const same = about?.table === next.table;
      about = next;
      turn++;
      pages = new Map();
      lines = new Map();
      element.setAttribute("aria-rowcount", about.rows);
      show(head, h("span", { class: "number" }, ""), about.columns.map(header));
      sheet.style.height = `${Math.min(about.rows * HEIGHT, MAX_PIXELS)}px`;
      sheet.style.width = `${66 + WIDTH * about.columns.length}px`;
      if (!same) element.scrollTop = 0;
      draw();
    },
    reveal(row, column = "") {
      chosen = { row, column };
      bring(row);
      draw();
    },
  };
}

function datalist() {
  return h("datalist", { id: "kinds" }, KINDS.map((kind) => h("option", { value: kind })));
}
