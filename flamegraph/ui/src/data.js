// Decodes the page's data and builds the trees that the chart draws.

export const kinds = ["unknown", "native", "kernel", "lua", "trace", "builtin", "vm", "pcre"];
const NARROW = -1;

export function load() {
  return JSON.parse(document.getElementById("profile").textContent);
}

// build sums the cells whose label set passes into a tree of plain objects:
// name, kind, value (with all below), self, base and baseSelf
// (the same in the base), children.
export function build(page, reversed, passes) {
  const t = reversed ? page.up : page.down;
  const nodes = t.frame.map((frame, i) => node(page, frame, i === 0));
  for (let i = 0; i < t.cells.length; i += 5) {
    const [n, set, narrow, value, base] = t.cells.slice(i, i + 5);
    if (!passes(set)) continue;
    const at = narrow ? narrowChild(nodes[n]) : nodes[n];
    at.self += value;
    at.value += value;
    at.base += base;
    at.baseSelf += base;
    if (narrow) {
      nodes[n].value += value;
      nodes[n].base += base;
    }
  }
  for (let i = nodes.length - 1; i > 0; i--) {
    const up = nodes[t.parent[i]];
    up.value += nodes[i].value;
    up.base += nodes[i].base;
    if (nodes[i].value > 0 || nodes[i].base > 0) up.children.unshift(nodes[i]);
  }
  for (const n of nodes) if (n.narrow) n.children.push(n.narrow);
  return nodes[0];
}

function node(page, frame, isRoot) {
  if (isRoot) return { name: "all", kind: "root", frame: -2, value: 0, self: 0, base: 0, baseSelf: 0, children: [] };
  const [name, kind, place, image] = page.frames[frame];
  return { name, kind: kinds[kind], place, image, frame, value: 0, self: 0, base: 0, baseSelf: 0, children: [] };
}

function narrowChild(n) {
  n.narrow ??= { name: "(narrow frames)", kind: "narrow", frame: NARROW, value: 0, self: 0, base: 0, baseSelf: 0, children: [] };
  return n.narrow;
}

// table sums self and total by frame over a tree of callees. A frame that
// calls itself counts once in a stack's total.
export function table(page, tree) {
  const rows = new Map();
  const open = new Map();
  (function visit(n) {
    const counted = n.frame < 0 || open.get(n.frame) > 0;
    let row;
    if (n.frame >= 0) {
      row = rows.get(n.frame) ?? [n.frame, 0, 0, 0, 0];
      rows.set(n.frame, row);
      row[1] += n.self;
      row[3] += n.baseSelf;
      if (!counted) {
        row[2] += n.value;
        row[4] += n.base;
      }
      open.set(n.frame, (open.get(n.frame) ?? 0) + 1);
    }
    n.children.forEach(visit);
    if (n.frame >= 0) open.set(n.frame, open.get(n.frame) - 1);
  })(tree);
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
// counted already.
export function matched(tree, hit) {
  let sum = 0;
  let count = 0;
  (function visit(n, covered) {
    const found = n.frame >= 0 && n.value > 0 && hit(n.name);
    if (found) {
      count++;
      if (!covered) sum += n.value;
    }
    n.children.forEach((c) => visit(c, covered || found));
  })(tree, false);
  return { sum, count };
}
