/** Light or dark: as the system has it until somebody chooses. */
import { show } from "./dom.js";
import { icon } from "./icons.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const current = () => localStorage.getItem("theme") ?? (dark.matches ? "dark" : "light");

function apply() {
  const theme = current();
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  if (!button) return;
  show(button, icon(theme === "dark" ? "sun" : "moon"));
  button.setAttribute("aria-label", `Change to the ${theme === "dark" ? "light" : "dark"} theme`);
}

export function startTheme() {
  apply();
  dark.addEventListener("change", apply);
  document.getElementById("theme")?.addEventListener("click", () => {
    localStorage.setItem("theme", current() === "dark" ? "light" : "dark");
    apply();
    dispatchEvent(new Event("themechange"));
  });
}
