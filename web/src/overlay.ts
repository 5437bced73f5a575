// What is drawn over the points: pictures, names, the row that is looked at with its neighbours, and
// the line of a lasso.

import { type Box, nearestOn, overlaps, places, type Spot } from "./names";
import type { Palette } from "./palette";
import type { Pictures } from "./pictures";
import type { PointMap } from "./table";
import { type Size, toScreen, type View } from "./view";

export const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const LONGEST = 240; // pixels of a name, and no more than a share of the map
const LONGEST_SHARE = 0.4;
const ROOM = 16_000; // square pixels of the map for each name of a group
const FAR = 11; // pixels from a row to its name, from which a line leads there
const FEW_TRAILS = 20; // arrows that are opaque, with an outline; more of them are fainter
const LEAST_OPACITY = 0.35;

/** A picture of a row at a place on the screen. */
export interface Tile {
  row: number;
  x: number;
  y: number;
}

export interface Scene {
  map: PointMap;
  view: View;
  size: Size;
  palette: Palette;
  spots: Spot[];
  pictures: Pictures | null;
  tiles: Tile[];
  /** Pixels across a tile. */
  tile: number;
  /** The row that is looked at, its neighbours, and the colour of any row. */
  focus: number | null;
  neighbors: number[];
  colourOf: (row: number) => string;
  lasso: [number, number][];
  across: number;
  /** Arrows of rows from one map to the other. */
  trails: Trails | null;
}

/** Rows, and the places that each of them came from and went to. */
export interface Trails {
  rows: ArrayLike<number>;
  from: PointMap;
  to: PointMap;
}

export function paintOverlay(context: CanvasRenderingContext2D, scene: Scene): void {
  paintTiles(context, scene);
  if (scene.trails) paintTrails(context, scene, scene.trails);
  paintNames(context, scene);
  if (scene.focus !== null) paintFocus(context, scene, scene.focus);
  if (scene.lasso.length > 1) paintLasso(context, scene);
}

export function paintTiles(context: CanvasRenderingContext2D, { pictures, tiles, tile, palette, colourOf }: Scene): void {
  for (const { row, x, y } of tiles) pictures?.paint(context, row, x, y, tile, colourOf(row), palette);
}

/** A name as it is written: where, how large, in which colour its group is. */
export interface WrittenName {
  text: string;
  left: number;
  middle: number;
  size: number;
  bold: boolean;
  colour: string;
  box: Box;
  /** From a row to its name, where that stands aside. */
  line: [number, number, number, number] | null;
}

/** Names at places where none covers another or stands on another group; larger groups choose first. */
export function layNames(context: CanvasRenderingContext2D, scene: Scene): WrittenName[] {
  const { view, size } = scene;
  const taken: Box[] = [];
  const written: WrittenName[] = [];
  const most = Math.max(...scene.spots.map(({ rows }) => rows), 1);
  // A row's name does not stand on another row's point.
  const single = most === 1;
  if (single) {
    for (const spot of scene.spots) {
      const [x, y] = toScreen(view, size, spot.x, spot.y);
      taken.push({ left: x - 4, top: y - 4, width: 8, height: 8 });
    }
  }
  const room = single ? Infinity : Math.max((size.width * size.height) / ROOM, 3);
  for (const spot of [...scene.spots].sort((a, b) => b.rows - a.rows)) {
    if (written.length >= room) break;
    if (!spot.named) continue;
    const [x, y] = toScreen(view, size, spot.x, spot.y);
    if (x < 0 || y < 0 || x > size.width || y > size.height) continue;
    const letters = single ? 12 : 12.5 + 4.5 * Math.sqrt(spot.rows / most);
    context.font = `${single ? 450 : 650} ${letters}px ${FONT}`;
    const text = shorten(context, spot.name, Math.min(LONGEST, LONGEST_SHARE * size.width));
    const width = context.measureText(text).width + (single ? 2 : 10);
    const height = letters + (single ? 2 : 7);
    const inside = (box: Box) => ({
      ...box,
      left: Math.min(Math.max(box.left, 4), size.width - width - 4),
      top: Math.min(Math.max(box.top, 4), size.height - height - 4),
    });
    const free = (one: Box) => !taken.some((other) => overlaps(one, other)) && !crosses(x, y, one, taken);
    const own = (one: Box) => single || isNearest(spot, scene, one);
    const box = places(x, y, view.scale, spot, width, height).map(inside).find((one) => free(one) && own(one));
    if (!box) continue;
    taken.push(box);
    const near = nearestOn(box, x, y);
    const aside = single && isFar(x, y, near);
    written.push({
      text, left: box.left + (single ? 1 : 5), middle: box.top + height / 2, size: letters, bold: !single,
      colour: spot.colour, box, line: aside ? [x, y, ...near] : null,
    });
  }
  return written;
}

