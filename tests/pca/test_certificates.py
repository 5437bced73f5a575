"""Certificates that never lie: everything they state, against PCA in extended precision.

Problems of six kinds of spectra in twelve forms, by every solver. No bound may be violated by more
than 1e-9 of it and what the reference itself is off by, 32 · d · eps · σ₁ / gap. For gaps between
variances that is at most twice the same of eigenvalues, λ₁ / gap, and tells far smaller ones apart.
"""

import warnings

import numpy as np
import pytest
from pca.extended import EPS, LONG, exact_pca, largest_sine
from pca.problems import FORMS, make_problem

from gnomon.errors import GnomonWarning
from gnomon.pca import estimator

HALF_TURN = np.pi / 2
LAPACK = 30.0  # residuals and loss of orthogonality in units of d · eps, for every solver
EPS64 = float(np.finfo(np.float64).eps)


def fitted(problem, monkeypatch):
    """The model, and the table that it says how well it fits: the one with its gaps filled in."""
    tables = [problem.X]

    def impute(asked):
        X, filling = plain(asked)
        tables.append(X)
        return X, filling

    plain = estimator.impute
    with monkeypatch.context() as patch, warnings.catch_warnings():
        patch.setattr(estimator, "impute", impute)
        warnings.simplefilter("ignore", GnomonWarning)
        model = problem.fit()
        assert model.certificate_ is not None
    return model, tables[-1]


def truth_of(problem, X):
    how = problem.how
    return exact_pca(
        X,
        problem.weights,
        ddof=how["ddof"],
        standardize=how.get("standardize", False),
        feature_weight=how.get("feature_weight"),
    )


class Held:
    """What a certificate states beside what is true; every violation is a sentence in `found`."""

    def __init__(self, problem, model, truth):
        self.problem, self.model, self.truth = problem, model, truth
        self.certificate = model.certificate_
        self.k, self.d = model.components_.shape
        self.roots = truth.roots.astype(float)
        self.found = []

    def state(self, what, true, stated, reference):
        if not true <= stated * (1 + 1e-9) + reference:
            name = self.problem.name
            self.found.append(f"{name}: {what} is {true:.2e}, stated {stated:.2e}")

    def tied(self, start, stop):
        """Values that the reference cannot tell from those of components `start` to `stop` − 1."""
        near = 64 * self.d * EPS * self.roots[0]
        high, low = self.roots[start] + near, self.roots[stop - 1] - near
        return (self.roots >= low) & (self.roots <= high)

    def reference(self, tied):
        """How far the reference's own space of `tied` values can be off."""
        inside, outside = self.roots[tied], self.roots[~tied]
        above = outside[outside > inside.max()] - inside.max()
        below = inside.min() - outside[outside < inside.min()]
        gap = min(above.min(initial=np.inf), below.min(initial=np.inf))
        return 32 * self.d * EPS * (self.roots[0] / gap if gap < np.inf else 1.0)

    def residuals(self):
        V = self.model.components_.astype(LONG)
        values = self.model.explained_variance_.astype(LONG)
        left = V @ self.truth.sigma - values[:, None] * V
        top = float(self.model.spectrum_[0])
        stated = (self.certificate.residuals + self.certificate.formation_error) * top
        for i, true in enumerate(np.sqrt((left * left).sum(axis=1)).astype(float)):
            first = self.roots[0] ** 2
            self.state(f"residual {i + 1}", true / first, stated[i] / first, 32 * self.d * EPS)

    def angles(self):
        for i, bound in enumerate(self.certificate.angle_bounds):
            if bound < HALF_TURN:
                self.compare(f"angle {i + 1}", i, i + 1, float(bound))
        for group, bound in zip(
            self.certificate.inseparable, self.certificate.space_bounds, strict=True
        ):
            if bound < HALF_TURN:
                self.compare(f"space of {group}", group[0] - 1, group[-1], bound)

    def compare(self, what, start, stop, bound):
        tied = self.tied(start, stop)
        true = largest_sine(self.model.components_[start:stop], self.truth.vectors[tied])
        self.state(what, true, float(np.sin(bound)), self.reference(tied))
        if tied.sum() > stop - start and self.roots[start] > 1e-7 * self.roots[0]:
            # equal variances: it must be said that only their space is determined
            groups = self.certificate.inseparable
            if not any(group[0] <= start + 1 and stop <= group[-1] for group in groups):
                self.found.append(f"{self.problem.name}: {what}, a tie that is not named")

    def orthogonality(self):
        V = self.model.components_.astype(LONG)
        loss = float(np.abs(V @ V.T - np.eye(self.k)).max())
        eps = float(np.finfo(self.model.components_.dtype).eps)
        self.state("orthogonality", loss, LAPACK * self.d * eps, 0.0)
        self.state("orthogonality", loss, self.certificate.orthogonality + self.d * EPS64, 0.0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.rounds(test=25, soak=50, long=417)
def test_no_certificate_states_less_than_the_truth(form, rounds, monkeypatch):
    found = []
    for number in range(rounds):
        problem = make_problem(form, number)
        model, X = fitted(problem, monkeypatch)
        truth = truth_of(problem, X)
        if not truth.roots[0] > 0:
            continue
        held = Held(problem, model, truth)
        held.residuals()
        held.angles()
        held.orthogonality()
        found += held.found
    assert not found, "\n".join(found)
