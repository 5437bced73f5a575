// The page's data: rows, their maps, what they can be coloured by, and their neighbours. Columns are
// unpacked when somebody asks for them, so that a large page opens quickly.

import { type Packed, type PackedNumbers, texts, type WholeNumbers, wholeNumbers } from "./decode";
import { percent } from "./words";

interface PackedMap {
  name: string;
  low: [number, number];
  step: number;
  x: PackedNumbers;
  y: PackedNumbers;
}

interface PackedCategories {
  kind: "category";
  name: string;
  names: Packed;
  codes: PackedNumbers;
}

interface PackedValues {
  kind: "number";
  name: string;
  codes: PackedNumbers;
  levels?: number[];
  low?: number;
  high?: number;
  steps?: number;
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

interface PackedTable {
  title: string;
  source: string;
  rows: number;
  space: string;
  maps: PackedMap[];
  labels: (PackedCategories | PackedValues)[];
  trust: PackedValues | null;
  ids: { name: string; texts: Packed } | null;
  neighbors: PackedNumbers[];
  components: PackedComponent[];
  columns: { names: Packed | null; held: PackedColumn[] };
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
}

export interface Values {
  kind: "number";
  name: string;
  /** NaN where a row has none. */
  values: Float64Array;
  /** Whether the values are shares of 1, said in per cent. */
  isShare: boolean;
}

export type Field = Categories | Values;

/** Something to colour by, unpacked when asked for. */
export interface Choice {
  group: "Labels" | "Trust" | "Components" | "Columns";
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
  readonly source: string;
  /** Where neighbours were looked for, in words. */
  readonly space: string;
  readonly choices: Choice[];
  readonly mapNames: string[];
  readonly idName: string | null;
  ids: string[] | null = null;
  neighbors: WholeNumbers[] = [];

  readonly columnNames: () => Promise<string[]>;
  readonly components: () => Promise<Component[]>;
  private readonly maps: (() => Promise<PointMap>)[];

  constructor(private readonly packed: PackedTable) {
    this.rows = packed.rows;
    this.title = packed.title;
    this.source = packed.source;
    this.space = packed.space;
    this.idName = packed.ids?.name ?? null;
    this.mapNames = packed.maps.map((map) => map.name);
    this.maps = packed.maps.map((map) => once(() => unpackMap(map)));
    const names = packed.columns.names;
    this.columnNames = once(async () => (names ? texts(names) : []));
    this.components = once(() => Promise.all(packed.components.map(unpackComponent)));
    this.choices = [
      ...packed.labels.map((label) => choice("Labels", label)),
      ...(packed.trust ? [choice("Trust", { ...packed.trust, name: "neighbours kept" })] : []),
      ...packed.components.map((_, c) => this.componentChoice(c)),
    ];
  }

  /** What is needed soon after the first picture: ids, neighbours, and the names of the columns. */
  async finish(): Promise<void> {
    const { ids, neighbors, columns } = this.packed;
    const names = await this.columnNames();
    for (const held of columns.held) {
      const named = { ...held, name: names[held.column] };
      this.choices.push({ ...choice("Columns", named), column: held.column });
    }
    this.neighbors = await Promise.all(neighbors.map(wholeNumbers));
    this.ids = ids ? await texts(ids.texts) : null;
  }

  map(which: number): Promise<PointMap> {
    return this.maps[which]();
  }

  nameOf(row: number): string {
    return this.ids?.[row] || `row ${row}`;
  }

  neighborsOf(row: number): number[] {
    return this.neighbors.map((rank) => rank[row]);
  }

  private componentChoice(c: number): Choice {
    const name = `component ${c + 1} (${percent(this.packed.components[c].share)})`;
    const load = once(async (): Promise<Field> => {
      const values = (await this.components())[c].scores;
      return { kind: "number", name, values, isShare: false };
    });
    return { group: "Components", name, load };
  }
}

export function readTable(): Table {
  const block = document.getElementById("gnomon-data");
  if (!block?.textContent) throw new Error("the page holds no data");
  return new Table(JSON.parse(block.textContent));
}

function choice(group: Choice["group"], packed: PackedCategories | PackedValues): Choice {
  const load = once(() =>
    packed.kind === "category" ? unpackCategories(packed) : unpackValues(packed, group === "Trust"),
  );
  return { group, name: packed.name, load };
}

async function unpackMap({ name, low, step, x, y }: PackedMap): Promise<PointMap> {
  const [across, up] = await Promise.all([wholeNumbers(x), wholeNumbers(y)]);
  return {
    name,
    x: Float32Array.from(across, (code) => low[0] + step * code),
    y: Float32Array.from(up, (code) => low[1] + step * code),
  };
}

async function unpackCategories(packed: PackedCategories): Promise<Field> {
  const [names, codes] = await Promise.all([texts(packed.names), wholeNumbers(packed.codes)]);
  return { kind: "category", name: packed.name, names: names.map((name) => name || NAMELESS), codes };
}

async function unpackValues(packed: PackedValues, isShare: boolean): Promise<Field> {
  const codes = await wholeNumbers(packed.codes);
  const { levels, low = 0, high = 0, steps = 1 } = packed;
  // Halved, because the range itself may be too large for a number.
  const known = levels
    ? (code: number) => levels[code] ?? Number.NaN
    : (code: number) => (code > steps ? Number.NaN : low + 2 * (code / steps) * (high / 2 - low / 2));
  return { kind: "number", name: packed.name, values: Float64Array.from(codes, known), isShare };
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
