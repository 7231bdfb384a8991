/** Picture: choose or open one, paint away what you like, six completions appear as they are drawn. */
import { get, post, upload } from "../api.js";
import { h, numberIn, show } from "../dom.js";
import { fileChoice, onDrop } from "../drop.js";
import { howButton } from "../how.js";
import { icon } from "../icons.js";
import { begin, forget, resume } from "../job.js";
import { modelChoice, modelsOf } from "../models.js";
import { shown } from "../progress.js";
import { pack, paint, pictureCanvas, unpack } from "./canvas.js";
import { makeComparison, told } from "./compare.js";
import { makeMask } from "./mask.js";

const MANY = 6;
const KEY = "picture page";
const WAY = "picture way";
const WAYS = [["exact", "exact: pixel by pixel"], ["speculative", "speculative: the same law, guessed ahead"], ["4", "4 steps, many pixels at once"], ["16", "16 steps"], ["64", "64 steps"]];

export function open(place) {
  const model = modelChoice("images", load);
  const state = { picture: null, about: null, fills: null, overlay: "none", surprise: null, job: null };
  const mask = makeMask(() => bits());
  const figure = h("p", { class: "soft", role: "status" });
  const account = { score: null, fill: null };
  const status = h("div", { class: "fill-status" });
  const gallery = h("div", { class: "gallery", role: "group", "aria-label": "Pictures to begin with" });
  const results = h("div", { class: "completions" });
  const seed = h("input", { type: "number", min: 0, placeholder: "new" });
  const bold = h("input", { type: "range", min: 0.2, max: 1.6, step: 0.05, value: 1 });
  const said = h("span", { class: "value" }, "1");
  const fillButton = h("button", { class: "button main", type: "button", disabled: true, onclick: fill }, icon("spark"), "Fill what is erased");
  const sampler = h("select", {}, WAYS.map(([value, words]) => h("option", { value }, words)));
  const canvases = Array.from({ length: MANY }, (_, n) => pictureCanvas(28, 28, `Completion ${n + 1}`));
  const captions = canvases.map(() => h("figcaption", { class: "soft" }, " "));
  const line = h("p", { class: "soft told", role: "status" });
  const compared = makeComparison();
  const overlays = [["none", "Plain"], ["uncertainty", "Uncertainty"], ["surprise", "Surprise"]].map(([key, words]) => h("button", { type: "button", "aria-pressed": key === state.overlay, "data-key": key, onclick: () => lay(key) }, words));
  bold.addEventListener("input", () => (said.textContent = bold.value));

  const wire = () => ({ width: state.picture.width, height: state.picture.height, channels: state.picture.channels, pixels: pack(state.picture.bytes), erased: pack(mask.erased) });

  function set(found, erased = null) {
    state.picture = { ...found, bytes: unpack(found.pixels) };
    state.model = model.key; // whose picture it is, while another model is being loaded
    state.fills = null;
    state.surprise = null;
    compared.clear();
    fillButton.disabled = false;
    mask.show(state.picture);
    if (erased) mask.set(erased);
    canvases.forEach((one) => Object.assign(one, { width: found.width, height: found.height }));
    redraw();
    bits();
  }

  /** A picture that somebody has chosen: what is being drawn for the one before is not of it. */
  function another(found) {
    state.job?.drop();
    forget("picture");
    set(found);
  }

  async function bits() {
    sessionStorage.setItem(KEY, JSON.stringify({ model: state.model, picture: wire() }));
    state.surprise = null;
    const mine = state.picture;
    try {
      const found = await post("/api/pictures/score", { picture: wire(), model: state.model });
      if (mine !== state.picture) return;
      state.surprise = found.surprise;
      account.score = found.how;
      figure.textContent = `What you see holds ${found.bits.toFixed(1)} bits, ${found.bits_per_dimension.toFixed(3)} per pixel.`;
    } catch (error) {
      figure.textContent = error.message;
    }
    redraw();
  }

  function lay(key) {
    state.overlay = key;
    overlays.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.key === key)));
    redraw();
  }

  function redraw() {
    if (!state.picture) return;
    mask.draw();
    const heat = state.overlay === "uncertainty" ? state.fills?.uncertainty : null;
    canvases.forEach((canvas, n) => {
      const bytes = state.fills?.pictures[n];
      paint(canvas, bytes ? { ...state.picture, channels: state.fills.channels, bytes } : state.picture, { hidden: state.fills ? state.fills.hidden : mask.erased, heat, most: Math.log2(state.about?.levels ?? 2) });
    });
    captions.forEach((one, n) => (one.textContent = state.fills?.bits ? `${state.fills.bits[n].toFixed(1)} bits` : " "));
    line.textContent = state.fills?.bits ? told(state.fills) : "";
    if (state.overlay === "surprise" && state.surprise) paint(mask.canvas, state.picture, { hidden: mask.erased, heat: state.surprise, most: 6 });
  }

  function fill() {
    state.job?.drop();
    const steps = Number(sampler.value) || null;
    const way = { temperature: Number(bold.value), sampler: steps ? "exact" : sampler.value, steps };
    const body = { picture: wire(), n: MANY, model: state.model, seed: numberIn(seed, null), ...way };
    if (state.fills?.bits) compared.add(state.fills);
    state.fills = null;
    sessionStorage.setItem(WAY, JSON.stringify(way));
    delete results.dataset.done;
    state.job = shown(status, (handlers) => begin("picture", "/api/pictures/fill", body, handlers), filling(way));
  }

  /** What to do with the fills of a job, drawn in this way. */
  function filling(way) {
    return {
      frame: ({ pictures, known }) => {
        const bytes = pictures.map(unpack);
        const channels = bytes[0].length / (state.picture.width * state.picture.height);
        state.fills = { pictures: bytes, channels, hidden: unpack(known).map((one) => (one ? 0 : 1)) };
        redraw();
      },
      done: (found) => {
        state.fills = { ...found, ...way, width: state.picture.width, height: state.picture.height, pictures: found.pictures.map(unpack), hidden: null };
        account.fill = found.how;
        results.dataset.done = "yes";
        redraw();
      },
    };
  }

  /** After a reload: the picture as it was, and its fills as they come; false if there was none of this model. */
  function again() {
    const { model: key, picture } = JSON.parse(sessionStorage.getItem(KEY) ?? "{}");
    if (!picture || key !== model.key) return false;
    set(picture, unpack(picture.erased));
    state.job = shown(status, (handlers) => resume("picture", handlers), filling(JSON.parse(sessionStorage.getItem(WAY) ?? "{}")));
    return true;
  }

  async function take(file) {
    if (!state.about?.there) return;
    try {
      another(await upload(`/api/pictures/upload?width=${state.about.width}&height=${state.about.height}`, file));
      show(status);
    } catch (error) {
      show(status, h("p", { class: "message bad", role: "alert" }, error.message));
    }
  }

  async function load() {
    await modelsOf("images"); // by now one of them is chosen
    fillButton.disabled = true;
    state.job?.drop();
    state.about = await get(`/api/pictures/about?model=${encodeURIComponent(model.key)}`);
    if (!state.about.there) return none(place);
    const goesOn = again(); // before the examples, which may take longer than a job goes on with nobody watching
    const found = await get(`/api/pictures/examples?model=${encodeURIComponent(model.key)}`);
    const small = found.pictures.map((one, n) => {
      const canvas = pictureCanvas(one.width, one.height, `Picture ${n + 1}`);
      paint(canvas, { ...one, bytes: unpack(one.pixels) });
      return h("button", { type: "button", "aria-label": `Choose picture ${n + 1}`, onclick: () => another(one) }, canvas);
    });
    show(gallery, small, fileChoice("Open", "A picture to open", "image/png,image/jpeg,image/webp,image/bmp,image/gif", take, "small"));
    if (goesOn) return;
    set(found.pictures[0]);
    mask.half("bottom");
  }

  const settings = h("div", { class: "settings" }, h("label", { class: "field short" }, "Seed", seed), h("label", { class: "field" }, h("span", {}, "Temperature ", said), bold), h("label", { class: "field" }, "Sampler and steps", sampler));
  show(place,
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Picture"), h("p", {}, "Paint away what you like; what stays is never changed.")), model.element),
    gallery,
    h("div", { class: "columns picture-columns" },
      h("section", { class: "card", "aria-label": "The picture" }, h("div", { class: "body stack" }, mask.canvas, mask.controls, h("div", { class: "row spread" }, figure, howButton(() => account.score)))),
      h("div", { class: "stack" },
        h("section", { class: "card", "aria-label": "Completions" },
          h("div", { class: "head" }, fillButton, h("div", { class: "row" }, h("div", { class: "segments", role: "group", "aria-label": "What is laid over" }, overlays), howButton(() => account.fill))),
          status, show(results, canvases.map((canvas, n) => h("figure", {}, canvas, captions[n]))), line, settings), compared.element)));
  load().catch((error) => show(status, h("p", { class: "message bad", role: "alert" }, error.message)));
  const undrop = onDrop(take);
  const repaint = () => (redraw(), compared.draw());
  addEventListener("themechange", repaint);
  return () => {
    undrop();
    state.job?.leave();
    removeEventListener("themechange", repaint);
  };
}

/** What to do where there is no model of pictures. */
function none(place) {
  show(place, h("h1", {}, "Picture"), h("section", { class: "card" }, h("div", { class: "body stack" },
    h("p", {}, "There is no model of pictures here yet. Train one on a folder of pictures, then start the studio with it:"),
    h("pre", { tabindex: 0 }, "anyfill image train PICTURES -o my-pictures\nanyfill studio --model my-pictures"))));
}
