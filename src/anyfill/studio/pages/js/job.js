/** Long work: begun by a POST, watched event by event, taken up again after a reload, cancelled by a button. */
import { get, post, remove } from "./api.js";

const TRIES = 4; // to be connected again

/**
 * Begin a job and watch it.
 * on: {progress(data), NAME(data) for parts, done(result), failed(sentence), cancelled()}. The name is that of the page:
 * after a reload `resume` with the same name goes on watching.
 */
export async function begin(name, path, body, on) {
  let started;
  try {
    started = await post(path, body);
  } catch (error) {
    on.failed?.(error.message);
    return null;
  }
  sessionStorage.setItem(`job ${name}`, started.job);
  return watch(name, started.job, on);
}

/** Watch the job that this page had begun before it was reloaded, if there still is one; null otherwise. */
export async function resume(name, on) {
  const key = sessionStorage.getItem(`job ${name}`);
  if (!key) return null;
  try {
    await get(`/api/jobs/${key}`);
  } catch {
    sessionStorage.removeItem(`job ${name}`);
    return null;
  }
  return watch(name, key, on);
}

/** Forget the job of a page: its result is not wanted after the next reload. */
export const forget = (name) => sessionStorage.removeItem(`job ${name}`);

/** Whether this page had begun a job that may still be known. */
export const isBegun = (name) => sessionStorage.getItem(`job ${name}`) !== null;

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
  source.addEventListener("failed", (event) => (forget(name), failed(JSON.parse(event.data).detail)));
  source.addEventListener("cancelled", () => end(() => (forget(name), on.cancelled?.())));
  return {
    cancel: () => remove(`/api/jobs/${key}`).catch(() => {}),
    leave: () => source.close(),
  };
}
