/** The rows and cells that the model finds most surprising. */
import { h, show } from "../dom.js";
import { howButton } from "../how.js";
import { begin } from "../job.js";
import { shown } from "../progress.js";

export function makeSurprises(about, reveal) {
  let kept = null;
  let job = null;

  function list(place) {
    const rows = kept.found.rows.map((one) => {
      const cells = one.cells.filter((cell) => cell.surprise > 0).map((cell) => `${cell.column} = ${cell.value}, expected ${cell.expected} (${cell.surprise.toFixed(1)})`);
      return h("button", { type: "button", onclick: () => reveal(one.row) }, h("b", {}, `Row ${one.row + 1}`), ` ${one.surprise.toFixed(1)} nats above usual`, h("small", {}, cells.slice(0, 2).join("; ") || "no single cell: the combination"));
    });
    show(place, h("div", { class: "stack" }, h("div", { class: "row spread" }, h("h2", {}, "Most surprising first"), howButton(() => kept.found.how)), h("div", { class: "odd-rows" }, rows)));
  }

  return {
    show(place) {
      if (kept?.table === about().table && kept.filled === JSON.stringify(about().filled)) return list(place);
      const status = h("div", {});
      show(place, h("div", { class: "stack" }, h("h2", {}, "Most surprising first"), status));
      job?.drop();
      job = shown(status, (handlers) => begin("table surprises", `/api/tables/${about().table}/surprises`, { top: 20 }, handlers), {
        done: (found) => {
          kept = { table: about().table, filled: JSON.stringify(about().filled), found };
          if (status.isConnected) list(place); // another view may have been turned to
        },
      });
    },
  };
}
