// Decodes the page's data and builds the trees that the chart draws.

export const kinds = ["unknown", "native", "kernel", "lua", "trace", "builtin", "vm", "pcre"];

export function load() {
  return JSON.parse(document.getElementById("profile").textContent);
}

// build sums the cells whose label set passes into a tree of plain objects:
// name, kind, value (with all below), self, base and baseSelf (the same in the
// base), children, up, depth. The root's list holds them all, parents first:
// stacks may be deeper than the script's own, so nothing here recurses.
export function build(page, reversed, passes) {
  const t = reversed ? page.up : page.down;
  const list = [];
  t.frame.forEach((frame, i) => list.push(node(page, frame, list[t.parent[i]])));
  for (let i = 0; i < t.cells.length; i += 5) {
    const [n, set, narrow, value, base] = t.cells.slice(i, i + 5);
    if (!passes(set)) continue;
    const at = narrow ? narrowChild(page, list[n]) : list[n];
    at.self += value;
    at.value += value;
    at.base += base;
    at.baseSelf += base;
  }
  for (const n of list.slice()) if (n.narrow) list.push(n.narrow);
  for (let i = list.length - 1; i > 0; i--) {
    const up = list[i].up;
    up.value += list[i].value;
    up.base += list[i].base;
    if (list[i].value > 0 || list[i].base > 0) up.children.push(list[i]);
  }
  list[0].list = list;
  return list[0];
}

const ROOT = -1;
const NARROW = -2;

function node(page, frame, up) {
  const n = { up, depth: up ? up.depth + 1 : 0, frame, value: 0, self: 0, base: 0, baseSelf: 0, children: [] };
  if (frame === ROOT) return Object.assign(n, { name: "all", kind: "root" });
  if (frame === NARROW) return Object.assign(n, { name: "(narrow frames)", kind: "narrow" });
  const [name, kind, , image] = page.frames[frame];
  return Object.assign(n, { name, kind: kinds[kind], image });
}

function narrowChild(page, n) {
  n.narrow ??= node(page, NARROW, n);
  return n.narrow;
}

// table sums self and total by frame over a tree of callees. A frame that
// calls itself counts once in a stack's total.
export function table(tree) {
  const rows = new Map();
  for (const n of tree.list) {
    if (n.frame < 0) continue;
    const row = rows.get(n.frame) ?? [n.frame, 0, 0, 0, 0];
    rows.set(n.frame, row);
    row[1] += n.self;
    row[3] += n.baseSelf;
    let outer = n.up;
    while (outer && outer.frame !== n.frame) outer = outer.up;
    if (outer) continue;
    row[2] += n.value;
    row[4] += n.base;
  }
  return [...rows.values()];
}

export function matcher(term) {
  const plain = term.toLowerCase();
  let re = null;
  try {
    re = new RegExp(term, "i");
  } catch {
    // An incomplete expression is searched as plain text.
  }
  return (s) => s.toLowerCase().includes(plain) || (re !== null && re.test(s));
}

// matched sums the outermost matching frames: what lies below one of them is
// counted already. self is the time in the matching frames themselves.
export function matched(tree, hit) {
  const covered = new Set();
  const sums = { sum: 0, self: 0, count: 0 };
  for (const n of tree.list) {
    const inside = covered.has(n.up);
    const found = n.frame >= 0 && n.value > 0 && hit(n.name);
    if (inside || found) covered.add(n);
    if (!found) continue;
    sums.count++;
    sums.self += n.self;
    if (!inside) sums.sum += n.value;
  }
  return sums;
}
