/** Files to keep: the filled table, draws of it, scores, a report. */
import { blob, save } from "../api.js";
import { h } from "../dom.js";
import { icon } from "../icons.js";
import { begin } from "../job.js";
import { shown } from "../progress.js";

const FILES = [["filled", ".csv", "Filled table (CSV)"], ["filled", ".parquet", "Filled table (Parquet)"], ["filled", ".xlsx", "Filled table (Excel)"], ["draws", ".csv", "Twenty draws of it (CSV)"], ["scores", ".csv", "Scores of all cells (CSV)"], ["report", ".csv", "Report (HTML)"]];

export function downloadMenu(about, status) {
  const list = h("div", { class: "card", hidden: true, role: "menu" }, FILES.map(([what, suffix, words]) => h("button", { type: "button", role: "menuitem", onclick: () => fetchFile(what, suffix) }, words)));
  const button = h("button", { class: "button", type: "button", "aria-haspopup": "menu", "aria-expanded": "false", onclick: () => open(list.hidden) }, icon("down"), "Download");
  const element = h("div", { class: "menu", hidden: true }, button, list);

  function open(yes) {
    list.hidden = !yes;
    button.setAttribute("aria-expanded", String(yes));
    if (yes) list.querySelector("button").focus();
  }

  function fetchFile(what, suffix) {
    open(false);
    button.focus();
    shown(status, (handlers) => begin("table download", `/api/tables/${about().table}/download`, { what, suffix, seed: about().filled?.seed ?? 0 }, handlers), {
      done: async (made) => save(await blob(`/api/tables/${about().table}/files/${made.file}`), made.name),
    });
  }

  document.addEventListener("click", (event) => element.contains(event.target) || open(false));
  element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") (open(false), button.focus());
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || list.hidden) return;
    event.preventDefault();
    const items = [...list.children];
    items[(items.indexOf(document.activeElement) + step + items.length) % items.length].focus();
  });
  return { element };
}
