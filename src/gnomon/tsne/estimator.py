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

from gnomon.compute.blas import one_blas_thread
from gnomon.engine import as_engine
from gnomon.errors import DataWarning, UnavailableError, refuse, warn_caller
from gnomon.inputs import check_integer, check_real, random_generator
from gnomon.late import Shown
from gnomon.models.estimators import estimator_state, new_estimator
from gnomon.models.registry import Saved
from gnomon.numeric.apply import check_rows
from gnomon.progress import CallbackSupportMixin, Steps, with_callbacks
from gnomon.tsne.aligned import Shared, find_shared, lay_over, own_index, row_keys
from gnomon.tsne.checks import (
    check_copies,
    check_data,
    check_parameters,
    check_schedules,
    fingerprint,
    parameter_marks,
    refuse_changes,
    why_anew,
)
from gnomon.tsne.connect import connect
from gnomon.tsne.descent import Descent, DescentReport, Forces, State, Stop, begin
from gnomon.tsne.forces import make_forces, node_spacing
from gnomon.tsne.left_out import LeftOutRows, rows_of_fit, split_rows
from gnomon.tsne.map import MOST_AXES, Map, make_map
from gnomon.tsne.map_certificate import certify_map
from gnomon.tsne.map_warnings import warn_if_risen
from gnomon.tsne.place import PERPLEXITY, Placement
from gnomon.tsne.place_parts import place_parts
from gnomon.tsne.schedule import COOLING_ITER, Schedule, make_schedule
from gnomon.tsne.start import choose_start
from gnomon.tsne.tsne_schema import FIELDS, pack_parameters, restore_map, unpack, unpack_parameters

# Ways to end after which `warm_start` has nothing to add.
RULES = (Stop.CONVERGED, Stop.NO_PROGRESS, Stop.SMALL_GRADIENT)

log = logging.getLogger("gnomon")


