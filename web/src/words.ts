// Numbers in words, as src/gnomon/charts/words.py writes them.

const MINUS = "\u2212";
const HELD = "\u00a0"; // a space that no line breaks at

/** Three significant digits, thousands in groups, a true minus sign. */
export function number(value: number, digits = 3): string {
  if (Number.isNaN(value)) return "none";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text =
    size >= 1e6 || size < 1e-4
      ? value.toExponential(digits - 1).replace(/\.?0+e/, "e")
      : Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits });
  return text.replaceAll("-", MINUS);
}

/** A value of a field, in per cent where it is a share. */
export function quantity(value: number, isShare: boolean, digits = 3): string {
  return isShare && !Number.isNaN(value) ? percent(value) : number(value, digits);
}

export function percent(share: number): string {
  if (share > 0 && share < 0.005) return `<${HELD}1${HELD}%`;
  if (share < 1 && share > 0.995) return `>${HELD}99${HELD}%`;
  return `${Math.round(100 * share)}${HELD}%`;
}

export function whole(value: number): string {
  return value.toLocaleString("en");
}

export function count(n: number, noun: string): string {
  return `${whole(n)}${HELD}${noun}${n === 1 ? "" : "s"}`;
}
