// Points in square cells: which point is nearest to a place, and which lie within a region.

import type { PointMap } from "./table";
import { type Bounds, boundsOf } from "./view";

const POINTS_A_CELL = 4;

export class Grid {
  readonly bounds: Bounds;
  private readonly cell: number;
  private readonly across: number;
  private readonly up: number;
  /** Rows in the order of their cells, and where each cell begins. */
  private readonly rows: Uint32Array;
  private readonly starts: Uint32Array;

  constructor(private readonly map: PointMap) {
    const n = map.x.length;
    this.bounds = boundsOf(map);
    const wide = this.bounds.right - this.bounds.left;
    const high = this.bounds.top - this.bounds.bottom;
    const longer = Math.max(wide, high) || 1;
    this.cell = Math.max(Math.sqrt((wide * high * POINTS_A_CELL) / n), longer / 1024);
    this.across = Math.floor(wide / this.cell) + 1;
    this.up = Math.floor(high / this.cell) + 1;
    this.starts = new Uint32Array(this.across * this.up + 1);
    this.rows = new Uint32Array(n);
    const of = new Uint32Array(n);
    for (let i = 0; i < n; i++) {
      of[i] = this.column(map.x[i]) + this.across * this.line(map.y[i]);
      this.starts[of[i] + 1]++;
    }
    for (let c = 1; c < this.starts.length; c++) this.starts[c] += this.starts[c - 1];
    const next = this.starts.slice(0, -1);
    for (let i = 0; i < n; i++) this.rows[next[of[i]]++] = i;
  }

  /** The nearest row within `reach` for which `seen` holds, or −1. */
  nearest(x: number, y: number, reach: number, seen: (row: number) => boolean): number {
    let best = -1;
    let least = reach * reach;
    this.within({ left: x - reach, right: x + reach, bottom: y - reach, top: y + reach }, (row) => {
      const distance = (this.map.x[row] - x) ** 2 + (this.map.y[row] - y) ** 2;
      if (distance <= least && seen(row)) {
        least = distance;
        best = row;
      }
    });
    return best;
  }

  /** Every row of every cell that `bounds` touches: some may lie outside of it. */
  within(bounds: Bounds, visit: (row: number) => void): void {
    const [first, last] = [this.column(bounds.left), this.column(bounds.right)];
    const [lowest, highest] = [this.line(bounds.bottom), this.line(bounds.top)];
    for (let line = lowest; line <= highest; line++) {
      const start = this.starts[first + this.across * line];
      const end = this.starts[last + this.across * line + 1];
      for (let i = start; i < end; i++) visit(this.rows[i]);
    }
  }

  private column(x: number): number {
    return clamp(Math.floor((x - this.bounds.left) / this.cell), this.across - 1);
  }

  private line(y: number): number {
    return clamp(Math.floor((y - this.bounds.bottom) / this.cell), this.up - 1);
  }
}

function clamp(value: number, most: number): number {
  return Math.min(Math.max(value, 0), most);
}
