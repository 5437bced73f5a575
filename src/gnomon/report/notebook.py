"""`gnomon.show`: the page's map in a notebook, with a selection that Python reads and sets.

With anywidget it is a widget (`gnomon.report.widget`); without it, the page in a frame. Both are
made from what a page is made from (`gnomon.report.content`).
"""

import sys
from importlib.util import find_spec
from typing import Any

import numpy as np

from gnomon import charts
from gnomon.errors import GnomonError, refuse
from gnomon.inputs import check_integer
from gnomon.pca import PCA
from gnomon.procrustes.compare import Comparison
from gnomon.report.build import as_shown, build
from gnomon.report.cards import MOST_POINTS, Card, comparison_card, model_card, result_card
from gnomon.report.compared.pair_content import ComparedContent
from gnomon.report.compared.pair_page import build_comparison, gather_compared
from gnomon.report.compared.pair_payload import compared_payload
from gnomon.report.compared.pair_sections import compared_sections
from gnomon.report.content import PageContent
from gnomon.report.payload import PAGE_BUDGET, payload
from gnomon.report.report import LEAST_BUDGET, Report, gather_given
from gnomon.report.sections.map_picture import map_section
from gnomon.report.widget_rows import WidgetRows
from gnomon.tsne import TSNE

__all__ = ["StaticMap", "result_bundle", "show"]

HEIGHT = 520  # pixels of the map itself
MISSING = (
    "Selections take anywidget: pip install 'gnomon[widget]', and restart the kernel. Without it "
    "the map is the page in a frame, from which Python cannot read."
)


class StaticMap(Report):
    """The page in a frame, for notebooks without anywidget: nothing comes back from it."""

    @property
    def selection(self) -> Any:
        """Not known without anywidget."""
        raise ImportError(MISSING)

    @selection.setter
    def selection(self, rows: Any) -> None:
        raise ImportError(MISSING)

    @property
    def selected(self) -> Any:
        """Not known without anywidget."""
        raise ImportError(MISSING)


def show(
    what: Any,
    X: Any = None,
    *,
    height: int = HEIGHT,
    page_budget: int = PAGE_BUDGET,
    **options: Any,
) -> Any:
    """Show the interactive map in a notebook.

    Parameters
    ----------
    what : Result, Comparison, TSNE, PCA, or a table
        A result of `gnomon.run` and a comparison bring what they need. Models take the rows that
        they were fitted to as `X`; a table takes its models as ``tsne=`` and ``pca=``.
    X : array, dataframe or sparse matrix, shape (n, d), optional
        The rows, where `what` is a model.
    height : int
        Pixels of the map.
    page_budget : int
        Bytes of data that are sent to the browser; what is left out is said beside the map.
    options : optional
        As for `gnomon.report` (labels, ids, names, title, text, …), or for `Comparison.report`.

    Returns
    -------
    MapWidget or StaticMap
        A widget whose ``selection`` (row numbers) and ``selected`` (a dataframe) follow the lasso;
        assign ``selection`` to select on the map, and `observe` it to follow the user's. Without
        anywidget (``pip install 'gnomon[widget]'``) the page in a frame.

    Examples
    --------
    >>> import gnomon
    >>> view = gnomon.show(gnomon.run("iris", dimensions=None))
    >>> view.selection = [3, 1]
    >>> view.selection.tolist()
    [1, 3]
    """
    check_integer("height", height, 100, 4_000)
    budget = check_integer("page_budget", page_budget, LEAST_BUDGET)
    content, card, rows = _gather(what, X, options)
    if find_spec("anywidget") is None:
        if isinstance(content, ComparedContent):
            return StaticMap(build_comparison(content), content)
        return StaticMap(build(content, budget=budget), content)
    from gnomon.report.widget import MapWidget

    if isinstance(content, ComparedContent):
        data = compared_payload(content, compared_sections(content)[0].lead)
    else:
        says = map_section(content).lead
        data = payload(content, budget=budget, says=says)
    return MapWidget(data.text, rows, card, height=height)


def result_bundle(result: Any) -> dict[str, Any]:
    """What a result shows by itself: the widget where a kernel can answer it, otherwise nothing.

    Its card is what notebooks show then, and what they keep where no kernel runs.
    """
    if not is_live() or find_spec("anywidget") is None:
        return {}
    try:
        bundle = show(result)._repr_mimebundle_()
    except GnomonError:  # there may be nothing to make a map of; the card says what there is
        return {}
    return {kind: value for kind, value in bundle[0].items() if kind != "text/html"}


def is_live() -> bool:
    """Whether a notebook's kernel runs this program; a terminal cannot show widgets."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def _gather(
    what: Any, X: Any, options: dict[str, Any]
) -> tuple[PageContent | ComparedContent, Card, WidgetRows]:
    """What is shown, what is said of it, and which rows of the user's table it holds."""
    if isinstance(what, Comparison):
        _without_table("a comparison", X)
        compared = gather_compared(what, **options)
        return compared, comparison_card(what), WidgetRows.of_comparison(compared)
    if hasattr(what, "prepared"):
        _without_table("a result", X)
        content = as_shown(gather_given(what, **options))
        return content, result_card(what), WidgetRows.of_content(content, what.table.n_rows)
    given, card = what, Card("", (), None, ())
    if isinstance(what, TSNE | PCA):
        name = "tsne" if isinstance(what, TSNE) else "pca"
        if X is None:
            way_out = f"gnomon.show({name}, X) shows the rows that it was fitted to."
            refuse("X", "be given with a model", X, way_out)
        card, given, options = model_card(what) or card, X, {**options, name: what}
    else:
        _without_table("a table", X)
    content = as_shown(gather_given(given, **options))
    rows = WidgetRows.of_content(content, int(np.shape(given)[0]), frame=given)
    return content, _card_of(content, card), rows


def _without_table(what: str, X: Any) -> None:
    if X is not None:
        refuse("X", f"be None for {what}", type(X).__name__)


def _card_of(content: PageContent, model: Card) -> Card:
    """What is said of the model, under the title of the map, with its picture."""
    Y, name = (content.pca_map, "PCA") if content.Y is None else (content.Y, content.map_name)
    groups = None if content.groups is None else content.groups[1]
    picture = charts.scatter(Y, groups, title=name, most_points=MOST_POINTS)
    return Card(content.title, model.lines, picture, model.after)
