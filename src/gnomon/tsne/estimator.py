"""The TSNE estimator: from a table to a map, and what a finished map can do."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _clone_parametrized,
)
from sklearn.utils.validation import check_is_fitted

from gnomon.blas import one_blas_thread
from gnomon.engine import Source, as_engine
from gnomon.engine.arrays import as_source
from gnomon.errors import DataTypeError, TooLargeError, UnavailableError, refuse
from gnomon.inputs import (
    Table,
    check_integer,
    check_table,
    is_sparse,
    random_generator,
    refuse_bad_values,
)
from gnomon.memory import available_bytes, readable_bytes
from gnomon.models.classes import Saved
from gnomon.models.estimators import estimator_state, new_estimator
from gnomon.neighbors import Neighbors, NeighborSearch
from gnomon.pca import PCA
from gnomon.pca.blocks import check_rows
from gnomon.progress import CallbackSupportMixin, Steps, with_callbacks
from gnomon.tsne.affinities import joint
from gnomon.tsne.aligned import Shared, find_shared, lay_over, row_keys, start_from
from gnomon.tsne.blocks import place_blocks
from gnomon.tsne.certificate import MapCertificate, check_field
from gnomon.tsne.checks import check_copies, check_parameters, fingerprint
from gnomon.tsne.convolve import kernel_width
from gnomon.tsne.descent import Descent, Forces, Report, State, Stop, begin
from gnomon.tsne.forces import AllPairs, OverMesh
from gnomon.tsne.graph import (
    Affinity,
    Reduction,
    given_affinities,
    given_neighbors,
    reduce,
    search_table,
)
from gnomon.tsne.novelty import Novelty, distance_ratios, learn_novelty
from gnomon.tsne.place import NEIGHBORS, FixedMap, Placement
from gnomon.tsne.schedule import COOLING_ITER, Schedule, make_schedule
from gnomon.tsne.start import given_start, pca_start, random_start
from gnomon.tsne.state import FIELDS, pack_parameters, unpack, unpack_parameters

Floats64 = NDArray[np.float64]

LEAST_ROWS = 3
AUTO_FORCE_TOL = 0.035
# The mesh's force error at a spacing of half the kernel's width, and the power of the spacing with
# which it falls (benchmarks/tsne.py, "force error"). Sharper kernels need a little less.
ERROR_AT_HALF = 0.035
ORDER = 3.7
SHARPNESS = 0.17  # (h / width) of equal error goes with this power of dof, where that is below 1

# Ways to end after which `warm_start` has nothing to add.
RULES = (Stop.CONVERGED, Stop.NO_PROGRESS, Stop.SMALL_GRADIENT)

log = logging.getLogger("gnomon")


class TSNE(
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Saved, BaseEstimator
):
    """Positions in 1, 2 or 3 dimensions whose neighbour probabilities match those of the data.

    Minimises KL(P‖Q) with q_ij = K(d_ij)/Z, d_ij = |y_i − y_j|², K(d) = (1 + d/α)^(−(α+1)/2)
    ([Selitskii 2025], eqs. (44)–(59); α is `dof`). Attraction runs over the edges of P; repulsion
    is the gradient of one field, by Fourier transforms on a mesh, or the sum over all pairs where
    there are few points. A drop-in for scikit-learn's TSNE that also places new
    points, can be continued, and measures its own accuracy (`certificate_`).

    Distances between far groups, and the size and density of groups, mean little in such a map.

    Parameters
    ----------
    n_components : {1, 2, 3}, default=2
    perplexity : float or list of floats, default=30.0
        Effective number of neighbours, from 1 to n − 1. A list goes with
        ``affinity="multiscale"``.
    affinity : {"gaussian", "uniform", "multiscale", "precomputed"}, default="gaussian"
        ``"uniform"`` gives 1/k to each of `n_neighbors` (15 by default): nearly the same maps from
        a sixth of the edges. ``"precomputed"``: `X` is an (n, n) matrix of affinities.
    n_neighbors : int, optional
        By default three times the perplexity.
    recall : float, default=0.95
        Share of true neighbours that the search must reach, measured; 1.0 is exact search.
    metric : str, default="euclidean"
        ``"cosine"`` is the angle (scikit-learn squares 1 − cos instead), ``"precomputed"`` an
        (n, n) matrix of distances or a sparse graph of them; others by scikit-learn.
    metric_params : dict, optional
    pca : "auto", int, fitted PCA or None, default="auto"
        ``"auto"`` first reduces more than 100 columns, or a sparse table, to 50 principal scores
        (euclidean only), and `certificate_` says so. A fitted PCA is used as it is: that of all
        rows, for a map of some of them. None is off.
    init : {"pca", "random"}, array (n, n_components) or fitted TSNE, default="pca"
        Arrays and maps are taken as they are.
    dof : float, default=1.0
        Degrees of freedom α of K, in every dimension. scikit-learn uses max(n_components − 1, 1).
        FIt-SNE and openTSNE write (1 + d/α′)^(−α′): their α′ is (α + 1)/2, with the map scaled
        by √(α/α′).
    early_exaggeration : float, default=12.0
        Factor of attraction in the first 30 iterations. From there it goes to `exaggeration`
        linearly, in 200 iterations below 1,500 rows, 100 below 20,000 and 50 from there on.
    exaggeration : float, default=1.0
        Factor of attraction after that. KL is what the descent minimises only where it is 1.
    learning_rate : float or "auto", default="auto"
        Largest number that a point's gradient (factor 4 included) is multiplied by. A point's own
        step follows from how strongly its neighbours hold it, and is mostly far smaller: a large
        learning rate does no harm, a small one makes the descent slow. ``"auto"`` is 2n over the
        exaggeration.
    quality : {"fast", "balanced", "best"}, default="balanced"
        When the descent ends: once 10 iterations lower KL by less than 5 %, 2 % or 0.2 %.
        ``"best"`` also takes twice as long from the first exaggeration to the last, ``"fast"`` half
        as long.
    max_iter : int, default=1000
        The most iterations, which few tables need. The last 20 let the map come to rest; a run too
        short for its exaggeration to end has none of those.
    n_iter_without_progress : int, default=300
        The descent ends after so many iterations without a lower KL.
    min_grad_norm : float, default=1e-7
    method : {"auto", "mesh", "exact"}, default="auto"
        ``"auto"`` takes the mesh, or the sum over all pairs while that costs less, both in float32;
        ``"mesh"`` always the mesh. ``"exact"`` is eq. (59) as it stands: all pairs, all neighbours,
        float64. scikit-learn's ``"barnes_hut"`` means ``"auto"`` here.
    angle : float, default=0.5
        For scikit-learn's sake; there is no tree whose angle it could be.
    force_tol : float or "auto", default="auto"
        Largest relative error of the mesh's force; 0.035 unless given. It decides the spacing. Of
        maps far smaller than 1, as at the beginning, float32 shows the force less exactly.
    align_to : fitted TSNE, optional
        A former map whose frame is kept: shared rows start from their former places, without early
        exaggeration, and the new map is laid over the old one. Rows are shared if their ids are
        equal (`fit(ids=…)`, or a dataframe's own index), else if all their numbers are. `init` has
        no effect then.
    warm_start : bool, default=False
        `fit` again on the same data goes on to `max_iter` in all, with the same bits as one run of
        that length.
    verbose : int, default=0
        Above 0, stages are logged at level INFO under "gnomon". Nothing is printed.
    random_state : int, Generator, RandomState or None, default=None
        None is as good as 0: a fit gives the same bits every time.
    n_jobs : int or None, default=None
        Threads: None or −1 for all CPUs. The bits of the result do not depend on it.

    Attributes
    ----------
    embedding_ : array (n, n_components), float32 (float64 with ``method="exact"``)
    kl_divergence_ : float
    n_iter_ : int
    stop_reason_ : str
    affinities_ : CSR array (n, n)
        P; with weights, the mass between all copies of two rows.
    certificate_ : MapCertificate
    timings_ : dict
        Seconds by stage.
    learning_rate_ : float
        In the last iteration.
    pca_ : PCA or None
        What reduced the table.
    alignment_ : MapAlignment or None
        How the map was laid over `align_to`.

    Examples
    --------
    >>> from gnomon import TSNE, samples
    >>> X = samples.load("iris").X
    >>> tsne = TSNE(perplexity=20, max_iter=300).fit(X)
    >>> tsne.embedding_.shape, tsne.kl_divergence_ < 0.3
    ((150, 2), True)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: Any = 30.0,
        affinity: str = "gaussian",
        n_neighbors: int | None = None,
        recall: float = 0.95,
        metric: str = "euclidean",
        metric_params: dict[str, Any] | None = None,
        pca: Any = "auto",
        init: Any = "pca",
        dof: float = 1.0,
        early_exaggeration: float = 12.0,
        exaggeration: float = 1.0,
        learning_rate: Any = "auto",
        quality: str = "balanced",
        max_iter: int = 1000,
        n_iter_without_progress: int = 300,
        min_grad_norm: float = 1e-7,
        method: str = "auto",
        angle: float = 0.5,
        force_tol: Any = "auto",
        align_to: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.recall = recall
        self.metric = metric
        self.metric_params = metric_params
        self.pca = pca
        self.init = init
        self.dof = dof
        self.early_exaggeration = early_exaggeration
        self.exaggeration = exaggeration
        self.learning_rate = learning_rate
        self.quality = quality
        self.max_iter = max_iter
        self.n_iter_without_progress = n_iter_without_progress
        self.min_grad_norm = min_grad_norm
        self.method = method
        self.angle = angle
        self.force_tol = force_tol
        self.align_to = align_to
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    @with_callbacks
    @one_blas_thread()
    def fit(self, X: Any, y: Any = None, *, ids: Any = None, sample_weight: Any = None) -> Self:
        """Map the rows of `X`.

        Ctrl-C, or a callback that returns True, ends the descent with the map so far.

        Parameters
        ----------
        X : array, dataframe, pyarrow table or sparse matrix, shape (n, d)
            Or distances or affinities (n, n), if `metric` or `affinity` is "precomputed".
        y : ignored
        ids : array (n,), optional
            Names of the rows, by which later maps find them again.
        sample_weight : array (n,), optional
            How many copies each row stands for, 1 or more.
        """
        self._check_parameters()
        ids = _own_index(X) if ids is None else ids
        X = self._check(X)
        n = X.shape[0]
        weights = check_copies(sample_weight, n)
        run = fingerprint(self, X, weights) if self.warm_start else ""
        if run and getattr(self, "_run", "") == run:
            if self._stop in RULES:
                return self
            if self._state.ended is not None:  # interrupted while it cooled
                return self._descend(self._state.iteration + COOLING_ITER)
            return self._descend(int(self.max_iter))
        self._run = ""  # until there is a state to go on from
        self._stop: Stop | None
        self._state: State
        self.timings_: dict[str, float] = {}
        rng = random_generator(self.random_state)
        self._seed = int(rng.integers(2**31 - 1))
        self._sample_weight = weights
        mass = float(n if weights is None else weights.sum())
        self._keys = row_keys(X, ids, self.n_jobs)
        self._shared: Shared | None = None
        if self.align_to is not None:
            self._shared = find_shared(self.align_to, self._keys, int(self.n_components))
        self._schedule = self._make_schedule(n, mass)
        reduction = self._connect(X, weights, mass)
        start = self._start(reduction, n, rng, weights)
        self._mesh_cells: dict[float, tuple[int, ...]] = {}
        forces = self._forces()
        self._state = replace(begin(start, forces), forces=None)  # type: ignore[arg-type]
        self._run, self._stop = run, None
        return self._descend(int(self.max_iter), forces)

    def fit_transform(
        self, X: Any, y: Any = None, *, ids: Any = None, sample_weight: Any = None
    ) -> NDArray[Any]:
        """Map the rows of `X` and return the positions, shape (n, n_components)."""
        return self.fit(X, y, ids=ids, sample_weight=sample_weight).embedding_

    @with_callbacks
    @one_blas_thread()
    def resume(self, extra_iter: int) -> Self:
        """Go on for `extra_iter` iterations: the same bits as one run of the whole length.

        The 20 iterations that let the map come to rest are done again at the end. Where a rule has
        ended the run, it goes on regardless.
        """
        check_is_fitted(self, "embedding_")
        extra = check_integer("extra_iter", extra_iter, 1)
        return self._descend(self.n_iter_ + extra)

    def transform(self, X: Any, *, engine: Any = None) -> NDArray[Any]:
        """Places of new rows on the map, shape (m, n_components); see `place`."""
        X = self._check_new(X, engine)
        if isinstance(X, Source):
            return place_blocks(self, X, as_engine(engine, n_jobs=self.n_jobs)).positions
        return self._placed(X)[0]

    @one_blas_thread()
    def place(self, X: Any, *, engine: Any = None) -> Placement:
        """Places of new rows on the map, and which of them are unlike the data.

        The map does not move, and new rows do not see each other: a row gets the same place in any
        batch. A row is unusual if it is near nothing in the data, or if much of it lies outside the
        principal components (`pca_`, or those of the table where no PCA reduced it). Unusual rows
        are placed like all others.

        Parameters
        ----------
        X : array, dataframe, pyarrow table or sparse matrix, shape (m, d)
            With ``metric="precomputed"``, distances (m, n) to the rows of the map. A source or a
            Dask array is read in blocks.
        engine : Dask client or engine, optional
            Who works through the blocks; by default threads of this machine.
        """
        X = self._check_new(X, engine)
        if isinstance(X, Source):
            return place_blocks(self, X, as_engine(engine, n_jobs=self.n_jobs))
        positions, ratio, indices = self._placed(X)
        judge = self._novelty
        residual = judge.residuals(X, self.pca_, self.metric)
        return Placement(
            positions, ratio, residual, judge.distance_limit, judge.residual_limit,
            judge.reasons(ratio, residual), indices,
        )  # fmt: skip

    def _check_new(self, X: Any, engine: Any) -> Table | Source:
        """New rows, checked: a table, or a source where they are to be read in blocks."""
        check_is_fitted(self, "embedding_")
        if self.affinity == "precomputed":
            raise UnavailableError(
                "A map of precomputed affinities cannot place new rows: it knows no distances. "
                "Fit it on a table, or on distances with metric='precomputed'."
            )
        return check_rows(self, X, engine, reset=False)

    @one_blas_thread()
    def _placed(self, X: Table) -> tuple[NDArray[Any], Floats64, NDArray[np.int32]]:
        """Places of the rows of `X`, their distance ratios and their nearest rows of the map."""
        k = min(NEIGHBORS, self.embedding_.shape[0])
        if X.shape[0] == 0:
            positions = np.empty((0, int(self.n_components)), self.embedding_.dtype)
            return positions, np.empty(0), np.empty((0, k), np.int32)
        if self.metric == "precomputed":
            indices, distances = _nearest_given(X, k)
        else:
            if self.pca_ is not None:
                X = self.pca_.transform(X)
            else:
                refuse_bad_values(X, names=getattr(self, "feature_names_in_", None))
            assert self._search is not None
            indices, distances = self._search.of(X, k)
        ratio = distance_ratios(indices, distances, self._typical)
        positions = self._map.place(indices, distances).astype(self.embedding_.dtype)
        return positions, ratio, indices

    def _descend(self, until: int, forces: Forces | None = None) -> Self:
        """Run to iteration `until` from where the run stands, and say how it went."""
        forces = self._forces() if forces is None else forces
        order = self._state.order
        if (np.diff(order) < 0).any():  # renumbered before
            forces = forces.reordered(order)
        state = replace(self._state, forces=forces)
        descent = Descent(state, self._schedule, self.n_jobs)
        left = max(until - state.iteration, 0)
        with self._stage("descent"), Steps(self, total=left, name="iteration") as steps:

            def report(step: Report) -> bool:
                return steps.done(
                    iteration=step.iteration, of=step.of, kl=step.kl,
                    seconds_left=step.seconds_left,
                )  # fmt: skip

            reason = descent.run(until, report)
        with self._stage("certificate"):
            self._settle(descent.state, descent.end, reason)
        return self

    def _settle(self, trunk: State, state: State, reason: Stop) -> None:
        """Turn the state that the descent ended in into the fitted attributes; keep the trunk.

        They are assigned at the end, so that Ctrl-C leaves those of one state.
        """
        # As the next iteration will need them: looking at the map may let them grow.
        meshes = trunk.forces.meshes if isinstance(trunk.forces, OverMesh) else {}
        cells = {spacing: mesh.cells for spacing, mesh in meshes.items()}
        forces, weights, dof = state.forces.branched(), self._sample_weight, float(self.dof)
        over_mesh = forces if isinstance(forces, OverMesh) else None
        embedding, alignment = state.positions(), None
        if self._shared is not None:
            embedding, alignment = lay_over(embedding, self._shared, len(self.align_to.embedding_))
        Y = embedding[state.order]
        low, high = Y.min(axis=0).astype(np.float64), Y.max(axis=0).astype(np.float64)
        gradient, total, phi = forces.push(Y, low, high)
        ordered = None if weights is None else weights[state.order]
        check = check_field(Y, gradient, total, phi, dof, ordered, self._seed, self.n_jobs)
        kl = forces.kl(Y, check.total)
        mesh = over_mesh.mesh_for(high - low) if over_mesh is not None else None
        how = "sum over all pairs, float64"
        if over_mesh is not None:
            how = over_mesh.describe(high - low)
        found, recall, probed = self._found
        certificate = MapCertificate(
            kl_divergence=kl, force_error=check.force_error,
            sampled=check.sampled, recall=recall, probed=probed, neighbors=found,
            repulsion=how, coarsened=mesh is not None and mesh.spacing > self._spacing(),
            n_iter=state.iteration, stop_reason=reason.value, reduced=self._reduced,
        )  # fmt: skip
        fixed = FixedMap(embedding, dof, self._spacing() / 2, weights, n_jobs=self.n_jobs)
        self._state = replace(trunk, forces=None)  # type: ignore[arg-type]
        self._mesh_cells, self._map, self._stop = cells, fixed, reason
        self.embedding_, self.alignment_, self.kl_divergence_ = embedding, alignment, kl
        self.n_iter_, self.stop_reason_, self.certificate_ = (
            state.iteration, reason.value, certificate,
        )  # fmt: skip
        self.learning_rate_ = self._schedule.largest_step(max(0, state.iteration - 1), dof)
        self._n_features_out = embedding.shape[1]

    def _connect(self, X: Table, weights: Floats64 | None, mass: float) -> Reduction:
        """Neighbours and P of the rows, and the table that they were searched in."""
        n = X.shape[0]
        self.pca_, self._reduced = None, ""
        self._search: NeighborSearch | None = None
        for name in ("_typical", "_novelty"):  # of a former fit
            self.__dict__.pop(name, None)
        if self.affinity == "precomputed":
            if weights is not None:
                refuse("sample_weight", "be None for precomputed affinities", "weights")
            self.affinities_ = given_affinities(X)
            self._found = ("affinities that were given", 1.0, 0)
            return Reduction(X, None, "")
        exact = self.method == "exact"
        affinity = Affinity.parse(self.affinity, self.perplexity, self.n_neighbors, n, mass, exact)
        if self.metric == "precomputed":
            reduction = Reduction(X, None, "")
            with self._stage("neighbors"):
                near = given_neighbors(X, affinity.n_neighbors)
        else:
            with self._stage("pca"):
                reduction = reduce(
                    X, self.pca, self.metric, names=getattr(self, "feature_names_in_", None),
                    weights=weights, n_jobs=self.n_jobs,
                )  # fmt: skip
                self.pca_, self._reduced = reduction.pca, reduction.note
            with self._stage("neighbors"):
                recall = 1.0 if exact else self.recall
                self._search = search_table(
                    reduction, self.metric, self.metric_params, recall, self._seed, self.n_jobs
                )
                near = self._search.among_themselves(affinity.n_neighbors)
        with self._stage("affinities"):
            conditional = affinity.rows(near, weights, self.n_jobs)
            self.affinities_ = joint(conditional, weights=weights, n_jobs=self.n_jobs)
            self._remember_distances(near)
        with self._stage("limits"):
            self._novelty: Novelty = learn_novelty(
                X, self.pca_, near, n_neighbors=NEIGHBORS, metric=self.metric, weights=weights,
                seed=self._seed, n_jobs=self.n_jobs,
            )  # fmt: skip
        return reduction

    def _remember_distances(self, near: Neighbors) -> None:
        """How neighbours were found, and how far they are: new rows are compared with that."""
        self._found = (near.method, near.recall, near.probed)
        k = min(NEIGHBORS, near.distances.shape[1])
        self._typical = near.distances[:, :k].mean(axis=1)

    def _start(
        self, reduction: Reduction, n: int, rng: np.random.Generator, weights: Floats64 | None
    ) -> Floats64:
        k = int(self.n_components)
        with self._stage("start"):
            known = self._known_scores(reduction, k, weights)
            if self._shared is None and isinstance(self.init, str) and self.init == "pca":
                return pca_start(known, reduction.Z, k, rng, weights=weights, n_jobs=self.n_jobs)
            if self._shared is not None:
                return start_from(self._shared, self.affinities_, rng)
            if isinstance(self.init, str):
                return random_start(n, k, rng)
            return given_start(self.init, n, k)

    def _known_scores(self, reduction: Reduction, k: int, weights: Floats64 | None) -> Any:
        """Principal scores of the table, `k` of them or more, by a PCA that looked at it before."""
        if reduction.pca is not None:
            return reduction.Z
        judge = vars(self).get("_novelty")
        known = None if judge is None or self.metric == "cosine" else judge.auxiliary
        if known is None:
            return None
        if known.n_components_ < k:  # one of few columns has nearly all of the variance
            known = PCA(min(k, *reduction.Z.shape), n_jobs=self.n_jobs)
            known.partial_fit(reduction.Z, sample_weight=weights)  # what `fit` warns of was said
        return known.transform(reduction.Z)

    def _forces(self) -> Forces:
        """What moves the points, for P in the order of the data."""
        weights, dof = self._sample_weight, float(self.dof)
        if self.method == "exact":
            needed = 2 * 8 * self.affinities_.shape[0] ** 2
            if needed > available_bytes():
                raise TooLargeError(
                    f"method='exact' needs {readable_bytes(needed)} for all pairs of "
                    f"{self.affinities_.shape[0]:,} rows; {readable_bytes(available_bytes())} are "
                    "free. Use method='auto'."
                )
            return AllPairs(self.affinities_, dof, weights=weights, n_jobs=self.n_jobs)
        forces = OverMesh(
            self.affinities_, int(self.n_components), dof, self._spacing(),
            weights=weights, always_mesh=self.method == "mesh", n_jobs=self.n_jobs,
        )  # fmt: skip
        forces.restore(getattr(self, "_mesh_cells", {}))
        return forces

    def _spacing(self) -> float:
        """Of the mesh's nodes, so that the force error stays below `force_tol`."""
        tol = AUTO_FORCE_TOL if self.force_tol == "auto" else float(self.force_tol)
        halves = (tol / ERROR_AT_HALF) ** (1 / ORDER)
        sharp = min(float(self.dof), 1.0) ** SHARPNESS
        return float(0.5 * kernel_width(float(self.dof)) * sharp * min(max(halves, 0.1), 2.0))

    def _make_schedule(self, n: int, mass: float) -> Schedule:
        return make_schedule(
            n,
            mass,
            dof=float(self.dof),
            exaggeration=float(self.exaggeration),
            quality=self.quality,
            from_map=self.align_to is not None,
            early_exaggeration=float(self.early_exaggeration),
            learning_rate=None if self.learning_rate == "auto" else float(self.learning_rate),
            n_iter_without_progress=int(self.n_iter_without_progress),
            min_grad_norm=float(self.min_grad_norm),
        )

    def _check(self, X: Any) -> Table:
        if as_source(X) is not None:
            raise DataTypeError(
                "X is a source, which is read in blocks, and a map is made of rows that are in "
                "memory all at once. Use gnomon.run, which maps as many rows of a source as there "
                "is memory for, and places the others."
            )
        X = check_table(self, X, reset=True)
        if X.shape[0] < LEAST_ROWS:
            n = X.shape[0]
            refuse(
                "X", f"have at least {LEAST_ROWS} rows for a map",
                f"{n} sample{'s' if n > 1 else ''}", "Add rows.",
            )  # fmt: skip
        if "precomputed" in (self.metric, self.affinity) and X.shape[0] != X.shape[1]:
            refuse("X", "be square for precomputed input", f"shape {X.shape}")
        return X

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        """Time a stage, and log it for those who asked."""
        begun = time.perf_counter()
        yield
        seconds = time.perf_counter() - begun
        self.timings_[name] = self.timings_.get(name, 0.0) + seconds
        if self.verbose:
            log.info("t-SNE: %s took %.2f s", name, seconds)

    def _check_parameters(self) -> None:
        check_parameters(self)

    def _to_state(self) -> dict[str, Any]:
        check_is_fitted(self, "embedding_")
        if int(self.n_components) != self.embedding_.shape[1]:
            refuse(
                "n_components", "be that of the map to be saved", self.n_components, "Fit again."
            )
        stored = pack_parameters(self.init, self.align_to, self.pca)
        return estimator_state(self, FIELDS, **stored)

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Self:
        parameters = unpack_parameters(state.get("parameters"))
        return new_estimator(cls, {**state, "parameters": parameters}, unpack)

    def __sklearn_clone__(self) -> Self:
        """As scikit-learn clones, but for fitted models among the parameters, which stay fitted."""
        new: Self = _clone_parametrized(self)
        new.init, new.align_to, new.pca = self.init, self.align_to, self.pca
        return new

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []  # maps are float32
        tags.input_tags.pairwise = "precomputed" in (self.metric, self.affinity)
        return tags


def _own_index(X: Any) -> Any:
    """The index of a pandas dataframe, if its owner gave it one; polars and Arrow have none."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return None
    return np.asarray(index) if getattr(index, "is_unique", False) else None


def _nearest_given(X: Table, k: int) -> tuple[NDArray[np.int32], Floats64]:
    """The nearest rows of the map, from distances (m, n) to all of them."""
    if is_sparse(X):
        refuse("X", "be a dense table of distances to the rows of the map", "a sparse table")
    refuse_bad_values(X)
    if (X < 0).any():
        refuse("X", "hold distances, none of them negative", float(X.min()))
    order = np.argsort(X, axis=1, kind="stable")[:, :k]
    return order.astype(np.int32), np.take_along_axis(X, order, axis=1).astype(np.float64)
