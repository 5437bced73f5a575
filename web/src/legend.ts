// What the colours mean: groups that can be hidden, or a ramp with how many rows have which value.

import type { Colouring } from "./colouring";
import { button, element, shape, swatch } from "./dom";
import { number, whole } from "./words";

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
  where.replaceChildren(...parts);
}

function list(
  named: [number, Colouring["groups"][number]][], hidden: Set<number>, colouring: Colouring, actions: LegendActions,
): HTMLElement {
  const box = element("div");
  const items = named.map(([code, group]) => {
    const act = () => {
      const next = new Set(hidden);
      if (!next.delete(code)) next.add(code);
      actions.hide(next);
    };
    const item = button("", act, { class: "map-group", "aria-pressed": !hidden.has(code) ? "true" : "false" });
    item.title = `${hidden.has(code) ? "Show" : "Hide"} ${group.name}; with a double click show only this`;
    item.append(
      swatch(group.colour),
      element("span", { class: "map-name" }, group.name),
      element("span", { class: "map-count" }, whole(group.rows)),
    );
    item.addEventListener("dblclick", () => {
      const others = colouring.groups.map((_, other) => other).filter((other) => other !== code);
      actions.hide(new Set(others));
    });
    return element("li", {}, item);
  });
  box.append(element("ul", { class: "map-groups" }, ...items));
  if (hidden.size) box.append(button("Show all groups", () => actions.hide(new Set()), { class: "map-link" }));
  return box;
}

const HEIGHT = 36;

function ramp({ groups, range }: Colouring): HTMLElement {
  const steps = groups.filter((group) => !group.name);
  const most = Math.max(...steps.map((group) => group.rows));
  const picture = shape("svg", {
    viewBox: `0 0 ${steps.length} ${HEIGHT + 8}`, preserveAspectRatio: "none", class: "map-ramp", "aria-hidden": "true",
  });
  steps.forEach((group, i) => {
    const tall = (HEIGHT * group.rows) / most;
    picture.append(shape("rect", { x: i, y: HEIGHT - tall, width: 1.02, height: tall, fill: group.colour }));
    picture.append(shape("rect", { x: i, y: HEIGHT + 2, width: 1.02, height: 6, fill: group.colour }));
  });
  const ends = element(
    "div",
    { class: "map-ends" },
    element("span", {}, number(range?.low ?? Number.NaN)),
    element("span", {}, number(range?.high ?? Number.NaN)),
  );
  return element("div", {}, picture, ends);
}