class TSNE(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    Saved,
    Shown,
    BaseEstimator,
):
    """Positions in a few dimensions whose neighbour probabilities match those of the data.

    Minimises KL(P‖Q) with q_ij = K(d_ij)/Z, d_ij = |y_i − y_j|², K(d) = (1 + d/α)^(−(α+1)/2)
    ([Selitskii 2025], eqs. (44)–(59); α is `dof`). Attraction runs over the edges of P; repulsion
    is the gradient of one field, by Fourier transforms on a mesh, or the sum over all pairs where
    there are few points. A drop-in for scikit-learn's TSNE that also places new
    points, can be continued, and measures its own accuracy (`certificate_`).

    Distances between far groups, and the size and density of groups, mean little in such a map.

    Parameters
    ----------
    n_components : int, default=2
        1, 2 or 3, and more with ``method="exact"``; such maps place no new rows.
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
    metric : str or callable, default="euclidean"
        ``"cosine"`` and ``"correlation"`` are angles (scikit-learn squares 1 − cos instead);
        ``"hellinger"`` compares shares. ``"precomputed"``: `X` is an (n, n) matrix of distances, a
        sparse graph of them, or neighbours as ``(indices, distances)``, each (n, k). Others, and
        functions of two rows, by scikit-learn: exact, and slower.
    metric_params : dict, optional
    pca : "auto", int, fitted PCA or None, default="auto"
        ``"auto"`` first reduces more than 100 columns, or a sparse table, to 50 principal scores
        (euclidean only), and `certificate_` says so. A fitted PCA is used as it is: that of all
        rows, for a map of some of them. None is off.
    init : {"pca", "spectral", "random"}, array (n, n_components) or fitted TSNE, default="pca"
        ``"spectral"`` takes the slowest modes of a random walk over P, and stands in for ``"pca"``
        where `X` is precomputed. Arrays and maps are taken as they are.
    dof : float, default=1.0
        Degrees of freedom α of K, in every dimension. scikit-learn uses max(n_components − 1, 1).
        FIt-SNE and openTSNE write (1 + d/α′)^(−α′): their α′ is (α + 1)/2, with the map scaled
        by √(α/α′).
    early_exaggeration : float, default=12.0
        Factor of attraction in the first 30 iterations. From there it goes to `exaggeration`
        linearly, in 200 iterations below 1,500 rows, 100 below 20,000 and 50 from there on.
    exaggeration : float, list of stages or callable, default=1.0
        Factor of attraction after that. KL is what the descent minimises only where it is 1. A list
        ``[(n_iter, value), …]``, whose last value holds to the end, or a function of the iteration,
        from 0 on, is the whole schedule: `early_exaggeration` has no effect then. A function is
        called for the first 10,000 iterations before the descent; its last value holds from there.
    momentum : "auto", float, list of stages or callable, default="auto"
        Share of its velocity that a point keeps, from 0 to below 1, in the same forms. ``"auto"``
        goes from 0.8 to 0.99 together with the exaggeration. The rules that end a descent, and the
        watch, which lowers momentum where KL rises, begin with the last stage of both schedules;
        the last 20 iterations have a momentum of at most 0.9.
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
        Largest relative error of the mesh's force on the finished map; 0.035 unless given. It
        decides the spacing, which is 1.4 times as wide until the last 20 iterations. Of maps far
        smaller than 1, as at the beginning, float32 shows the force less exactly.
    align_to : fitted TSNE, optional
        A former map whose frame is kept: shared rows start from their former places, without early
        exaggeration, and the new map is laid over the old one. Rows are shared if their ids are
        equal (`fit(ids=…)`, or a dataframe's own index), else if all their numbers are. `init` has
        no effect then.
    warm_start : bool, default=False
        `fit` again on the same data goes on to `max_iter` in all, with the same bits as one run of
        that length. With other data or parameters it begins a new map, and warns.
    verbose : int, default=0
        Above 0, stages are logged at level INFO under "gnomon". Nothing is printed.
    random_state : int, Generator, RandomState or None, default=None
        None means 0: a fit gives the same bits every time.
    n_jobs : int or None, default=None
        Threads: None or −1 for all CPUs. The bits of the result do not depend on it.

    Attributes
    ----------
    embedding_ : array (n, n_components), float32 (float64 with ``method="exact"``)
    kl_divergence_ : float
        Over the neighbours kept in P, which is what the descent minimises. `certificate_.exact_kl`
        is over all pairs.
    n_iter_ : int
    stop_reason_ : str
    affinities_ : CSR array (n, n)
        P; with weights, the mass between all copies of two rows. Rows of weight 0 are not among
        its rows.
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
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        pca: Any = "auto",
        init: Any = "pca",
        dof: float = 1.0,
        early_exaggeration: float = 12.0,
        exaggeration: Any = 1.0,
        momentum: Any = "auto",
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
        self.momentum = momentum
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
            Or distances or affinities (n, n), if `metric` or `affinity` is "precomputed"; or then
            neighbours ``(indices, distances)``.
        y : ignored
        ids : array (n,), optional
            Names of the rows, by which later maps find them again.
        sample_weight : array (n,), optional
            How many copies each row stands for: 1 or more, or 0. Rows of weight 0 have no part in
            the fit, and are placed on the finished map like new rows (`place`).
        """
        self._check_parameters()
        ids = own_index(X) if ids is None else ids
        X = check_data(self, X)
        weights = check_copies(sample_weight, X.shape[0])
        fitted = rows_of_fit(self, X, weights)
        marks = parameter_marks(self)
        run = fingerprint(X, weights, marks) if self.warm_start else ""
        if run and getattr(self, "_run", "") == run:
            if self._stop in RULES:
                return self
            if self._state.ended is not None:  # interrupted while it cooled
                return self._descend(self._state.iteration + COOLING_ITER)
            return self._descend(int(self.max_iter))
        if run and "embedding_" in vars(self):
            warn_caller(DataWarning(f"`warm_start` begins a new map: {why_anew(self)}."))
        self._run = ""  # until there is a state to go on from
        self._marks: dict[str, str] | None = None
        self._stop: Stop | None
        self._state: State
        self._map: Map | None
        self.timings_: dict[str, float] = {}
        rng = random_generator(self.random_state)
        self._seed = int(rng.integers(2**31 - 1))
        keys = self._keys = row_keys(X, ids, self.n_jobs)
        others = None
        if fitted is not None and weights is not None:
            (X, others), keys = split_rows(self, X, fitted), keys[fitted]
            weights = check_copies(weights[fitted], fitted.size)
        n = X.shape[0]
        self._sample_weight = weights
        mass = float(n if weights is None else weights.sum())
        self._shared: Shared | None = None
        if self.align_to is not None:
            self._shared = find_shared(self.align_to, keys, int(self.n_components))
        self._schedule = self._make_schedule(n, mass)
        graph = connect(self, X, weights, self._seed, self._stage)
        self.affinities_, self.pca_, self._reduced = graph.P, graph.pca, graph.reduced
        self._found, self._truncation, self._search = graph.found, graph.truncation, graph.search
        self._typical, self._novelty = graph.typical, graph.novelty
        with self._stage("start"):
            start = choose_start(self, graph, self._shared, rng, weights, fitted)
        self._left_out: LeftOutRows | None = None
        if fitted is not None:
            unmoved = make_map(self, start, float(self.dof), 1.0)
            self._left_out = LeftOutRows.find(others, fitted, unmoved, self.n_jobs)
        self._mesh_cells: dict[float, tuple[int, ...]] = {}
        forces = make_forces(self)
        self._state = replace(begin(start, forces), forces=None)  # type: ignore[arg-type]
        self._run, self._marks, self._stop = run, marks, None
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
        ended the run, it goes on regardless. Parameters must be those of the fit, except for
        `max_iter`, `n_jobs`, `verbose` and `warm_start`.
        """
        check_is_fitted(self, "embedding_")
        if self._marks is None:
            raise UnavailableError(
                "The last fit failed before its descent began, and left nothing to go on from. Fit "
                "again."
            )
        refuse_changes(self, "be what it was in the fit that is continued")
        extra = check_integer("extra_iter", extra_iter, 1)
        return self._descend(self.n_iter_ + extra)

    def transform(
        self, X: Any, *, perplexity: float = PERPLEXITY, engine: Any = None
    ) -> NDArray[Any]:
        """Places of new rows on the map, shape (m, n_components); see `place`."""
        model, table = self._model(), check_rows(self, X, reset=False)
        perplexity = self._placing_perplexity(perplexity)
        rows = table.array() if engine is None else None
        if rows is not None:
            return model.transform(rows, n_jobs=self.n_jobs, perplexity=perplexity)
        workers = as_engine(engine, n_jobs=self.n_jobs)
        return place_parts(model, table, workers, perplexity).positions

    def place(self, X: Any, *, perplexity: float = PERPLEXITY, engine: Any = None) -> Placement:
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
        perplexity : float, default=5
            Effective number of rows of the map that hold a new row, out of three times as many. The
            default places rows better than the perplexity of the map does.
        engine : Dask client or engine, optional
            Who works through the blocks; by default threads of this machine.
        """
        model, table = self._model(), check_rows(self, X, reset=False)
        perplexity = self._placing_perplexity(perplexity)
        rows = table.array() if engine is None else None
        if rows is not None:
            return model.place(rows, n_jobs=self.n_jobs, perplexity=perplexity)
        return place_parts(model, table, as_engine(engine, n_jobs=self.n_jobs), perplexity)

    def _placing_perplexity(self, perplexity: Any) -> float:
        most = max(PERPLEXITY, float(len(self.embedding_)))  # the default holds on any map
        return check_real("perplexity", perplexity, 1.0, most)

    def _model(self) -> Map:
        """What places new rows."""
        check_is_fitted(self, "embedding_")
        if self._map is None and self.embedding_.shape[1] > MOST_AXES:
            raise UnavailableError(
                f"A map in {self.embedding_.shape[1]} dimensions cannot place new rows: that works "
                f"in up to {MOST_AXES}. Fit with fewer, or map all rows at once."
            )
        if self._map is None:
            raise UnavailableError(
                "A map of precomputed affinities cannot place new rows: it knows no distances. "
                "Fit it on a table, or on distances with metric='precomputed'."
            )
        return self._map

    def _descend(self, until: int, forces: Forces | None = None) -> Self:
        """Run to iteration `until` from where the run stands, and say how it went."""
        forces = make_forces(self) if forces is None else forces
        order = self._state.order
        if (np.diff(order) < 0).any():  # renumbered before
            forces = forces.reordered(order)
        state = replace(self._state, forces=forces)
        descent = Descent(state, self._schedule, self.n_jobs)
        left = max(until - state.iteration, 0)
        with self._stage("descent"), Steps(self, total=left, name="iteration") as steps:

            def report(step: DescentReport) -> bool:
                return steps.done(
                    iteration=step.iteration,
                    of=step.of,
                    kl=step.kl,
                    seconds_left=step.seconds_left,
                    positions=step.positions,
                )

            reason = descent.run(until, report)
        with self._stage("certificate"):
            self._settle(descent.state, descent.end, reason)
        return self

    def _settle(self, trunk: State, state: State, reason: Stop) -> None:
        """Turn the state that the descent ended in into the fitted attributes; keep the trunk.

        They are assigned at the end, so that Ctrl-C leaves those of one state.
        """
        # As the next iteration will need them: looking at the map may let them grow.
        cells, dof = trunk.forces.mesh_cells(), float(self.dof)
        forces = state.forces.refined(state.order)
        embedding, alignment = state.positions(), None
        if self._shared is not None:
            embedding, alignment = lay_over(embedding, self._shared, len(self.align_to.embedding_))
        certificate = certify_map(self, embedding, state, forces, reason.value)
        warn_if_risen(self._schedule, trunk, state)
        spacing = node_spacing(self.force_tol, dof) / 2  # it is laid once: it can be fine
        fixed = make_map(self, embedding, dof, spacing)
        self._state = replace(trunk, forces=None)  # type: ignore[arg-type]
        if self._left_out is not None:
            embedding = self._left_out.all_positions(fixed, self.n_jobs)
        self._mesh_cells, self._map, self._stop = cells, fixed, reason
        self.embedding_, self.alignment_ = embedding, alignment
        self.kl_divergence_, self.certificate_ = certificate.kl_divergence, certificate
        self.n_iter_, self.stop_reason_ = state.iteration, reason.value
        self.learning_rate_ = self._schedule.largest_step(max(0, state.iteration - 1), dof)
        self._n_features_out = embedding.shape[1]

    def _make_schedule(self, n: int, mass: float) -> Schedule:
        exaggerations, momenta = check_schedules(self)
        return make_schedule(
            n,
            mass,
            dof=float(self.dof),
            exaggeration=float(
                self.exaggeration if exaggerations is None else exaggerations[-1, 1]
            ),
            exaggeration_stages=exaggerations,
            momentum_stages=momenta,
            quality=self.quality,
            from_map=self.align_to is not None,
            early_exaggeration=float(self.early_exaggeration),
            learning_rate=None if self.learning_rate == "auto" else float(self.learning_rate),
            n_iter_without_progress=int(self.n_iter_without_progress),
            min_grad_norm=float(self.min_grad_norm),
        )

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
        refuse_changes(self, "be that of the map to be saved")
        if callable(self.metric):
            refuse(
                "metric",
                "be the name of a metric for a model file, which holds no code",
                getattr(self.metric, "__name__", "a function"),
            )
        stored = pack_parameters(self)
        return estimator_state(self, FIELDS, **stored)

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Self:
        parameters = unpack_parameters(state.get("parameters"))
        model = new_estimator(cls, {**state, "parameters": parameters}, unpack)
        model._marks = parameter_marks(model)
        model._map = restore_map(model)
        return model

    def __sklearn_clone__(self) -> Self:
        """Clone as scikit-learn does, but keep fitted models among the parameters fitted."""
        new: Self = _clone_parametrized(self)
        new.init, new.align_to, new.pca = self.init, self.align_to, self.pca
        return new

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []  # maps are float32
        tags.input_tags.pairwise = "precomputed" in (self.metric, self.affinity)
        return tags
