"""A finished chart: SVG text that is displayed in notebooks and saved to a file."""

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

    It holds no script, no id and no external reference, follows the reader's
    light or dark scheme, and fills the available width. One page can hold several charts.

    Attributes
    ----------
    svg : str
        One ``<svg>`` element, for a file of its own or inline in a page.
    title : str
        Name of the chart.
    description : str
        Contents of the chart in words and numbers, for screen readers.
    width, height : float
        Size of the drawing in its own units; only the ratio matters.
    """

    svg: str = field(repr=False)
    title: str
    description: str
    width: float
    height: float

    def save(self, path: str | os.PathLike[str], *, scale: float = 2.0) -> Path:
        """Write the chart to `path` and return it as a Path.

        The file is written atomically. An existing file is replaced.

        Parameters
        ----------
        path : str or Path
            Ends in ".svg", or in ".png", which needs ``pip install 'gnomon[png]'``.
        scale : float
            Pixels of a PNG per unit of the drawing, from 0.1 to 20; it is light, on white.
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
                "Saving PNG needs resvg-py: pip install 'gnomon[png]'. SVG needs no extra."
            ) from error
        # The style sheet sets each colour twice; resvg uses the second, but not its variables.
        plain = VARIABLE.sub("", self.svg)
        return bytes(resvg_py.svg_to_bytes(svg_string=plain, background="#ffffff", zoom=zoom))

    def __str__(self) -> str:
        return f"{self.title}. {self.description}"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg
