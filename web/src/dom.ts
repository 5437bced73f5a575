// Elements by name. Text from the data only ever becomes text: there is no way here to write markup.

type Attributes = Record<string, string | number | boolean>;

export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false) made.setAttribute(name, String(value));
  }
  made.append(...children);
  return made;
}

/** A button that says what it does. */
export function button(text: string, act: () => void, attributes: Attributes = {}): HTMLButtonElement {
  const made = element("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", act);
  return made;
}

/** Where to draw on a canvas by the processor: the graphics card, if any, takes long to wake up. */
export function pencil(canvas: HTMLCanvasElement, opaque = false): CanvasRenderingContext2D {
  const context = canvas.getContext("2d", { willReadFrequently: true, alpha: !opaque });
  if (!context) throw new Error("this browser has no canvas to draw on");
  return context;
}

/** A dot in the colour of a group. */
export function swatch(colour: string): HTMLSpanElement {
  const dot = element("span", { class: "map-swatch", "aria-hidden": "true" });
  dot.style.setProperty("--colour", colour);
  return dot;
}

// What no XML document may hold: a picture with it could not be opened once it is saved.
const NOT_XML = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu;

/** A part of a picture. */
export function shape(tag: string, attributes: Attributes, text = ""): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.textContent = text.replace(NOT_XML, " ");
  return made;
}

/** The element that the keyboard is at, in the tree of `near`: within a shadow root, the document knows only its host. */
export function activeElement(near: Node): Element | null {
  return (near.getRootNode() as Document | ShadowRoot).activeElement ?? null;
}
