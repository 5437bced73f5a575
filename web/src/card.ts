// The card beside the row that is looked at: its name, picture, text, link, labels and trust, and its
// neighbours in the data.

import { button, element, swatch } from "./dom";
import type { Palette } from "./palette";
import type { Pictures } from "./pictures";
import type { Field, Table } from "./table";
import { quantity } from "./words";

const PICTURE = 96; // pixels
const THUMBNAIL = 30;

export interface CardActions {
  go: (row: number) => void;
  close: () => void;
}

/** What a card is made with, besides its row. */
export interface CardContent {
  fields: Field[];
  pictures: Pictures | null;
  palette: Palette;
  colourOf: (row: number) => string;
}

/** Fields whose values the card tells: labels, groups, trust, and what the map is coloured by. */
export async function cardFields(table: Table, coloured: Field | null): Promise<Field[]> {
  const told = table.choices.filter(({ group }) => group === "Labels" || group === "Suggested" || group === "Trust");
  const fields = await Promise.all(told.slice(0, 6).map((choice) => choice.load()));
  return coloured && !fields.includes(coloured) ? [coloured, ...fields] : fields;
}

export function showCard(
  card: HTMLElement, table: Table, row: number, content: CardContent, pinned: boolean, actions: CardActions,
): void {
  const { fields, colourOf, pictures, palette } = content;
  const head = element("div", { class: "map-card-head" }, swatch(colourOf(row)));
  head.append(element("strong", { class: "map-name" }, table.nameOf(row)));
  if (pinned) head.append(button("\u00d7", actions.close, { class: "map-close", "aria-label": "Close" }));
  const facts = element("dl", { class: "map-facts" });
  const number = table.numberOf(row);
  if (table.ids && number !== null) facts.append(...fact("row", String(number)));
  for (const field of fields) facts.append(...fact(field.name, valueOf(field, row)));
  const picture = pictures?.thumbnail(row, PICTURE, palette);
  const shown = element("div", { class: picture ? "map-shown map-pictured" : "map-shown" });
  if (picture) shown.append(picture);
  shown.append(facts);
  card.replaceChildren(head, shown);
  if (pictures && !picture) {
    card.append(element("p", { class: "map-small map-unpictured" }, "The page holds no picture of this row."));
  }
  const text = table.texts?.[row];
  if (text && text !== table.nameOf(row)) card.append(element("p", { class: "map-text" }, text));
  const link = table.links?.[row];
  if (link) card.append(element("p", { class: "map-where" }, linkTo(link)));
  const near = table.neighborsOf(row);
  if (table.sides.length) {
    const columns = table.sides.map((side) => {
      const rows = side.neighbors.map((rank) => rank[row]).filter((other) => other !== row);
      const list = element("ol", { class: "map-near" }, ...rows.map((other) => neighbour(table, other, content, actions)));
      return element("div", {}, element("p", { class: "map-card-title" }, `Nearest in ${side.name}`), list);
    });
    card.append(element("div", { class: "map-sides" }, ...columns));
  } else if (near.length) {
    card.append(element("p", { class: "map-card-title" }, `Nearest in ${table.space}`));
    card.append(element("ol", { class: "map-near" }, ...near.map((other) => neighbour(table, other, content, actions))));
  }
  card.hidden = false;
  card.classList.toggle("pinned", pinned);
}

/** A link to what an address of the web names; any other text is only text. */
export function linkTo(address: string): HTMLElement {
  const plain = element("span", { class: "map-plain-link" }, address);
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return plain;
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return plain;
  const link = element("a", { href: url.href, target: "_blank", rel: "noopener noreferrer", title: url.href }, url.host);
  link.append(element("span", { "aria-hidden": "true" }, " \u2197"));
  return link;
}

function neighbour(
  table: Table, row: number, { fields, colourOf, pictures, palette }: CardContent, actions: CardActions,
): HTMLElement {
  const go = button("", () => actions.go(row), { class: "map-go", "data-row": row });
  const text = table.texts?.[row];
  const picture = pictures?.thumbnail(row, THUMBNAIL, palette);
  go.append(swatch(colourOf(row)), ...(picture ? [picture] : []));
  go.append(element("span", { class: "map-name" }, table.nameOf(row)));
  if (text && text !== table.nameOf(row)) go.append(element("span", { class: "map-name map-count map-said" }, text));
  else {
    const label = fields.find((field) => field.kind === "category");
    if (label) go.append(element("span", { class: "map-count map-name" }, valueOf(label, row)));
  }
  return element("li", {}, go);
}

function fact(name: string, value: string): HTMLElement[] {
  return [element("dt", { class: "map-name" }, name), element("dd", { class: "map-name" }, value)];
}

export function valueOf(field: Field, row: number): string {
  if (field.kind === "number") return quantity(field.values[row], field.isShare, 4);
  return field.names[field.codes[row]] ?? field.none;
}

/** What is said aloud of a row. */
export function spoken(table: Table, row: number, fields: Field[]): string {
  const values = fields.map((field) => `${field.name} ${valueOf(field, row)}`);
  const sides = table.sides.length ? table.sides : [{ name: "", neighbors: table.neighbors }];
  const nearest = sides
    .filter((side) => side.neighbors.length)
    .map((side) => `. Nearest${side.name && ` in ${side.name}`}: ${side.neighbors.map((rank) => table.nameOf(rank[row])).join(", ")}`)
    .join("");
  const said = table.texts?.[row];
  const text = said && said !== table.nameOf(row) ? `. ${said.slice(0, 300)}` : "";
  return `${[table.nameOf(row), ...values].join(", ")}${text}${nearest}`;
}
