// A figure for a paper: the map as it is seen with a title, a legend or colour bar and a caption, as
// SVG; a PNG is that SVG drawn at the resolution of print.

import { forEachRow, paintPoints } from "./canvas";
import type { Colouring, Marks } from "./colouring";
import { pencil, shape } from "./dom";
import type { Dots } from "./drawing";
import { FONT, layNames, paintTiles, type Scene } from "./overlay";
import { toScreen } from "./view";
import { quantity, whole } from "./words";

export interface FigureOptions {
  title: string;
  caption: string;
  /** Width of the figure in millimetres. */
  width: number;
  dpi: number;
  names: boolean;
}

/** All that a figure is made from. */
export interface Drawn {
  scene: Scene;
  marks: Marks;
  dots: Dots;
  colouring: Colouring;
}

const MOST_VECTORS = 50_000; // points beyond which they are a picture inside of the SVG
const RASTER = 3; // pixels of that picture for one of the screen
const LEGEND = 190; // units, as wide as a pixel of the map
const LINE = 20;
const MARGIN = 14;
const MM_AN_INCH = 25.4;

interface Layout {
  width: number;
  height: number;
  top: number;
}

/** The figure as SVG. */
export function figureSvg(drawn: Drawn, options: FigureOptions): string {
  const { scene, colouring } = drawn;
  const { size, palette } = scene;
  const pencilled = pencil(document.createElement("canvas"));
  const legend = colouring.field ? legendOf(colouring, size.width + MARGIN + 6, palette) : [];
  const caption = wrap(pencilled, options.caption, size.width + (legend.length ? LEGEND : 0));
  const top = options.title ? 36 : MARGIN;
  const layout: Layout = {
    width: size.width + 2 * MARGIN + (legend.length ? LEGEND : 0),
    height: top + Math.max(size.height, colouring.field ? legendHeight(colouring) : 0) + MARGIN + caption.length * 17,
    top,
  };
  const { width, height } = layout;
  const root = shape("svg", {
    viewBox: `0 0 ${round(width)} ${round(height)}`,
    width: `${options.width}mm`,
    height: `${round((options.width * height) / width)}mm`,
    "font-family": FONT,
  });
  root.append(shape("title", {}, options.title || "Map"));
  root.append(shape("rect", { width, height, fill: palette.surface }));
  if (options.title) {
    root.append(shape("text", { x: MARGIN, y: 24, fill: palette.ink, "font-size": 17, "font-weight": 650 }, options.title));
  }
  const map = shape("g", { transform: `translate(${MARGIN} ${top})` });
  map.append(points(drawn));
  if (scene.tiles.length) map.append(tilesOf(scene));
  if (options.names) map.append(...namesOf(pencilled, scene));
  const key = shape("g", { transform: `translate(0 ${top})` });
  key.append(...legend);
  root.append(map, key);
  caption.forEach((line, i) => {
    const y = height - MARGIN - 17 * (caption.length - 1 - i);
    root.append(shape("text", { x: MARGIN, y, fill: palette.soft, "font-size": 12.5 }, line));
  });
  return new XMLSerializer().serializeToString(root);
}

/** The figure as PNG, `options.dpi` pixels an inch. */
export async function figurePng(drawn: Drawn, options: FigureOptions): Promise<Blob | null> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(figureSvg(drawn, options))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Math.round((options.width / MM_AN_INCH) * options.dpi);
  canvas.height = Math.round((canvas.width * image.naturalHeight) / image.naturalWidth);
  pencil(canvas).drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function points({ scene, marks, dots }: Drawn): SVGElement {
  const { map, view, size } = scene;
  const rows = marks.order ? marks.order.length : map.x.length;
  if (rows > MOST_VECTORS) {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: RASTER * size.width, height: RASTER * size.height });
    const context = pencil(canvas);
    const image = context.createImageData(canvas.width, canvas.height);
    paintPoints(image, map, marks, view, size, dots, RASTER);
    context.putImageData(image, 0, 0);
    return shape("image", { href: canvas.toDataURL("image/png"), width: size.width, height: size.height });
  }
  const paths = marks.colours.map(() => [] as string[]);
  forEachRow(map.x.length, marks, (row) => {
    const [x, y] = toScreen(view, size, map.x[row], map.y[row]);
    if (x < 0 || y < 0 || x > size.width || y > size.height) return;
    // A line of no length with a round end is a dot as wide as the line.
    paths[marks.codes[row]].push(`M${round(x)} ${round(y)}h0`);
  });
  const group = shape("g", {
    class: "points", fill: "none", "stroke-linecap": "round", "stroke-width": round(dots.across),
    "stroke-opacity": round(dots.opacity),
  });
  // Colours of rows that are not selected come after the others and are drawn under them.
  for (let code = paths.length - 1; code >= 0; code--) {
    if (paths[code].length) group.append(shape("path", { stroke: marks.colours[code], d: paths[code].join("") }));
  }
  return group;
}

