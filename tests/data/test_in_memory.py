"""`gnomon.run` of what is in memory: dataframes, arrays and sparse matrices of the user."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import gnomon
from gnomon import samples
from gnomon.data.open import open_table
from gnomon.data.read import read
from gnomon.data.refusals import FileError, OptionError
from gnomon.errors import DataTypeError, ParameterError, ParameterTypeError

IRIS = samples.load("iris")


def frame():
    table = pd.DataFrame(IRIS.X, columns=list(IRIS.columns))
    table.insert(0, "flower_id", [f"f{i}" for i in range(150)])
    return table.assign(species=pd.Categorical(IRIS.labels), seen=pd.Timestamp("2026-01-01"))


FRAMES = {
    "pandas": frame,
    "polars": lambda: pl.from_pandas(frame()),
    "arrow": lambda: pa.Table.from_pandas(frame(), preserve_index=False),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_of_a_dataframe_have_the_roles_of_those_of_a_file(tmp_path, kind):
    frame().to_parquet(tmp_path / "x.parquet", index=False)
    file, given = read(tmp_path / "x.parquet"), open_table(FRAMES[kind]())
    assert given.columns == file.columns == tuple(IRIS.columns)
    np.testing.assert_array_equal(given.X, file.X)
    assert given.label_name == file.label_name == "species"
    assert list(given.labels) == list(file.labels)
    assert given.id_name == file.id_name == "flower_id"
    assert list(given.ids) == list(file.ids)


def test_the_whole_job_is_that_of_the_file(tmp_path):
    frame().to_parquet(tmp_path / "x.parquet", index=False)
    given = gnomon.run(frame(), n_components=2)
    file = gnomon.run(tmp_path / "x.parquet", n_components=2)
    assert np.array_equal(given.tsne.embedding_, file.tsne.embedding_)
    some = gnomon.run(frame(), features=list(IRIS.columns[:3]), label="flower_id", dimensions=None)
    assert some.table.columns == tuple(IRIS.columns[:3])
    assert some.table.label_name == "flower_id"


def test_an_index_that_names_rows_is_their_id():
    table = frame().set_index("flower_id").rename_axis("bloom")
    assert open_table(table).id_name == "bloom"
    table.index.name = None
    assert open_table(table).id_name == "index"
    assert list(open_table(table).ids[:2]) == ["f0", "f1"]
    assert open_table(frame().drop(columns="flower_id")).id_name is None


def test_arrays_and_sparse_matrices_are_features_without_names():
    assert np.array_equal(open_table(IRIS.X).X, IRIS.X)
    assert not open_table(IRIS.X).named
    table = open_table(sp.csr_matrix(IRIS.X))
    assert table.is_sparse
    np.testing.assert_array_equal(table.X.toarray(), IRIS.X)
    result = gnomon.run(sp.csr_matrix(IRIS.X), n_components=2, dimensions=None)
    assert result.components.shape == (150, 2)


@pytest.mark.parametrize(
    ("table", "options", "error", "says"),
    [
        (frame(), {"sheet": "one"}, ParameterError, "`sheet` is for files"),
        (frame(), {"label": "kind"}, OptionError, "kind"),
        (frame()[:0], {}, FileError, "dataframe has no rows"),
        (np.ones((3, 0)), {}, (FileError, ValueError), "0 feature|no columns"),
        (pd.DataFrame({"a": [1, {"b": 2}]}), {}, DataTypeError, "objects of several kinds"),
        (3, {}, ParameterTypeError, "be a path, a sample, a dataframe"),
    ],
)
def test_what_is_no_table_is_refused_with_a_sentence(table, options, error, says):
    with pytest.raises(error, match=says):
        open_table(table, **options)


def test_objects_of_anndata_say_what_to_write():
    class AnnData:
        shape = (3, 2)

    with pytest.raises(ParameterTypeError, match=r"gnomon\.anndata\.map\(adata\)"):
        gnomon.run(AnnData())
