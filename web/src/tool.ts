// The map: what is seen, coloured, looked at and selected, and what happens when that changes.

import { CanvasDrawing, ease } from "./canvas";
import { cardFields, showCard, spoken } from "./card";
import { type Colouring, colour, type Marks, marks } from "./colouring";
import type { MapEvents } from "./component";
import { element, pencil } from "./dom";
import { type Dots, type Drawing, dotsFor } from "./drawing";
import type { Drawn } from "./figure";
import { Filters } from "./filters";
import { Grid } from "./grid";
import { nextRow } from "./keyboard";
import { type Place, rowsInside } from "./lasso";
import { showLegend } from "./legend";
import type { Parts } from "./markup";
import { type Spot, spots } from "./names";
import { paintOverlay, type Scene, type Trails } from "./overlay";
import { type Palette, readPalette } from "./palette";
import { Pictures } from "./pictures";
import { showSelection } from "./selection";
import type { ViewState } from "./share";
import type { Field, PointMap, Table } from "./table";
import { Tiles } from "./tiles";
import { between, type Bounds, fit, panned, shapeOf, type Size, toMap, toScreen, type View, zoomed } from "./view";
import { webglDrawing } from "./webgl";
import { count } from "./words";

const REACH = 14; // pixels within which a point is pointed at
const MOVING = 0.7; // seconds from one map to the other
const CARD = 290; // pixels, as in map.css
const BEHIND = 0.25; // opacity of points behind pictures
const GAP = 18; // between a row and its card
const MOST_TRAILS = 400; // arrows that can still be told apart
const [MARGIN, PICTURE_MARGIN] = [28, 44]; // pixels around the whole map

type Emit = <Name extends keyof MapEvents>(name: Name, detail: MapEvents[Name]) => void;

export class MapTool {
  /** Called when another map is shown, or another colour. */
  onMap: (which: number) => void = () => {};
  onColour: (choice: number) => void = () => {};
  /** The place of the field in `table.choices` that the map is coloured by; −1 for none. */
  choice = -1;
  /** Whether names are written on the map. */
  named = true;
  /** Both maps of a comparison, where rows that are selected or looked at leave trails. */
  trails: [PointMap, PointMap] | null = null;
  private readonly stage: HTMLElement;
  private drawing!: Drawing;
  private palette: Palette;
  private which = 0;
  private map!: PointMap;
  private grid!: Grid;
  private field: Field | null = null;
  private fields: Field[] = [];
  private colouring!: Colouring;
  private shown!: Marks;
  private readonly filters: Filters;
  private selection: Uint32Array | null = null;
  private selected: Uint8Array | null = null;
  private focus: number | null = null;
  private pinned = false;
  private line: Place[] = [];
  private spots: Spot[] = [];
  private pictures: Pictures | null = null;
  private tiles: Tiles | null = null;
  private pictured = true;
  private factors = { size: 1, opacity: 1 };
  private view: View = { x: 0, y: 0, scale: 1 };
  private size: Size = { width: 1, height: 1 };
  private frame = 0;
  private readonly observer = new ResizeObserver(() => this.resized());
  private isDestroyed = false;
  /** What is shown as a whole, where that is more than the map. */
  private bounds: Bounds | null = null;

  private constructor(
    private readonly table: Table, private readonly parts: Parts, private readonly emit: Emit,
    /** Whether another map speaks for this one: it has neither card nor lists of its own. */
    private readonly isTwin: boolean,
  ) {
    this.stage = parts.stage;
    this.palette = readPalette(parts.root);
    this.filters = new Filters(table.rows);
  }

