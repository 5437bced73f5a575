// The map as one component: data in, events out. It knows neither the page around it nor its address.
//
//   const map = await mountMap(place, data);
//   map.on("select", ({ rows }) => …);
//
// Events: "select" {rows}, "focus" {row, pinned}, "colour" {name}, "filter" {rows}, "map" {name}, "share" {state}.

import { ColourMenu } from "./colour_menu";
import { button, element } from "./dom";
import { figureMenu } from "./figure_menu";
import { followKeyboard } from "./keyboard";
import { buildParts, panelOf, type Parts } from "./markup";
import { followPointer } from "./pointer";
import { replayControl } from "./replay";
import { Search } from "./search";
import { readState, writeState } from "./share";
import { type PackedTable, Table } from "./table";
import { MapTool } from "./tool";
import { count } from "./words";

export interface MapEvents {
  select: { rows: Uint32Array | null };
  focus: { row: number | null; pinned: boolean };
  colour: { name: string };
  filter: { rows: number };
  map: { name: string };
  share: { state: string };
}

export interface MapComponent {
  readonly table: Table;
  readonly root: HTMLElement;
  readonly parts: Parts;
  readonly tool: MapTool;
  on<Name extends keyof MapEvents>(name: Name, listener: (detail: MapEvents[Name]) => void): void;
  /** Select rows; null for none. */
  select(rows: Uint32Array | null): void;
  /** Look at a row, and bring it into view. */
  look(row: number): void;
  /** What is seen, as a short text: colour, map, place, filters, selection. */
  state(): string;
  /** Show what such a text describes; false, and nothing changes, where it is not of this data. */
  restore(state: string): Promise<boolean>;
  /** Read the colours of the page again. */
  recolour(): void;
  /** Resolves when the rest of the data is unpacked and everything works. */
  readonly ready: Promise<void>;
  /** Give the graphics card and the document back; the map is not used afterwards. */
  destroy(): void;
}

export interface MapOptions {
  /** What the ids of the elements begin with: another one for each map of a page. */
  prefix?: string;
  /** Whether it is the second map of a pair, for which the first one speaks. */
  isTwin?: boolean;
}

/** Put the map of `data` into `root`. Resolves when the points are drawn; `ready` when all of it works. */
export async function mountMap(
  root: HTMLElement, data: PackedTable, { prefix = "map", isTwin = false }: MapOptions = {},
): Promise<MapComponent> {
  const table = new Table(data);
  const ending = new AbortController();
  const said = { rows: count(table.rows, "row"), searched: searchHint(data), says: data.says };
  const parts = buildParts(root, prefix, said, ending.signal);
  const emit = <Name extends keyof MapEvents>(name: Name, detail: MapEvents[Name]) => {
    root.dispatchEvent(new CustomEvent(`gnomon-${name}`, { detail }));
  };
  const tool = await MapTool.start(table, parts, emit, isTwin);
  mapSwitch(table, tool, parts);
  hands(tool, parts);
  displayMenu(table, tool, parts);
  return {
    table,
    root,
    parts,
    tool,
    on: (name, listener) => {
      root.addEventListener(`gnomon-${name}`, (event) => listener((event as CustomEvent).detail));
    },
    select: (rows) => tool.select(rows, ""),
    look: (row) => tool.go(row),
    state: () => writeState(tool.state()),
    restore: async (state) => {
      const read = readState(state, table);
      if (read) await tool.restore(read);
      return read !== null;
    },
    recolour: () => {
      tool.recolour();
      void tool.redraw();
    },
    ready: finish(table, tool, parts, emit),
    destroy: () => {
      ending.abort();
      tool.destroy();
    },
  };
}

