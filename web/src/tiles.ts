// Which rows are seen as pictures: one in each cell of a grid that lies on the map itself, so that
// pictures stay where they are while one moves, and more appear as one zooms in.

import type { Tile } from "./overlay";
import type { Pictures } from "./pictures";
import type { PointMap } from "./table";
import { type Size, toScreen, type View } from "./view";

const SMALLEST = 22; // pixels of a tile
const LARGEST = 40;
const CLEAR = 0.8; // of a tile between the middles of two

interface Candidate {
  row: number;
  /** Squared distance from the middle of its cell, in cells, and where it is. */
  away: number;
  across: number;
  up: number;
}

export class Tiles {
  private map: PointMap | null = null;
  private seen: Uint8Array | null = null;
  private level = Number.NaN;
  private rows = new Uint32Array();

  constructor(private readonly pictures: Pictures) {}

  /** The tiles in view, and how many pixels across they are. */
  choose(map: PointMap, view: View, size: Size, seen: Uint8Array | null): { tiles: Tile[]; tile: number } {
    const { width, height } = this.pictures;
    const least = Math.min(Math.max(width, height, SMALLEST), LARGEST);
    const level = Math.floor(2 * Math.log2(view.scale));
    if (map !== this.map || seen !== this.seen || level !== this.level) this.fill(map, seen, level, least);
    const tile = (least * view.scale) / 2 ** (level / 2);
    const tiles: Tile[] = [];
    for (const row of this.rows) {
      const [x, y] = toScreen(view, size, map.x[row], map.y[row]);
      if (x > -tile && y > -tile && x < size.width + tile && y < size.height + tile) tiles.push({ row, x, y });
    }
    return { tiles, tile };
  }

  private fill(map: PointMap, seen: Uint8Array | null, level: number, least: number): void {
    Object.assign(this, { map, seen, level });
    const cell = least / 2 ** (level / 2);
    // Of each cell the row nearest to its middle; those that would cover another are left as points.
    const best = new Map<string, Candidate>();
    for (let row = 0; row < map.x.length; row++) {
      if ((seen && !seen[row]) || !this.pictures.has(row)) continue;
      const [across, up] = [map.x[row] / cell, map.y[row] / cell];
      const key = `${Math.floor(across)},${Math.floor(up)}`;
      const away = (across - Math.floor(across) - 0.5) ** 2 + (up - Math.floor(up) - 0.5) ** 2;
      const other = best.get(key);
      if (!other || away < other.away) best.set(key, { row, away, across, up });
    }
    const chosen = new Map<string, Candidate>();
    for (const one of [...best.values()].sort((a, b) => a.away - b.away || a.row - b.row)) {
      const [column, line] = [Math.floor(one.across), Math.floor(one.up)];
      let covers = false;
      for (let i = -1; i <= 1; i++) {
        for (let j = -1; j <= 1; j++) {
          const other = chosen.get(`${column + i},${line + j}`);
          if (!other) continue;
          covers ||= Math.abs(other.across - one.across) < CLEAR && Math.abs(other.up - one.up) < CLEAR;
        }
      }
      if (!covers) chosen.set(`${column},${line}`, one);
    }
    this.rows = Uint32Array.from(chosen.values(), ({ row }) => row).sort();
  }
}
