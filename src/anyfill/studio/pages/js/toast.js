/** A message that goes away by itself. */
import { h } from "./dom.js";

export function toast(words, kind = "") {
  const one = h("div", { class: `toast ${kind}` }, words);
  document.getElementById("toasts").append(one);
  setTimeout(() => one.remove(), kind === "bad" ? 7000 : 2600);
}
