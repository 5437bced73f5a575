"""Sparse matrices in files: held as CSR, never dense, and checked before they are believed."""

import gzip
import io
import json
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from commands import gnomon

from gnomon import TSNE, load
from gnomon.data.formats.h5ad import log1p_of_counts
from gnomon.data.preparation import prepare
from gnomon.data.read import read
from gnomon.data.refusals import FileError, OptionError
from gnomon.data.spread import measure_spread
from gnomon.errors import ParameterError, TooLargeError
from gnomon.pipeline.flow import run


def counts(n=90, d=40, seed=0):
    rng = np.random.default_rng(seed)
    means = 0.2 + 3 * np.eye(3)[np.arange(n) % 3] @ rng.random((3, d)) ** 3
    return sp.csr_array(rng.poisson(means).astype(np.float32))


def write_10x(folder, X, *, version=3):
    folder.mkdir()
    text = io.BytesIO()
    scipy.io.mmwrite(text, sp.coo_array(X.T.astype(np.int64)), field="integer")
    genes = "".join(f"ENSG{j}\tgene{j}\tGene Expression\n" for j in range(X.shape[1]))
    cells = "".join(f"AAAC{i}-1\n" for i in range(X.shape[0]))
    if version == 3:
        (folder / "matrix.mtx.gz").write_bytes(gzip.compress(text.getvalue()))
        (folder / "features.tsv.gz").write_bytes(gzip.compress(genes.encode()))
        (folder / "barcodes.tsv.gz").write_bytes(gzip.compress(cells.encode()))
    else:
        (folder / "matrix.mtx").write_bytes(text.getvalue())
        (folder / "genes.tsv").write_text(genes)
        (folder / "barcodes.tsv").write_text(cells)
    return folder


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr"])
def test_every_format_of_save_npz_is_read_as_csr(tmp_path, kind):
    X = counts()
    sp.save_npz(tmp_path / "x.npz", X.asformat(kind))
    table = read(tmp_path / "x.npz")
    assert table.X.format == "csr"
    np.testing.assert_array_equal(table.X.toarray(), X.toarray())
    assert any("CSC" in note for note in table.notes) == (kind == "csc")


@pytest.mark.parametrize("name", ["x.mtx", "x.mtx.gz"])
def test_matrix_market_is_read_as_it_was_written(tmp_path, name):
    X, text = counts(), io.BytesIO()
    scipy.io.mmwrite(text, sp.coo_array(X))
    octets = text.getvalue()
    (tmp_path / name).write_bytes(gzip.compress(octets) if name.endswith("gz") else octets)
    table = read(tmp_path / name)
    assert table.X.format == "csr"
    np.testing.assert_allclose(table.X.toarray(), X.toarray(), rtol=1e-6)


@pytest.mark.parametrize("version", [2, 3])
def test_cells_of_a_10x_folder_are_rows(tmp_path, version):
    X = counts()
    table = read(write_10x(tmp_path / "filtered", X, version=version))
    np.testing.assert_array_equal(table.X.toarray(), X.toarray())
    assert table.columns[:2] == ("gene0", "gene1")
    assert (table.id_name, table.ids[0]) == ("barcode", "AAAC0-1")


def test_columns_of_a_sparse_table_are_measured_as_those_of_a_dense_one():
    X = counts().toarray()
    X[:, 3] = 0
    X[:, 4] = 7
    X[5, 6] = np.nan
    X[:, 7] = np.where(np.arange(len(X)) % 2, -1e-30, 3e30)
    ours, dense = measure_spread(sp.csr_array(X)), measure_spread(X)
    for name in ("mean", "std", "low", "high", "gaps"):
        np.testing.assert_allclose(getattr(ours, name), getattr(dense, name), rtol=1e-6)
    assert ours.whole == dense.whole


def test_a_sparse_file_is_reduced_without_a_dense_copy_of_it(tmp_path, monkeypatch):
    X = counts(9000, 300)
    sp.save_npz(tmp_path / "x.npz", X)
    rows = []
    plain = sp.csr_array.toarray

    def watched(self, *args, **how):
        rows.append(self.shape[0])
        return plain(self, *args, **how)

    monkeypatch.setattr(sp.csr_array, "toarray", watched)
    result = run(tmp_path / "x.npz", n_components=5, dimensions=None)
    monkeypatch.undo()
    assert max(rows, default=0) <= 4096  # a block at most
    expected = np.linalg.eigvalsh(np.cov(X.toarray().T))[::-1][:5]
    np.testing.assert_allclose(result.pca.explained_variance_, expected, rtol=1e-4)


def test_a_sample_of_a_sparse_table_is_mapped_and_the_others_placed(tmp_path):
    sp.save_npz(tmp_path / "x.npz", counts(200, 60))
    result = run(tmp_path / "x.npz", n_components=5, sample=80)
    assert np.isfinite(result.positions).all()
    assert result.rows.placed.sum() == 120


def test_scaling_a_sparse_table_divides_and_leaves_zeros(tmp_path):
    X = counts()
    sp.save_npz(tmp_path / "x.npz", X)
    prepared = prepare(read(tmp_path / "x.npz"), scale="standard")
    assert prepared.X.nnz == X.nnz
    std = X.toarray().std(axis=0, ddof=1)
    np.testing.assert_allclose(prepared.X.toarray(), X.toarray() / std, rtol=1e-5)
    back = prepared.preparation.undo(prepared.X.toarray())
    np.testing.assert_allclose(back, X.toarray(), rtol=1e-5)
    assert prepare(read(tmp_path / "x.npz")).preparation.scale == "none"


