"""Rules that choose the number of components from the eigenvalues, one function each.

A rule takes a `Spectrum` and returns how many components stand out, possibly none. It raises
`UnavailableError`, which states what is missing, if its conditions are not met. To add a rule,
write its function and name it in `RULES`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, lgamma, log, pi, sin, sqrt

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq

from gnomon.errors import UnavailableError
from gnomon.pca.null import draw_seconds, null_eigenvalues
from gnomon.typing import Vector

PERCENTILE = 95  # of the null eigenvalues in parallel analysis
MOST_DRAWS, FEWEST_DRAWS = 100, 5  # null tables
DRAWING_SECONDS = 3.0  # of all null tables together: time against the precision of the percentile
FIRST_BARS = 8  # eigenvalues of the null tables that are computed first


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues, and what the rules need to know about their table.

    Attributes
    ----------
    values : array (m,), largest first
    total : float
        Sum of all eigenvalues, including unknown ones.
    n, d : int
        Rows and columns of the table.
    whole : bool
        Whether `values` are all min(n, d) eigenvalues.
    standardized : bool
        Whether every column was divided by its standard deviation.
    variances : array (d,), optional
        Variances of the columns as decomposed, in the units of `values`; their sum is
        `total`. By default they are assumed to be equal.
    divisor : float, optional
        Divisor of the sums of squares; n − 1 if not given.
    seed : int or Generator
        Seed of the rule that simulates.
    n_jobs : int or None
        Threads of the rule that simulates; they do not change the bits.
    """

    values: Vector
    total: float
    n: int
    d: int
    whole: bool
    standardized: bool = False
    variances: Vector | None = None
    divisor: float | None = None
    seed: int | np.random.Generator = 0
    n_jobs: int | None = None

    @property
    def rank_limit(self) -> int:
        """The largest rank that centred data can have, p = min(n − 1, d)."""
        return min(self.n - 1, self.d)

    @property
    def rounding(self) -> float:
        """Largest difference that is rounding, not structure."""
        top = float(self.values[0]) if self.values.size else 0.0
        return 8 * self.d * float(np.finfo(np.float64).eps) * top


def mle(spectrum: Spectrum) -> int:
    """Minka's Bayesian choice: the k with the most evidence [Minka 2000].

    The model is k directions in Gaussian noise that is equal in all others. By Laplace's method
    its evidence is (as scikit-learn computes it too)

        p(X | k) ≈ p(U) (∏_{i≤k} λᵢ)^(−N/2) v^(−N(D−k)/2) (2π)^((m+k)/2) |A|^(−1/2) N^(−k/2)
        p(U) = 2^(−k) ∏_{i≤k} Γ((D−i+1)/2) π^(−(D−i+1)/2)
        |A| = ∏_{i≤k} ∏_{j>i} (1/λ̂ⱼ − 1/λ̂ᵢ)(λᵢ − λⱼ) N

    with v the mean of the eigenvalues after the k-th, λ̂ᵢ = λᵢ up to k and v after it, and
    m = Dk − k(k+1)/2. The answer is between 1 and D − 1. Cost: D² logarithms.

    Where eigenvalues are zero to rounding, the evidence is unbounded for the k that leaves exactly
    those, which is the answer. Needs more rows than columns, and the others distinct.
    """
    who = "Minka's choice"
    _require_whole(spectrum, who)
    N, D = spectrum.n, spectrum.d
    if N <= D:
        raise UnavailableError(
            f"{who} ('mle') needs more rows than columns; the table has {N} rows and {D} columns. "
            "Use 'parallel', or fewer columns."
        )
    values = np.pad(spectrum.values[:D], (0, max(0, D - spectrum.values.size)))
    if values[-1] <= spectrum.rounding:
        return int(np.count_nonzero(values > spectrum.rounding))
    _require_distinct(values, spectrum.rounding, who)
    evidence = np.empty(D - 1)
    log_p_u = log_kept = log_gaps = log_inverse_gaps = 0.0
    for k in range(1, D):
        last = values[k - 1]
        v = values[k:].mean()
        m = D * k - k * (k + 1) / 2
        log_p_u += lgamma((D - k + 1) / 2) - log(pi) * (D - k + 1) / 2 - log(2)
        log_kept += log(last)
        log_gaps += np.log(last - values[k:]).sum()
        log_inverse_gaps += np.log(1 / last - 1 / values[: k - 1]).sum()
        log_inverse_rest = (D - k) * np.log(1 / v - 1 / values[:k]).sum()
        log_det_A = log_gaps + log_inverse_gaps + log_inverse_rest + m * log(N)
        evidence[k - 1] = (
            log_p_u
            - N / 2 * (log_kept + (D - k) * log(v))
            + (m + k) / 2 * log(2 * pi)
            - (log_det_A + k * log(N)) / 2
        )
    return int(np.argmax(evidence)) + 1 if D > 1 else 1


