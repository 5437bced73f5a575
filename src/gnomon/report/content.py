"""All contents of a page, gathered once: the sections only read them."""

import importlib.metadata
import platform
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.data.names import are_components, stem_of
from gnomon.data.spread import measure_spread
from gnomon.errors import DataWarning
from gnomon.neighbors.search import find_neighbors
from gnomon.numeric.apply import plain_transform
from gnomon.pca import PCA
from gnomon.procrustes import Procrustes
from gnomon.procrustes.stability import Stability
from gnomon.report import clusters
from gnomon.report.encode import map_bits, morton_codes
from gnomon.report.pictures import OrderedPictures, RowPictures
from gnomon.report.pixels import Pixels
from gnomon.scores import Audit, MapScores, score_map
from gnomon.scores.few_rows import FEW_ROWS, trusted
from gnomon.scores.neighbor_labels import NeighborLabels, find_neighbor_labels
from gnomon.scores.neighbors_kept import nearest_on_map, share_kept
from gnomon.scores.table_pair import METRICS
from gnomon.tsne import TSNE
from gnomon.typing import Array

__all__ = [
    "MANY_ROWS",
    "NEIGHBORS",
    "SUGGESTED",
    "NamedPCA",
    "PageContent",
    "gather",
    "in_map_order",
    "lay_scores",
    "versions",
]

SUGGESTED = "suggested groups"
# Beyond this, rows of a page are in map order: 100,000 rows then take 0.8 of the bytes
# (benchmarks/page.py).
MANY_ROWS = 50_000
NAMED_METRICS = ("cosine", "correlation", "hellinger")  # that are named where rows are compared
NEIGHBORS = 5  # neighbours of each row that the page names
# Sizes of neighbourhoods for the scores of the map, if there are enough rows.
SIZES = (5, 10, 15, 25, 50, 100, 200)
# Wider tables are compared in this many leading scores, as in `TSNE`.
WIDE, LEADING = 100, 50
# Beyond this, neighbours are searched only if a map of all rows has searched them before.
MOST_SEARCHED = 200_000
# From this many columns with one stem and numbers (`embedding[57]`), names have no meaning.
NUMBERED = 50
DENSITY_ROWS = 65_536  # rows per block of distances
# Pairs whose distances are drawn; with fewer than the least there is no chart.
PAIRS, LEAST_PAIRS = 20_000, 100


