"""The state of a Procrustes in a model file."""

from collections.abc import Mapping
from typing import Any

from gnomon.models.fields import (
    LARGEST_EXPONENT,
    Array,
    Either,
    Fields,
    Flag,
    Names,
    Real,
    RecordOf,
    Text,
    UnfitError,
    Whole,
)
from gnomon.numeric.moments import moments_field
from gnomon.procrustes.cross_moments import CrossMoments, check_cross
from gnomon.procrustes.rotation_certificate import RotationCertificate
from gnomon.procrustes.similarity import Rules, Similarity
from gnomon.procrustes.solve import REFLECTIONS, Rotation

__all__ = ["FIELDS", "unpack"]

# Sizes: dx and dy columns of X and Y, D the larger of them, n rows.
CROSS = RecordOf(
    CrossMoments,
    {
        "x": moments_field("dx", square=False),
        "y": moments_field("dy", square=False),
        "cross": Array("f8", "dx", "dy"),
    },
    check=check_cross,
)
MAYBE_FLAG = Either.none_or(Flag())
FRAME = RecordOf(
    Similarity,
    {
        "moments": CROSS,
        "rules": RecordOf(
            Rules,
            {
                "reflection": Text(REFLECTIONS),
                "scaling": Either((Flag(), Text(("norm-ratio",)))),
                "centering": Flag(),
                "prior": Either.none_or(Array("f8", "dx", "D", finite=True)),
            },
        ),
        "rotation": RecordOf(
            Rotation,
            {
                "matrix": Array("f8", "dx", "D"),
                "singular": Array("f8", "dx"),
                "trace": Real(),
                "rank": Whole(),
                "margin": Real(),
                "reflected": MAYBE_FLAG,
                "floor": Real(),
            },
        ),
        "cross": Array("f8", "dx", "D"),
        "sq_x": Real(),
        "sq_y": Real(),
        "unit": Whole(-LARGEST_EXPONENT, LARGEST_EXPONENT),
        "scale": Real(),
        "factor": Real(),
        "residual_sum": Real(),
        "disparity": Real(),
    },
)
CERTIFICATE = RecordOf(
    RotationCertificate,
    {
        "orthogonality": Real(),
        "asymmetry": Real(),
        "least_eigenvalue": Real(),
        "formation_error": Real(),
        "rotation_error": Real(),
        "unique": Flag(),
    },
)

# Attributes that `partial_fit` defers until they are first accessed.
SOLVED = {
    "_frame": FRAME,
    "_n_features_out": Whole(1, size="D"),
    "n_samples_": Whole(),
    "rank_": Whole(),
    "reflected_": MAYBE_FLAG,
    "reflection_margin_": Real(),
    "singular_values_": Array("f8", "dx"),
    "disparity_": Real(),
    "scale_": Real(),
    "residual_sum_": Real(),
    "rmsd_": Real(),
    "translation_": Array("f8", "D"),
    "angle_": Either.none_or(Real()),
    "certificate_": CERTIFICATE,
    "rotation_": Array("f8", "dx", "D"),
}
FIELDS = Fields(
    {
        "n_features_in_": Whole(1, size="dx"),
        "feature_names_in_": Names("dx"),
        "moments_": Either.none_or(CROSS),
        **SOLVED,
        "weights_": Either.none_or(Array("f8", "n", finite=True)),
        "residuals_": Array("f8", "n"),
        "_n_rows": Whole(1, size="n"),
    }
)
OF_ROWS = {"weights_", "residuals_", "_n_rows"}


def unpack(attributes: Any, _: Mapping[str, Any]) -> dict[str, Any]:
    """Check the fitted attributes: those of a solved model, or moments to solve."""
    optional = {"feature_names_in_", *OF_ROWS}
    solved = isinstance(attributes, dict) and "rotation_" in attributes
    sizes: dict[str, int] = {}
    found = FIELDS.unpack(
        attributes, sizes, optional=frozenset(optional if solved else optional | SOLVED.keys())
    )
    if not solved and (found["moments_"] is None or found.keys() & SOLVED.keys()):
        raise UnfitError("its Procrustes has neither a rotation nor moments")
    if solved and sizes["D"] != max(sizes["dx"], sizes["dy"]):
        raise UnfitError("its rotation fits neither table")
    return found
