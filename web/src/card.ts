// The card beside the row that is looked at: its name, labels and trust, and its neighbours in the data.

import { button, element, swatch } from "./dom";
import type { Field, Table } from "./table";
import { quantity } from "./words";

export interface CardActions {
  go: (row: number) => void;
  close: () => void;
}

/** Fields whose values the card tells: labels, trust, and what the map is coloured by. */
export async function cardFields(table: Table, coloured: Field | null): Promise<Field[]> {
  const told = table.choices.filter(({ group }) => group === "Labels" || group === "Trust");
  const fields = await Promise.all(told.slice(0, 6).map((choice) => choice.load()));
  return coloured && !fields.includes(coloured) ? [coloured, ...fields] : fields;
}

export function showCard(
  card: HTMLElement,
  table: Table,
  row: number,
  fields: Field[],
  colourOf: (row: number) => string,
  pinned: boolean,
  actions: CardActions,
): void {
  const head = element("div", { class: "map-card-head" }, swatch(colourOf(row)));
  head.append(element("strong", { class: "map-name" }, table.nameOf(row)));
  if (pinned) head.append(button("\u00d7", actions.close, { class: "map-close", "aria-label": "Close" }));
  const facts = element("dl", { class: "map-facts" });
  if (table.ids) facts.append(...fact("row", String(row)));
  for (const field of fields) facts.append(...fact(field.name, valueOf(field, row)));
  card.replaceChildren(head, facts);
  const near = table.neighborsOf(row);
  if (near.length) {
    card.append(element("p", { class: "map-card-title" }, `Nearest in ${table.space}`));
    card.append(element("ol", { class: "map-near" }, ...near.map((other) => neighbour(table, other, fields, colourOf, actions))));
  }
  card.hidden = false;
  card.classList.toggle("pinned", pinned);
}

function neighbour(
  table: Table, row: number, fields: Field[], colourOf: (row: number) => string, actions: CardActions,
): HTMLElement {
  const go = button("", () => actions.go(row), { class: "map-go", "data-row": row });
  go.append(swatch(colourOf(row)), element("span", { class: "map-name" }, table.nameOf(row)));
  const label = fields.find((field) => field.kind === "category");
  if (label) go.append(element("span", { class: "map-count map-name" }, valueOf(label, row)));
  return element("li", {}, go);
}

function fact(name: string, value: string): HTMLElement[] {
  return [element("dt", { class: "map-name" }, name), element("dd", { class: "map-name" }, value)];
}

export function valueOf(field: Field, row: number): string {
  if (field.kind === "number") return quantity(field.values[row], field.isShare, 4);
  return field.names[field.codes[row]] ?? "none";
}

/** What is said aloud of a row. */
export function spoken(table: Table, row: number, fields: Field[]): string {
  const values = fields.map((field) => `${field.name} ${valueOf(field, row)}`);
  const near = table.neighborsOf(row).map((other) => table.nameOf(other));
  const nearest = near.length ? `. Nearest: ${near.join(", ")}` : "";
  return `${[table.nameOf(row), ...values].join(", ")}${nearest}`;
}
