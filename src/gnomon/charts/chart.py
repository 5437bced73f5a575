"""A finished chart: SVG text that shows itself in notebooks and saves itself to a file."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from gnomon.errors import refuse
from gnomon.files import writing

__all__ = ["Chart"]


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

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the chart to `path` and return it as a Path.

        A reader finds the old file or the new one, never half of one. An existing file is replaced.

        Parameters
        ----------
        path : str or Path
            Must end in ".svg".
        """
        target = Path(path)
        if target.suffix.lower() != ".svg":
            refuse(
                "path",
                "end in .svg",
                str(path),
                "For PNG or PDF, open the .svg in a browser or in Inkscape and export it.",
            )
        with writing(target, force=True) as part:
            part.write_text(self.svg + "\n", encoding="utf-8", newline="\n")
        return target

    def __str__(self) -> str:
        return f"{self.title}. {self.description}"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg
