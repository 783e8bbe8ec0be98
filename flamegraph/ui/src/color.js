// Colours of frames: by kind, or by change against the base.

const byKind = {
  unknown: "#b4b8bf",
  native: "#f3b95f",
  kernel: "#ee8a6b",
  lua: "#6cb2ee",
  trace: "#ab98f0",
  builtin: "#5ec7b5",
  vm: "#e59ac9",
  pcre: "#b3c65a",
  root: "#c3c7ce",
  narrow: "#d5d8dd",
};
const hit = "#e93d82";

export function kindColor(kind) {
  return byKind[kind] ?? byKind.unknown;
}

export function byKindMapper(d) {
  return d.highlight ? hit : shade(kindColor(d.data.kind), d.data.name);
}

// shade lightens a colour by one of three steps that depend on the name, so
// that neighbours differ and a function looks the same everywhere.
function shade(color, name) {
  let h = 0;
  for (let i = 0; i < name.length; i++) h = (31 * h + name.charCodeAt(i)) | 0;
  const light = [0, 0.09, 0.18][(h >>> 4) % 3];
  const part = (i) => parseInt(color.slice(i, i + 2), 16);
  return `rgb(${[1, 3, 5].map((i) => Math.round(part(i) + (255 - part(i)) * light)).join()})`;
}

// byChangeMapper goes from grey to red for a larger share and to blue for a
// smaller one; most is the largest change in the tree.
export function byChangeMapper(change, most) {
  return (d) => (d.highlight ? hit : changeColor(change(d.data) / (most || 1)));
}

export function changeColor(c) {
  const grey = [217, 220, 225];
  const to = c < 0 ? [84, 143, 240] : [232, 80, 70];
  const t = Math.abs(c) < 0.002 ? 0 : Math.sqrt(Math.min(Math.abs(c), 1));
  return `rgb(${grey.map((g, i) => Math.round(g + (to[i] - g) * t)).join()})`;
}
