/** Files to keep: the filled table, draws of it, scores, a report. */
import { blob, save } from "../api.js";
import { begin } from "../job.js";
import { makeMenu } from "../menu.js";
import { shown } from "../progress.js";

const FILES = [["filled", ".csv", "Filled table (CSV)"], ["filled", ".parquet", "Filled table (Parquet)"], ["filled", ".xlsx", "Filled table (Excel)"], ["draws", ".csv", "Twenty draws of it (CSV)"], ["scores", ".csv", "Scores of all cells (CSV)"], ["report", ".csv", "Report (HTML)"]];

export function downloadMenu(about, status) {
  function fetchFile(what, suffix) {
    shown(status, (handlers) => begin("table download", `/api/tables/${about().table}/download`, { what, suffix, seed: about().filled?.seed ?? 0 }, handlers), {
      done: async (made) => save(await blob(`/api/tables/${about().table}/files/${made.file}`), made.name),
    });
  }

  const element = makeMenu("Download", FILES.map(([what, suffix, words]) => [words, () => fetchFile(what, suffix)]));
  element.hidden = true;
  return { element };
}
