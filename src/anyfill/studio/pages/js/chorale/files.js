/** Files in and out: MIDI, MusicXML, WAV, a picture. */
import { postForBlob, save, upload } from "../api.js";
import { h } from "../dom.js";
import { icon } from "../icons.js";
import { toast } from "../toast.js";

const KINDS = [["midi", ".mid", "MIDI"], ["musicxml", ".musicxml", "MusicXML"], ["wav", ".wav", "Sound (WAV)"], ["png", ".png", "Picture (PNG)"]];

export function fileButtons(state, opened) {
  const choose = h("input", { type: "file", accept: ".mid,.midi,.musicxml,.xml,.mxl", hidden: true, "aria-label": "A piece to open", onchange: () => take(choose.files[0]) });
  const list = h("div", { class: "card", role: "menu", hidden: true }, KINDS.map(([kind, suffix, words]) => h("button", { type: "button", role: "menuitem", onclick: () => keep(kind, suffix) }, words)));
  const button = h("button", { class: "button", type: "button", "aria-haspopup": "menu", "aria-expanded": "false", onclick: () => open(list.hidden) }, icon("down"), "Export");
  const menu = h("div", { class: "menu" }, button, list);

  function open(yes) {
    list.hidden = !yes;
    button.setAttribute("aria-expanded", String(yes));
    if (yes) list.querySelector("button").focus();
  }

  async function keep(kind, suffix) {
    open(false);
    try {
      const content = await postForBlob("/api/chorale/export", { kind, piece: state.piece });
      save(content, `${(state.piece.title || "chorale").replace(/[^\w-]+/g, "_")}${suffix}`);
    } catch (error) {
      toast(error.message, "bad");
    }
  }

  async function take(file) {
    if (!file) return;
    try {
      const found = await upload("/api/chorale/upload", file);
      opened(found);
      for (const remark of found.remarks) toast(remark);
    } catch (error) {
      toast(error.message, "bad");
    }
  }

  document.addEventListener("click", (event) => menu.contains(event.target) || open(false));
  menu.addEventListener("keydown", (event) => event.key === "Escape" && (open(false), button.focus()));
  return { elements: [h("button", { class: "button", type: "button", onclick: () => choose.click() }, icon("up"), "Open"), choose, menu], take };
}
