// Points by regl-scatterplot, which is used for drawing only: where one looks, what is pointed at and
// what is selected is the same with and without WebGL, and decided elsewhere.

import createScatterplot, { createSpatialIndex } from "regl-scatterplot";
import type { Marks } from "./colouring";
import type { Dots, Drawing } from "./drawing";
import { type Renderer, rendererOnto } from "./renderer";
import type { PointMap } from "./table";
import { boundsOf, type Size, type View } from "./view";

/** A drawing on `canvas`, or null where WebGL, what is needed of it, or a card for it is missing. */
export async function webglDrawing(canvas: HTMLCanvasElement, lost: () => void): Promise<WebglDrawing | null> {
  const renderer = rendererOnto(canvas);
  if (!renderer) return null;
  // The library's own index of all points is for its own pointing and selecting, of which nothing is
  // used: it is given the index of one point, which costs nothing and starts no worker.
  const index = await createSpatialIndex([[0, 0]], false);
  const drawing = new WebglDrawing(canvas, renderer, index);
  canvas.addEventListener("webglcontextlost", () => {
    drawing.end();
    lost();
  });
  return drawing;
}

/** A row as the library takes it: x, y and the place of its colour. */
type Point = [number, number, number];

export class WebglDrawing implements Drawing {
  /** Whether the card took its memory back: nothing is drawn from then on. */
  isLost = false;
  private readonly plot: ReturnType<typeof createScatterplot>;
  /** From the map's units to those of the library, where the first map is from −1 to 1. */
  private centre: [number, number] = [0, 0];
  private half = 0;
  private size: Size = { width: 0, height: 0 };
  private dots: Dots = { across: 0, opacity: 0 };
  private colours = "";
  /** What was drawn last: the same points in other colours keep their places. */
  private points: Point[] = [];
  private map: PointMap | null = null;
  private order: Uint32Array | null = null;
  /** Drawings are made one after the other. */
  private last: Promise<void> = Promise.resolve();
  private waiting = 0;
  private stop: () => void = () => {};
  /** Nobody waits for what will not be drawn. */
  private readonly ended = new Promise<void>((done) => {
    this.stop = done;
  });

  constructor(
    canvas: HTMLCanvasElement,
    private readonly renderer: Renderer,
    private readonly index: ArrayBuffer,
  ) {
    this.plot = createScatterplot({
      canvas,
      renderer,
      width: 1,
      height: 1,
      cameraIsFixed: true,
      actionKeyMap: {},
      deselectOnDblClick: false,
      deselectOnEscape: false,
      colorBy: "valueA",
      pointScaleMode: "constant",
      antiAliasing: 0.7,
    } as Parameters<typeof createScatterplot>[0]);
  }

  draw(map: PointMap, marks: Marks, seconds: number): Promise<void> {
    this.waiting++;
    this.last = this.last.then(() => {
      this.waiting--;
      // Of several drawings asked for meanwhile only the last is seen.
      if (this.waiting || this.isLost) return undefined;
      return Promise.race([this.drawNow(map, marks, seconds), this.ended]);
    });
    return this.last;
  }

  look(view: View, size: Size, dots: Dots): void {
    if (size.width !== this.size.width || size.height !== this.size.height) {
      this.size = size;
      this.renderer.resize(size.width, size.height);
      this.renderer.refresh();
      this.plot.set({ width: size.width, height: size.height });
    }
    const zoom = (2 * view.scale * this.half) / size.height;
    const [x, y] = [(view.x - this.centre[0]) / this.half, (view.y - this.centre[1]) / this.half];
    // prettier-ignore
    const matrix = new Float32Array([zoom, 0, 0, 0, 0, zoom, 0, 0, 0, 0, 1, 0, -x * zoom, -y * zoom, 0, 1]);
    if (dots.across !== this.dots.across || dots.opacity !== this.dots.opacity) {
      this.dots = dots;
      this.plot.set({ pointSize: dots.across, opacity: dots.opacity });
    }
    this.plot.view(matrix as unknown as number[], { preventEvent: true });
  }

  /** Without its card. */
  end(): void {
    this.isLost = true;
    this.stop();
  }

  destroy(): void {
    this.end();
    this.plot.destroy();
    this.renderer.destroy();
  }

  /** The frame of the first map; before it `look` has no meaning. */
  frame(map: PointMap): void {
    const bounds = boundsOf(map);
    this.centre = [(bounds.left + bounds.right) / 2, (bounds.bottom + bounds.top) / 2];
    this.half = Math.max(bounds.right - bounds.left, bounds.top - bounds.bottom) / 2 || 1;
  }

  private async drawNow(map: PointMap, marks: Marks, seconds: number): Promise<void> {
    const colours = marks.colours.join();
    if (colours !== this.colours) {
      this.colours = colours;
      this.plot.set({ pointColor: marks.colours });
    }
    if (this.map !== map || !sameRows(this.order, marks.order)) this.place(map, marks.order);
    const { points, order } = this;
    if (points.length === 0) {
      this.plot.clear();
      return;
    }
    for (let i = 0; i < points.length; i++) points[i][2] = marks.codes[order ? order[i] : i];
    await this.plot.draw(points, {
      transition: seconds > 0,
      transitionDuration: 1000 * seconds,
      zDataType: "categorical",
      spatialIndex: this.index,
    });
  }

  private place(map: PointMap, order: Uint32Array | null): void {
    const [x, y] = this.centre;
    const at = (row: number): Point => [(map.x[row] - x) / this.half, (map.y[row] - y) / this.half, 0];
    this.points = Array.from({ length: order ? order.length : map.x.length }, (_, i) => at(order ? order[i] : i));
    this.map = map;
    this.order = order;
  }
}

function sameRows(one: Uint32Array | null, other: Uint32Array | null): boolean {
  if (!one || !other) return one === other;
  return one.length === other.length && one.every((row, i) => row === other[i]);
}
