"""The page's map as a widget of notebooks, by anywidget (extra ``gnomon[widget]``).

The data are sent once, as bytes. A selection goes both ways as rows of the map (`_chosen`), and is
shown in rows of the user's table (`selection`). `web/src/widget.ts` is the other half.
"""

from typing import Any

import anywidget
import numpy as np
import traitlets
from numpy.typing import NDArray

from gnomon.charts.theme import PAGE
from gnomon.report.build import asset
from gnomon.report.cards import Card
from gnomon.report.widget_rows import WidgetRows

__all__ = ["MapWidget"]


class Rows(traitlets.TraitType):
    """Row numbers, checked when they are assigned; equal ones are no change."""

    info_text = "row numbers, or one boolean a row"

    def make_dynamic_default(self) -> NDArray[np.int64]:
        """No rows."""
        return np.empty(0, np.int64)

    def set(self, obj: Any, value: Any) -> None:
        """Assign rows, unless they are the same."""
        chosen = obj._rows.check(value)
        before = self.get(obj, type(obj))
        if not np.array_equal(chosen, before):
            chosen.flags.writeable = False  # observers do not see a change in place
            obj._trait_values[self.name] = chosen
            obj._notify_trait(self.name, before, chosen)


class MapWidget(anywidget.AnyWidget):
    """The interactive map in a notebook; `gnomon.show` makes it.

    Attributes
    ----------
    selection : array of int
        Row numbers that are selected, ascending. Assign row numbers, one boolean a row, or None;
        ``widget.observe(act, "selection")`` calls ``act`` whenever it changes, here or on the map.
    selected : dataframe
        The rows that are selected: of your own dataframe, or with what the map knows of them.
    rows : array of int
        Row numbers that the map shows: all, or a sample of very many.
    """

    selection: Any = Rows()
    height = traitlets.Int(520).tag(sync=True)
    _esm = asset("widget.js")
    _style = traitlets.Unicode(PAGE + "\n" + asset("widget.css")).tag(sync=True)
    _data = traitlets.Bytes().tag(sync=True)
    _about = traitlets.Dict().tag(sync=True)
    # Buffers arrive as memory views.
    _chosen = traitlets.Bytes().tag(sync=True, from_json=lambda value, widget: bytes(value))

    def __init__(self, data: str, rows: WidgetRows, card: Card, *, height: int) -> None:
        self._rows, self._card = rows, card
        about = {
            "title": card.title,
            "lines": [list(line) for line in card.lines],
            "next": "\n".join(card.after),
        }
        super().__init__(_data=data.encode("ascii"), _about=about, height=height)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Row numbers that the map shows, ascending."""
        return np.sort(self._rows.of_map)

    @property
    def selected(self) -> Any:
        """The rows that are selected, as a dataframe."""
        return self._rows.take(self.selection)

    @traitlets.observe("selection")  # type: ignore[untyped-decorator]
    def _to_map(self, change: Any) -> None:
        self._chosen = self._rows.to_map(change.new)

    @traitlets.observe("_chosen")  # type: ignore[untyped-decorator]
    def _from_map(self, change: Any) -> None:
        self.selection = self._rows.from_map(change.new)

    def _repr_mimebundle_(self, **limits: Any) -> Any:
        # Where no kernel runs, notebooks show the picture instead.
        bundle = super()._repr_mimebundle_(**limits)
        if bundle is None:
            return None
        data, metadata = bundle
        return {**data, "text/html": self._card.html()}, metadata

    def __repr__(self) -> str:
        return f"MapWidget({self._card.title!r}, {len(self.selection):,} rows selected)"
