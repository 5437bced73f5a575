"""What R users expect of a PCA and Python lacks.

Which rows and columns made a component, how well each is shown by it, how other columns relate to
it, which rows do not fit the model, and how sure all that is.

Letters, for all formulas of this file: a row x becomes the *working* row z = (x − μ)/scale · √w
with the column weights w (`gnomon.pca.problem`); W (k, d) holds the components, t = Wz the scores
of the row, λ the variances of the scores. Whitening changes none of these numbers. All sums are in
float64; a row's numbers do not depend on the rows beside it. Where a variance is zero, so that a
share of it is 0/0, the share is 0.

Sources: [Lê, Josse & Husson 2008] for contributions, cos² and v-tests, as in FactoMineR;
[Jackson 1991] for T² and its limits; [Box 1954] for the limit of the squared prediction error;
[Tipping & Bishop 1999] for the likelihood.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, gammainccinv
from sklearn.utils.validation import check_is_fitted

from gnomon.errors import MissingValueError, UnavailableError, refuse
from gnomon.inputs import Table, check_choice, check_real, check_table, check_weights
from gnomon.inputs import refuse_bad_values as refuse_bad
from gnomon.moments import Moments
from gnomon.parallel import fold_blocks, map_blocks, one_blas_thread, row_blocks
from gnomon.pca.bootstrap import Bootstrap, bootstrap
from gnomon.pca.impute import fill_rows
from gnomon.pca.project import RANGE, ROWS, project
from gnomon.records import Record
from gnomon.rows import Rows

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)

__all__ = ["Categories", "Diagnostics"]


@dataclass(frozen=True)
class Categories(Record):
    """Where the rows of each category lie among the components; m categories.

    Attributes
    ----------
    variables : tuple of str
        The column that each category belongs to; empty if it has no name.
    names : tuple of str
    counts : array (m,)
        Rows of each category, or their total weight.
    coordinates : array (m, k)
        Barycentre: mean score of the category's rows.
    cos2 : array (m, k)
        Share of the barycentre's squared distance from the mean, in the space of all columns, that
        lies along each component.
    v_test : array (m, k)
        Distance between the barycentre and the mean of all rows, in standard errors of a random
        draw of as many rows: beyond ±1.96 it is unlikely (5 %) to be chance.
    """

    variables: tuple[str, ...]
    names: tuple[str, ...]
    counts: NDArray[Any]
    coordinates: Matrix
    cos2: Matrix
    v_test: Matrix

    def title(self) -> str:
        """One sentence."""
        m, k = self.coordinates.shape
        return f"{m} {'category' if m == 1 else 'categories'}, components: {k}"

    def lines(self) -> list[tuple[str, str]]:
        """Count, and where the category stands out most."""
        lines = []
        for i, (variable, name) in enumerate(zip(self.variables, self.names, strict=True)):
            most = int(np.argmax(np.abs(self.v_test[i])))
            lines.append(
                (f"{variable}: {name}" if variable else name,
                 f"{self.counts[i]:g} rows; component {most + 1}: coordinate "
                 f"{self.coordinates[i, most]:.3g}, cos² {self.cos2[i, most]:.2f}, "
                 f"v-test {self.v_test[i, most]:.2f}")
            )  # fmt: skip
        return lines


class Diagnostics:
    """Methods of `PCA` that explain rows and columns."""

    if TYPE_CHECKING:  # what `PCA` has
        components_: Matrix
        certificate_: Any
        missing_: Any
        moments_: Moments | None
        n_components_: int
        n_samples_: int
        rank_: int
        mean_: Vector
        singular_values_: Vector
        _exponent: int
        _noise: float
        _spectrum: Vector
        _unit: int
        _variances: Vector
        _whole: bool
        _working_variances: Vector
        ddof: int
        feature_weight: Any
        n_jobs: int | None
        standardize: bool

        def _check(self, X: Any, *, reset: bool, min_rows: int) -> Table: ...
        def _centred_rows(self, X: Table) -> Rows: ...
        def _column_factor(self) -> Vector: ...
        def _factor(self) -> Vector: ...

    # -- columns and rows ----------------------------------------------------------------------

    def correlations(self) -> Matrix:
        """Correlation of each column with each component's scores, shape (d, k).

        With the working column's standard deviation s, r = W √λ / s. For standardised columns
        this is `loadings_`. A constant column has correlation 0.
        """
        check_is_fitted(self)
        covariance = self.components_.T * np.sqrt(self._kept_variances())
        spread = self._column_spread()[:, None]
        return np.clip(_ratio(covariance, spread), -1.0, 1.0)

    def contributions(self, X: Any = None, sample_weight: Any = None) -> Matrix:
        """Share of each column, or of each row of `X`, in each component's variance, in per cent.

        Columns: 100 W². Rows: 100 w t² / ((Σw − ddof) λ) with the weights w of the rows. Over all
        columns, or over the rows (with the weights) that the model was fitted on, each
        component's contributions add up to 100. For other rows it says what a row would add.

        Parameters
        ----------
        X : table (n, d), optional
            None for the columns.
        sample_weight : array (n,), optional
            The rows' weights in `fit`.

        Returns
        -------
        array (d, k) without `X`, (n, k) with it
        """
        check_is_fitted(self)
        if X is None:
            if sample_weight is not None:
                refuse("sample_weight", "be None for the contributions of columns", "weights")
            return 100.0 * self.components_.T**2
        scores = self._scores(X)
        shares = 100.0 * scores**2 * (self._inverse_variances() / self._divisor())
        weights = check_weights("sample_weight", sample_weight, scores.shape[0], of="row")
        return shares if weights is None else shares * weights[:, None]

    def cos2(self, X: Any = None) -> Matrix:
        """How well each component shows each column, or each row of `X`: 1 is entirely, 0 not.

        Columns: the squared correlation. Rows: t² / ‖z‖², the squared cosine of the angle between
        the row and the component, where ‖z‖ is the row's whole distance from the mean
        (`distances`), not only its part along the components kept.

        Parameters
        ----------
        X : table (n, d), optional
            None for the columns.

        Returns
        -------
        array (d, k) without `X`, (n, k) with it
        """
        if X is None:
            return self.correlations() ** 2
        rows = self._measure(X)
        # Not t² / ‖z‖²: those squares may not exist where their ratio does.
        return _ratio(rows.scores, np.sqrt(rows.sq_norms)[:, None]) ** 2

    def distances(self, X: Any) -> Vector:
        """Distance ‖z‖ of each row of `X` from the mean, in working columns, shape (n,).

        FactoMineR calls it ``ind$dist``. In the units of the table, or in standard deviations if
        columns were standardised.
        """
        return np.ldexp(np.sqrt(self._measure(X).sq_norms), self._unit)

    # -- other columns -------------------------------------------------------------------------

    def correlate(self, X: Any, Z: Any, sample_weight: Any = None) -> "Matrix | Categories":
        """Relate supplementary columns `Z`, which had no part in the fit, to the components.

        Parameters
        ----------
        X : table (n, d)
            Rows, as a rule those that the model was fitted on.
        Z : array or table (n,) or (n, m)
            Numbers, or labels: text, booleans, objects and categorical columns are labels. Numbers
            that are names of groups go to `categories`.
        sample_weight : array (n,), optional
            The rows' weights in `fit`.

        Returns
        -------
        array (m, k)
            For numbers: the correlation of each column of `Z` with each component's scores, both
            taken about their means over these rows; 0 for a constant column.
        Categories
            For labels: see `categories`.
        """
        if _holds_labels(Z):
            return self.categories(X, Z, sample_weight)
        scores = self._scores(X)[:, : self.rank_]
        n, k = scores.shape[0], self.components_.shape[0]
        columns = self._numbers(Z, n)
        weights = _frequencies(sample_weight, n)
        found = np.zeros((columns.shape[1], k))
        with one_blas_thread():
            product = _standardised(columns, weights).T @ _standardised(scores, weights)
        found[:, : self.rank_] = np.clip(product, -1.0, 1.0)
        return found

    def categories(self, X: Any, labels: Any, sample_weight: Any = None) -> Categories:
        """Barycentres, cos² and v-tests of groups of rows, as FactoMineR's ``quali.sup``.

        With the mean score t̄_g of the n_g rows of a category, their mean working row z̄_g, and the
        mean t̄ and variance s² (divisor n − 1) of the scores of all n rows:

            cos² = t̄_g² / ‖z̄_g‖²,     v = (t̄_g − t̄) / √(s²/n_g · (n − n_g)/n).

        Parameters
        ----------
        X : table (n, d)
            Rows, as a rule those that the model was fitted on.
        labels : array or table (n,) or (n, m)
            One column of labels or several, of any kind; numbers are names here. A row whose label
            is missing (None, NaN) is in no category. Categories are sorted, or in the order that
            a categorical column gives them; those without rows are left out.
        sample_weight : array (n,), optional
            The rows' weights in `fit`: frequencies, n is their sum. Weights that sum to less than
            the number of rows are first scaled up to it.
        """
        rows = self._rows(X)
        n = rows.shape[0]
        columns = _read_labels(labels, n)
        weights = _frequencies(sample_weight, n)
        scores = project(rows, self.components_, n_jobs=self.n_jobs)
        self._refuse_bad(rows, scores)
        starts = np.cumsum([0, *(len(column.levels) for column in columns)])
        barycentres, sizes = _barycentres(rows, columns, starts, weights, self.n_jobs)
        coordinates = barycentres @ self.components_.T
        norms = np.linalg.norm(barycentres, axis=1)[:, None]
        total = float(weights.sum())
        mean = weights @ scores / total
        variance = weights @ (scores - mean) ** 2 / max(total - 1.0, EPS)
        variance[self.rank_ :] = 0.0
        left = (total - sizes).clip(0.0) / total
        error = np.sqrt(variance * _ratio(left, sizes)[:, None])
        counts: NDArray[Any] = np.rint(sizes).astype(np.intp)
        if sample_weight is not None:
            counts = sizes * (float(np.sum(sample_weight)) / total)
        return Categories(
            variables=tuple(c.variable for c in columns for _ in c.levels),
            names=tuple(level for c in columns for level in c.levels),
            counts=counts,
            coordinates=np.ldexp(coordinates, self._unit),
            cos2=_ratio(coordinates, norms) ** 2,
            v_test=_ratio(coordinates - mean, error),
        )

    # -- rows that do not fit ------------------------------------------------------------------

    def hotelling_t2(self, X: Any) -> Vector:
        """Hotelling's T² = Σ t²/λ of each row of `X` over the components, shape (n,).

        How far a row lies from the mean *within* the model. Components without variance are left
        out. `t2_limit` says what is unusual.
        """
        check_is_fitted(self)
        t2: Vector = self._scores(X) ** 2 @ self._inverse_variances()
        return t2

    def prediction_error(self, X: Any) -> Vector:
        """Squared prediction error ‖z − Wᵀt‖² of each row of `X`, shape (n,).

        How far a row lies *outside* the model; also called SPE or Q. In squared working units: of
        the table, of standard deviations if columns were standardised, times the column weights.
        Its mean over the rows of the fit is `lost_variance_` times (Σw − ddof)/Σw.
        `prediction_error_limit` says what is unusual.
        """
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(self._measure(X).sq_residuals, 2 * self._unit)

    def t2_limit(self, alpha: float = 0.05, new: bool = True) -> float:
        """What Hotelling's T² of a row exceeds with probability `alpha`, for normal data.

        For ddof = 1, n rows and k components (as many as have variance):

            new rows: k(n² − 1)/(n(n − k)) · F(k, n − k),
            rows of the fit: (n − 1)²/n · Beta(k/2, (n − k − 1)/2),

        both at 1 − alpha [Jackson 1991]. Exact if the k directions had been chosen without looking
        at the data; in practice for n well above the number of columns.

        Parameters
        ----------
        alpha : float, default=0.05
        new : bool, default=True
            True for rows that had no part in the fit, False for those that had.
        """
        check_is_fitted(self)
        check_real("alpha", alpha, 0.0, 1.0, open_low=True)
        check_choice("new", new, (False, True))
        k, n = int(self.rank_), int(self.n_samples_)
        least = k + 1 if new else k + 2
        if k == 0 or n < least:
            raise UnavailableError(
                f"A limit for T² needs a component with variance and at least {least} rows; the "
                f"model has {k} such components of {n} rows. Keep fewer components."
            )
        if new:  # the F distribution by way of its Beta
            a, b = k / 2, (n - k) / 2
            limit = (n**2 - 1) / n * betainccinv(a, b, alpha) / betaincinv(b, a, alpha)
        else:
            limit = (n - 1) ** 2 / n * betainccinv(k / 2, (n - k - 1) / 2, alpha)
        return float(limit * (n - self.ddof) / (n - 1))

    def prediction_error_limit(self, alpha: float = 0.05) -> float:
        """What the squared prediction error of a row exceeds with probability `alpha`.

        For normal data it is a sum of squares with the variances λ that were not kept. With
        θ₁ = Σλ and θ₂ = Σλ², its mean is θ₁ and its variance 2θ₂, as for g·χ²(h) with g = θ₂/θ₁
        and h = θ₁²/θ₂; the limit is that distribution's [Box 1954]. 0 if nothing was left out.
        """
        check_is_fitted(self)
        check_real("alpha", alpha, 0.0, 1.0, open_low=True)
        k = self.components_.shape[0]
        if not self._whole:
            raise UnavailableError(
                "A limit for the prediction error needs all eigenvalues, which the solver at hand "
                "did not compute. Fit with solver 'covariance', 'gram' or 'svd'."
            )
        lost = self._spectrum[k:]
        top = float(lost.max(initial=0.0))
        if top <= 0:
            return 0.0
        theta1, theta2 = float((lost / top).sum()), float(((lost / top) ** 2).sum())
        g, h = top * theta2 / theta1, theta1**2 / theta2
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(g * 2.0 * gammainccinv(h / 2, alpha), 2 * self._unit))

    # -- the probabilistic model ---------------------------------------------------------------

    def score_samples(self, X: Any) -> Vector:
        """Log-likelihood of each row of `X` under probabilistic PCA, shape (n,).

        A normal distribution with mean μ and covariance C = Wᵀ(Λ − σ²)W + σ² in the working space,
        where σ² is `noise_variance_`:

            log p = −½ (d log 2π + log|C| + Σ t²/λ + ‖z − Wᵀt‖²/σ²) + log|∂z/∂x|

        The last term makes it a density in the table's own units, also when columns are
        standardised or weighted. Without that, it equals scikit-learn's.
        """
        check_is_fitted(self)
        variances, noise = self._probabilistic()
        rows = self._measure(X)
        k, d = self.components_.shape
        log_det = float(np.log(variances).sum())
        sq_dist = rows.scores**2 @ (1.0 / variances)
        if d > k:
            log_det += (d - k) * float(np.log(noise))
            sq_dist += rows.sq_residuals / noise
        stretch = float(np.log(self._factor()).sum()) - d * self._exponent * float(np.log(2.0))
        likelihood: Vector = stretch - 0.5 * (d * np.log(2 * np.pi) + log_det + sq_dist)
        return likelihood

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of `score_samples`: how likely `X` is under the model. Higher is better."""
        return float(self.score_samples(self._check(X, reset=False, min_rows=1)).mean())

    def get_covariance(self) -> Matrix:
        """Covariance of the columns under probabilistic PCA, in the table's units, shape (d, d).

        C = Wᵀ(Λ − σ²)W + σ², see `score_samples`. With all components kept it is the covariance of
        the rows of the fit.
        """
        check_is_fitted(self)
        W, noise = self.components_, self._noise
        more = np.maximum(self._variances - noise, 0.0)
        with one_blas_thread():
            C = (W.T * more) @ W
        C[np.diag_indices_from(C)] += noise
        factor = self._factor()
        unscale = _ratio(np.ones_like(factor), factor)
        C *= unscale
        C *= unscale[:, None]
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(C, 2 * self._exponent)

    def get_precision(self) -> Matrix:
        """Inverse of `get_covariance`, shape (d, d): Wᵀ(1/Λ − 1/σ²)W + 1/σ² in working columns."""
        check_is_fitted(self)
        variances, noise = self._probabilistic()
        W = self.components_
        rest = 1.0 / noise if W.shape[1] > W.shape[0] else 0.0
        with one_blas_thread():
            P = (W.T * (1.0 / variances - rest)) @ W
        P[np.diag_indices_from(P)] += rest
        factor = self._factor()
        P *= factor
        P *= factor[:, None]
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(P, -2 * self._exponent)

    def _probabilistic(self) -> tuple[Vector, float]:
        """Variances along and beside the components, none of them zero to rounding."""
        k, d = self.components_.shape
        noise = self._noise
        variances = np.maximum(self._variances, noise)
        smallest = noise if d > k else float(variances.min())
        if smallest <= EPS * d * float(variances[0]):
            raise UnavailableError(
                f"A likelihood needs variance in every direction; {d} columns, {self.n_samples_} "
                f"rows and {k} components leave some without. Keep fewer components than the "
                "table's rank."
            )
        return variances, noise

    # -- uncertainty ---------------------------------------------------------------------------

    def bootstrap(
        self,
        X: Any,
        n_boot: int = 200,
        level: float = 0.95,
        random_state: Any = 0,
        sample_weight: Any = None,
    ) -> Bootstrap:
        """Intervals of eigenvalues and loadings from resampled rows; see `Bootstrap`.

        Parameters
        ----------
        X : table (n, d)
            The rows that the model was fitted on.
        n_boot : int, default=200
            How many times to resample and fit.
        level : float, default=0.95
            Probability that an interval is meant to cover the truth with.
        random_state : int, Generator or None, default=0
            The same seed gives the same bits, for any `n_jobs`.
        sample_weight : array (n,) of whole numbers, optional
            The rows' frequencies in `fit`.
        """
        check_is_fitted(self)
        return bootstrap(
            self,
            X,
            n_boot=n_boot,
            level=level,
            random_state=random_state,
            sample_weight=sample_weight,
        )

    # -- what the methods share ----------------------------------------------------------------

    def _rows(self, X: Any) -> Rows:
        """`X` as working rows in float64, in units of 2^`_unit`."""
        check_is_fitted(self)
        assert self.components_ is not None  # solves what `partial_fit` has put off
        X = self._check(X, reset=False, min_rows=0)
        if "missing_" in self.__dict__:
            X = fill_rows(X, self.missing_, mean=self.mean_, factor=self._column_factor(),
                          names=getattr(self, "feature_names_in_", None))  # fmt: skip
        return replace(self._centred_rows(X), work=np.dtype(np.float64))

    def _refuse_bad(self, rows: Rows, result: NDArray[Any]) -> None:
        """NaN and infinities of the table show in every sum; say where they are."""
        if not np.isfinite(result).all():
            refuse_bad(rows.X, names=getattr(self, "feature_names_in_", None))

    def _scores(self, X: Any) -> Matrix:
        """Scores t, not whitened, in units of 2^`_unit`."""
        rows = self._rows(X)
        scores = project(rows, self.components_, n_jobs=self.n_jobs)
        self._refuse_bad(rows, scores)
        return scores.astype(np.float64, copy=False)

    def _measure(self, X: Any) -> "_Measured":
        rows = self._rows(X)
        measured = _measure(rows, self.components_, self.n_jobs)
        self._refuse_bad(rows, measured.scores)
        return measured

    def _kept_variances(self) -> Vector:
        """Variances λ, exactly 0 beyond the numerical rank."""
        return np.where(np.arange(self._variances.size) < self.rank_, self._variances, 0.0)

    def _inverse_variances(self) -> Vector:
        """1/λ, 0 beyond the numerical rank."""
        variances = self._kept_variances()
        return _ratio(np.ones_like(variances), variances)

    def _divisor(self) -> float:
        """Σw − ddof of the fit."""
        moments: Moments | None = self.__dict__.get("moments_")
        if moments is not None:
            return moments.divisor(int(self.ddof))
        # singular value = √(divisor · λ)
        spread = float(np.ldexp(np.sqrt(self._variances[0]), self._unit))
        ratio = float(self.singular_values_[0]) / spread if spread > 0 else np.inf
        return ratio**2 if np.isfinite(ratio) else float(self.n_samples_ - self.ddof)

    def _column_spread(self) -> Vector:
        """Standard deviation of each working column, in units of 2^`_unit`; 0 if constant."""
        spread = np.sqrt(self._working_variances)
        rounding = 4 * EPS * np.abs(np.ldexp(self.mean_, -self._exponent)) * self._factor()
        return np.where(spread <= rounding, 0.0, spread)

    def _numbers(self, Z: Any, n: int) -> Matrix:
        """Supplementary columns of numbers, shape (n, m)."""
        if nw.dependencies.is_into_series(Z):
            Z = nw.from_native(Z, series_only=True).to_numpy()
        if not hasattr(Z, "columns") and np.ndim(Z) == 1:
            Z = np.asarray(Z)[:, None]
        table = check_table(type(self)(), Z, reset=True, min_rows=0, sparse=False)
        if table.shape[0] != n:
            refuse("Z", f"have {n} rows, as many as `X`", table.shape[0])
        columns: Matrix = table.astype(np.float64, order="C")
        if not np.isfinite(columns).all():
            row, column = np.argwhere(~np.isfinite(columns))[0]
            raise MissingValueError(
                f"`Z` must hold finite numbers; got {columns[row, column]} at row {row}, column "
                f"{column} (from 0). Drop those rows from both `X` and `Z`."
            )
        return columns


