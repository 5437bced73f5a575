// What a figure is to be like, and the buttons that make it.

import { save } from "./download";
import { button, element } from "./dom";
import { figurePng, figureSvg, type FigureOptions } from "./figure";
import { panelOf, type Parts } from "./markup";
import type { Table } from "./table";
import type { MapTool } from "./tool";

const WIDTHS = [
  { name: "one column, 85 mm", width: 85 },
  { name: "two columns, 174 mm", width: 174 },
  { name: "slide, 254 mm", width: 254 },
];
const DPI = 300;

export function figureMenu(parts: Parts, table: Table, tool: MapTool): void {
  const field = (label: string, input: HTMLElement) => element("label", { class: "map-row" }, element("span", {}, label), input);
  const title = element("input", { type: "text", id: parts.id("figure-title"), value: table.title });
  const caption = element("textarea", { id: parts.id("figure-caption"), rows: 3 });
  caption.value = table.caption;
  const width = element("select", { id: parts.id("figure-width") });
  width.append(...WIDTHS.map(({ name, width }) => element("option", { value: width }, name)));
  width.value = "174";
  const scheme = element("select", { id: parts.id("figure-scheme") });
  scheme.append(...["light", "dark"].map((name) => element("option", { value: name }, name)));
  const options = (): FigureOptions => ({
    title: title.value, caption: caption.value, width: Number(width.value), dpi: DPI, names: tool.named,
  });
  const make = async (kind: "png" | "svg") => {
    const drawn = tool.picture(scheme.value as "light" | "dark");
    const content =
      kind === "png"
        ? await figurePng(drawn, options())
        : new Blob([figureSvg(drawn, options())], { type: "image/svg+xml" });
    if (content) save(`map.${kind}`, content);
  };
  panelOf(parts.figure).append(
    field("Title", title),
    field("Caption", caption),
    field("Width", width),
    field("Colours", scheme),
    element(
      "div",
      { class: "map-buttons" },
      button(`PNG, ${DPI} dpi`, () => void make("png"), { id: parts.id("png") }),
      button("SVG", () => void make("svg"), { id: parts.id("svg") }),
    ),
  );
}
