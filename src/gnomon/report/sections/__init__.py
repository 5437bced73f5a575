"""One section, one file; a section that has nothing to say is None."""

from collections.abc import Callable

from gnomon.report.content import Content
from gnomon.report.section import Section
from gnomon.report.sections.audit import audit
from gnomon.report.sections.components import components
from gnomon.report.sections.counting import counting
from gnomon.report.sections.map import map_section
from gnomon.report.sections.overview import overview
from gnomon.report.sections.reconstruction import reconstruction
from gnomon.report.sections.reproduce import reproduce
from gnomon.report.sections.stability import stability
from gnomon.report.sections.trust import trust

__all__ = ["SECTIONS"]

# In the order of the page.
SECTIONS: tuple[Callable[[Content], Section | None], ...] = (
    map_section,
    overview,
    counting,
    components,
    reconstruction,
    trust,
    audit,
    stability,
    reproduce,
)
