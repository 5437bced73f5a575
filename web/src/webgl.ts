// Points by regl-scatterplot, which is used for drawing only: where one looks, what is pointed at and
// what is selected is the same with and without WebGL, and decided elsewhere.

import createScatterplot, { createRenderer, createSpatialIndex } from "regl-scatterplot";
import type { Marks } from "./colouring";
import type { Dots, Drawing } from "./drawing";
import type { PointMap } from "./table";
import { boundsOf, type Size, type View } from "./view";

/** A drawing on `canvas`, or null where WebGL or what is needed of it is missing. */
export async function webglDrawing(canvas: HTMLCanvasElement, lost: () => void): Promise<Drawing | null> {
  const hidden = document.createElement("canvas");
  hidden.width = hidden.height = 1;
  let renderer: ReturnType<typeof createRenderer>;
  try {
    renderer = createRenderer({ canvas: hidden });
  } catch {
    return null;
  }
  if (!renderer.isSupported) return null;
  hidden.addEventListener("webglcontextlost", lost);
  // The library's own index of all points is for its own pointing and selecting, of which nothing is
  // used: it is given the index of one point, which costs nothing and starts no worker.
  const index = await createSpatialIndex([[0, 0]], false);
  return new WebglDrawing(canvas, renderer, index);
}

class WebglDrawing implements Drawing {
  private readonly plot: ReturnType<typeof createScatterplot>;
  /** From the map's units to those of the library, where the first map is from −1 to 1. */
  private centre: [number, number] = [0, 0];
  private half = 0;
  private size: Size = { width: 0, height: 0 };
  private colours = "";
  /** Drawings are made one after the other. */
  private last: Promise<void> = Promise.resolve();
  private waiting = 0;

  constructor(
    canvas: HTMLCanvasElement,
    private readonly renderer: ReturnType<typeof createRenderer>,
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
      return this.waiting ? undefined : this.drawNow(map, marks, seconds);
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
    this.plot.set({ cameraView: matrix, pointSize: dots.across, opacity: dots.opacity });
  }

  destroy(): void {
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
    const { order } = marks;
    const n = order ? order.length : map.x.length;
    if (n === 0) {
      this.plot.clear();
      return;
    }
    const rows = (i: number) => (order ? order[i] : i);
    const x = new Float32Array(n);
    const y = new Float32Array(n);
    const valueA = new Float32Array(n);
    for (let i = 0; i < n; i++) {
      const row = rows(i);
      x[i] = (map.x[row] - this.centre[0]) / this.half;
      y[i] = (map.y[row] - this.centre[1]) / this.half;
      valueA[i] = marks.codes[row];
    }
    await this.plot.draw(
      { x, y, valueA },
      {
        transition: seconds > 0,
        transitionDuration: 1000 * seconds,
        zDataType: "categorical",
        spatialIndex: this.index,
      },
    );
  }
}
