import "./page.css";
import { build, load, matched, matcher, table } from "./data.js";
import { Chart } from "./chart.js";
import { byId } from "./dom.js";
import { addFilters } from "./filters.js";
import { Table } from "./table.js";
import { percent, share } from "./text.js";

const page = load();
const all = () => true;
const view = { icicle: false, reversed: false };
let tree;

const chart = new Chart(page, () => {
  byId("back").disabled = chart.history.length === 0;
  byId("reset").disabled = chart.at === chart.root;
});
const top = new Table(page, (name) => {
  byId("search").value = name;
  search();
});
const filter = addFilters(byId("filters"), page, rebuild);

function rebuild() {
  const passes = filter();
  tree = build(page, view.reversed, passes ?? all);
  chart.draw(tree, view.icicle);
  if (passes) {
    const callees = view.reversed ? build(page, false, passes) : tree;
    top.show(table(callees), callees.value, callees.base);
  } else {
    top.show(page.top, page.total, page.baseTotal);
  }
  byId("filtered").hidden = !passes;
  byId("filtered").textContent = passes
    ? `The filter shows ${percent(share(tree.value, page.total))} of the profile. Sums in the table are those of the frames in the graph.`
    : "";
  byId("empty").hidden = tree.value > 0;
  search();
}

function search() {
  const term = byId("search").value;
  const hit = term ? matcher(term) : null;
  chart.search(hit);
  top.filter(hit);
  if (!hit) {
    byId("match").textContent = "";
    return;
  }
  const { sum, self, count } = matched(tree, hit);
  byId("match").textContent = `matched ${percent(share(sum, tree.value))}, itself ${percent(share(self, tree.value))}, in ${count.toLocaleString("en-US")} ${count === 1 ? "frame" : "frames"}`;
}

function toggle(name, id) {
  byId(id).addEventListener("click", () => {
    view[name] = !view[name];
    byId(id).setAttribute("aria-pressed", String(view[name]));
    rebuild();
  });
}

function key(e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const box = byId("search");
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
  const inChart = chart.box.contains(document.activeElement);
  if (e.key === "Escape") {
    if (box.value) {
      box.value = "";
      search();
      box.blur();
    } else if (typing) e.target.blur();
    else chart.back();
  } else if (typing) return;
  else if (e.key === "/") box.focus();
  else if (e.key === "0") chart.reset();
  else if (e.key === "Backspace") chart.back();
  else if (e.key === "i") byId("icicle").click();
  else if (e.key === "r") byId("reversed").click();
  else if (inChart && (e.key === "Enter" || e.key === " ")) chart.zoom(chart.focus);
  else if (inChart && e.key.startsWith("Arrow")) chart.move(e.key);
  else return;
  e.preventDefault();
}

let pending = 0;
byId("search").addEventListener("input", () => {
  clearTimeout(pending);
  pending = setTimeout(search, 80);
});
byId("back").addEventListener("click", () => chart.back());
byId("reset").addEventListener("click", () => chart.reset());
toggle("icicle", "icicle");
toggle("reversed", "reversed");
document.addEventListener("keydown", key);
window.addEventListener("resize", () => chart.resize());
rebuild();
