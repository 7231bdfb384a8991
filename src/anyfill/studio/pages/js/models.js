/** The choice among the models of a room; nothing is shown where there is no choice. */
import { get } from "./api.js";
import { h, show } from "./dom.js";

let all = null;

/** The models of a room, as {key, name}. */
export async function modelsOf(room) {
  all ??= get("/api/models").catch(() => []);
  return (await all).filter((one) => one.room === room);
}

/** A place for the choice, and the key that is chosen. */
export function modelChoice(room, changed = () => {}) {
  const place = h("span", {});
  const choice = { element: place, key: sessionStorage.getItem(`model ${room}`) ?? "" };
  const choose = (key) => sessionStorage.setItem(`model ${room}`, (choice.key = key));
  modelsOf(room).then((models) => {
    const before = choice.key;
    if (!models.some((one) => one.key === before)) choose(models[0]?.key ?? ""); // that of another studio, or none yet
    if (before && before !== choice.key) changed();
    if (models.length < 2) return;
    const select = h("select", { onchange: () => (choose(select.value), changed()) }, models.map((one) => h("option", { value: one.key }, one.name)));
    select.value = choice.key;
    show(place, h("label", { class: "field" }, "Model", select));
  });
  return choice;
}
