// The page's script: the map where it can be drawn, and light or dark. Without it the page still shows
// all charts and a picture of the map.

import { png, save, svg } from "./download";
import { byId, button, element } from "./dom";
import { followKeyboard } from "./keyboard";
import { followPointer } from "./pointer";
import { Search } from "./search";
import { readTable, type Table } from "./table";
import { followTheme } from "./theme";
import { MapTool } from "./tool";

async function main(): Promise<void> {
  const table = readTable();
  const section = byId("map");
  section.classList.add("live");
  byId("map-tool").hidden = false;
  const tool = await MapTool.start(table);
  await nextFrame();
  performance.mark("gnomon-map-drawn");
  section.dataset.state = "drawn";
  followTheme(themeButton(), () => {
    tool.recolour();
    void tool.redraw();
  });
  switches(table, tool);
  pictures(table, tool);
  hands(tool);
  await table.finish();
  await tool.ready();
  colours(table, tool);
  new Search(byId("map-search"), byId("map-found"), table, {
    go: (row) => tool.go(row),
    select: (rows, what) => tool.select(rows, what),
  });
  links(table, tool);
  await tool.quicken();
  performance.mark("gnomon-ready");
  section.dataset.state = "ready";
}

/** When what was drawn is on the screen. */
function nextFrame(): Promise<void> {
  return new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
}

function themeButton(): HTMLButtonElement {
  const toggle = element("button", { type: "button", class: "theme", hidden: true });
  document.querySelector("header")?.append(toggle);
  return toggle;
}

/** One button a map. */
function switches(table: Table, tool: MapTool): void {
  const box = byId("map-switch");
  const buttons = table.mapNames.map((name, which) =>
    button(name, () => void choose(which), { "aria-pressed": which === 0 ? "true" : "false" }),
  );
  const choose = (which: number) => {
    buttons.forEach((other, i) => other.setAttribute("aria-pressed", String(i === which)));
    return tool.switchTo(which);
  };
  box.replaceChildren(...buttons);
  box.hidden = buttons.length < 2;
}

/** What can be coloured by, in groups. */
function colours(table: Table, tool: MapTool): void {
  const menu = byId<HTMLSelectElement>("map-colour");
  const groups = new Map<string, HTMLOptGroupElement>();
  table.choices.forEach(({ group, name }, i) => {
    const options = groups.get(group) ?? element("optgroup", { label: group });
    groups.set(group, options);
    options.append(element("option", { value: i }, name));
  });
  if (!table.choices.some(({ group }) => group === "Labels")) {
    menu.append(element("option", { value: -1 }, "nothing"));
  }
  menu.append(...groups.values());
  menu.value = table.choices[0] ? "0" : "-1";
  menu.addEventListener("change", () => void tool.colourBy(Number(menu.value)));
}

function pictures(table: Table, tool: MapTool): void {
  byId("map-png").addEventListener("click", async () => {
    const { scene, marks, dots } = tool.picture();
    const picture = await png(scene, marks, dots);
    if (picture) save("map.png", picture);
  });
  byId("map-svg").addEventListener("click", () => {
    const { scene, marks, dots, colouring } = tool.picture();
    save("map.svg", new Blob([svg(scene, marks, dots, colouring, table.title)], { type: "image/svg+xml" }));
  });
}

function hands(tool: MapTool): void {
  const stage = byId("map-stage");
  const [move, lasso] = [byId("map-move"), byId("map-lasso")];
  let lassoes = false;
  const choose = (chosen: boolean) => {
    lassoes = chosen;
    move.setAttribute("aria-pressed", String(!chosen));
    lasso.setAttribute("aria-pressed", String(chosen));
    stage.classList.toggle("lassoing", chosen);
  };
  move.addEventListener("click", () => choose(false));
  lasso.addEventListener("click", () => choose(true));
  byId("map-fit").addEventListener("click", () => tool.showAll());
  const hint = byId("map-hint");
  let timer = 0;
  followPointer(stage, {
    point: (at) => tool.point(at),
    press: (at) => tool.press(at),
    pan: (across, down) => tool.pan(across, down),
    zoom: (factor, at) => tool.zoom(factor, at),
    lassoing: (line) => tool.lassoing(line),
    lasso: (line, add) => tool.lasso(line, add),
    isLasso: () => lassoes,
    scrolled: () => {
      hint.hidden = false;
      clearTimeout(timer);
      timer = window.setTimeout(() => {
        hint.hidden = true;
      }, 1200);
    },
  });
  followKeyboard(stage, {
    step: (across, up) => tool.step(across, up),
    pan: (across, down) => tool.pan(across, down),
    zoom: (factor) => tool.zoom(factor),
    fit: () => tool.showAll(),
    choose: () => tool.selectNear(),
    escape: () => tool.escape(),
  });
}

/** Links of other sections to a row: #row-12. */
function links(table: Table, tool: MapTool): void {
  const follow = () => {
    const found = /^#row-(\d+)$/.exec(location.hash);
    const row = found ? Number(found[1]) : table.rows;
    if (row >= table.rows) return;
    byId("map").scrollIntoView();
    tool.go(row);
  };
  addEventListener("hashchange", follow);
  follow();
}

main().catch((error: unknown) => {
  // The picture of the map stands in for it.
  const tool = document.getElementById("map-tool");
  if (tool) tool.hidden = true;
  document.getElementById("map")?.classList.remove("live");
  throw error;
});