class _Measured(NamedTuple):
    """Of each row: scores (n, k), ‖z‖² (n,) and ‖z − Wᵀt‖² (n,), in units of 2^`_unit`."""

    scores: Matrix
    sq_norms: Vector
    sq_residuals: Vector


def _measure(rows: Rows, W: Matrix, n_jobs: int | None) -> _Measured:
    """One pass over the rows, in blocks of a fixed size as in `gnomon.pca.project`."""
    (n, d), k = rows.shape, W.shape[0]
    Wt = np.ascontiguousarray(W.T)
    scores, sq_norms, sq_residuals = np.empty((n, k)), np.empty(n), np.empty(n)

    def block(start: int, stop: int) -> None:
        z, left, t = np.empty((ROWS, d)), np.empty((ROWS, d)), np.empty((ROWS, k))
        for at in range(start, stop, ROWS):
            end = min(at + ROWS, stop)
            m = end - at
            rows.read(at, end, z)
            z[m:] = 0
            np.matmul(z, Wt, out=t)
            scores[at:end] = t[:m]
            sq_norms[at:end] = np.einsum("ij,ij->i", z, z)[:m]
            # ‖z‖² − ‖t‖² would lose small residuals to cancellation
            np.matmul(t, W, out=left)
            np.subtract(z, left, out=left)
            sq_residuals[at:end] = np.einsum("ij,ij->i", left, left)[:m]

    with np.errstate(over="ignore", invalid="ignore"):
        map_blocks(block, row_blocks(n, RANGE), n_jobs=n_jobs)
    return _Measured(scores, sq_norms, sq_residuals)


