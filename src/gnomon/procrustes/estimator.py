"""The Procrustes estimator: aligns one set of points to another, and moves new points along."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.threads import thread_count
from gnomon.engine import Engine, as_engine
from gnomon.engine.paired_tables import PairedSource, pair_by_row
from gnomon.errors import DataError, UnavailableError, refuse
from gnomon.inputs import about_table, check_choice, check_weights
from gnomon.models.estimators import estimator_state, new_estimator
from gnomon.models.registry import Saved
from gnomon.numeric.apply import check_columns, check_rows
from gnomon.procrustes.batch import Batch, fit_batch
from gnomon.procrustes.cross_moments import CrossMoments
from gnomon.procrustes.fit_warnings import warn_of_similarity
from gnomon.procrustes.leave_one_out import leave_one_out
from gnomon.procrustes.matched_tables import open_matched, pair_tables
from gnomon.procrustes.moved_rows import SimilarityTransformer
from gnomon.procrustes.procrustes_schema import FIELDS, SOLVED, unpack
from gnomon.procrustes.robust import ROBUST, fit_robust
from gnomon.procrustes.rotation_certificate import certify_rotation
from gnomon.procrustes.row_pairs import PairView, Weights, view_pair
from gnomon.procrustes.similarity import Rules, Similarity, fit_similarity
from gnomon.procrustes.solve import REFLECTIONS

SCALINGS = (False, True, "norm-ratio")

# Products of one pass over the residuals up to which `fit` computes them for every row. Beyond,
# it would take twice as long; `residuals` computes them on demand.
CHEAP = 2**31

_OF_ROWS = frozenset({"residuals_", "weights_"})


class _NoRowsError(UnavailableError, AttributeError):
    """Access to an attribute that needs the rows themselves; `hasattr` is False for it."""


class Procrustes(SimilarityTransformer, Saved, BaseEstimator):
    """Align X to Y: rows are points, and ``fit(X, Y)`` finds R, s, t with s·XR + t ≈ Y.

    R is the orthogonal matrix with the least ‖XR − Y‖: with XᵀY = UΣVᵀ it is UVᵀ. The lecture notes
    write points as columns, WXᵀ ≈ Yᵀ, and find W = VUᵀ = Rᵀ, the same map ([Selitskii 2025], eqs.
    (60)–(66)). Row i of X belongs to row i of Y; `gnomon.align` joins tables by ids. R's programs
    and SciPy's `spatial.procrustes` move their second argument onto the first.

    Not for sets whose points are not paired, nor for nonlinear maps. Fewer than min(dx, dy) + 2
    rows are fitted with a warning: `disparity_` then says little, and nothing for two rows.

    Parameters
    ----------
    reflection : {"allow", "forbid", "force"}, default="allow"
        Whether R may reflect the points. ``"forbid"`` finds the best proper rotation, which is
        not the best R with its sign changed afterwards.
    scaling : {False, True, "norm-ratio"}, default=False
        True: the least-squares scale, never negative. ``"norm-ratio"``: the ratio of the
        norms, so that fitting Y onto X is the inverse.
    centering : bool, default=True
        Whether to fit a translation; if not, the sets rotate about the origin.
    robust : {False, "huber", "tukey"}, default=False
        Downweight rows that moved on their own and would distort the fit; see `weights_`.
    prior : array (dx, max(dx, dy)), optional
        Where the data do not determine R (fewer points than columns, a flat cloud), the minimiser
        nearest to this; by default the identity.
    n_jobs : int or None, default=None
        Threads: None or −1 for all CPUs. They do not change the bits of the result.

    Attributes
    ----------
    rotation_ : array (dx, D), D = max(dx, dy)
        R; its rows are orthonormal, so distances are preserved. The narrower table is padded with
        columns of zeros; then only ``reflection="allow"`` is defined.
    scale_ : float
    translation_ : array (D,)
        y ≈ s·xR + t, with s = `scale_`, R = `rotation_` and t = `translation_`.
    disparity_ : float
        1 − t² / (‖X‖²‖Y‖²), t = tr(RᵀXᵀY): 0 for the same shape, at most 1; independent
        of the scaling, and symmetric in X and Y. ``sqrt(1 - disparity_)`` is the
        Procrustes correlation.
    residual_sum_ : float
        Σ w ‖s·xR + t − y‖², the sum that was minimised.
    rmsd_ : float
        Root of the (weighted) mean of the squared distances.
    residuals_ : array (n,)
        Distance of each row from its partner. Not after `partial_fit`, nor if it would double
        the time of a large fit: `residuals` computes them for any rows.
    weights_ : array (n,) or None
        Weight of each row in [0, 1] if `robust`; multiplies `sample_weight`.
    reflected_ : bool or None
        Whether R reflects the points; None if X and Y have different widths.
    reflection_margin_ : float
        Correlation of the best reflection less that of the best rotation: positive if the
        data prefer a reflection, 0 if they do not determine it. Independent of `reflection`.
    angle_ : float or None
        In the plane, in radians: the rotation, counter-clockwise; for a reflection the direction
        of the mirror axis. None in other dimensions.
    rank_ : int
        Numerical rank of XᵀY. Below dx, R is not unique.
    singular_values_ : array (dx,)
        Singular values of XᵀY relative to ‖X‖‖Y‖, the last negative if its sign was flipped.
        Their sum is the Procrustes correlation.
    certificate_ : RotationCertificate
        Accuracy of R.
    similarity_ : Similarity
        The map as plain numbers, for other processes.
    moments_ : CrossMoments or None
        Moments for `partial_fit` and `merge`; None after a robust fit.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import Procrustes
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [3.0, 2.0]])
    >>> Y = 3 * X @ [[0.0, 1.0], [-1.0, 0.0]] + [5.0, 5.0]
    >>> model = Procrustes(scaling=True).fit(X, Y)
    >>> round(model.scale_, 6), round(model.angle_ / np.pi, 6), model.reflected_
    (3.0, 0.5, False)
    >>> model.transform([[1.0, 1.0]]).round(6).tolist()
    [[2.0, 8.0]]
    """

    def __init__(
        self,
        *,
        reflection: str = "allow",
        scaling: bool | str = False,
        centering: bool = True,
        robust: bool | str = False,
        prior: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.reflection = reflection
        self.scaling = scaling
        self.centering = centering
        self.robust = robust
        self.prior = prior
        self.n_jobs = n_jobs

    @one_blas_thread()
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        id: str | None = None,
        engine: Any = None,
    ) -> Self:
        """Find the map that moves the rows of X (n, dx) onto those of Y (n, dy).

        Parameters
        ----------
        X : array, dataframe, source or Dask array, shape (n, dx)
        y : array, dataframe, source or Dask array, shape (n, dy)
            Y, under the parameter name of scikit-learn's targets. Row i of X belongs to row i
            of Y. A 1-D Y is one column. Tables that are not in memory are read in blocks: twice,
            plus a few rows; a robust fit takes two passes per step.
        sample_weight : array (n,), optional
            Frequencies: an integer weight counts as that many copies, 0 as an absent pair.
        id : str, optional
            A column of numbers, ascending in both tables, by which rows are paired. Results per
            row are then in the order of the shared ids.
        engine : Dask client or engine, optional
            Engine that reads the tables; by default `n_jobs` threads of this process. It does
            not change the bits of the result.
        """
        self._forget()
        workers = as_engine(engine, n_jobs=self.n_jobs)
        table = self._pair(X, y, id, workers, reset=True)
        weights = self._weights(sample_weight, table)
        rules = self._rules(*table.widths)
        view = view_pair(table, workers, weights, names=self._names())
        own: Weights = None
        sq: NDArray[np.float64] | None
        if self.robust:
            self._refuse_too_few(table.rows if weights is None else int(np.count_nonzero(weights)))
            found, sq, own = fit_robust(view, weights, rules, str(self.robust))
        else:
            found, sq = self._fit_pair(view, weights, rules)
        self._settle(found)
        self.weights_ = own
        self.moments_: CrossMoments | None = found.moments if own is None else None
        self._n_rows = table.rows
        if sq is not None:
            distances = np.sqrt(sq, out=sq)
            self.residuals_ = np.ldexp(distances, found.unit) if found.unit else distances
        return self

    @property
    def similarity_(self) -> Similarity:
        """The map as plain numbers with its methods for arrays, sent to workers."""
        return self._frame

    def _fit_pair(
        self, view: PairView, weights: Weights, rules: Rules
    ) -> tuple[Similarity, NDArray[np.float64] | None]:
        """Fit the map, and each row's squared residual if that is cheap or needed."""
        moments = view.moments(weights)
        self._refuse_too_few(moments.x.n)
        found = fit_similarity(moments, rules)
        if found.rotation.rank < _most_rank(found) and not view.is_float64:
            # Rounding of float32 products hides directions that the rows contain.
            found = fit_similarity(view.in_float64().moments(weights), rules)
        dx, dy = view.table.widths
        if view.rows * dx * max(dx, dy) > CHEAP and not found.is_close():
            return found, None
        return found.with_rows(view, weights, keep=False)

    @one_blas_thread()
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add pairs of rows to those already seen. Any batches give the same result as one `fit`.

        Only the moments are kept; the map is computed on first access. `residuals_` and
        `robust` need the rows themselves and are refused.
        """
        if self.robust:
            refuse("robust", "be False for partial_fit, which keeps no rows", self.robust)
        first = not hasattr(self, "moments_")
        moments = None if first else self._mergeable("partial_fit")
        workers = as_engine(n_jobs=self.n_jobs)
        table = self._pair(X, y, None, workers, reset=first)
        weights = self._weights(sample_weight, table)
        self._rules(*table.widths)
        shifts = (None, None) if moments is None else (moments.x.shift, moments.y.shift)
        if moments is not None and table.widths[1] != moments.y.shift.size:
            refuse("Y", f"have {moments.y.shift.size} columns, as before", table.widths[1])
        view = view_pair(table, workers, weights, shifts=shifts, names=self._names())
        batch = view.moments(weights)
        moments = batch if moments is None else moments + batch
        self._forget(keep_columns=True)
        self.moments_ = moments
        return self

    @one_blas_thread()
    def merge(self, other: "Procrustes | CrossMoments") -> "Procrustes":
        """Model of the pairs of both models, with the parameters of this one.

        `other` may also be `CrossMoments` computed elsewhere; then this model need not
        be fitted.
        """
        if not isinstance(other, Procrustes | CrossMoments):
            refuse("other", "be a Procrustes or CrossMoments", type(other).__name__, kind=True)
        theirs = other if isinstance(other, CrossMoments) else other._mergeable("merge")
        if self.robust:
            refuse("robust", "be False for merge, which sees no rows", self.robust)
        names, others = self._names(), getattr(other, "feature_names_in_", None)
        if names is not None and others is not None and not np.array_equal(names, others):
            raise DataError(
                f"The two models were fitted on different columns, or in another order: "
                f"{list(names)} and {list(others)}."
            )
        merged = type(self)(**self.get_params())
        merged.n_features_in_ = theirs.x.shift.size
        if hasattr(self, "moments_") or isinstance(other, Procrustes):
            mine, merged.n_features_in_ = self._mergeable("merge"), self.n_features_in_
            theirs = mine + theirs
        if names is not None:
            merged.feature_names_in_ = names
        merged.moments_ = theirs
        return merged

    @one_blas_thread()
    def loo_residuals(
        self,
        X: Any,
        Y: Any,
        sample_weight: Any = None,
        *,
        id: str | None = None,
        engine: Any = None,
    ) -> NDArray[np.float64]:
        """Distance of each row from its partner under the map fitted to all other rows, (n,).

        One small decomposition per row, of the moments without that row: fast up to about
        ten columns. Refits `X` and `Y` with this model's parameters; parameters of `fit`.
        """
        if self.robust:
            refuse("robust", "be False for loo_residuals", self.robust, "Look at `weights_`.")
        plain = type(self)(**self.get_params())
        workers = as_engine(engine, n_jobs=self.n_jobs)
        table = plain._pair(X, Y, id, workers, reset=True)
        weights = self._weights(sample_weight, table)
        view = view_pair(table, workers, weights, names=plain._names())
        return leave_one_out(view.in_float64(), weights, plain._rules(*table.widths))

    @one_blas_thread()
    def fit_many(self, X: Any, Y: Any) -> Batch:
        """Fit many small problems at once: `X` (p, n, dx) onto `Y` (p, n, dy), pair by pair.

        In the plane no decomposition is needed. This model itself is not fitted.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(5, 10, 2))
        >>> many = Procrustes().fit_many(X, -X)
        >>> many.rotation.shape, many.disparity.max() < 1e-12
        ((5, 2, 2), np.True_)
        """
        if self.robust:
            refuse("robust", "be False for fit_many", self.robust, "Fit them one by one.")
        X, Y = np.asarray(X), np.asarray(Y)
        for name, Z in (("X", X), ("Y", Y)):
            if Z.ndim != 3 or Z.dtype.kind not in "biuf" or 0 in Z.shape:
                refuse(name, "be numbers of shape (problems, rows, columns)", f"shape {Z.shape}")
        if X.shape[:2] != Y.shape[:2]:
            raise DataError(
                f"X and Y must have equal shapes (p, n); got {X.shape[:2]} and {Y.shape[:2]}."
            )
        self._refuse_too_few(X.shape[1])
        return fit_batch(X, Y, self._rules(X.shape[2], Y.shape[2]), n_jobs=self.n_jobs)

    def __getattr__(self, name: str) -> Any:
        """Solve for the map when it is first accessed after `partial_fit`."""
        if name in SOLVED and self.__dict__.get("moments_") is not None:
            if "rotation_" not in self.__dict__:
                self._solve_moments()
            if name in self.__dict__:
                return self.__dict__[name]
        if name in _OF_ROWS and "moments_" in self.__dict__:
            why = "would double the time of this fit, or take too much memory"
            if "_n_rows" not in self.__dict__:
                why = "needs the rows themselves, which `partial_fit` does not keep"
            raise _NoRowsError(f"`{name}` {why}. Use `residuals(X, Y)` for the distance of rows.")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @one_blas_thread()
    def _solve_moments(self) -> None:
        moments: CrossMoments = self.__dict__["moments_"]
        self._refuse_too_few(moments.x.n)
        self._settle(fit_similarity(moments, self._rules(*moments.cross.shape)))

    def _settle(self, found: Similarity) -> None:
        """Convert a map in units of its moments into the fitted attributes, in the user's units."""
        x, rotation, unit = found.moments.x, found.rotation, found.unit
        R, norms = rotation.matrix, found.norms
        self._frame, self._n_features_out = found, R.shape[1]
        self.n_samples_ = x.size
        self.rank_, self.reflected_ = rotation.rank, rotation.reflected
        self.reflection_margin_ = rotation.margin / norms if norms > 0 else 0.0
        self.singular_values_ = rotation.singular / norms if norms > 0 else rotation.singular
        self.disparity_ = found.disparity
        with np.errstate(over="ignore", under="ignore"):
            self.scale_ = float(np.ldexp(found.scale, unit - x.exponent))
            self.residual_sum_ = float(np.ldexp(found.residual_sum, 2 * unit))
            self.rmsd_ = float(np.ldexp(np.sqrt(found.residual_sum / x.weight), unit))
        self.translation_ = np.zeros(R.shape[1])
        centre = found.centre
        if centre is not None:
            mean = np.ldexp(x.mean, -x.exponent)
            moved = np.ldexp(found.scale * (mean @ R), unit)
            self.translation_ = centre - moved
        self.angle_ = _angle(R, rotation.reflected)
        self.certificate_ = certify_rotation(found)
        self.rotation_ = R  # set last: `__getattr__` tests it
        warn_of_similarity(found)

    def _pair(self, X: Any, Y: Any, id: str | None, engine: Engine, *, reset: bool) -> PairedSource:
        """Check both tables against this model's columns, or as its first ones if `reset`."""
        self._check_parameters()
        if Y is None:
            raise DataError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. "
                "fit(X, Y) moves X onto Y."
            )
        if id is None:
            with about_table("X"):
                left = check_rows(self, X, reset=reset, sparse=False)
            return pair_by_row(left, open_matched(Y, "Y"))
        table = pair_tables(X, Y, id, engine)
        names = table.names_of(0)
        known = None if names is None else names.tolist()
        check_columns(self, table.widths[0], known, reset=reset)
        return table

    def _weights(self, sample_weight: Any, table: PairedSource) -> Weights:
        if sample_weight is not None and table.ids is not None:
            must = "be None if rows are joined by `id`, whose number is not known before"
            refuse("sample_weight", must, "weights")
        weights = check_weights("sample_weight", sample_weight, table.rows, of="row")
        if weights is not None and not weights.any():
            refuse("sample_weight", "have a weight above zero", "every weight zero")
        return weights

    def _check_parameters(self) -> None:
        check_choice("reflection", self.reflection, REFLECTIONS)
        check_choice("scaling", self.scaling, SCALINGS)
        check_choice("centering", self.centering, (False, True))
        check_choice("robust", self.robust, (False, *ROBUST))
        if self.n_jobs is not None:
            thread_count(self.n_jobs)

    def _rules(self, dx: int, dy: int) -> Rules:
        """Parameters for tables of these widths."""
        self._check_parameters()
        if dx != dy and self.reflection != "allow":
            refuse(
                "reflection",
                f"be 'allow' where X and Y have different widths ({dx} and {dy})",
                self.reflection,
                "A reflection can use the columns that only one of them has. Reduce the wider "
                "table first, for instance by PCA.",
            )
        prior, shape = None, (dx, max(dx, dy))
        if self.prior is not None:
            prior = np.asarray(self.prior)
            must = f"be finite numbers of shape {shape}"
            if prior.dtype.kind not in "biuf":
                refuse("prior", must, f"dtype {prior.dtype}", kind=True)
            prior = prior.astype(np.float64)
            if prior.shape != shape or not np.isfinite(prior).all():
                refuse("prior", must, f"shape {prior.shape}" if prior.shape != shape else "NaN")
        return Rules(self.reflection, self.scaling, self.centering, prior)

    def _refuse_too_few(self, n: int) -> None:
        if n < 2 and self.centering:
            refuse(
                "X",
                "have at least 2 rows when `centering`",
                f"{n} sample",
                "Add rows, or rotate about the origin with `centering=False`.",
            )

    def _mergeable(self, what: str) -> CrossMoments:
        moments: CrossMoments | None = self.__dict__.get("moments_")
        if moments is None:
            check_is_fitted(self)
            raise UnavailableError(
                f"{what} adds up moments, which a robust fit does not have: its weights depend on "
                "all rows at once. Fit with `robust=False`."
            )
        return moments

    def _forget(self, *, keep_columns: bool = False) -> None:
        """Delete the attributes of an earlier fit."""
        for name in [*SOLVED, *_OF_ROWS, "moments_", "_n_rows"]:
            self.__dict__.pop(name, None)
        if not keep_columns:
            self.__dict__.pop("feature_names_in_", None)

    def _to_state(self) -> dict[str, Any]:
        check_is_fitted(self)
        return estimator_state(self, FIELDS)

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Self:
        return new_estimator(cls, state, unpack)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _most_rank(found: Similarity) -> int:
    """Largest rank that XᵀY can have."""
    dx, dy = found.moments.cross.shape
    return min(int(dx), int(dy), found.moments.x.n - int(found.rules.centering))


def _angle(R: NDArray[np.float64], reflected: bool | None) -> float | None:
    if R.shape != (2, 2) or reflected is None:
        return None
    turn = float(np.arctan2(R[0, 1], R[0, 0]))
    return turn / 2 if reflected else turn
