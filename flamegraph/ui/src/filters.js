// The label filters: one choice per key, all of which must hold.

import { el } from "./dom.js";

// addFilters puts a select for each key into box and returns a function that
// returns the test of a set, or null when nothing is filtered.
export function addFilters(box, page, changed) {
  const { keys, values, sets } = page.labels;
  const selects = keys.map((key, k) => {
    const select = el("select", { "aria-label": `Filter by ${key}`, "data-key": key }, [el("option", { value: "" }, "any")]);
    values[k].forEach((v, i) => select.append(el("option", { value: String(i) }, v)));
    select.addEventListener("change", changed);
    box.append(el("label", {}, [el("span", {}, key), select]));
    return select;
  });
  box.hidden = keys.length === 0;
  return () => {
    const wanted = selects.map((s) => (s.value === "" ? -1 : +s.value));
    if (wanted.every((w) => w < 0)) return null;
    return (set) => wanted.every((w, k) => w < 0 || sets[set][k] === w);
  };
}
