"""The PCA estimator: checks, plan, solver, certificate, and what a fitted model can do."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gnomon.blas import one_blas_thread
from gnomon.certificate import certify, inseparable_groups
from gnomon.engine import Source, as_engine
from gnomon.errors import DataError, UnavailableError, refuse
from gnomon.inputs import (
    Table,
    check_choice,
    check_integer,
    check_real,
    check_table,
    check_weights,
    is_sparse,
    random_generator,
)
from gnomon.memory import parse_bytes
from gnomon.models.classes import Saved
from gnomon.models.estimators import estimator_state, new_estimator
from gnomon.moments import Moments, moments_of_rows
from gnomon.parallel import thread_count
from gnomon.pca import covariance, deflation, gram, krylov, svd
from gnomon.pca.blocks import check_rows
from gnomon.pca.diagnose import Diagnostics
from gnomon.pca.heldout import SampledRows
from gnomon.pca.impute import impute
from gnomon.pca.plan import SOLVER_NAMES, SOURCE_PASSES, Plan, make_plan
from gnomon.pca.problem import Problem, Solution
from gnomon.pca.rank import Request
from gnomon.pca.signs import align_to, settle
from gnomon.pca.state import FIELDS, unpack
from gnomon.pca.transform import Transformation
from gnomon.pca.warn import warn_of_giants, warn_of_solution
from gnomon.progress import CallbackSupportMixin, Steps, with_callbacks
from gnomon.rows import Rows, evenly_spaced, read_rows, working_type
from gnomon.streams import Stream, read_source

SOLVERS = {
    "covariance": covariance.solve,
    "gram": gram.solve,
    "svd": svd.solve,
    "deflation": deflation.solve,
    "krylov": krylov.solve,
}
DEFAULT_TOL = 1e-5

# float32 sums are redone in float64 when their rounding is more than this of the smallest variance
# that is wanted: its direction would be lost.
FINEST = 1e-2

LEAST_SAMPLED = 200  # rows that limits for new rows are read from, if there are so many

# What `partial_fit` leaves to be computed when it is first looked at.
_SOLVED = frozenset(
    {
        "components_",
        "explained_variance_",
        "explained_variance_ratio_",
        "singular_values_",
        "spectrum_",
        "total_variance_",
        "captured_variance_",
        "lost_variance_",
        "noise_variance_",
        "n_components_",
        "rank_",
        "mean_",
        "scale_",
        "loadings_",
        "certificate_",
        "plan_",
        "solver_",
        "n_samples_",
        "_shift",
        "_offset",
        "_exponent",
        "_variances",
        "_spectrum",
        "_unit",
        "_total",
        "_noise",
        "_whole",
        "_working_variances",
        "_scale",
        "_factors",
        "_n_features_out",
    }
)


class PCA(
    CallbackSupportMixin,
    Transformation,
    Diagnostics,
    Saved,
    BaseEstimator,
):
    """Principal components: the orthonormal basis with the least reconstruction error.

    With the centred (and, if asked, standardised) rows x, the covariance Σ and its eigenpairs
    Σw = λw, the scores are z = Wᵀx, the reconstruction is x̂ = Wz, the variance captured by k
    components is λ₁ + … + λₖ and the mean squared error of the reconstruction is the sum of the
    others ([Selitskii 2025], eqs. (3), (13), (18), (24), (26), (33)).

    Not for data whose structure is curved: a straight projection folds it over itself.

    Parameters
    ----------
    n_components : None, int, fraction or rule, default=None
        None keeps min(n, d). A fraction in (0, 1) keeps as many as hold that share of the
        variance. Rules: ``"mle"`` (Minka), ``"parallel"`` (Horn), ``"broken-stick"``,
        ``"gavish-donoho"``, ``"kaiser"``; see `component_panel`.
    standardize : bool, default=False
        Divide every column by its standard deviation. `inverse_transform` undoes it.
    whiten : bool, default=False
        Divide the scores by their standard deviations. Directions below the numerical rank become
        zero columns.
    solver : str, default="auto"
        ``"covariance"``, ``"gram"``, ``"svd"``, ``"deflation"`` or ``"krylov"``; ``"auto"``
        chooses by `plan`. scikit-learn's names are understood too.
    ddof : int, default=1
        Variances are divided by Σw − ddof: 1 as in scikit-learn and R, 0 as in the lecture notes.
    feature_weight : array (d,), optional
        Positive weights of the columns; they enter the scores as √w, as in FactoMineR.
    missing : {"error", "em"}, default="error"
        What to do about NaN. ``"em"`` fills them in by iterated, regularised low-rank
        reconstruction (see `missing_`).
    tol : float, optional
        Largest residual ‖Σv − λv‖ / λ₁ of a component; by default 1e-5. Exact solvers are far
        below it; ``"krylov"`` stops there, and float32 sums that would not reach it are redone in
        float64.
    random_state : int, Generator or None, default=None
        For ``"krylov"``'s first block and the rules that simulate. None is as good as 0: a fit
        gives the same bits every time.
    n_jobs : int or None, default=None
        Threads: None or −1 for all CPUs. The bits of the result do not depend on it.
    svd_solver : str, optional
        scikit-learn's name for `solver`.

    Attributes
    ----------
    components_ : array (k, d)
        Orthonormal rows, largest variance first; each one's largest loading is positive.
    explained_variance_, explained_variance_ratio_ : array (k,)
    singular_values_ : array (k,)
    captured_variance_, lost_variance_, total_variance_ : float
        Sums of the eigenvalues that were kept, not kept, and of all.
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
        How exact all this is.
    plan_ : Plan
    solver_ : str
    moments_ : Moments
        What `partial_fit` and `merge` add up; None after solvers that do not form it.
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
        """Find the components of `X`.

        Parameters
        ----------
        X : array, dataframe, pyarrow table, sparse matrix, Dask array or source, shape (n, d)
            A source (see `gnomon.source`) or a Dask array is read in blocks, never as a whole.
        y : ignored
        sample_weight : array (n,), optional
            Frequencies: an integer weight is that many copies of the row, 0 an absent row.
        like : PCA, optional
            A former model whose signs, and directions inside near-ties, are kept.
        memory : int or str, optional
            Bytes, or a size such as "1GB", that may be used beyond the table; by default what the
            machine has free. A source is read in one pass if d × d sums fit into it, and otherwise
            in a number of passes that `plan` tells. Workers of a Dask cluster are not counted.
        engine : Dask client or engine, optional
            Who works through the blocks; by default `n_jobs` threads of this process. The bits of
            the result do not depend on it.
        """
        self._forget()
        X = self._check_rows(X, engine, reset=True)
        n, d = X.shape
        weights = check_weights("sample_weight", sample_weight, n, of="row")
        used = n if weights is None else int(np.count_nonzero(weights))
        if used == 0:
            refuse("sample_weight", "have a weight above zero", "every weight zero")
        self._refuse_too_few(used)
        request = Request.parse(self.n_components, used, d)
        plan = self._plan(X, request, memory, engine)
        if isinstance(X, Source):
            X = X.within(None if memory is None else parse_bytes(memory))
        with Steps(self, total=None, name="step") as steps:

            def told(rows: int) -> None:
                steps.done(rows=rows, of=n)

            rows = self._read(X, weights, engine, told)
            problem = self._problem(rows, weights, request, step=steps.done)
            if self._fills(X):
                X, self.missing_ = impute(problem)
                problem = replace(problem, rows=self._read(X, weights))
            solution = self._solve(problem, plan)
        self._settle(solution, plan, like)
        if self.n_samples_ > 2:
            self._sample = solution.sample or self._measured_sample(problem.rows)
        warn_of_giants(self, self._centred_rows(X, engine), weights)
        return self

    def _measured_sample(self, rows: Rows) -> SampledRows:
        """Scores and errors of evenly spaced rows, a few of the table, for limits of new ones."""
        assert rows.sample is not None
        X, weights = rows.sample
        some = evenly_spaced(len(X), max(LEAST_SAMPLED, rows.shape[0] // 32))
        W = self.components_
        Z = replace(self._centred_rows(X[some]), work=np.dtype(np.float64)).read(0, some.size)
        scores = Z @ W.T
        Z -= scores @ W
        sq_errors = np.einsum("ij,ij->i", Z, Z)
        return SampledRows(scores, sq_errors, None if weights is None else weights[some])

    def _solve(self, problem: Problem, plan: Plan) -> Solution:
        """Solve in the table's own precision, and again in float64 where that is not enough."""
        solution = SOLVERS[plan.solver](problem)
        if _too_coarse(solution, problem):
            rows = problem.rows.anew(problem.weights, solution.moments.mean, "f8")
            again = SOLVERS[plan.solver](replace(problem, rows=rows))
            solution = replace(again, passes=solution.passes + again.passes)
        return solution

    def _read(
        self,
        X: Table | Source,
        weights: NDArray[np.float64] | None,
        engine: Any = None,
        done: Any = None,
    ) -> Rows:
        if isinstance(X, Source):
            workers = as_engine(engine, n_jobs=self.n_jobs)
            return read_source(X, workers, weights=weights, names=self._names(), done=done)
        return read_rows(X, weights=weights, names=self._names())

    @one_blas_thread()
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to those already seen. Any batches give what one `fit` of all rows gives.

        Only the moments are updated; components are computed when one of them is looked at.
        """
        first = not hasattr(self, "moments_")
        moments = None if first else self._mergeable("partial_fit")
        X = self._check(X, reset=first, min_rows=1)
        if self.missing == "em":
            refuse("missing", "be 'error' for partial_fit", "em", "Fill the rows in first.")
        if moments is None:  # an error now rather than when memory runs out
            make_plan(n=2, d=X.shape[1], request=Request(1), itemsize=8, solver="covariance")
        weights = check_weights("sample_weight", sample_weight, X.shape[0], of="row")
        # each batch about its own mean: the first may be unlike the rest (blank rows)
        batch = moments_of_rows(self._read(X, weights), weights, n_jobs=self.n_jobs)
        moments = batch if moments is None else moments + batch
        self._forget(keep_columns=True)
        self.moments_: Moments | None = moments
        return self

    def merge(self, other: "PCA") -> "PCA":
        """The model of both models' rows, with this model's parameters."""
        if not isinstance(other, PCA):
            refuse("other", "be a fitted PCA", type(other).__name__, kind=True)
        check_is_fitted(self)
        check_is_fitted(other)
        mine, yours = self._names(), other._names()
        if mine is not None and yours is not None and not np.array_equal(mine, yours):
            raise DataError(
                f"The two models were fitted on other columns, or in another order: {list(mine)} "
                f"and {list(yours)}."
            )
        both = self._mergeable("merge") + other._mergeable("merge")
        merged = type(self)(**self.get_params())
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(merged, name, getattr(self, name))
        merged.moments_ = both
        return merged

    def plan(self, X: Any, *, memory: int | str | None = None, engine: Any = None) -> Plan:
        """What `fit` would do with `X`, what it would cost, and why. Nothing is computed."""
        self._check_parameters()
        X = check_rows(type(self)(), X, engine, reset=True)
        return self._plan(X, Request.parse(self.n_components, *X.shape), memory, engine)

    def __getattr__(self, name: str) -> Any:
        """Solve for the components when they are first looked at after `partial_fit`."""
        if name in _SOLVED and self.__dict__.get("moments_") is not None:
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
        empty = Rows(np.empty((0, d), moments.shift.dtype), np.dtype(np.float64), moments.shift)
        solution = covariance.solve_moments(self._problem(empty, None, request), moments)
        plan = make_plan(n=moments.n, d=d, request=request, itemsize=8, solver="covariance")
        self._settle(solution, plan, None)

    def _check(self, X: Any, *, reset: bool, min_rows: int) -> Table:
        self._check_parameters()
        return check_table(self, X, reset=reset, min_rows=min_rows)

    def _check_rows(self, X: Any, engine: Any, *, reset: bool) -> Table | Source:
        self._check_parameters()
        return check_rows(self, X, engine, reset=reset)

    def _check_parameters(self) -> None:
        for name in ("standardize", "whiten"):
            check_choice(name, getattr(self, name), (False, True))
        check_choice("solver", self.solver, SOLVER_NAMES)
        if self.svd_solver is not None:
            check_choice("svd_solver", self.svd_solver, SOLVER_NAMES)
            if self.solver not in ("auto", self.svd_solver):
                refuse("svd_solver", "agree with `solver`", self.svd_solver, "Give one of them.")
        check_choice("missing", self.missing, ("error", "em"))
        check_integer("ddof", self.ddof, 0)
        if self.tol is not None:
            check_real("tol", self.tol, 0.0, 1.0, open_low=True)

    def _refuse_too_few(self, n: int) -> None:
        if n < 2:
            refuse("X", "have at least 2 rows for a variance", f"{n} sample", "Add rows.")

    def _plan(
        self,
        X: Table | Source,
        request: Request,
        memory: int | str | None = None,
        engine: Any = None,
    ) -> Plan:
        solver = self.solver if self.svd_solver is None else self.svd_solver
        n, d = X.shape
        stored = int(X.nnz) if hasattr(X, "nnz") else None
        filled = self._fills(X)
        threads, blocks, partitions, processes = thread_count(self.n_jobs), None, 0, 0
        if isinstance(X, Source):
            workers = as_engine(engine, n_jobs=self.n_jobs)
            threads, processes, partitions = workers.workers, workers.processes, len(X.partitions)
            # one for each thread, one that waits; as the file has it, and as rows
            blocks = 2 * (threads + 1 + 2 * processes) * X.block_bytes
        return make_plan(
            n=n,
            d=d,
            request=request,
            itemsize=8 if filled else working_type(X).itemsize,
            stored=stored,
            solver=solver,
            memory=None if memory is None else parse_bytes(memory),
            threads=threads,
            filled=filled,
            blocks=blocks,
            partitions=partitions,
            processes=processes,
        )

    def _fills(self, X: Table | Source) -> bool:
        """Whether `fit` works on a filled-in float64 copy of `X`; integers have no gaps."""
        if self.missing != "em" or X.dtype.kind != "f":
            return False
        if isinstance(X, Source):
            raise UnavailableError(
                "`missing='em'` needs the whole table in memory, not a source. Fill the rows in "
                "first, or leave out those with gaps."
            )
        if is_sparse(X):
            raise DataError(
                "`missing='em'` needs a dense table; got a sparse one. Use X.toarray()."
            )
        return True

    def _problem(
        self,
        rows: Rows,
        weights: NDArray[np.float64] | None,
        request: Request,
        step: Any = lambda **_: False,
    ) -> Problem:
        d = rows.shape[1]
        return Problem(
            rows=rows,
            weights=weights,
            request=request,
            standardize=self.standardize,
            feature_weight=check_weights(
                "feature_weight", self.feature_weight, d, of="column", positive=True
            ),
            ddof=int(self.ddof),
            tol=DEFAULT_TOL if self.tol is None else float(self.tol),
            random=random_generator(self.random_state),
            n_jobs=self.n_jobs,
            step=step,
            passes=SOURCE_PASSES if isinstance(rows, Stream) else None,
        )

    def _names(self) -> NDArray[Any] | None:
        """Names of the columns, if the table had any."""
        return getattr(self, "feature_names_in_", None)

    def _forget(self, *, keep_columns: bool = False) -> None:
        """Drop what an earlier fit left."""
        for name in [*_SOLVED, "moments_", "missing_", "_sample", "_held_out_errors"]:
            self.__dict__.pop(name, None)
        if not keep_columns:
            self.__dict__.pop("feature_names_in_", None)

    def _settle(self, solution: Solution, plan: Plan, like: "PCA | None") -> None:
        """Turn a solver's answer into the fitted attributes."""
        tol = DEFAULT_TOL if self.tol is None else float(self.tol)
        moments, k = solution.moments, solution.variances.size
        self.certificate_ = certify(
            solver=plan.solver,
            components=solution.components,
            variances=solution.variances,
            spectrum=solution.spectrum,
            residuals=solution.residuals,
            formation=solution.formation,
            whole=solution.whole,
            passes=solution.passes,
            tol=tol,
        )
        # Only ties at the level of rounding: inside those, any basis is as good as another.
        rounding = np.full(k, solution.formation)
        groups = inseparable_groups(solution.spectrum, rounding, k)
        components = settle(solution.components, groups)
        if like is not None:
            check_is_fitted(like)
            theirs = like.components_.shape[1]
            if theirs != components.shape[1]:
                refuse("like", f"have {components.shape[1]} columns", theirs)
            components = align_to(components, like.components_, groups)
        self.plan_, self.solver_, self._whole = plan, plan.solver, solution.whole
        self.moments_ = moments if moments.scatter.ndim == 2 else None
        self.n_samples_, self.n_components_ = moments.size, k
        self._n_features_out = k
        self._shift, self._offset, self._exponent = moments.shift, moments.offset, moments.exponent
        self.mean_ = moments.mean
        self._set_variances(solution, moments, components)
        self.components_ = components  # last: `__getattr__` takes it for the sign that all is there
        warn_of_solution(self, solution)

    def _set_variances(
        self, solution: Solution, moments: Moments, components: NDArray[np.float64]
    ) -> None:
        """Variances in the user's units; squares of extreme numbers may be infinite or zero."""
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
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "em"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _too_coarse(solution: Solution, problem: Problem) -> bool:
    """Whether rounding hides a component that is wanted, and a second look would show it.

    That is so in float32, and in float64 when the shift was far from the mean.
    """
    if solution.scaling.total <= 0:
        return False
    smallest, largest = solution.variances[-1], solution.variances[0]
    hidden = solution.formation > min(FINEST * smallest, problem.tol * largest)
    least = 10 * np.finfo(np.float64).eps * solution.scaling.total
    return bool(hidden and solution.formation > least)
