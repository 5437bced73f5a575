// What is drawn over the points: names of groups, the row that is looked at with its neighbours, and
// the line of a lasso.

import { type Box, clear, plate, type Spot } from "./names";
import type { Palette } from "./palette";
import type { PointMap } from "./table";
import { type Size, toScreen, type View } from "./view";

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const LONGEST = 150; // pixels of a name

export interface Scene {
  map: PointMap;
  view: View;
  size: Size;
  palette: Palette;
  spots: Spot[];
  /** The row that is looked at, its neighbours, and the colour of any row. */
  focus: number | null;
  neighbors: number[];
  colourOf: (row: number) => string;
  lasso: [number, number][];
  across: number;
}

export function paintOverlay(context: CanvasRenderingContext2D, scene: Scene): void {
  paintNames(context, scene);
  if (scene.focus !== null) paintFocus(context, scene, scene.focus);
  if (scene.lasso.length > 1) paintLasso(context, scene);
}

export function paintNames(context: CanvasRenderingContext2D, scene: Scene): void {
  const { palette, view, size } = scene;
  const taken: Box[] = [];
  context.font = `600 13px ${FONT}`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  // Larger groups choose their place first.
  for (const spot of [...scene.spots].sort((a, b) => b.rows - a.rows)) {
    const [x, y] = toScreen(view, size, spot.x, spot.y);
    if (x < 0 || y < 0 || x > size.width || y > size.height) continue;
    const text = shorten(context, spot.name);
    const width = context.measureText(text).width + 27;
    const reach = { across: spot.reach.across * view.scale, up: spot.reach.up * view.scale };
    const wanted = plate(x, y, reach, width, 22);
    const left = Math.min(Math.max(wanted.left, 4), size.width - width - 4);
    const box = clear({ ...wanted, left, top: Math.max(wanted.top, 4) }, taken);
    if (!box) continue;
    taken.push(box);
    // Names step back while one looks at a row.
    context.globalAlpha = scene.focus === null ? 0.85 : 0.35;
    context.fillStyle = palette.surface;
    context.beginPath();
    context.roundRect(box.left, box.top, box.width, box.height, 11);
    context.fill();
    context.globalAlpha = scene.focus === null ? 1 : 0.35;
    dot(context, box.left + 12, box.top + 11, 4.5, spot.colour, palette.surface);
    context.fillStyle = palette.ink;
    context.fillText(text, box.left + 20, box.top + 11.5);
  }
  context.globalAlpha = 1;
}

function paintFocus(context: CanvasRenderingContext2D, scene: Scene, focus: number): void {
  const { map, view, size, palette } = scene;
  const at = (row: number) => toScreen(view, size, map.x[row], map.y[row]);
  const [x, y] = at(focus);
  const radius = Math.max(scene.across / 2, 3.5);
  context.lineCap = "round";
  // A pale line under each dark one is seen on points of any colour.
  for (const [colour, width] of [[palette.surface, 4.5], [palette.ink, 1.5]] as const) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    for (const row of scene.neighbors) {
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(...at(row));
      context.stroke();
    }
  }
  for (const row of scene.neighbors) dot(context, ...at(row), radius + 1, scene.colourOf(row), palette.ink);
  dot(context, x, y, radius + 3, scene.colourOf(focus), palette.ink, 2.5);
}

function paintLasso(context: CanvasRenderingContext2D, scene: Scene): void {
  const { palette, lasso } = scene;
  context.beginPath();
  for (const [x, y] of lasso) context.lineTo(x, y);
  context.closePath();
  context.fillStyle = palette.accent;
  context.globalAlpha = 0.12;
  context.fill();
  context.globalAlpha = 1;
  context.strokeStyle = palette.accent;
  context.lineWidth = 2;
  context.setLineDash([6, 4]);
  context.stroke();
  context.setLineDash([]);
}

function dot(
  context: CanvasRenderingContext2D, x: number, y: number, radius: number, fill: string, edge: string, width = 1.5,
): void {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = fill;
  context.fill();
  context.strokeStyle = edge;
  context.lineWidth = width;
  context.stroke();
}

function shorten(context: CanvasRenderingContext2D, name: string): string {
  // One line, and no letters that turn the direction of those around them.
  const line = name.slice(0, 300).replace(/[\s\p{Cc}]+/gu, " ").replace(/\p{Cf}/gu, "").trim() || "(no name)";
  if (context.measureText(line).width <= LONGEST) return line;
  const letters = [...line];
  while (letters.length && context.measureText(`${letters.join("")}\u2026`).width > LONGEST) letters.pop();
  return `${letters.join("").trimEnd()}\u2026`;
}
