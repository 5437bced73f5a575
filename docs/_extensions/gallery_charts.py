"""Charts of gallery scripts as pictures of their pages: a scraper for sphinx-gallery."""

from pathlib import Path
from typing import Any

from gnomon.charts import Chart


def scrape(block: Any, variables: dict[str, Any], conf: dict[str, Any]) -> str:
    """The chart that a block of code ends with, as reStructuredText.

    The page gets the SVG itself, not a link to it, so that the chart follows the page's light or
    dark scheme and says its numbers under the pointer. A file is written too: sphinx-gallery takes
    the first one as the script's thumbnail.
    """
    values = variables["example_globals"]
    chart = values.get("___")  # sphinx-gallery's name for the last value
    if not isinstance(chart, Chart):
        return ""
    values["___"] = None  # a next block that ends with a statement would leave it there
    path = Path(next(variables["image_path_iterator"])).with_suffix(".svg")
    chart.save(path)
    inside = "\n".join("    " + line for line in chart.svg.splitlines())
    return f"\n.. raw:: html\n\n{inside}\n\n"