function tilesOf(scene: Scene): SVGElement {
  const { size } = scene;
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: RASTER * size.width, height: RASTER * size.height });
  const context = pencil(canvas);
  context.scale(RASTER, RASTER);
  paintTiles(context, scene);
  return shape("image", { class: "pictures", href: canvas.toDataURL("image/png"), width: size.width, height: size.height });
}

function namesOf(context: CanvasRenderingContext2D, scene: Scene): SVGElement[] {
  const { palette } = scene;
  const names = layNames(context, scene);
  const lines = names.flatMap(({ line }) => {
    if (!line) return [];
    const [x1, y1, x2, y2] = line.map(round);
    return [shape("line", { x1, y1, x2, y2, stroke: palette.soft, "stroke-width": 1 })];
  });
  const texts = names.map(({ text, left, middle, size, bold }) =>
    shape(
      "text",
      {
        class: "name", x: round(left), y: round(middle + 0.35 * size), "font-size": round(size), "font-weight": bold ? 650 : 450,
        fill: palette.ink, stroke: palette.surface, "stroke-width": bold ? 4.5 : 3, "stroke-linejoin": "round",
        "paint-order": "stroke",
      },
      text,
    ),
  );
  return [...lines, ...texts];
}

function legendHeight(colouring: Colouring): number {
  return colouring.range ? 90 : 30 + LINE * colouring.groups.filter(({ rows }) => rows).length;
}

function legendOf(colouring: Colouring, left: number, palette: Scene["palette"]): SVGElement[] {
  const { field, groups, range } = colouring;
  const text = (x: number, y: number, said: string, more: Record<string, string | number> = {}) =>
    shape("text", { x, y, fill: palette.ink, "font-size": 13, ...more }, said);
  const parts = [text(left, 16, cut(field?.name ?? ""), { "font-weight": 650 })];
  if (range) {
    const steps = groups.filter(({ name }) => !name);
    const wide = LEGEND - 30;
    steps.forEach(({ colour }, i) => {
      parts.push(shape("rect", { x: round(left + (wide * i) / steps.length), y: 28, width: round(wide / steps.length + 0.5), height: 12, fill: colour }));
    });
    const isShare = field?.kind === "number" && field.isShare;
    parts.push(text(left, 56, quantity(range.low, isShare), { "font-size": 12 }));
    parts.push(text(left + wide, 56, quantity(range.high, isShare), { "font-size": 12, "text-anchor": "end" }));
    return parts;
  }
  groups.filter(({ rows }) => rows).forEach(({ name, colour, rows }, i) => {
    const y = 36 + LINE * i;
    parts.push(shape("circle", { cx: left + 5, cy: y, r: 5, fill: colour }));
    parts.push(text(left + 17, y + 4.5, `${cut(name)} (${whole(rows)})`));
  });
  return parts;
}

/** Letters that fit beside the map, without half of a pair. */
function cut(name: string): string {
  const letters = [...name.replace(/\s+/gu, " ")];
  return letters.length > 20 ? `${letters.slice(0, 19).join("")}\u2026` : letters.join("");
}

/** Lines of a text, broken between words. */
function wrap(context: CanvasRenderingContext2D, text: string, width: number): string[] {
  context.font = `12.5px ${FONT}`;
  const lines: string[] = [];
  for (const word of text.split(/[ \t\r\n]+/u).filter(Boolean)) {
    const longer = lines.length ? `${lines[lines.length - 1]} ${word}` : word;
    if (lines.length && context.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

const round = (value: number) => Math.round(10 * value) / 10;
