// Search over ids, row numbers, texts, labels and columns, with a list of what was found.

import { activeElement, element } from "./dom";
import type { Categories, Table } from "./table";
import { count } from "./words";

const MOST_ROWS = 8;
const MOST_LABELS = 4;
const MOST_COLUMNS = 6;
const AROUND = 30; // letters before a word that was found in a text
const PAUSE = 120; // milliseconds after the last key

interface Found {
  text: string;
  detail: string;
  act: () => void;
}

export interface SearchActions {
  go: (row: number) => void;
  select: (rows: Uint32Array, what: string) => void;
  colourBy: (choice: number) => void;
  /** Close what the search opened. */
  escape: () => void;
}

export class Search {
  private found: Found[] = [];
  private active = -1;
  private timer = 0;

  constructor(
    private readonly input: HTMLInputElement,
    private readonly list: HTMLElement,
    private readonly table: Table,
    private readonly actions: SearchActions,
  ) {
    input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.look(), PAUSE);
    });
    input.addEventListener("keydown", (event) => this.key(event));
    input.addEventListener("blur", () => setTimeout(() => this.show([]), 150));
    input.addEventListener("focus", () => this.look());
  }

  /** Put the reader into the search, with a beginning. */
  begin(text: string): void {
    this.input.value = text;
    this.input.focus();
    this.input.setSelectionRange(text.length, text.length);
  }

  private async look(): Promise<void> {
    const asked = this.input.value.trim();
    this.show(asked ? [...this.rows(asked), ...(await this.labels(asked)), ...this.columns(asked)] : []);
  }

  /** Columns and components to colour by; "column" alone lists the first. */
  private columns(asked: string): Found[] {
    const wanted = asked.replace(/^columns?(\s+|$)/i, "").toLowerCase();
    return [...this.table.choices.entries()]
      .filter(([, { group, name }]) => (group === "Columns" || group === "Components") && name.toLowerCase().includes(wanted))
      .sort(([a, one], [b, other]) => one.name.length - other.name.length || a - b)
      .slice(0, MOST_COLUMNS)
      .map(([choice, { name }]) => ({ text: name, detail: "colour by it", act: () => this.actions.colourBy(choice) }));
  }

  private rows(asked: string): Found[] {
    const { table } = this;
    const matches = matchingRows(table, asked);
    const found = matches.slice(0, MOST_ROWS).map((row) => ({
      text: table.nameOf(row),
      detail: this.excerpt(row, asked) || (table.ids && table.numberOf(row) !== null ? `row ${table.numberOf(row)}` : ""),
      act: () => this.actions.go(row),
    }));
    if (matches.length > 1) {
      const all = Uint32Array.from(matches).sort();
      const act = () => this.actions.select(all, `\u201c${asked}\u201d`);
      found.push({ text: `Select all ${count(matches.length, "row")} found`, detail: "", act });
    }
    return found;
  }

  /** The text of a row around the word that was found in it. */
  private excerpt(row: number, asked: string): string {
    const text = this.table.texts?.[row] ?? "";
    if (text === this.table.nameOf(row)) return "";
    const at = text.toLowerCase().indexOf(asked.toLowerCase());
    if (at < 0) return "";
    return `${at > AROUND ? "\u2026" : ""}${text.slice(Math.max(at - AROUND, 0), at + 3 * AROUND)}`;
  }

  private async labels(asked: string): Promise<Found[]> {
    const found: Found[] = [];
    for (const { group, load } of this.table.choices) {
      if (group !== "Labels" && group !== "Suggested") continue;
      const field = await load();
      if (field.kind !== "category") continue;
      for (const code of matchingNames(field.names, asked).slice(0, MOST_LABELS)) {
        const rows = rowsNamed(field, code);
        const act = () => this.actions.select(rows, `${field.name} ${field.names[code]}`);
        found.push({ text: `${field.name}: ${field.names[code]}`, detail: `select ${count(rows.length, "row")}`, act });
      }
    }
    return found;
  }

  private key(event: KeyboardEvent): void {
    const { found } = this;
    if (event.key === "Escape") {
      if (this.list.hidden) this.actions.escape();
      this.input.value = "";
      this.close();
    } else if (event.key === "Enter") {
      clearTimeout(this.timer);
      void this.look().then(() => this.choose(Math.max(this.active, 0)));
    } else if (found.length && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.mark((this.active + step + found.length) % found.length);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private choose(which: number): void {
    const chosen = this.found[which];
    if (!chosen) return;
    chosen.act();
    this.close();
  }

  private close(): void {
    this.show([]);
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }

  private show(found: Found[]): void {
    // Asking again for the same keeps the place in the list.
    const same = found.length === this.found.length && found.every(({ text }, i) => text === this.found[i].text);
    this.found = found;
    this.list.replaceChildren(
      ...found.map(({ text, detail }, i) => {
        const item = element("li", { role: "option", id: `${this.list.id}-${i}` }, element("span", { class: "map-name" }, text));
        if (detail) item.append(element("span", { class: "map-count" }, detail));
        item.addEventListener("pointerdown", (event) => {
          event.preventDefault();
          this.choose(i);
        });
        return item;
      }),
    );
    const nothing = this.input.value.trim() !== "" && !found.length && activeElement(this.input) === this.input;
    if (nothing) this.list.append(element("li", { class: "map-nothing" }, "Nothing found"));
    this.list.hidden = !found.length && !nothing;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.mark(same ? this.active : -1);
  }

  private mark(which: number): void {
    this.active = which;
    [...this.list.children].forEach((item, i) => {
      item.setAttribute("aria-selected", String(i === which));
      if (i === which) item.scrollIntoView({ block: "nearest" });
    });
    if (which < 0) this.input.removeAttribute("aria-activedescendant");
    else this.input.setAttribute("aria-activedescendant", `${this.list.id}-${which}`);
  }
}

/** Rows whose id or text holds `asked`: those that are it first, then those that begin with it; or by number. */
function matchingRows(table: Table, asked: string): number[] {
  const { ids, texts, rows } = table;
  const numbered = /^(?:row\s*)?(\d+)$/i.exec(asked);
  const row = numbered ? table.rowOf(Number(numbered[1])) : -1;
  const wanted = asked.toLowerCase();
  const ranks: number[][] = Array.from({ length: 6 }, () => []);
  for (let i = 0; i < rows && (ids || texts); i++) {
    // Of equal rank, an id stands before a text.
    const rank = Math.min(2 * match(ids?.[i], wanted), 2 * match(texts?.[i], wanted) + 1);
    ranks[rank]?.push(i);
  }
  const found = ranks.flat();
  if (row < 0) return found;
  // "row 12" means the number where no id says so.
  return ids && found.length ? found : [row, ...found.filter((other) => other !== row)];
}

/** 0 where a text is what is wanted, 1 where it begins with it, 2 where it holds it, 3 where it does not. */
function match(text: string | undefined, wanted: string): number {
  const at = text === undefined ? -1 : text.toLowerCase().indexOf(wanted);
  if (at < 0) return 3;
  if (at > 0) return 2;
  return text!.length === wanted.length ? 0 : 1;
}

function matchingNames(names: string[], asked: string): number[] {
  const wanted = asked.toLowerCase();
  const found = [...names.keys()].filter((code) => names[code].toLowerCase().includes(wanted));
  return found.sort((a, b) => names[a].length - names[b].length || a - b);
}

function rowsNamed(field: Categories, code: number): Uint32Array {
  const rows: number[] = [];
  field.codes.forEach((other, row) => {
    if (other === code) rows.push(row);
  });
  return Uint32Array.from(rows);
}
