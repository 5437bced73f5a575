// Rows inside a line drawn by hand.

import type { Grid } from "./grid";
import type { PointMap } from "./table";

export type Place = [number, number];

/** Rows inside `polygon` (even-odd rule), in their order, for which `seen` holds. */
export function rowsInside(map: PointMap, grid: Grid, polygon: Place[], seen: (row: number) => boolean): Uint32Array {
  const across = polygon.map((place) => place[0]);
  const up = polygon.map((place) => place[1]);
  const bounds = {
    left: Math.min(...across),
    right: Math.max(...across),
    bottom: Math.min(...up),
    top: Math.max(...up),
  };
  const inside: number[] = [];
  grid.within(bounds, (row) => {
    if (seen(row) && isInside(polygon, map.x[row], map.y[row])) inside.push(row);
  });
  return Uint32Array.from(inside).sort();
}

function isInside(polygon: Place[], x: number, y: number): boolean {
  let inside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [xi, yi] = polygon[i];
    const [xj, yj] = polygon[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}
