// The colours of src/gnomon/charts/colours.py, read from the page's style, which holds them for light
// and dark.

export interface Palette {
  surface: string;
  ink: string;
  soft: string;
  grid: string;
  accent: string;
  quiet: string;
  /** Of groups, in the order of their names. */
  groups: string[];
  /** From little to much. */
  ramp: string[];
}

const STEPS = 9;
const RAMP = 64;

export const MOST_GROUPS = 21; // colours, as `GROUPS` in colours.py

/** The colours that hold within an element. */
export function readPalette(within: Element): Palette {
  const style = getComputedStyle(within);
  const read = (name: string) => style.getPropertyValue(`--gn-${name}`).trim();
  const steps = Array.from({ length: STEPS }, (_, i) => read(`v${i}`));
  return {
    surface: read("surface"),
    ink: read("ink"),
    soft: read("soft"),
    grid: read("grid"),
    accent: read("accent"),
    quiet: read("quiet"),
    groups: Array.from({ length: MOST_GROUPS }, (_, i) => read(`c${i}`)),
    ramp: Array.from({ length: RAMP }, (_, i) => along(steps, i / (RAMP - 1))),
  };
}

/** `share` of the way from one colour to the other; both as #rrggbb. */
export function mix(from: string, to: string, share: number): string {
  const [a, b] = [channels(from), channels(to)];
  const mixed = a.map((channel, i) => Math.round(channel + (b[i] - channel) * share));
  return `#${mixed.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`;
}

export function along(stops: string[], share: number): string {
  const at = share * (stops.length - 1);
  const before = Math.min(Math.floor(at), stops.length - 2);
  return mix(stops[before], stops[before + 1], at - before);
}

/** Red, green and blue, from 0 to 255. */
export function channels(colour: string): number[] {
  return [1, 3, 5].map((i) => Number.parseInt(colour.slice(i, i + 2), 16));
}
