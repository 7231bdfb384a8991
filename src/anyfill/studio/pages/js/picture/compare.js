/** Earlier fills of the same picture below the newest, each with how it was drawn: to compare side by side. */
import { h, show } from "../dom.js";
import { howButton } from "../how.js";
import { paint, pictureCanvas } from "./canvas.js";

const MOST = 3;

/** How a fill was drawn, and what that cost, in a line. */
export function told(run) {
  const way = run.steps ? `${run.steps} ${run.steps === 1 ? "step" : "steps"}` : run.sampler === "speculative" ? "speculative" : "pixel by pixel";
  const mean = run.bits.reduce((sum, one) => sum + one, 0) / run.bits.length;
  return `${way}, temperature ${run.temperature}: ${run.how.passes} passes, ${run.how.seconds.toFixed(1)} s, ${mean.toFixed(1)} bits on average, seed ${run.seed}`;
}

export function makeComparison() {
  let runs = [];
  const list = h("div", { class: "stack" });
  const element = h("section", { class: "card compared", "aria-label": "Earlier fills", hidden: true }, h("div", { class: "head" }, h("h2", {}, "Before"), h("span", { class: "soft" }, "what the settings change")), list);

  function draw() {
    element.hidden = runs.length === 0;
    show(list, runs.map((run) => {
      const canvases = run.pictures.map((bytes, n) => {
        const canvas = pictureCanvas(run.width, run.height, `Earlier completion ${n + 1}`);
        paint(canvas, { ...run, bytes });
        return canvas;
      });
      return h("div", { class: "strip" }, h("div", { class: "row spread" }, h("p", { class: "soft" }, told(run)), howButton(() => run.how)), h("div", { class: "six" }, canvases));
    }));
  }

  return {
    element,
    draw,
    /** Keep a fill that is finished, with its picture's size and how it was drawn. */
    add(run) {
      runs = [run, ...runs].slice(0, MOST);
      draw();
    },
    clear() {
      runs = [];
      draw();
    },
  };
}
