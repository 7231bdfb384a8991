/** Asking the server: JSON out, JSON in; a sentence where something cannot be done; patience where there is no room. */
import { toast } from "./toast.js";

/** A name that nobody can guess. */
export const randomName = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (n) => n.toString(16).padStart(2, "0")).join("");
const TAB = (sessionStorage.tab ??= randomName());
const PATIENCE = 60;

/** What the server says when it cannot do a thing; its status is 0 where the server said nothing at all. */
export class Refusal extends Error {
  constructor(words, status = 0) {
    super(words);
    this.status = status;
  }
}

async function answer(path, options = {}) {
  for (let turn = 0; ; turn++) {
    const headers = { "X-Tab": TAB, ...options.headers };
    const response = await fetch(path, { ...options, headers }).catch((error) => {
      if (error.name === "AbortError") throw error;
      throw new Refusal("The studio does not answer: has it been ended?");
    });
    if (response.status === 429 && turn < PATIENCE) {
      if (turn === 0) toast("Many are at work: waiting for a free place …");
      const wait = Number(response.headers.get("Retry-After") ?? 1) * 1000;
      await new Promise((go) => setTimeout(go, wait * (0.5 + Math.random())));
      continue;
    }
    if (!response.ok) throw new Refusal(sentence(await response.json().catch(() => ({})), response.status), response.status);
    return response;
  }
}

function sentence(body, status) {
  if (typeof body.detail === "string") return body.detail;
  if (Array.isArray(body.detail)) return body.detail.map((one) => `${one.loc.slice(1).join(" ")}: ${one.msg}`).join("; ");
  return `The studio answered ${status}.`;
}

export const get = async (path, options) => (await answer(path, options)).json();
export const blob = async (path, options) => (await answer(path, options)).blob();

/** Send JSON, get JSON. */
export async function post(path, body = {}, headers = {}) {
  const how = { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) };
  return (await answer(path, how)).json();
}

/** The same where a file comes back. */
export async function postForBlob(path, body = {}) {
  const how = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return (await answer(path, how)).blob();
}

/** Send a file. */
export async function upload(path, file) {
  const form = new FormData();
  form.append("file", file);
  return (await answer(path, { method: "POST", body: form })).json();
}

export const remove = async (path) => (await answer(path, { method: "DELETE" })).json();

/** Have the browser keep a file. */
export function save(content, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
