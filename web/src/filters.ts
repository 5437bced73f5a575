// Which rows are seen: every filter must let a row pass. A filter is of one field: categories that are
// hidden, or a range of numbers.

import { button, element } from "./dom";
import type { Field, Table } from "./table";
import { count, percent, quantity } from "./words";

export interface CategoryFilter {
  kind: "category";
  /** Codes of names that are hidden; the number of names stands for rows without one. */
  hidden: Set<number>;
}

export interface RangeFilter {
  kind: "range";
  low: number;
  high: number;
}

export type Filter = CategoryFilter | RangeFilter;

export class Filters {
  private readonly all = new Map<number, { field: Field; filter: Filter }>();
  /** 1 for each row that is seen; null where nothing is filtered. */
  seen: Uint8Array | null = null;
  /** How many rows are seen. */
  count: number;

  constructor(private readonly rows: number) {
    this.count = rows;
  }

  get(choice: number): Filter | null {
    return this.all.get(choice)?.filter ?? null;
  }

  entries(): [number, Filter][] {
    return [...this.all].map(([choice, { filter }]) => [choice, filter]);
  }

  /** Filter by a field from now on; null takes its filter away. */
  set(choice: number, field: Field, filter: Filter | null): void {
    const idle = !filter || (filter.kind === "category" && !filter.hidden.size);
    if (idle) this.all.delete(choice);
    else this.all.set(choice, { field, filter });
    this.update();
  }

  clear(): void {
    this.all.clear();
    this.update();
  }

  isSeen(row: number): boolean {
    return !this.seen || this.seen[row] === 1;
  }

  private update(): void {
    this.count = this.rows;
    this.seen = null;
    if (!this.all.size) return;
    const seen = new Uint8Array(this.rows).fill(1);
    for (const { field, filter } of this.all.values()) {
      if (filter.kind === "category" && field.kind === "category") {
        const { codes } = field;
        for (let row = 0; row < this.rows; row++) if (filter.hidden.has(codes[row])) seen[row] = 0;
      } else if (filter.kind === "range" && field.kind === "number") {
        const { values } = field;
        for (let row = 0; row < this.rows; row++) {
          if (!(values[row] >= filter.low && values[row] <= filter.high)) seen[row] = 0;
        }
      }
    }
    this.seen = seen;
    this.count = seen.reduce((sum, one) => sum + one, 0);
  }

  /** What is filtered, as a list in which each filter can be taken away. */
  show(where: HTMLElement, table: Table, changed: () => void): void {
    where.hidden = !this.all.size;
    const items = [...this.all].map(([choice, { field, filter }]) =>
      element(
        "li",
        {},
        element("span", { class: "map-name" }, `${table.choices[choice].name}: ${words(field, filter)}`),
        button("\u00d7", () => {
          this.set(choice, field, null);
          changed();
        }, { class: "map-close", "aria-label": `Remove the filter on ${table.choices[choice].name}` }),
      ),
    );
    where.replaceChildren(
      element("h3", {}, `${count(this.count, "row")} of ${table.rows.toLocaleString("en")} (${percent(this.count / table.rows)})`),
      element("ul", { class: "map-chips" }, ...items),
      button("Show all rows", () => {
        this.clear();
        changed();
      }, { class: "map-link" }),
    );
  }
}

function words(field: Field, filter: Filter): string {
  if (filter.kind === "range") {
    const isShare = field.kind === "number" && field.isShare;
    return `${quantity(filter.low, isShare)} to ${quantity(filter.high, isShare)}`;
  }
  if (field.kind !== "category") return "";
  const shown = field.names.map((_, code) => code).filter((code) => !filter.hidden.has(code));
  if (shown.length && shown.length <= 2) return shown.map((code) => field.names[code]).join(", ");
  return `${count(filter.hidden.size, "group")} hidden`;
}
