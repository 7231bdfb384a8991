/** Small pictures on canvases: bytes to pixels, and colours laid over them. */
import { h } from "../dom.js";

export const unpack = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
export const pack = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));

/** A canvas of a picture's own size; the page shows it larger, pixel by pixel. */
export function pictureCanvas(width, height, label) {
  return h("canvas", { width, height, class: "pixels", role: "img", "aria-label": label });
}

/**
 * Draw a picture {width, height, channels, bytes}.
 * hidden: a byte for each pixel that shows a pattern instead; heat: numbers laid over it, up to `most`.
 */
export function paint(canvas, picture, { hidden = null, heat = null, most = 1 } = {}) {
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(picture.width, picture.height);
  const css = getComputedStyle(document.documentElement);
  const hatch = parse(css.getPropertyValue("--tint"));
  const mark = parse(css.getPropertyValue("--tint-line"));
  for (let n = 0; n < picture.width * picture.height; n++) {
    const [x, y] = [n % picture.width, Math.floor(n / picture.width)];
    let colour = picture.channels === 3 ? [picture.bytes[3 * n], picture.bytes[3 * n + 1], picture.bytes[3 * n + 2]] : [picture.bytes[n], picture.bytes[n], picture.bytes[n]];
    if (hidden?.[n]) colour = (x + y) % 2 ? hatch : mark;
    if (heat) colour = warmed(colour, Math.min(1, heat[y][x] / most));
    image.data.set([...colour, 255], 4 * n);
  }
  pen.putImageData(image, 0, 0);
}

/** A colour with so much heat laid over it. */
function warmed(colour, share) {
  if (share <= 0.01) return colour.map((one) => one * 0.55);
  const hot = [255, 190 - 150 * share, 60 - 40 * share];
  return colour.map((one, n) => one * (0.45 - 0.3 * share) + hot[n] * (0.25 + 0.6 * share));
}

function parse(colour) {
  const text = colour.trim().replace("#", "");
  return [0, 2, 4].map((n) => parseInt(text.slice(n, n + 2), 16));
}
