"""The page: one offline file that shows the map, what it means, and whether to believe it.

``gnomon.report`` is this package and the function of the same name at once: ``gnomon.report(X)``
makes a page. A package and a function cannot share a name otherwise: which of them a program got
would depend on what it imported first.
"""

import sys
from types import ModuleType

from gnomon.report.report import Report, report

__all__ = ["Report", "report"]


class _CallablePackage(ModuleType):
    __call__ = staticmethod(report)


sys.modules[__name__].__class__ = _CallablePackage
