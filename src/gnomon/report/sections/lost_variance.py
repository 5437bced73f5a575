"""Reconstruction: the error of rows reconstructed from the components, by column and row."""

import numpy as np

from gnomon import charts
from gnomon.charts.column_errors import lost_shares, varying
from gnomon.charts.reconstruction import relative_errors
from gnomon.charts.words import count, number, percent
from gnomon.data.spread import measure_spread
from gnomon.errors import UnavailableError
from gnomon.pca.measure import prediction_errors
from gnomon.report.content import PageContent
from gnomon.report.drawn import plain_picture
from gnomon.report.section import (
    Figures,
    Grid,
    Pictures,
    RowLink,
    Section,
    Words,
    row_link,
    shown,
)
from gnomon.typing import Array

__all__ = ["lost_variance"]

MOST_ROWS = 10
TYPICAL, WORST = 7, 3  # rows shown as pictures
SMALL_PART = 0.1  # share of the variance that is called small
ALPHA = 0.01  # significance level of a row that does not fit

HELP = (
    "A row can be reconstructed from its scores, though not entirely: what the components left out "
    "is lost. The error measures how far reconstructed values are off, compared with replacing "
    "every value by the mean of its column, which is 100\u00a0%.",
    "Rows with a large reconstruction error differ from the others in a way that the components do "
    "not capture: errors in the data, rare kinds, or unrelated columns. Look at them one by one. "
    "The same is true of columns: one that is lost almost entirely does not show in the PCA.",
)


def lost_variance(content: PageContent) -> Section | None:
    """Build the fifth section; None if there is nothing to reconstruct."""
    pca = content.pca
    errors = relative_errors(pca)
    kept = int(pca.n_components_)
    if (
        content.of_components
        or content.d < 2
        or not np.nan_to_num(pca.explained_variance_ratio_).any()
    ):
        return None
    whole = float(errors[kept]) == 0
    blocks: list[Figures | Grid | Pictures | Words] = []
    lead = [_sentence(content, float(errors[kept]))]
    drawn = [charts.reconstruction(content.named)]
    if content.pixels is not None and content.prepared is not None and not whole:
        blocks.append(_pairs(content))
    elif not whole and content.numbered is None:
        variances = _variances(content)
        drawn.append(charts.column_errors(content.named, variances=variances))
        lead.append(_columns(content, lost_shares(pca, variances), variances))
    blocks.insert(0, Figures(tuple(drawn)))
    if content.prepared is None:
        text = "Without the table, the rows with the largest reconstruction error are not known."
        blocks.append(Words(text))
    elif not whole:
        blocks.append(_worst_rows(content))
    return Section("reconstruction", "Reconstruction", tuple(lead), tuple(blocks), HELP)


