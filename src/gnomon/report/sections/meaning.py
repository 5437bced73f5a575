"""Meaning of the components: the columns of each, and the groups it separates."""

import numpy as np

from gnomon import charts
from gnomon.charts.words import listing, percent
from gnomon.report.content import PageContent
from gnomon.report.drawn import plain_picture, signed_picture
from gnomon.report.section import Bullets, Figures, Pictures, Section, shown
from gnomon.scores.few_rows import FEW_ROWS, clear_correlation
from gnomon.typing import Array

__all__ = ["components"]

MOST_COMPONENTS = 6
MOST_PICTURES = 19
MOST_COLUMNS = 3  # columns that a sentence names on either side
CLEARLY = 0.3  # correlation from which a column is named; higher for few rows
SEPARATED = 0.5  # share of a component's variance between groups, beyond chance, worth reporting
MOST_GROUPS = 100

HELP = (
    "A row's score on a component says where it lies along that direction. Columns with a "
    "correlation near 1 rise with the score, those near −1 fall, those near 0 are unrelated to it. "
    "The sign of a component as a whole is arbitrary.",
    "In the biplot rows are points and columns are arrows: a row far along an arrow is high in "
    "that column. Its scaling “rows” keeps the distances between points true; angles between "
    "arrows are better read from the correlation circle, where an arrow that reaches the circle "
    "is a column that the two components hold entirely.",
)


def components(content: PageContent) -> Section | None:
    """Build the fourth section; None if nothing varies."""
    pca = content.pca
    shares = np.nan_to_num(pca.explained_variance_ratio_)
    if content.of_components or not shares.any() or content.d < 2:
        return None
    correlations = np.nan_to_num(pca.correlations())
    k = min(MOST_COMPONENTS, int(pca.n_components_), int(np.count_nonzero(shares)))
    between = _between_groups(content, k)
    if content.numbered is not None:
        return _of_numbered(content, between)
    clearly = max(CLEARLY, clear_correlation(int(pca.n_samples_)))
    named = range(k if clearly < 1 else 0)
    said = tuple(
        _sentence(c, float(shares[c]), correlations[:, c], pca.components_[c], content, clearly)
        + "".join(f" The {said}" for said in _groups(c, content, between))
        for c in named
    )
    drawn = [charts.loadings(content.named, measure="correlation")]
    if pca.n_components_ >= 2:
        labels = None if content.groups is None else content.groups[1]
        drawn += [
            charts.correlation_circle(content.named),
            charts.biplot(content.named, labels=labels, scores=content.scores),
        ]
    return Section(
        "components",
        "What the components mean",
        (*_few(content, clearly), *said[:2]),
        (Figures(tuple(drawn), Bullets("The next ones", said[2:]) if said[2:] else None),),
        HELP,
    )


def _of_numbered(content: PageContent, between: tuple[Array, float] | None) -> Section | None:
    """Build the section if column names have no meaning: pixels, entries of a vector."""
    pca = content.pca
    shares = np.nan_to_num(pca.explained_variance_ratio_)
    k = min(MOST_COMPONENTS, int(pca.n_components_))
    apart = [
        f"PC{c + 1} ({percent(float(shares[c]))} of the variance): the {said}"
        for c in range(k)
        for said in _groups(c, content, between)
    ]
    if content.pixels is None:
        lead = (
            f"The features are {shown(str(content.numbered), 120)}. Single columns have no meaning "
            "here, so the components are not described by them."
        )
        blocks = (Bullets("What the components separate", tuple(apart)),) if apart else ()
        return Section("components", "What the components mean", (lead,), blocks, HELP[:1])
    most = min(MOST_PICTURES, int(pca.n_components_))
    pictures = content.pixels.pictures(np.asarray(pca.components_[:most], np.float64))
    drawn = [
        (f"PC{c + 1}, {percent(float(shares[c]))}", signed_picture(pictures[c]))
        for c in range(most)
    ]
    means = content.pixels.pictures(np.asarray(pca.mean_, np.float64)[None])
    mean = ("mean", plain_picture(means[0], float(means.min()), float(means.max())))
    block = Pictures(
        "The components as pictures",
        "Blue pixels rise with the score, orange ones fall, white ones do not change.",
        (("", (mean, *drawn)),),
        88,
    )
    lead = (
        "Each component is a picture: a row is the mean plus each component times the row's score "
        "on it. The sign of a component is arbitrary."
    )
    return Section("components", "What the components mean", (lead, *apart[:3]), (block,), HELP[:1])


def _few(content: PageContent, clearly: float) -> tuple[str, ...]:
    """Warn about correlations of few rows; empty if there are enough."""
    rows = int(content.pca.n_samples_)
    if rows >= FEW_ROWS:
        return ()
    if clearly >= 1:
        return (f"Any correlation of {rows} rows may be chance, those drawn here too.",)
    return (f"Of {rows} rows, correlations below {clearly:.2f} may be chance and are not named.",)


def _sentence(
    c: int, share: float, r: Array, direction: Array, content: PageContent, clearly: float
) -> str:
    """Describe one component by its columns."""
    # By contribution; a column that hardly varies may correlate without contributing.
    order = np.argsort(-(direction**2), kind="stable")
    strong = [int(d) for d in order if abs(r[d]) >= clearly and direction[d] ** 2 >= 1e-6]
    up = [d for d in strong if r[d] > 0][:MOST_COLUMNS]
    down = [d for d in strong if r[d] < 0][:MOST_COLUMNS]
    head = f"PC{c + 1} ({percent(share)} of the variance)"
    parts = [
        f"{verb} {_listing(side, r, content, named=side is (up or down))}"
        for verb, side in (("rises with", up), ("falls with", down))
        if side
    ]
    if not parts:
        parts = ["has no clear correlation with any column"]
    more = len(strong) - len(up) - len(down)
    said = f"{head} {' and '.join(parts)}"
    if more:
        said += (
            f"; {more:,} more {'columns correlate' if more > 1 else 'column correlates'} with it"
        )
    return said + "."


def _groups(c: int, content: PageContent, between: tuple[Array, float] | None) -> list[str]:
    """State how much of a component groups explain, if they do beyond chance."""
    if between is None:
        return []
    share, chance = float(between[0][c]), between[1]
    if (share - chance) / (1 - chance) < SEPARATED:
        return []
    return [f"groups of {shown(content.labels[0][0])} explain {percent(share)} of its variance."]


def _listing(columns: list[int], r: Array, content: PageContent, *, named: bool) -> str:
    """List columns with their correlations; `named` labels the first as a correlation."""
    columns = sorted(columns, key=lambda d: -abs(float(r[d])))
    values = [_signed(float(r[d])) for d in columns]
    if named:
        values[0] = f"correlation {values[0]}"
    names = [shown(content.names[d]) for d in columns]
    return listing([f"{name} ({value})" for name, value in zip(names, values, strict=True)])


def _signed(r: float) -> str:
    return f"{r:.2f}".replace("-", "−")


def _between_groups(content: PageContent, k: int) -> tuple[Array, float] | None:
    """Share of each component's variance between the groups, and by chance; None without groups."""
    if not content.labels or content.labels[0][1].dtype.kind != "O":
        return None
    values = content.labels[0][1].tolist()
    known = np.array([value is not None for value in values])
    found, codes = np.unique([str(v) for v in values if v is not None], return_inverse=True)
    if not 2 <= len(found) <= min(MOST_GROUPS, known.sum() // 2):
        return None
    scores = np.asarray(content.scores[known, :k], dtype=np.float64)
    scores = scores - scores.mean(axis=0)
    sums = np.stack([np.bincount(codes, column) for column in scores.T], axis=1)
    total = (scores**2).sum(axis=0)
    between = (sums**2 / np.bincount(codes)[:, None]).sum(axis=0)
    shares: Array = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    return shares, (len(found) - 1) / (len(codes) - 1)
