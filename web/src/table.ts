// The page's data: rows, their maps, what they can be coloured by, and their neighbours. Columns are
// unpacked when somebody asks for them, so that a large page opens quickly.

import { type Packed, type PackedNumbers, texts, type WholeNumbers, wholeNumbers } from "./decode";
import { percent } from "./words";

/** Positions axis by axis; or, of very many rows, as the gaps between their places along a Morton curve. */
interface PackedMap {
  name: string;
  low: [number, number];
  step: number;
  x?: PackedNumbers;
  y?: PackedNumbers;
  gaps?: PackedNumbers;
}

interface PackedCategories {
  kind: "category";
  name: string;
  names: Packed;
  codes: PackedNumbers;
  /** Whether the groups were found by the program, and are only a suggestion. */
  suggested?: boolean;
  /** What rows without a name are called. */
  none?: string;
  /** Whether a group has rows all over the map, where its name would stand for nothing. */
  scattered?: boolean;
}

interface PackedValues {
  kind: "number";
  name: string;
  codes: PackedNumbers;
  levels?: number[];
  low?: number;
  high?: number;
  steps?: number;
  about?: string;
}

interface PackedColumn extends PackedValues {
  column: number;
}

interface PackedComponent {
  share: number;
  low: number;
  step: number;
  scores: PackedNumbers;
  correlations: PackedNumbers;
}

/** Pictures of rows: sheets of equal tiles, `across` in a line. */
export interface PackedPictures {
  /** Ink is drawn in the colour of the row's group, and photographs as they are. */
  kind: "ink" | "photo";
  width: number;
  height: number;
  across: number;
  tiles: number;
  sheets: { type: "image/png" | "image/webp"; data: string }[];
  /** Which row each picture is of; null where every row has one, in their order. */
  rows: PackedNumbers | null;
}

/** Places of the rows while the map was made. */
export interface PackedReplay {
  iterations: number[];
  low: [number, number];
  step: number;
  frames: { x: PackedNumbers; y: PackedNumbers }[];
}

export interface PackedTable {
  title: string;
  source: string;
  caption: string;
  /** Sentences about the map. */
  says: string[];
  digest: string;
  rows: number;
  space: string;
  maps: PackedMap[];
  labels: (PackedCategories | PackedValues)[];
  trust: PackedValues | null;
  density: PackedValues | null;
  ids: { name: string; texts: Packed } | null;
  /** Numbers of the rows in the table that was given, where they are not 0, 1, 2, … */
  row_numbers: PackedNumbers | null;
  /** Whether they are not: rows were dropped, or stand in the order of the map. */
  renumbered?: boolean;
  texts: { name: string; texts: Packed } | null;
  links: { name: string; texts: Packed } | null;
  pictures: PackedPictures | null;
  replay: PackedReplay | null;
  neighbors: PackedNumbers[];
  components: PackedComponent[];
  columns: { names: Packed | null; held: PackedColumn[]; numbered: string | null };
  /** Where two maps of the same rows are compared: neighbours in the second, and rows that changed company. */
  pair?: { neighbors: PackedNumbers[]; changed: PackedNumbers };
  /** Neighbours in each of two compared tables, for the card that tells both. */
  sides?: { name: string; neighbors: PackedNumbers[] }[];
}

export interface PointMap {
  name: string;
  x: Float32Array;
  y: Float32Array;
}

export interface Categories {
  kind: "category";
  name: string;
  names: string[];
  /** A place in `names` for each row; `names.length` where a row has none. */
  codes: WholeNumbers;
  /** What rows without a name are called. */
  none: string;
  /** Whether a group has rows all over the map, where its name would stand for nothing. */
  scattered: boolean;
}

export interface Values {
  kind: "number";
  name: string;
  /** NaN where a row has none. */
  values: Float64Array;
  /** Whether the values are shares of 1, said in per cent. */
  isShare: boolean;
  /** What the numbers mean, where the name does not say it. */
  about: string;
}

export type Field = Categories | Values;

