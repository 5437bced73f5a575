"""The style sheet of all charts.

It is the same text in every chart, so that many charts can be in one page, and a page with a
Content-Security-Policy can allow it by one hash. Every class begins with ``gn-``; no chart uses ids
or style attributes. Colours are custom properties that follow the reader's light or dark
scheme; a page may override it by ``data-theme="light"`` or ``"dark"`` on any element around the
chart (JupyterLab's own attribute works too).
"""

from gnomon.charts.colours import DARK, DIVERGING, GROUPS, LIGHT, SEQUENTIAL

__all__ = ["INKS", "SIZES", "STYLE", "WIDEST"]

# Font sizes in units of the drawing (600 wide): on a screen, and below 480 pixels, where the whole
# drawing shrinks. The layout uses the larger ones.
_SIZES = {"title": (20, 21), "sub": (14, 15), "label": (13, 15), "tick": (12, 15), "cell": (12, 14)}
SIZES = {name: narrow for name, (_, narrow) in _SIZES.items()}

# Opacities of the ink of pictures; 0 is blank.
INKS = 15

# Largest width in pixels: beyond this a chart is a poster.
WIDEST = 760

FONTS = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif'


def _paint(selector: str, colour: str, *, stroke: bool = False) -> str:
    # Twice: programs without support for custom properties (Inkscape, librsvg) use the first.
    what = "stroke" if stroke else "fill"
    return f"{selector}{{{what}:{LIGHT[colour]};{what}:var(--gn-{colour})}}"


def _properties(palette: dict[str, str]) -> str:
    return ";".join(f"--gn-{name}:{colour}" for name, colour in palette.items())


def _schemes(selector: str, if_light: str, if_dark: str) -> list[str]:
    """Light; dark if the reader's system is; and the overrides by attribute."""
    light, dark = _properties(LIGHT), _properties(DARK)
    return [
        f"{selector}{{{light}}}",
        # Only on screens: paper is always light.
        f"@media screen and (prefers-color-scheme: dark){{{selector}{{{dark}}}}}",
        f"{if_light}{{{light}}}",
        f"@media screen{{{if_dark}{{{dark}}}}}",
    ]


def _rules() -> list[str]:
    numbered = [
        *(f"c{i}" for i in range(GROUPS)),
        *(f"{kind}{i}" for kind in "dt" for i in range(DIVERGING)),
        *(f"v{i}" for i in range(SEQUENTIAL)),
    ]
    return [
        f".gn-chart{{display:block;max-width:100%;height:auto;font-family:{FONTS};"
        "font-variant-numeric:tabular-nums;text-rendering:geometricPrecision}",
        # In a page it takes the available width; as an image it needs its own size.
        f":not(:root).gn-chart{{width:100%;max-width:{WIDEST}px}}",
        *_schemes(
            ".gn-chart",
            "[data-theme=light] .gn-chart,[data-jp-theme-light=true] .gn-chart",
            "[data-theme=dark] .gn-chart,[data-jp-theme-light=false] .gn-chart",
        ),
        *(_paint(f".gn-{name}", name) for name in ("surface", "ink", "soft", "accent", "quiet")),
        *(_paint(f".gn-{name}", name) for name in numbered),
        *(_paint(f".gn-{name}", name, stroke=True) for name in ("grid", "axis")),
        *(
            _paint(f".gn-line-{name}", name, stroke=True)
            for name in (
                "accent",
                "quiet",
                "soft",
                "ink",
                *numbered[:GROUPS],
                *numbered[-SEQUENTIAL:],
            )
        ),
        ".gn-grid,.gn-axis,.gn-line{fill:none;stroke-width:1}",
        ".gn-thick{stroke-width:2.5;stroke-linejoin:round;stroke-linecap:round}",
        ".gn-arrow{stroke-width:1.6;stroke-linecap:round;stroke-linejoin:round}",
        ".gn-fine{stroke-width:.75}",
        ".gn-dash{stroke-dasharray:2 4;stroke-linecap:round}",
        ".gn-area{opacity:.13}",
        ".gn-dots{fill:none;stroke-width:4.4;stroke-linecap:round;stroke-opacity:.7}",
        ".gn-dots.gn-hole{stroke-width:2;stroke-opacity:1}",
        ".gn-dots.gn-small{stroke-width:2.6}",
        ".gn-dots.gn-small.gn-hole{stroke-width:1.2}",
        ".gn-pixels{shape-rendering:crispEdges}",
        ".gn-black{fill:#000}",  # of photographs, in either scheme
        ".gn-white{fill:#fff}",
        *(f".gn-ink{i}{{fill-opacity:{i / INKS:.2g}}}" for i in range(1, INKS + 1)),
        ".gn-many{fill-opacity:.7}",
        _paint(".gn-ring,.gn-point,.gn-halo", "surface", stroke=True),
        _paint(".gn-hole", "surface", stroke=True),
        ".gn-ring{stroke-width:1.5}",
        ".gn-point{stroke-width:.75;fill-opacity:.85}",
        _paint(".gn-open", "surface") + ".gn-open{stroke-width:1.75}",
        _paint(".gn-plate", "surface") + ".gn-plate{opacity:.85}",
        ".gn-halo{paint-order:stroke;stroke-width:4;stroke-linejoin:round}",
        ".gn-title{font-weight:650;letter-spacing:-.01em}",
        ".gn-bold{font-weight:600}",
        *(f".gn-{name}{{font-size:{wide}px}}" for name, (wide, _) in _SIZES.items()),
        "@media (max-width: 480px){"
        + "".join(f".gn-{name}{{font-size:{narrow}px}}" for name, (_, narrow) in _SIZES.items())
        + "}",
    ]


STYLE = "\n".join(_rules())
# The same colours for a page around charts, as custom properties of its root, and of elements that
# are always light or always dark.
PAGE = "\n".join(
    _schemes(":root", ":root[data-theme=light],.gn-light", ":root[data-theme=dark],.gn-dark")
)
