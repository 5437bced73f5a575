"""Sections of the page, one per file; an empty section is None."""

from collections.abc import Callable

from gnomon.report.content import PageContent
from gnomon.report.section import Section
from gnomon.report.sections.counting import counting
from gnomon.report.sections.lost_variance import lost_variance
from gnomon.report.sections.map_picture import map_section
from gnomon.report.sections.meaning import components
from gnomon.report.sections.misplaced import misplaced
from gnomon.report.sections.overview import overview
from gnomon.report.sections.refits import refits
from gnomon.report.sections.reproduce import reproduce
from gnomon.report.sections.trust import trust

__all__ = ["SECTIONS"]

# In page order.
SECTIONS: tuple[Callable[[PageContent], Section | None], ...] = (
    map_section,
    overview,
    counting,
    components,
    lost_variance,
    trust,
    misplaced,
    refits,
    reproduce,
)
