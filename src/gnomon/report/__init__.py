"""The page: one offline file that shows the map, its meaning, and how far to trust it.

``gnomon.report`` is both this package and the function of the same name: ``gnomon.report(X)``
builds a page. Otherwise which of the two a program got would depend on what it imported first.
"""

import sys
from types import ModuleType

from gnomon.report.notebook import show
from gnomon.report.report import Report, report

__all__ = ["Report", "report", "show"]


class _CallablePackage(ModuleType):
    __call__ = staticmethod(report)


sys.modules[__name__].__class__ = _CallablePackage
