/** How to fill and to write: seed, length, boldness. */
import { h, numberIn } from "../dom.js";

export function writeSettings() {
  const seed = h("input", { type: "number", min: 0, max: 999999, placeholder: "new" });
  const length = h("input", { type: "number", min: 1, max: 5000, value: 120, title: "In what the model writes: letters, or pieces of words" });
  const bold = h("input", { type: "range", min: 0.2, max: 1.6, step: 0.05, value: 1 });
  const nucleus = h("input", { type: "range", min: 0.5, max: 1, step: 0.01, value: 1 });
  const free = h("input", { type: "checkbox" });
  const letters = h("input", { type: "checkbox" });
  const said = h("span", { class: "value" }, "1");
  const cut = h("span", { class: "value" }, "all");
  bold.addEventListener("input", () => (said.textContent = bold.value));
  nucleus.addEventListener("input", () => (cut.textContent = nucleus.value === "1" ? "all" : nucleus.value));
  const more = h("details", { class: "grow" }, h("summary", {}, "Settings"),
    h("div", { class: "settings" },
      h("label", { class: "field short" }, "Seed", seed), h("label", { class: "field short" }, "Length to write", length),
      h("label", { class: "field" }, h("span", {}, "Boldness ", said), bold), h("label", { class: "field" }, h("span", {}, "Likeliest share ", cut), nucleus),
      h("label", { class: "check" }, letters, "____ is so many letters"), h("label", { class: "check" }, free, "blanks of any length")));
  return {
    element: h("div", { class: "settings" }, more),
    get seed() {
      return numberIn(seed, null);
    },
    get length() {
      return numberIn(length, 120);
    },
    get temperature() {
      return Number(bold.value);
    },
    get nucleus() {
      return nucleus.value === "1" ? null : Number(nucleus.value);
    },
    get letters() {
      return letters.checked;
    },
    get free() {
      return free.checked;
    },
    lastSeed(value) {
      seed.title = `The last one was ${value}`;
    },
  };
}
