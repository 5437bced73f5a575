// Pictures of rows, from the sheets that the page holds: beside names, as a montage, and on the map.
// Sheets are decoded once; nothing is fetched.

import { fromBase64, type WholeNumbers, wholeNumbers } from "./decode";
import { element } from "./dom";
import { channels, type Palette } from "./palette";
import type { PackedPictures } from "./table";

const MOST_CACHED = 6000; // tinted tiles that are kept

export class Pictures {
  readonly width: number;
  readonly height: number;
  private readonly cache = new Map<string, HTMLCanvasElement>();

  private constructor(
    private readonly about: PackedPictures,
    private readonly sheets: ImageData[],
    /** Which tile shows a row; −1 for none. */
    private readonly tileOf: Int32Array,
  ) {
    this.width = about.width;
    this.height = about.height;
  }

  /** Decode the sheets; null where the browser cannot. */
  static async open(about: PackedPictures, rows: number): Promise<Pictures | null> {
    const tileOf = new Int32Array(rows).fill(-1);
    const shown: WholeNumbers | null = about.rows ? await wholeNumbers(about.rows) : null;
    for (let tile = 0; tile < about.tiles; tile++) tileOf[shown ? shown[tile] : tile] = tile;
    try {
      const sheets = await Promise.all(about.sheets.map(decode));
      return new Pictures(about, sheets, tileOf);
    } catch {
      return null;
    }
  }

  has(row: number): boolean {
    return this.tileOf[row] >= 0;
  }

  /** A picture as an element of its own, `side` pixels high; null where the row has none. */
  thumbnail(row: number, side: number, palette: Palette): HTMLCanvasElement | null {
    if (!this.has(row)) return null;
    return this.element(this.tile(row, palette.ink), side);
  }

  private element(tile: HTMLCanvasElement, side: number): HTMLCanvasElement {
    const made = element("canvas", { class: "map-thumb", width: tile.width, height: tile.height, "aria-hidden": "true" });
    made.style.setProperty("height", `${side}px`);
    made.style.setProperty("aspect-ratio", `${tile.width} / ${tile.height}`);
    made.getContext("2d")?.drawImage(tile, 0, 0);
    return made;
  }

  /** The mean of the pictures of some rows, and of how many: not all need have one. */
  mean(rows: Uint32Array, side: number, palette: Palette): { picture: HTMLCanvasElement; of: number } | null {
    const { width, height } = this;
    const sums = new Float64Array(4 * width * height);
    let of = 0;
    for (const row of rows) {
      if (!this.has(row)) continue;
      of++;
      const pixels = this.pixels(this.tileOf[row]);
      for (let i = 0; i < sums.length; i++) sums[i] += pixels[i];
    }
    if (!of) return null;
    const mean = Uint8ClampedArray.from(sums, (sum) => sum / of);
    return { picture: this.element(this.draw(mean, palette.ink), side), of };
  }

  /** A picture on the map with its middle at (x, y), `side` pixels along its longer side. */
  paint(
    context: CanvasRenderingContext2D, row: number, x: number, y: number, side: number, colour: string, palette: Palette,
  ): void {
    if (!this.has(row)) return;
    const longer = Math.max(this.width, this.height);
    const [wide, high] = [(side * this.width) / longer, (side * this.height) / longer];
    const [left, top] = [x - wide / 2, y - high / 2];
    const isInk = this.about.kind === "ink";
    if (isInk) {
      context.globalAlpha = 0.6;
      context.fillStyle = palette.surface;
      context.fillRect(left, top, wide, high);
      context.globalAlpha = 1;
    }
    context.imageSmoothingEnabled = side <= longer;
    context.drawImage(this.tile(row, colour), left, top, wide, high);
    if (isInk) return;
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.strokeRect(left, top, wide, high);
  }

  /** The tile of a row, in a colour where it is ink. */
  private tile(row: number, colour: string): HTMLCanvasElement {
    const key = this.about.kind === "ink" ? `${row} ${colour}` : String(row);
    let tile = this.cache.get(key);
    if (!tile) {
      if (this.cache.size >= MOST_CACHED) this.cache.clear();
      tile = this.draw(this.pixels(this.tileOf[row]), colour);
      this.cache.set(key, tile);
    }
    return tile;
  }

  private draw(pixels: Uint8ClampedArray, colour: string): HTMLCanvasElement {
    const { width, height } = this;
    const canvas = element("canvas", { width, height });
    const image = new ImageData(width, height);
    if (this.about.kind === "ink") {
      const [red, green, blue] = channels(colour);
      for (let i = 0; i < pixels.length; i += 4) {
        image.data.set([red, green, blue, pixels[i]], i);
      }
    } else image.data.set(pixels);
    canvas.getContext("2d")?.putImageData(image, 0, 0);
    return canvas;
  }

  private pixels(tile: number): Uint8ClampedArray {
    const { width, height, across } = this.about;
    const perSheet = across * Math.floor(this.sheets[0].height / height);
    const sheet = this.sheets[Math.floor(tile / perSheet)];
    const inside = tile % perSheet;
    const [left, top] = [(inside % across) * width, Math.floor(inside / across) * height];
    const pixels = new Uint8ClampedArray(4 * width * height);
    for (let line = 0; line < height; line++) {
      const start = 4 * ((top + line) * sheet.width + left);
      pixels.set(sheet.data.subarray(start, start + 4 * width), 4 * width * line);
    }
    return pixels;
  }
}

async function decode({ type, data }: PackedPictures["sheets"][number]): Promise<ImageData> {
  const image = await createImageBitmap(new Blob([fromBase64(data)], { type }));
  const canvas = element("canvas", { width: image.width, height: image.height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (!context) throw new Error("this browser has no canvas to draw on");
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, image.width, image.height);
}
