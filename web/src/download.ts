// Files to keep: the rows that are selected as CSV, the map as PNG and SVG.

import { forEachRow, paintPoints } from "./canvas";
import type { Colouring, Marks } from "./colouring";
import { pencil, shape } from "./dom";
import type { Dots } from "./drawing";
import { paintNames, type Scene } from "./overlay";
import type { Palette } from "./palette";
import { NAMELESS, type Table } from "./table";
import { toScreen } from "./view";

// As in src/gnomon/data/write.py: spreadsheets take cells that begin like this for formulas.
const FORMULA = /^(?:[\p{Z}\p{C}]*[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b]|[\t\r\n])/u;

/** The rows with their number, id, labels and trust, one line each. */
export async function csv(table: Table, rows: Iterable<number>): Promise<string> {
  const columns: { name: string; cell: (row: number) => string }[] = [
    { name: "row", cell: (row) => String(row) },
  ];
  const { ids, idName } = table;
  if (ids && idName !== null) columns.push({ name: idName, cell: (row) => text(ids[row]) });
  for (const { group, load } of table.choices) {
    if (group !== "Labels" && group !== "Trust") continue;
    const field = await load();
    columns.push({
      name: group === "Trust" ? "trust" : field.name,
      cell:
        field.kind === "category"
          ? (row) => nameCell(field.names[field.codes[row]])
          : (row) => (Number.isNaN(field.values[row]) ? "" : String(Number(field.values[row].toPrecision(6)))),
    });
  }
  const lines = [columns.map(({ name }) => text(name)).join()];
  for (const row of rows) lines.push(columns.map(({ cell }) => cell(row)).join());
  return `${lines.join("\n")}\n`;
}

function nameCell(name: string | undefined): string {
  return name === undefined || name === NAMELESS ? "" : text(name);
}

function text(cell: string): string {
  return `"${(FORMULA.test(cell) ? `'${cell}` : cell).replaceAll('"', '""')}"`;
}

const TWICE = 2; // pixels of a picture for one of the screen

/** The map as it is seen, with the names of the groups. */
export function png(scene: Scene, marks: Marks, dots: Dots): Promise<Blob | null> {
  const canvas = document.createElement("canvas");
  canvas.width = TWICE * scene.size.width;
  canvas.height = TWICE * scene.size.height;
  const context = pencil(canvas);
  const image = context.createImageData(canvas.width, canvas.height);
  paintPoints(image, scene.map, marks, scene.view, scene.size, dots, TWICE);
  context.putImageData(image, 0, 0);
  context.scale(TWICE, TWICE);
  paintNames(context, scene);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/** The same as SVG: one path a colour, and a list of the groups' names beside it. */
export function svg(scene: Scene, marks: Marks, dots: Dots, colouring: Colouring, title: string): string {
  const { map, view, size, palette } = scene;
  const legend = colouring.groups.filter((group) => group.name);
  const height = Math.max(size.height, 40 + 22 * legend.length);
  const width = size.width + (legend.length ? 220 : 0);
  const root = shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
  root.append(shape("title", {}, title));
  root.append(shape("rect", { width, height, fill: palette.surface }));
  const paths = marks.colours.map(() => [] as string[]);
  forEachRow(map.x.length, marks, (row) => {
    const [x, y] = toScreen(view, size, map.x[row], map.y[row]);
    if (x < 0 || y < 0 || x > size.width || y > size.height) return;
    // A line of no length with a round end is a dot as wide as the line.
    paths[marks.codes[row]].push(`M${round(x)} ${round(y)}h0`);
  });
  const points = shape("g", {
    fill: "none", "stroke-linecap": "round", "stroke-width": round(dots.across), "stroke-opacity": round(dots.opacity),
  });
  // Colours of rows that are not selected come after the others and are drawn under them.
  for (let code = paths.length - 1; code >= 0; code--) {
    if (paths[code].length) points.append(shape("path", { stroke: marks.colours[code], d: paths[code].join("") }));
  }
  root.append(points, ...legendOf(legend, size.width + 12, palette));
  return new XMLSerializer().serializeToString(root);
}

function legendOf(groups: Colouring["groups"], left: number, palette: Palette): SVGElement[] {
  return groups.flatMap(({ name, colour }, i) => {
    const y = 28 + 22 * i;
    const style = { x: left + 16, y: y + 4.5, fill: palette.ink, "font-family": "sans-serif", "font-size": 13 };
    const dot = shape("circle", { cx: left + 5, cy: y, r: 5, fill: colour });
    return [dot, shape("text", style, name.slice(0, 28))];
  });
}

const round = (value: number) => Math.round(10 * value) / 10;

/** Hand `content` to the browser as a file. */
export function save(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