def _pairs(content: PageContent) -> Pictures:
    """Rows, their reconstructions, and those from few components: typical rows and the worst."""
    assert content.prepared is not None
    assert content.pixels is not None
    pca, shape = content.pca, content.pixels
    model = pca._model()
    sq_errors = prediction_errors(model, content.prepared, pca.n_jobs)
    order = np.argsort(sq_errors, kind="stable")
    n = len(order)
    places = np.unique(np.linspace(0.1 * n, 0.9 * n, TYPICAL).astype(int).clip(0, n - 1))
    rows = np.unique(np.concatenate([order[places], order[-WORST:]]))
    rows = rows[np.argsort(sq_errors[rows], kind="stable")]
    table = np.asarray(content.prepared[rows], np.float64)
    scores = model.scores(content.prepared[rows])
    few = max(1, int(pca.n_components_) // 8)
    little = scores.copy()
    little[:, few:] = 0
    made = {
        "original": table,
        f"from {count(int(pca.n_components_), 'component')}": model.restore(scores),
        f"from {count(few, 'component')}": model.restore(little),
    }
    low, high = float(content.prepared.min()), float(content.prepared.max())
    names = [row_link(content, int(row)).text for row in rows]
    lines = tuple(
        (
            name,
            tuple(
                (title if line == 0 else "", plain_picture(picture, low, high))
                for title, picture in zip(names, shape.pictures(np.asarray(X)), strict=True)
            ),
        )
        for line, (name, X) in enumerate(made.items())
    )
    note = f"From the smallest reconstruction error to the largest (the last {WORST})."
    return Pictures("Before and after", note, lines, 72)


def _sentence(content: PageContent, error: float) -> str:
    kept = count(int(content.pca.n_components_), "component")
    rows = int(content.pca.n_samples_)
    if error == 0 and content.directions < content.d:
        any_rows = f"as {content.directions:,} hold any {rows:,} rows"
        return f"From {kept} every value is reconstructed exactly, {any_rows}."
    if error == 0:
        return f"From {kept} every value is reconstructed exactly: nothing is lost."
    return (
        f"Values reconstructed from {kept} are off by {percent(error)} of the columns' spread "
        "(root mean square); the column means alone would be off by 100\u00a0%."
    )


def _variances(content: PageContent) -> Array | None:
    """Variances of the input columns of the PCA; None if they are not known."""
    if content.pca.standardize:
        return np.ones(content.d)
    return None if content.spread is None else content.spread**2


def _columns(content: PageContent, lost: Array, variances: Array | None) -> str:
    weights = np.ones(len(lost)) if variances is None else variances
    known = np.nan_to_num(lost)
    badly = known >= 0.5
    # Columns that hardly vary are left to the sum below, but for a single one: it is the worst.
    much = varying(weights) | (badly.sum() < 2)
    worst = int(np.argmax(np.where(much, known, 0.0)))
    name = shown(content.names[worst])
    said = f"The column with the largest error, {name}, loses {percent(float(known[worst]))}"
    if badly.sum() < 2:
        part = float(weights[worst] / weights.sum())
        held = f" It holds {percent(part)} of all variance." if part < SMALL_PART else ""
        return f"{said} of its variance.{held}"
    said += f" of its variance; {int(badly.sum()):,} of {content.d:,} columns lose more than half"
    part = float(weights[badly].sum() / weights.sum())
    # Not worth a warning if they hold almost none of the variance.
    if part < SMALL_PART:
        return f"{said}, but together they hold only {percent(part)} of the variance."
    return said + "."


def _worst_rows(content: PageContent) -> Grid:
    assert content.prepared is not None
    assert content.X is not None
    assert content.spread is not None
    model, spread = content.pca._model(), content.spread
    sq_errors = prediction_errors(model, content.prepared, content.pca.n_jobs)
    worst = np.argsort(-sq_errors, kind="stable")[:MOST_ROWS]
    typical = float(np.sqrt(np.median(sq_errors))) or 1.0
    rebuilt = model.restore(model.scores(content.prepared[worst]))
    same = content.X is content.prepared
    own = spread if same else measure_spread(content.X).std
    away = rebuilt - np.asarray(content.prepared[worst], np.float64)
    away /= np.where(spread > 0, spread, 1.0)
    rows: list[tuple[str | RowLink, ...]] = []
    for i, row in enumerate(map(int, worst)):
        d = int(np.abs(away[i]).argmax())
        label = [shown(_cell(values[row]), 24) for _, values in content.labels[:1]]
        times = f"{float(np.sqrt(sq_errors[row])) / typical:,.1f}"
        cell = (
            shown(content.names[d], 32),
            number(float(content.X[row, d])),
            number(float(content.X[row, d]) + float(away[i, d] * own[d])),
        )
        named = cell if content.numbered is None else ()
        rows.append((row_link(content, row), *label, f"{times}×", *named))
    labelled = (shown(content.labels[0][0], 24),) if content.labels else ()
    words = frozenset({"row", "most in column", *labelled})
    in_column = ("most in column", "is", "reconstructed as") if content.numbered is None else ()
    head = ("row", *labelled, "error", *in_column)
    note = _note(content, sq_errors)
    return Grid("Rows with the largest reconstruction error", head, tuple(rows), words, note)


def _note(content: PageContent, sq_errors: Array) -> str:
    said = "Errors are multiples of the median row's."
    try:
        limit = content.pca.prediction_error_limit(ALPHA, new=False)
    except UnavailableError:  # not every variance is known
        return said
    beyond = int((sq_errors > limit).sum())
    if beyond <= 2 * ALPHA * content.n + 3:
        return said
    return (
        f"{said} {count(beyond, 'row')} ({percent(beyond / content.n)}) are beyond the limit that "
        f"{percent(ALPHA)} of normally distributed rows exceed: there are outliers, or several "
        "kinds of rows."
    )


def _cell(value: object) -> str:
    return "–" if value is None else str(value)