  static async start(table: Table, parts: Parts, emit: Emit, isTwin = false): Promise<MapTool> {
    const tool = new MapTool(table, parts, emit, isTwin);
    // Labels or groups; without them, how far each row can be trusted, or how dense the data are.
    const first = table.choices[0];
    tool.choice = first && first.group !== "Components" ? 0 : -1;
    [tool.map, tool.field] = await Promise.all([table.map(0), table.choices[tool.choice]?.load() ?? null]);
    tool.grid = new Grid(tool.map);
    tool.stage.dataset.map = tool.map.name;
    parts.root.style.setProperty("--map-shape", String(shapeOf(tool.grid.bounds)));
    tool.measure();
    tool.view = tool.whole();
    tool.recolour();
    await tool.drawPlainly();
    tool.observer.observe(tool.stage);
    return tool;
  }

  /** When the rest of the data has been unpacked. */
  async ready(): Promise<void> {
    this.fields = await cardFields(this.table, this.field);
    if (this.table.pictures) {
      this.pictures = await Pictures.open(this.table.pictures, this.table.rows);
      this.tiles = this.pictures && new Tiles(this.pictures);
    }
    this.respot();
    this.look();
  }

  /** On a plain canvas: the first picture, which is there at once, and all without a graphics card. */
  private drawPlainly(): Promise<void> {
    this.drawing = new CanvasDrawing(this.parts.points);
    this.stage.dataset.drawing = "canvas";
    this.look();
    return this.drawing.draw(this.map, this.shown, 0);
  }

  /** By WebGL from now on, where there is a card for it: it takes a while to start, and is quicker then. */
  async quicken(): Promise<void> {
    const plain = this.parts.points;
    const canvas = newCanvas();
    plain.before(canvas);
    const webgl = await webglDrawing(canvas, () => this.lost(canvas));
    if (!webgl) {
      canvas.remove();
      return;
    }
    webgl.frame(await this.table.map(0));
    webgl.look(this.view, this.size, this.dots());
    await webgl.draw(this.map, this.shown, 0);
    if (webgl.isLost || this.isDestroyed) {
      webgl.destroy();
      canvas.remove();
      return;
    }
    this.drawing.destroy();
    this.drawing = webgl;
    this.stage.dataset.drawing = "webgl";
    canvas.id = plain.id;
    plain.remove();
    this.parts.points = canvas;
    // What changed while it started.
    this.look();
    void webgl.draw(this.map, this.shown, 0);
  }

  /** The card took its memory back: a plain canvas in the place of what it drew on. */
  private lost(canvas: HTMLCanvasElement): void {
    if (this.parts.points !== canvas) return;
    this.drawing.destroy();
    const plain = newCanvas();
    plain.id = canvas.id;
    canvas.replaceWith(plain);
    this.parts.points = plain;
    void this.drawPlainly();
  }

  destroy(): void {
    this.isDestroyed = true;
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    this.drawing.destroy();
  }

  // What is seen

  private whole(): View {
    return fit(this.bounds ?? this.grid.bounds, this.size, this.table.pictures ? PICTURE_MARGIN : MARGIN);
  }

  private dots(): Dots {
    const { width, height } = this.size;
    const usual = dotsFor(this.table.rows, this.view.scale / this.whole().scale, Math.min(width, height));
    const { size } = this.factors;
    // Points stand back behind pictures.
    const opacity = this.factors.opacity * (this.pictured && this.tiles ? BEHIND : 1);
    return { across: usual.across * size, opacity: Math.min(usual.opacity * opacity, 1) };
  }

  /** Points larger or smaller, more or less solid, than usual. */
  setDots(factors: { size?: number; opacity?: number }): void {
    Object.assign(this.factors, factors);
    this.look();
  }

  showNames(named: boolean): void {
    this.named = named;
    this.paint();
  }

  showPictures(pictured: boolean): void {
    this.pictured = pictured;
    this.look();
  }

  private measure(): void {
    const { clientWidth, clientHeight } = this.stage;
    this.size = { width: Math.max(clientWidth, 1), height: Math.max(clientHeight, 1) };
  }

  private resized(): void {
    if (!this.stage.clientWidth) return; // hidden, as by a collapsed cell of a notebook
    const before = this.whole().scale;
    this.measure();
    this.view.scale *= this.whole().scale / before;
    this.look();
  }

