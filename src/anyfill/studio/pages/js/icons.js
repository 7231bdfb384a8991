/** Small pictures, drawn here: lines of 24 x 24. */
import { svg } from "./dom.js";

const PATHS = {
  sun: "M12 4V2M12 22v-2M4 12H2M22 12h-2M6 6 4.6 4.6M19.4 19.4 18 18M6 18l-1.4 1.4M19.4 4.6 18 6M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0Z",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z",
  play: "M7 4.5v15l12-7.5Z", stop: "M6 6h12v12H6Z", close: "M6 6l12 12M18 6 6 18",
  undo: "M9 7 4 12l5 5M4 12h11a5 5 0 0 1 0 10h-3", redo: "m15 7 5 5-5 5M20 12H9a5 5 0 0 0 0 10h3",
  draw: "m4 20 1-4L16 5l3 3L8 19ZM14 7l3 3", erase: "m8 20-5-5L14 4l6 6-9 10H8M21 20H11M9 9l6 6", hand: "M12 3v18M3 12h18M12 3 9 6M12 3l3 3M12 21l-3-3M12 21l3-3M3 12l3-3M3 12l3 3M21 12l-3-3M21 12l-3 3",
  lock: "M6 11h12v9H6ZM9 11V8a3 3 0 0 1 6 0v3", region: "M4 8V4h4M16 4h4v4M20 16v4h-4M8 20H4v-4M9 9h6v6H9Z",
  question: "M9.5 9a2.5 2.5 0 1 1 3.6 2.3c-.8.4-1.1.9-1.1 1.7M12 17h.01M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z",
  down: "M12 4v12m-5-5 5 5 5-5M5 20h14", up: "M12 20V8m-5 5 5-5 5 5M5 4h14", spark: "M12 3v5M12 16v5M3 12h5M16 12h5M6 6l3 3M15 15l3 3M18 6l-3 3M9 15l-3 3",
  copy: "M9 9h11v11H9ZM5 15H4V4h11v1", check: "m5 13 4 4L19 7", brush: "M20 4 10 14M8 14c-3 0-3 3-5 5 4 1 8 0 8-3 0-1-1-2-3-2Z", square: "M4 4h16v16H4Z", half: "M4 4h16v16H4ZM12 4v16",
};

/** The picture of this name. */
export function icon(name) {
  const filled = name === "play" || name === "stop";
  const shape = svg("path", { d: PATHS[name], fill: filled ? "currentColor" : "none", stroke: "currentColor", "stroke-width": 1.8, "stroke-linecap": "round", "stroke-linejoin": "round" });
  return svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, shape);
}
