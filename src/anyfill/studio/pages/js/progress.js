/** How far a job is, with a button to cancel it. */
import { h } from "./dom.js";

/** For those who do not see the bar, and what comes in its place. */
const say = (words) => (document.getElementById("said").textContent = words);

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

/**
 * Run a job with its progress shown in `place`; the same handlers as `begin`, which `launch` is given, and missing()
 * where there is no job to take up again.
 * What comes back is there at once, before the studio has answered: a second click finds it, and leaving the page does.
 */
export function shown(place, launch, on) {
  let job = null;
  let wanted = true;
  let isHeard = true;
  const cancel = () => {
    wanted = false;
    job?.cancel();
  };
  const leave = () => {
    isHeard = false;
    job?.leave();
  };
  const bar = progressBar(cancel);
  place.replaceChildren(bar.element);
  bar.element.scrollIntoView({ block: "nearest" }); // on a phone it may lie below the button
  const clear = () => bar.element.remove();
  const all = {
    ...on,
    progress: (data) => (bar.tell(data), on.progress?.(data)),
    done: (data) => (clear(), say("Done."), on.done?.(data)),
    failed: (words) => {
      clear();
      say(""); // the sentence is an alert
      on.failed ? on.failed(words) : place.replaceChildren(h("p", { class: "message bad", role: "alert" }, words));
    },
    cancelled: () => (clear(), say("Cancelled."), on.cancelled?.()),
  };
  const handlers = Object.fromEntries(Object.entries(all).map(([name, act]) => [name, (data) => isHeard && act(data)]));
  launch(handlers).then((found) => {
    job = found;
    if (found && isHeard) say("Working …");
    if (!found) (clear(), on.missing?.());
    else if (!wanted) job.cancel();
    else if (!isHeard) job.leave();
  });
  return {
    cancel,
    leave,
    /** Cancel it without a word, because another takes its place. */
    drop() {
      isHeard = false;
      clear();
      cancel();
    },
  };
}
