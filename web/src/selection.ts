// What is said of the rows that are selected, and what can be done with them.

import { type Differences, differences } from "./apart";
import { csv, save } from "./download";
import { button, element } from "./dom";
import type { Palette } from "./palette";
import type { Pictures } from "./pictures";
import type { Table } from "./table";
import { count, number, percent, whole } from "./words";

const MOST_COLUMNS = 8;
const MOST_LABELS = 4;
const NOTEWORTHY = 0.2; // Cohen's "small": what is less is not told
const FULL = 2; // the difference that a whole bar stands for
const MONTAGE = 48; // pictures of a selection that are shown, spread evenly over its rows

export interface SelectionActions {
  clear: () => void;
  colourBy: (choice: number) => void;
  say: (text: string) => void;
  go: (row: number) => void;
}

/** The pictures of the rows, where there are any. */
export interface Shown {
  pictures: Pictures | null;
  palette: Palette;
}

export async function showSelection(
  where: HTMLElement, table: Table, rows: Uint32Array, what: string, shown: Shown, actions: SelectionActions,
): Promise<void> {
  const id = (part: string) => where.id.replace(/selection$/, part);
  const apart = element("div", { class: "map-apart" }, element("p", {}, "Comparing \u2026"));
  where.replaceChildren(
    element("h3", {}, `${count(rows.length, "row")} selected`),
    ...(what ? [element("p", { class: "map-name map-what" }, what)] : []),
    element(
      "div",
      { class: "map-buttons" },
      button("Download CSV", () => void keep(table, rows), { id: id("csv") }),
      button("Copy ids", () => void copy(table, rows, actions), { id: id("copy") }),
      button("Clear", actions.clear, { id: id("clear") }),
    ),
    ...montage(rows, shown, table, actions),
    apart,
  );
  if (rows.length === table.rows) {
    apart.replaceChildren(element("p", {}, "All rows are selected: there are no others to compare them with."));
    return;
  }
  const selected = new Uint8Array(table.rows);
  for (const row of rows) selected[row] = 1;
  const found = await differences(table, selected);
  if (apart.isConnected) apart.replaceChildren(...told(found, table, actions));
}

/** Some of the pictures of the rows, and the mean of all of them. */
function montage(rows: Uint32Array, { pictures, palette }: Shown, table: Table, actions: SelectionActions): HTMLElement[] {
  const pictured = pictures ? rows.filter((row) => pictures.has(row)) : new Uint32Array();
  const mean = pictures?.mean(pictured, 64, palette);
  if (!pictures || !mean) return [];
  const step = Math.max(pictured.length / MONTAGE, 1);
  const some = Array.from({ length: Math.min(pictured.length, MONTAGE) }, (_, i) => pictured[Math.floor(i * step)]);
  const tiles = some.map((row) => {
    const made = button("", () => actions.go(row), { class: "map-tile", title: table.nameOf(row), "data-row": row });
    made.setAttribute("aria-label", table.nameOf(row));
    made.append(pictures.thumbnail(row, 32, palette)!);
    return made;
  });
  const of = mean.of < rows.length ? `${count(mean.of, "picture")} of ${count(rows.length, "row")}` : count(mean.of, "picture");
  const caption = element("span", { class: "map-small" }, `mean of ${of}`);
  return [
    element("div", { class: "map-mean" }, mean.picture, caption),
    element("div", { class: "map-montage" }, ...tiles),
  ];
}

function told(found: Differences, table: Table, actions: SelectionActions): HTMLElement[] {
  const labels = found.labels.filter(({ d }) => d >= NOTEWORTHY).slice(0, MOST_LABELS);
  // Numbers kept for colour are compared even where the columns are pixels or entries of a vector.
  const compared = found.columns.filter(({ feature }) => !feature || table.numbered === null);
  const columns = compared.filter(({ d }) => Math.abs(d) >= NOTEWORTHY).slice(0, MOST_COLUMNS);
  const parts: HTMLElement[] = [element("h4", {}, "What sets these apart")];
  if (!labels.length && !columns.length) {
    parts.push(element("p", {}, "Nothing: these rows are like the others in every label and column that was compared."));
  }
  if (labels.length) {
    parts.push(
      element(
        "ul",
        { class: "map-differences" },
        ...labels.map(({ field, name, d, here, elsewhere }) =>
          line(`${field}: ${name}`, d, `${percent(here)} of these, ${percent(elsewhere)} of the others`),
        ),
      ),
    );
  }
  if (columns.length) {
    const lines = columns.map(({ name, d, means, choice }) => {
      const detail = means
        ? `mean ${number(means.here)}, others ${number(means.elsewhere)}`
        : "estimated from the components";
      return line(name, d, detail, choice === null ? undefined : () => actions.colourBy(choice));
    });
    parts.push(element("ul", { class: "map-differences" }, ...lines));
  }
  const said = table.numbered === null ? method(found) : `Features are not compared one by one: they are ${table.numbered}.`;
  parts.push(element("p", { class: "map-small" }, said));
  return parts;
}

function method({ exact, estimated }: Differences): string {
  const measure = "Differences of means in standard deviations.";
  if (!estimated && !exact) return measure;
  if (!estimated) return `${measure} All ${count(exact, "column")} compared.`;
  if (!exact) return `${measure} All ${count(estimated, "column")} estimated from the components' scores and loadings.`;
  return (
    `${measure} ${count(exact, "column")} compared as they are; the other ${whole(estimated)} are beyond the page's ` +
    "budget and estimated from the components' scores and loadings."
  );
}

function line(name: string, d: number, detail: string, act?: () => void): HTMLElement {
  const bar = element("span", { class: d < 0 ? "map-bar-less" : "map-bar-more", "aria-hidden": "true" });
  bar.style.setProperty("--share", String(Math.min(Math.abs(d) / FULL, 1)));
  const label = act
    ? button(name, act, { class: "map-link map-name", title: `Colour by ${name}` })
    : element("span", { class: "map-name" }, name);
  const value = element("span", { class: "map-d" }, `${d > 0 ? "+" : ""}${number(d, 2)}`);
  return element("li", {}, label, value, element("span", { class: "map-track" }, bar), element("small", {}, detail));
}

async function keep(table: Table, rows: Uint32Array): Promise<void> {
  const text = await csv(table, rows);
  save("selection.csv", new Blob([text], { type: "text/csv" }));
}

async function copy(table: Table, rows: Uint32Array, actions: SelectionActions): Promise<void> {
  const { ids } = table;
  const text = Array.from(rows, (row) => (ids ? ids[row] : String(table.numberOf(row) ?? row))).join("\n");
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyByHand(text); // where the browser keeps the clipboard from pages opened from disk
  }
  actions.say(`${count(rows.length, ids ? "id" : "row number")} copied`);
}

function copyByHand(text: string): void {
  const area = element("textarea", { class: "visually-hidden" });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
