// The elements of the map. They are made here, so that a page, a notebook or a page of two maps only
// gives a place to put them; ids begin with a prefix of the component's own.

import { button, element } from "./dom";

export interface Parts {
  root: HTMLElement;
  colour: HTMLSelectElement;
  search: HTMLInputElement;
  found: HTMLElement;
  maps: HTMLElement;
  move: HTMLButtonElement;
  lasso: HTMLButtonElement;
  fit: HTMLButtonElement;
  replay: HTMLElement;
  display: HTMLElement;
  share: HTMLButtonElement;
  figure: HTMLElement;
  stage: HTMLElement;
  points: HTMLCanvasElement;
  overlay: HTMLCanvasElement;
  card: HTMLElement;
  hint: HTMLElement;
  selection: HTMLElement;
  filters: HTMLElement;
  legend: HTMLElement;
  status: HTMLElement;
  /** The id of a part, for labels and tests. */
  id: (part: string) => string;
}

const BY_MOUSE =
  "Drag to move; click the map, then turn the wheel to zoom; Shift and drag to select with a lasso (Ctrl adds). ";
const BY_TOUCH = "Tap the map first: then one finger moves it, two zoom, and with Lasso a finger selects. ";
const BY_KEYS =
  "By keyboard: arrows go from point to point, with Shift they move the map; + and \u2212 zoom, 0 shows all, " +
  "Enter selects a row and its neighbours, Escape clears.";

export interface Said {
  /** How many rows there are, and what a search looks through. */
  rows: string;
  searched: string;
  /** Sentences about the map. */
  says: string[];
}

export function buildParts(root: HTMLElement, prefix: string, { rows, searched, says }: Said, ended: AbortSignal): Parts {
  const id = (part: string) => `${prefix}-${part}`;
  const control = (part: string, label: string, act = () => {}) => button(label, act, { id: id(part) });
  const choice = (label: string, ...buttons: HTMLElement[]) =>
    element("div", { class: "map-choice", role: "group", "aria-label": label }, ...buttons);

  const colour = element("select", { id: id("colour") });
  const search = element("input", {
    id: id("search"), type: "search", role: "combobox", "aria-expanded": "false", "aria-controls": id("found"),
    "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false", placeholder: searched,
  });
  const found = element("ul", {
    id: id("found"), class: "map-found", role: "listbox", "aria-label": "What was found", hidden: true,
  });
  const maps = choice("Which map");
  Object.assign(maps, { id: id("switch"), hidden: true });
  const move = control("move", "Move");
  const lasso = control("lasso", "Lasso");
  const fit = control("fit", "Show all");
  const replay = element("div", { id: id("replay"), class: "map-replay", hidden: true });
  const display = menu(id("display"), "Display", ended);
  const share = control("share", "Share view");
  const figure = menu(id("figure"), "Figure", ended);

  const points = element("canvas", { id: id("points"), "aria-hidden": "true" });
  const overlay = element("canvas", { id: id("overlay"), "aria-hidden": "true" });
  const hint = element(
    "p", { id: id("hint"), class: "map-hint", hidden: true }, "Click the map, or hold Ctrl, to zoom with the wheel.",
  );
  const stage = element(
    "div",
    {
      id: id("stage"), class: "map-stage", tabindex: "0", role: "application", "aria-roledescription": "map",
      "aria-label": `Map of ${rows}`, "aria-describedby": id("keys"),
    },
    points, overlay, hint,
  );
  const card = element("div", { id: id("card"), class: "map-card", hidden: true });
  const selection = element("div", { id: id("selection"), class: "map-selection", hidden: true });
  const filters = element("div", { id: id("filters"), class: "map-filters", hidden: true });
  const legend = element("div", { id: id("legend"), class: "map-legend" });
  const status = element("p", { id: id("status"), class: "visually-hidden", role: "status" });

  const bar = element(
    "div",
    { class: "map-bar" },
    element("label", { class: "map-control" }, element("span", {}, "Colour by"), colour),
    element(
      "div", { class: "map-control map-search" },
      element("label", { for: search.id, class: "visually-hidden" }, "Search"), search, found,
    ),
    maps,
    choice("What dragging does", move, lasso),
    fit,
    element("div", { class: "map-menus" }, display, share, figure),
  );
  const body = element(
    "div",
    { class: "map-body" },
    element("div", { class: "map-main" }, stage, replay, card),
    element(
      "div", { class: "map-side" }, selection, filters, legend,
      element("div", { id: id("says"), class: "map-says" }, ...says.map((text) => element("p", {}, text))),
    ),
  );
  const keys = element(
    "p", { id: id("keys"), class: "map-small map-keys" },
    element("span", { class: "by-mouse" }, BY_MOUSE),
    element("span", { class: "by-touch" }, BY_TOUCH),
    element("span", { class: "by-mouse" }, BY_KEYS),
  );
  root.classList.add("map-tool");
  root.replaceChildren(bar, body, keys, status);
  return {
    root, colour, search, found, maps, move, lasso, fit, replay, display, share, figure, stage, points, overlay, card,
    hint, selection, filters, legend, status, id,
  };
}

/** A button that opens a small panel below it; Escape and a click elsewhere close it. */
function menu(id: string, label: string, ended: AbortSignal): HTMLElement {
  const panel = element("div", { class: "map-panel" });
  const box = element("details", { id, class: "map-menu" }, element("summary", {}, label), panel);
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !box.open) return;
    box.open = false;
    box.querySelector("summary")?.focus();
    event.stopPropagation();
  });
  const elsewhere = (event: PointerEvent) => {
    // Its path, since within a shadow root the document sees only the host as the target.
    if (box.open && !event.composedPath().includes(box)) box.open = false;
  };
  document.addEventListener("pointerdown", elsewhere, { signal: ended });
  return box;
}

/** The panel of a menu. */
export function panelOf(box: HTMLElement): HTMLElement {
  return box.lastElementChild as HTMLElement;
}
