/** The shell: which page is shown. Pages are loaded when they are first visited. */
import { h, show } from "./dom.js";
import "./drop.js";
import { hide } from "./how.js";
import { startTheme } from "./theme.js";

const PAGES = [
  ["table", "Table", () => import("./table/page.js")],
  ["chorale", "Chorale", () => import("./chorale/page.js")],
  ["picture", "Picture", () => import("./picture/page.js")],
  ["text", "Text", () => import("./text/page.js")],
  ["translation", "Translation", () => import("./translation/page.js")],
];
let leave = null;
let turn = 0;

async function visit() {
  const name = location.hash.replace(/^#\/?/, "").split("?")[0] || PAGES[0][0];
  const [key, title, load] = PAGES.find(([one]) => one === name) ?? PAGES[0];
  const mine = ++turn;
  hide();
  leave?.();
  leave = null;
  for (const link of document.querySelectorAll("#tabs a")) {
    if (link.dataset.page === key) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${title} · anyfill studio`;
  const main = document.getElementById("main");
  try {
    const page = await load();
    if (mine !== turn) return; // another was chosen meanwhile
    const place = h("div", { class: `page ${key}-page` });
    show(main, place);
    scrollTo(0, 0);
    const left = await page.open(place);
    if (mine === turn) leave = left ?? null;
    else left?.();
  } catch (error) {
    console.error(error);
    if (mine === turn) show(main, h("p", { class: "message bad", role: "alert" }, "This page cannot be shown: has the studio been ended? Start it and reload."));
  }
}

startTheme();
show(document.getElementById("tabs"), PAGES.map(([key, title]) => h("a", { href: `#/${key}`, "data-page": key }, title)));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // #main is no page
  document.getElementById("main").focus();
});
addEventListener("hashchange", visit);
visit();
