"""Overview: the data, the findings, and the warnings."""

from typing import Any

import numpy as np

from gnomon.charts.fitted import components_needed, known_shares
from gnomon.charts.words import count, hold, percent, stopped
from gnomon.report.content import NAMED_METRICS, PageContent
from gnomon.report.section import Facts, Section, names, shown
from gnomon.scores.few_rows import FEW_ROWS, few_rows_warning
from gnomon.scores.map_verdict import FAR_IN_ORDER, FAR_IN_PART

__all__ = ["PCA_REMARK", "keeps", "overview", "perplexity"]

WEAK = 0.2  # share of neighbours kept beyond chance, below which a map shows little
ROUNDING = 1e-12
STAGES = {
    "read": "reading",
    "prepare": "preparing",
    "pca": "PCA",
    "tsne": "t-SNE",
    "trust": "trust",
    "place": "placing",
}

HELP = (
    "Each point of the map is one row of the table. Points that lie close together are rows with "
    "similar numbers; the map is drawn from the numbers alone and does not know the labels that "
    "colour it.",
    "PCA finds the directions along which the rows differ most and says how much each holds; "
    "t-SNE lays the rows out so that neighbours stay neighbours. PCA keeps large distances and may "
    "lay different rows on top of each other; t-SNE keeps neighbourhoods and gives up large "
    "distances.",
)
ELSEWHERE_HELP = (
    HELP[0],
    "The map was made by another program. The page tells how far it can be trusted: how many of "
    "its neighbours are neighbours in the data, whether far is far, and which rows are better "
    "placed than at random. The PCA beside it is computed here, from the same table.",
)
PCA_REMARK = "Far is different; near may still differ along other components."
PCA_HELP = (
    "Each point of the map is one row of the table. PCA finds the directions along which the "
    "rows differ most; the map shows the first two, seen straight on. Rows that lie far apart "
    "on it differ; rows that lie close together may still differ along the other directions.",
)


def overview(content: PageContent) -> Section:
    """Build the section on the data and the findings."""
    return Section(
        "overview",
        "Overview",
        tuple(filter(None, (_few(content), _what(content), _map(content), _pca(content)))),
        (Facts(tuple(_facts(content))),),
        _help(content),
        tuple(shown(text, 400) for text in content.warnings if text != _warned(content)),
    )


def _help(content: PageContent) -> tuple[str, ...]:
    if content.Y is None:
        return PCA_HELP
    return ELSEWHERE_HELP if content.made_elsewhere else HELP


def _behind(content: PageContent) -> int:
    """Number of rows behind the findings: those of the map, or else of the components."""
    return int(content.pca.n_samples_) if content.Y is None else content.mapped


def _warned(content: PageContent) -> str:
    """Warning of the run about few rows, which the first sentence repeats."""
    return few_rows_warning(_behind(content), mapped=content.Y is not None)


def _few(content: PageContent) -> str:
    """Sentence about too few rows, before all others; empty if there are enough."""
    if not _warned(content):
        return ""
    rows = count(_behind(content), "row")
    whole = _behind(content) == content.total
    name = _name(content)
    of = f"The map of {'the table' if content.source == 'data' else name} was made of only {rows}"
    if content.Y is None:
        of = f"The components were found in only {rows}"
    if whole:
        of = f"{name} has only {rows}"
    said = f"{of}, too few to tell structure from chance"
    return f"{said}." if content.Y is None else f"{said}: a map takes {FEW_ROWS} rows or more."


def _name(content: PageContent) -> str:
    return "The table" if content.source == "data" else shown(content.source)


def _what(content: PageContent) -> str:
    columns = f"{count(content.d, 'column')} of numbers"
    if content.of_components:
        columns = f"{content.d:,} principal components"
    table = f"{_name(content)} has {count(content.total, 'row')} and {columns}"
    are = "is" if content.d == 1 else "are"
    if _few(content) and _behind(content) == content.total:  # which counts the rows
        table = f"{columns} {are} in use"
    elif {name for name, _ in content.roles} & {"colour", "ignored"}:  # may be numbers too
        table = table.replace(" and ", "; ") + f" {are} in use"
    if content.n < content.total:
        table += f", and the page shows {content.n:,} of the rows"
    if not content.labels and content.suggested is not None:
        found = len({value for value in content.suggested.tolist() if value is not None})
        return f"{table}; points are coloured by {count(found, 'suggested group')}."
    if not content.labels:
        return table + "."
    name, values = content.labels[0]
    if values.dtype.kind == "O":
        groups = len({value for value in values.tolist() if value is not None})
        return f"{table}; points are coloured by {shown(name)} ({count(groups, 'group')})."
    return f"{table}; points are coloured by {shown(name)}."


def _map(content: PageContent) -> str:
    """Describe what can be read from the map."""
    if content.Y is None:
        shares = np.nan_to_num(content.pca.explained_variance_ratio_[:2])
        if content.d == 1 or not shares.any():
            return ""
        return (
            f"The map shows the first {'two components' if len(shares) == 2 else 'component'}, "
            f"which {hold(len(shares))} {percent(float(shares.sum()))} of the variance."
        )
    if content.trust is None:
        return "The map was not scored: the run was interrupted."
    kept, chance, far = float(content.trust.mean()), content.chance, content.far
    said = f"{keeps(content, kept)}, where chance would keep {percent(chance)}"
    if (kept - chance) / (1 - chance) < WEAK:
        said += ", which is little: look at it with care"
    if far is None:
        return said + "."
    rho = f"rank correlation {far:.2f}"
    if far >= FAR_IN_ORDER:
        return f"{said}. It keeps most of the order of distances ({rho})."
    if far >= FAR_IN_PART:
        return f"{said}. It keeps the order of distances only in part ({rho})."
    return f"{said}. It does not keep far distances ({rho}): do not read them."


