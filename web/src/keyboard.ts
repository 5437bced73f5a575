// The map by keyboard: from point to point, moving, zooming, and out again.

import type { PointMap } from "./table";

export interface KeyboardActions {
  /** To the next point in a direction: right and up are positive. */
  step: (across: number, up: number) => void;
  pan: (across: number, down: number) => void;
  zoom: (factor: number) => void;
  fit: () => void;
  /** Select the row that is looked at, and its neighbours. */
  choose: () => void;
  escape: () => void;
}

const DIRECTIONS: Record<string, [number, number]> = {
  ArrowRight: [1, 0],
  ArrowLeft: [-1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};
const FAR = 60; // pixels of one step of the map itself

export function followKeyboard(stage: HTMLElement, actions: KeyboardActions): void {
  stage.addEventListener("keydown", (event) => {
    if (event.target !== stage && event.key !== "Escape") return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = DIRECTIONS[event.key];
    if (direction && event.shiftKey) actions.pan(-FAR * direction[0], FAR * direction[1]);
    else if (direction) actions.step(...direction);
    else if (event.key === "+" || event.key === "=") actions.zoom(1.4);
    else if (event.key === "-" || event.key === "_") actions.zoom(1 / 1.4);
    else if (event.key === "0") actions.fit();
    else if (event.key === "Enter" || event.key === " ") actions.choose();
    else if (event.key === "Escape") actions.escape();
    else return;
    event.preventDefault();
  });
}

/** The row that one comes to from `row` in a direction: near, and rather ahead than aside. */
export function nextRow(
  map: PointMap, row: number, across: number, up: number, seen: (row: number) => boolean,
): number {
  const [x, y] = [map.x[row], map.y[row]];
  let best = row;
  let least = Infinity;
  for (let other = 0; other < map.x.length; other++) {
    const ahead = (map.x[other] - x) * across + (map.y[other] - y) * up;
    if (ahead <= 0) continue;
    const aside = Math.abs((map.x[other] - x) * up) + Math.abs((map.y[other] - y) * across);
    // Within 45 degrees of the direction; what lies aside counts twice.
    if (aside > ahead) continue;
    const distance = ahead + 2 * aside;
    if (distance < least && seen(other)) [best, least] = [other, distance];
  }
  return best;
}
