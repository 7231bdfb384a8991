/** Translation: a sentence, its translation pass by pass, words to lock, to blank and to choose others for. */
import { get } from "../api.js";
import { h, numberIn, short, show } from "../dom.js";
import { howButton } from "../how.js";
import { icon } from "../icons.js";
import { begin, resume } from "../job.js";
import { modelChoice, modelsOf } from "../models.js";
import { shown } from "../progress.js";
import { makeWords } from "./words.js";

const OTHERS = 6;

export async function open(place) {
  const models = await modelsOf("translation");
  if (!models.length) return none(place);
  const model = modelChoice("translation", about);
  const source = h("textarea", { class: "plain lines", "aria-label": "The sentence to translate", maxlength: 2000, value: "" });
  const passes = h("input", { type: "number", min: 1, max: 32, value: 4 });
  const languages = h("h2", {}, "Translation");
  const status = h("div", {});
  const aside = h("div", {});
  const results = h("div", { class: "stack" });
  let job = null;
  let question = null; // about a word
  const words = makeWords((template, tell) => {
    question?.drop();
    question = shown(aside, (on) => begin("translation word", "/api/translation/translate", { ...asked(), template, n: OTHERS }, on), { done: (found) => tell(found.found) });
  });
  let example = "";
  const asked = () => ({ text: source.value, passes: numberIn(passes, 4), model: model.key });

  function run(body) {
    question?.drop();
    job?.drop();
    job = shown(status, (handlers) => begin("translation", "/api/translation/translate", body, handlers), { done: told });
  }

  function fillBlanks() {
    if (!words.template) return show(results, h("p", { class: "message" }, "Click a word of the translation and blank it first."));
    return run({ ...asked(), template: words.template });
  }

  function told(found) {
    if (source.value === example) source.value = found.text; // after a reload
    words.set(found.found[0]?.text ?? "");
    const lines = found.found.map((one) => h("li", {}, h("button", { type: "button", onclick: () => words.set(one.text) }, h("span", { class: "share" }, short(one.score, 3)), h("span", {}, one.text))));
    const first = found.history.length > (found.found[0]?.passes ?? 0) ? 0 : 1; // before the first pass all is blank, or noise
    const steps = found.history.map((pieces, n) => h("p", { class: "pass" }, h("span", { class: "chip" }, n + first ? `pass ${n + first}` : "start"), pieces.map((piece, k) => [piece.startsWith("▁") && k ? " " : "", n && found.history[n - 1][k] !== piece ? h("mark", {}, piece.replaceAll("▁", "")) : piece.replaceAll("▁", "")])));
    show(results,
      h("section", { class: "card", "aria-label": "Translations" }, h("div", { class: "head" }, h("h2", {}, found.history.length ? "The translation, and others" : "Best first"), howButton(() => found.how)), h("ol", { class: "fills" }, lines), found.remarks.map((one) => h("p", { class: "message" }, one))),
      steps.length ? h("section", { class: "card", "aria-label": "Pass by pass" }, h("div", { class: "body stack" }, h("h3", {}, "Pass by pass"), steps)) : null);
  }

  async function about() {
    const found = await get(`/api/translation/about?model=${encodeURIComponent(model.key)}`);
    languages.textContent = found.languages.join(" → ");
    if (source.value && source.value !== example) return; // somebody has written meanwhile
    source.value = example = found.example;
    words.clear();
    show(results);
  }

  show(place,
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Translation"), h("p", {}, "A few passes over the whole sentence at once. Lock words that must stay, blank others, click one to see what else fits.")), model.element),
    h("div", { class: "columns" },
      h("section", { class: "card", "aria-label": "Source and translation" }, h("div", { class: "head" }, languages, h("label", { class: "field short" }, "Passes", passes)),
        h("div", { class: "body stack" }, source,
          h("div", { class: "row" }, h("button", { class: "button main", type: "button", onclick: () => run({ ...asked(), keep: words.kept }) }, icon("spark"), "Translate"), h("button", { class: "button", type: "button", onclick: fillBlanks }, "Fill the blanks")),
          words.element, aside, status)),
      results));
  await about().catch((error) => show(status, h("p", { class: "message bad", role: "alert" }, error.message)));
  if (!job) job = shown(status, (handlers) => resume("translation", handlers), { done: told });
  return () => {
    question?.leave();
    job?.leave();
  };
}

/** What to do where there is no model. */
function none(place) {
  show(place, h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Translation"), h("p", {}, "There is no model of translation here. Train one on pairs of sentences, then start the studio with it."))),
    h("section", { class: "card" }, h("div", { class: "body stack" }, h("h2", {}, "Make a model"),
      h("pre", { tabindex: 0, class: "block" }, "anyfill translate train pairs.tsv --from de --to en -o de-en\nanyfill studio --model de-en"),
      h("p", { class: "soft" }, "One pair a line, a tab between. A small corpus takes minutes on a GPU."))));
}
