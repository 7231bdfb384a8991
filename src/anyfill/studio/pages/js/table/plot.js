/** A distribution as a picture: a curve, bars of whole numbers, or levels with their probabilities. */
import { h, percent, short, svg } from "../dom.js";

/** The picture of what is known of a column; `tall` in pixels of a 360-wide picture. */
export function distribution(found, { tall = 110, draws = [] } = {}) {
  if (found.levels) return levels(found.levels);
  if (!found.curve?.length) return h("p", { class: "faint" }, `${short(found.low)} to ${short(found.high)}`);
  const wide = 360;
  const places = found.curve.map(([x]) => x);
  const [low, high] = [places[0], places[places.length - 1]];
  const at = (x) => 8 + ((x - low) / (high - low || 1)) * (wide - 16);
  const base = tall - 18;
  const up = (y) => base - y * (base - 8);
  const [mean, from, to] = found.at ?? [];
  const shape = found.bars ? bars(found.curve, at, up, base) : curve(found.curve, at, up, base, from, to);
  const marks = draws.map(Number).filter((x) => x >= low && x <= high).map((x) => svg("line", { class: "draw", x1: at(x), x2: at(x), y1: base, y2: base - 9 }));
  const label = `Likely ${short(found.value)}, 90 percent between ${short(found.low)} and ${short(found.high)}`;
  return svg("svg", { class: "plot", viewBox: `0 0 ${wide} ${tall}`, role: "img", "aria-label": label }, shape,
    mean !== undefined && mean >= low && mean <= high && svg("line", { class: "mean", x1: at(mean), x2: at(mean), y1: 4, y2: base }),
    svg("line", { class: "axis", x1: 8, x2: wide - 8, y1: base, y2: base }), marks,
    svg("text", { x: 8, y: tall - 4 }, short(low, 3)), svg("text", { x: wide - 8, y: tall - 4, "text-anchor": "end" }, short(high, 3)),
    mean !== undefined && svg("text", { x: Math.min(wide - 60, Math.max(60, at(mean))), y: tall - 4, "text-anchor": "middle" }, short(mean, 4)));
}

function curve(points, at, up, base, from, to) {
  const line = (some) => some.map(([x, y]) => `${at(x).toFixed(1)},${up(y).toFixed(1)}`).join(" L");
  const closed = (some) => (some.length ? `M${at(some[0][0])},${base} L${line(some)} L${at(some[some.length - 1][0])},${base}Z` : "");
  return [svg("path", { class: "area", d: closed(points) }), svg("path", { class: "inside", d: closed(points.filter(([x]) => x >= from && x <= to)) })];
}

function bars(points, at, up, base) {
  const wide = Math.max(2, Math.min(16, (at(points[1]?.[0] ?? points[0][0] + 1) - at(points[0][0])) * 0.7));
  return points.map(([x, y]) => svg("rect", { class: "whole", x: at(x) - wide / 2, y: up(y), width: wide, height: Math.max(0, base - up(y)), rx: 1.5 }));
}

export function levels(found) {
  const rows = found.slice(0, 8).map(([level, share]) => h("div", {}, h("span", { title: String(level) }, String(level)), h("span", { class: "track" }, h("i", { style: { width: `${100 * share}%` } })), h("b", {}, percent(share))));
  const rest = found.length > 8 ? [h("p", { class: "faint" }, `and ${found.length - 8} more`)] : [];
  return h("div", { class: "levels" }, rows, rest);
}
