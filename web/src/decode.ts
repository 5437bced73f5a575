// Reads what src/gnomon/report/encode.py writes: base64, deflated, whole numbers plane by plane.

export interface Packed {
  length: number;
  data: string;
}

export interface PackedNumbers extends Packed {
  bytes: 1 | 2 | 4;
}

export type WholeNumbers = Uint8Array | Uint16Array | Uint32Array;

export async function wholeNumbers(part: PackedNumbers): Promise<WholeNumbers> {
  const planes = await inflate(part.data);
  if (part.bytes === 1) return planes;
  const { length } = part;
  const values = part.bytes === 2 ? new Uint16Array(length) : new Uint32Array(length);
  for (let plane = 0; plane < part.bytes; plane++) {
    const from = plane * length;
    const shift = 8 * plane;
    for (let i = 0; i < length; i++) values[i] |= planes[from + i] << shift;
  }
  return values;
}

export async function texts(part: Packed): Promise<string[]> {
  return JSON.parse(new TextDecoder().decode(await inflate(part.data)));
}

async function inflate(base64: string): Promise<Uint8Array> {
  const stream = new Blob([fromBase64(base64)]).stream();
  const inflated = stream.pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(inflated).arrayBuffer());
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
