// Names of groups written on the map: each where most of its points are, none over another.

import type { Colouring } from "./colouring";
import type { PointMap } from "./table";
import type { Bounds } from "./view";

export interface Spot {
  name: string;
  colour: string;
  group: number;
  rows: number;
  x: number;
  y: number;
  /** How far its points around there reach from (x, y), on average. */
  reach: { across: number; up: number };
}

// More names would cover the points; the legend tells them instead.
const MOST_NAMES = 24;
const CELLS = 20;

/** The place of each group: the middle of its points around where they are densest. */
export function spots(colouring: Colouring, map: PointMap, bounds: Bounds): Spot[] {
  const { field, groups, codes } = colouring;
  if (field?.kind !== "category" || groups.length > MOST_NAMES) return [];
  const cell = Math.max(bounds.right - bounds.left, bounds.top - bounds.bottom) / CELLS || 1;
  const width = CELLS + 3; // a border, so that every cell has all its neighbours
  const counts = groups.map(() => new Uint32Array(width * width));
  const at = (row: number) =>
    1 + Math.floor((map.x[row] - bounds.left) / cell) +
    width * (1 + Math.floor((map.y[row] - bounds.bottom) / cell));
  for (let row = 0; row < codes.length; row++) counts[codes[row]][at(row)]++;
  const densest = counts.map((cells) => fullest(cells, width));
  const sums = groups.map(() => ({ rows: 0, x: 0, y: 0, xx: 0, yy: 0 }));
  for (let row = 0; row < codes.length; row++) {
    const code = codes[row];
    if (!isBeside(at(row), densest[code], width)) continue;
    const sum = sums[code];
    sum.rows++;
    sum.x += map.x[row];
    sum.y += map.y[row];
    sum.xx += map.x[row] ** 2;
    sum.yy += map.y[row] ** 2;
  }
  return groups.flatMap(({ name, colour, rows }, group) => {
    const sum = sums[group];
    if (!sum.rows) return [];
    const [x, y] = [sum.x / sum.rows, sum.y / sum.rows];
    const across = Math.sqrt(Math.max(sum.xx / sum.rows - x ** 2, 0));
    const up = Math.sqrt(Math.max(sum.yy / sum.rows - y ** 2, 0));
    return [{ name, colour, group, rows, x, y, reach: { across, up } }];
  });
}

/** The cell that holds most together with its eight neighbours. */
function fullest(cells: Uint32Array, width: number): number {
  let best = -1;
  let most = 0;
  for (let cell = width + 1; cell < cells.length - width - 1; cell++) {
    if (!cells[cell]) continue;
    let sum = 0;
    for (let line = -width; line <= width; line += width) {
      sum += cells[cell + line - 1] + cells[cell + line] + cells[cell + line + 1];
    }
    if (sum > most) [best, most] = [cell, sum];
  }
  return best;
}

function isBeside(cell: number, other: number, width: number): boolean {
  const across = Math.abs((cell % width) - (other % width));
  const up = Math.abs(Math.floor(cell / width) - Math.floor(other / width));
  return across <= 1 && up <= 1;
}

export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Where the plate of a name stands: on a group that is much larger than it, otherwise above. */
export function plate(x: number, y: number, reach: { across: number; up: number }, width: number, height: number): Box {
  const covers = reach.across < width || reach.up < 1.2 * height;
  return { left: x - width / 2, top: covers ? y - 1.9 * reach.up - 1.2 * height : y - height / 2, width, height };
}

/** `box` moved up or down, a little or more, until it is clear of those taken; null if it cannot. */
export function clear(box: Box, taken: Box[]): Box | null {
  for (const shift of [0, -1, 1, -2, 2]) {
    const moved = { ...box, top: box.top + shift * (box.height + 2) };
    if (!taken.some((other) => overlaps(moved, other))) return moved;
  }
  return null;
}

function overlaps(a: Box, b: Box): boolean {
  return (
    a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height
  );
}