/** Something to colour by, unpacked when asked for. */
export interface Choice {
  group: "Labels" | "Suggested" | "Trust" | "Components" | "Columns";
  name: string;
  /** Which column of the table it is, for those of the group "Columns". */
  column?: number;
  load: () => Promise<Field>;
}

export interface Component {
  scores: Float64Array;
  /** With every column of the table, from −1 to 1. */
  correlations: Float64Array;
}

/** What stands for a name that is empty. */
export const NAMELESS = "(no name)";

export class Table {
  readonly rows: number;
  readonly title: string;
  /** What a figure of the map says about itself. */
  readonly caption: string;
  /** Of the data: views that were shared are of one page. */
  readonly digest: string;
  readonly source: string;
  /** Where neighbours were looked for, in words. */
  readonly space: string;
  readonly choices: Choice[];
  readonly mapNames: string[];
  readonly idName: string | null;
  /** What the columns are, where single ones say nothing (pixels, entries of a vector). */
  readonly numbered: string | null;
  readonly textName: string | null;
  readonly pictures: PackedPictures | null;
  readonly replay: PackedReplay | null;
  /** Whether the numbers of the rows in the table that was given are not 0, 1, 2, … */
  readonly renumbered: boolean;
  ids: string[] | null = null;
  private numbers: WholeNumbers | null = null;
  /** What the rows say, and where they lead to. */
  texts: string[] | null = null;
  links: string[] | null = null;
  neighbors: WholeNumbers[] = [];
  /** Neighbours in each of two compared tables; empty where there is one table. */
  sides: { name: string; neighbors: WholeNumbers[] }[] = [];

  readonly columnNames: () => Promise<string[]>;
  readonly components: () => Promise<Component[]>;
  private readonly maps: (() => Promise<PointMap>)[];

  constructor(private readonly packed: PackedTable) {
    this.rows = packed.rows;
    this.renumbered = packed.renumbered ?? false;
    this.title = packed.title;
    this.caption = packed.caption;
    this.digest = packed.digest;
    this.numbered = packed.columns.numbered;
    this.textName = packed.texts?.name ?? null;
    this.pictures = packed.pictures;
    this.replay = packed.replay;
    this.source = packed.source;
    this.space = packed.space;
    this.idName = packed.ids?.name ?? null;
    this.mapNames = packed.maps.map((map) => map.name);
    this.maps = packed.maps.map((map) => once(() => unpackMap(map)));
    const names = packed.columns.names;
    this.columnNames = once(async () => (names ? texts(names) : []));
    this.components = once(() => Promise.all(packed.components.map(unpackComponent)));
    this.choices = [
      ...packed.labels.map((label) => choice(label.kind === "category" && label.suggested ? "Suggested" : "Labels", label)),
      ...[packed.trust, packed.density].flatMap((field) => (field ? [choice("Trust", field)] : [])),
      ...packed.components.map((_, c) => this.componentChoice(c)),
    ];
  }

  /** What is needed soon after the first picture: ids, neighbours, and the names of the columns. */
  async finish(): Promise<void> {
    const { ids, row_numbers, texts: said, links, neighbors, columns } = this.packed;
    const names = await this.columnNames();
    for (const held of columns.held) {
      const named = { ...held, name: names[held.column] };
      this.choices.push({ ...choice("Columns", named), column: held.column });
    }
    this.neighbors = await Promise.all(neighbors.map(wholeNumbers));
    this.sides = await Promise.all(
      (this.packed.sides ?? []).map(async (side) => ({ name: side.name, neighbors: await Promise.all(side.neighbors.map(wholeNumbers)) })),
    );
    if (ids) this.ids = await texts(ids.texts);
    if (row_numbers) this.numbers = await wholeNumbers(row_numbers);
    this.texts = said ? await texts(said.texts) : null;
    this.links = links ? await texts(links.texts) : null;
  }

  map(which: number): Promise<PointMap> {
    return this.maps[which]();
  }

