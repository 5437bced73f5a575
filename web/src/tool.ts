// The map: what is seen, coloured, looked at and selected, and what happens when that changes.

import { CanvasDrawing, ease } from "./canvas";
import { cardFields, showCard, spoken } from "./card";
import { type Colouring, colour, type Marks, marks } from "./colouring";
import { byId, element, pencil } from "./dom";
import { type Dots, type Drawing, dotsFor } from "./drawing";
import { Grid } from "./grid";
import { nextRow } from "./keyboard";
import { type Place, rowsInside } from "./lasso";
import { showLegend } from "./legend";
import { type Spot, spots } from "./names";
import { paintOverlay, type Scene } from "./overlay";
import { type Palette, readPalette } from "./palette";
import { showSelection } from "./selection";
import type { Field, PointMap, Table } from "./table";
import { between, fit, panned, type Size, toMap, toScreen, type View, zoomed } from "./view";
import { webglDrawing } from "./webgl";
import { count } from "./words";

const REACH = 14; // pixels within which a point is pointed at
const MOVING = 0.7; // seconds from one map to the other
const CARD = 280; // pixels, as in map.css

export class MapTool {
  private readonly stage = byId("map-stage");
  private readonly card = byId("map-card");
  private readonly overlay = byId<HTMLCanvasElement>("map-overlay");
  private drawing!: Drawing;
  private palette: Palette = readPalette(document.documentElement);
  private which = 0;
  private map!: PointMap;
  private grid!: Grid;
  private field: Field | null = null;
  private fields: Field[] = [];
  private colouring!: Colouring;
  private shown!: Marks;
  private hidden = new Set<number>();
  private selection: Uint32Array | null = null;
  private selected: Uint8Array | null = null;
  private focus: number | null = null;
  private pinned = false;
  private line: Place[] = [];
  private spots: Spot[] = [];
  private view: View = { x: 0, y: 0, scale: 1 };
  private size: Size = { width: 1, height: 1 };
  private frame = 0;

  private constructor(private readonly table: Table) {}

  static async start(table: Table): Promise<MapTool> {
    const tool = new MapTool(table);
    [tool.map, tool.field] = await Promise.all([table.map(0), table.choices[0]?.load() ?? null]);
    tool.grid = new Grid(tool.map);
    tool.stage.dataset.map = tool.map.name;
    tool.shape();
    tool.measure();
    tool.view = tool.whole();
    tool.recolour();
    await tool.drawPlainly();
    new ResizeObserver(() => tool.resized()).observe(tool.stage);
    return tool;
  }

  /** When the rest of the data has been unpacked. */
  async ready(): Promise<void> {
    this.fields = await cardFields(this.table, this.field);
  }

  /** On a plain canvas: the first picture, which is there at once, and all without a graphics card. */
  private drawPlainly(): Promise<void> {
    this.drawing = new CanvasDrawing(byId("map-points"));
    this.stage.dataset.drawing = "canvas";
    this.look();
    return this.drawing.draw(this.map, this.shown, 0);
  }

  /** By WebGL from now on, where there is a card for it: it takes a while to start, and is quicker then. */
  async quicken(): Promise<void> {
    const plain = byId<HTMLCanvasElement>("map-points");
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
    if (webgl.isLost) {
      webgl.destroy();
      canvas.remove();
      return;
    }
    this.drawing.destroy();
    this.drawing = webgl;
    this.stage.dataset.drawing = "webgl";
    plain.remove();
    canvas.id = "map-points";
    // What changed while it started.
    this.look();
    void webgl.draw(this.map, this.shown, 0);
  }

  /** The card took its memory back: a plain canvas in the place of what it drew on. */
  private lost(canvas: HTMLCanvasElement): void {
    if (canvas.id !== "map-points") return;
    this.drawing.destroy();
    const plain = newCanvas();
    plain.id = canvas.id;
    canvas.replaceWith(plain);
    void this.drawPlainly();
  }

  // What is seen

  private whole(): View {
    return fit(this.grid.bounds, this.size);
  }

  private dots(): Dots {
    const { width, height } = this.size;
    return dotsFor(this.table.rows, this.view.scale / this.whole().scale, Math.min(width, height));
  }

  /** The stage as wide and high as its map, within reason. */
  private shape(): void {
    const { left, right, bottom, top } = this.grid.bounds;
    const ratio = (right - left) / (top - bottom) || 1;
    this.stage.style.setProperty("--ratio", String(Math.min(Math.max(ratio, 0.9), 1.8)));
  }

  private measure(): void {
    const { clientWidth, clientHeight } = this.stage;
    this.size = { width: Math.max(clientWidth, 1), height: Math.max(clientHeight, 1) };
  }

