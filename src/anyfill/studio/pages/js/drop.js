/** Files that are chosen with a button, or dropped anywhere in the window: a page takes them while it is open. */
import { h } from "./dom.js";
import { icon } from "./icons.js";

let take = null;
let mark = () => {};

/** From now on `take` gets what is dropped, and `mark` hears whether something hovers; returns how to end that. */
export function onDrop(taken, marked = () => {}) {
  take = taken;
  mark = marked;
  return () => {
    take = null;
    mark = () => {};
  };
}

/** A button with these words that has a file chosen; the label is that of the field behind it. */
export function fileChoice(words, label, accept, taken, small = "") {
  const field = h("input", { type: "file", accept, hidden: true, "aria-label": label, onchange: () => {
    const [file] = field.files;
    field.value = ""; // or the same file, mended, would be no change
    if (file) taken(file);
  } });
  return [h("button", { class: `button ${small}`, type: "button", onclick: () => field.click() }, icon("up"), words), field];
}

for (const [event, hovers] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
  addEventListener(event, (happened) => {
    happened.preventDefault(); // or the browser would leave the studio for the file
    mark(hovers && take !== null);
    if (event === "drop" && happened.dataTransfer.files.length) take?.(happened.dataTransfer.files[0]);
  });
}
