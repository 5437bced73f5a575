// Which part of a map is seen: its centre, and how many pixels one unit of the map takes.

import type { PointMap } from "./table";

export interface View {
  x: number;
  y: number;
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

export interface Bounds {
  left: number;
  right: number;
  bottom: number;
  top: number;
}

const NEAREST = 400; // times the whole map

export function boundsOf(map: PointMap): Bounds {
  const bounds = { left: Infinity, right: -Infinity, bottom: Infinity, top: -Infinity };
  for (let i = 0; i < map.x.length; i++) {
    const x = map.x[i];
    const y = map.y[i];
    if (x < bounds.left) bounds.left = x;
    if (x > bounds.right) bounds.right = x;
    if (y < bounds.bottom) bounds.bottom = y;
    if (y > bounds.top) bounds.top = y;
  }
  return bounds;
}

/** How tall a map is, in units of its width. */
export function shapeOf({ left, right, bottom, top }: Bounds): number {
  return right > left ? (top - bottom) / (right - left) : 1;
}

/** The view that shows everything, with so many pixels around it. */
export function fit(bounds: Bounds, size: Size, margin: number): View {
  const across = bounds.right - bounds.left || 1;
  const up = bounds.top - bounds.bottom || 1;
  const wide = Math.max(size.width - 2 * margin, 1);
  const high = Math.max(size.height - 2 * margin, 1);
  return {
    x: (bounds.left + bounds.right) / 2,
    y: (bounds.bottom + bounds.top) / 2,
    scale: Math.min(wide / across, high / up),
  };
}

export function toScreen(view: View, size: Size, x: number, y: number): [number, number] {
  return [size.width / 2 + (x - view.x) * view.scale, size.height / 2 - (y - view.y) * view.scale];
}

export function toMap(view: View, size: Size, across: number, down: number): [number, number] {
  return [view.x + (across - size.width / 2) / view.scale, view.y - (down - size.height / 2) / view.scale];
}

export function panned(view: View, across: number, down: number): View {
  return { ...view, x: view.x - across / view.scale, y: view.y + down / view.scale };
}

/** Zoomed so that the place under (across, down) stays where it is. */
export function zoomed(view: View, size: Size, whole: View, factor: number, across: number, down: number): View {
  const scale = Math.min(Math.max(view.scale * factor, whole.scale / 3), whole.scale * NEAREST);
  const [x, y] = toMap(view, size, across, down);
  return {
    x: x - (across - size.width / 2) / scale,
    y: y + (down - size.height / 2) / scale,
    scale,
  };
}

export function between(from: View, to: View, share: number): View {
  const at = (a: number, b: number) => a + (b - a) * share;
  // Zooming is even when the logarithm of the scale is.
  const scale = Math.exp(at(Math.log(from.scale), Math.log(to.scale)));
  return { x: at(from.x, to.x), y: at(from.y, to.y), scale };
}
