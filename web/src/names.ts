// Names written on the map: of groups, each where most of its points are; or of every row, where there
// are few. None is written over another; nearer, there is room for more.

import type { Colouring } from "./colouring";
import { NAMELESS, type PointMap, type Table } from "./table";
import type { Bounds } from "./view";

export interface Spot {
  name: string;
  colour: string;
  rows: number;
  /** Whether the name is written: not where another group has more rows. */
  named: boolean;
  x: number;
  y: number;
  /** How far its points around there reach from (x, y), on average; 0 for a single row. */
  reach: { across: number; up: number };
}

const MOST_ROWS = 60; // of a table whose rows all have their name written
const MOST_NAMES = 300; // groups, the largest first
const CELLS = 20;

/** Every row under its own name, where there are few and they have names; otherwise groups. */
export function spots(
  table: Table, colouring: Colouring, map: PointMap, bounds: Bounds, seen: Uint8Array | null,
): Spot[] {
  const { ids } = table;
  if (ids && table.rows <= MOST_ROWS) {
    return ids.flatMap((name, row) => {
      if (seen && !seen[row]) return [];
      const colour = colouring.groups[colouring.codes[row]].colour;
      return [{ name, colour, rows: 1, named: true, x: map.x[row], y: map.y[row], reach: { across: 0, up: 0 } }];
    });
  }
  return groupSpots(colouring, map, bounds, seen);
}

/** The place of each group: the middle of its points around where they are densest. */
function groupSpots({ field, groups, counts, codes: colours }: Colouring, map: PointMap, bounds: Bounds, seen: Uint8Array | null): Spot[] {
  if (field?.kind !== "category" || field.scattered) return [];
  const { names, codes } = field;
  const written = [...names.keys()].filter((code) => counts[code] && names[code] !== NAMELESS);
  const largest = written.sort((a, b) => counts[b] - counts[a] || a - b).slice(0, MOST_NAMES);
  const place = new Int32Array(names.length + 1).fill(-1);
  largest.forEach((code, i) => {
    place[code] = i;
  });
  const cell = Math.max(bounds.right - bounds.left, bounds.top - bounds.bottom) / CELLS || 1;
  const width = CELLS + 3; // a border, so that every cell has all its neighbours
  const held = largest.map(() => new Uint32Array(width * width));
  const colour = largest.map(() => "");
  const at = (row: number) =>
    1 + Math.floor((map.x[row] - bounds.left) / cell) +
    width * (1 + Math.floor((map.y[row] - bounds.bottom) / cell));
  for (let row = 0; row < codes.length; row++) {
    const group = place[codes[row]];
    if (group < 0 || (seen && !seen[row])) continue;
    held[group][at(row)]++;
    colour[group] = groups[colours[row]].colour;
  }
  const densest = held.map((cells) => fullest(cells, width));
  // Where another group has more rows, the name would be read as that of the other.
  const first = densest.map((cell, group) => {
    const own = cell < 0 ? 0 : around(held[group], cell, width);
    return own > 0 && held.every((cells) => around(cells, cell, width) <= own);
  });
  const sums = largest.map(() => ({ rows: 0, x: 0, y: 0, xx: 0, yy: 0 }));
  for (let row = 0; row < codes.length; row++) {
    const group = place[codes[row]];
    if (group < 0 || (seen && !seen[row]) || !isBeside(at(row), densest[group], width)) continue;
    const sum = sums[group];
    sum.rows++;
    sum.x += map.x[row];
    sum.y += map.y[row];
    sum.xx += map.x[row] ** 2;
    sum.yy += map.y[row] ** 2;
  }
  return largest.flatMap((code, group) => {
    const sum = sums[group];
    if (!sum.rows) return [];
    const [x, y] = [sum.x / sum.rows, sum.y / sum.rows];
    const across = Math.sqrt(Math.max(sum.xx / sum.rows - x ** 2, 0));
    const up = Math.sqrt(Math.max(sum.yy / sum.rows - y ** 2, 0));
    return [{ name: names[code], colour: colour[group], rows: counts[code], named: first[group], x, y, reach: { across, up } }];
  });
}

/** The cell that holds most together with its eight neighbours. */
function fullest(cells: Uint32Array, width: number): number {
  let best = -1;
  let most = 0;
  for (let cell = width + 1; cell < cells.length - width - 1; cell++) {
    if (!cells[cell]) continue;
    const sum = around(cells, cell, width);
    if (sum > most) [best, most] = [cell, sum];
  }
  return best;
}

/** How much a cell and its eight neighbours hold. */
function around(cells: Uint32Array, cell: number, width: number): number {
  let sum = 0;
  for (let line = -width; line <= width; line += width) {
    sum += cells[cell + line - 1] + cells[cell + line] + cells[cell + line + 1];
  }
  return sum;
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

/**
 * Where a name of this size may stand, the best place first: on its group, or above or below one that it
 * would cover; around a single row. `scale` is pixels of a unit of the map.
 */
export function places(x: number, y: number, scale: number, spot: Spot, width: number, height: number): Box[] {
  const at = (left: number, top: number) => ({ left, top, width, height });
  if (spot.rows > 1 || spot.reach.across > 0) {
    const middle = x - width / 2;
    const [across, up] = [2 * scale * spot.reach.across, scale * spot.reach.up];
    const above = across < 0.7 * width || up < 0.8 * height ? 1.9 * up + 0.8 * height : 0;
    const line = height + 2;
    const shifts = above ? [-above, above, -above - line, above + line] : [0, -line, line, -2 * line, 2 * line];
    return shifts.map((shift) => at(middle, y + shift - height / 2));
  }
  const gap = 7;
  return [
    at(x + gap, y - height / 2),
    at(x - gap - width, y - height / 2),
    at(x - width / 2, y - gap - height),
    at(x - width / 2, y + gap),
    at(x + gap, y - gap - height / 2),
    at(x + gap, y + gap - height / 2),
    at(x - gap - width, y - gap - height / 2),
    at(x - gap - width, y + gap - height / 2),
    // Farther away, with a line that leads back.
    ...[20, 32].flatMap((away) => [
      at(x - width / 2, y - away - height / 2),
      at(x - width / 2, y + away - height / 2),
      at(x + 0.7 * away, y - 0.7 * away - height / 2),
      at(x + 0.7 * away, y + 0.7 * away - height / 2),
      at(x - 0.7 * away - width, y - 0.7 * away - height / 2),
      at(x - 0.7 * away - width, y + 0.7 * away - height / 2),
    ]),
  ];
}

/** The place on a box nearest to (x, y). */
export function nearestOn({ left, top, width, height }: Box, x: number, y: number): [number, number] {
  return [Math.min(Math.max(x, left), left + width), Math.min(Math.max(y, top), top + height)];
}

export function overlaps(a: Box, b: Box): boolean {
  return (
    a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height
  );
}
