// A view as text for an address: colour, map, place, filters and selection. What comes back from an
// address is untrusted: it is checked field by field, and is of one page, by the digest of its data.

import type { Filter } from "./filters";
import type { Table } from "./table";

const LONGEST = 60_000; // letters of a text that is read
const MOST_SELECTED = 20_000; // rows of a selection that fits into an address

export interface ViewState {
  digest: string;
  colour: number;
  map: number;
  /** Middle and scale, the latter relative to the view of the whole map. */
  view: [number, number, number];
  filters: { choice: number; filter: Filter }[];
  selection: Uint32Array | null;
  focus: number | null;
}

export function writeState(state: ViewState): string {
  const { selection } = state;
  const plain = {
    d: state.digest,
    c: state.colour,
    m: state.map,
    v: state.view.map((value) => Number(value.toPrecision(6))),
    f: state.filters.map(({ choice, filter }) =>
      filter.kind === "range" ? [choice, filter.low, filter.high] : [choice, [...filter.hidden].sort((a, b) => a - b)],
    ),
    s: selection && selection.length <= MOST_SELECTED ? gaps(selection) : null,
    r: state.focus,
  };
  return JSON.stringify(plain);
}

/** The state that a text describes, where every part of it is of this table; otherwise null. */
export function readState(text: string, table: Table): ViewState | null {
  if (text.length > LONGEST) return null;
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof given !== "object" || given === null) return null;
  const { d, c, m, v, f, s, r } = given as Record<string, unknown>;
  const isChoice = (value: unknown): value is number => isWhole(value, -1, table.choices.length - 1);
  if (d !== table.digest || !isChoice(c) || !isWhole(m, 0, table.mapNames.length - 1)) return null;
  if (!Array.isArray(v) || v.length !== 3 || !v.every(isNumber) || !(v[2] > 0)) return null;
  if (r !== null && !isWhole(r, 0, table.rows - 1)) return null;
  if (!Array.isArray(f) || f.length > table.choices.length) return null;
  const filters: ViewState["filters"] = [];
  for (const one of f) {
    if (!Array.isArray(one) || !isWhole(one[0], 0, table.choices.length - 1)) return null;
    if (one.length === 3 && isNumber(one[1]) && isNumber(one[2])) {
      filters.push({ choice: one[0], filter: { kind: "range", low: one[1], high: one[2] } });
    } else if (one.length === 2 && Array.isArray(one[1]) && one[1].every((code) => isWhole(code, 0, table.rows))) {
      filters.push({ choice: one[0], filter: { kind: "category", hidden: new Set<number>(one[1]) } });
    } else return null;
  }
  let selection: Uint32Array | null = null;
  if (s !== null) {
    if (!Array.isArray(s) || s.length > MOST_SELECTED || !s.every((gap) => isWhole(gap, 0, table.rows))) return null;
    let row = -1;
    selection = Uint32Array.from(s, (gap: number) => {
      row += gap + 1;
      return row;
    });
    if (row >= table.rows) return null;
  }
  return { digest: d, colour: c, map: m, view: v as [number, number, number], filters, selection, focus: r as number | null };
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

function isWhole(value: unknown, low: number, high: number): value is number {
  return Number.isInteger(value) && (value as number) >= low && (value as number) <= high;
}

/** Ascending rows as the numbers of rows between them. */
function gaps(rows: Uint32Array): number[] {
  return Array.from(rows, (row, i) => row - (i ? rows[i - 1] + 1 : 0));
}