def _ratio(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """The quotient a / b, and 0 where b is 0."""
    quotient = np.zeros(np.broadcast_shapes(a.shape, b.shape))
    np.divide(a, b, out=quotient, where=np.broadcast_to(b, quotient.shape) != 0)
    return quotient


def _frequencies(sample_weight: Any, n: int) -> Vector:
    """Weights that sum to no less than the number of rows that have one."""
    weights = check_weights("sample_weight", sample_weight, n, of="row")
    if weights is None:
        return np.ones(n)
    total = float(weights.sum())
    if total == 0:
        refuse("sample_weight", "have a weight above zero", "every weight zero")
    return weights * max(1.0, np.count_nonzero(weights) / total)


def _standardised(A: Matrix, weights: Vector) -> Matrix:
    """Columns about their weighted mean, times √weight, of length 1; a constant one is 0."""
    scale = np.frexp(np.abs(A).max(axis=0, initial=0.0))[1]
    A = np.ldexp(A, -scale)  # squares exist
    mean = weights @ A / weights.sum()
    A -= mean
    A *= np.sqrt(weights)[:, None]
    norms = np.linalg.norm(A, axis=0)
    constant = norms <= 4 * EPS * np.abs(mean) * np.sqrt(weights.sum())
    return _ratio(A, np.where(constant, 0.0, norms))


# -- labels ------------------------------------------------------------------------------------


class _Labels(NamedTuple):
    """One column of labels: its name, its levels, and each row's level (−1 for none)."""

    variable: str
    levels: tuple[str, ...]
    codes: NDArray[np.intp]


def _holds_labels(Z: Any) -> bool:
    """Whether `Z` is labels rather than numbers; a table of both is refused."""
    if nw.dependencies.is_into_dataframe(Z):
        kinds = {dtype.is_numeric() for dtype in nw.from_native(Z).schema.dtypes()}
        if len(kinds) > 1:
            refuse(
                "Z", "hold numbers or labels", "a table of both", "Give each kind in its own call."
            )
        return kinds == {False}
    if nw.dependencies.is_into_series(Z):
        return not nw.from_native(Z, series_only=True).dtype.is_numeric()
    if _is_categorical(Z):
        return True
    return np.asarray(Z).dtype.kind in "OUSTb"


def _read_labels(labels: Any, n: int) -> list[_Labels]:
    """The columns of `labels`, checked."""
    if nw.dependencies.is_into_dataframe(labels):
        columns = [_of_series(series) for series in nw.from_native(labels).iter_columns()]
    elif nw.dependencies.is_into_series(labels):
        columns = [_of_series(nw.from_native(labels, series_only=True))]
    elif _is_categorical(labels):
        columns = [_of_values("", list(labels), list(labels.categories))]
    else:
        if np.ma.isMaskedArray(labels):
            labels = np.ma.filled(labels.astype(object), None)
        # Lists as objects: NumPy would make the text 'nan' of a NaN among strings.
        array = labels if isinstance(labels, np.ndarray) else np.asarray(labels, dtype=object)
        table = array[:, None] if array.ndim == 1 else array
        if table.ndim != 2 or table.shape[1] == 0:
            refuse("labels", f"be one column or several of {n} labels", f"shape {array.shape}")
        one = table.shape[1] == 1
        columns = [
            _of_values("" if one else str(j), table[:, j].tolist()) for j in range(table.shape[1])
        ]
    for column in columns:
        if column.codes.size != n:
            refuse("labels", f"have {n} rows, as many as `X`", column.codes.size)
    return columns


def _is_categorical(labels: Any) -> bool:
    """Whether it is a ``pandas.Categorical`` outside of a series."""
    return hasattr(labels, "categories") and hasattr(labels, "codes")


def _of_series(series: Any) -> _Labels:
    ordered = series.dtype in (nw.Categorical, nw.Enum)
    order = series.cat.get_categories().to_list() if ordered else None
    return _of_values(str(series.name or ""), series.to_list(), order)


def _of_values(variable: str, values: list[Any], order: list[Any] | None = None) -> _Labels:
    found = {value for value in values if not _is_missing(value)}
    if order is None:
        try:
            order = sorted(found)
        except TypeError:  # labels of several types
            order = sorted(found, key=lambda value: (type(value).__name__, str(value)))
    levels = [level for level in order if level in found]
    place = {level: i for i, level in enumerate(levels)}
    codes = [-1 if _is_missing(value) else place[value] for value in values]
    return _Labels(variable, tuple(map(str, levels)), np.array(codes, dtype=np.intp))


def _is_missing(value: object) -> bool:
    # By name, because pandas need not be installed: its NA refuses to be compared.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _barycentres(
    rows: Rows,
    columns: list[_Labels],
    starts: NDArray[np.intp],
    weights: Vector,
    n_jobs: int | None,
) -> tuple[Matrix, Vector]:
    """Mean working row (m, d) and total weight (m,) of every category."""
    n, d = rows.shape
    m = int(starts[-1])
    sums, sizes = np.zeros((m, d)), np.zeros(m)

    def member(start: int, stop: int) -> Matrix:
        """Weights of the rows in the categories, shape (stop − start, m)."""
        table = np.zeros((stop - start, m))
        for column, first in zip(columns, starts, strict=False):
            at = np.flatnonzero(column.codes[start:stop] >= 0)
            table[at, first + column.codes[start + at]] = weights[start + at]
        return table

    def block(start: int, stop: int) -> tuple[Matrix, Vector]:
        belongs = member(start, stop)
        return belongs.T @ rows.read(start, stop), belongs.sum(axis=0)

    def add(part: tuple[Matrix, Vector]) -> None:
        sums.__iadd__(part[0])
        sizes.__iadd__(part[1])

    fold_blocks(block, row_blocks(n, rows.block_rows()), add, n_jobs=n_jobs)
    return _ratio(sums, sizes[:, None]), sizes
