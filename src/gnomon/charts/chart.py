"""A finished chart: SVG text that shows itself in notebooks and saves itself to a file."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from gnomon.errors import refuse
from gnomon.files import writing
from gnomon.inputs import check_real

__all__ = ["Chart"]

SCALES = (0.1, 20.0)
VARIABLE = re.compile(r";(fill|stroke):var\(--gn-[\w-]+\)")


@dataclass(frozen=True)
class Chart:
    """A picture as SVG text.

    It holds no script, no id and no reference to anything outside itself, follows the reader's
    light or dark scheme, and fills the width it is given. Several charts can stand in one page.

    Attributes
    ----------
    svg : str
        One ``<svg>`` element, ready to stand alone in a file or inline in a page.
    title : str
        What the chart is.
    description : str
        What it shows, in words and numbers, for those who do not see it.
    width, height : float
        Size of the drawing in its own units; the ratio is what matters.
    """

    svg: str = field(repr=False)
    title: str
    description: str
    width: float
    height: float

    def save(self, path: str | os.PathLike[str], *, scale: float = 2.0) -> Path:
        """Write the chart to `path` and return it as a Path.

        A reader finds the old file or the new one, never half of one. An existing file is replaced.

        Parameters
        ----------
        path : str or Path
            Ends in ".svg", or in ".png", which takes ``pip install 'gnomon[png]'``.
        scale : float
            Pixels of a PNG for each unit of the drawing, from 0.1 to 20; it is light, on white.
        """
        target = Path(path)
        kind = target.suffix.lower()
        if kind not in (".svg", ".png"):
            refuse(
                "path",
                "end in .svg or .png",
                str(path),
                "For PDF, open the .svg in a browser or in Inkscape and export it.",
            )
        drawn = (self.svg + "\n").encode() if kind == ".svg" else self._png(scale)
        with writing(target, force=True) as part:
            part.write_bytes(drawn)
        return target

    def _png(self, scale: float) -> bytes:
        zoom = check_real("scale", scale, *SCALES)
        try:
            import resvg_py
        except ImportError as error:
            raise ImportError(
                "A chart is saved as PNG by resvg-py: pip install 'gnomon[png]'. SVG needs nothing."
            ) from error
        # The style sheet names each colour twice; resvg takes the second, and knows no variables.
        plain = VARIABLE.sub("", self.svg)
        return bytes(resvg_py.svg_to_bytes(svg_string=plain, background="#ffffff", zoom=zoom))

    def __str__(self) -> str:
        return f"{self.title}. {self.description}"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg
