/** Files that are dropped anywhere in the window: a page takes them while it is open. */

let take = null;
let mark = () => {};

/** From now on `take` gets what is dropped, and `mark` hears whether something hovers; returns how to end that. */
export function onDrop(taken, marked = () => {}) {
  take = taken;
  mark = marked;
  return () => {
    take = null;
    mark = () => {};
  };
}

for (const [event, hovers] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
  addEventListener(event, (happened) => {
    happened.preventDefault(); // or the browser would leave the studio for the file
    mark(hovers && take !== null);
    if (event === "drop" && happened.dataTransfer.files.length) take?.(happened.dataTransfer.files[0]);
  });
}
