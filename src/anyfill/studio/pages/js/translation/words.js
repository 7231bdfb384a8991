/** A translation as words to click: lock one, blank one, see what else could stand in its place. */
import { h, show } from "../dom.js";
import { icon } from "../icons.js";

const BLANK = "___";

export function makeWords(ask) {
  let words = [];
  let chosen = -1;
  const line = h("div", { class: "words", role: "group", "aria-label": "The translation, word by word" });
  const tools = h("div", { class: "row" });
  const others = h("ol", { class: "fills", "aria-label": "What else could stand there" });
  const element = h("div", { class: "stack" }, line, tools, others);

  function draw() {
    show(line, words.length ? words.map(one) : h("p", { class: "soft" }, "The translation will stand here. Click a word for more."));
    const word = words[chosen];
    show(tools, word ? [
      button(word.locked ? "Unlock" : "Lock", "lock", () => change({ locked: !word.locked, blank: false })),
      button(word.blank ? "Bring it back" : "Blank it", "erase", () => change({ blank: !word.blank, locked: false })),
    ] : null);
  }

  const button = (text, name, action) => h("button", { class: "button small", type: "button", onclick: action }, icon(name), text);

  function one(word, n) {
    const state = word.locked ? ", locked" : word.blank ? ", blank" : "";
    return h("button", { type: "button", class: word.locked ? "locked" : word.blank ? "blank" : "", "aria-pressed": n === chosen, "aria-label": `${word.text}${state}`, onclick: () => choose(n) }, word.blank ? BLANK : word.text);
  }

  function change(what) {
    Object.assign(words[chosen], what);
    show(others);
    draw();
  }

  function choose(n) {
    chosen = n;
    show(others);
    draw();
    line.children[n].focus();
    if (words[n].blank || words[n].locked) return;
    ask(words.map((word, k) => (k === n ? BLANK : word.text)).join(" "), (found) => chosen === n && offer(n, found));
  }

  /** What stands in the place of word n in each of the translations found. */
  function offer(n, found) {
    const after = words.length - n - 1;
    const seen = new Set([words[n].text]);
    const lines = [];
    for (const { text } of found) {
      const all = text.split(/\s+/);
      const own = all.slice(n, all.length - after).join(" ");
      if (!own || own.includes(" ") || seen.has(own)) continue; // a longer one mostly says its neighbours twice
      seen.add(own);
      lines.push(h("li", {}, h("button", { type: "button", onclick: () => put(n, own) }, h("span", { class: "share" }, "or"), h("span", {}, h("b", {}, own)))));
    }
    show(others, lines.length ? lines : h("li", { class: "soft" }, `Nothing else suits as well as “${words[n].text}”.`));
  }

  function put(n, own) {
    words.splice(n, 1, ...own.split(/\s+/).map((text) => ({ text, locked: true, blank: false })));
    chosen = -1;
    show(others);
    draw();
  }

  draw();
  return {
    element,
    /** Show a translation; words that are locked stay so. */
    set(text) {
      const locked = words.filter((word) => word.locked).map((word) => word.text);
      words = text.split(/\s+/).filter(Boolean).map((one) => {
        const at = locked.indexOf(one);
        if (at >= 0) locked.splice(at, 1);
        return { text: one, locked: at >= 0, blank: false };
      });
      chosen = -1;
      show(others);
      draw();
    },
    clear() {
      words = [];
      chosen = -1;
      show(others);
      draw();
    },
    /** The locked words, neighbours together, each with its place: "the dog@3". */
    get kept() {
      const runs = [];
      words.forEach((word, n) => {
        if (!word.locked) return;
        if (n > 0 && words[n - 1].locked) runs[runs.length - 1].text += ` ${word.text}`;
        else runs.push({ text: word.text, place: n + 1 });
      });
      return runs.map((run) => `${run.text}@${run.place}`);
    },
    /** The translation with its blanks; "" where there are none. */
    get template() {
      return words.some((word) => word.blank) ? words.map((word) => (word.blank ? BLANK : word.text)).join(" ") : "";
    },
  };
}
