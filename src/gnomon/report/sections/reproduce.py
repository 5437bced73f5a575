"""Reproduce: the command, the Python lines, versions, and a paragraph for a paper."""

import numpy as np

from gnomon.charts.words import count, hold, percent
from gnomon.report.content import NAMED_METRICS, PageContent
from gnomon.report.section import Bullets, Code, Facts, Section, Words, shown
from gnomon.report.sections.overview import keeps, perplexity

__all__ = ["REFERENCES", "reproduce"]

# The same text as in docs/references.md; a test compares them.
REFERENCES = {
    "Benjamini & Hochberg 1995": (
        "Yoav Benjamini, Yosef Hochberg, “Controlling the false discovery rate: a practical and "
        "powerful approach to multiple testing”, Journal of the Royal Statistical Society, Series "
        "B 57(1), 289–300."
    ),
    "Gower 1975": "J. C. Gower, “Generalized Procrustes analysis”, Psychometrika 40(1), 33–51.",
    "Hotelling 1933": (
        "Harold Hotelling, “Analysis of a complex of statistical variables into principal "
        "components”, Journal of Educational Psychology 24, 417–441 and 498–520."
    ),
    "Kobak & Berens 2019": (
        "Dmitry Kobak, Philipp Berens, “The art of using t-SNE for single-cell transcriptomics”, "
        "Nature Communications 10, 5416."
    ),
    "Linderman et al. 2019": (
        "George C. Linderman, Manas Rachh, Jeremy G. Hoskins, Stefan Steinerberger, Yuval Kluger, "
        "“Fast interpolation-based t-SNE for improved visualization of single-cell RNA-seq data”, "
        "Nature Methods 16, 243–245."
    ),
    "van der Maaten & Hinton 2008": (
        "Laurens van der Maaten, Geoffrey Hinton, “Visualizing data using t-SNE”, Journal of "
        "Machine Learning Research 9, 2579–2605."
    ),
    "Venna & Kaski 2001": (
        "Jarkko Venna, Samuel Kaski, “Neighborhood preservation in nonlinear projection methods: "
        "an experimental study”, International Conference on Artificial Neural Networks, Lecture "
        "Notes in Computer Science 2130, 485–491."
    ),
}
HELP = (
    "The same command on the same data and the same versions gives the same map to the last bit, "
    "on any number of threads. The paragraph may be copied into a paper.",
)


def reproduce(content: PageContent) -> Section:
    """Build the last section."""
    blocks: list[Code | Facts | Words | Bullets] = []
    if content.command:
        blocks.append(Code("Command", shown(content.command, 1000)))
    blocks.append(Code("Python", content.python or _python(content)))
    blocks.append(Words(_methods(content)))
    cited = [key for key in REFERENCES if key in _methods(content)]
    blocks.append(Bullets("References", tuple(f"[{key}] {REFERENCES[key]}" for key in cited)))
    blocks.append(Facts(tuple(content.versions.items())))
    what = "command" if content.command else "lines"
    lead = f"Run the {what} below to get the same numbers again."
    return Section("reproduce", "Reproduce", (lead,), tuple(blocks), HELP)


def _python(content: PageContent) -> str:
    tsne = content.tsne
    used = "PCA, TSNE, report" if tsne is not None else "PCA, report"
    lines = [
        f"from gnomon import {used}",
        "",
        f"# X: the {content.total:,} × {content.d:,} numbers of {_source(content)}",
        *(f"# {shown(text, 300)}" for name, text in content.preparation if name == "missing"),
    ]
    if content.labels:
        lines.append("# labels: the labels that were given")
    if content.X is not content.prepared:
        lines.append("X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)")
    lines.append(f"pca = {_call(content.pca)}.fit(X)")
    if tsne is not None:
        on_scores = tsne.n_features_in_ != content.d and (
            tsne.n_features_in_ == content.pca.n_components_
        )
        lines.append(f"tsne = {_call(tsne)}.fit({'pca.transform(X)' if on_scores else 'X'})")
    if content.made_elsewhere:
        lines.append("# Y: the given map of the same rows")
    given = ["pca=pca"]
    given += ["tsne=tsne"] * (tsne is not None) + ["map=Y"] * content.made_elsewhere
    given += ["labels=labels"] * bool(content.labels)
    if content.stability is not None:
        given.append(f"stability={len(content.stability.runs)}")
    lines.append(f'report(X, {", ".join(given)}).save("report.html")')
    return "\n".join(lines)


def _source(content: PageContent) -> str:
    return "the table" if content.source == "data" else shown(content.source)


def _call(estimator: object) -> str:
    """Constructor call with the parameters that are not defaults, on one line."""
    return " ".join(repr(estimator).split())


