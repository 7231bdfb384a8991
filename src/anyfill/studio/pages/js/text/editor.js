/** A text that is typed, with colours behind its letters: blanks, or how much each character surprises. */
import { post } from "../api.js";
import { calm, h, show, surpriseClass } from "../dom.js";
import { howButton } from "../how.js";

const BLANK = /(?<!\\)(?:_+|\[[0-9-]*\])/g;
const LEGEND = [["s0", "below 1 bit"], ["s1", "1–3"], ["s2", "3–6"], ["s3", "6–10"], ["s4", "10 and more"]];

export function makeEditor(text, model, changed) {
  const behind = h("div", { class: "behind", "aria-hidden": "true" });
  const area = h("textarea", { "aria-label": "Your text", spellcheck: "false", value: text, maxlength: 5000 });
  const seen = h("div", { class: "seen", hidden: true, tabindex: 0, role: "note", "aria-label": "The text as the model sees it, coloured by surprise" });
  const figure = h("span", { class: "faint", role: "status" });
  const how = howButton(() => account, "How?");
  let account = null;
  let turn = 0;

  const colour = calm(220, async () => {
    const own = area.value;
    const mine = ++turn;
    if (BLANK.test(own) || !own.trim()) {
      BLANK.lastIndex = 0;
      return;
    }
    try {
      const scored = await post("/api/text/score", { text: own, model: model() });
      if (mine !== turn || own !== area.value) return;
      account = scored.how;
      how.hidden = !account;
      figure.textContent = `${scored.bits_per_character.toFixed(2)} bits per character, ${scored.bits.toFixed(1)} in all`;
      paint(scored.tokens, own);
    } catch (error) {
      figure.textContent = error.message;
    }
  });

  function paint(tokens, own) {
    const places = aligned(tokens, own);
    seen.hidden = places !== null;
    if (places) show(behind, [...own].map((letter, n) => (places[n] === null ? letter : h("span", { class: surpriseClass(places[n]) }, letter))), "\n");
    else show(seen, tokens.map(([, word, bits]) => h("span", { class: surpriseClass(bits), title: `${bits.toFixed(2)} bits` }, word)));
  }

  function typed() {
    const own = area.value;
    seen.hidden = how.hidden = true;
    figure.textContent = "";
    let now = 0;
    const parts = [];
    for (const found of own.matchAll(BLANK)) {
      parts.push(own.slice(now, found.index), h("span", { class: "blank" }, found[0]));
      now = found.index + found[0].length;
    }
    show(behind, parts, own.slice(now), "\n");
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight}px`;
    changed();
    colour();
  }

  area.addEventListener("input", typed);
  const legend = h("div", { class: "legend" }, h("span", {}, "Surprise:"), LEGEND.map(([name, words]) => h("span", {}, h("i", { class: name }), words)), figure, how);
  queueMicrotask(typed);
  return {
    element: h("div", {}, h("div", { class: "editor" }, behind, area), seen, h("div", { class: "settings" }, legend)),
    colour,
    get text() {
      return area.value;
    },
    set(words) {
      area.value = words;
      typed();
      area.focus();
    },
    /** Put a blank in the place of what is selected; false if nothing is. */
    blankSelection() {
      const { selectionStart: start, selectionEnd: stop } = area;
      if (start === stop) return false;
      const blank = area.value.slice(start, stop).replace(/[^\s]/g, "_");
      area.setRangeText(blank, start, stop, "select");
      typed();
      return true;
    },
  };
}

/** For each character its bits, or null where it has none; null altogether if the model sees another text. */
function aligned(tokens, own) {
  const letters = [...own];
  if (tokens.some(([, word]) => [...word].length !== 1)) {
    if (tokens.map(([, word]) => word).join("") !== own) return null;
    return tokens.flatMap(([, word, bits]) => [...word].map(() => bits));
  }
  let next = 0;
  const found = [];
  for (const letter of letters) {
    const token = tokens[next];
    const same = token && token[1] === letter.toLowerCase();
    const folded = token && token[1] === " " && !/[\p{L}\p{N}]/u.test(letter);
    if (same || folded) next++;
    else if (/[\p{L}\p{N}]/u.test(letter)) return null;
    found.push(same || folded ? token[2] : null);
  }
  return found;
}
