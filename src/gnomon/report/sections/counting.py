"""Number of components: shares of the variance, and the answers of the rules."""

import numpy as np

from gnomon import charts
from gnomon.charts.fitted import known_shares
from gnomon.charts.words import count, hold, percent
from gnomon.pca import component_panel
from gnomon.pca.rank import ComponentPanel
from gnomon.report.content import PageContent
from gnomon.report.section import Figures, Grid, Section

__all__ = ["counting"]

RULES = {
    "mle": "Minka",
    "parallel": "parallel analysis (Horn)",
    "broken-stick": "broken stick",
    "gavish-donoho": "Gavish and Donoho",
    "kaiser": "Kaiser",
}
# Short names for the marks of a chart, where several share one line.
SHORT = {"parallel": "Horn", "gavish-donoho": "Gavish–Donoho"}
HELP = (
    "A component is a direction in the table: a weighted sum of its columns. They are ordered "
    "by how much the rows differ along them. Where the bars level off, what remains is mostly "
    "noise, or detail spread over many columns.",
    "The rules answer different questions, so they often disagree. To see whether there is "
    "structure at all, ask parallel analysis, which compares with unrelated "
    "columns. To keep the data almost as they are, take the 95\u00a0% line. To remove "
    "noise, take Gavish and Donoho's.",
)


def counting(content: PageContent) -> Section | None:
    """Build the third section; None for a single column, or if nothing varies."""
    pca = content.pca
    if content.of_components or content.d < 2 or not known_shares(pca).any():
        return None
    panel = component_panel(pca)
    rules = {SHORT.get(row.rule, RULES.get(row.rule, row.rule)): row.k for row in panel.rows}
    charted = charts.scree(content.named, panel=rules), charts.cumulative(content.named)
    return Section(
        "counting",
        "How many components?",
        (_sentence(content, panel),),
        (Figures(charted), _table(content, panel)),
        HELP,
    )


def _sentence(content: PageContent, panel: ComponentPanel) -> str:
    shares = known_shares(content.pca)
    kept = int(content.pca.n_components_)
    held = percent(float(shares[:kept].sum()))
    said = (
        f"This model keeps {count(kept, 'component')}, which {hold(kept)} {held} of the variance."
    )
    chance = panel.counts.get("parallel")
    if chance is None:
        return said
    if chance == 0:
        return f"{said} None stands out from what unrelated columns would show."
    more = percent(float(shares[:chance].sum()))
    if chance < kept:
        few = f"the first {chance:,} ({more}) stand" if chance > 1 else f"the first ({more}) stands"
        rest = "the others refine the picture or are noise"
        if kept - chance == 1:
            rest = "the other refines the picture or is noise"
        return f"{said} Only {few} out from what unrelated columns would show; {rest}."
    if chance > kept:
        return (
            f"{said} {chance:,} ({more}) stand out from what unrelated columns would show, so "
            "there is structure that this model leaves out."
        )
    if chance == 1:
        return f"{said} It stands out from what unrelated columns would show."
    return f"{said} As many stand out from what unrelated columns would show."


def _table(content: PageContent, panel: ComponentPanel) -> Grid:
    shares = known_shares(content.pca)
    sums = np.concatenate([[0.0], np.cumsum(shares)]).clip(0.0, 1.0)
    rows = []
    for row in panel.rows:
        held = "" if row.k is None or row.k >= len(sums) else percent(float(sums[row.k]))
        number = "–" if row.k is None else f"{row.k:,}"
        name = RULES.get(row.rule, row.rule.replace(" ", "\u00a0") + " of the variance")
        rows.append((name, number, held, row.unavailable or row.meaning))
    return Grid(
        "What each rule would keep",
        ("rule", "keeps", "holding", "what it counts"),
        tuple(rows),
        frozenset({"rule", "what it counts"}),
        _note(content),
    )


def _note(content: PageContent) -> str:
    """Note that rules say little if the rows limit the number of components."""
    if content.directions == content.d:
        return ""
    rows, most = count(int(content.pca.n_samples_), "row"), count(content.directions, "component")
    return (
        f"{rows} have {most} at most, whatever their columns hold: Kaiser's rule and shares of the "
        "variance say little about so few rows."
    )
