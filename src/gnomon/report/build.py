"""From content to a page: sections, charts, data and script in one HTML text.

A page is hostile to whatever its data hold: words pass jinja2's escaping, charts escape their own
text, the data stand in a JSON block without ``<``, ``>`` and ``&``, and a Content-Security-Policy
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
from gnomon.report.content import MANY_ROWS, Content, in_map_order
from gnomon.report.payload import PAGE_BUDGET, Payload, payload
from gnomon.report.section import Section, shown
from gnomon.report.sections import SECTIONS

__all__ = ["POLICY", "Headed", "build", "render"]

# regl compiles its draw calls with `Function`, which no data reach. Its worker is not started; the
# policy allows for it, as the design does.
POLICY = (
    "default-src 'none'; script-src '{script}' 'unsafe-eval'; style-src '{style}'; "
    "worker-src blob:; img-src data: blob:; base-uri 'none'; form-action 'none'"
)
# Not allowed in HTML, or able to turn the direction of the text around them; line ends may stay.
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"
    "\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
LONGEST_TITLE = 120
ROOM_FOR_NOTES = 2_000  # bytes, for what the data say about themselves


def build(content: Content, *, budget: int = PAGE_BUDGET) -> str:
    """The page of `content`.

    Parameters
    ----------
    content : Content
    budget : int
        Bytes that the whole page may take; what is left out to stay below is said on the page.
    """
    if content.n > MANY_ROWS:
        content = in_map_order(content)
    sections = [section for make in SECTIONS if (section := make(content))]
    # Once without data, to see how much room there is for them.
    around = len(render(content, sections, Payload("", ())).encode()) + ROOM_FOR_NOTES
    says = next(section for section in sections if section.id == "map").lead
    data = payload(content, budget=max(0, budget - around), says=says)
    return render(content, sections, data)


class Headed(Protocol):
    """What the frame of every page says: title, size, day and versions."""

    @property
    def title(self) -> str:
        """What the page is called."""

    @property
    def size(self) -> str:
        """How many rows and columns there are, in words."""

    @property
    def made(self) -> str:
        """The day on which the page was made."""

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of what made it."""


def render(content: Headed, sections: Sequence[Section], data: Payload) -> str:
    """One HTML text of all sections, the data and the script."""
    script, style = _asset("page.js"), "\n".join([PAGE, STYLE, _asset("page.css")])
    policy = POLICY.format(script=_hash(script), style=_hash(style))
    return _environment().get_template("page.html").render(
        title=shown(content.title, LONGEST_TITLE),
        policy=policy,
        style=Markup(style),
        script=Markup(script),
        sections=sections,
        map=next(section for section in sections if section.id == "map"),
        content=content,
        payload=data,
        data=Markup(data.text),
    )  # fmt: skip


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
def _asset(name: str) -> str:
    return (files("gnomon.report") / "assets" / name).read_text(encoding="utf-8")


def _printable(value: Any) -> Any:
    """What is printed, without characters that no page may hold."""
    return UNPRINTABLE.sub("", value) if type(value) is str else value


def _breakable(title: str) -> Markup:
    """A title that may break behind the marks that names of files are made of."""
    return Markup("<wbr>").join(re.split(r"(?<=[_./\\-])(?=\w)", _printable(title)))


def _drawing(chart: Chart) -> Markup:
    """A chart without its style sheet, which stands in the page once."""
    return Markup(chart.svg.replace(f"<style>{STYLE}</style>\n", "", 1))


def _hash(text: str) -> str:
    """As a Content-Security-Policy names what it allows."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
