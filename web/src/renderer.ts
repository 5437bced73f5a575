// What regl-scatterplot draws with, in the place of its own renderer. That one draws into a picture of
// floats, from there onto a hidden canvas, and copies that to the one that is seen, so that many plots
// can share one card. There is one plot here, and it is drawn where it is seen.

import { createRegl, type createRenderer } from "regl-scatterplot";

export type Renderer = ReturnType<typeof createRenderer>;

// What positions need, which are held in a picture of floats and moved by drawing into it.
const NEEDED = ["OES_texture_float", "WEBGL_color_buffer_float"];

// How processors are called that play the graphics card: they draw dots much slower than `stamp.ts`.
const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;

/** A renderer onto `canvas`, or null where WebGL, what is needed of it, or a card for it is missing. */
export function rendererOnto(canvas: HTMLCanvasElement): Renderer | null {
  // Asked for before the library does so: dots have soft edges of their own, and need no others.
  const asked: WebGLContextAttributes = {
    antialias: false, preserveDrawingBuffer: true, failIfMajorPerformanceCaveat: true,
  };
  const gl = canvas.getContext("webgl", asked) as WebGLRenderingContext | null;
  if (!gl || isSoftware(gl) || NEEDED.some((name) => !gl.getExtension(name))) return null;
  let regl: ReturnType<typeof createRegl>;
  try {
    regl = createRegl(canvas);
  } catch {
    return null;
  }
  const drawings = new Set<() => void>();
  const loop = regl.frame(() => {
    for (const draw of drawings) draw();
  });
  let destroyed = false;
  return {
    canvas,
    regl,
    gamma: 1,
    isSupported: true,
    get isDestroyed() {
      return destroyed;
    },
    render(draw) {
      regl.clear({ color: [0, 0, 0, 0], depth: 1 });
      draw();
    },
    resize(width, height) {
      canvas.width = Math.floor(width * devicePixelRatio);
      canvas.height = Math.floor(height * devicePixelRatio);
    },
    refresh: () => regl.poll(),
    onFrame(draw) {
      drawings.add(draw);
      return () => drawings.delete(draw);
    },
    destroy() {
      destroyed = true;
      loop.cancel();
      regl.destroy();
    },
  };
}

function isSoftware(gl: WebGLRenderingContext): boolean {
  const names = gl.getExtension("WEBGL_debug_renderer_info");
  return names !== null && SOFTWARE.test(String(gl.getParameter(names.UNMASKED_RENDERER_WEBGL)));
}
