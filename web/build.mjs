// Builds script, style and notice of the page and of the notebook's widget into src/gnomon/report/assets.
// With --check nothing is written: it fails where the committed files are not what the source gives.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "..", "src", "gnomon", "report", "assets");

const options = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  write: false,
  charset: "ascii", // a page in any encoding reads the same script
  legalComments: "none", // the licences stand in NOTICE.txt
  logLevel: "warning",
};

async function script(from, format) {
  const built = await build({
    ...options,
    entryPoints: [from],
    format,
    target: ["es2022"],
    // The same without checks of our own calls, a third smaller.
    alias: { regl: "regl/dist/regl.unchecked.js" },
  });
  return built.outputFiles[0].text;
}

async function style(from) {
  const built = await build({ ...options, entryPoints: [from] });
  return built.outputFiles[0].text;
}

// The licences of every package that the script may hold a part of. regl-scatterplot comes with its
// own dependencies inside, and with parts of two packages that it does not name as such.
async function notice() {
  const lock = JSON.parse(await readFile(join(here, "package-lock.json"), "utf8"));
  const folders = Object.entries(lock.packages)
    .filter(([folder, about]) => folder && !about.dev)
    .map(([folder]) => folder);
  const parts = ["page.js and widget.js hold parts of these packages, under these licences."];
  for (const folder of folders.sort()) {
    const about = JSON.parse(await readFile(join(here, folder, "package.json"), "utf8"));
    const licence = (await readdir(join(here, folder))).find((file) => /^licen[cs]e/i.test(file));
    if (!licence) throw new Error(`${about.name} has no licence file`);
    const text = await readFile(join(here, folder, licence), "utf8");
    parts.push(`${about.name} ${about.version} (${about.license})\n\n${text.trim()}`);
  }
  parts.push((await readFile(join(here, "inlined-licences.txt"), "utf8")).trim());
  return `${parts.join(`\n\n${"-".repeat(72)}\n\n`).replaceAll("\r\n", "\n")}\n`;
}

const outputs = {
  "page.js": await script("src/main.ts", "iife"),
  "page.css": await style("src/style.css"),
  "widget.js": await script("src/widget.ts", "esm"),
  "widget.css": await style("src/widget.css"),
  "NOTICE.txt": await notice(),
};
// A page is one file without addresses; a script that ends early would end the page's own script.
for (const [name, content] of Object.entries(outputs)) {
  if (name !== "NOTICE.txt" && /<\/script|<!--|registry\.|sourceMappingURL/i.test(content)) {
    throw new Error(`${name} holds text that must not stand in a page`);
  }
}

if (process.argv.includes("--check")) {
  for (const [name, content] of Object.entries(outputs)) {
    const committed = await readFile(join(assets, name), "utf8").catch(() => "");
    if (committed !== content) {
      console.error(`src/gnomon/report/assets/${name} is not what web/ gives: run make page.`);
      process.exitCode = 1;
    }
  }
} else {
  for (const [name, content] of Object.entries(outputs)) {
    await writeFile(join(assets, name), content);
    console.log(`${name}  ${content.length.toLocaleString("en")} bytes`);
  }
}