@dataclass(frozen=True, eq=False)
class PageContent:
    """Contents of a page.

    Attributes
    ----------
    title, source : str
        Title of the page; and the file's name, or "data".
    names : tuple of str, length d
        Names of the columns in use.
    X : array (n, d) or None
        The numbers in their own units, without gaps; None if a page is rebuilt without the
        data.
    prepared : array (n, d) or None
        Input of the PCA: `X` itself, or `X` with its columns standardised.
    ids : pair of str and array (n,) of str, or None
        Names of the rows.
    row_numbers : array (n,) or None
        Numbers of the rows in the table, where they stand in the order of the map instead.
    given_rows : array (n,) or None
        Which row of the caller's table each row is; None where all are there in their order.
    labels : tuple of pairs of str and array (n,)
        Columns to colour by: text (object; None if missing) or numbers (float64; NaN).
    pca : PCA
    scores : array (n, k)
        Scores of the rows; without the data only as many as were stored.
    tsne : TSNE or None
    Y : array (n, 1), (n, 2) or (n, 3), or None
        Positions on the map.
    pca_map : array (n, 2)
        The first two scores; if there is a map, aligned to it by Procrustes with the same size.
    trust : array (n,) or None
        Share of each row's 15 nearest neighbours that are among its 15 nearest on the map; of half
        of the other rows if there are fewer than 31.
    neighbors : array (n, m), int32
        The 5 nearest rows in the data, nearest first; fewer if there are not as many rows, none
        if there are very many and no map of all of them.
    space : str
        Space in which neighbours were searched, in words.
    total : int
        Number of rows of the table, of which the page may show a part.
    quality : MapScores or None
    neighbor_labels : NeighborLabels or None
        Labels of each row's nearest rows, if the first of `labels` groups the rows.
    pairs : pair of arrays (m,), or None
        Distances of pairs of rows drawn at random, in the data and on the map.
    stability : Stability or None
    audit : Audit or None
        Tests of the rows' positions against chance.
    tested : tuple of pairs of str and array (n,)
        Results of `audit` for each row, to colour by.
    density : array (n,) or None
        Share of the rows whose fifth neighbour in the data is farther away than a row's own.
    suggested : array (n,) of str, or None
        Groups that were found if no label groups the rows; None for rows in no group.
    pixels : Pixels or None
        How the columns are pixels of a picture.
    pictures : RowPictures or None
    texts, links : pair of str and array (n,) of str, or None
        Texts of the rows, and their links.
    replay : tuple of pairs of int and array (n, 2)
        Iterations, and the positions of the rows at each.
    preparation : tuple of pairs of str
        Preparation of the table: name and sentence of each step.
    roles : tuple of pairs of str
        Roles of the file's columns: role and words, from `ColumnRoles.lines`.
    notes, warnings : tuple of str
    seconds : dict
        Time of each stage.
    versions : dict
    command : str or None
        Command for the same page.
    python : str or None
        Lines of Python for the same page.
    made : str
        Date of the page.
    """

    title: str
    source: str
    names: tuple[str, ...]
    X: NDArray[Any] | None
    prepared: NDArray[Any] | None
    ids: tuple[str, NDArray[np.object_]] | None
    labels: tuple[tuple[str, NDArray[Any]], ...]
    pca: PCA
    scores: NDArray[Any]
    tsne: TSNE | None
    Y: NDArray[Any] | None
    pca_map: NDArray[np.float64]
    trust: NDArray[np.float64] | None
    neighbors: NDArray[np.int32]
    space: str
    total: int
    row_numbers: NDArray[np.intp] | None = None
    given_rows: NDArray[np.int64] | None = None
    quality: MapScores | None = None
    neighbor_labels: NeighborLabels | None = None
    pairs: tuple[Array, Array] | None = None
    stability: Stability | None = None
    audit: Audit | None = None
    tested: tuple[tuple[str, NDArray[Any]], ...] = ()
    density: NDArray[np.float64] | None = None
    suggested: NDArray[np.object_] | None = None
    pixels: Pixels | None = None
    pictures: RowPictures | None = None
    texts: tuple[str, NDArray[np.object_]] | None = None
    links: tuple[str, NDArray[np.object_]] | None = None
    replay: tuple[tuple[int, NDArray[Any]], ...] = ()
    preparation: tuple[tuple[str, str], ...] = ()
    roles: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    command: str | None = None
    python: str | None = None
    made: str = ""

    @cached_property
    def named(self) -> Any:
        """The PCA as charts ask for it, under the names of the page's columns."""
        return NamedPCA(self.pca, np.array(self.names, dtype=object))

    @cached_property
    def spread(self) -> Array | None:
        """Standard deviations (d,) of the input of the PCA; None without the data."""
        return None if self.prepared is None else measure_spread(self.prepared).std

    @cached_property
    def numbered(self) -> str | None:
        """Description of the columns if their names are one stem and numbers without meaning."""
        if self.pixels is not None:
            return str(self.pixels)
        stems = {stem_of(name) for name in self.names}
        if len(stems) != 1 or stems & {None, "#"} or self.d < NUMBERED:
            return None  # a number alone is a wavelength, or a year
        last = [re.findall(r"\d+", name)[-1] for name in self.names]
        if [int(number) for number in last] != list(range(int(last[0]), int(last[0]) + self.d)):
            return None  # with gaps they are keys, such as those of genes
        if stems & {"column #", "x#"}:
            return f"{self.d:,} columns without names"
        return f"the {self.d:,} columns {self.names[0]} … {self.names[-1]}"

    @property
    def numbers(self) -> NDArray[Any] | None:
        """Number of each row in the table that was given; None if they count on from 0."""
        return self.row_numbers if self.given_rows is None else self.given_rows

    @property
    def groups(self) -> tuple[str, NDArray[Any]] | None:
        """Colour of points in charts: the label, or suggested groups."""
        if self.labels:
            return self.labels[0]
        return None if self.suggested is None else (SUGGESTED, self.suggested)

    @property
    def size(self) -> str:
        """Rows and columns of the whole table, in words."""
        return f"{self.total:,} rows × {self.d:,} columns"

    @property
    def about(self) -> str:
        """Subject of the page, in words."""
        return f"{self.d:,} columns"

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.scores)

    @cached_property
    def of_components(self) -> bool:
        """Whether the map is of principal components: a PCA of these says nothing of the data."""
        return self.Y is not None and are_components(self.names)

    @property
    def made_elsewhere(self) -> bool:
        """Whether the map was computed by another program."""
        return self.Y is not None and self.tsne is None

    @property
    def map_name(self) -> str:
        """Name of the map, as opposed to that of the PCA."""
        return "Map" if self.made_elsewhere else "t-SNE"

    @property
    def mapped(self) -> int:
        """Rows that the map was computed from: all, unless others were placed on it."""
        return self.n if self.tsne is None else len(self.tsne.embedding_)

    @property
    def trusted(self) -> int:
        """Number of neighbours of `trust`."""
        return trusted(self.mapped)

    @property
    def chance(self) -> float:
        """Share of neighbours that a random map would preserve."""
        return min(1.0, self.trusted / max(1, self.mapped - 1))

    @property
    def far(self) -> float | None:
        """Rank correlation of distances; None if it is unknown, or rows are few."""
        if self.quality is None or self.mapped < FEW_ROWS:
            return None
        value = float(self.quality.distances.value)
        return value if np.isfinite(value) else None

    @property
    def directions(self) -> int:
        """Number of directions along which the rows of the PCA can differ."""
        return min(int(self.pca.n_samples_) - 1, self.d)

    @property
    def d(self) -> int:
        """Number of columns in use."""
        return len(self.names)


