/** A button with a menu below it: arrows go through it, Escape and a click elsewhere close it. */
import { h } from "./dom.js";
import { icon } from "./icons.js";

/** words: of the button; items: [words, action] of each line. */
export function makeMenu(words, items) {
  const list = h("div", { class: "card", role: "menu", hidden: true }, items.map(([name, act]) => h("button", { type: "button", role: "menuitem", onclick: () => (shut(), act()) }, name)));
  const button = h("button", { class: "button", type: "button", "aria-haspopup": "menu", "aria-expanded": "false", onclick: () => open(list.hidden) }, icon("down"), words);
  const element = h("div", { class: "menu" }, button, list);

  function open(yes) {
    list.hidden = !yes;
    button.setAttribute("aria-expanded", String(yes));
    yes ? document.addEventListener("click", elsewhere) : document.removeEventListener("click", elsewhere);
    if (yes) list.querySelector("button").focus();
  }
  const elsewhere = (event) => element.contains(event.target) || open(false);

  function shut() {
    open(false);
    button.focus();
  }

  element.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    if (event.key === "Escape") shut();
    if (event.key === "Tab") open(false);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const lines = [...list.children];
    lines[(lines.indexOf(document.activeElement) + step + lines.length) % lines.length].focus();
  });
  return element;
}