  private look(): void {
    const { view, size } = this;
    this.stage.dataset.view = [view.x, view.y, view.scale].join(" ");
    this.drawing.look(view, size, this.dots());
    this.paint();
  }

  private paint(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      const { size } = this;
      const { overlay } = this.parts;
      const [width, height] = [Math.round(size.width * devicePixelRatio), Math.round(size.height * devicePixelRatio)];
      if (overlay.width !== width || overlay.height !== height) Object.assign(overlay, { width, height });
      const context = pencil(overlay);
      context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
      context.clearRect(0, 0, size.width, size.height);
      const scene = this.scene();
      paintOverlay(context, scene);
      this.stage.dataset.tiles = String(scene.tiles.length);
      this.stage.dataset.trails = String(scene.trails?.rows.length ?? 0);
      this.placeCard();
    });
  }

  /** All that a picture of the map is made from. */
  private scene(): Scene {
    const { map, view, size, palette, focus, line, pictures } = this;
    const shown = this.pictured && this.tiles ? this.tiles.choose(map, view, size, this.filters.seen) : null;
    return {
      map, view, size, palette, focus, lasso: line, pictures,
      tiles: shown?.tiles ?? [],
      tile: shown?.tile ?? 0,
      spots: this.named ? this.spots : [],
      neighbors: focus === null ? [] : this.table.neighborsOf(focus),
      colourOf: this.colourOf,
      across: this.dots().across,
      trails: this.trailing(),
    };
  }

  private trailing(): Trails | null {
    if (!this.trails) return null;
    const [from, to] = this.trails;
    const rows = this.selection ? [...this.selection.subarray(0, MOST_TRAILS)] : [];
    if (this.focus !== null) rows.push(this.focus);
    return rows.length ? { rows: rows.filter(this.isSeen), from, to } : null;
  }

  /** The same in the colours of a scheme, whichever the page has. */
  picture(scheme: "light" | "dark"): Drawn {
    const place = element("div", { class: `gn-${scheme}` });
    this.parts.root.append(place);
    const palette = readPalette(place);
    place.remove();
    const colouring = colour(this.field, this.table.rows, palette);
    const shown = marks(colouring, palette, this.filters.seen, this.selected);
    const colourOf = (row: number) => colouring.groups[colouring.codes[row]].colour;
    return { scene: { ...this.scene(), palette, colourOf, focus: null }, marks: shown, dots: this.dots(), colouring };
  }

  pan(across: number, down: number): void {
    this.view = panned(this.view, across, down);
    this.look();
  }

  zoom(factor: number, at: Place = [this.size.width / 2, this.size.height / 2]): void {
    this.view = zoomed(this.view, this.size, this.whole(), factor, ...at);
    this.look();
  }

  showAll(): void {
    this.glide(this.whole(), 0.3);
  }

  private glide(to: View, seconds: number): void {
    const from = this.view;
    const start = performance.now();
    const duration = 1000 * (isCalm() ? 0 : seconds);
    const step = (now: number) => {
      const share = duration ? Math.min((now - start) / duration, 1) : 1;
      this.view = between(from, to, ease(Math.max(share, 0)));
      this.look();
      if (share < 1) requestAnimationFrame(step);
    };
    step(start);
  }

  /** Another map of the same rows: points move there, and a card that was pinned goes along. */
  async switchTo(which: number): Promise<void> {
    if (which === this.which) return;
    this.which = which;
    this.onMap(which);
    if (!this.pinned) this.lookAt(null, false);
    this.map = await this.table.map(which);
    this.grid = new Grid(this.map);
    this.spots = [];
    const seconds = isCalm() ? 0 : MOVING;
    this.glide(this.whole(), seconds);
    await this.drawing.draw(this.map, this.shown, seconds);
    if (which !== this.which) return;
    this.stage.dataset.map = this.map.name;
    this.emit("map", { name: this.map.name });
    this.respot();
    this.paint();
  }

  /** A moment of the making of the map; null for the map itself. */
  async showFrame(frame: PointMap | null): Promise<void> {
    if (this.which !== 0) await this.switchTo(0);
    this.lookAt(null, false);
    this.map = frame ?? (await this.table.map(0));
    this.grid = new Grid(this.map);
    this.spots = [];
    if (!frame) this.respot();
    this.view = this.whole();
    this.look();
    await this.drawing.draw(this.map, this.shown, 0);
  }

  /** The same rows at other places, seen from where one looks; names only `named` where these last. */
  async place(map: PointMap, named: boolean): Promise<void> {
    this.map = map;
    this.grid = new Grid(map);
    this.spots = [];
    if (named) this.respot();
    this.paint();
    await this.drawing.draw(map, this.shown, 0);
  }

  /** A view that holds all points of several maps. */
  showBoth(maps: PointMap[]): void {
    const all = maps.map((map) => new Grid(map).bounds);
    const most = (side: "right" | "top") => Math.max(...all.map((bounds) => bounds[side]));
    const least = (side: "left" | "bottom") => Math.min(...all.map((bounds) => bounds[side]));
    this.bounds = { left: least("left"), right: most("right"), bottom: least("bottom"), top: most("top") };
    this.parts.root.style.setProperty("--map-shape", String(shapeOf(this.bounds)));
    this.view = this.whole();
    this.look();
  }

  // Colours and filters

  async colourBy(choice: number): Promise<void> {
    this.field = (await this.table.choices[choice]?.load()) ?? null;
    this.choice = this.field ? choice : -1;
    this.recolour();
    this.onColour(this.choice);
    this.fields = await cardFields(this.table, this.field);
    await this.redraw();
    this.stage.dataset.colour = this.field?.name ?? "";
    this.emit("colour", { name: this.field?.name ?? "" });
  }

  /** The same with the colours of the theme as it is now. */
  recolour(): void {
    this.palette = readPalette(this.parts.root);
    this.colouring = colour(this.field, this.table.rows, this.palette);
    this.update();
  }

  redraw(): Promise<void> {
    const drawn = this.drawing.draw(this.map, this.shown, 0);
    this.paint();
    if (this.focus !== null && !this.isTwin) this.tell(this.focus);
    return drawn;
  }

  private respot(): void {
    this.spots = spots(this.table, this.colouring, this.map, this.grid.bounds, this.filters.seen);
  }

  private update(): void {
    const { filters, parts, choice } = this;
    this.shown = marks(this.colouring, this.palette, filters.seen, this.selected);
    this.respot();
    filters.show(parts.filters, this.table, () => this.filtered());
    showLegend(parts.legend, this.colouring, filters.get(choice), {
      filter: (filter) => {
        if (this.field) filters.set(choice, this.field, filter);
        this.filtered();
      },
    });
  }

  private filtered(): void {
    if (this.focus !== null && !this.filters.isSeen(this.focus)) this.lookAt(null, false);
    this.update();
    void this.redraw();
    this.stage.dataset.seen = String(this.filters.count);
    this.say(`${count(this.filters.count, "row")} shown`);
    this.emit("filter", { rows: this.filters.count });
  }

  private readonly isSeen = (row: number) => this.filters.isSeen(row);
  private readonly colourOf = (row: number) => this.colouring.groups[this.colouring.codes[row]].colour;

  // Views that are shared

  state(): ViewState {
    const { view } = this;
    return {
      digest: this.table.digest,
      colour: this.choice,
      map: this.which,
      view: [view.x, view.y, view.scale / this.whole().scale],
      filters: this.filters.entries().map(([choice, filter]) => ({ choice, filter })),
      selection: this.selection,
      focus: this.pinned ? this.focus : null,
    };
  }

  async restore(state: ViewState): Promise<void> {
    await this.switchTo(state.map);
    this.filters.clear();
    for (const { choice, filter } of state.filters) {
      const field = await this.table.choices[choice].load();
      if ((filter.kind === "range") === (field.kind === "number")) this.filters.set(choice, field, filter);
    }
    await this.colourBy(state.colour);
    this.filtered();
    this.select(state.selection, "");
    const [x, y, zoom] = state.view;
    const whole = this.whole();
    this.view = zoomed({ x, y, scale: whole.scale * zoom }, this.size, whole, 1, this.size.width / 2, this.size.height / 2);
    this.look();
    if (state.focus !== null) this.lookAt(state.focus, true);
  }

  // Looking at a row

  point(at: Place | null): void {
    if (this.pinned) return;
    const row = at ? this.rowAt(at) : -1;
    this.lookAt(row < 0 ? null : row, false);
  }

  press(at: Place): void {
    const row = this.rowAt(at);
    this.lookAt(row < 0 ? null : row, row >= 0);
  }

  private rowAt(at: Place): number {
    const [x, y] = toMap(this.view, this.size, ...at);
    return this.grid.nearest(x, y, REACH / this.view.scale, this.isSeen);
  }

  /** Look at a row, and bring it into view if it is not. */
  go(row: number): void {
    if (!this.isSeen(row)) {
      this.filters.clear();
      this.filtered();
    }
    const [x, y] = toScreen(this.view, this.size, this.map.x[row], this.map.y[row]);
    const away = x < 20 || y < 20 || x > this.size.width - 20 || y > this.size.height - 20;
    if (away) this.glide({ ...this.view, x: this.map.x[row], y: this.map.y[row] }, 0.4);
    this.lookAt(row, true);
  }

  step(across: number, up: number): void {
    const from = this.focus ?? this.middle();
    if (from < 0) return;
    this.go(this.focus === null ? from : nextRow(this.map, from, across, up, this.isSeen));
  }

  private middle(): number {
    return this.grid.nearest(this.view.x, this.view.y, Infinity, this.isSeen);
  }

  lookAt(row: number | null, pinned: boolean): void {
    if (row === this.focus && pinned === this.pinned) return;
    this.focus = row;
    this.pinned = pinned && row !== null;
    if (row === null) this.parts.card.hidden = true;
    else if (!this.isTwin) this.tell(row);
    this.stage.dataset.focus = row === null ? "" : String(row);
    this.emit("focus", { row, pinned: this.pinned });
    if (row !== null && pinned && !this.isTwin) this.say(spoken(this.table, row, this.fields));
    this.paint();
  }

  /** Show what happens on the other map of a pair, without passing it on. */
  echo({ row, pinned = false, rows }: { row?: number | null; pinned?: boolean; rows?: Uint32Array | null }): void {
    if (rows !== undefined) {
      this.mark(rows);
      void this.redraw();
    }
    if (row !== undefined) {
      this.focus = row;
      this.pinned = pinned;
      this.stage.dataset.focus = row === null ? "" : String(row);
      this.paint();
    }
  }

  /** Filter as the other map of a pair does. */
  async echoFilters(other: MapTool): Promise<void> {
    const given = other.filters.entries();
    const fields = await Promise.all(given.map(([choice]) => this.table.choices[choice].load()));
    this.filters.clear();
    given.forEach(([choice, filter], i) => this.filters.set(choice, fields[i], filter));
    this.update();
    this.stage.dataset.seen = String(this.filters.count);
    await this.redraw();
  }

  private tell(row: number): void {
    const { fields, pictures, palette, colourOf } = this;
    showCard(this.parts.card, this.table, row, { fields, pictures, palette, colourOf }, this.pinned, {
      go: (other) => this.go(other),
      close: () => {
        this.lookAt(null, false);
        this.stage.focus({ preventScroll: true });
      },
    });
  }

  /** The card beside its row, where it covers fewest of the neighbours that are drawn. */
  private placeCard(): void {
    if (this.focus === null) return;
    const { width, height } = this.size;
    const { card } = this.parts;
    const at = (row: number) => toScreen(this.view, this.size, this.map.x[row], this.map.y[row]);
    const [x, y] = at(this.focus);
    const [wide, tall] = [Math.min(CARD, width - 16), Math.min(card.offsetHeight, height - 16)];
    const inside = (left: number, top: number): Place => [
      Math.min(Math.max(left, 8), Math.max(width - wide - 8, 8)),
      Math.min(Math.max(top, 8), Math.max(height - tall - 8, 8)),
    ];
    const beside = [x + GAP, x - GAP - wide];
    const candidates = [
      ...beside.map((left) => inside(left, y - 24)),
      ...beside.flatMap((left) => [inside(left, y + GAP), inside(left, y - GAP - tall)]),
      inside(x - wide / 2, y + GAP),
      inside(x - wide / 2, y - GAP - tall),
      ...[8, width].flatMap((left) => [8, height].map((top) => inside(left, top))),
    ];
    const drawn = [[x, y], ...this.table.neighborsOf(this.focus).map(at)];
    const covered = ([left, top]: Place) =>
      drawn.filter(([px, py], i) => {
        const edge = i ? 8 : 10;
        return px > left - edge && px < left + wide + edge && py > top - edge && py < top + tall + edge;
      }).length;
    const best = candidates.reduce((one, other) => (covered(other) < covered(one) ? other : one));
    card.style.setProperty("left", `${best[0]}px`);
    card.style.setProperty("top", `${best[1]}px`);
  }

  // Selecting

  lassoing(line: Place[]): void {
    this.line = line;
    this.paint();
  }

  lasso(line: Place[], add: boolean): void {
    const polygon = line.map(([x, y]) => toMap(this.view, this.size, x, y));
    const inside = rowsInside(this.map, this.grid, polygon, this.isSeen);
    const rows = add && this.selection ? new Set([...this.selection, ...inside]) : inside;
    this.line = [];
    this.select(Uint32Array.from(rows).sort(), "");
  }

  private mark(rows: Uint32Array | null): void {
    this.selection = rows;
    this.selected = rows && new Uint8Array(this.table.rows);
    if (rows) for (const row of rows) this.selected![row] = 1;
    this.update();
    this.stage.dataset.selected = String(rows?.length ?? 0);
  }

  select(rows: Uint32Array | null, what: string): void {
    const some = rows?.length ? rows : null;
    this.lookAt(null, false);
    this.mark(some);
    void this.redraw();
    if (this.isTwin) {
      this.emit("select", { rows: some });
      return;
    }
    const where = this.parts.selection;
    where.hidden = !some;
    this.say(some ? `${count(some.length, "row")} selected` : "Nothing selected");
    this.emit("select", { rows: some });
    if (!some) return;
    const { pictures, palette } = this;
    void showSelection(where, this.table, some, what, { pictures, palette }, {
      clear: () => this.select(null, ""),
      colourBy: (choice) => void this.colourBy(choice),
      say: (text) => this.say(text),
      go: (row) => this.go(row),
    });
  }

  /** The row that is looked at and its neighbours. */
  selectNear(): void {
    if (this.focus === null) return;
    const rows = [this.focus, ...this.table.neighborsOf(this.focus)];
    this.select(Uint32Array.from(rows).sort(), `${this.table.nameOf(this.focus)} and its nearest rows`);
  }

  escape(): void {
    if (this.line.length) this.lassoing([]);
    else if (this.focus !== null) this.lookAt(null, false);
    else this.select(null, "");
  }

  say(text: string): void {
    this.parts.status.textContent = text;
  }
}

/** Whether the reader asked for little movement. */
function isCalm(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

function newCanvas(): HTMLCanvasElement {
  return element("canvas", { "aria-hidden": "true" });
}
