"""Functions of higher layers that results of lower ones call by name, when they are first needed.

A comparison belongs to `procrustes`, and its page to `report`, which knows `procrustes`. So
`Comparison.report` cannot import the page; it asks for it here.
"""

from importlib import import_module
from typing import Any

__all__ = ["late"]

_HOME = {
    "report_comparison": "gnomon.report.compared",
}


def late(name: str) -> Any:
    """The function `name`, its module imported now."""
    return getattr(import_module(_HOME[name]), name)
