"""One section, one file; a section that has nothing to say is None."""

from collections.abc import Callable

from gnomon.report.content import Content
from gnomon.report.section import Section
from gnomon.report.sections.components import components
from gnomon.report.sections.counting import counting
from gnomon.report.sections.overview import overview
from gnomon.report.sections.reconstruction import reconstruction
from gnomon.report.sections.reproduce import reproduce
from gnomon.report.sections.stability import stability
from gnomon.report.sections.trust import trust

__all__ = ["AFTER_MAP", "BEFORE_MAP"]

# The map itself stands between them; `map.html` is its section.
BEFORE_MAP: tuple[Callable[[Content], Section | None], ...] = (overview,)
AFTER_MAP: tuple[Callable[[Content], Section | None], ...] = (
    counting,
    components,
    reconstruction,
    trust,
    stability,
    reproduce,
)
