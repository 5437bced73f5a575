"""A finished chart: SVG text that shows itself in notebooks and saves itself to a file."""

import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from gnomon.errors import refuse

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

        The file is written beside its final place and then moved there, so that a reader finds
        the old file or the new one and never half of one. An existing file is replaced.

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
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            # Mode "x" gives the usual permissions, which the tempfile module would narrow.
            with temporary.open("x", encoding="utf-8", newline="\n") as file:
                file.write(self.svg + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return target

    def __str__(self) -> str:
        return f"{self.title}. {self.description}"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg
