"""What the components mean: the columns behind each, and the groups it separates."""

import numpy as np

from gnomon import charts
from gnomon.charts.words import listing, percent
from gnomon.report.content import Content, Floats
from gnomon.report.section import Bullets, Figures, Section, shown

__all__ = ["components"]

MOST_COMPONENTS = 6
MOST_COLUMNS = 3  # that a sentence names on either side
CLEARLY = 0.3  # correlation from which a column is named
SEPARATED = 0.5  # share of a component's variance between groups from which it is said
MOST_GROUPS = 100

HELP = (
    "A row's score on a component says where it lies along that direction. Columns with a "
    "correlation near 1 rise with the score, those near −1 fall, those near 0 have nothing to do "
    "with it. The sign of a component as a whole is arbitrary.",
    "In the biplot rows are points and columns are arrows: a row far along an arrow is high in "
    "that column. Its scaling “rows” keeps the distances between points true; angles between "
    "arrows are better read from the correlation circle, where an arrow that reaches the circle "
    "is a column that the two components hold entirely.",
)


def components(content: Content) -> Section | None:
    """The fourth section; None where nothing varies."""
    pca = content.pca
    shares = np.nan_to_num(pca.explained_variance_ratio_)
    if not shares.any() or content.d < 2:
        return None
    correlations = np.nan_to_num(pca.correlations())
    k = min(MOST_COMPONENTS, int(pca.n_components_), int(np.count_nonzero(shares)))
    between = _between_groups(content, k)
    said = tuple(
        _sentence(c, float(shares[c]), correlations[:, c], pca.components_[c], content, between)
        for c in range(k)
    )
    drawn = [charts.loadings(content.named)]
    if pca.n_components_ >= 2:
        labels = content.labels[0][1] if content.labels else None
        drawn += [
            charts.correlation_circle(content.named),
            charts.biplot(content.named, labels=labels, scores=content.scores),
        ]
    return Section(
        "components",
        "What the components mean",
        said[:2],
        (Figures(tuple(drawn), Bullets("The next ones", said[2:]) if said[2:] else None),),
        HELP,
    )


def _sentence(
    c: int, share: float, r: Floats, direction: Floats, content: Content, between: Floats | None
) -> str:
    """What one component is made of."""
    # By contribution; a column that hardly varies may correlate and still make nothing of it.
    order = np.argsort(-(direction**2), kind="stable")
    strong = [int(d) for d in order if abs(r[d]) >= CLEARLY and direction[d] ** 2 >= 1e-6]
    up = [d for d in strong if r[d] > 0][:MOST_COLUMNS]
    down = [d for d in strong if r[d] < 0][:MOST_COLUMNS]
    head = f"PC{c + 1} ({percent(share)} of the variance)"
    parts = [
        f"{verb} {_listing(side, r, content)}"
        for verb, side in (("rises with", up), ("falls with", down))
        if side
    ]
    if not parts:
        parts = ["is spread over many columns, none of which goes with it clearly"]
    more = len(strong) - len(up) - len(down)
    said = f"{head} {' and '.join(parts)}"
    if more:
        said += f", and {more:,} more {'columns go' if more > 1 else 'column goes'} with it"
    if between is not None and between[c] >= SEPARATED:
        name = shown(content.labels[0][0])
        said += f". {percent(float(between[c]))} of it lies between the groups of {name}"
    return said + "."


def _listing(columns: list[int], r: Floats, content: Content) -> str:
    columns = sorted(columns, key=lambda d: -abs(float(r[d])))
    return listing([f"{shown(content.names[d])} ({_signed(float(r[d]))})" for d in columns])


def _signed(r: float) -> str:
    return f"{r:.2f}".replace("-", "−")


def _between_groups(content: Content, k: int) -> Floats | None:
    """Share of each component's variance that lies between the groups; None without groups."""
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
    shares: Floats = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    return shares
