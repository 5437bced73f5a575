"""The page: one offline file that shows the map, its meaning, and how far to trust it.

``gnomon.report`` is both this package and the function of the same name: ``gnomon.report(X)``
builds a page. Otherwise which of the two a program got would depend on what it imported first.
"""

import inspect
import sys
from types import ModuleType

from gnomon.report.notebook import show
from gnomon.report.report import Report, report

__all__ = ["Report", "report", "show"]


class _CallablePackage(ModuleType):
    __call__ = staticmethod(report)


def _call() -> str:
    """The function with its parameters and their defaults, as ``help`` shows a function."""
    known = inspect.signature(report).parameters.values()
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in known]
    return f"report{inspect.Signature(plain)}"


# What `help(gnomon.report)` shows is the function, which is what users look for.
__doc__ = f"{_call()}\n\n{inspect.cleandoc(str(report.__doc__))}"
sys.modules[__name__].__class__ = _CallablePackage