def keeps(content: PageContent, kept: float) -> str:
    """Beginning of a sentence: the share of each row's neighbours that the map preserves."""
    if content.trusted == 1:
        return f"The map keeps the nearest row of {percent(kept)} of the rows"
    return f"The map keeps {percent(kept)} of each row's {content.trusted} nearest rows"


def _pca(content: PageContent) -> str:
    if content.of_components:
        return (
            "The map was made from principal components that were computed before. What they hold "
            "of the variance of the data is not known from them."
        )
    shares = known_shares(content.pca)
    if not shares.any():
        return "All columns are constant: the rows do not differ."
    needed = components_needed(shares, 0.95)
    kept = int(content.pca.n_components_)
    k = kept if needed is None else needed
    held = percent(float(shares[:k].sum())) if needed is None else "95\u00a0%"
    k = min(k, content.directions)
    known = f"{k:,} of {count(content.directions, 'component')} {hold(k)} {held}"
    rows = int(content.pca.n_samples_)
    if content.d == 1:
        return "There is one column, so there is one component."
    if k == content.d:
        return f"{known} of the variance: no column repeats what others say."
    if content.directions < content.d:
        many = count(content.directions, "direction")
        return (
            f"{known} of the variance; {rows:,} rows differ along {many} at most, whatever their "
            "columns hold."
        )
    few = "a single one" if k == 1 else f"{k:,} unrelated ones"
    return (
        f"{known} of the variance: the {content.d:,} columns tell these {rows:,} rows apart about "
        f"as well as {few} would."
    )


def _facts(content: PageContent) -> list[tuple[str, str]]:
    part = f"{content.n:,} of " if content.n < content.total else ""
    facts = [("rows", f"{part}{content.total:,}; {_numbering(content)}")]
    if content.roles:
        facts += [(name, shown(text, 400)) for name, text in content.roles]
    else:
        facts.append(("features", _in_use(content)))
    if content.pixels is not None:
        facts.append(("pictures", f"the columns are read as {content.pixels} (--pixels)"))
    facts += [(name, shown(text, 300)) for name, text in content.preparation]
    if content.notes:
        listed = "; ".join(shown(text, 300).rstrip(".") for text in content.notes)
        facts.append(("notes", f"{listed}."))
    if content.of_components:
        facts.append(("PCA", f"{content.d:,} components, computed before"))
    else:
        facts.append(("PCA", _pca_settings(content.pca)))
    if content.tsne is not None:
        facts.append(("t-SNE", _tsne_settings(content.tsne)))
    elif content.Y is not None:
        metric = "" if " distance" in content.space else " by euclidean distance"
        facts.append(("map", f"given; judged in {content.space}{metric}"))
    if content.seconds:
        total = sum(content.seconds.values())
        stages = [f"{STAGES.get(name, name)} {s:.1f}" for name, s in content.seconds.items()]
        facts.append(("time", f"{total:.1f} s ({', '.join(stages)})"))
    return facts


def _numbering(content: PageContent) -> str:
    """How rows are numbered on the page."""
    dropped = any(name == "missing" and " dropped" in said for name, said in content.preparation)
    counted = ", dropped rows included" if dropped else ""
    return f"row numbers count from 0 in the order of the table{counted}"


def _in_use(content: PageContent) -> str:
    return content.numbered or f"{content.d:,} ({names(content.names, 4)})"


def _pca_settings(pca: Any) -> str:
    asked = pca.n_components
    how = {
        type(None): "all components",
        float: f"as many as hold {percent(float(asked or 0)) if isinstance(asked, float) else ''}",
        str: f"as many as the rule {asked} keeps",
    }.get(type(asked), "")
    kept = count(int(pca.n_components_), "component") + f" kept{f' ({how})' if how else ''}"
    scaled = ", columns standardised" if pca.standardize else ""
    return f"{kept}{scaled}; {_exactness(pca.certificate_)}"


def _exactness(certificate: Any) -> str:
    if not certificate.converged:
        return f"not converged to {certificate.tol:.0e} of the first variance"
    error = float(certificate.residuals.max(initial=0.0) + certificate.formation_error)
    return (
        "exact to rounding" if error < ROUNDING else f"exact to {error:.0e} of the first variance"
    )


def _tsne_settings(tsne: Any) -> str:
    c = tsne.certificate_
    reduced = f"; {c.reduced}" if c.reduced else ""
    ended = f" ({why})" if (why := stopped(c.stop_reason)) else ""
    metric = f"{tsne.metric} distance, " if tsne.metric in NAMED_METRICS else ""
    return (
        f"{metric}perplexity {perplexity(tsne)}, {c.n_iter} iterations{ended}, "
        f"KL {c.kl_in_words()}, error of the forces {percent(float(c.force_error))}{reduced}"
    )


def perplexity(tsne: Any) -> str:
    """Perplexity; several, if the map has several scales."""
    values = np.atleast_1d(np.asarray(tsne.perplexity, dtype=float))
    return " and ".join(f"{value:.3g}" for value in values)
