/** The side of a table: what is known of a cell, what-if, what to measure next, what surprises. */
import { post } from "../api.js";
import { h, percent, short, show } from "../dom.js";
import { howButton } from "../how.js";
import { makeNext } from "./next.js";
import { distribution } from "./plot.js";
import { makeSurprises } from "./surprises.js";
import { makeWhatIf } from "./whatif.js";

const VIEWS = [["cell", "Cell"], ["whatif", "What if"], ["next", "Measure next"], ["odd", "Surprises"]];

export function makeSide(about, reveal) {
  const body = h("div", { class: "body" });
  const tabs = h("div", { class: "segments", role: "tablist", "aria-label": "About the table" });
  const element = h("aside", { class: "side", "aria-label": "About a cell or a row" }, tabs, h("section", { class: "card", role: "tabpanel", "aria-label": "About a cell or a row" }, body));
  const views = { whatif: makeWhatIf(about), next: makeNext(about), odd: makeSurprises(about, (row) => (reveal(row), choose(row))) };
  const chosen = { row: 0, column: "" };
  let view = "cell";
  let turn = 0;

  const buttons = VIEWS.map(([key, words]) => h("button", { type: "button", role: "tab", "aria-selected": key === view, onclick: () => turnTo(key) }, words));
  show(tabs, buttons);

  function turnTo(key) {
    view = key;
    buttons.forEach((button, n) => button.setAttribute("aria-selected", VIEWS[n][0] === key));
    draw();
  }

  function choose(row) {
    chosen.row = row;
  }

  function draw() {
    if (!about()) return;
    if (!about().modelled) return show(body, h("p", { class: "soft" }, "Fill the holes first: then click any cell to see its whole distribution, change values and watch the others move."));
    if (view === "cell") return cell();
    return views[view].show(body, chosen.row);
  }

  async function cell() {
    if (!chosen.column) return show(body, h("p", { class: "soft" }, "Click any cell of the table."));
    const mine = ++turn;
    try {
      const found = await post(`/api/tables/${about().table}/cell`, { row: chosen.row, column: chosen.column });
      if (mine === turn && view === "cell") show(body, cellCard(found));
    } catch (error) {
      if (mine === turn && view === "cell") show(body, h("p", { class: "message bad", role: "alert" }, error.message));
    }
  }

  return {
    element,
    reset() {
      chosen.column = "";
      turnTo("cell");
    },
    welcome() {
      const first = about().columns.findIndex((one) => one.missing > 0);
      show(body, h("div", { class: "stack" }, h("p", { class: "figure" }, "Filled."), h("p", { class: "soft" }, "Orange cells are answers; hover for their intervals. Click any cell, filled or given, for its whole distribution."), first < 0 ? null : h("p", { class: "faint" }, `Try one in ${about().columns[first].name}.`)));
    },
    cell(row, column) {
      Object.assign(chosen, { row, column });
      if (view === "next" || view === "odd") turnTo("cell");
      else draw();
    },
  };
}

function cellCard(found) {
  const interval = found.low === undefined || found.low === null ? null : h("p", { class: "soft" }, `90 % of cases lie between ${short(found.low)} and ${short(found.high)}; the median is ${short(found.median)}.`);
  const most = found.depends?.[0]?.moves || 1;
  const depends = (found.depends ?? []).slice(0, 6).map((one) => h("div", {}, h("span", { title: one.column }, one.column), h("span", { class: "track" }, h("i", { style: { width: `${(100 * one.moves) / Math.max(most, 1e-9)}%` } })), h("b", {}, percent(one.moves))));
  const draws = found.levels ? countDraws(found.draws) : found.draws.slice(0, 12).map((one) => short(one)).join(", ") + " …";
  return h("div", { class: "stack" },
    h("div", { class: "row spread" }, h("div", {}, h("h2", {}, found.column), h("span", { class: "faint" }, `row ${found.row + 1}, given its other cells`)), howButton(() => found.how)),
    h("p", { class: "figure" }, short(found.value)), distribution(found, { tall: 130, draws: found.draws }), interval,
    h("div", {}, h("h3", {}, "Depends most on"), h("p", { class: "faint" }, "How far the distribution moves when that cell is hidden.")),
    depends.length ? h("div", { class: "levels" }, depends) : h("p", { class: "faint" }, "Nothing else is known in this row."),
    h("div", {}, h("h3", {}, "Draws"), h("p", { class: "faint" }, draws)));
}

function countDraws(draws) {
  const counts = new Map();
  for (const one of draws) counts.set(one, (counts.get(one) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([level, count]) => `${level} × ${count}`).join(", ");
}