/** Whether a name here would be read as that of its own group: no other group is nearer. */
function isNearest(spot: Spot, { view, size, spots }: Scene, { left, top, width, height }: Box): boolean {
  const away = ({ x, y, reach }: Spot) => {
    const [across, down] = toScreen(view, size, x, y);
    const aside = Math.abs(across - left - width / 2) - view.scale * reach.across;
    const above = Math.abs(down - top - height / 2) - view.scale * reach.up;
    return Math.hypot(Math.max(aside, 0), Math.max(above, 0));
  };
  const own = away(spot);
  return spots.every((other) => away(other) >= own);
}

const isFar = (x: number, y: number, [across, down]: [number, number]) => Math.hypot(across - x, down - y) > FAR;

/** Whether the line from (x, y) to a name that stands aside would pass another name or row. */
function crosses(x: number, y: number, box: Box, taken: Box[]): boolean {
  const near = nearestOn(box, x, y);
  if (!isFar(x, y, near)) return false;
  return [0.5, 0.75, 1].some((share) => {
    const [left, top] = [x + share * (near[0] - x) - 1, y + share * (near[1] - y) - 1];
    return taken.some((other) => overlaps({ left, top, width: 2, height: 2 }, other));
  });
}

export function paintNames(context: CanvasRenderingContext2D, scene: Scene): void {
  const { palette } = scene;
  const names = layNames(context, scene);
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.lineJoin = "round";
  // Names step back while one looks at a row.
  context.globalAlpha = scene.focus === null ? 1 : 0.4;
  for (const { line } of names) {
    if (!line) continue;
    context.beginPath();
    context.moveTo(line[0], line[1]);
    context.lineTo(line[2], line[3]);
    context.strokeStyle = palette.soft;
    context.lineWidth = 1;
    context.stroke();
  }
  for (const { text, left, middle, size, bold, colour, box } of names) {
    // On pictures a name stands on a plate of its own.
    if (scene.tiles.length) plate(context, box, palette.surface, colour);
    context.font = `${bold ? 650 : 450} ${size}px ${FONT}`;
    context.strokeStyle = palette.surface;
    context.lineWidth = bold ? 5 : 3.5;
    context.strokeText(text, left, middle);
    context.fillStyle = palette.ink;
    context.fillText(text, left, middle);
  }
  context.globalAlpha = 1;
}

/** Arrows in the colours of their rows; many of them are faint, so that the map stays visible. */
function paintTrails(context: CanvasRenderingContext2D, scene: Scene, { rows, from, to }: Trails): void {
  const { view, size, palette, colourOf } = scene;
  context.lineCap = "round";
  context.lineJoin = "round";
  const paths = Array.from(rows, (row) => {
    const [x, y] = toScreen(view, size, from.x[row], from.y[row]);
    const [across, down] = toScreen(view, size, to.x[row], to.y[row]);
    return { path: arrow(x, y, across, down), colour: colourOf(row) };
  });
  if (paths.length <= FEW_TRAILS) {
    context.strokeStyle = palette.surface;
    context.lineWidth = 4;
    for (const { path } of paths) context.stroke(path);
  }
  context.globalAlpha = Math.max(Math.sqrt(FEW_TRAILS / Math.max(paths.length, FEW_TRAILS)), LEAST_OPACITY);
  context.lineWidth = 1.5;
  for (const { path, colour } of paths) {
    context.strokeStyle = colour;
    context.stroke(path);
  }
  context.globalAlpha = 1;
}

/** A line with a head where it is long enough to have one. */
function arrow(x: number, y: number, across: number, down: number): Path2D {
  const path = new Path2D();
  path.moveTo(x, y);
  path.lineTo(across, down);
  const head = Math.min(8, Math.hypot(across - x, down - y) / 2);
  const angle = Math.atan2(down - y, across - x);
  for (const turn of [-0.45, 0.45]) {
    path.moveTo(across, down);
    path.lineTo(across - head * Math.cos(angle + turn), down - head * Math.sin(angle + turn));
  }
  return path;
}

function plate(context: CanvasRenderingContext2D, { left, top, width, height }: Box, fill: string, edge: string): void {
  context.beginPath();
  context.roundRect(left + 0.5, top + 0.5, width - 1, height - 1, 5);
  context.fillStyle = fill;
  context.fill();
  context.strokeStyle = edge;
  context.lineWidth = 1.5;
  context.stroke();
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

function shorten(context: CanvasRenderingContext2D, name: string, longest: number): string {
  // One line, and no letters that turn the direction of those around them.
  const line = name.slice(0, 300).replace(/[\s\p{Cc}]+/gu, " ").replace(/\p{Cf}/gu, "").trim() || "(no name)";
  if (context.measureText(line).width <= longest) return line;
  const letters = [...line];
  while (letters.length && context.measureText(`${letters.join("")}\u2026`).width > longest) letters.pop();
  return `${letters.join("").trimEnd()}\u2026`;
}