def gather(
    prepared: NDArray[Any] | None,
    *,
    pca: PCA,
    names: Sequence[str],
    X: NDArray[Any] | None = None,
    scores: NDArray[Any] | None = None,
    tsne: TSNE | None = None,
    Y: NDArray[Any] | None = None,
    title: str = "",
    source: str = "data",
    ids: tuple[str, NDArray[Any]] | None = None,
    labels: Sequence[tuple[str, NDArray[Any]]] = (),
    trust: NDArray[np.float64] | None = None,
    neighbors: NDArray[np.int32] | None = None,
    quality: MapScores | None = None,
    neighbor_labels: NeighborLabels | None = None,
    space: tuple[NDArray[Any], str] | None = None,
    metric: str = "euclidean",
    total: int | None = None,
    score: bool = True,
    n_jobs: int | None = None,
    **said: Any,
) -> PageContent:
    """Gather what is known, and compute the rest.

    Parameters
    ----------
    prepared : array (n, d) or None
        Input of `pca`, and of `tsne` unless that was fitted to its scores. None if a page is
        rebuilt without the data; then `scores` must be given.
    X : array (n, d), optional
        The same rows in the units of the file; by default `prepared`.
    Y : array (n, 1 to 3), optional
        Positions of all rows, if the map was computed from some and the others were placed on it.
    scores, trust, neighbors, quality : optional
        Computed if they are not given; trust and quality only if `score`.
    space : pair of array (n, m) and str, optional
        The table in which rows are neighbours by `metric`, and its name; by default the input of
        the map, with the map's own metric.
    total : int, optional
        Rows of the whole table, if these are some of them.
    said : optional
        The other attributes of `PageContent`.
    """
    if scores is None:
        assert prepared is not None
        scores = pca._model().scores(prepared, whiten=pca.whiten, n_jobs=pca.n_jobs)
    if Y is None and tsne is not None:
        Y = tsne.embedding_
    n = len(scores)
    metric = _metric(tsne) if space is None else metric
    Z, words = _space(prepared, scores, pca, tsne) if space is None else space
    of_trust = 0 if Y is None else trusted(n if tsne is None else min(n, len(tsne.embedding_)))
    near = neighbors
    if near is None:
        wanted = min(NEIGHBORS if trust is not None else max(NEIGHBORS, of_trust), n - 1)
        mapped = Y is not None and (tsne is None or len(tsne.embedding_) == n)
        wanted = 0 if n > MOST_SEARCHED and not mapped else wanted
        ungrouped = _groups(labels) is None and clusters.LEAST_ROWS <= n <= clusters.MOST_ROWS
        wanted = max(wanted, min(clusters.NEIGHBORS, n - 1)) if ungrouped else wanted
        if neighbor_labels is None and mapped and _grouped(labels):
            wanted = max(wanted, of_trust)
        own = space is not None or _is_of_map(prepared, scores, pca, tsne)
        near = _nearest(Z, wanted, tsne, own, metric, n_jobs)
    if Y is not None and score:
        wide = 0 < of_trust <= near.shape[1]
        compared = neighbor_labels is None and wide and _grouped(labels)
        if trust is None or compared:
            nearest = near[:, :of_trust]
            there = nearest_on_map(Y, nearest.shape[1], n_jobs=n_jobs)
            trust = share_kept(nearest, there) if trust is None else trust
            if compared:
                neighbor_labels = find_neighbor_labels(labels[0][1], nearest, there)
        if quality is None and metric in METRICS:
            groups = _groups(labels)
            quality = score_map(Z, Y, groups, n_neighbors=sizes(n), metric=metric, n_jobs=n_jobs)
    content = PageContent(
        title=title or source,
        source=source,
        names=tuple(names),
        X=prepared if X is None else X,
        prepared=prepared,
        ids=ids,
        labels=tuple(labels),
        pca=pca,
        scores=scores,
        tsne=tsne,
        Y=Y,
        pca_map=lay_scores(scores, Y),
        trust=trust,
        neighbors=np.ascontiguousarray(near[:, :NEIGHBORS], dtype=np.int32),
        space=words if metric not in NAMED_METRICS else f"{words} by {metric} distance",
        total=n if total is None else total,
        quality=quality,
        neighbor_labels=neighbor_labels if _grouped(labels) else None,
        pairs=None if Y is None or not score else draw_pairs(Z, Y),
        density=_density(Z, near) if metric == "euclidean" else None,
        versions=said.pop("versions", None) or versions(),
        **said,
    )
    if _groups(labels) is not None:
        return content
    return replace(content, suggested=_suggested(content, near[:, : clusters.NEIGHBORS]))


