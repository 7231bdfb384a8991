/** What should be measured next, to learn about a target; with costs. */
import { post } from "../api.js";
import { h, show } from "../dom.js";
import { howButton } from "../how.js";

export function makeNext(about) {
  let target = "";
  let fresh = true;
  const costs = {};

  return {
    show(place, row) {
      const columns = about().columns.filter((one) => one.kind !== "ignore" && one.inferred !== "ignored");
      if (!columns.some((one) => one.name === target)) target = columns[0].name;
      const select = h("select", { class: "plain", "aria-label": "What is to be learnt" }, columns.map((one) => h("option", { value: one.name }, one.name)));
      select.value = target;
      const all = h("input", { type: "checkbox", checked: fresh, onchange: () => (fresh = all.checked) });
      const results = h("div", { class: "stack" });

      async function ask() {
        target = select.value;
        const changes = all.checked ? Object.fromEntries(columns.map((one) => [one.name, null])) : {};
        show(results, h("p", { class: "faint" }, "Thinking …"));
        try {
          const found = await post(`/api/tables/${about().table}/next`, { row, target, changes, costs });
          show(results, ranking(found));
        } catch (error) {
          show(results, h("p", { class: "message bad", role: "alert" }, error.message));
        }
      }

      function ranking(found) {
        const { best, candidates } = found.rows[0];
        if (!candidates.length) return h("p", { class: "soft" }, "Everything else in this row is known. Tick “as if nothing were known yet” to plan for a new case.");
        const most = Math.max(...candidates.map((one) => one.gain / one.cost), 1e-9);
        const lines = candidates.map((one) => {
          const cost = h("input", { class: "plain", type: "number", min: 0.01, step: "any", value: one.cost, "aria-label": `Cost of ${one.column}`, style: { width: "74px", minHeight: "28px" }, onchange: () => ((costs[one.column] = Number(cost.value) || 1), ask()) });
          return h("div", {}, h("span", { title: one.column }, one.column), h("span", { class: "track", title: `${one.gain.toFixed(3)} ± ${one.stderr.toFixed(3)} nats` }, h("i", { style: { width: `${(100 * Math.max(0, one.gain / one.cost)) / most}%` } })), cost);
        });
        return [h("p", {}, best ? h("span", {}, "Measure ", h("b", {}, best), " next.") : "Nothing left is worth its cost."), h("div", { class: "levels priced" }, lines), h("div", { class: "row spread" }, h("p", { class: "faint" }, "Bars: expected information per cost. Right: what it costs."), howButton(() => found.how))];
      }

      select.addEventListener("change", ask);
      all.addEventListener("change", ask);
      show(place, h("div", { class: "stack" }, h("h2", {}, "What to measure next"), h("label", { class: "field" }, `To learn, in row ${row + 1}`, select), h("label", { class: "check" }, all, "as if nothing were known yet"), results));
      ask();
    },
  };
}
