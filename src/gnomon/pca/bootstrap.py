"""Bootstrap intervals of eigenvalues and loadings: the model fitted again to resampled rows.

1. Draw n rows with replacement. The count of each row is its weight; the table is not copied.
2. Fit with the same parameters and the same number of components.
3. Match the replicate's components to the model's before averaging. A component's sign is
   arbitrary, so loadings averaged without matching may cancel to zero; and two components with
   close variances may swap. So the replicate's components are matched one to one with the
   model's, by the largest sum of squared cosines, and get the model's signs.
4. Intervals are the quantiles over all replicates.

Components are not rotated onto the model's. A Procrustes rotation within the k components would
remove exactly what is measured: how far each direction turns from sample to sample. Its intervals
would be too narrow, and those of eigenvalues would belong to mixtures of components. Where two
variances are so close that their directions are not determined, the intervals are wide and
`agreement` is low, as they should be.

Percentile intervals [Efron & Tibshirani 1993]; matching before averaging as in [Milan & Whittaker
1995] and [Timmerman, Kiers & Smilde 2007].
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from gnomon.budget import check_free
from gnomon.errors import GnomonWarning, NotConvergedWarning, UnavailableError, refuse
from gnomon.inputs import check_integer, check_real, check_weights, random_generator
from gnomon.records import Record
from gnomon.typing import Matrix, Vector

__all__ = ["Bootstrap", "bootstrap", "match"]


@dataclass(frozen=True)
class Bootstrap(Record):
    """Intervals of a PCA's eigenvalues and loadings, over `n_boot` resampled tables.

    Attributes
    ----------
    eigenvalues : array (k, 2)
        Lower and upper end for each of `explained_variance_`.
    loadings : array (d, k, 2)
        Lower and upper end for each of `loadings_`.
    mean_eigenvalues : array (k,)
    mean_loadings : array (d, k)
        Means over the replicates, after alignment.
    agreement : array (k,)
        Mean |cosine| between a component and its match in the replicates. Near 1, the direction is
        well determined; where it is low, only the space that several components span is.
    n_boot : int
    level : float
    swapped : int
        Replicates in which the order of the components changed.
    """

    eigenvalues: Matrix
    loadings: Matrix
    mean_eigenvalues: Vector
    mean_loadings: Matrix
    agreement: Vector
    n_boot: int
    level: float
    swapped: int

    def title(self) -> str:
        """One-line summary."""
        return f"{100 * self.level:g} % intervals from {self.n_boot} resampled tables"

    def lines(self) -> list[tuple[str, str]]:
        """Intervals of the first components, and how often their order changed."""
        lines = [
            (f"component {i + 1}", f"variance {low:.4g} to {high:.4g}, agreement {cosine:.3f}")
            for i, ((low, high), cosine) in enumerate(
                zip(self.eigenvalues[:10], self.agreement, strict=False)
            )
        ]
        if len(self.eigenvalues) > 10:
            lines.append(("…", f"{len(self.eigenvalues) - 10} more"))
        lines.append(("swapped", f"order changed in {self.swapped} of {self.n_boot}"))
        return lines


def bootstrap(
    model: Any,
    X: Any,
    *,
    n_boot: int = 200,
    level: float = 0.95,
    random_state: Any = 0,
    sample_weight: Any = None,
) -> Bootstrap:
    """Bootstrap intervals of a fitted `PCA`; parameters of `PCA.bootstrap`.

    Costs `n_boot` fits, and 8 · n_boot · d · k bytes for the loadings of all of them.
    """
    n_boot = check_integer("n_boot", n_boot, 2)
    level = check_real("level", level, 0.0, 1.0, open_low=True)
    W = model.components_
    k, d = W.shape
    if k == 0:
        raise UnavailableError("A bootstrap needs a component; the model has none. Keep one.")
    fewer = "Lower `n_boot` or keep fewer components."
    check_free("Keeping the loadings of all replicates", 8 * n_boot * d * k, fewer)
    X = model._check(X, reset=False, min_rows=1)
    draw = _Draw(X.shape[0], sample_weight, random_state)
    if draw.size != model.n_samples_:
        refuse(
            "X",
            f"be the {model.n_samples_} rows that the model was fitted on",
            f"{draw.size} rows",
            "If they were weighted, give `sample_weight` too.",
        )
    parameters = {**model.get_params(deep=False), "random_state": None}
    used = int(model.rank_)
    eigenvalues, cosines = np.zeros((n_boot, k)), np.zeros((n_boot, used))
    loadings = np.zeros((n_boot, d, k))
    swapped = unfinished = 0
    for b in range(n_boot):
        weights = draw.weights()
        distinct = int(np.count_nonzero(weights))
        if distinct < 2:  # a single row repeated: every variance is 0
            continue
        # With fewer distinct rows than components, those without a match have no variance.
        asked = {**parameters, "n_components": min(k, distinct)}
        again = _refit(type(model), asked, X, weights)
        unfinished += not again.certificate_.converged
        mine, theirs, signs, cosine = match(W[:used], again.components_)
        swapped += bool((mine != theirs).any())
        spread = np.ldexp(np.sqrt(again._variances), again._unit - model._unit)[theirs]
        eigenvalues[b, mine] = spread**2
        loadings[b][:, mine] = again.components_[theirs].T * (signs * spread)
        cosines[b, mine] = cosine
    if unfinished:
        warnings.warn(
            f"{unfinished} of {n_boot} replicates did not converge; their intervals may be too "
            "wide. `solver='covariance'` or 'gram' is exact.",
            NotConvergedWarning,
            stacklevel=3,
        )
    tails = [(1 - level) / 2, (1 + level) / 2]
    unit = model._unit
    # one component at a time: `quantile` makes a copy
    ends = [np.quantile(loadings[:, :, j], tails, axis=0).T for j in range(k)]
    agreement = np.zeros(k)
    agreement[:used] = cosines.mean(axis=0)
    with np.errstate(over="ignore", under="ignore"):
        return Bootstrap(
            eigenvalues=np.ldexp(np.quantile(eigenvalues, tails, axis=0).T, 2 * unit),
            loadings=np.ldexp(np.stack(ends, axis=1), unit),
            mean_eigenvalues=np.ldexp(eigenvalues.mean(axis=0), 2 * unit),
            mean_loadings=np.ldexp(loadings.mean(axis=0), unit),
            agreement=agreement,
            n_boot=n_boot,
            level=level,
            swapped=swapped,
        )


def match(
    model: Matrix, replicate: Matrix
) -> tuple[NDArray[np.intp], NDArray[np.intp], Vector, Vector]:
    """Pairs of components with the largest sum of squared cosines, one to one.

    Parameters
    ----------
    model : array (k, d)
    replicate : array (k', d)
        Orthonormal rows, both.

    Returns
    -------
    mine, theirs : arrays of int
        Indices into `model`, ascending, and of their partners in `replicate`.
    signs : array
        −1 where the partner points the other way.
    cosines : array
        |cosine| of each pair.
    """
    cosines = model @ replicate.T
    mine, theirs = linear_sum_assignment(-(cosines**2))
    pairs = cosines[mine, theirs]
    return mine, theirs, np.where(pairs < 0, -1.0, 1.0), np.abs(pairs)


class _Draw:
    """Random draws of rows with replacement, as counts per row."""

    def __init__(self, n: int, sample_weight: Any, random_state: Any) -> None:
        self.n = n
        weights = check_weights("sample_weight", sample_weight, n, of="row")
        if weights is not None and (weights != np.rint(weights)).any():
            refuse("sample_weight", "be whole numbers, the rows' frequencies", "fractions")
        self.upto = None if weights is None else np.cumsum(weights)
        self.size = n if self.upto is None else int(self.upto[-1])
        self.random = random_generator(random_state)

    def weights(self) -> Vector:
        """One multinomial draw, shape (n,)."""
        rows = self.random.integers(0, self.size, self.size)
        if self.upto is not None:
            rows = np.searchsorted(self.upto, rows, side="right")
        return np.bincount(rows, minlength=self.n).astype(np.float64)


def _refit(kind: type, parameters: dict[str, Any], X: Any, weights: Vector) -> Any:
    """Fit the model of one replicate, without the data warnings of each fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GnomonWarning)
        return kind(**parameters).fit(X, sample_weight=weights)
