"""Functions of higher layers that lower ones call by name, imported on first use.

A comparison belongs to `procrustes`, and its page to `report`, which imports `procrustes`. So
`Comparison.report` cannot import the page directly and calls it through this module. Estimators do
the same for the cards that notebooks display, and `gnomon.load` for the models of runs.
"""

from importlib import import_module
from typing import Any

__all__ = ["Shown", "late"]

_HOME = {
    "opened_pair": "gnomon.cli.opened_pair",
    "comparison_card": "gnomon.report.cards",
    "model_card": "gnomon.report.cards",
    "result_bundle": "gnomon.report.notebook",
    "result_card": "gnomon.report.cards",
    "report_comparison": "gnomon.report.compared",
    "restore_run": "gnomon.pipeline.run_model",
}


def late(name: str) -> Any:
    """Import and return the function `name`."""
    return getattr(import_module(_HOME[name]), name)


class Shown:
    """Base of estimators that notebooks display as a card once they are fitted."""

    def _html_repr(self) -> str:
        card = late("model_card")(self)
        return str(super()._html_repr() if card is None else card.html())  # type: ignore[misc]
