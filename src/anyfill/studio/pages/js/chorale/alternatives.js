/** Alternatives side by side: they appear one by one, each to be listened to and taken. */
import { h, show, svg } from "../dom.js";
import { howButton } from "../how.js";
import { icon } from "../icons.js";
import { VOICES } from "./state.js";

const APART = 420;

export function makeAlternatives(player, take) {
  const list = h("div", { class: "alternatives" });
  const foot = h("div", { class: "row spread" });
  const element = h("section", { class: "card alternatives-card", hidden: true, "aria-label": "Alternatives" }, h("div", { class: "head" }, h("h2", {}, "Alternatives"), foot), list);
  let waiting = [];
  let timer = 0;
  let isOld = false; // those that are there were asked for before

  function next() {
    timer = 0;
    const piece = waiting.shift();
    if (!piece) return;
    element.hidden = false;
    list.append(card(piece));
    if (list.children.length === 1) element.scrollIntoView({ block: "nearest", behavior: "smooth" });
    timer = setTimeout(next, APART);
  }

  function card(piece) {
    const listen = h("button", { class: "button small", type: "button", onclick: () => player.play(piece) }, icon("play"), "Listen");
    const use = h("button", { class: "button small", type: "button", onclick: () => (mark(one), take(piece)) }, icon("check"), "Take");
    const one = h("article", { class: "alternative", "aria-label": `Alternative ${piece.number}` }, thumbnail(piece), h("div", { class: "row spread" }, h("span", { class: "faint" }, `${piece.number} · ${piece.key || ""}`), h("span", { class: "row" }, listen, use)));
    return one;
  }

  function mark(one) {
    for (const other of list.children) other.classList.toggle("taken", other === one);
  }

  /** Nothing is there, and nothing is shown before the first of them comes. */
  function clear() {
    clearTimeout(timer);
    timer = 0;
    waiting = [];
    show(list);
    show(foot);
    element.hidden = true;
    stale(false);
  }

  function stale(yes) {
    isOld = yes;
    list.setAttribute("aria-busy", String(yes));
  }

  return {
    element,
    clear,
    /** Others are asked for: those that are there stay, dimmed, until the first of them comes. */
    begin: () => stale(true),
    add(piece) {
      if (isOld) clear();
      waiting.push(piece);
      if (!timer) next();
    },
    /** No others will come. */
    rest: () => stale(false),
    /** All have come, and this is how. */
    end(found) {
      show(foot, h("span", { class: "faint" }, `seed ${found.seed}`), howButton(() => found.how));
      for (const remark of found.remarks ?? []) foot.prepend(h("span", { class: "faint" }, remark));
    },
  };
}

/** A piece in small. */
function thumbnail(piece) {
  const pitches = piece.voices.flat().map((note) => note.pitch);
  const [low, high] = [Math.min(...pitches) - 1, Math.max(...pitches) + 1];
  const rects = piece.voices.flatMap((line, voice) => line.map((note) => svg("rect", { x: note.start, y: (high - note.pitch) * 2, width: Math.max(0.6, note.length - 0.3), height: 1.8, rx: 0.4, class: VOICES[voice] })));
  return svg("svg", { class: "thumbnail", viewBox: `0 0 ${piece.steps} ${(high - low + 1) * 2}`, preserveAspectRatio: "none", role: "img", "aria-label": `${piece.steps / piece.bar} bars in ${piece.key || "four voices"}` }, rects);
}
