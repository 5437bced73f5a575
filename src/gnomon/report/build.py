"""Build the page: sections, charts, data and script in one HTML text.

The data of a page are untrusted: words are escaped by jinja2, charts escape their own
text, the data are in a JSON block without ``<``, ``>`` and ``&``, and a Content-Security-Policy
allows exactly one script and one style sheet, by their hashes.
"""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

import jinja2
from markupsafe import Markup

from gnomon.charts import Chart
from gnomon.charts.theme import PAGE, STYLE
from gnomon.report.content import MANY_ROWS, PageContent, in_map_order
from gnomon.report.payload import PAGE_BUDGET, Payload, payload
from gnomon.report.section import Section, shown
from gnomon.report.sections import SECTIONS

__all__ = ["POLICY", "Headed", "as_shown", "asset", "build", "render"]

# regl compiles its draw calls with `Function`, which no data reach. Its worker is not started, but
# the policy allows for it, as the design does.
POLICY = (
    "default-src 'none'; script-src '{script}' 'unsafe-eval'; style-src '{style}'; "
    "worker-src blob:; img-src data: blob:; base-uri 'none'; form-action 'none'"
)
# Not allowed in HTML, or able to change the direction of text; line ends may stay.
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"
    "\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
LONGEST_TITLE = 120
ROOM_FOR_NOTES = 2_000  # bytes reserved for the notes of the payload


def build(content: PageContent, *, budget: int = PAGE_BUDGET) -> str:
    """Build the page of `content`.

    Parameters
    ----------
    content : PageContent
    budget : int
        Bytes that the whole page may take; the page lists what was left out to stay below.
    """
    content = as_shown(content)
    sections = [section for make in SECTIONS if (section := make(content))]
    # Render once without data, to measure the room for them.
    around = len(render(content, sections, Payload("", ())).encode()) + ROOM_FOR_NOTES
    says = next(section for section in sections if section.id == "map").lead
    data = payload(content, budget=max(0, budget - around), says=says)
    return render(content, sections, data)


def as_shown(content: PageContent) -> PageContent:
    """The rows in the order in which a page holds them: very many along the map."""
    return in_map_order(content) if content.n > MANY_ROWS else content


class Headed(Protocol):
    """Header of every page: title, size, date and versions."""

    @property
    def title(self) -> str:
        """Title of the page."""

    @property
    def size(self) -> str:
        """Number of rows and columns, in words."""

    @property
    def made(self) -> str:
        """Date of the page."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of the software."""


def render(content: Headed, sections: Sequence[Section], data: Payload) -> str:
    """One HTML text of all sections, the data and the script."""
    script, style = asset("page.js"), "\n".join([PAGE, STYLE, asset("page.css")])
    policy = POLICY.format(script=_hash(script), style=_hash(style))
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=shown(content.title, LONGEST_TITLE),
            policy=policy,
            style=Markup(style),
            script=Markup(script),
            sections=sections,
            map=next(section for section in sections if section.id == "map"),
            content=content,
            payload=data,
            data=Markup(data.text),
        )
    )


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gnomon.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    environment.filters["drawing"] = _drawing
    environment.filters["breakable"] = _breakable
    return environment


@cache
def asset(name: str) -> str:
    """A file that is built from web/."""
    return (files("gnomon.report") / "assets" / name).read_text(encoding="utf-8")


def _printable(value: Any) -> Any:
    """Remove characters that HTML does not allow from printed values."""
    return UNPRINTABLE.sub("", value) if type(value) is str else value


def _breakable(title: str) -> Markup:
    """Allow line breaks after the punctuation of file names in a title."""
    return Markup("<wbr>").join(re.split(r"(?<=[_./\\-])(?=\w)", _printable(title)))


def _drawing(chart: Chart) -> Markup:
    """SVG of a chart without its style sheet, which the page includes once."""
    return Markup(chart.svg.replace(f"<style>{STYLE}</style>\n", "", 1))


def _hash(text: str) -> str:
    """Hash of a text in the form of a Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
