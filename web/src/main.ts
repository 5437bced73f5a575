// The page's script: the map where it can be drawn, light or dark, links to rows, and views that are
// shared by the address. Without it the page still shows all charts and a picture of the map.

import { mountMap, type MapComponent } from "./component";
import { element } from "./dom";
import { mountPair } from "./pair";
import { followTheme } from "./theme";

const VIEW = "#view=";

// For notebooks and other pages, which put maps where they like.
Object.assign(globalThis, { gnomon: { mountMap } });

async function main(): Promise<void> {
  const section = document.getElementById("map");
  if (!section) return;
  const place = document.getElementById("map-tool");
  const block = document.getElementById("gnomon-data");
  if (!place || !block?.textContent) throw new Error("the page holds no map");
  document.documentElement.classList.add("live");
  section.classList.add("live");
  place.hidden = false;
  const data = JSON.parse(block.textContent);
  const map = await (data.pair ? mountPair(place, data) : mountMap(place, data));
  performance.mark("gnomon-map-drawn");
  section.dataset.state = "drawn";
  followTheme(themeButton(), () => map.recolour());
  share(map);
  await map.ready;
  await follow(map);
  addEventListener("hashchange", () => void follow(map));
  performance.mark("gnomon-ready");
  section.dataset.state = "ready";
}

function themeButton(): HTMLButtonElement {
  const toggle = element("button", { type: "button", class: "theme", hidden: true });
  document.querySelector("header")?.append(toggle);
  return toggle;
}

/** Links of other sections to a row (#row-12), and views that were shared (#view=…). */
async function follow(map: MapComponent): Promise<void> {
  const found = /^#row-(\d+)$/.exec(location.hash);
  const row = found ? Number(found[1]) : map.table.rows;
  if (row < map.table.rows) {
    map.root.scrollIntoView({ block: "nearest" });
    map.look(row);
    return;
  }
  if (!location.hash.startsWith(VIEW)) return;
  const status = map.root.querySelector("[role=status]");
  const known = await map.restore(decoded(location.hash.slice(VIEW.length)));
  if (!known && status) status.textContent = "This link belongs to another page: its view was not restored";
  map.root.dataset.restored = String(known);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/** The view as the page's own address, also on the clipboard where the browser allows it. */
function share(map: MapComponent): void {
  map.on("share", ({ state }) => {
    history.replaceState(null, "", VIEW + encodeURIComponent(state));
    const status = map.root.querySelector("[role=status]");
    const said = (text: string) => {
      if (status) status.textContent = text;
      const button = document.getElementById("map-share");
      if (!button) return;
      button.textContent = text;
      setTimeout(() => {
        button.textContent = "Share view";
      }, 2500);
    };
    navigator.clipboard
      ?.writeText(location.href)
      .then(() => said("Link copied"))
      .catch(() => said("Link in the address bar"));
  });
}

main().catch((error: unknown) => {
  // The picture of the map stands in for it.
  const tool = document.getElementById("map-tool");
  if (tool) tool.hidden = true;
  document.documentElement.classList.remove("live");
  document.getElementById("map")?.classList.remove("live");
  throw error;
});
