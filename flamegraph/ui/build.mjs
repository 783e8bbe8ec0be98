// Bundles src/main.js with its libraries into ../assets/page.js and page.css,
// which the Go package embeds. The licences of what is bundled go to the top
// of page.js, each text once.
import { readFileSync, existsSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const result = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.js"],
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome100", "firefox100", "safari15"],
  charset: "ascii",
  legalComments: "none",
  outfile: "../assets/page.js",
  metafile: true,
  write: false,
});

const packages = new Set();
for (const file of Object.keys(result.metafile.inputs)) {
  const found = file.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (found) packages.add(found[1]);
}
const byText = new Map();
for (const name of [...packages].sort()) {
  const folder = `${here}node_modules/${name}/`;
  const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"].map((f) => folder + f).find(existsSync);
  if (!file) throw new Error(`${name}: no licence file`);
  const text = readFileSync(file, "utf8").trim().replaceAll("*/", "* /");
  const version = JSON.parse(readFileSync(folder + "package.json", "utf8")).version;
  byText.set(text, [...(byText.get(text) ?? []), `${name} ${version}`]);
}
const licences = [...byText].map(([text, names]) => `${names.join(", ")}\n\n${text}`).join("\n\n----\n\n");

for (const file of result.outputFiles) {
  const head = file.path.endsWith(".js") ? `/*\n${licences}\n*/\n` : "";
  if (/<\/script|<!--/i.test(head + file.text)) throw new Error(`${file.path}: would end the page's script`);
  writeFileSync(file.path, head + file.text);
}
