// Two maps of the same rows beside each other: one cursor, one selection, one legend; and a slider that
// turns the first into the second. Both are in one frame, so that places can be compared.

import { pointsBetween } from "./canvas";
import { mountMap, type MapComponent } from "./component";
import { wholeNumbers } from "./decode";
import { button, element } from "./dom";
import type { PackedTable, PointMap } from "./table";
import { count } from "./words";

const STEP = 1 / 40; // of the way, each frame of the play button
const FRAME = 30; // milliseconds

/** Put both maps of `data` into `root`; the component of the first speaks for both. */
export async function mountPair(root: HTMLElement, data: PackedTable): Promise<MapComponent> {
  const { pair, maps } = data;
  if (!pair || maps.length !== 2) throw new Error("the page holds no pair of maps");
  const place = element("div", { class: "map-twin" });
  // Each shows neighbours of its own; the first knows both maps, for the slider.
  const sides = [data.neighbors, pair.neighbors].map((neighbors, at) => ({ name: maps[at].name, neighbors }));
  const first = await mountMap(root, { ...data, maps: [maps[0]], sides });
  root.classList.add("map-pair");
  first.parts.stage.closest(".map-main")!.after(place);
  const second = await mountMap(place, { ...data, maps: [maps[1]], neighbors: pair.neighbors }, { prefix: "other", isTwin: true });
  const both = await Promise.all([first.table.map(0), second.table.map(0)]);
  const captions = both.map((map) => element("p", { class: "map-caption map-name" }, map.name));
  [first, second].forEach((component, at) => {
    component.parts.stage.append(captions[at]);
    component.tool.showBoth(both);
  });
  link(first, second);
  const changed = Uint32Array.from(await wholeNumbers(pair.changed));
  controls(first, second, both, changed, captions[0]);
  return {
    ...first,
    recolour: () => [first, second].forEach((one) => one.recolour()),
    ready: ready(first, second),
    destroy: () => [first, second].forEach((one) => one.destroy()),
  };
}

async function ready(first: MapComponent, second: MapComponent): Promise<void> {
  await Promise.all([first.ready, second.ready]);
}

function link(first: MapComponent, second: MapComponent): void {
  first.on("focus", ({ row, pinned }) => second.tool.echo({ row, pinned }));
  first.on("select", ({ rows }) => second.tool.echo({ rows }));
  first.on("filter", () => void second.tool.echoFilters(first.tool));
  first.on("colour", () => void second.tool.colourBy(first.tool.choice));
  second.on("focus", ({ row, pinned }) => first.tool.lookAt(row, pinned));
  second.on("select", ({ rows }) => first.select(rows));
}

function controls(
  first: MapComponent, second: MapComponent, both: [PointMap, PointMap], changed: Uint32Array, caption: HTMLElement,
): void {
  const { parts } = first;
  const slider = element("input", {
    type: "range", min: 0, max: 1, step: "any", value: 0, id: parts.id("morph"), "aria-label": `From ${both[0].name} to ${both[1].name}`,
  });
  let timer = 0;
  const show = async (share: number) => {
    slider.value = String(share);
    const whole = share === 0 || share === 1;
    await first.tool.place(whole ? both[share] : pointsBetween(...both, share), whole);
    caption.textContent = whole ? both[share].name : `${Math.round(100 * share)} % of the way to ${both[1].name}`;
    parts.stage.dataset.morph = String(share);
  };
  const stop = () => {
    clearTimeout(timer);
    timer = 0;
    play.textContent = "Play";
  };
  const play = button("Play", () => {
    if (timer) {
      stop();
      return;
    }
    let share = Number(slider.value) >= 1 ? 0 : Number(slider.value);
    play.textContent = "Pause";
    const step = async () => {
      await show(share);
      if (share >= 1) stop();
      else if (timer) timer = window.setTimeout(() => void step(), FRAME);
      share = Math.min(share + STEP, 1);
    };
    timer = window.setTimeout(() => void step());
  }, { id: parts.id("play") });
  slider.addEventListener("input", () => {
    stop();
    void show(Number(slider.value));
  });
  const arrows = element("input", { type: "checkbox", id: parts.id("trails"), checked: true });
  const trail = () => {
    for (const one of [first, second]) {
      one.tool.trails = arrows.checked ? both : null;
      void one.tool.redraw();
    }
  };
  arrows.addEventListener("change", trail);
  trail();
  const moved = button(`Select ${count(changed.length, "row")} that changed company`, () => {
    first.tool.select(changed, "Rows that changed company");
  }, { id: parts.id("changed") });
  parts.replay.classList.add("map-morph");
  parts.replay.replaceChildren(
    element("span", { class: "map-small map-name" }, both[0].name), slider,
    element("span", { class: "map-small map-name" }, both[1].name), play,
  );
  parts.replay.hidden = false;
  const more = element(
    "div", { class: "map-morph" }, element("label", { class: "map-check" }, arrows, "Arrows of selected rows"),
    ...(changed.length ? [moved] : []),
  );
  second.root.after(element("div", { class: "map-below" }, parts.replay, more));
}
