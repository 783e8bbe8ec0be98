// Numbers as people read them.

const scales = {
  nanoseconds: [["ns", "µs", "ms", "s"], 1000],
  microseconds: [["µs", "ms", "s"], 1000],
  milliseconds: [["ms", "s"], 1000],
  bytes: [["B", "KiB", "MiB", "GiB", "TiB"], 1024],
};

export function value(v, unit) {
  const scale = scales[unit];
  if (!scale) return `${v.toLocaleString("en-US")} ${unit === "count" || unit === "" ? (v === 1 ? "sample" : "samples") : unit}`;
  const [units, step] = scale;
  let i = 0;
  while (Math.abs(v) >= step && i < units.length - 1) {
    v /= step;
    i++;
  }
  return `${+v.toPrecision(4)} ${units[i]}`;
}

export const share = (part, whole) => (whole > 0 ? part / whole : 0);
export const percent = (s) => `${(100 * s).toFixed(2)} %`;
export const points = (s) => {
  const text = Math.abs(100 * s).toFixed(2);
  return /[1-9]/.test(text) ? `${s > 0 ? "+" : "−"}${text}` : text;
};
