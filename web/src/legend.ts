// What the colours mean, and which of them are seen: groups that can be hidden and searched, or a ramp
// with how many rows have which value, of which a range can be brushed.

import type { Colouring, Group } from "./colouring";
import { activeElement, button, element, shape, swatch } from "./dom";
import type { Filter } from "./filters";
import { quantity, whole } from "./words";

export interface LegendActions {
  /** Filter by the field of the legend; null for no filter. */
  filter: (filter: Filter | null) => void;
}

const MANY = 20; // groups from which there is a search
const MOST_FOUND = 30;

export function showLegend(
  where: HTMLElement, colouring: Colouring, filter: Filter | null, actions: LegendActions,
): void {
  const { field } = colouring;
  const parts: HTMLElement[] = [element("h3", { class: "map-name" }, field?.name ?? "All rows")];
  if (field?.kind === "number" && field.about) parts.push(element("p", { class: "map-about" }, field.about));
  if (colouring.range) parts.push(...ramp(colouring, filter?.kind === "range" ? filter : null, actions));
  const hidden = filter?.kind === "category" ? filter.hidden : new Set<number>();
  const named = colouring.groups.filter((group) => group.name && group.rows && group.codes.length);
  if (field?.kind === "category" && named.length) parts.push(list(named, hidden, colouring, actions));
  // The button that was pressed is made anew, and stays the one that the keyboard is at.
  const controls = () => [...where.querySelectorAll<HTMLElement>("button, input")];
  const at = controls().indexOf(activeElement(where) as HTMLElement);
  const before = where.querySelector("ul")?.scrollTop ?? 0;
  where.replaceChildren(...parts);
  if (at >= 0) controls()[Math.min(at, controls().length - 1)]?.focus({ preventScroll: true });
  where.querySelector("ul")?.scrollTo(0, before);
}

function list(named: Group[], hidden: Set<number>, colouring: Colouring, actions: LegendActions): HTMLElement {
  const box = element("div");
  const { field } = colouring;
  if (field?.kind !== "category") return box;
  const all = [...field.names.keys(), field.names.length];
  const choose = (codes: number[], only: boolean) => {
    const off = codes.every((code) => hidden.has(code));
    const next = new Set(only ? all : hidden);
    for (const code of codes) {
      if (only || off) next.delete(code);
      else next.add(code);
    }
    actions.filter(next.size ? { kind: "category", hidden: next } : null);
  };
  const items = element("ul", { class: "map-groups" }, ...named.map((group) => item(group, hidden, choose)));
  if (field.names.length > MANY) box.append(groupSearch(field.names, items, named, colouring, hidden, choose));
  box.append(items);
  if (hidden.size) box.append(button("Show all groups", () => actions.filter(null), { class: "map-link" }));
  return box;
}

type Choose = (codes: number[], only: boolean) => void;

function item(group: Group, hidden: Set<number>, choose: Choose): HTMLElement {
  const off = group.codes.every((code) => hidden.has(code));
  const made = element("button", { type: "button", class: "map-group", "aria-pressed": String(!off) });
  made.title = `${off ? "Show" : "Hide"} ${group.name}; with Shift show only this`;
  made.addEventListener("click", (event) => choose(group.codes, event.shiftKey));
  made.append(
    swatch(group.colour),
    element("span", { class: "map-name" }, group.name),
    element("span", { class: "map-count" }, whole(group.rows)),
  );
  return element("li", {}, made);
}

/** Beyond the groups that have a colour of their own: any group by its name, shown alone when chosen. */
function groupSearch(
  names: string[], items: HTMLElement, named: Group[], colouring: Colouring, hidden: Set<number>, choose: Choose,
): HTMLElement {
  const input = element("input", {
    type: "search", class: "map-find", placeholder: `Find one of ${whole(names.length)} groups`,
    "aria-label": "Find a group",
  });
  input.addEventListener("input", () => {
    const asked = input.value.trim().toLowerCase();
    if (!asked) {
      items.replaceChildren(...named.map((group) => item(group, hidden, choose)));
      return;
    }
    const codes = [...names.keys()].filter((code) => names[code].toLowerCase().includes(asked)).slice(0, MOST_FOUND);
    items.replaceChildren(
      ...codes.map((code) => {
        const group = colouring.groups.find((one) => one.codes.includes(code));
        const rows = colouring.counts[code];
        return item({ name: names[code], colour: group?.colour ?? "", rows, codes: [code] }, hidden, (one) =>
          choose(one, true),
        );
      }),
    );
  });
  return input;
}

