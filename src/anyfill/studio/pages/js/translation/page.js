/** Translation: a sentence, its translation pass by pass, blanks in it, alternatives; where there is a model of it. */
import { h, short, show } from "../dom.js";
import { howButton } from "../how.js";
import { icon } from "../icons.js";
import { begin } from "../job.js";
import { modelChoice, modelsOf } from "../models.js";
import { shown } from "../progress.js";

export async function open(place) {
  const models = await modelsOf("translation");
  if (!models.length) return none(place);
  const model = modelChoice("translation");
  const source = h("textarea", { class: "plain lines", "aria-label": "The sentence to translate", maxlength: 2000, value: "" });
  const target = h("textarea", { class: "plain lines", "aria-label": "Its translation; ___ is a blank", maxlength: 2000, value: "" });
  const keep = h("input", { class: "plain", "aria-label": "Words to keep, between commas", placeholder: "words to keep, between commas" });
  const passes = h("input", { type: "number", min: 1, max: 32, value: 4 });
  const status = h("div", {});
  const results = h("div", { class: "stack" });

  function ask(template) {
    const body = { text: source.value, template, keep: keep.value.split(",").map((one) => one.trim()).filter(Boolean), passes: Number(passes.value) || 4, model: model.key };
    shown(status, (handlers) => begin("translation", "/api/translation/translate", body, handlers), { done: told });
  }

  function askSelection() {
    if (target.selectionStart === target.selectionEnd) return show(results, h("p", { class: "message" }, "Select a word of the translation first."));
    target.setRangeText("___", target.selectionStart, target.selectionEnd, "end");
    return ask(target.value);
  }

  function told(found) {
    target.value = found.found[0]?.text ?? "";
    const lines = found.found.map((one) => h("li", {}, h("button", { type: "button", onclick: () => (target.value = one.text) }, h("span", { class: "share" }, short(one.score, 3)), h("span", {}, one.text))));
    const steps = found.history.map((pieces, n) => h("p", {}, h("span", { class: "chip" }, `pass ${n + 1}`), ` ${pieces.join("").replaceAll("▁", " ")}`));
    show(results, h("section", { class: "card" }, h("div", { class: "head" }, h("h2", {}, found.languages.join(" → ")), howButton(() => found.how)), h("ol", { class: "fills" }, lines)), steps.length ? h("section", { class: "card" }, h("div", { class: "body stack" }, h("h3", {}, "Pass by pass"), steps)) : null);
  }

  show(place,
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Translation"), h("p", {}, "A few passes over the whole sentence at once. Write ___ into the translation and fill only that.")), model.element),
    h("div", { class: "columns" },
      h("section", { class: "card" }, h("div", { class: "body stack" }, source, target,
        h("div", { class: "row" }, h("button", { class: "button main", type: "button", onclick: () => ask("") }, icon("spark"), "Translate"), h("button", { class: "button", type: "button", onclick: () => ask(target.value) }, "Fill the blanks"), h("button", { class: "button", type: "button", onclick: askSelection }, "Others for the selected word")),
        h("div", { class: "row" }, keep, h("label", { class: "field short" }, "Passes", passes)), status)),
      results));
}

/** What to do where there is no model. */
function none(place) {
  show(place, h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Translation"), h("p", {}, "No model of translation ships with anyfill. Train one on pairs of sentences, then start the studio with it."))),
    h("section", { class: "card" }, h("div", { class: "body stack" }, h("h2", {}, "Make a model"),
      h("pre", { tabindex: 0, class: "block" }, "anyfill translate train pairs.tsv --from de --to en -o de-en\nanyfill studio --model de-en"),
      h("p", { class: "soft" }, "One pair a line, a tab between. A small corpus takes minutes on a GPU."))));
}
