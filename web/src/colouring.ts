// Which colour each row has: a place in a short list of colours, the same for every way of drawing.

import { MOST_GROUPS, mix, type Palette } from "./palette";
import type { Field } from "./table";
import { count } from "./words";

/** Rows that look alike, as the legend names them. */
export interface Group {
  name: string;
  colour: string;
  rows: number;
  /** Codes of the field that belong to it; none for the steps of a ramp. */
  codes: number[];
}

export interface Colouring {
  field: Field | null;
  groups: Group[];
  /** A place in `groups` for each row. */
  codes: Uint16Array;
  /** Rows of each code of a field of names. */
  counts: Uint32Array;
  /** Where the field is a quantity. */
  range: { low: number; high: number } | null;
}

/** How rows are coloured by `field`; all alike without one. */
export function colour(field: Field | null, rows: number, palette: Palette): Colouring {
  if (!field) {
    const groups = [{ name: "all rows", colour: palette.accent, rows, codes: [] }];
    return { field, groups, codes: new Uint16Array(rows), counts: new Uint32Array(0), range: null };
  }
  return field.kind === "category" ? byName(field, palette) : byValue(field, palette);
}

function byName(field: Field & { kind: "category" }, palette: Palette): Colouring {
  const { names, codes } = field;
  const counts = new Uint32Array(names.length + 1);
  for (const code of codes) counts[code]++;
  // As in the charts: the most frequent names have colours of their own, in the order of the names.
  const most = names.length <= MOST_GROUPS ? MOST_GROUPS : MOST_GROUPS - 1;
  const frequent = [...names.keys()].sort((a, b) => counts[b] - counts[a] || a - b).slice(0, most);
  const own = frequent.sort((a, b) => a - b);
  const groups: Group[] = own.map((code, i) => ({
    name: names[code],
    colour: palette.groups[i],
    rows: counts[code],
    codes: [code],
  }));
  const place = new Uint16Array(names.length + 1);
  if (own.length < names.length) {
    place.fill(groups.length);
    const rest = names.length - own.length;
    const rows = counts.subarray(0, -1).reduce((sum, rows) => sum + rows, 0);
    const shown = groups.reduce((sum, group) => sum + group.rows, 0);
    const others = [...names.keys()].filter((code) => !own.includes(code));
    groups.push({ name: count(rest, "other group"), colour: palette.quiet, rows: rows - shown, codes: others });
  }
  own.forEach((code, i) => {
    place[code] = i;
  });
  if (counts[names.length]) {
    place[names.length] = groups.length;
    groups.push({ name: field.none, colour: palette.quiet, rows: counts[names.length], codes: [names.length] });
  }
  return { field, groups, codes: Uint16Array.from(codes, (code) => place[code]), counts, range: null };
}

function byValue(field: Field & { kind: "number" }, palette: Palette): Colouring {
  const { values } = field;
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const steps = palette.ramp.length;
  const groups = palette.ramp.map((colour) => ({ name: "", colour, rows: 0, codes: [] }));
  const codes = new Uint16Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const share = high > low ? (values[i] / 2 - low / 2) / (high / 2 - low / 2) : 0.5;
    const code = Number.isNaN(values[i]) ? steps : Math.min(Math.floor(steps * share), steps - 1);
    if (code === steps && groups.length === steps) {
      groups.push({ name: "no value", colour: palette.quiet, rows: 0, codes: [] });
    }
    codes[i] = code;
    groups[code].rows++;
  }
  return { field, groups, codes, counts: new Uint32Array(0), range: low <= high ? { low, high } : null };
}

/** What is drawn: the background, colours, a place among them for each row, and the order of drawing. */
export interface Marks {
  background: string;
  colours: string[];
  codes: Uint16Array;
  /** Rows that are seen, those drawn last on top; null for all rows in their order. */
  order: Uint32Array | null;
}

const FAINT = 0.84; // how far the colour of rows that are not selected goes towards the background

export function marks(
  colouring: Colouring, palette: Palette, visible: Uint8Array | null, selected: Uint8Array | null,
): Marks {
  const background = palette.surface;
  const own = colouring.groups.map((group) => group.colour);
  const quiet = own.map((one) => one === palette.quiet);
  if (!selected) {
    const { codes } = colouring;
    // Rows without a colour of their own lie behind the others.
    const order = visible || quiet.includes(true) ? inLayers(codes, visible, (row) => !quiet[codes[row]]) : null;
    return { background, colours: own, codes, order };
  }
  const faint = own.map((colour) => mix(colour, background, FAINT));
  const codes = Uint16Array.from(colouring.codes, (code, row) => code + (selected[row] ? 0 : own.length));
  const order = inLayers(codes, visible, (row) => selected[row] === 1);
  return { background, colours: [...own, ...faint], codes, order };
}

/** The rows that are seen: first those that lie behind, then those in front. */
function inLayers(codes: Uint16Array, visible: Uint8Array | null, isInFront: (row: number) => boolean): Uint32Array {
  const rows = new Uint32Array(codes.length);
  let found = 0;
  for (const front of [false, true]) {
    for (let row = 0; row < codes.length; row++) {
      if ((!visible || visible[row]) && isInFront(row) === front) rows[found++] = row;
    }
  }
  return rows.slice(0, found);
}
