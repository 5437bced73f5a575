"""The PCA estimator: checks, plan, solver, certificate, and the methods of a fitted model."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gnomon.budget import available_bytes, parse_bytes, readable_bytes
from gnomon.compute.blas import one_blas_thread
from gnomon.engine import Engine, Source, as_engine
from gnomon.engine.arrays import as_source, hold
from gnomon.errors import DataError, UnavailableError, refuse
from gnomon.events import Event
from gnomon.inputs import (
    check_choice,
    check_integer,
    check_real,
    check_table,
    check_weights,
    random_generator,
)
from gnomon.late import Shown
from gnomon.models.estimators import estimator_state, new_estimator
from gnomon.models.registry import Saved
from gnomon.numeric.apply import check_rows
from gnomon.numeric.certificate import Measured, certify, inseparable_groups
from gnomon.numeric.moments import Moments, moments_of
from gnomon.numeric.scaling import evenly_spaced, working_type
from gnomon.numeric.view import View, sample_passes, view_array, view_table
from gnomon.pca.components import Components
from gnomon.pca.diagnose import Diagnostics
from gnomon.pca.downdate import SampledRows
from gnomon.pca.export import as_sklearn
from gnomon.pca.impute import angles_lost, impute
from gnomon.pca.pca_schema import FIELDS, SOLVED, unpack
from gnomon.pca.pca_warnings import log_ignored_parameters, warn_of_giants, warn_of_solution
from gnomon.pca.plan import ALIASES, SOLVER_NAMES, SOLVERS, Plan, krylov_passes, make_plan
from gnomon.pca.rank import Request
from gnomon.pca.signs import align_to, settle
from gnomon.pca.solvers import covariance
from gnomon.pca.solvers.problem import Problem, Question, Solution
from gnomon.pca.transform import ComponentTransformer
from gnomon.progress import CallbackSupportMixin, Steps, with_callbacks
from gnomon.typing import Table, Vector

if TYPE_CHECKING:
    from sklearn import decomposition

DEFAULT_TOL = 1e-5  # residual relative to λ₁; time against error, in `benchmarks/pca.py`
EXACT = 256 * float(np.finfo(np.float64).eps)  # times √d: residuals that rounding alone can leave
FEATURE_WEIGHTS = (1e-100, 1e100)  # range: squares of weights, and sums of those, are finite

# float32 sums are repeated in float64 if their rounding exceeds this share of the smallest variance
# requested: its direction would be lost.
FINEST = 1e-2

HOLD_FACTOR = 2  # free memory needed to hold a table, in multiples of its bytes
SPARSE_HOLD_FACTOR = 5  # of a sparse one, of which krylov makes copies (`plan`)

LEAST_SAMPLED = 200  # rows that limits for new rows are estimated from, if there are so many


class PCA(
    CallbackSupportMixin,
    ComponentTransformer,
    Diagnostics,
    Saved,
    Shown,
    BaseEstimator,
):
    """Principal components: the orthonormal basis with the least reconstruction error.

    With the centred (and optionally standardised) rows x, the covariance Σ and its eigenpairs
    Σw = λw, the scores are z = Wᵀx, the reconstruction is x̂ = Wz, the variance captured by k
    components is λ₁ + … + λₖ and the mean squared error of the reconstruction is the sum of the
    others ([Selitskii 2025], eqs. (3), (13), (18), (24), (26), (33)).

    Not for data whose structure is curved: a straight projection folds it over itself.

    Parameters
    ----------
    n_components : None, int, fraction or rule, default=None
        None keeps min(n, d), 0 none. A fraction in (0, 1) keeps as many as hold that share of the
        variance. Rules: ``"mle"`` (Minka), ``"parallel"`` (Horn), ``"broken-stick"``,
        ``"gavish-donoho"``, ``"kaiser"``; see `component_panel`.
    standardize : bool, default=False
        Divide every column by its standard deviation. `inverse_transform` undoes it.
    whiten : bool, default=False
        Divide the scores by their standard deviations. Directions below the numerical rank become
        zero columns.
    solver : str, default="auto"
        ``"covariance"``, ``"gram"``, ``"svd"``, ``"deflation"`` or ``"krylov"``; ``"auto"``
        chooses by `plan`. scikit-learn's names are accepted too.
    ddof : int, default=1
        Variances are divided by Σw − ddof: 1 as in scikit-learn and R, 0 as in the lecture notes.
    feature_weight : array (d,), optional
        Positive weights of the columns; they enter the scores as √w, as in FactoMineR.
    missing : {"error", "em"}, default="error"
        How to treat NaN. ``"em"`` imputes them by iterated, regularised low-rank
        reconstruction (see `missing_`).
    tol : float, optional
        Largest residual ‖Σv − λv‖ / λ₁ of a component; by default 1e-5, and as small as rounding
        allows for ``svd_solver="arpack"``. 0 means the latter too. Exact solvers are far below
        it; ``"krylov"`` stops there, and float32 sums that would not reach it are redone in
        float64.
    random_state : int, Generator or None, default=None
        Seed of ``"krylov"``'s first block and of the rules that simulate. None means 0: a fit
        gives the same bits every time.
    n_jobs : int or None, default=None
        Threads: None or −1 for all CPUs. They do not change the bits of the result.
    svd_solver : str, optional
        scikit-learn's name for `solver`.
    copy, iterated_power, n_oversamples, power_iteration_normalizer : optional
        Parameters of scikit-learn's PCA, accepted without effect: a table is never written to,
        and ``"krylov"`` iterates until `tol` is reached.

    Attributes
    ----------
    components_ : array (k, d)
        Orthonormal rows, largest variance first; the largest loading of each is positive. float32
        for a float32 table, and `certificate_` includes that rounding.
    explained_variance_, explained_variance_ratio_ : array (k,)
    singular_values_ : array (k,)
    captured_variance_, lost_variance_, total_variance_ : float
        Sums of the eigenvalues that were kept, not kept, and of all; in squared units of the table,
        or of standard deviations of its columns if `standardize`.
    spectrum_ : array (m,)
        All eigenvalues known: every one, unless the solver is ``"krylov"`` or ``"deflation"``.
    noise_variance_ : float
        Mean of the min(n, d) − k eigenvalues that were not kept.
    mean_ : array (d,)
    scale_ : array (d,)
        Standard deviations that columns were divided by; ones unless `standardize`.
    loadings_ : array (d, k)
        Components scaled by the standard deviations of their scores.
    rank_ : int
        Numerical rank of the components kept.
    certificate_ : Certificate
        Accuracy of the components.
    plan_ : Plan
    solver_ : str
    moments_ : Moments
        Moments for `partial_fit` and `merge`; None after solvers that do not form them.
    missing_ : Imputation
        Only with ``missing="em"``: how the missing values were filled in.

    Examples
    --------
    >>> from gnomon import PCA, samples
    >>> X = samples.load("iris").X
    >>> pca = PCA(n_components=0.95).fit(X)
    >>> pca.n_components_, round(float(pca.explained_variance_ratio_.sum()), 3)
    (2, 0.978)
    """

    def __init__(
        self,
        n_components: Any = None,
        *,
        standardize: bool = False,
        whiten: bool = False,
        solver: str = "auto",
        ddof: int = 1,
        feature_weight: Any = None,
        missing: str = "error",
        tol: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        svd_solver: str | None = None,
        copy: bool = True,
        iterated_power: Any = "auto",
        n_oversamples: int = 10,
        power_iteration_normalizer: str = "auto",
    ) -> None:
        self.n_components = n_components
        self.standardize = standardize
        self.whiten = whiten
        self.solver = solver
        self.ddof = ddof
        self.feature_weight = feature_weight
        self.missing = missing
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.svd_solver = svd_solver
        self.copy = copy
        self.iterated_power = iterated_power
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer

    @with_callbacks
    @one_blas_thread()
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        like: "PCA | None" = None,
        *,
        memory: int | str | None = None,
        engine: Any = None,
    ) -> Self:
        """Fit the components of `X`.

        Parameters
        ----------
        X : array, dataframe, pyarrow table, sparse matrix, Dask array or source, shape (n, d)
            A source (see `gnomon.source`) or a Dask array is read in blocks, and as a whole only
            if the solver needs all of it and it fits twice into `memory`.
        y : ignored
        sample_weight : array (n,), optional
            Frequencies: an integer weight is that many copies of the row, 0 an absent row.
        like : PCA, optional
            A former model whose signs, and directions inside near-ties, are preserved.
        memory : int or str, optional
            Bytes, or a size such as "1GB", that may be used beyond the table; by default the free
            memory of the machine. A source is read in one pass if d × d sums fit into it, and
            otherwise in a number of passes that `plan` states. Dask workers are not counted.
        engine : Dask client or engine, optional
            Engine that processes the blocks; by default `n_jobs` threads of this process. It does
            not change the bits of the result.
        """
        self._forget()
        self._check_parameters()
        table = check_rows(self, X, reset=True)
        n, d = table.shape
        weights = check_weights("sample_weight", sample_weight, n, of="row")
        used = n if weights is None else int(np.count_nonzero(weights))
        if used == 0:
            refuse("sample_weight", "have a weight above zero", "every weight zero")
        self._refuse_too_few(used)
        request = Request.parse(self.n_components, used, d)
        workers = as_engine(engine, n_jobs=self.n_jobs)
        held = self._holds(table, memory, workers)
        plan = self._plan(table, request, memory, workers, held=held)
        table = table.limit(None if memory is None else parse_bytes(memory))
        with Steps(self, total=None, name="step") as steps:

            def on(event: Event) -> bool:
                return steps.done(rows=event.done, of=event.total)

            # reading an array takes no time worth reporting
            reported = None if as_source(X) is None else on
            if held:
                table = hold(table, workers, on=reported)
            names = self._names()
            view = view_table(table, workers, weights=weights, names=names, on=reported)
            before = int(held) + view.sample_passes
            problem = Problem(
                **self._asked(d, table.dtype, request),
                view=view,
                weights=weights,
                step=steps.done,
                passes=krylov_passes(n, d, view.work.itemsize, in_memory=view.array is not None),
            )
            filling, lost = None, None
            if self._fills(table, workers, held=held):
                filled, filling = impute(problem)
                self.missing_ = filling.report
                view = view_array(filled, self.n_jobs, weights=weights, names=names)
                problem = replace(problem, view=view)
            solution = self._solve(problem, plan)
            solution = replace(solution, passes=before + solution.passes)
            if filling is not None and filling.holes.any():
                lost = angles_lost(filling, solution.components)
        self._settle(solution, plan, table.dtype, like, lost)
        if self.n_samples_ > 2:
            self._sample = solution.sample or self._measured_sample(problem.view)
        warn_of_giants(
            self, replace(problem.view, scaling=self._model().scaling(view.dtype)), weights
        )
        return self

    def _measured_sample(self, view: View) -> SampledRows:
        """Scores and errors of a few evenly spaced rows, for the limits of new rows."""
        assert view.sample is not None
        X, weights = view.sample
        some = evenly_spaced(len(X), max(LEAST_SAMPLED, view.shape[0] // 32))
        model = self._model()
        W = model.W
        Z = model.rows(X[some]).scaled(work=np.dtype(np.float64)).read(0, some.size)
        scores = Z @ W.T
        Z -= scores @ W
        sq_errors = np.einsum("ij,ij->i", Z, Z)
        return SampledRows(scores, sq_errors, None if weights is None else weights[some])

    def _solve(self, problem: Problem, plan: Plan) -> Solution:
        """Solve in the table's own precision, and again in float64 if that is not enough."""
        solution = SOLVERS[plan.solver].solve(problem)
        if _too_coarse(solution, problem):
            view = problem.view.about(problem.weights, solution.moments.mean, "f8")
            again = SOLVERS[plan.solver].solve(replace(problem, view=view))
            passes = solution.passes + view.sample_passes + again.passes
            solution = replace(again, passes=passes)
        return solution.without_components() if problem.request.asked == 0 else solution

    @one_blas_thread()
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to those already seen. Any batches give the same result as one `fit`.

        Only the moments are updated; components are computed when one is first accessed.
        """
        first = not hasattr(self, "moments_")
        moments = None if first else self._mergeable("partial_fit")
        X = self._check(X, reset=first, min_rows=1)
        if self.missing == "em":
            refuse("missing", "be 'error' for partial_fit", "em", "Fill the rows in first.")
        if moments is None:  # fail now rather than at the end, or when memory runs out
            Request.parse(self.n_components, max(X.shape), X.shape[1])  # more rows may come
            make_plan(n=2, d=X.shape[1], request=Request(1), itemsize=8, solver="covariance")
        weights = check_weights("sample_weight", sample_weight, X.shape[0], of="row")
        # each batch about its own mean: the first may differ from the rest (blank rows)
        view = view_array(X, self.n_jobs, weights=weights, names=self._names())
        batch = moments_of(view, weights)
        moments = batch if moments is None else moments + batch
        self._forget(keep_columns=True)
        self.moments_: Moments | None = moments
        return self

    def merge(self, other: "PCA") -> "PCA":
        """Model of the rows of both models, with the parameters of this one.

        Refused if either filled in missing values: the certificate of both together could not say
        what those cost.
        """
        if not isinstance(other, PCA):
            refuse("other", "be a fitted PCA", type(other).__name__, kind=True)
        check_is_fitted(self)
        check_is_fitted(other)
        mine, yours = self._names(), other._names()
        if mine is not None and yours is not None and not np.array_equal(mine, yours):
            raise DataError(
                f"The two models were fitted on different columns, or in another order: "
                f"{list(mine)} and {list(yours)}."
            )
        both = self._mergeable("merge") + other._mergeable("merge")
        merged = type(self)(**self.get_params())
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(merged, name, getattr(self, name))
        merged.moments_ = both
        return merged

    def plan(self, X: Any, *, memory: int | str | None = None, engine: Any = None) -> Plan:
        """Plan of `fit` for `X`: solver, cost and reason. Nothing is computed."""
        self._check_parameters()
        table = check_rows(type(self)(), X, reset=True)
        workers = as_engine(engine, n_jobs=self.n_jobs)
        held = self._holds(table, memory, workers)
        request = Request.parse(self.n_components, *table.shape)
        return self._plan(table, request, memory, workers, held=held)

    def to_sklearn(self) -> "decomposition.PCA":
        """Export as a fitted scikit-learn PCA that gives the same scores, for ONNX for instance.

        Components, mean, variances and whitening are this model's, in the type of `components_`.
        Standardised or weighted columns are refused, because scikit-learn's PCA cannot represent
        them: put a scaler before it. Directions below the numerical rank, which whitening sets to
        zero here, are divided by the square root of the smallest variance of that type there.

        Examples
        --------
        >>> from gnomon import PCA, samples
        >>> X = samples.load("iris").X
        >>> model = PCA(2).fit(X)
        >>> bool(abs(model.to_sklearn().transform(X) - model.transform(X)).max() < 1e-12)
        True
        """
        check_is_fitted(self)
        return as_sklearn(self)

    def __getattr__(self, name: str) -> Any:
        """Solve for the components when they are first accessed after `partial_fit`."""
        if name in SOLVED and self.__dict__.get("moments_") is not None:
            if "components_" not in self.__dict__:
                self._solve_moments()
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @one_blas_thread()
    def _solve_moments(self) -> None:
        moments = self.__dict__["moments_"]
        d = moments.offset.size
        self._refuse_too_few(moments.n)
        request = Request.parse(self.n_components, moments.n, d)
        question = Question(**self._asked(d, moments.shift.dtype, request))
        solution = covariance.solve_moments(question, moments)
        solution = solution.without_components() if request.asked == 0 else solution
        plan = make_plan(n=moments.n, d=d, request=request, itemsize=8, solver="covariance")
        self._settle(solution, plan, moments.shift.dtype)

    def _check(self, X: Any, *, reset: bool, min_rows: int) -> Table:
        self._check_parameters()
        return check_table(self, X, reset=reset, min_rows=min_rows)

    def _check_parameters(self) -> None:
        for name in ("standardize", "whiten", "copy"):
            check_choice(name, getattr(self, name), (False, True))
        check_choice("solver", self.solver, SOLVER_NAMES)
        if self.svd_solver is not None:
            check_choice("svd_solver", self.svd_solver, SOLVER_NAMES)
            if self.solver not in ("auto", self.svd_solver):
                refuse("svd_solver", "agree with `solver`", self.svd_solver, "Give one of them.")
        check_choice("missing", self.missing, ("error", "em"))
        check_integer("ddof", self.ddof, 0)
        if self.tol is not None:
            check_real("tol", self.tol, 0.0, 1.0)
        log_ignored_parameters(self)

    def _refuse_too_few(self, n: int) -> None:
        if n < 2:
            refuse("X", "have at least 2 rows for a variance", f"{n} sample", "Add rows.")

    def _holds(self, table: Source, memory: int | str | None, workers: Engine) -> bool:
        """Whether to read the table into memory first: a solver needs all of it, and it fits.

        Tables on a cluster are never read into memory.
        """
        if table.array() is not None or not workers.is_local:
            return False
        room = available_bytes() if memory is None else parse_bytes(memory)
        if (SPARSE_HOLD_FACTOR if table.is_sparse else HOLD_FACTOR) * table.nbytes > room:
            return False
        if table.is_sparse:  # small in memory, and krylov reads it many times
            return True
        solver = ALIASES.get(self._solver(), self._solver())
        wide = solver in ("auto", "krylov") and table.rows < table.columns
        fills = self.missing == "em" and table.dtype.kind == "f"  # integers have no NaN
        return wide or fills or (solver in SOLVERS and SOLVERS[solver].NEEDS_ARRAY)

    def _plan(
        self,
        table: Source,
        request: Request,
        memory: int | str | None,
        workers: Engine,
        *,
        held: bool,
    ) -> Plan:
        n, d = table.shape
        X = table.array()
        filled = self._fills(table, workers, held=held)
        blocks, partitions, processes = None, 0, 0
        if not held and (X is None or not workers.is_local):
            processes, partitions = workers.processes, len(table.partitions)
            # one block per thread and one that waits; once as stored, once as rows
            blocks = 2 * (workers.workers + 1 + 2 * processes) * table.block_bytes
        return make_plan(
            n=n,
            d=d,
            request=request,
            itemsize=8 if filled else working_type(table.dtype).itemsize,
            stored=table.stored,
            solver=self._solver(),
            memory=None if memory is None else parse_bytes(memory),
            threads=workers.workers,
            filled=filled,
            blocks=blocks,
            partitions=partitions,
            processes=processes,
            held=table.nbytes if held else 0,
            before=1 if held else sample_passes(table, workers),
        )

    def _solver(self) -> str:
        return self.solver if self.svd_solver is None else self.svd_solver

    def _fills(self, table: Source, workers: Engine, *, held: bool) -> bool:
        """Whether `fit` works on a filled-in float64 copy of the table; integers have no NaN."""
        if self.missing != "em" or table.dtype.kind != "f":
            return False
        X = table.array()
        if table.is_sparse:
            raise DataError(
                "`missing='em'` needs a dense table; got a sparse one. Use X.toarray()."
            )
        if not held and (X is None or not workers.is_local):
            raise UnavailableError(
                f"`missing='em'` needs the whole table, {readable_bytes(table.nbytes)}, in the "
                "memory of this process. Fill the rows in first, or leave out those with gaps."
            )
        return True

    def _feature_weights(self, d: int) -> Vector | None:
        """Weights of the columns, with squares in the range of float64."""
        weights = check_weights(
            "feature_weight", self.feature_weight, d, of="column", positive=True
        )
        if weights is None:
            return None
        low, high = FEATURE_WEIGHTS
        outside = (weights < low) | (weights > high)
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            refuse(
                "feature_weight",
                f"lie between {low:.0e} and {high:.0e}",
                float(weights[at]),
                f"It is at position {at}. Divide all weights by their mean.",
            )
        return weights

    def _asked(self, d: int, dtype: np.dtype[Any], request: Request) -> dict[str, Any]:
        """Fields of a `Question` about a table of d columns of `dtype`."""
        return {
            "request": request,
            "dtype": dtype,
            "standardize": self.standardize,
            "feature_weight": self._feature_weights(d),
            "ddof": int(self.ddof),
            "tol": self._tolerance(d),
            "random": random_generator(self.random_state),
            "n_jobs": self.n_jobs,
        }

    def _tolerance(self, d: int) -> float:
        """Largest relative residual allowed; 0, and ARPACK's default, mean rounding."""
        if self.tol is None and self._solver() != "arpack":
            return DEFAULT_TOL
        return max(0.0 if self.tol is None else float(self.tol), EXACT * float(np.sqrt(d)))

    def _model(self) -> Components:
        """The fitted components as plain numbers."""
        return Components(
            W=np.asarray(self.components_, np.float64),  # solves what `partial_fit` deferred
            variances=self._variances,
            rank=self.rank_,
            shift=self._shift,
            offset=self._offset,
            factors=self._factors,
            mean=self.mean_,
            exponent=self._exponent,
            unit=self._unit,
            filling=self.__dict__.get("missing_"),
            names=self._names(),
        )

    def _factor(self) -> NDArray[np.float64]:
        """Factors of the columns; 1 for constant columns, which are not scaled."""
        return np.where(self._factors == 0, 1.0, self._factors)

    def _forget(self, *, keep_columns: bool = False) -> None:
        """Delete the attributes of an earlier fit."""
        for name in [*SOLVED, "moments_", "missing_", "_sample", "_held_out_errors"]:
            self.__dict__.pop(name, None)
        if not keep_columns:
            self.__dict__.pop("feature_names_in_", None)

    def _settle(
        self,
        solution: Solution,
        plan: Plan,
        dtype: np.dtype[Any],
        like: "PCA | None" = None,
        lost: NDArray[np.float64] | None = None,
    ) -> None:
        """Turn a solver's answer about a table of `dtype` into the fitted attributes."""
        moments, k = solution.moments, solution.variances.size
        # Only ties within rounding: inside those, any basis is equally good.
        finest = solution.singular or solution.measured
        groups = inseparable_groups(finest.known(), np.full(k, finest.formation), k, times=1.0)
        components = settle(solution.components, groups)
        if like is not None:
            check_is_fitted(like)
            theirs = like.components_.shape[1]
            if theirs != components.shape[1]:
                refuse("like", f"have {components.shape[1]} columns", theirs)
            components = align_to(components, like.components_, groups)
        stored = components.astype(working_type(dtype))

        def given(measured: Measured) -> Measured:
            """Error bounds of the components turned within `groups`, then rounded for storage."""
            turned = measured.turned(solution.components, components, groups)
            return turned.rounded(components, stored)

        self.certificate_ = certify(
            solver=plan.solver,
            components=stored,
            measured=given(solution.measured),
            singular=None if solution.singular is None else given(solution.singular),
            whole=solution.whole,
            passes=solution.passes,
            tol=max(self._tolerance(stored.shape[1]), float(np.finfo(stored.dtype).eps)),
            lost=lost,
        )
        self.plan_, self.solver_, self._whole = plan, plan.solver, solution.whole
        self.moments_ = moments if moments.scatter.ndim == 2 else None
        self.n_samples_, self.n_components_ = moments.size, k
        self._n_features_out = k
        self._shift, self._offset, self._exponent = moments.shift, moments.offset, moments.exponent
        self.mean_ = moments.mean
        self._set_variances(solution, moments, components)
        self.components_ = stored  # set last: `__getattr__` tests it
        warn_of_solution(self, solution)

    def _set_variances(
        self, solution: Solution, moments: Moments, components: NDArray[np.float64]
    ) -> None:
        """Set variances in the user's units; squares of extreme numbers may be infinite or zero."""
        k, total = solution.variances.size, solution.scaling.total
        free = self.standardize  # standardised columns have no units
        e = 0 if free else moments.exponent
        self._variances, self._spectrum = solution.variances, solution.spectrum
        self._unit = e
        self._scale = solution.scaling.scale
        factor = solution.scaling.factor
        self._factors = np.ones_like(self._scale) if factor is None else factor
        self.scale_ = np.ldexp(self._scale, moments.exponent) if free else self._scale
        share = self._variances / total if total > 0 else np.zeros(k)
        left = max(0.0, total - float(self._variances.sum()))
        rest = min(moments.size, moments.offset.size) - k
        self._noise = left / rest if rest > 0 else 0.0
        self._total, self._working_variances = total, solution.scaling.variances
        floor = solution.formation + np.finfo(np.float64).eps * components.shape[1] * max(
            float(solution.spectrum[0]), 0.0
        )
        self.rank_ = int(np.count_nonzero(self._variances > floor))
        self.explained_variance_ratio_ = share
        with np.errstate(over="ignore", under="ignore"):
            self.explained_variance_ = np.ldexp(self._variances, 2 * e)
            self.spectrum_ = np.ldexp(self._spectrum, 2 * e)
            self.total_variance_ = float(np.ldexp(total, 2 * e))
            self.captured_variance_ = float(np.ldexp(self._variances.sum(), 2 * e))
            self.lost_variance_ = float(np.ldexp(left, 2 * e))
            self.noise_variance_ = float(np.ldexp(self._noise, 2 * e))
            spread = np.ldexp(np.sqrt(self._variances), e)
            self.singular_values_ = spread * np.sqrt(moments.divisor(int(self.ddof)))
        self.loadings_ = components.T * spread

    def _mergeable(self, what: str) -> Moments:
        moments: Moments | None = self.__dict__.get("moments_")
        if moments is None:
            solver = self.__dict__.get("solver_", "this solver")
            raise UnavailableError(
                f"{what} needs the d × d moments, which {solver!r} does not form. Fit with "
                "solver='covariance', or by partial_fit from the first row on."
            )
        filling = self.__dict__.get("missing_")
        if filling is not None and filling.n_missing:
            raise UnavailableError(
                f"{what} cannot go on from a fit with missing='em': {filling.n_missing} values "
                "were filled in from its rows alone. Fit all rows together, or fill them in first."
            )
        return moments

    def _to_state(self) -> dict[str, Any]:
        check_is_fitted(self)
        if "_sample" in self.__dict__:
            self._held_out()
        return estimator_state(self, FIELDS)

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Self:
        return new_estimator(cls, state, unpack)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.missing != "em"  # "em" needs a dense table
        tags.input_tags.allow_nan = self.missing == "em"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _too_coarse(solution: Solution, problem: Problem) -> bool:
    """Whether rounding hides a requested component, and higher precision would show it.

    Possible in float32, and in float64 if the shift was far from the mean.
    """
    if solution.scaling.total <= 0:
        return False
    smallest, largest = solution.variances[-1], solution.variances[0]
    hidden = solution.formation > min(FINEST * smallest, problem.tol * largest)
    least = 10 * np.finfo(np.float64).eps * solution.scaling.total
    return bool(hidden and solution.formation > least)
