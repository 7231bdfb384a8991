/** The shell: which page is shown. Pages are loaded when they are first visited. */
import { h, show } from "./dom.js";
import "./drop.js";
import { startTheme } from "./theme.js";

const PAGES = [
  ["table", "Table", () => import("./table/page.js")],
  ["chorale", "Chorale", () => import("./chorale/page.js")],
  ["picture", "Picture", () => import("./picture/page.js")],
  ["text", "Text", () => import("./text/page.js")],
  ["translation", "Translation", () => import("./translation/page.js")],
];
let leave = null;

async function visit() {
  const name = location.hash.replace(/^#\/?/, "").split("?")[0] || PAGES[0][0];
  const [key, title, load] = PAGES.find(([one]) => one === name) ?? PAGES[0];
  if (name === "main") return; // the skip link
  leave?.();
  leave = null;
  for (const link of document.querySelectorAll("#tabs a")) {
    if (link.dataset.page === key) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${title} · anyfill studio`;
  const main = document.getElementById("main");
  const page = await load();
  const place = h("div", { class: `page ${key}-page` });
  show(main, place);
  leave = (await page.open(place)) ?? null;
}

startTheme();
show(document.getElementById("tabs"), PAGES.map(([key, title]) => h("a", { href: `#/${key}`, "data-page": key }, title)));
addEventListener("hashchange", visit);
visit();
