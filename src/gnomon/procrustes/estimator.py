"""The Procrustes estimator: lays one set of points on another, and carries new points along."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.threads import thread_count
from gnomon.engine import Engine, as_engine
from gnomon.engine.pairs import PairedSource, pair_by_row
from gnomon.errors import DataError, UnavailableError, refuse
from gnomon.inputs import about_table, check_choice, check_weights
from gnomon.models.classes import Saved
from gnomon.models.estimators import estimator_state, new_estimator
from gnomon.numeric.apply import check_columns, check_rows
from gnomon.numeric.moments import CrossMoments
from gnomon.procrustes.batch import Batch, fit_batch
from gnomon.procrustes.certificate import certify_rotation
from gnomon.procrustes.leave_one_out import leave_one_out
from gnomon.procrustes.pairs import PairView, Weights, view_pair
from gnomon.procrustes.robust import ROBUST, fit_robust
from gnomon.procrustes.similarity import Rules, Similarity, fit_similarity
from gnomon.procrustes.solve import REFLECTIONS
from gnomon.procrustes.state import FIELDS, unpack
from gnomon.procrustes.tables import open_table, pair_tables
from gnomon.procrustes.transform import SimilarityTransformer
from gnomon.procrustes.warn import warn_of_similarity

SCALINGS = (False, True, "norm-ratio")

# Products of one pass over the residuals up to which `fit` computes them for every row. Beyond,
# it would take twice as long; `residuals` computes them when they are asked for.
CHEAP = 2**31

# What is computed when it is first looked at after `partial_fit`.
_SOLVED = frozenset(
    {
        "rotation_",
        "scale_",
        "translation_",
        "disparity_",
        "residual_sum_",
        "rmsd_",
        "reflected_",
        "reflection_margin_",
        "angle_",
        "rank_",
        "singular_values_",
        "certificate_",
        "n_samples_",
        "_frame",
        "_n_features_out",
    }
)
_OF_ROWS = frozenset({"residuals_", "weights_"})


class _NoRowsError(UnavailableError, AttributeError):
    """An attribute that needs the rows themselves; `hasattr` is False for it."""


class Procrustes(SimilarityTransformer, Saved, BaseEstimator):
    """Moves X onto Y: rows are points, and ``fit(X, Y)`` finds R, s, t with s·XR + t ≈ Y.

    R is the orthogonal matrix with the least ‖XR − Y‖: with XᵀY = UΣVᵀ it is UVᵀ. The lecture notes
    write points as columns, WXᵀ ≈ Yᵀ, and find W = VUᵀ = Rᵀ, the same map ([Selitskii 2025], eqs.
    (60)–(66)). Row i of X belongs to row i of Y; `gnomon.align` joins tables by ids. R's programs
    and SciPy's `spatial.procrustes` move their second argument onto the first.

    Not for sets whose points are not paired, nor for maps that bend. Fewer rows than min(dx, dy)
    and 2 are fitted and warned of: `disparity_` then says little, and of two rows nothing.

    Parameters
    ----------
    reflection : {"allow", "forbid", "force"}, default="allow"
        Whether R may turn the points over. ``"forbid"`` finds the best rotation proper, which is
        not the best R with its sign changed afterwards.
    scaling : {False, True, "norm-ratio"}, default=False
        True: the scale with the least squares, never negative. ``"norm-ratio"``: the ratio of the
        norms, so that fitting Y onto X is the inverse.
    centering : bool, default=True
        Whether a translation is found too; if not, the sets turn about the origin.
    robust : {False, "huber", "tukey"}, default=False
        Weigh down rows that moved on their own, so that they do not drag the frame; see `weights_`.
    prior : array (dx, max(dx, dy)), optional
        Where the data leave R open (fewer points than columns, a flat cloud), the minimiser nearest
        to this; the identity by default.
    n_jobs : int or None, default=None
        Threads: None or −1 for all CPUs. The bits of the result do not depend on it.

    Attributes
    ----------
    rotation_ : array (dx, D), D = max(dx, dy)
        R; its rows are orthonormal, so distances are kept. The narrower table is taken to have
        columns of zeros; then only ``reflection="allow"`` has a meaning.
    scale_ : float
    translation_ : array (D,)
        y ≈ s·xR + t, with s = `scale_`, R = `rotation_` and t = `translation_`.
    disparity_ : float
        1 − t² / (‖X‖²‖Y‖²), t = tr(RᵀXᵀY): 0 when the shapes are the same, at most 1; the same
        number whatever the scaling, and with X and Y exchanged. ``sqrt(1 - disparity_)`` is the
        Procrustes correlation.
    residual_sum_ : float
        Σ w ‖s·xR + t − y‖², the sum that was minimised.
    rmsd_ : float
        Root of the (weighted) mean of the squared distances.
    residuals_ : array (n,)
        Distance of each row from its partner. Not after `partial_fit`, nor where it would double
        the time of a large fit: `residuals` computes them for any rows.
    weights_ : array (n,) or None
        Each row's weight in [0, 1] when `robust`; `sample_weight` comes on top.
    reflected_ : bool or None
        Whether R turns the points over; None where X and Y have different widths.
    reflection_margin_ : float
        How much better the best reflection correlates than the best rotation: positive when the
        data prefer a reflection, 0 when they cannot tell. Whatever `reflection` says.
    angle_ : float or None
        In the plane, in radians: the turn, counter-clockwise; for a reflection the direction of the
        mirror. None in other dimensions.
    rank_ : int
        Numerical rank of XᵀY. Below dx, R is not unique.
    singular_values_ : array (dx,)
        Of XᵀY relative to ‖X‖‖Y‖, the last negative where its sign was turned. Their sum is the
        Procrustes correlation.
    certificate_ : RotationCertificate
        How exact R is.
    similarity_ : Similarity
        The map as plain numbers, for other processes.
    moments_ : CrossMoments or None
        What `partial_fit` and `merge` add up; None after a robust fit.

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
            Y, by the name that scikit-learn gives to what is fitted to. Row i of X belongs to row i
            of Y. A 1-D Y is one column. Tables that are not in memory are read in blocks: twice and
            for a few rows, a robust fit in two passes a step.
        sample_weight : array (n,), optional
            Frequencies: an integer weight is that many copies of the pair, 0 an absent pair.
        id : str, optional
            A column of numbers, ascending in both tables, by which rows belong together. What is
            known of rows then is in the order of those that both tables hold.
        engine : Dask client or engine, optional
            Who works through the tables; by default `n_jobs` threads of this process. The bits of
            the result do not depend on it.
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
        """The map as plain numbers, with what it does to arrays: what workers get."""
        return self._frame

    def _fit_pair(
        self, view: PairView, weights: Weights, rules: Rules
    ) -> tuple[Similarity, NDArray[np.float64] | None]:
        """The map, and each row's squared residual where that is cheap or needed."""
        moments = view.moments(weights)
        self._refuse_too_few(moments.x.n)
        found = fit_similarity(moments, rules)
        if found.rotation.rank < _most_rank(found) and not view.is_float64:
            # Rounding of float32 products hides directions that the rows hold.
            found = fit_similarity(view.in_float64().moments(weights), rules)
        dx, dy = view.table.widths
        if view.rows * dx * max(dx, dy) > CHEAP and not found.is_close():
            return found, None
        return found.with_rows(view, weights, keep=False)

    @one_blas_thread()
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add pairs of rows to those already seen. Any batches give what one `fit` of all gives.

        Only the moments are kept; the map is computed when it is looked at. `residuals_` and
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
        """The model of both models' pairs, with this model's parameters.

        `other` may also be the `CrossMoments` of pairs counted elsewhere; then this model need not
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
                f"The two models were fitted on other columns, or in another order: {list(names)} "
                f"and {list(others)}."
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

        One small decomposition a row, of moments that the row was taken out of: quick up to about
        ten columns. Fits `X` and `Y` anew with this model's parameters; those here are as in `fit`.
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
                f"X and Y must hold as many problems and rows; got {X.shape[:2]} and {Y.shape[:2]}."
            )
        self._refuse_too_few(X.shape[1])
        return fit_batch(X, Y, self._rules(X.shape[2], Y.shape[2]), n_jobs=self.n_jobs)

    def __getattr__(self, name: str) -> Any:
        """Solve for the map when it is first looked at after `partial_fit`."""
        if name in _SOLVED and self.__dict__.get("moments_") is not None:
            if "rotation_" not in self.__dict__:
                self._solve_moments()
            if name in self.__dict__:
                return self.__dict__[name]
        if name in _OF_ROWS and "moments_" in self.__dict__:
            why = "would double the time of this fit, or take too much memory"
            if "_n_rows" not in self.__dict__:
                why = "needs the rows themselves, which are not kept of batches"
            raise _NoRowsError(f"`{name}` {why}. Use `residuals(X, Y)` for the distance of rows.")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @one_blas_thread()
    def _solve_moments(self) -> None:
        moments: CrossMoments = self.__dict__["moments_"]
        self._refuse_too_few(moments.x.n)
        self._settle(fit_similarity(moments, self._rules(*moments.cross.shape)))

    def _settle(self, found: Similarity) -> None:
        """Turn a map in units of its moments into the fitted attributes, in the user's units."""
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
        self.rotation_ = R  # last: `__getattr__` takes it for the sign that all is there
        warn_of_similarity(found)

    def _pair(self, X: Any, Y: Any, id: str | None, engine: Engine, *, reset: bool) -> PairedSource:
        """Both tables, checked: as those of this model's columns, or its first if `reset`."""
        self._check_parameters()
        if Y is None:
            raise DataError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. "
                "fit(X, Y) moves X onto Y."
            )
        if id is None:
            with about_table("X"):
                left = check_rows(self, X, reset=reset, sparse=False)
            return pair_by_row(left, open_table(Y, "Y"))
        table = pair_tables(X, Y, id, engine)
        names = table.names_of(0)
        known = None if names is None else names.tolist()
        check_columns(self, table.widths[0], known, reset=reset)
        return table

    def _weights(self, sample_weight: Any, table: PairedSource) -> Weights:
        if sample_weight is not None and table.ids is not None:
            must = "be None where rows are joined by `id`, which says not how many there are"
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
                "A flip can hide in the columns that only one of them has. Reduce the wider table "
                "first, for instance by PCA.",
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
                "Add rows, or turn about the origin with `centering=False`.",
            )

    def _mergeable(self, what: str) -> CrossMoments:
        moments: CrossMoments | None = self.__dict__.get("moments_")
        if moments is None:
            check_is_fitted(self)
            raise UnavailableError(
                f"{what} adds up moments, which a robust fit does not have: its weights belong to "
                "all rows at once. Fit with `robust=False`."
            )
        return moments

    def _forget(self, *, keep_columns: bool = False) -> None:
        """Drop what an earlier fit left."""
        for name in [*_SOLVED, *_OF_ROWS, "moments_", "_n_rows"]:
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
    """The rank that XᵀY can have at most."""
    dx, dy = found.moments.cross.shape
    return min(int(dx), int(dy), found.moments.x.n - int(found.rules.centering))


def _angle(R: NDArray[np.float64], reflected: bool | None) -> float | None:
    if R.shape != (2, 2) or reflected is None:
        return None
    turn = float(np.arctan2(R[0, 1], R[0, 0]))
    return turn / 2 if reflected else turn
