"""Number of components: a number, a fraction of the variance, or a rule; and all rules at once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gnomon.errors import UnavailableError, refuse
from gnomon.inputs import check_integer, check_real
from gnomon.pca.rules import (
    PERCENTILE,
    RULES,
    SETTLED_EARLY,
    Spectrum,
    gavish_donoho,
    parallel_draws,
)
from gnomon.records import Record
from gnomon.typing import Vector

if TYPE_CHECKING:
    from gnomon.pca.estimator import PCA


__all__ = ["RULES", "ComponentPanel", "PanelRow", "Request", "Spectrum", "component_panel"]

SHARES = (0.80, 0.90, 0.95, 0.99)
NOTHING = "All rows are the same: there is no variance to count."

MEANINGS = {
    "mle": "the number of directions with the most evidence, if the rest is equal noise",
    "parallel": "more variance than independent columns would show",
    "broken-stick": "a larger share than the pieces of a stick broken at random",
    "gavish-donoho": "above the noise, for the least error of the reconstruction",
    "kaiser": "more variance than the average component",
}


@dataclass(frozen=True)
class Request:
    """The value of `n_components`, parsed."""

    asked: int | float | str | None

    @classmethod
    def parse(cls, asked: Any, n: int, d: int) -> "Request":
        """Check `n_components` against the shape of the table."""
        most = min(n, d)
        way = f"The table has {n} rows and {d} columns."
        if asked is None:
            return cls(None)
        if isinstance(asked, str):
            if asked not in RULES:
                rules = ", ".join(map(repr, RULES))
                refuse("n_components", f"be an integer, a fraction or one of {rules}", asked)
            return cls(asked)
        if isinstance(asked, (float, np.floating)):
            if not 0 < asked < 1:
                must = f"be an integer from 0 to {most}, or a fraction between 0 and 1"
                refuse("n_components", must, asked, way)
            return cls(float(asked))
        return cls(check_integer("n_components", asked, 0, most, way))

    def first_guess(self, most: int) -> int:
        """Number of components to compute before the eigenvalues are known; at least 1."""
        if self.asked is None:
            return most
        return min(most, max(1, self.asked) if isinstance(self.asked, int) else 16)

    def enough(self, values: Vector, *, total: float, n: int, d: int) -> bool:
        """Whether the leading `values` already decide the request."""
        if self.asked is None:
            return values.size >= min(n, d)
        if isinstance(self.asked, int):
            return values.size >= self.asked
        if isinstance(self.asked, float):
            return bool(values.sum() >= _needed(self.asked, total))
        if self.asked not in SETTLED_EARLY:
            return False
        try:
            RULES[self.asked](Spectrum(values, total, n, d, whole=values.size >= min(n, d)))
        except UnavailableError:
            return False
        return True

    def count(
        self,
        values: Vector,
        *,
        total: float,
        n: int,
        d: int,
        whole: bool,
        standardized: bool,
        variances: Vector | None = None,
        seed: int | np.random.Generator = 0,
        n_jobs: int | None = None,
    ) -> int:
        """Number of components for the known eigenvalues (`Spectrum`); at least 1."""
        most = min(n, d, values.size)
        if self.asked is None:
            return most
        if isinstance(self.asked, int):
            return min(max(1, self.asked), most)
        if total <= 0:
            return 1
        if isinstance(self.asked, float):
            return _fraction(values, total, self.asked)
        spectrum = Spectrum(
            values, total, n, d, whole, standardized, variances, seed=seed, n_jobs=n_jobs
        )
        return max(1, min(most, RULES[self.asked](spectrum)))


def _needed(fraction: float, total: float) -> float:
    """Variance that `fraction` requires, less a tolerance for rounding."""
    return fraction * total * (1 - 4 * float(np.finfo(np.float64).eps))


def _fraction(values: Vector, total: float, fraction: float) -> int:
    """Smallest number of components with `fraction` of the variance, the notes' (33)."""
    short = int(np.searchsorted(np.cumsum(values), _needed(fraction, total)))
    return min(values.size, short + 1)


@dataclass(frozen=True)
class PanelRow(Record):
    """Answer of one rule.

    Attributes
    ----------
    rule : str
        Name for `n_components`; a share is written ``"90 %"``.
    k : int or None
        0 when nothing stands out (a fit then keeps 1); None when the rule cannot be applied.
    meaning : str
        Meaning of the components it counts.
    unavailable : str
        Why there is no `k`, and the way out; empty otherwise.
    """

    rule: str
    k: int | None
    meaning: str
    unavailable: str = ""


