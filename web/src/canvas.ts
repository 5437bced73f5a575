// Points on a plain canvas: without WebGL, and for pictures to keep.

import type { Marks } from "./colouring";
import { pencil } from "./dom";
import type { Dots, Drawing } from "./drawing";
import { fill, stamp } from "./stamp";
import type { PointMap } from "./table";
import type { Size, View } from "./view";

export class CanvasDrawing implements Drawing {
  private map: PointMap | null = null;
  private marks: Marks | null = null;
  private view: View = { x: 0, y: 0, scale: 1 };
  private size: Size = { width: 1, height: 1 };
  private dots: Dots = { across: 4, opacity: 0.8 };
  private moving = 0;
  /** What was painted last, to be painted over. */
  private image: ImageData | null = null;

  constructor(private readonly canvas: HTMLCanvasElement) {}

  frame(): void {}

  draw(map: PointMap, marks: Marks, seconds: number): Promise<void> {
    const from = this.map;
    this.marks = marks;
    cancelAnimationFrame(this.moving);
    if (!from || from === map || seconds === 0) {
      this.map = map;
      this.paint();
      return Promise.resolve();
    }
    return new Promise((done) => {
      const start = performance.now();
      const step = (now: number) => {
        const share = Math.min((now - start) / 1000 / seconds, 1);
        this.map = share < 1 ? pointsBetween(from, map, ease(share)) : map;
        this.paint();
        if (share < 1) this.moving = requestAnimationFrame(step);
        else done();
      };
      this.moving = requestAnimationFrame(step);
    });
  }

  look(view: View, size: Size, dots: Dots): void {
    Object.assign(this, { view, size, dots });
    const ratio = devicePixelRatio;
    const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    this.paint();
  }

  destroy(): void {
    cancelAnimationFrame(this.moving);
  }

  private paint(): void {
    if (!this.map || !this.marks) return;
    const { width, height } = this.canvas;
    if (this.image?.width !== width || this.image.height !== height) this.image = new ImageData(width, height);
    paintPoints(this.image, this.map, this.marks, this.view, this.size, this.dots, devicePixelRatio);
    pencil(this.canvas, true).putImageData(this.image, 0, 0);
  }
}

/** All points that are in view on their background, in the order of the marks, at any resolution. */
export function paintPoints(
  image: ImageData,
  map: PointMap,
  marks: Marks,
  view: View,
  size: Size,
  dots: Dots,
  ratio: number,
): void {
  fill(image, marks.background);
  const scale = ratio * view.scale;
  const left = (ratio * size.width) / 2 - scale * view.x;
  const top = (ratio * size.height) / 2 + scale * view.y;
  const ink = { diameter: dots.across * ratio, opacity: dots.opacity, colours: marks.colours };
  stamp(image, { x: map.x, y: map.y, codes: marks.codes, order: marks.order }, { left, top, scale }, ink);
}

export function forEachRow(rows: number, marks: Marks, visit: (row: number) => void): void {
  if (marks.order) for (const row of marks.order) visit(row);
  else for (let row = 0; row < rows; row++) visit(row);
}

/** Places on the way from one map to the other. */
export function pointsBetween(from: PointMap, to: PointMap, share: number): PointMap {
  const at = (a: Float32Array, b: Float32Array) => a.map((value, i) => value + (b[i] - value) * share);
  return { name: to.name, x: at(from.x, to.x), y: at(from.y, to.y) };
}

/** Slow, quick, slow. */
export function ease(share: number): number {
  return share < 0.5 ? 4 * share ** 3 : 1 - (2 - 2 * share) ** 3 / 2;
}