def _suggested(content: PageContent, near: NDArray[np.int32]) -> NDArray[np.object_] | None:
    """Groups of the rows, named by what distinguishes them; None if none are found."""
    groups = clusters.suggest_groups(near)
    if groups is None:
        return None
    X = None if content.numbered else content.X
    texts = None if content.texts is None else content.texts[1].tolist()
    words = texts
    if words is None and content.ids is not None:
        words = content.ids[1].tolist()
    return clusters.describe_groups(groups, X, content.names, texts, words=words, near=near)


def _density(Z: NDArray[Any], near: NDArray[np.int32]) -> NDArray[np.float64] | None:
    """Share of rows whose fifth neighbour is farther away than each row's own."""
    n, last = len(Z), min(NEIGHBORS, near.shape[1]) - 1
    if last < 0 or n < 2 * NEIGHBORS:
        return None
    away = np.empty(n)
    for start in range(0, n, DENSITY_ROWS):
        rows = slice(start, start + DENSITY_ROWS)
        gaps = np.asarray(Z[rows], np.float64) - Z[near[rows, last]]
        away[rows] = np.linalg.norm(gaps, axis=1)
    _, place, counts = np.unique(away, return_inverse=True, return_counts=True)
    farther = n - np.cumsum(counts)
    shares: NDArray[np.float64] = farther[place] / (n - 1)
    return shares


def in_map_order(content: PageContent) -> PageContent:
    """Order the rows along a Morton curve over the map; they keep their numbers."""
    positions = np.asarray(content.pca_map if content.Y is None else content.Y[:, :2], np.float64)
    order = np.argsort(morton_codes(positions, map_bits(content.n))[0], kind="stable")
    place = np.empty(content.n, np.int32)
    place[order] = np.arange(content.n, dtype=np.int32)

    def taken(values: Any) -> Any:
        return None if values is None else values[order]

    def pair(values: tuple[str, Any] | None) -> Any:
        return None if values is None else (values[0], values[1][order])

    return replace(
        content,
        **{
            name: taken(getattr(content, name))
            for name in (
                "X",
                "prepared",
                "scores",
                "Y",
                "pca_map",
                "trust",
                "density",
                "suggested",
                "given_rows",
            )
        },
        neighbors=place[content.neighbors[order]],
        neighbor_labels=(
            None if content.neighbor_labels is None else content.neighbor_labels.take(order)
        ),
        ids=pair(content.ids),
        row_numbers=order,
        labels=tuple((name, values[order]) for name, values in content.labels),
        tested=tuple((name, values[order]) for name, values in content.tested),
        pictures=None if content.pictures is None else OrderedPictures(content.pictures, order),
        texts=pair(content.texts),
        links=pair(content.links),
        replay=tuple((i, places[order]) for i, places in content.replay),
    )


def sizes(n: int) -> list[int]:
    """Sizes of neighbourhoods that a map of `n` rows is scored for."""
    return [size for size in SIZES if 2 * size < n] or [1]


