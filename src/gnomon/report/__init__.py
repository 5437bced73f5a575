"""The page: one offline file that shows the map, what it means, and whether to believe it.

``gnomon.report`` is the function of that name and this package at once: whichever of the two a
program imported first, calling it makes a page.
"""

import sys
from types import ModuleType

from gnomon.report.report import Report, report

__all__ = ["Report", "report"]


class _CallableModule(ModuleType):
    __call__ = staticmethod(report)


sys.modules[__name__].__class__ = _CallableModule
