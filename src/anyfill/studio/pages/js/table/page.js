/** Table: drop a file, see its holes, fill them, ask about any cell. */
import { get, post, upload } from "../api.js";
import { h, numberIn, show } from "../dom.js";
import { howButton } from "../how.js";
import { icon } from "../icons.js";
import { fileChoice, onDrop } from "../drop.js";
import { begin, forget, resume } from "../job.js";
import { modelsOf } from "../models.js";
import { shown } from "../progress.js";
import { downloadMenu } from "./download.js";
import { makeGrid } from "./grid.js";
import { makeSide } from "./side.js";

const RECIPES = [["gaussian", "Quick look: joint Gaussian"], ["fast", "Good: Gaussians and trees"], ["auto", "Best: the full ensemble"]];
const KEY = "table page";

export function open(place) {
  const state = { about: null, job: null, how: null };
  const title = h("p", {}, "Opening the example …");
  const status = h("div", {});
  const recipe = h("select", { class: "plain", "aria-label": "Which kind of model" }, RECIPES.map(([key, words]) => h("option", { value: key }, words)));
  const seed = h("input", { class: "plain", type: "number", min: 0, value: 0, style: { width: "5.5rem" } });
  const fillButton = h("button", { class: "button main", type: "button", onclick: fill, disabled: true }, icon("spark"), "Fill the holes");
  const how = howButton(() => state.how);
  const downloads = downloadMenu(() => state.about, status);
  const grid = makeGrid({ page: (first, count) => get(`/api/tables/${state.about.table}/rows?first=${first}&count=${count}`), kinds: say, choose: (row, column) => side.cell(row, column) });
  const side = makeSide(() => state.about, (row) => grid.reveal(row));
  how.hidden = true;
  modelsOf("table").then((own) => recipe.append(...own.map((one) => h("option", { value: `model ${one.key}` }, `Your model ${one.name}`))));

  async function drop(file) {
    show(status, h("p", { class: "message" }, `Reading ${file.name} …`));
    try {
      const about = await upload("/api/tables/upload", file);
      state.job?.drop();
      forget("table");
      take(about);
      show(status);
    } catch (error) {
      show(status, h("p", { class: "message bad", role: "alert" }, error.message));
    }
  }

  function take(about, account = null) {
    state.about = about;
    state.how = account;
    how.hidden = !account;
    sessionStorage.setItem(KEY, about.table);
    const holes = about.holes === 1 ? "1 hole" : `${about.holes.toLocaleString("en")} holes`;
    title.textContent = `${about.name}: ${about.rows.toLocaleString("en")} rows, ${about.columns.length} columns, ${holes}${about.filled ? ", filled" : ""}.`;
    fillButton.disabled = false;
    downloads.element.hidden = !about.filled;
    grid.show(about);
    side.reset();
  }

  async function say(name, kind) {
    const own = Object.fromEntries(state.about.columns.filter((one) => one.kind !== one.inferred).map((one) => [one.name, one.kind]));
    const column = state.about.columns.find((one) => one.name === name);
    if (kind && kind !== column.inferred) own[name] = kind;
    else delete own[name];
    try {
      const about = await post(`/api/tables/${state.about.table}/kinds`, { columns: own });
      state.job?.drop();
      forget("table");
      take(about);
      show(status);
    } catch (error) {
      show(status, h("p", { class: "message bad", role: "alert" }, error.message));
      grid.show(state.about);
    }
  }

  const ends = {
    done: (found) => (take(found, found.how), side.welcome()),
    failed: (words) => show(status, h("p", { class: "message bad", role: "alert" }, words)),
    cancelled: () => show(status, h("p", { class: "message" }, "Cancelled.")),
  };

  function fill() {
    const own = recipe.value.startsWith("model ") ? { model: recipe.value.slice(6) } : { recipe: recipe.value };
    const body = { ...own, seed: numberIn(seed, 0) };
    state.job?.drop();
    state.job = shown(status, (handlers) => begin("table", `/api/tables/${state.about.table}/fill`, body, handlers), ends);
  }

  const card = h("section", { class: "card", "aria-label": "The table" }, grid.element);
  const undrop = onDrop(drop, (hovers) => card.classList.toggle("drop-target", hovers));
  show(place,
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Table"), title)),
    h("div", { class: "toolbar" },
      fillButton, recipe, h("label", { class: "row faint" }, "Seed", seed),
      fileChoice("Open a file", "A table to open", ".csv,.tsv,.txt,.parquet,.xlsx", drop),
      downloads.element, how, h("span", { class: "faint" }, "or drop CSV, Parquet or Excel anywhere")),
    h("div", { class: "layout" }, h("div", { class: "stack" }, status, card), side.element));

  start();
  async function start() {
    const before = sessionStorage.getItem(KEY);
    try {
      const first = before ? await get(`/api/tables/${before}`).catch(() => post("/api/tables/example")) : await post("/api/tables/example");
      if (state.about) return; // a file came first
      take(first);
    } catch (error) {
      show(status, h("p", { class: "message bad", role: "alert" }, error.message));
      return;
    }
    state.job = shown(status, (handlers) => resume("table", handlers), ends);
  }
  return () => {
    undrop();
    state.job?.leave();
  };
}