def test_gaps_of_a_sparse_table_are_found_dropped_and_never_filled_in(tmp_path):
    X = counts()
    X.data[X.indptr[4]] = np.nan
    sp.save_npz(tmp_path / "x.npz", X)
    table = read(tmp_path / "x.npz")
    with pytest.raises(ValueError, match=r"1 missing value \(first: row 4 "):
        prepare(table)
    assert prepare(table, missing="drop").X.shape == (89, 40)
    with pytest.raises(FileError, match="would make it dense"):
        prepare(table, missing="mean")


def broken_mtx(text):
    def write(folder):
        (folder / "x.mtx").write_text(text)
        return folder / "x.mtx"

    return write


HEAD = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{HEAD}3 3 4\n1 1 1.0\n2 2 2.0\n", "promises 4 entries|broken Matrix Market"),
        (f"{HEAD}3 3 1\n7 1 1.0\n", "broken Matrix Market"),
        (f"{HEAD}3 3 1\n1 1 word\n", "broken Matrix Market"),
        (f"{HEAD}3 x 1\n1 1 1\n", "does not say how many"),
        (f"{HEAD}3 3 2\n1 1 1.0\n2 2 2.0\n3 3 1.0\n", "broken Matrix Market"),
        ("%%MatrixMarket matrix array real general\n1 1\n1\n", "coordinate matrices"),
        ("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "coordinate"),
        (f"{HEAD}0 3 0\n", "no rows"),
    ],
)
def test_a_broken_matrix_market_file_is_refused(tmp_path, text, words):
    with pytest.raises(FileError, match=words):
        read(broken_mtx(text)(tmp_path))


def test_entries_that_a_header_only_claims_are_never_allocated(tmp_path):
    with pytest.raises((FileError, TooLargeError)):
        read(broken_mtx(f"{HEAD}9 9 900000000000\n1 1 1\n")(tmp_path))


def test_a_10x_folder_whose_names_do_not_match_is_refused(tmp_path):
    folder = write_10x(tmp_path / "f", counts(), version=2)
    (folder / "barcodes.tsv").write_text("one\ntwo\n")
    with pytest.raises(FileError, match=r"barcodes.tsv names 2 cells, and matrix.mtx has 90"):
        read(folder)


@pytest.mark.parametrize("index", [40, -1])
def test_an_index_out_of_range_is_refused_and_does_not_crash(tmp_path, index):
    X = counts()
    X.indices[3] = index
    arrays = {
        "indices": X.indices,
        "indptr": X.indptr,
        "data": X.data,
        "format": b"csr",
        "shape": np.array(X.shape),
    }
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(FileError, match="broken sparse matrix"):
        read(tmp_path / "x.npz")


def test_pickled_parts_of_a_sparse_npz_are_refused(tmp_path):
    X = counts()
    np.savez(
        tmp_path / "x.npz",
        indices=X.indices,
        indptr=X.indptr,
        format=b"csr",
        shape=np.array(X.shape),
        data=X.data.astype(object),
    )
    with pytest.raises(FileError, match="Python objects"):
        read(tmp_path / "x.npz")


def test_a_sparse_npz_without_its_indices_is_refused(tmp_path):
    sp.save_npz(tmp_path / "whole.npz", counts())
    with (
        zipfile.ZipFile(tmp_path / "whole.npz") as old,
        zipfile.ZipFile(tmp_path / "x.npz", "w") as new,
    ):
        for name in old.namelist():
            if name != "indices.npy":
                new.writestr(name, old.read(name))
    with pytest.raises(FileError, match='lacks "indices"'):
        read(tmp_path / "x.npz")


def test_the_command_maps_inspects_and_places_a_10x_folder(tmp_path):
    write_10x(tmp_path / "cells", counts())
    for words in (
        ["inspect", "cells"],
        ["map", "cells", "-k", "5", "-o", "out"],
        ["report", "out", "--force"],
        ["place", "cells", "-m", "out", "-o", "new.csv"],
        ["reduce", "cells", "-k", "3", "-o", "less"],
    ):
        done = gnomon(*words, folder=tmp_path)
        assert done.returncode == 0, (words, done.stderr)
    told = json.loads((tmp_path / "out" / "run.json").read_text())
    assert told["table"]["id"] == "barcode"
    assert "sparse" in told["preparation"]["why"]


def test_a_map_of_float32_that_was_reduced_by_pca_is_loaded_again(tmp_path):
    """Its components are float32, as the table is; the file was refused once."""
    X = counts(60, 120)
    tsne = TSNE(perplexity=10, random_state=0).fit(X)
    tsne.save(tmp_path / "m.gnomon")
    again = load(tmp_path / "m.gnomon")
    assert again.pca_.components_.dtype == np.float32
    np.testing.assert_array_equal(again.transform(X), tsne.transform(X))


def test_a_sparse_table_is_mapped_by_euclidean_distances_alone(tmp_path):
    X = sp.random(60, 20, 0.3, format="csr", random_state=0)
    with pytest.raises(ParameterError, match="`metric` must be 'euclidean' for a sparse table"):
        run(X, metric="cosine")
    scipy.io.mmwrite(tmp_path / "t.mtx", X)
    for command in ("map", "inspect"):
        done = gnomon(command, "t.mtx", "--metric", "cosine", folder=tmp_path)
        assert done.returncode == 2
        assert "error: --metric must be 'euclidean' for a sparse table" in done.stderr


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_numbers_below_zero_are_no_counts(store):
    counts = np.array([[3.0, 0.0, 1.0], [0.0, 2.0, 5.0]])
    assert np.isfinite(log1p_of_counts(counts)).all()
    with pytest.raises(OptionError, match="scaled already"):
        log1p_of_counts(store(counts - [[0.0, 0.0, 2.0]]))
