"""What a browser is kept from saying, so that the page draws in one way or the other.

The page does without WebGL where a processor draws it, as on machines that test and measure.
"""

# WebGL, whoever draws it: that it is a processor is not told.
IN_SOFTWARE = """
const ask = WebGLRenderingContext.prototype.getExtension;
WebGLRenderingContext.prototype.getExtension = function (name) {
  return name === "WEBGL_debug_renderer_info" ? null : ask.call(this, name);
};
"""
# As a browser without WebGL answers.
WITHOUT_WEBGL = """
const real = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
  return kind.includes("webgl") ? null : real.call(this, kind, ...rest);
};
"""
