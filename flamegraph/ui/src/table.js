// The table of functions with self and total.

import { byId, el } from "./dom.js";
import { kindColor } from "./color.js";
import { kinds } from "./data.js";
import { percent, points, share, value } from "./text.js";

const ROWS = 50;

export class Table {
  constructor(page, pick) {
    this.page = page;
    this.pick = pick;
    this.sort = 1;
    this.limit = ROWS;
    this.rows = [];
    this.hit = null;
    this.columns = [
      ["Function", 0], ["Self", 1], ["", 1], ["Total", 2], ["", 2],
      ...(page.diff ? [["Self, base", 3], ["Self, change", 5], ["Total, base", 4], ["Total, change", 6]] : []),
    ];
    byId("more").addEventListener("click", () => {
      this.limit += 10 * ROWS;
      this.draw();
    });
    this.head();
  }

  head() {
    byId("top-head").replaceChildren(
      ...this.columns.map(([name, key]) => {
        const cell = el("th", { scope: "col" });
        if (name === "") {
          cell.className = "amount";
          return cell;
        }
        const button = el("button", { type: "button" }, name);
        button.addEventListener("click", () => {
          this.sort = key;
          this.draw();
        });
        cell.append(button);
        cell.dataset.key = key;
        return cell;
      }),
    );
  }

  // show takes rows of frame, self, total, base self, base total and the sums
  // that the shares refer to.
  show(rows, total, baseTotal) {
    this.total = total;
    this.rows = rows.map(([f, self, all, baseSelf, baseAll]) => [
      f, self, all, share(baseSelf, baseTotal), share(baseAll, baseTotal),
      share(self, total) - share(baseSelf, baseTotal), share(all, total) - share(baseAll, baseTotal),
    ]);
    this.draw();
  }

  filter(hit) {
    this.hit = hit;
    this.draw();
  }

  draw() {
    const name = (r) => this.page.frames[r[0]][0];
    const rows = this.hit ? this.rows.filter((r) => this.hit(name(r))) : this.rows.slice();
    const by = this.sort === 0 ? (a, b) => (name(a) < name(b) ? -1 : 1) : (a, b) => b[this.sort] - a[this.sort];
    rows.sort(by);
    byId("top-body").replaceChildren(...rows.slice(0, this.limit).map((r) => this.row(r)));
    byId("more").hidden = rows.length <= this.limit;
    byId("more").textContent = `Show more (${rows.length - this.limit} left)`;
    for (const th of byId("top-head").children) {
      th.toggleAttribute("aria-sort", false);
      if (+th.dataset.key === this.sort) th.setAttribute("aria-sort", this.sort === 0 ? "ascending" : "descending");
    }
  }

  row(r) {
    const [label, kind, , image] = this.page.frames[r[0]];
    const dot = el("i", { class: "dot", style: `background:${kindColor(kinds[kind])}` });
    const button = el("button", { type: "button", title: image ? `${label} in ${image}` : label }, [dot, label]);
    button.addEventListener("click", () => this.pick(label));
    const tr = el("tr", {}, [el("td", {}, [button])]);
    for (const v of [r[1], r[2]]) {
      const s = share(v, this.total);
      tr.append(el("td", { class: "n" }, [el("span", { class: "meter", style: `--w:${(100 * s).toFixed(1)}%` }, percent(s))]));
      tr.append(el("td", { class: "n muted amount" }, value(v, this.page.unit)));
    }
    if (this.page.diff) {
      tr.append(el("td", { class: "n" }, percent(r[3])), changed(r[5]));
      tr.append(el("td", { class: "n" }, percent(r[4])), changed(r[6]));
    }
    return tr;
  }
}

// changed is the cell of a change; what rounds to nothing has no colour.
function changed(s) {
  const text = points(s);
  return el("td", { class: /[1-9]/.test(text) ? `n ${s > 0 ? "more" : "less"}` : "n muted" }, text);
}
