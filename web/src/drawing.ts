// What draws the points: WebGL where there is any, a plain canvas otherwise.

import type { Marks } from "./colouring";
import type { PointMap } from "./table";
import type { Size, View } from "./view";

export interface Drawing {
  /** The map whose size the units of the drawing are made for; the first thing it is told. */
  frame(map: PointMap): void;
  /** Points at new places, or the same places in new colours; moved there over `seconds`. */
  draw(map: PointMap, marks: Marks, seconds: number): Promise<void>;
  /** Another part of the map, or another size of the window. */
  look(view: View, size: Size, dots: Dots): void;
  destroy(): void;
}

/** How large points are, across in pixels, and how solid. */
export interface Dots {
  across: number;
  opacity: number;
}

const USUAL = 560; // pixels, the shorter side of a map on a desk

/** Fewer points, on a larger map, and those seen from nearer, are larger and more solid. */
export function dotsFor(rows: number, zoom: number, side: number): Dots {
  const many = Math.log10(Math.max(rows, 100) / 100);
  const near = Math.max(zoom, 1);
  return {
    across: Math.min(Math.max((10 - 2.6 * many) * Math.min(side / USUAL, 1) ** 0.5, 1.6) * near ** 0.3, 16),
    opacity: Math.min(Math.max(0.92 - 0.13 * many, 0.25) * near ** 0.2, 0.95),
  };
}
