/** How far a job is, with a button to cancel it. */
import { h } from "./dom.js";

export function progressBar(cancel) {
  const words = h("span", {}, "Starting …");
  const bar = h("i");
  const stop = h("button", { class: "button small", type: "button", onclick: cancel }, "Cancel");
  const track = h("div", { class: "track", role: "progressbar", "aria-label": "Progress", "aria-valuemin": 0, "aria-valuemax": 100 }, bar);
  const element = h("div", { class: "progress" }, words, stop, track);
  return {
    element,
    tell({ what, share, words: more }) {
      const said = what ? what[0].toUpperCase() + what.slice(1) : "Working";
      words.textContent = more ? `${said}: ${more}` : said;
      bar.style.width = `${100 * share}%`;
      track.setAttribute("aria-valuenow", Math.round(100 * share));
    },
  };
}

/** Run a job with its progress shown in `place`; the same handlers as `begin`, which `launch` is given. */
export function shown(place, launch, on) {
  let job = null;
  let wanted = true;
  const bar = progressBar(() => {
    wanted = false;
    job?.cancel();
  });
  place.replaceChildren(bar.element);
  const clear = () => bar.element.remove();
  const handlers = {
    ...on,
    progress: (data) => (bar.tell(data), on.progress?.(data)),
    done: (data) => (clear(), on.done?.(data)),
    failed: (words) => {
      clear();
      on.failed ? on.failed(words) : place.replaceChildren(h("p", { class: "message bad", role: "alert" }, words));
    },
    cancelled: () => (clear(), on.cancelled?.()),
  };
  return launch(handlers).then((found) => {
    job = found;
    if (!found) clear.call(null, on.missing?.());
    else if (!wanted) job.cancel();
    return found;
  });
}
