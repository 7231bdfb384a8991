/** The knobs of the chorale page: voice, tools, how long a new note is; seed, boldness, similarity, bars, key, tempo. */
import { h, numberIn } from "../dom.js";
import { icon } from "../icons.js";
import { VOICES } from "./state.js";
import { TOOLS } from "./tools.js";

const KEYS = ["C", "G", "D", "A", "E", "F", "B-", "E-", "A-"].map((one) => `${one} major`).concat(["A", "E", "B", "F#", "D", "G", "C", "F"].map((one) => `${one} minor`));
const LENGTHS = [[16, "whole notes"], [8, "half notes"], [4, "quarter notes"], [2, "eighth notes"], [1, "sixteenth notes"]];

/** One of several, as buttons side by side. */
function choice(label, options, chosen, pick) {
  const buttons = options.map(([key, content, words]) => h("button", { type: "button", "aria-pressed": key === chosen, "aria-label": words, title: words, onclick: () => select(key) }, content));
  function select(key) {
    buttons.forEach((button, n) => button.setAttribute("aria-pressed", String(options[n][0] === key)));
    pick(key);
  }
  return { element: h("div", { class: "segments", role: "group", "aria-label": label }, buttons), select };
}

export function toolControls(view, changed) {
  const tools = choice("Tools", TOOLS.map(([key, words, name]) => [key, h("span", { class: "tool" }, icon(name), words), words]), view.tool, (key) => ((view.tool = key), changed()));
  const voices = choice("Voice", VOICES.map((name, n) => [n, h("span", { class: `voice ${name}` }, name), `Write the ${name}`]), view.voice, (key) => ((view.voice = key), changed()));
  const length = h("select", { class: "plain", "aria-label": "Length of new notes", onchange: () => (view.grid = Number(length.value)) }, LENGTHS.map(([steps, words]) => h("option", { value: steps }, words)));
  length.value = view.grid;
  view.choose = (voice) => voices.select(voice);
  return [tools.element, voices.element, length];
}

export function drawSettings() {
  const number = (label, props) => {
    const input = h("input", { type: "number", ...props });
    return [input, h("label", { class: "field short" }, label, input)];
  };
  const slider = (label, props, words) => {
    const input = h("input", { type: "range", ...props });
    const said = h("span", { class: "value" }, words(input.value));
    input.addEventListener("input", () => (said.textContent = words(input.value)));
    return [input, h("label", { class: "field" }, h("span", {}, `${label} `, said), input)];
  };
  const [seed, seedField] = number("Seed", { min: 0, placeholder: "new" });
  const [bars, barsField] = number("Bars", { min: 1, max: 32, value: 4 });
  const [bold, boldField] = slider("Boldness", { min: 0.5, max: 1.5, step: 0.05, value: 1 }, (value) => Number(value).toFixed(2));
  const [like, likeField] = slider("Similarity", { min: 0, max: 1, step: 0.05, value: 0.7 }, (value) => `${Math.round(100 * value)} %`);
  const key = h("select", {}, h("option", { value: "" }, "as it is, or any"), KEYS.map((one) => h("option", { value: one }, one.replace("-", "♭").replace("#", "♯"))));
  const [tempo, tempoField] = number("Tempo", { min: 20, max: 300, value: 88 });
  return {
    elements: [seedField, barsField, h("label", { class: "field" }, "Key", key), tempoField, boldField, likeField],
    tempo,
    get body() {
      return { seed: numberIn(seed, null), bars: numberIn(bars, 4), temperature: Number(bold.value), amount: Math.round(100 * (1 - Number(like.value))) / 100, key: key.value || null };
    },
    lastSeed: (value) => (seed.title = `The last one was ${value}`),
  };
}