async function finish(
  table: Table, tool: MapTool, parts: Parts,
  emit: <Name extends keyof MapEvents>(name: Name, detail: MapEvents[Name]) => void,
): Promise<void> {
  await nextFrame();
  await table.finish();
  await tool.ready();
  const menu = new ColourMenu(parts, table, tool);
  const search = new Search(parts.search, parts.found, table, {
    go: (row) => tool.go(row),
    select: (rows, what) => tool.select(rows, what),
    colourBy: (choice) => menu.choose(choice),
    escape: () => tool.escape(),
  });
  menu.onMore = () => search.begin("column ");
  figureMenu(parts, table, tool);
  replayControl(parts, table, tool);
  parts.share.addEventListener("click", () => emit("share", { state: writeState(tool.state()) }));
  await tool.quicken();
}

/** When what was drawn is on the screen. */
function nextFrame(): Promise<void> {
  return new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
}

function searchHint(data: PackedTable): string {
  return data.texts ? "Search rows, words, columns" : "Search rows, labels, columns";
}

/** One button a map. */
function mapSwitch(table: Table, tool: MapTool, parts: Parts): void {
  const buttons = table.mapNames.map((name, which) => button(name, () => void tool.switchTo(which)));
  tool.onMap = (which) => {
    buttons.forEach((other, i) => other.setAttribute("aria-pressed", String(i === which)));
  };
  tool.onMap(0);
  parts.maps.replaceChildren(...buttons);
  parts.maps.hidden = buttons.length < 2;
}

/** Size and opacity of the points, names and pictures. */
function displayMenu(table: Table, tool: MapTool, parts: Parts): void {
  const slider = (name: string, low: number, high: number, act: (value: number) => void) => {
    const input = element("input", {
      type: "range", id: parts.id(name.replaceAll(" ", "-").toLowerCase()), min: low, max: high, step: "any", value: 0,
    });
    input.addEventListener("input", () => act(2 ** Number(input.value)));
    return element("label", { class: "map-row" }, element("span", {}, name), input);
  };
  const check = (name: string, on: boolean, act: (on: boolean) => void) => {
    const input = element("input", { type: "checkbox", id: parts.id(name.toLowerCase()), checked: on });
    input.addEventListener("change", () => act(input.checked));
    return element("label", { class: "map-check" }, input, name);
  };
  panelOf(parts.display).append(
    slider("Point size", -2, 2, (factor) => tool.setDots({ size: factor })),
    slider("Opacity", -3, 1, (factor) => tool.setDots({ opacity: factor })),
    check("Names", true, (on) => tool.showNames(on)),
    ...(table.pictures ? [check("Pictures", true, (on) => tool.showPictures(on))] : []),
  );
}

function hands(tool: MapTool, parts: Parts): void {
  const { stage, card, move, lasso, hint } = parts;
  let lassoes = false;
  const choose = (chosen: boolean) => {
    lassoes = chosen;
    move.setAttribute("aria-pressed", String(!chosen));
    lasso.setAttribute("aria-pressed", String(chosen));
    stage.classList.toggle("lassoing", chosen);
  };
  choose(false);
  move.addEventListener("click", () => choose(false));
  lasso.addEventListener("click", () => choose(true));
  parts.fit.addEventListener("click", () => tool.showAll());
  let timer = 0;
  followPointer(stage, card, {
    point: (at) => tool.point(at),
    press: (at) => tool.press(at),
    pan: (across, down) => tool.pan(across, down),
    zoom: (factor, at) => tool.zoom(factor, at),
    lassoing: (line) => tool.lassoing(line),
    lasso: (line, add) => tool.lasso(line, add),
    isLasso: () => lassoes,
    scrolled: () => {
      hint.hidden = false;
      clearTimeout(timer);
      timer = window.setTimeout(() => {
        hint.hidden = true;
      }, 1200);
    },
  });
  const keys = {
    step: (across: number, up: number) => tool.step(across, up),
    pan: (across: number, down: number) => tool.pan(across, down),
    zoom: (factor: number) => tool.zoom(factor),
    fit: () => tool.showAll(),
    choose: () => tool.selectNear(),
    escape: () => tool.escape(),
  };
  followKeyboard(stage, keys);
  card.addEventListener("keydown", (event) => {
    if (event.key === "Escape") tool.escape();
  });
}