@dataclass(frozen=True)
class ComponentPanel(Record):
    """Number of components that each rule would keep; print it, or use `counts`."""

    rows: tuple[PanelRow, ...]
    n_samples: int
    n_features: int

    @property
    def counts(self) -> dict[str, int | None]:
        """Number of components by rule."""
        return {row.rule: row.k for row in self.rows}

    def title(self) -> str:
        """One-line summary."""
        return f"How many components of {self.n_samples:,} rows × {self.n_features:,} columns"

    def lines(self) -> list[tuple[str, str]]:
        """Each rule with its number and meaning, or the reason why there is none."""
        numbers = ["–" if row.k is None else str(row.k) for row in self.rows]
        width = max(map(len, numbers))
        return [
            (row.rule, f"{number:>{width}}  {row.unavailable or row.meaning}")
            for row, number in zip(self.rows, numbers, strict=True)
        ]


def component_panel(model: "PCA", *, noise_variance: float | None = None) -> ComponentPanel:
    """Number of components that each rule would keep of the table `model` was fitted to.

    The rules answer different questions and often disagree; the panel shows by how much. After a
    solver that computes only leading components (``"krylov"``, ``"deflation"``) it names the
    rules that need more.

    Parameters
    ----------
    model : PCA
        A fitted model.
    noise_variance : float, optional
        Variance of the noise of a cell, in the table's units squared, if it is known; for
        Gavish–Donoho's threshold, which estimates it otherwise.

    Returns
    -------
    ComponentPanel
        One row for each rule and for 80, 90, 95 and 99 % of the variance.

    Examples
    --------
    >>> from gnomon import PCA, component_panel, samples
    >>> panel = component_panel(PCA().fit(samples.load("iris").X))
    >>> panel.counts["broken-stick"], panel.counts["95 %"]
    (1, 2)
    """
    check_is_fitted(model)
    spectrum = _spectrum_of(model)
    rules, meanings = dict(RULES), dict(MEANINGS)
    if noise_variance is not None:
        noise = check_real("noise_variance", noise_variance, 0.0, open_low=True)
        scaled = float(np.ldexp(noise, -2 * model._unit))
        rules["gavish-donoho"] = lambda spectrum: gavish_donoho(spectrum, scaled)
    meanings["parallel"] += f" ({PERCENTILE}th percentile of {parallel_draws(spectrum)} draws)"
    rows = [_row(name, rules[name], meanings[name], spectrum, model) for name in RULES]
    rows += [_share_row(share, spectrum) for share in SHARES]
    return ComponentPanel(tuple(rows), spectrum.n, spectrum.d)


def _row(
    name: str, rule: Callable[[Spectrum], int], meaning: str, spectrum: Spectrum, model: "PCA"
) -> PanelRow:
    if spectrum.total <= 0:
        return PanelRow(name, None, meaning, NOTHING)
    try:
        return PanelRow(name, rule(spectrum), meaning)
    except UnavailableError as error:
        if name == model.n_components:  # the solver computed more than the model kept
            return PanelRow(name, int(model.n_components_), meaning)
        return PanelRow(name, None, meaning, str(error))


def _share_row(share: float, spectrum: Spectrum) -> PanelRow:
    name, values, total = f"{100 * share:.0f} %", spectrum.values, spectrum.total
    meaning = f"the fewest that hold {name} of the variance"
    if total <= 0:
        return PanelRow(name, None, meaning, NOTHING)
    if not spectrum.whole and values.sum() < _needed(share, total):
        held = f"{100 * values.sum() / total:.1f} %"
        why = f"The {values.size} components known hold {held} of the variance. Fit more."
        return PanelRow(name, None, meaning, why)
    return PanelRow(name, _fraction(values, total, share), meaning)


def _spectrum_of(model: "PCA") -> Spectrum:
    """Eigenvalues that a fitted model has computed exactly, and the other inputs of the rules."""
    n, d, seed = model.n_samples_, model.n_features_in_, model.random_state
    # Beyond the components it kept, krylov has only lower bounds of eigenvalues.
    values = model._variances if model.solver_ == "krylov" else model._spectrum
    return Spectrum(
        values=values,
        total=model._total,
        n=n,
        d=d,
        whole=model._whole or values.size >= min(n, d),
        standardized=model.standardize,
        variances=model._working_variances,
        divisor=model._divisor(),
        # The seed of the fit; a generator's state is gone, and must not be advanced here.
        seed=int(seed) if isinstance(seed, (int, np.integer)) else 0,
        n_jobs=model.n_jobs,
    )
