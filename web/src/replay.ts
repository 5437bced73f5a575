// How the map came about: the places of the rows at some iterations, played one after the other.

import { wholeNumbers } from "./decode";
import { button, element } from "./dom";
import type { Parts } from "./markup";
import type { PackedReplay, PointMap, Table } from "./table";
import type { MapTool } from "./tool";

const FRAME = 90; // milliseconds

export function replayControl(parts: Parts, table: Table, tool: MapTool): void {
  const { replay } = table;
  if (!replay) return;
  let frames: Promise<PointMap[]> | null = null;
  let timer = 0;
  const last = replay.frames.length - 1;
  const slider = element("input", {
    type: "range", min: 0, max: last, value: last, "aria-label": "Iteration of the map", id: parts.id("iteration"),
  });
  const label = element("span", { class: "map-small" }, `iteration ${replay.iterations[last]}`);
  const play = button("Replay", () => void start(), { id: parts.id("play") });

  const show = async (frame: number) => {
    frames ??= unpack(replay);
    const all = await frames;
    slider.value = String(frame);
    label.textContent = `iteration ${replay.iterations[frame]}`;
    await tool.showFrame(frame < last ? all[frame] : null);
    parts.stage.dataset.frame = String(frame);
  };
  const stop = () => {
    clearTimeout(timer);
    timer = 0;
    play.textContent = "Replay";
  };
  const start = async () => {
    if (timer) {
      stop();
      return;
    }
    play.textContent = "Pause";
    let frame = Number(slider.value) >= last ? 0 : Number(slider.value);
    const step = async () => {
      await show(frame);
      if (frame++ >= last) stop();
      else timer = window.setTimeout(() => void step(), FRAME);
    };
    timer = window.setTimeout(() => void step());
  };
  slider.addEventListener("input", () => {
    stop();
    void show(Number(slider.value));
  });
  parts.replay.replaceChildren(play, slider, label);
  parts.replay.hidden = false;
}

/** Frames are stored as differences from the one before. */
async function unpack({ low, step, frames }: PackedReplay): Promise<PointMap[]> {
  const unpacked: PointMap[] = [];
  let [across, up]: (Uint16Array | null)[] = [null, null];
  for (const frame of frames) {
    const [x, y] = await Promise.all([wholeNumbers(frame.x), wholeNumbers(frame.y)]);
    across = added(across, x);
    up = added(up, y);
    unpacked.push({
      name: "replay",
      x: Float32Array.from(across, (code) => low[0] + step * code),
      y: Float32Array.from(up, (code) => low[1] + step * code),
    });
  }
  return unpacked;
}

/** Sums of 16 bits, in which what is more than they hold comes round. */
function added(before: Uint16Array | null, change: ArrayLike<number>): Uint16Array {
  return Uint16Array.from(change, (value, i) => (before ? before[i] : 0) + value);
}
