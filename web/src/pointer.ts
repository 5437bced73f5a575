// Mouse, pen and fingers on the map: pointing, moving, zooming, and drawing a lasso.

import { activeElement } from "./dom";
import type { Place } from "./lasso";

export interface PointerActions {
  point: (at: Place | null) => void;
  press: (at: Place) => void;
  pan: (across: number, down: number) => void;
  zoom: (factor: number, at: Place) => void;
  lassoing: (line: Place[]) => void;
  lasso: (line: Place[], add: boolean) => void;
  /** Whether dragging draws a lasso without any key. */
  isLasso: () => boolean;
  /** The wheel was turned on a map that is not in use: the page scrolls instead. */
  scrolled: () => void;
}

const STILL = 4; // pixels: less is a click, not a drag

export function followPointer(stage: HTMLElement, card: HTMLElement, actions: PointerActions): void {
  const down = new Map<number, Place>();
  let line: Place[] = [];
  let began: Place | null = null;
  let drawing = false;
  let moved = false;
  let scrolling = false;

  const place = (event: MouseEvent): Place => {
    const box = stage.getBoundingClientRect();
    return [event.clientX - box.left - stage.clientLeft, event.clientY - box.top - stage.clientTop];
  };

  // A lasso may begin on the card too, which gives way as soon as it is seen to be one.
  card.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !(actions.isLasso() || event.shiftKey)) return;
    const from = place(event);
    const turn = (moving: PointerEvent) => {
      const at = place(moving);
      if (Math.hypot(at[0] - from[0], at[1] - from[1]) < STILL) return;
      stop();
      moving.preventDefault();
      getSelection()?.removeAllRanges();
      begin(moving, from);
    };
    const stop = () => {
      removeEventListener("pointermove", turn);
      removeEventListener("pointerup", stop);
    };
    addEventListener("pointermove", turn);
    addEventListener("pointerup", stop);
  });

  stage.addEventListener("pointerdown", (event) => {
    if (event.button === 0) begin(event, place(event));
  });

  const begin = (event: PointerEvent, at: Place) => {
    stage.setPointerCapture(event.pointerId);
    // A finger may be scrolling the page: a tap takes the map in hand, and drags move it from then on.
    scrolling = event.pointerType === "touch" && activeElement(stage) !== stage;
    if (!scrolling) stage.focus({ preventScroll: true });
    down.set(event.pointerId, at);
    if (down.size === 1) {
      [began, moved] = [at, false];
      drawing = actions.isLasso() || event.shiftKey;
      line = drawing ? [at] : [];
    } else {
      drawing = false; // a second finger: zooming
      moved = true;
      actions.lassoing([]);
    }
  };

  stage.addEventListener("pointermove", (event) => {
    const at = place(event);
    const before = down.get(event.pointerId);
    if (!before) {
      if (!down.size) actions.point(at);
      return;
    }
    if (began && !moved && Math.hypot(at[0] - began[0], at[1] - began[1]) < STILL) return;
    moved = true;
    if (down.size === 2) pinch(event.pointerId, before, at);
    else if (drawing) {
      line.push(at);
      actions.lassoing(line);
    } else if (!scrolling) actions.pan(at[0] - before[0], at[1] - before[1]);
    down.set(event.pointerId, at);
  });

  const pinch = (id: number, before: Place, at: Place) => {
    const [other] = [...down].filter(([key]) => key !== id).map(([, value]) => value);
    const factor = Math.hypot(at[0] - other[0], at[1] - other[1]) / Math.hypot(before[0] - other[0], before[1] - other[1]);
    const middle: Place = [(at[0] + other[0]) / 2, (at[1] + other[1]) / 2];
    actions.pan((at[0] - before[0]) / 2, (at[1] - before[1]) / 2);
    if (Number.isFinite(factor) && factor > 0) actions.zoom(factor, middle);
  };

  stage.addEventListener("pointerup", (event) => {
    if (!down.delete(event.pointerId)) return;
    if (down.size) return;
    if (!moved) stage.focus({ preventScroll: true });
    if (!moved && began) actions.press(began);
    else if (drawing && line.length > 2) actions.lasso(line, event.ctrlKey || event.metaKey);
    else if (drawing) actions.lassoing([]);
    [began, line, drawing] = [null, [], false];
  });

  stage.addEventListener("pointercancel", (event) => {
    down.delete(event.pointerId);
    [began, line, drawing] = [null, [], false];
    actions.lassoing([]);
  });

  stage.addEventListener("pointerleave", (event) => {
    if (!(event.relatedTarget instanceof Node && card.contains(event.relatedTarget))) actions.point(null);
  });

  stage.addEventListener(
    "wheel",
    (event) => {
      // A page that one scrolls through must not get stuck on its map.
      if (!event.ctrlKey && !event.metaKey && !stage.contains(activeElement(stage))) {
        actions.scrolled();
        return;
      }
      event.preventDefault();
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 24 : 1;
      actions.zoom(Math.exp(-0.0016 * lines * event.deltaY), place(event));
    },
    { passive: false },
  );
}
