"""Functions of higher layers that results of lower ones call by name, when they are first needed.

A comparison belongs to `procrustes`, and its page to `report`, which knows `procrustes`. So
`Comparison.report` cannot import the page; it asks for it here. So do estimators for the cards that
notebooks show of them.
"""

from importlib import import_module
from typing import Any

__all__ = ["Shown", "late"]

_HOME = {
    "comparison_card": "gnomon.report.cards",
    "model_card": "gnomon.report.cards",
    "result_card": "gnomon.report.cards",
    "report_comparison": "gnomon.report.compared",
}


def late(name: str) -> Any:
    """The function `name`, its module imported now."""
    return getattr(import_module(_HOME[name]), name)


class Shown:
    """Base of estimators that show a card in notebooks once they are fitted."""

    def _html_repr(self) -> str:
        shown = late("model_card")(self)
        return str(super()._html_repr()) if shown is None else shown  # type: ignore[misc]
