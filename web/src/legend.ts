// What the colours mean: groups that can be hidden, or a ramp with how many rows have which value.

import type { Colouring } from "./colouring";
import { button, element, shape, swatch } from "./dom";
import { quantity, whole } from "./words";

export interface LegendActions {
  /** Which groups are hidden from now on. */
  hide: (hidden: Set<number>) => void;
}

export function showLegend(where: HTMLElement, colouring: Colouring, hidden: Set<number>, actions: LegendActions): void {
  const title = element("h3", { class: "map-name" }, colouring.field?.name ?? "All rows");
  const parts: HTMLElement[] = [title];
  if (colouring.range) parts.push(ramp(colouring));
  const named = [...colouring.groups.entries()].filter(([, group]) => group.name && group.rows);
  if (colouring.field && named.length) parts.push(list(named, hidden, colouring, actions));
  // The button that was pressed is made anew, and stays the one that the keyboard is at.
  const buttons = () => [...where.querySelectorAll("button")];
  const at = buttons().indexOf(document.activeElement as HTMLButtonElement);
  where.replaceChildren(...parts);
  if (at >= 0) buttons()[Math.min(at, buttons().length - 1)]?.focus();
}

function list(
  named: [number, Colouring["groups"][number]][], hidden: Set<number>, colouring: Colouring, actions: LegendActions,
): HTMLElement {
  const box = element("div");
  const items = named.map(([code, group]) => {
    const item = element("button", { type: "button", class: "map-group", "aria-pressed": String(!hidden.has(code)) });
    item.title = `${hidden.has(code) ? "Show" : "Hide"} ${group.name}; with Shift show only this`;
    item.addEventListener("click", (event) => {
      const others = colouring.groups.map((_, other) => other).filter((other) => other !== code);
      const next = new Set(event.shiftKey ? others : hidden);
      if (!event.shiftKey && !next.delete(code)) next.add(code);
      actions.hide(next);
    });
    item.append(
      swatch(group.colour),
      element("span", { class: "map-name" }, group.name),
      element("span", { class: "map-count" }, whole(group.rows)),
    );
    return element("li", {}, item);
  });
  box.append(element("ul", { class: "map-groups" }, ...items));
  if (hidden.size) box.append(button("Show all groups", () => actions.hide(new Set()), { class: "map-link" }));
  return box;
}

const HEIGHT = 36;
const STEPS_A_BAR = 4;

function ramp({ field, groups, range }: Colouring): HTMLElement {
  const steps = groups.filter((group) => !group.name);
  const picture = shape("svg", {
    viewBox: `0 0 ${steps.length} ${HEIGHT + 8}`, preserveAspectRatio: "none", class: "map-ramp", "aria-hidden": "true",
  });
  for (const { left, width, share } of bars(steps.map((group) => group.rows))) {
    const fill = steps[Math.min(Math.round(left + width / 2), steps.length - 1)].colour;
    picture.append(shape("rect", { x: left + 0.1, y: HEIGHT * (1 - share), width: width - 0.2, height: HEIGHT * share, fill }));
  }
  steps.forEach((group, x) => {
    picture.append(shape("rect", { x, y: HEIGHT + 2, width: 1.05, height: 6, fill: group.colour }));
  });
  const end = (value: number | undefined) =>
    element("span", {}, quantity(value ?? Number.NaN, field?.kind === "number" && field.isShare));
  const ends = element(
    "div",
    { class: "map-ends" },
    end(range?.low),
    end(range?.high),
  );
  return element("div", {}, picture, ends);
}

interface Bar {
  left: number;
  width: number;
  /** Of the tallest. */
  share: number;
}

/** How many rows have which value: a bar a value where there are few, otherwise one for some steps. */
function bars(rows: number[]): Bar[] {
  const some = [...rows.keys()].filter((step) => rows[step]);
  const gap = Math.min(...some.slice(1).map((step, i) => step - some[i]));
  const most = (counts: number[]) => Math.max(...counts, 1);
  if (gap >= STEPS_A_BAR - 1 && Number.isFinite(gap)) {
    // Each reaches half-way to the next, which rounding may put a step farther off; the first begins
    // where the ramp begins, and the last ends where it ends.
    const half = (a: number | undefined, b: number) => Math.min(Math.abs((a ?? b + gap) - b), gap + 1) / 2;
    const along = (place: number) => ((place + gap / 2) / (rows.length - 1 + gap)) * rows.length;
    return some.map((step, i) => {
      const left = along(step - (i ? half(some[i - 1], step) : gap / 2));
      const right = along(step + half(some[i + 1], step));
      return { left, width: right - left, share: rows[step] / most(rows) };
    });
  }
  const sums: number[] = [];
  rows.forEach((count, step) => {
    const bar = Math.floor(step / STEPS_A_BAR);
    sums[bar] = (sums[bar] ?? 0) + count;
  });
  return sums.map((sum, bar) => ({ left: bar * STEPS_A_BAR, width: STEPS_A_BAR, share: sum / most(sums) }));
}
