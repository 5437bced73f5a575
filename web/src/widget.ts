// The map in a notebook, under anywidget: the same component as on the page, in a shadow root.
//
// The kernel sends the data once, as bytes. What is selected goes both ways as the numbers of the
// component's rows (`_chosen`); Python turns them into rows of the user's table.

import { type MapComponent, mountMap } from "./component";
import { element } from "./dom";
import { mountPair } from "./pair";
import type { PackedTable } from "./table";

interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, act: () => void): void;
  off(event: string, act: () => void): void;
}

interface About {
  title: string;
  lines: [string, string][];
  next: string;
}

async function render({ model, el }: { model: Model; el: HTMLElement }): Promise<() => void> {
  // JupyterLab sees only the host of what is typed, and must not take letters for commands.
  const host = element("div", { "data-lm-suppress-shortcuts": "true" });
  el.append(host);
  const shadow = host.attachShadow({ mode: "open" });
  const style = element("style", {}, model.get("_style") as string);
  const place = element("div", {});
  const about = model.get("_about") as About;
  const frame = element(
    "div", { class: "widget" }, element("p", { class: "widget-title" }, about.title), place, ...details(about),
  );
  frame.style.setProperty("--map-height", `${model.get("height") as number}px`);
  shadow.append(style, frame);
  const scheme = () => {
    frame.classList.toggle("gn-dark", isDark());
    frame.classList.toggle("gn-light", !isDark());
  };
  scheme();
  await attached(host);
  const text = new TextDecoder().decode(model.get("_data") as DataView);
  const data = JSON.parse(text) as PackedTable;
  const map = await (data.pair ? mountPair(place, data) : mountMap(place, data));
  const stop = followScheme(() => {
    scheme();
    map.recolour();
  });
  const unlink = link(model, map);
  map.parts.share.hidden = true; // a cell has no address of its own
  await map.ready;
  frame.dataset.state = "ready";
  return () => {
    stop();
    unlink();
    map.destroy();
    host.remove();
  };
}

/** What is selected, in Python and on the map; returns what ends that. */
function link(model: Model, map: MapComponent): () => void {
  let current = new Uint32Array();
  const same = (rows: Uint32Array) =>
    rows.length === current.length && rows.every((row, i) => row === current[i]);
  const follow = () => {
    const rows = readRows(model.get("_chosen") as DataView);
    if (same(rows)) return;
    current = rows;
    map.select(rows.length ? rows : null);
  };
  map.on("select", ({ rows }) => {
    const chosen = rows ?? new Uint32Array();
    if (same(chosen)) return;
    current = chosen.slice();
    model.set("_chosen", new DataView(current.slice().buffer));
    model.save_changes();
  });
  model.on("change:_chosen", follow);
  follow();
  return () => model.off("change:_chosen", follow);
}

/** Whole numbers of four bytes, the lowest first. */
function readRows(bytes: DataView): Uint32Array<ArrayBuffer> {
  return Uint32Array.from({ length: bytes.byteLength / 4 }, (_, i) => bytes.getUint32(4 * i, true));
}

/** What was done, and what to do next. */
function details({ lines, next }: About): HTMLElement[] {
  if (!lines.length) return [];
  const facts = lines.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]);
  return [
    element(
      "details", { class: "widget-about" }, element("summary", {}, "What was done, and what to do next"),
      element("dl", {}, ...facts), element("pre", {}, next),
    ),
  ];
}

/** When the element has its place on the screen: before, it has neither size nor colours. */
function attached(host: HTMLElement): Promise<void> {
  return new Promise((done) => {
    const observer = new ResizeObserver(() => {
      if (!host.clientWidth) return;
      observer.disconnect();
      done();
    });
    observer.observe(host);
  });
}

const system = matchMedia("(prefers-color-scheme: dark)");

/** Whether the notebook is dark: JupyterLab, VS Code and Colab say so, each in its own way. */
function isDark(): boolean {
  const { body, documentElement: root } = document;
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
  if (body.classList.contains("vscode-dark") || body.classList.contains("vscode-high-contrast")) return true;
  if (body.classList.contains("vscode-light")) return false;
  const said = root.getAttribute("theme") ?? root.dataset.theme;
  return said ? said === "dark" : system.matches;
}

function followScheme(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  const attributeFilter = ["data-jp-theme-light", "class", "theme", "data-theme"];
  for (const one of [document.body, document.documentElement]) observer.observe(one, { attributeFilter });
  system.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    system.removeEventListener("change", changed);
  };
}

export default { render };