def parallel(spectrum: Spectrum) -> int:
    """Horn's parallel analysis: as many as exceed data without correlation [Horn 1965].

    The i-th eigenvalue must exceed the 95th percentile of the i-th eigenvalues of normal tables
    of the same size whose columns have the same variances and are independent; the first that
    does not ends the count. Horn compared with the mean, which keeps too many
    ([Glorfeld 1995] proposed the percentile).

    `gnomon.pca.null` draws the tables, `parallel_draws` of them. For large ones only the
    leading eigenvalues are computed: 8 of each, and four times as many for as long as all are
    exceeded.

    Needs the whole spectrum. A column of large variance raises the bar for all components, as it
    should if it stands alone; standardise where variances only reflect units.
    """
    who = "Horn's parallel analysis"
    _require_whole(spectrum, who)
    seeds, most = _seeds(spectrum), FIRST_BARS
    side = min(spectrum.n - 1, _spread(spectrum).size)
    while True:
        bars = _bars(spectrum, seeds, most)
        k = _leading(spectrum, bars, who)
        if k < bars.size or bars.size == side:
            return k
        most *= 4


def parallel_bars(spectrum: Spectrum, most: int | None = None) -> Vector:
    """Threshold of each of the first `most` eigenvalues in parallel analysis."""
    return _bars(spectrum, _seeds(spectrum), spectrum.d if most is None else most)


def parallel_draws(spectrum: Spectrum) -> int:
    """Number of null tables for parallel analysis: 100, fewer (at least 5) for large sides.

    As many as take about 3 seconds. A percentile of few draws is precise enough: the largest
    null eigenvalue of a 2,000 × 2,000 table varies by 0.5 % from draw to draw.
    """
    seconds = draw_seconds(spectrum.n - 1, _spread(spectrum).size)
    return int(np.clip(DRAWING_SECONDS / max(seconds, 1e-12), FEWEST_DRAWS, MOST_DRAWS))


def _seeds(spectrum: Spectrum) -> list[int]:
    random = np.random.default_rng(spectrum.seed)
    return [int(seed) for seed in random.integers(2**63, size=parallel_draws(spectrum))]


def _bars(spectrum: Spectrum, seeds: list[int], most: int) -> Vector:
    spread, rows = _spread(spectrum), spectrum.n - 1
    null = null_eigenvalues(spread, rows, seeds, most=most, n_jobs=spectrum.n_jobs)
    bars: Vector = np.percentile(null, PERCENTILE, axis=0)
    return bars


def broken_stick(spectrum: Spectrum) -> int:
    """Components with more than their piece of a stick broken at random [Frontier 1976].

    λᵢ / Σλ > (1/p) Σ_{j=i}^{p} 1/j, the expected i-th longest of p pieces, with
    p = min(n − 1, d); the first that does not ends the count. Needs the eigenvalues up to that one.
    """
    p = spectrum.rank_limit
    pieces = np.cumsum(1.0 / np.arange(p, 0, -1))[::-1] / p
    return _leading(spectrum, pieces * spectrum.total, "The broken stick")


def gavish_donoho(spectrum: Spectrum, noise_variance: float | None = None) -> int:
    """Singular values above the optimal hard threshold [Gavish & Donoho 2014].

    For a low-rank table in white noise, keeping the singular values above τ reconstructs it with
    the least squared error that any such threshold has when the table is large. With β the ratio
    of the shorter to the longer of n − 1 and d, and L the longer,

        τ = λ*(β) √L σ            noise of known variance σ²
        τ = ω(β) · median(s)      otherwise, of all min(n − 1, d) singular values s

    A centred table of n rows is one of n − 1 independent rows, hence n − 1. See `optimal_threshold`
    and `median_threshold` for λ* and ω.

    Needs columns that were not standardised, in which the noise is equal; and the whole spectrum
    unless the noise is known.
    """
    who = "Gavish–Donoho's threshold"
    if spectrum.standardized:
        raise UnavailableError(
            f"{who} needs columns with equal noise, but standardising makes it unequal. Fit with "
            "standardize=False, or use 'parallel'."
        )
    p = spectrum.rank_limit
    longer = max(spectrum.n - 1, spectrum.d)
    if noise_variance is None:
        _require_whole(spectrum, who + " with unknown noise")
        known = np.sqrt(np.maximum(spectrum.values[:p], 0))
        median = float(np.median(np.pad(known, (0, p - known.size))))
        bar = (median_threshold(p / longer) * median) ** 2
    else:
        divisor = spectrum.n - 1 if spectrum.divisor is None else spectrum.divisor
        bar = optimal_threshold(p / longer) ** 2 * longer / divisor * noise_variance
    return _leading(spectrum, np.full(p, bar), who)


