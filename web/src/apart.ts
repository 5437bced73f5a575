// What sets some rows apart from the others: the standardised mean difference of every column,
// d = (mean of these − mean of the others) / standard deviation of all, and the same for every label
// (a column of 0 and 1). Columns that are not in the page are known by their correlation r with the
// components: d ≈ Σ r · d of the component's scores.

import type { Categories, Table, Values } from "./table";

export interface ColumnDifference {
  name: string;
  d: number;
  /** Whether the column is a feature of the map. */
  feature: boolean;
  /** Means where the column itself is in the page; otherwise null, and `d` is an estimate. */
  means: { here: number; elsewhere: number } | null;
  /** A place in `table.choices`, for colouring by it. */
  choice: number | null;
}

export interface LabelDifference {
  field: string;
  name: string;
  d: number;
  here: number;
  elsewhere: number;
}

export interface Differences {
  columns: ColumnDifference[];
  labels: LabelDifference[];
  /** How many columns are in the page as they are, and how many were estimated. */
  exact: number;
  estimated: number;
}

export async function differences(table: Table, selected: Uint8Array): Promise<Differences> {
  const columns: ColumnDifference[] = [];
  const labels: LabelDifference[] = [];
  const held = new Set<number>();
  for (const [choice, { group, column, load }] of table.choices.entries()) {
    if (group === "Trust" || group === "Components") continue;
    const field = await load();
    if (field.kind === "category") {
      if (field.scattered) continue; // what a row did, not what it is
      labels.push(...ofLabels(field, selected));
    } else {
      columns.push({ name: field.name, ...ofValues(field, selected), feature: column !== undefined, choice });
      if (column !== undefined) held.add(column);
    }
  }
  const estimates = await fromComponents(table, selected, held);
  const byStrength = (a: { d: number }, b: { d: number }) => Math.abs(b.d) - Math.abs(a.d);
  return {
    columns: [...columns, ...estimates].sort(byStrength),
    labels: labels.sort(byStrength),
    exact: held.size,
    estimated: estimates.length,
  };
}

function ofValues({ values }: Pick<Values, "values">, selected: Uint8Array): { d: number; means: { here: number; elsewhere: number } } {
  const count = [0, 0];
  const sum = [0, 0];
  for (let row = 0; row < values.length; row++) {
    if (Number.isNaN(values[row])) continue;
    count[selected[row]]++;
    sum[selected[row]] += values[row];
  }
  const mean = (sum[0] + sum[1]) / (count[0] + count[1]);
  let squares = 0;
  for (const value of values) if (!Number.isNaN(value)) squares += (value - mean) ** 2;
  const spread = Math.sqrt(squares / (count[0] + count[1]));
  const means = { here: sum[1] / count[1], elsewhere: sum[0] / count[0] };
  return { d: finite((means.here - means.elsewhere) / spread), means };
}

function ofLabels({ name, names, codes }: Categories, selected: Uint8Array): LabelDifference[] {
  const counts = [new Uint32Array(names.length + 1), new Uint32Array(names.length + 1)];
  const rows = [0, 0];
  for (let row = 0; row < codes.length; row++) {
    counts[selected[row]][codes[row]]++;
    rows[selected[row]]++;
  }
  return names.map((label, code) => {
    const here = counts[1][code] / rows[1];
    const elsewhere = counts[0][code] / rows[0];
    const share = (counts[0][code] + counts[1][code]) / (rows[0] + rows[1]);
    const d = finite((here - elsewhere) / Math.sqrt(share * (1 - share)));
    return { field: name, name: label, d, here, elsewhere };
  });
}

async function fromComponents(table: Table, selected: Uint8Array, held: Set<number>): Promise<ColumnDifference[]> {
  const names = await table.columnNames();
  if (held.size === names.length) return [];
  const components = await table.components();
  const d = components.map(({ scores }) => ofValues({ values: scores }, selected).d);
  return names.flatMap((name, column) => {
    if (held.has(column) || !components.length) return [];
    const sum = components.reduce((total, { correlations }, c) => total + correlations[column] * d[c], 0);
    return [{ name, d: sum, feature: true, means: null, choice: null }];
  });
}

function finite(value: number): number {
  return Number.isFinite(value) ? value : 0;
}
