"""Files whose sums are right and whose content is wrong: refused before a number is used."""

import io

import numpy as np
import pca.test_pca_schema
import procrustes.test_procrustes_schema
import pytest
import tsne.test_tsne_schema
from models.forging import put_together, taken_apart

from gnomon.errors import ModelFileError
from gnomon.models.file import read_model

MAPS = (
    "plain",
    "exact",
    "weights",
    "manhattan",
    "reduced",
    "distances",
    "affinities",
    "multiscale",
    "resumed",
)
MODELS = {
    **{f"PCA, {name}": make for name, make in pca.test_pca_schema.MODELS.items()},
    **{
        f"Procrustes, {name}": make
        for name, make in procrustes.test_procrustes_schema.MODELS.items()
    },
    **{f"TSNE, {name}": lambda n=name: tsne.test_tsne_schema.MODELS[n]()[0] for name in MAPS},
}
# In the data's own units, where they may lie beyond the largest float.
INFINITE = ("/explained_variance_", "/spectrum_", "/residuals", "/angle_bounds", "/_typical")


def loads(content, arrays):
    try:
        read_model(io.BytesIO(put_together(content, arrays)), "m.gnomon")
    except ModelFileError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", MODELS)
def test_nan_and_infinity_are_refused_in_every_array(name):
    """Case 38: with such a number in it, a model would give NaN for every row."""
    content, arrays = taken_apart(MODELS[name]())
    assert loads(content, arrays) == ""
    looked_at = 0
    for at, array in arrays.items():
        if array.dtype.kind != "f" or not array.size or "parameters/" in at:
            continue  # parameters are checked by the next fit
        for value in (np.nan, np.inf, -np.inf):
            if value == np.inf and at.endswith(INFINITE):
                continue
            wrong = array.copy()
            wrong.flat[wrong.size // 2] = value
            said = loads(content, {**arrays, at: wrong})
            assert "m.gnomon is not loaded, because its " in said, (at, value, said)
            looked_at += 1
    assert looked_at > 6


def test_numbers_beyond_the_largest_are_loaded():
    """Of numbers of about 1e200 the variances are infinite, and everything else is not."""
    content, arrays = taken_apart(MODELS["PCA, huge numbers"]())
    assert np.isinf(arrays["attributes/explained_variance_"]).all()
    assert loads(content, arrays) == ""
