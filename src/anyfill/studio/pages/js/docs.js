/** The API as its own description has it: every route, what it takes, and a way to try it. */
import { h, show } from "./dom.js";
import { startTheme } from "./theme.js";

function example(schema, all, depth = 0) {
  if (!schema || depth > 6) return null;
  if (schema.$ref) return example(all[schema.$ref.split("/").pop()], all, depth + 1);
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return example(schema.anyOf[0], all, depth + 1);
  if (schema.type === "object") return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, one]) => [name, example(one, all, depth + 1)]));
  if (schema.type === "array") return [];
  return { string: "", integer: schema.minimum ?? 0, number: schema.minimum ?? 0, boolean: false }[schema.type] ?? null;
}

function route(path, method, about, all) {
  const schema = about.requestBody?.content?.["application/json"]?.schema;
  const url = h("input", { class: "plain", value: path, "aria-label": "Address" });
  const body = schema && h("textarea", { "aria-label": "Body, as JSON", value: JSON.stringify(example(schema, all), null, 2) });
  const result = h("pre", { hidden: true, tabindex: 0 });
  const go = async () => {
    const how = { method: method.toUpperCase() };
    if (body) Object.assign(how, { headers: { "Content-Type": "application/json" }, body: body.value });
    const answer = await fetch(url.value, how);
    const text = await answer.text();
    result.hidden = false;
    result.textContent = `${answer.status}\n${text.slice(0, 20000)}`;
  };
  const names = (about.parameters ?? []).map((one) => h("li", {}, h("code", {}, one.name), ` (${one.in}) ${one.schema?.description ?? one.description ?? ""}`));
  const isFile = Boolean(about.requestBody?.content?.["multipart/form-data"]);
  return h("details", { class: "card" },
    h("summary", {}, h("span", { class: "method" }, method.toUpperCase()), h("code", {}, path), h("span", { class: "soft" }, about.summary ?? "")),
    h("div", { class: "about" }, about.description && h("p", { class: "soft" }, about.description), names.length ? h("ul", {}, names) : null,
      schema && [h("h3", {}, "Body"), body], isFile && h("p", { class: "faint" }, "Takes a file, as multipart/form-data under the name “file”."),
      !isFile && h("div", { class: "row" }, url, h("button", { class: "button small", type: "button", onclick: go }, "Try it")), result));
}

startTheme();
const described = await (await fetch("/api/openapi.json")).json();
const groups = new Map();
for (const [path, methods] of Object.entries(described.paths)) {
  for (const [method, about] of Object.entries(methods)) {
    const tag = about.tags?.[0] ?? "other";
    groups.set(tag, [...(groups.get(tag) ?? []), route(path, method, about, described.components?.schemas ?? {})]);
  }
}
show(document.getElementById("main"), h("h1", {}, described.info.title, " API"), h("p", { class: "soft" }, described.info.description),
  [...groups].map(([tag, routes]) => [h("h2", {}, tag), h("div", { class: "routes" }, routes)]));
