"""The state of a PCA in a model file."""

from collections.abc import Mapping
from typing import Any

from gnomon.models.fields import (
    LARGEST_EXPONENT,
    Array,
    Either,
    Fields,
    Flag,
    Names,
    Nothing,
    Real,
    RecordOf,
    Text,
    TupleOf,
    UnfitError,
    Whole,
)
from gnomon.numeric.certificate import Certificate
from gnomon.numeric.moments import moments_field
from gnomon.pca.components import Components
from gnomon.pca.impute import Imputation
from gnomon.pca.plan import Plan

__all__ = ["FIELDS", "components_field", "unpack"]

CERTIFICATE = RecordOf(
    Certificate,
    {
        "solver": Text(),
        "residuals": Array("f8", "k", finite=False),
        "orthogonality": Real(),
        "residual_in_roundings": Real(),
        "orthogonality_in_roundings": Real(),
        "threshold": Real(),
        "formation_error": Real(),
        "angle_bounds": Array("f8", "k", finite=False),
        "inseparable": TupleOf((TupleOf((Whole(), ...)), ...)),
        "passes": Whole(),
        "tol": Real(),
        "converged": Flag(),
        "assumption": Text(),
        "space_bounds": TupleOf((Real(), ...)),
        "missing_angles": Either.none_or(Array("f8", "k")),
    },
)
PLAN = RecordOf(
    Plan,
    {
        "solver": Text(),
        "why": Text(),
        "shape": TupleOf((Whole(), Whole())),
        "n_components": Either((Nothing(), Whole(), Text(), Real())),
        "dtype": Text(),
        "passes": Whole(),
        "operations": Real(),
        "peak_bytes": Whole(),
    },
)
IMPUTATION = RecordOf(
    Imputation,
    {
        "n_missing": Whole(),
        "n_cells": Whole(),
        "rank": Whole(),
        "noise_variance": Real(),
        "n_iter": Whole(),
        "moved": Real(),
        "converged": Flag(),
        "components": Array("f8", "filling", "d"),
        "penalty": Array("f8", "filling"),
    },
)

# Fitted attributes, including those that are computed from the moments on first access.
COLUMNS = {"n_features_in_": Whole(1, size="d"), "feature_names_in_": Names("d")}
MOMENTS = {
    "moments_": Either.none_or(moments_field("d", square=True)),
    "missing_": IMPUTATION,
}
# Attributes that `partial_fit` defers until they are first accessed.
SOLVED = {
    "n_samples_": Whole(),
    "n_components_": Whole(0, size="k"),
    "_n_features_out": Whole(0, size="k"),
    "components_": Array("f4 f8", "k", "d"),
    "explained_variance_": Array("f8", "k", finite=False),
    "explained_variance_ratio_": Array("f8", "k"),
    "singular_values_": Array("f8", "k"),
    "spectrum_": Array("f8", "m", finite=False),
    "total_variance_": Real(),
    "captured_variance_": Real(),
    "lost_variance_": Real(),
    "noise_variance_": Real(),
    "rank_": Whole(),
    "mean_": Array("f8", "d"),
    "scale_": Array("f8", "d"),
    "loadings_": Array("f8", "d", "k"),
    "certificate_": CERTIFICATE,
    "plan_": PLAN,
    "solver_": Text(),
    "_shift": Array("f4 f8 i8 u8", "d"),
    "_offset": Array("f8", "d"),
    "_exponent": Whole(-LARGEST_EXPONENT, LARGEST_EXPONENT),
    "_variances": Array("f8", "k"),
    "_spectrum": Array("f8", "m"),
    "_unit": Whole(-LARGEST_EXPONENT, LARGEST_EXPONENT),
    "_total": Real(),
    "_noise": Real(),
    "_whole": Flag(),
    "_working_variances": Array("f8", "d"),
    "_scale": Array("f8", "d"),
    "_factors": Array("f8", "d"),
}
HELD_OUT = {"_held_out_errors": Array("f8", 2, "sampled", low=0.0)}
FIELDS = Fields({**COLUMNS, **MOMENTS, **SOLVED, **HELD_OUT})


def components_field(k: str, d: str) -> RecordOf:
    """Field of components (k, d) of a table without gaps or names, given the names of sizes."""
    return RecordOf(
        Components,
        {
            "W": Array("f8", k, d),
            "variances": Array("f8", k),
            "rank": Whole(),
            "shift": Array("f4 f8 i8 u8", d),
            "offset": Array("f8", d),
            "factors": Array("f8", d),
            "mean": Array("f8", d),
            "exponent": Whole(-LARGEST_EXPONENT, LARGEST_EXPONENT),
            "unit": Whole(-LARGEST_EXPONENT, LARGEST_EXPONENT),
        },
        without=("filling", "names"),
    )


def unpack(attributes: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    """Check the fitted attributes: those of a solved model, or moments to solve."""
    optional = {"feature_names_in_", "missing_", *HELD_OUT}
    solved = isinstance(attributes, dict) and "components_" in attributes
    found = FIELDS.unpack(
        attributes, {}, optional=frozenset(optional if solved else optional | SOLVED.keys())
    )
    if not solved and (found["moments_"] is None or found.keys() & SOLVED.keys()):
        raise UnfitError("its PCA has neither components nor moments")
    return found
