// What the map is coloured by: labels, groups and trust first; columns of the table behind a search.

import { element } from "./dom";
import type { Parts } from "./markup";
import type { Table } from "./table";
import type { MapTool } from "./tool";

const MOST_LISTED = 12; // columns that stand in the menu themselves
const MORE = "more";

export class ColourMenu {
  /** Called when the reader wants to search for a column. */
  onMore: () => void = () => {};
  private readonly menu: HTMLSelectElement;
  private readonly groups = new Map<string, HTMLOptGroupElement>();
  private last: string;

  constructor(parts: Parts, private readonly table: Table, private readonly tool: MapTool) {
    this.menu = parts.colour;
    const { choices } = table;
    const columns = choices.filter(({ group }) => group === "Columns").length;
    this.menu.append(element("option", { value: -1 }, "one colour"));
    let left = table.numbered === null ? MOST_LISTED : 0;
    choices.forEach(({ group }, choice) => {
      if (group !== "Columns" || left-- > 0) this.list(choice);
    });
    if (left < 0) {
      this.groupOf("Columns").append(element("option", { value: MORE }, `Search ${columns} columns\u2026`));
    }
    this.last = String(tool.choice);
    this.menu.value = this.last;
    this.menu.addEventListener("change", () => this.changed());
    tool.onColour = (choice) => this.show(choice);
  }

  choose(choice: number): void {
    void this.tool.colourBy(choice);
  }

  private changed(): void {
    if (this.menu.value !== MORE) {
      this.choose(Number(this.menu.value));
      return;
    }
    this.menu.value = this.last;
    this.onMore();
  }

  /** The menu says what the map is coloured by, however that came about. */
  private show(choice: number): void {
    if (choice >= 0 && ![...this.menu.options].some((option) => option.value === String(choice))) this.list(choice);
    this.last = String(choice);
    this.menu.value = this.last;
  }

  private list(choice: number): void {
    const { group, name } = this.table.choices[choice];
    this.groupOf(group).append(element("option", { value: choice }, name));
  }

  private groupOf(name: string): HTMLOptGroupElement {
    let group = this.groups.get(name);
    if (!group) {
      group = element("optgroup", { label: name });
      this.groups.set(name, group);
      this.menu.append(group);
    }
    return group;
  }
}