def kaiser(spectrum: Spectrum) -> int:
    """Eigenvalues above the mean of all d eigenvalues of Σ [Kaiser 1960].

    On standardised columns that is above 1. Keeps too many where columns are many and rows few.
    Needs the eigenvalues up to the first below.
    """
    bars = np.full(min(spectrum.n, spectrum.d), spectrum.total / spectrum.d)
    return _leading(spectrum, bars, "Kaiser's rule")


RULES: dict[str, Callable[[Spectrum], int]] = {
    "mle": mle,
    "parallel": parallel,
    "broken-stick": broken_stick,
    "gavish-donoho": gavish_donoho,
    "kaiser": kaiser,
}
# Rules that a first failure among the leading eigenvalues decides, at negligible cost.
SETTLED_EARLY = ("broken-stick", "kaiser")


def optimal_threshold(beta: float) -> float:
    """λ*(β) = √(2(β+1) + 8β / (β + 1 + √(β² + 14β + 1))), [Gavish & Donoho 2014], eq. (11)."""
    return sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + sqrt(beta * beta + 14 * beta + 1)))


def median_threshold(beta: float) -> float:
    """ω(β) = λ*(β) / √μ, with μ the median of the Marchenko–Pastur law of ratio β.

    The law's density is √((b − x)(x − a)) / (2πβx) between a = (1 − √β)² and b = (1 + √β)².
    With x = 1 + β + 2√β cos t it becomes (2/π) sin²t / x, which is smooth for every β in (0, 1].
    """

    def x(t: float) -> float:
        return 1 + beta + 2 * sqrt(beta) * cos(t)

    def beyond_half(t: float) -> float:
        return float(quad(lambda u: 2 / pi * sin(u) ** 2 / x(u), 0, t)[0]) - 0.5

    return optimal_threshold(beta) / sqrt(x(brentq(beyond_half, 1.0, 3.0, xtol=1e-14)))


def _leading(spectrum: Spectrum, bars: Vector, who: str) -> int:
    """Number of leading eigenvalues above their thresholds, up to the first that is not."""
    size = min(spectrum.values.size, bars.size)
    above = spectrum.values[:size] > bars[:size] + spectrum.rounding
    if not above.all():
        return int(np.argmin(above))
    if not spectrum.whole:
        raise UnavailableError(
            f"{who} needs more of the spectrum: all {size} eigenvalues known are above it. Fit "
            "more components, or with solver 'covariance', 'gram' or 'svd'."
        )
    return size


def _require_whole(spectrum: Spectrum, who: str) -> None:
    if not spectrum.whole:
        raise UnavailableError(
            f"{who} needs the whole spectrum, which this solver does not compute. Use solver "
            "'covariance', 'gram' or 'svd', or give a number."
        )


def _require_distinct(values: Vector, rounding: float, who: str) -> None:
    """Refuse equal eigenvalues: Laplace's method divides by every difference of two."""
    tied = np.flatnonzero(-np.diff(values) <= rounding * values[1:] / values[0])
    if tied.size:
        raise UnavailableError(
            f"{who} ('mle') needs eigenvalues that differ; numbers {tied[0] + 1} and "
            f"{tied[0] + 2} are equal. Use 'parallel'."
        )


def _spread(spectrum: Spectrum) -> Vector:
    """Standard deviations of the columns that vary."""
    if spectrum.variances is None:
        return np.full(spectrum.d, sqrt(max(spectrum.total, 0.0) / spectrum.d))
    spread: Vector = np.sqrt(spectrum.variances[spectrum.variances > 0])
    return spread
