/** The fills of a text, best first, each with its share; a click takes one over. */
import { h, percent } from "../dom.js";
import { howButton } from "../how.js";

export function fillList(found, use) {
  const best = Math.max(...found.fills.map((one) => one.share), 1e-12);
  const rows = found.fills.map((one) => {
    const parts = found.stretches.flatMap((stretch, n) => [stretch, n < one.answers.length ? h("b", {}, one.answers[n]) : null]);
    return h("li", {}, h("button", { type: "button", title: `log2 p = ${one.log2_probability.toFixed(2)}; take it over`, onclick: () => use(one.text) },
      h("span", { class: "share" }, percent(one.share)), h("span", {}, parts),
      h("span", { class: "track" }, h("i", { style: { width: `${(100 * one.share) / best}%` } }))));
  });
  const head = h("div", { class: "head" }, h("h2", {}, "Fills"), h("span", { class: "row" }, h("span", { class: "faint" }, found.heading), howButton(() => found.how)));
  const remarks = found.remarks.map((one) => h("p", { class: "faint" }, one));
  return [h("section", { class: "card", "aria-label": "Fills, best first" }, head, h("ol", { class: "fills" }, rows)), ...remarks];
}
