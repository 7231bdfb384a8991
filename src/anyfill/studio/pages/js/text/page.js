/** Text: type with blanks, or select words and ask; ranked fills; surprise as you type; write on, with a stop. */
import { h, show } from "../dom.js";
import { howButton } from "../how.js";
import { icon } from "../icons.js";
import { begin, forget, isBegun, resume } from "../job.js";
import { modelChoice } from "../models.js";
import { shown } from "../progress.js";
import { makeEditor } from "./editor.js";
import { fillList } from "./fills.js";
import { writeSettings } from "./settings.js";

const EXAMPLES = ["It was raining, so she took her ____.", "My br_ther works in a h_spital.", "Can you open the ____, please?", "She went to [] to buy bread.", "It was the best of times"];
const KEY = "text page";
const PROMPT = "text prompt";

export function open(place) {
  const model = modelChoice("text", () => editor.colour());
  const editor = makeEditor(sessionStorage.getItem(KEY) ?? EXAMPLES[0], () => model.key, () => sessionStorage.setItem(KEY, editor.text));
  const results = h("div", { class: "stack" });
  const settings = writeSettings();
  const hint = h("div", { class: "card empty" }, "Press “Fill the blanks”: the likeliest fills appear here, with their shares.");
  let job = null;

  const filled = { done: (found) => show(results, fillList(found, (text) => editor.set(text))).scrollIntoView({ block: "nearest" }) };
  const fill = () => run("fill", "/api/text/fill", { text: editor.text, n: 6, seed: settings.seed, letters: settings.letters, free: settings.free, model: model.key }, filled);

  const ask = () => {
    if (!editor.blankSelection()) return show(results, h("p", { class: "message" }, "Select some words in the text first: they become a blank."));
    return fill();
  };

  const write = () => {
    const paper = sheet(editor.text);
    const body = { prompt: editor.text, length: settings.length, seed: settings.seed, temperature: settings.temperature, nucleus: settings.nucleus, model: model.key };
    sessionStorage.setItem(PROMPT, body.prompt);
    return run("write", "/api/text/write", body, paper.on, paper.status);
  };

  /** Where a text appears that goes on from a prompt, and what to do with its pieces. */
  function sheet(prompt) {
    const grown = h("b");
    const text = h("div", { class: "written growing", tabindex: 0, "aria-label": "What is being written" }, grown);
    const keep = h("button", { class: "button small", type: "button", disabled: true, onclick: () => editor.set(text.textContent) }, "Keep it");
    const account = { how: null };
    const foot = h("div", { class: "head" }, keep, howButton(() => account.how));
    const status = h("div", {});
    show(results, h("section", { class: "card" }, text, foot), status);
    let all = "";
    const on = {
      piece: (piece) => {
        all += piece;
        show(text, all.slice(0, prompt.length), h("b", {}, all.slice(prompt.length)));
      },
      done: (found) => {
        account.how = found.how;
        settings.lastSeed(found.seed);
        rest();
      },
      cancelled: rest,
      failed: (words) => {
        rest();
        const message = h("p", { class: "message bad", role: "alert" }, words);
        all ? show(status, message) : show(results, message); // an empty sheet says nothing
      },
    };
    function rest() {
      text.classList.remove("growing");
      keep.disabled = false;
    }
    return { on, status };
  }

  function run(name, path, body, on, status = results) {
    job?.drop();
    forget("text fill");
    forget("text write");
    job = shown(status, (handlers) => begin(`text ${name}`, path, body, handlers), on);
  }

  const buttons = h("div", { class: "row" },
    h("button", { class: "button main", type: "button", onclick: fill }, icon("spark"), "Fill the blanks"),
    h("button", { class: "button", type: "button", onclick: ask, title: "Blank the selected words and fill them" }, "Ask about selection"),
    h("button", { class: "button", type: "button", onclick: write }, icon("draw"), "Write on"));
  const examples = h("div", { class: "examples" }, h("span", { class: "faint" }, "Try"), EXAMPLES.map((one) => h("button", { class: "button small", type: "button", onclick: () => editor.set(one) }, one)));
  show(place,
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Text"), h("p", {}, "Write l_st for missing letters, ____ for a word, [] for anything. A text without blanks is coloured by how much each character surprises.")), model.element),
    h("div", { class: "columns" },
      h("div", {}, h("section", { class: "card" }, editor.element, settings.element, h("div", { class: "settings" }, buttons)), examples),
      results));
  show(results, hint);
  again();
  /** After a reload: what was being written or filled goes on in view. */
  function again() {
    const missing = () => show(results, hint);
    if (isBegun("text fill")) job = shown(results, (handlers) => resume("text fill", handlers), { ...filled, missing });
    if (!isBegun("text write")) return;
    const paper = sheet(sessionStorage.getItem(PROMPT) ?? "");
    job = shown(paper.status, (handlers) => resume("text write", handlers), { ...paper.on, missing });
  }
  return () => job?.cancel();
}
