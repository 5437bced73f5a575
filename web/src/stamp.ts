// Many round dots, written into the pixels of a picture one by one: for thousands of points this is
// many times quicker than asking a canvas for as many circles, and than WebGL without a graphics card.

import { channels } from "./palette";

// A dot may begin at so many places within a pixel, across and down.
const PHASES = 4;
// Steps of opacity. Two channels are mixed in one multiplication: 128 × 0xff00ff is the most that a
// whole number of 32 bits holds.
const SOLID = 128;

export interface Ink {
  /** Across in pixels of the image. */
  diameter: number;
  opacity: number;
  colours: string[];
}

/** Where dots are, in units of their own, and which colour each has. */
export interface Dotted {
  x: Float32Array;
  y: Float32Array;
  codes: Uint16Array;
  /** Rows in the order of drawing; null for all. */
  order: Uint32Array | null;
}

/** A place (x, y) is at pixel (left + scale · x, top − scale · y) of the image. */
export interface Onto {
  left: number;
  top: number;
  scale: number;
}

/** Write every dot that touches the image. One long loop, in which nothing is called: it is the whole cost. */
export function stamp(image: ImageData, { x, y, codes, order }: Dotted, onto: Onto, ink: Ink): void {
  const { width, height } = image;
  const pixels = new Int32Array(image.data.buffer);
  const side = Math.ceil(ink.diameter) + 2;
  const { starts, across, down, shares } = makeMasks(ink.diameter / 2, side, ink.opacity);
  const steps = Int32Array.from(across, (column, i) => down[i] * width + column);
  const inks = ink.colours.map(packed);
  const redAndBlue = Int32Array.from(inks, (colour) => colour & 0xff00ff);
  const greens = Int32Array.from(inks, (colour) => colour & 0xff00);
  const [left, top, scale] = [onto.left - side / 2, onto.top - side / 2, onto.scale];
  const [right, bottom] = [width - side, height - side];
  const rows = order ? order.length : x.length;
  for (let i = 0; i < rows; i++) {
    const row = order ? order[i] : i;
    const at = left + scale * x[row];
    const below = top - scale * y[row];
    if (!(at > -side && below > -side && at < width && below < height)) continue;
    const column = Math.floor(at);
    const line = Math.floor(below);
    const phase = Math.floor(PHASES * (at - column)) + PHASES * Math.floor(PHASES * (below - line));
    const inside = column >= 0 && line >= 0 && column <= right && line <= bottom;
    const corner = line * width + column;
    const rb = redAndBlue[codes[row]];
    const green = greens[codes[row]];
    const end = starts[phase + 1];
    for (let part = starts[phase]; part < end; part++) {
      if (!inside) {
        const [here, there] = [column + across[part], line + down[part]];
        if (here < 0 || there < 0 || here >= width || there >= height) continue;
      }
      const pixel = corner + steps[part];
      const under = pixels[pixel];
      const share = shares[part];
      const rest = SOLID - share;
      const mixed = (Math.imul(under & 0xff00ff, rest) + Math.imul(rb, share) + 0x400040) >> 7;
      const middle = (Math.imul(under & 0xff00, rest) + Math.imul(green, share) + 0x4000) >> 7;
      pixels[pixel] = (mixed & 0xff00ff) | (middle & 0xff00) | 0xff000000;
    }
  }
}

/** The pixels that dots cover, counted from their upper left corner, and how much of each they cover. */
interface Masks {
  /** Where the pixels of each phase begin. */
  starts: Int32Array;
  across: Int32Array;
  down: Int32Array;
  shares: Int32Array;
}

/** Which pixels of a small square a dot covers, for each place where it may begin. */
function makeMasks(radius: number, side: number, opacity: number): Masks {
  const starts = [0];
  const covered: [number, number, number][] = [];
  for (let phase = 0; phase < PHASES * PHASES; phase++) {
    const centre = [side / 2 + (phase % PHASES) / PHASES, side / 2 + Math.floor(phase / PHASES) / PHASES];
    for (let line = 0; line < side; line++) {
      for (let column = 0; column < side; column++) {
        const away = Math.hypot(column + 0.5 - centre[0], line + 0.5 - centre[1]);
        const share = Math.round(SOLID * opacity * Math.min(Math.max(radius + 0.5 - away, 0), 1));
        if (share) covered.push([column, line, share]);
      }
    }
    starts.push(covered.length);
  }
  const [across, down, shares] = [0, 1, 2].map((i) => Int32Array.from(covered, (part) => part[i]));
  return { starts: Int32Array.from(starts), across, down, shares };
}

/** The whole picture in one colour. */
export function fill(image: ImageData, colour: string): void {
  new Int32Array(image.data.buffer).fill(packed(colour));
}

/** A colour as the pixels of an image hold it: red in the lowest byte, none of it transparent. */
function packed(colour: string): number {
  const [red, green, blue] = channels(colour);
  return (255 << 24) | (blue << 16) | (green << 8) | red;
}
