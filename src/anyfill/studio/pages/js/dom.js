/** Elements from words: h("button", {class: "main", onclick: go}, "Fill"). Text is always text, never markup. */
export function h(name, props = {}, ...children) {
  return dress(document.createElement(name), props, children);
}

/** The same for pictures made of shapes. */
export function svg(name, props = {}, ...children) {
  return dress(document.createElementNS("http://www.w3.org/2000/svg", name), props, children);
}

function dress(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("aria-") && typeof value === "boolean") element.setAttribute(name, String(value));
    else if (value === undefined || value === null || value === false) continue;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "value" && "value" in element) element.value = value;
    else if (name === "checked" || name === "disabled" || name === "hidden") element[name] = Boolean(value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

/** Put these in the place of everything in an element. */
export function show(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

/** Call back when nothing more has happened for a while. */
export function calm(milliseconds, action) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), milliseconds);
  };
}

/** A number as people write it. */
export function short(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
  return String(Number(value.toPrecision(digits)));
}

/** What a field for a number says, or this where nothing is in it; what is too much or too little is refused, not mended. */
export const numberIn = (field, otherwise) => (field.value === "" ? otherwise : Number(field.value));

export const percent = (share) => (share >= 0.0995 ? `${(100 * share).toFixed(0)} %` : share >= 0.0001 ? `${(100 * share).toFixed(2)} %` : "< 0.01 %");

/** A class for so many bits of surprise; the same steps as the command line's colours. */
export const surpriseClass = (bits) => (bits < 1 ? "s0" : bits < 3 ? "s1" : bits < 6 ? "s2" : bits < 10 ? "s3" : "s4");
