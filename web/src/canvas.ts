// Points on a plain canvas: without WebGL, and for pictures to keep.

import type { Marks } from "./colouring";
import type { Dots, Drawing } from "./drawing";
import type { PointMap } from "./table";
import { type Size, toScreen, type View } from "./view";

export class CanvasDrawing implements Drawing {
  private map: PointMap | null = null;
  private marks: Marks | null = null;
  private view: View = { x: 0, y: 0, scale: 1 };
  private size: Size = { width: 1, height: 1 };
  private dots: Dots = { across: 4, opacity: 0.8 };
  private moving = 0;

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
        this.map = share < 1 ? between(from, map, ease(share)) : map;
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
    const context = this.canvas.getContext("2d");
    if (!context || !this.map || !this.marks) return;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.scale(devicePixelRatio, devicePixelRatio);
    paintPoints(context, this.map, this.marks, this.view, this.size, this.dots);
  }
}

/** All points that are in view, in the order of the marks. */
export function paintPoints(
  context: CanvasRenderingContext2D,
  map: PointMap,
  marks: Marks,
  view: View,
  size: Size,
  dots: Dots,
): void {
  const radius = dots.across / 2;
  const round = radius > 1.2;
  context.globalAlpha = dots.opacity;
  let last = -1;
  forEachRow(map.x.length, marks, (row) => {
    const [x, y] = toScreen(view, size, map.x[row], map.y[row]);
    if (x < -radius || y < -radius || x > size.width + radius || y > size.height + radius) return;
    const code = marks.codes[row];
    if (code !== last) {
      context.fillStyle = marks.colours[code];
      last = code;
    }
    if (round) {
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.fill();
    } else {
      context.fillRect(x - radius, y - radius, dots.across, dots.across);
    }
  });
  context.globalAlpha = 1;
}

export function forEachRow(rows: number, marks: Marks, visit: (row: number) => void): void {
  if (marks.order) for (const row of marks.order) visit(row);
  else for (let row = 0; row < rows; row++) visit(row);
}

function between(from: PointMap, to: PointMap, share: number): PointMap {
  const at = (a: Float32Array, b: Float32Array) => a.map((value, i) => value + (b[i] - value) * share);
  return { name: to.name, x: at(from.x, to.x), y: at(from.y, to.y) };
}

/** Slow, quick, slow. */
export function ease(share: number): number {
  return share < 0.5 ? 4 * share ** 3 : 1 - (2 - 2 * share) ** 3 / 2;
}