const HEIGHT = 36;
const STEPS_A_BAR = 4;

function ramp(
  { field, groups, range }: Colouring, filter: { low: number; high: number } | null, actions: LegendActions,
): HTMLElement[] {
  const { low, high } = range!;
  const steps = groups.filter((group) => !group.name);
  const picture = shape("svg", {
    viewBox: `0 0 ${steps.length} ${HEIGHT + 8}`, preserveAspectRatio: "none", class: "map-ramp",
    "aria-label": "How many rows have which value; drag to filter", role: "img",
  });
  for (const { left, width, share } of bars(steps.map((group) => group.rows))) {
    const fill = steps[Math.min(Math.round(left + width / 2), steps.length - 1)].colour;
    picture.append(shape("rect", { x: left + 0.1, y: HEIGHT * (1 - share), width: width - 0.2, height: HEIGHT * share, fill }));
  }
  steps.forEach((group, x) => {
    picture.append(shape("rect", { x, y: HEIGHT + 2, width: 1.05, height: 6, fill: group.colour }));
  });
  const isShare = field?.kind === "number" && field.isShare;
  const at = (value: number) => (high > low ? ((value - low) / (high - low)) * steps.length : 0);
  const brush = shape("rect", { class: "map-brush", y: 0, height: HEIGHT + 8, x: 0, width: 0 });
  const mark = (from: number, to: number) => {
    brush.setAttribute("x", String(at(from)));
    brush.setAttribute("width", String(Math.max(at(to) - at(from), 0)));
  };
  if (filter) mark(filter.low, filter.high);
  picture.append(brush);
  follow(picture, (from, to, done) => {
    const [least, most] = [low + from * (high - low), low + to * (high - low)];
    mark(least, most);
    if (done) actions.filter(from === to ? null : { kind: "range", low: least, high: most });
  });
  const end = (value: number) => element("span", {}, quantity(value, isShare));
  const ends = element("div", { class: "map-ends" }, end(low), end(high));
  return [element("div", {}, picture, ends), limits(low, high, filter, isShare, actions)];
}

/** A drag along `picture`, as shares of its width; `done` when it ends. A click without a drag ends it too. */
function follow(picture: SVGElement, brushed: (from: number, to: number, done: boolean) => void): void {
  let began: number | null = null;
  const share = (event: PointerEvent) => {
    const box = picture.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
  };
  picture.addEventListener("pointerdown", (event) => {
    began = share(event);
    picture.setPointerCapture(event.pointerId);
  });
  const move = (event: PointerEvent, done: boolean) => {
    if (began === null) return;
    const here = share(event);
    brushed(Math.min(began, here), Math.max(began, here), done);
    if (done) began = null;
  };
  picture.addEventListener("pointermove", (event) => move(event, false));
  picture.addEventListener("pointerup", (event) => move(event, true));
}

/** The ends of the range as numbers that can be typed; shares in per cent. */
function limits(
  low: number, high: number, filter: { low: number; high: number } | null, isShare: boolean, actions: LegendActions,
): HTMLElement {
  const unit = isShare ? 100 : 1;
  const input = (label: string, value: number | undefined) =>
    element("input", {
      type: "number", step: "any", "aria-label": label, placeholder: label,
      value: value === undefined ? "" : Number((unit * value).toPrecision(4)),
    });
  const [from, to] = [input("from", filter?.low), input("to", filter?.high)];
  const changed = () => {
    const read = (one: HTMLInputElement, usual: number) => (one.value === "" ? usual : Number(one.value) / unit);
    const range = { low: read(from, low), high: read(to, high) };
    actions.filter(from.value === "" && to.value === "" ? null : { kind: "range", ...range });
  };
  for (const one of [from, to]) one.addEventListener("change", changed);
  return element("div", { class: "map-limits" }, element("span", {}, "Show"), from, element("span", {}, "to"), to);
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