  private resized(): void {
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
      const { overlay, size } = this;
      const [width, height] = [Math.round(size.width * devicePixelRatio), Math.round(size.height * devicePixelRatio)];
      if (overlay.width !== width || overlay.height !== height) Object.assign(overlay, { width, height });
      const context = pencil(overlay);
      context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
      context.clearRect(0, 0, size.width, size.height);
      paintOverlay(context, this.scene());
      this.placeCard();
    });
  }

  /** All that a picture of the map is made from. */
  scene(): Scene {
    const { map, view, size, palette, focus, line } = this;
    return {
      map, view, size, palette, focus, lasso: line,
      spots: this.spots.filter((spot) => !this.hidden.has(spot.group)),
      neighbors: focus === null ? [] : this.table.neighborsOf(focus),
      colourOf: this.colourOf,
      across: this.dots().across,
    };
  }

  picture(): { scene: Scene; marks: Marks; dots: Dots; colouring: Colouring } {
    return { scene: this.scene(), marks: this.shown, dots: this.dots(), colouring: this.colouring };
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

  /** Another map of the same rows: points move there. */
  async switchTo(which: number): Promise<void> {
    if (which === this.which) return;
    this.which = which;
    this.map = await this.table.map(which);
    this.grid = new Grid(this.map);
    this.spots = [];
    const seconds = isCalm() ? 0 : MOVING;
    this.glide(this.whole(), seconds);
    await this.drawing.draw(this.map, this.shown, seconds);
    if (which !== this.which) return;
    this.stage.dataset.map = this.map.name;
    this.spots = spots(this.colouring, this.map, this.grid.bounds);
    this.paint();
  }

  // Colours

  async colourBy(choice: number): Promise<void> {
    this.field = (await this.table.choices[choice]?.load()) ?? null;
    this.hidden = new Set();
    this.recolour();
    this.fields = await cardFields(this.table, this.field);
    await this.redraw();
    this.stage.dataset.colour = this.field?.name ?? "";
  }

  /** The same with the colours of the theme as it is now. */
  recolour(): void {
    this.palette = readPalette(document.documentElement);
    this.colouring = colour(this.field, this.table.rows, this.palette);
    this.spots = spots(this.colouring, this.map, this.grid.bounds);
    this.update();
  }

  redraw(): Promise<void> {
    const drawn = this.drawing.draw(this.map, this.shown, 0);
    this.paint();
    if (this.focus !== null) this.tell(this.focus);
    return drawn;
  }

  private update(): void {
    this.shown = marks(this.colouring, this.palette, this.hidden, this.selected);
    showLegend(byId("map-legend"), this.colouring, this.hidden, {
      hide: (hidden) => {
        this.hidden = hidden;
        this.update();
        void this.redraw();
      },
    });
  }

  private readonly isSeen = (row: number) => !this.hidden.has(this.colouring.codes[row]);
  private readonly colourOf = (row: number) => this.colouring.groups[this.colouring.codes[row]].colour;

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
      this.hidden = new Set();
      this.update();
      void this.redraw();
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
    if (row === null) this.card.hidden = true;
    else this.tell(row);
    this.stage.dataset.focus = row === null ? "" : String(row);
    if (row !== null && pinned) this.say(spoken(this.table, row, this.fields));
    this.paint();
  }

  private tell(row: number): void {
    showCard(this.card, this.table, row, this.fields, this.colourOf, this.pinned, {
      go: (other) => this.go(other),
      close: () => {
        this.lookAt(null, false);
        this.stage.focus({ preventScroll: true });
      },
    });
  }

  private placeCard(): void {
    if (this.focus === null) return;
    const [x, y] = toScreen(this.view, this.size, this.map.x[this.focus], this.map.y[this.focus]);
    const { width, height } = this.size;
    const wide = Math.min(CARD, width - 16);
    const tall = this.card.offsetHeight;
    const left = x + 18 + wide < width ? x + 18 : x - 18 - wide;
    const top = Math.min(Math.max(y - 24, 8), Math.max(height - tall - 8, 8));
    this.card.style.setProperty("left", `${Math.min(Math.max(left, 8), Math.max(width - wide - 8, 8))}px`);
    this.card.style.setProperty("top", `${top}px`);
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

  select(rows: Uint32Array | null, what: string): void {
    const some = rows?.length ? rows : null;
    this.selection = some;
    this.selected = some && new Uint8Array(this.table.rows);
    if (some) for (const row of some) this.selected![row] = 1;
    this.lookAt(null, false);
    this.update();
    void this.redraw();
    const where = byId("map-selection");
    where.hidden = !some;
    this.say(some ? `${count(some.length, "row")} selected` : "Nothing selected");
    if (!some) return;
    void showSelection(where, this.table, some, what, {
      clear: () => this.select(null, ""),
      colourBy: (choice) => {
        const menu = byId<HTMLSelectElement>("map-colour");
        menu.value = String(choice);
        menu.dispatchEvent(new Event("change"));
      },
      say: (text) => this.say(text),
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
    byId("map-status").textContent = text;
  }
}

/** Whether the reader asked for little movement. */
function isCalm(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

function newCanvas(): HTMLCanvasElement {
  return element("canvas", { "aria-hidden": "true" });
}