def _methods(content: PageContent) -> str:
    pca, version = content.pca, content.versions.get("gnomon", "")
    n, d = count(int(pca.n_samples_), "row"), count(content.d, "column")
    shares, kept = np.nan_to_num(pca.explained_variance_ratio_), int(pca.n_components_)
    scaled = any(name == "scale" and text.startswith("standard") for name, text in _scale(content))
    # Without the names of rows that were dropped.
    gaps = [text.split(": ")[0] for name, text in content.preparation if name == "missing"]
    said = [f"{shown(text, 300)}." for text in gaps]
    used = "divided by their standard deviations" if scaled else "used as they are"
    pcs = (
        f"The {content.d:,} principal components [Hotelling 1933] of {n}{_origin(content)} were "
        f"computed before and {used}; what follows was computed with Gnomon {version}."
    )
    said += [
        pcs
        if content.of_components
        else f"The table of {n} and {d}{_origin(content)} was centred"
        + (" and its columns were divided by their standard deviations" if scaled else "")
        + f". Principal components [Hotelling 1933] were computed with Gnomon {version} "
        f"(solver “{pca.solver_}”); {pca.n_components_} {'was' if kept == 1 else 'were'} kept, "
        f"which {hold(kept)} {percent(float(shares.sum()))} of the variance."
    ]
    tsne = content.tsne
    if tsne is not None:
        c = tsne.certificate_
        mesh = (
            ", its repulsion computed on a mesh by Fourier transforms [Linderman et al. 2019]"
            if "mesh" in c.repulsion
            else ""
        )
        start = (
            ", started from the first principal components [Kobak & Berens 2019]"
            if isinstance(tsne.init, str) and tsne.init == "pca" and tsne.align_to is None
            else ""
        )
        named = tsne.pca_ is not None or tsne.metric in NAMED_METRICS
        reduced = f" of {content.space}" if named else ""
        said.append(
            f"A map in {count(int(tsne.n_components), 'dimension')} was made{reduced} by t-SNE "
            f"[van der Maaten & Hinton 2008] with perplexity {perplexity(tsne)}{start}{mesh}, in "
            f"{c.n_iter} iterations (KL divergence {c.kl_in_words()}{_seed(tsne)})."
        )
    if content.made_elsewhere and content.Y is not None:
        said.append(
            f"A given map in {count(content.Y.shape[1], 'dimension')} was judged "
            f"in {content.space}."
        )
    if content.quality is not None and content.trust is not None:
        said.append(
            f"{keeps(content, float(content.trust.mean()))} (by chance {percent(content.chance)}) "
            "[Kobak & Berens 2019]; trustworthiness and continuity [Venna & Kaski 2001] are "
            f"{_at_fifteen(content)}."
        )
    if content.audit is not None:
        said.append(
            f"Rows were tested by their trustworthiness for {content.audit.n_neighbors} "
            "neighbours against random placements on the map, at a false discovery rate of "
            "5\u00a0% [Benjamini & Hochberg 1995]; "
            f"{content.audit.say_share(content.audit.placed)} are placed better than at random. "
            "Rows that at least half of the places would suit as well are misplaced: "
            f"{content.audit.say_share(content.audit.misplaced)}."
        )
    if content.stability is not None:
        vary = content.stability.vary
        again = "from other starts" if vary == "start" else "without a part of the rows"
        said.append(
            f"{len(content.stability.runs)} maps made again {again} were aligned by generalised "
            f"Procrustes analysis [Gower 1975]. {content.stability.verdict()} "
            f"{percent(content.stability.score)} of the points stay among their neighbours."
        )
    return " ".join(said)


def _origin(content: PageContent) -> str:
    """Name of the table."""
    return "" if content.source == "data" else f" ({shown(content.source)})"


def _seed(tsne: object) -> str:
    """Seed of the map; a generator has none that could be given again."""
    seed = getattr(tsne, "random_state", None)
    return f"; seed {0 if seed is None else seed}" if isinstance(seed, (int, type(None))) else ""


def _scale(content: PageContent) -> tuple[tuple[str, str], ...]:
    own = (("scale", "standard"),) if content.pca.standardize else ()
    return (*own, *content.preparation)


def _at_fifteen(content: PageContent) -> str:
    quality = content.quality
    assert quality is not None
    at = int(np.argmin(np.abs(np.array(quality.n_neighbors) - 15)))
    scores = quality.trustworthiness.mean[at], quality.continuity.mean[at]
    size = count(quality.n_neighbors[at], "neighbour")
    return f"{scores[0]:.3f} and {scores[1]:.3f} for {size}"
