/**
 * Long work: begun by a POST, watched event by event, taken up again after a reload, cancelled by a button.
 *
 * The page chooses the key of its job and keeps what it asks until it is answered. A page that is reloaded in between asks
 * again with that key: the server begins the job if it has not heard of it, and names the same one if it has.
 */
import { get, post, randomName, remove } from "./api.js";

const TRIES = 4; // to be connected again

/**
 * Begin a job and watch it.
 * on: {progress(data), NAME(data) for parts, done(result), failed(sentence), cancelled()}. The name is that of the page:
 * after a reload `resume` with the same name goes on watching.
 */
export async function begin(name, path, body, on) {
  const asked = { key: randomName(), path, body };
  try {
    sessionStorage.setItem(`asked ${name}`, JSON.stringify(asked));
  } catch {
    sessionStorage.removeItem(`asked ${name}`); // no room to keep it: it is asked all the same
  }
  try {
    await ask(name, asked);
  } catch (error) {
    on.failed?.(error.message);
    return null;
  }
  return watch(name, asked.key, on);
}

async function ask(name, { key, path, body }) {
  try {
    await post(path, body, { "X-Job": key });
  } catch (error) {
    if (error.status) forget(name, key); // without an answer it is kept: a page that is being reloaded comes here, too
    throw error;
  }
  forget(name, key);
  sessionStorage.setItem(`job ${name}`, key);
}

const unanswered = (name) => JSON.parse(sessionStorage.getItem(`asked ${name}`) ?? "null");

/** Watch the job that this page had begun before it was reloaded, if there still is one; null otherwise. */
export async function resume(name, on) {
  const asked = unanswered(name);
  const key = asked?.key ?? sessionStorage.getItem(`job ${name}`);
  if (!key) return null;
  try {
    await (asked ? ask(name, asked) : get(`/api/jobs/${key}`));
  } catch (error) {
    if (error.status) forget(name, key);
    return null;
  }
  return watch(name, key, on);
}

/** Forget the job of a page, or only that of this key where another may have been begun since: no reload brings it back. */
export function forget(name, key = null) {
  if (!key || sessionStorage.getItem(`job ${name}`) === key) sessionStorage.removeItem(`job ${name}`);
  if (!key || unanswered(name)?.key === key) sessionStorage.removeItem(`asked ${name}`);
}

/** Whether this page had begun a job that may still be known. */
export const isBegun = (name) => ["job", "asked"].some((what) => sessionStorage.getItem(`${what} ${name}`) !== null);

function watch(name, key, on) {
  const source = new EventSource(`/api/jobs/${key}/events`);
  const end = (act) => {
    source.close();
    act();
  };
  let lost = 0;
  const failed = (words) => end(() => on.failed?.(words));
  source.addEventListener("open", () => (lost = 0));
  source.addEventListener("error", () => { // the job is not forgotten: a page that is being reloaded comes here, too
    if (source.readyState === EventSource.CLOSED) failed("This job is not known any more.");
    else if (++lost === TRIES) failed("The studio does not answer: has it been ended?");
  });
  const known = new Set(["progress", "done", "failed", "cancelled"]);
  for (const part of Object.keys(on).filter((one) => !known.has(one))) {
    source.addEventListener(part, (event) => on[part](JSON.parse(event.data)));
  }
  source.addEventListener("progress", (event) => on.progress?.(JSON.parse(event.data)));
  source.addEventListener("done", (event) => end(() => on.done?.(JSON.parse(event.data))));
  source.addEventListener("failed", (event) => (forget(name, key), failed(JSON.parse(event.data).detail)));
  source.addEventListener("cancelled", () => end(() => (forget(name, key), on.cancelled?.())));
  return {
    cancel: () => remove(`/api/jobs/${key}`).catch(() => {}),
    leave: () => source.close(),
  };
}