  nameOf(row: number): string {
    return this.ids?.[row] || `row ${this.numberOf(row) ?? row}`;
  }

  /** The number of a row in the table that was given; null where the page does not hold it. */
  numberOf(row: number): number | null {
    return this.renumbered ? (this.numbers?.[row] ?? null) : row;
  }

  /** The row of a number in the table that was given; −1 for none. */
  rowOf(number: number): number {
    if (this.renumbered && this.ids && !this.numbers) return -1; // its number is not known
    const row = this.numbers ? this.numbers.indexOf(number) : number;
    return row < this.rows ? row : -1;
  }

  neighborsOf(row: number): number[] {
    return this.neighbors.map((rank) => rank[row]);
  }

  private componentChoice(c: number): Choice {
    const { share } = this.packed.components[c];
    const name = share ? `component ${c + 1} (${percent(share)})` : `component ${c + 1}`;
    const load = once(async (): Promise<Field> => {
      const values = (await this.components())[c].scores;
      return { kind: "number", name, values, isShare: false, about: "" };
    });
    return { group: "Components", name, load };
  }
}

function choice(group: Choice["group"], packed: PackedCategories | PackedValues): Choice {
  const load = once(() =>
    packed.kind === "category" ? unpackCategories(packed) : unpackValues(packed, group === "Trust"),
  );
  return { group, name: packed.name, load };
}

async function unpackMap({ name, low, step, x, y, gaps }: PackedMap): Promise<PointMap> {
  const [across, up] = gaps
    ? alongMorton(await wholeNumbers(gaps))
    : await Promise.all([wholeNumbers(x!), wholeNumbers(y!)]);
  return {
    name,
    x: Float32Array.from(across, (code) => low[0] + step * code),
    y: Float32Array.from(up, (code) => low[1] + step * code),
  };
}

/** Both coordinates of places whose numbers along a Morton curve (x in the even bits) are sums of `gaps`. */
function alongMorton(gaps: WholeNumbers): [Uint32Array, Uint32Array] {
  const [x, y] = [new Uint32Array(gaps.length), new Uint32Array(gaps.length)];
  let place = 0;
  for (let i = 0; i < gaps.length; i++) {
    place += gaps[i];
    x[i] = evenBits(place);
    y[i] = evenBits(place >>> 1);
  }
  return [x, y];
}

function evenBits(code: number): number {
  let bits = code & 0x55555555;
  bits = (bits | (bits >>> 1)) & 0x33333333;
  bits = (bits | (bits >>> 2)) & 0x0f0f0f0f;
  bits = (bits | (bits >>> 4)) & 0x00ff00ff;
  return (bits | (bits >>> 8)) & 0x0000ffff;
}

async function unpackCategories(packed: PackedCategories): Promise<Field> {
  const [names, codes] = await Promise.all([texts(packed.names), wholeNumbers(packed.codes)]);
  const { name, none = "no label", scattered = false } = packed;
  return { kind: "category", name, names: names.map((each) => each || NAMELESS), codes, none, scattered };
}

async function unpackValues(packed: PackedValues, isShare: boolean): Promise<Field> {
  const codes = await wholeNumbers(packed.codes);
  const { levels, low = 0, high = 0, steps = 1 } = packed;
  // Halved, because the range itself may be too large for a number.
  const known = levels
    ? (code: number) => levels[code] ?? Number.NaN
    : (code: number) => (code > steps ? Number.NaN : low + 2 * (code / steps) * (high / 2 - low / 2));
  const { name, about = "" } = packed;
  return { kind: "number", name, values: Float64Array.from(codes, known), isShare, about };
}

async function unpackComponent(packed: PackedComponent): Promise<Component> {
  const [scores, correlations] = await Promise.all([
    wholeNumbers(packed.scores),
    wholeNumbers(packed.correlations),
  ]);
  return {
    scores: Float64Array.from(scores, (code) => packed.low + packed.step * code),
    correlations: Float64Array.from(correlations, (code) => code / 127 - 1),
  };
}

function once<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
