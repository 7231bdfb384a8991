/** Files in and out: MIDI, MusicXML, WAV, a picture. */
import { postForBlob, save, upload } from "../api.js";
import { fileChoice } from "../drop.js";
import { makeMenu } from "../menu.js";
import { toast } from "../toast.js";

const KINDS = [["midi", ".mid", "MIDI"], ["musicxml", ".musicxml", "MusicXML"], ["wav", ".wav", "Sound (WAV)"], ["png", ".png", "Picture (PNG)"]];

export function fileButtons(state, opened) {
  async function keep(kind, suffix) {
    try {
      const content = await postForBlob("/api/chorale/export", { kind, piece: state.piece });
      save(content, `${(state.piece.title || "chorale").replace(/[^\w-]+/g, "_")}${suffix}`);
    } catch (error) {
      toast(error.message, "bad");
    }
  }

  async function take(file) {
    try {
      const found = await upload("/api/chorale/upload", file);
      opened(found);
      for (const remark of found.remarks) toast(remark);
    } catch (error) {
      toast(error.message, "bad");
    }
  }

  const choose = fileChoice("Open", "A piece to open", ".mid,.midi,.musicxml,.xml,.mxl", take);
  return { elements: [choose, makeMenu("Export", KINDS.map(([kind, suffix, words]) => [words, () => keep(kind, suffix)]))], take };
}