def lay_scores(scores: NDArray[Any], Y: NDArray[Any] | None) -> NDArray[np.float64]:
    """Rotate, reflect and scale the first two scores (n, 2) onto the map `Y`, if there is one.

    So when a reader switches from one to the other, points move, not the whole picture.
    """
    n = len(scores)
    flat = np.zeros((n, 2))
    flat[:, : min(2, scores.shape[1])] = scores[:, :2]
    if Y is None or n < 2:
        return flat
    onto = np.zeros((n, 2))
    onto[:, : min(2, Y.shape[1])] = Y[:, :2]
    if not (np.ptp(flat, axis=0).any() and np.ptp(onto, axis=0).any()):
        return flat
    with warnings.catch_warnings():  # about few rows: the quality of the fit is not used
        warnings.simplefilter("ignore", DataWarning)
        return np.asarray(Procrustes(scaling="norm-ratio").fit(flat, onto).transform(flat))


def draw_pairs(space: Array, Y: Array) -> tuple[Array, Array] | None:
    """Distances of some pairs of rows in the data and on the map; None if there are too few."""
    n = len(space)
    if n * (n - 1) // 2 < LEAST_PAIRS:
        return None
    if n * (n - 1) // 2 <= PAIRS:
        i, j = np.triu_indices(n, 1)
    else:
        rng = np.random.default_rng(0)
        i, j = rng.integers(n, size=PAIRS), rng.integers(n - 1, size=PAIRS)
        j = j + (j >= i)  # skip i, so that every other row is equally likely
    return _distances(space, i, j), _distances(Y, i, j)


def _distances(Z: Array, i: NDArray[Any], j: NDArray[Any]) -> Array:
    distances: Array = np.linalg.norm(Z[i].astype(np.float64) - Z[j], axis=1)
    return distances


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that a result depends on."""
    packages = ("gnomon", "numpy", "scipy", "scikit-learn", "numba")
    found = {name: importlib.metadata.version(name) for name in packages}
    return {"python": platform.python_version(), **found}


@dataclass(frozen=True)
class NamedPCA:
    """A fitted PCA whose columns have other names, or names at all."""

    pca: PCA
    feature_names_in_: NDArray[Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pca, name)


def _space(
    prepared: NDArray[Any] | None, scores: NDArray[Any], pca: PCA, tsne: TSNE | None
) -> tuple[NDArray[Any], str]:
    """Table in which rows are neighbours, the input of the map; and its name."""
    d = pca.n_features_in_
    if prepared is not None and tsne is not None and tsne.n_features_in_ == d:
        if tsne.pca_ is not None:
            return plain_transform(tsne.pca_, prepared), _components(tsne.pca_.n_components_)
        return prepared, _columns(d)
    if tsne is not None and tsne.n_features_in_ == scores.shape[1]:
        return scores, _components(scores.shape[1])
    if prepared is not None and d <= WIDE:
        return prepared, _columns(d)
    k = min(LEADING, scores.shape[1])
    return np.ascontiguousarray(scores[:, :k]), _components(k)


def _columns(d: int) -> str:
    return "the one column" if d == 1 else f"all {d:,} columns"


def _components(k: int) -> str:
    return "the first component" if k == 1 else f"the first {k} components"


def _metric(tsne: TSNE | None) -> Any:
    """Metric of the map, except for precomputed distances, which are not in the table."""
    return "euclidean" if tsne is None or tsne.metric == "precomputed" else tsne.metric


def _is_of_map(
    prepared: NDArray[Any] | None, scores: NDArray[Any], pca: PCA, tsne: TSNE | None
) -> bool:
    """Whether `_space` is the input of the map."""
    known = [scores.shape[1]] if prepared is None else [pca.n_features_in_, scores.shape[1]]
    return tsne is not None and tsne.n_features_in_ in known


def _nearest(
    Z: NDArray[Any], k: int, tsne: TSNE | None, own: bool, metric: Any, n_jobs: int | None
) -> NDArray[np.int32]:
    """Find the `k` nearest rows of each row of `Z`; `own` says that `Z` is the map's input."""
    if k < 1:
        return np.empty((len(Z), 0), np.int32)
    search = None if tsne is None or not own else tsne._search
    if search is not None and len(search.Z) == len(Z):
        return search.nearest(k, n_jobs)  # cached by the map
    params = None if tsne is None or tsne.metric != metric else tsne.metric_params
    return find_neighbors(Z, k, metric=metric, metric_params=params, n_jobs=n_jobs).indices


def _grouped(labels: Sequence[tuple[str, NDArray[Any]]]) -> bool:
    """Whether the first column to colour by holds names of groups."""
    return bool(labels) and labels[0][1].dtype.kind == "O"


def _groups(labels: Sequence[tuple[str, NDArray[Any]]]) -> NDArray[Any] | None:
    """First column of groups, for the scores of classes."""
    return next((values for _, values in labels if values.dtype.kind == "O"), None)
