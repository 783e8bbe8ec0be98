// The flame graph itself: d3-flame-graph with our colours, history and keys.

import { select } from "d3-selection";
import flamegraph from "d3-flame-graph";
import { byId } from "./dom.js";
import { byChangeMapper, byKindMapper } from "./color.js";
import { percent, points, share, value } from "./text.js";

const MIN_PIXELS = 0.7;
const ROW = 18;

export class Chart {
  constructor(page, changed) {
    this.page = page;
    this.changed = changed;
    this.box = byId("chart");
    this.box.addEventListener("focusin", (e) => this.detail(e.target.__data__));
  }

  // draw shows a tree from the start: no zoom, no history.
  draw(tree, icicle) {
    this.tree = tree;
    this.icicle = icicle;
    this.history = [];
    this.chart?.destroy();
    const chart = flamegraph()
      .width(this.box.clientWidth)
      .height(ROW * this.levels(tree))
      .cellHeight(ROW)
      .minFrameSize(MIN_PIXELS)
      .transitionDuration(0)
      .inverted(icicle)
      .sort(true)
      .setLabelHandler((d) => this.describe(d.data))
      .setColorMapper(this.page.diff ? byChangeMapper((n) => this.change(n), this.mostChange()) : byKindMapper)
      .setDetailsElement(byId("details"))
      .setDetailsHandler((text) => this.say(text))
      .onClick((d) => this.zoomed(d));
    this.chart = chart;
    select(this.box).datum(tree).call(chart);
    this.root = select(this.box).datum();
    this.at = this.focus = this.root;
    this.tabStop();
    this.changed();
  }

  // levels counts the rows that have a frame wide enough to be seen.
  levels(tree) {
    const least = (tree.value * MIN_PIXELS) / this.box.clientWidth;
    return 1 + tree.list.reduce((most, n) => (n.value > least ? Math.max(most, n.depth) : most), 0);
  }

  change(n) {
    return share(n.value, this.tree.value) - share(n.base, this.tree.base);
  }

  mostChange() {
    return this.tree.list.reduce((most, n) => (n.value > 0 ? Math.max(most, Math.abs(this.change(n))) : most), 0);
  }

  describe(n) {
    let s = `${n.name} · ${n.kind === "root" ? "" : `${n.kind}${n.image ? ` in ${n.image}` : ""} · `}`;
    s += `${value(n.value, this.page.unit)}, ${percent(share(n.value, this.tree.value))}`;
    if (n.self > 0 && n.self < n.value) s += `, itself ${percent(share(n.self, this.tree.value))}`;
    if (this.page.diff) s += `, base ${percent(share(n.base, this.tree.base))}, change ${points(this.change(n))} points`;
    return s;
  }

  say(text) {
    byId("details").textContent = text || byId("details").dataset.idle;
  }

  detail(d) {
    if (d?.data) this.say(this.describe(d.data));
  }

  // zoomed is told of every zoom, by click or by call.
  zoomed(d) {
    if (!this.returning && d !== this.at) this.history.push(this.at);
    this.at = d;
    this.focusOn(d, true);
    this.changed();
  }

  zoom(d) {
    if (d !== this.at) this.chart.zoomTo(d);
  }

  back() {
    const d = this.history.pop();
    if (!d) return false;
    this.returning = true;
    this.chart.zoomTo(d);
    this.returning = false;
    return true;
  }

  reset() {
    this.zoom(this.root);
  }

  // search marks the frames itself: the library's own search recurses, and
  // counts what is zoomed away as nothing.
  search(hit) {
    for (const d of this.root.descendants()) d.highlight = hit !== null && d.data.frame >= 0 && hit(d.data.name);
    this.chart.update();
    this.tabStop();
  }

  resize() {
    if (!this.chart || this.chart.width() === this.box.clientWidth) return;
    this.chart.width(this.box.clientWidth).update();
    this.tabStop();
  }

  element(d) {
    for (const g of this.box.querySelectorAll("g.frame")) if (g.__data__ === d) return g;
    return null;
  }

  // tabStop keeps exactly one frame reachable with Tab; arrows do the rest.
  tabStop() {
    for (const g of this.box.querySelectorAll("g.frame[tabindex]")) g.removeAttribute("tabindex");
    (this.element(this.focus) ?? this.box.querySelector("g.frame"))?.setAttribute("tabindex", "0");
  }

  // focusOn moves the focus; a click must not make the page jump.
  focusOn(d, still = false) {
    if (!d) return;
    this.focus = d;
    this.tabStop();
    this.element(d)?.focus({ preventScroll: still });
  }

  visible(d) {
    return d.value > 0 && ((d.x1 - d.x0) / (this.root.x1 - this.root.x0)) * this.chart.width() > MIN_PIXELS;
  }

  // move goes to the frame that a key points at.
  move(key) {
    const outward = (key === "ArrowDown") === this.icicle;
    if (key === "ArrowLeft" || key === "ArrowRight") this.focusOn(this.neighbour(key === "ArrowLeft" ? -1 : 1));
    else if (!outward) this.focusOn(this.focus.parent);
    else this.focusOn((this.focus.children ?? []).filter((c) => this.visible(c)).sort((a, b) => b.value - a.value)[0]);
  }

  neighbour(step) {
    const level = this.root.descendants().filter((d) => d.depth === this.focus.depth && (d === this.focus || this.visible(d)));
    level.sort((a, b) => a.x0 - b.x0);
    return level[level.indexOf(this.focus) + step];
  }
}
