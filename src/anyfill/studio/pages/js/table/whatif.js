/** What if: pin values of a row, change them, and watch the distributions of the others move. */
import { post } from "../api.js";
import { calm, h, short, show } from "../dom.js";
import { howButton } from "../how.js";
import { distribution } from "./plot.js";

export function makeWhatIf(about) {
  let row = -1;
  let table = "";
  let changes = {};
  let items = new Map();
  let turn = 0;
  let account = null;
  const status = h("p", { class: "faint ask-status", role: "status" });

  const ask = calm(60, async () => {
    const mine = ++turn;
    try {
      const found = await post(`/api/tables/${about().table}/whatif`, { row, changes });
      if (mine !== turn) return;
      account = found.how;
      status.textContent = "";
      for (const [name, item] of items) item.tell(found.given[name], found.answers[name]);
    } catch (error) {
      if (mine === turn) status.textContent = error.message;
    }
  });

  function itemOf(column) {
    const pin = h("input", { type: "checkbox" });
    const value = h("input", { class: "plain", "aria-label": `Value of ${column.name}`, list: column.levels.length ? `levels ${column.name}` : undefined });
    const said = h("span", { class: "said" });
    const picture = h("div", { class: "picture" });
    const element = h("div", { class: "item" }, h("label", { class: "check", title: column.name }, pin, column.name), value, said, picture);
    if (column.levels.length) element.append(h("datalist", { id: `levels ${column.name}` }, column.levels.map((level) => h("option", { value: level }))));
    picture.style.gridColumn = "1 / -1";
    let best = "";
    pin.addEventListener("change", () => {
      changes[column.name] = pin.checked ? value.value || best : null;
      ask();
    });
    value.addEventListener("input", () => {
      changes[column.name] = value.value.trim() === "" ? null : value.value;
      ask();
    });
    return {
      element,
      tell(given, answer) {
        pin.checked = given !== undefined;
        value.hidden = !pin.checked;
        said.hidden = pin.checked;
        if (pin.checked && document.activeElement !== value) value.value = given;
        if (answer) best = String(answer.value ?? "");
        said.textContent = answer ? short(answer.value) : "";
        show(picture, answer ? distribution(answer, { tall: 74 }) : []);
      },
    };
  }

  return {
    show(place, next) {
      if (next !== row || table !== about().table) {
        changes = {};
        row = next;
        table = about().table;
      }
      const modelled = about().columns.filter((one) => one.kind !== "ignore" && one.inferred !== "ignored");
      items = new Map(modelled.map((column) => [column.name, itemOf(column)]));
      const free = h("button", { class: "button small", type: "button", onclick: () => ((changes = Object.fromEntries(modelled.map((one) => [one.name, null]))), ask()) }, "Forget all");
      const back = h("button", { class: "button small", type: "button", onclick: () => ((changes = {}), ask()) }, "As in the table");
      show(place, h("div", { class: "stack" },
        h("div", { class: "row spread" }, h("h2", {}, `Row ${row + 1}`), howButton(() => account)),
        h("p", { class: "faint" }, "Ticked values are given. Change or untick one, and the distributions of the others move."), h("div", { class: "row" }, back, free),
        status, h("div", { class: "whatif" }, [...items.values()].map((one) => one.element))));
      ask();
    },
  };
}
