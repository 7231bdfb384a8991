/** The drawer that says how an answer came about, and the lines that give the same answer elsewhere. */
import { h, show } from "./dom.js";
import { icon } from "./icons.js";
import { toast } from "./toast.js";

const KINDS = { exact: "exact", bound: "a bound", estimate: "an estimate" };
let back = null;

/** A button that opens the drawer for an account of an answer. */
export function howButton(account, words = "How?") {
  return h("button", { class: "button link", type: "button", "aria-haspopup": "dialog", onclick: (event) => open(account(), event.currentTarget) }, icon("question"), words);
}

export function open(how, from) {
  if (!how) return toast("There is no answer yet: ask first.");
  back = from;
  const drawer = document.getElementById("how");
  const close = h("button", { class: "icon-button", type: "button", "aria-label": "Close", onclick: shut }, icon("close"));
  const pairs = [
    ["Given", how.given], ["Asked", how.asked],
    ["The numbers", h("span", {}, h("span", { class: `chip ${how.kind}` }, KINDS[how.kind]), ` ${how.why}`)],
    ["Passes", `${how.passes.toLocaleString("en")} of the network`], ["Seconds", how.seconds.toFixed(2)],
  ];
  show(
    drawer,
    h("header", {}, h("h2", {}, "How this was computed"), close),
    h("dl", {}, pairs.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h("h3", {}, "The same in Python"), code(how.python), h("h3", {}, "The same in a terminal"), code(how.cli),
  );
  drawer.hidden = false;
  close.focus();
}

/** Put the drawer away: what it says is of a page that is left. */
export const hide = () => (document.getElementById("how").hidden = true);

function shut() {
  hide();
  back?.focus();
}

function code(text) {
  const copy = h("button", { class: "button small", type: "button", onclick: () => keep(text, copy) }, "Copy");
  return h("div", { class: "code" }, h("pre", { tabindex: 0 }, text), copy);
}

async function keep(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { value: text, "aria-label": "to be copied" }); // where the clipboard is not allowed
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.getElementById("how").hidden) shut();
});
