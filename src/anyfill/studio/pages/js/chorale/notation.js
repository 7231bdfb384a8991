/** The engraved score: pages of SVG from the server, shown as pictures. */
import { post } from "../api.js";
import { h, show } from "../dom.js";

export function makeNotation(state) {
  const element = h("div", { class: "notation", hidden: true });
  let urls = [];
  let turn = 0;

  function forget() {
    urls.forEach((url) => URL.revokeObjectURL(url));
    urls = [];
  }

  return {
    element,
    async draw() {
      if (element.hidden) return;
      const mine = ++turn;
      try {
        const { pages } = await post("/api/chorale/notation", { piece: state.piece });
        if (mine !== turn) return;
        forget();
        urls = pages.map((page) => URL.createObjectURL(new Blob([page], { type: "image/svg+xml" })));
        show(element, urls.map((url, n) => h("img", { src: url, alt: `The score, page ${n + 1}` })));
      } catch (error) {
        show(element, h("p", { class: "message bad", role: "alert" }, error.message));
      }
    },
    leave: forget,
  };
}
