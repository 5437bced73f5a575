// Files to keep: the rows that are selected as CSV.

import { NAMELESS, type Table } from "./table";

// As in src/gnomon/data/write.py: spreadsheets take cells that begin like this for formulas.
const FORMULA = /^(?:[\p{Z}\p{C}]*[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b]|[\t\r\n])/u;

/** The rows with their number, id, labels, trust and text, one line each. */
export async function csv(table: Table, rows: Iterable<number>): Promise<string> {
  const columns: { name: string; cell: (row: number) => string }[] = [];
  if (table.numberOf(0) !== null) columns.push({ name: "row", cell: (row) => String(table.numberOf(row)) });
  const { ids, idName } = table;
  if (ids && idName !== null) columns.push({ name: idName, cell: (row) => text(ids[row]) });
  for (const { group, load } of table.choices) {
    if (group === "Components" || group === "Columns") continue;
    const field = await load();
    columns.push({
      name: field.name,
      cell:
        field.kind === "category"
          ? (row) => nameCell(field.names[field.codes[row]])
          : (row) => (Number.isNaN(field.values[row]) ? "" : String(Number(field.values[row].toPrecision(6)))),
    });
  }
  const { texts, textName } = table;
  if (texts && textName !== null) columns.push({ name: textName, cell: (row) => text(texts[row]) });
  const lines = [columns.map(({ name }) => text(name)).join()];
  for (const row of rows) lines.push(columns.map(({ cell }) => cell(row)).join());
  return `${lines.join("\n")}\n`;
}

function nameCell(name: string | undefined): string {
  return name === undefined || name === NAMELESS ? "" : text(name);
}

function text(cell: string): string {
  return `"${(FORMULA.test(cell) ? `'${cell}` : cell).replaceAll('"', '""')}"`;
}

/** Hand `content` to the browser as a file. */
export function save(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
