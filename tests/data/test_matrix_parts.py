"""Sparse matrices in files, read in parts: CSR parts, the same numbers and bits as in memory."""

import gzip
import pickle

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import gnomon
from gnomon import PCA
from gnomon.data import open as opening
from gnomon.data.formats import matrix_parts
from gnomon.data.open import open_table
from gnomon.data.preparation import prepare
from gnomon.data.read import read
from gnomon.data.refusals import FileError, OptionError
from gnomon.data.spread import Tally
from gnomon.engine import LocalEngine
from gnomon.engine.arrays import hold
from gnomon.engine.source import checksum
from gnomon.errors import ChangedSourceError, DataError, MissingValueError, TooLargeError
from gnomon.pca import estimator
from gnomon.pipeline.flow import run

N, D = 900, 40


def counts(n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    means = 0.2 + 3 * np.eye(3)[np.arange(n) % 3] @ rng.random((3, d)) ** 3
    return sp.csr_array(rng.poisson(means).astype(np.float64))


def write_npz(kind):
    return lambda path, X: sp.save_npz(path, X.asformat(kind))


def write_mtx(path, X, **how):
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    scipy.io.mmwrite(plain, sp.coo_array(X), **how)
    if plain != path:
        path.write_bytes(gzip.compress(plain.read_bytes()))


def write_10x(path, X):
    path.mkdir()
    write_mtx(path / "matrix.mtx", X.T)
    (path / "features.tsv").write_text("".join(f"E{j}\tgene{j}\n" for j in range(X.shape[1])))
    (path / "barcodes.tsv").write_text("".join(f"AA{i}\n" for i in range(X.shape[0])))


KINDS = {
    "csr": ("x.npz", write_npz("csr")),
    "csc": ("x.npz", write_npz("csc")),
    "coo": ("x.npz", write_npz("coo")),
    "mtx": ("x.mtx", write_mtx),
    "packed mtx": ("x.mtx.gz", write_mtx),
    "10x": ("cells", write_10x),
}


@pytest.fixture(params=KINDS)
def file(request, tmp_path):
    name, write = KINDS[request.param]
    write(tmp_path / name, counts())
    return tmp_path / name


def test_parts_are_csr_rows_of_the_matrix(file, monkeypatch):
    monkeypatch.setattr(matrix_parts, "BATCH", 1000)  # entries come in several batches
    source = gnomon.source(file, rows=128)
    assert source.is_sparse
    assert source.stored == counts().nnz
    parts = [source.read(partition) for partition in source.partitions]
    assert len(parts) == 8
    assert all(isinstance(part, sp.csr_array) for part in parts)
    np.testing.assert_array_equal(sp.vstack(parts).toarray(), counts().toarray())
    again = pickle.loads(pickle.dumps(source))  # as a worker gets it
    np.testing.assert_array_equal(again.read(source.partitions[3]).toarray(), parts[3].toarray())


def test_names_and_ids_are_those_of_the_table_in_memory(file):
    held, parts = read(file), open_table(file, in_blocks=True)
    assert parts.columns == held.columns
    assert parts.id_name == held.id_name
    if held.ids is not None:
        assert list(parts.ids) == list(held.ids)
    assert [note for note in held.notes if note not in parts.notes] == []


def test_a_column_of_the_matrix_can_be_the_label(tmp_path):
    write_10x(tmp_path / "cells", counts())
    held, parts = (
        open_table(tmp_path / "cells", label="gene3", in_blocks=way) for way in (False, True)
    )
    assert parts.columns == held.columns
    assert list(parts.labels) == list(held.labels)


@pytest.mark.parametrize("solver", ["auto", "covariance", "krylov", "gram"])
@pytest.mark.parametrize("standardize", [False, True])
def test_components_have_the_bits_of_the_array(tmp_path, solver, standardize):
    X = counts(200 if solver == "gram" else 3000)
    sp.save_npz(tmp_path / "x.npz", X)
    model = PCA(5, solver=solver, standardize=standardize)
    expected = model.fit(X).components_.copy()
    assert np.array_equal(model.fit(gnomon.source(tmp_path / "x.npz")).components_, expected)


@pytest.mark.parametrize("solver", ["covariance", "krylov"])
def test_a_matrix_that_does_not_fit_is_never_held(tmp_path, monkeypatch, solver):
    monkeypatch.setattr(estimator, "SPARSE_HOLD_FACTOR", 1e12)
    sp.save_npz(tmp_path / "x.npz", counts(3000))
    expected = PCA(5, solver="covariance").fit(counts(3000))
    model = PCA(5, solver=solver).fit(gnomon.source(tmp_path / "x.npz"))
    assert "read into memory" not in model.plan_.why
    if solver == "covariance":
        assert np.array_equal(model.components_, expected.components_)
    # krylov's products are of other blocks than those of a CSR array: to its residual of 1e-5
    ratio = model.explained_variance_ / expected.explained_variance_
    np.testing.assert_allclose(ratio, 1, atol=1e-8)
    assert model.certificate_.converged
    scores = model.transform(gnomon.source(tmp_path / "x.npz", rows=100))
    assert np.array_equal(scores, model.transform(counts(3000)))


def test_a_held_matrix_is_the_array(tmp_path):
    sp.save_npz(tmp_path / "x.npz", counts())
    held = hold(gnomon.source(tmp_path / "x.npz", rows=100), LocalEngine()).X
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(held, name), getattr(counts(), name))


def test_the_whole_job_is_that_of_the_table_in_memory(tmp_path, monkeypatch):
    X = counts(300)
    sp.save_npz(tmp_path / "x.npz", X)
    usual = run(tmp_path / "x.npz", n_components=3, perplexity=10, scale="standard")
    monkeypatch.setattr(opening, "SMALL_BYTES", 0)
    monkeypatch.setattr(opening, "SPARSE_SHARE", 0)
    parts = run(tmp_path / "x.npz", n_components=3, perplexity=10, scale="standard")
    assert parts.table.in_blocks
    assert np.array_equal(parts.pca.components_, usual.pca.components_)
    np.testing.assert_allclose(parts.tsne.embedding_, usual.tsne.embedding_, atol=1e-4)
    some = run(tmp_path / "x.npz", n_components=3, perplexity=10, sample=200)
    assert some.rows.finished
    assert np.isfinite(some.rows.positions).all()
    assert some.tsne.pca_.n_samples_ == 300  # sparse rows are reduced by the PCA of all of them


def test_rows_with_gaps_are_dropped_in_parts_too(tmp_path):
    X = counts()
    X.data[[5, 900]] = np.nan
    sp.save_npz(tmp_path / "x.npz", X)
    table = open_table(tmp_path / "x.npz", in_blocks=True)
    with pytest.raises(MissingValueError, match="missing"):
        prepare(table)
    ready = prepare(table, missing="drop")
    expected = prepare(read(tmp_path / "x.npz"), missing="drop")
    found = [ready.X.read(partition) for partition in ready.X.partitions]
    np.testing.assert_array_equal(sp.vstack(found).toarray(), expected.X.toarray())
    assert np.array_equal(ready.kept, expected.kept)
    held = hold(ready.X, LocalEngine()).X
    np.testing.assert_array_equal(held.toarray(), expected.X.toarray())


def test_an_infinity_is_named_with_its_row(tmp_path):
    X = counts()
    X.data[X.indptr[700]] = np.inf
    sp.save_npz(tmp_path / "x.npz", X)
    with pytest.raises(DataError, match="row 700"):
        PCA(3).fit(gnomon.source(tmp_path / "x.npz", rows=100))


@pytest.mark.parametrize("cut", [1, 300, 899])
def test_the_spread_of_parts_adds_up_to_that_of_the_whole(cut):
    X = counts()
    X.data[7] = np.nan
    both = (Tally.of(X[:cut]) + Tally.of(X[cut:])).spread()
    whole = Tally.of(X.toarray()).spread()
    for name in ("mean", "std", "low", "high", "gaps"):
        np.testing.assert_allclose(getattr(both, name), getattr(whole, name), rtol=1e-12)


def test_checksums_know_every_part_of_a_csr_array():
    X = counts(50)
    before = checksum(X)
    for name in ("data", "indices", "indptr"):
        other = X.copy()
        getattr(other, name)[3] += 1
        assert checksum(other) != before
    assert checksum(X.copy()) == before


def test_a_file_that_is_written_again_is_noticed(tmp_path):
    sp.save_npz(tmp_path / "x.npz", counts())
    source = gnomon.source(tmp_path / "x.npz")
    PCA(3).fit(source)
    sp.save_npz(tmp_path / "x.npz", counts(seed=1))
    with pytest.raises(ChangedSourceError, match="changed while it was in use"):
        PCA(3).fit(source)


def test_the_temporary_copy_goes_with_the_source(tmp_path):
    sp.save_npz(tmp_path / "x.npz", counts())
    (tmp_path / "spool").mkdir()
    source = gnomon.source(tmp_path / "x.npz", spool=tmp_path / "spool")
    assert len(list((tmp_path / "spool").iterdir())) == 1
    del source
    assert not list((tmp_path / "spool").iterdir())


MTX = "%%MatrixMarket matrix coordinate {}\n3 2 {}\n{}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (MTX.format("real general", 3, "1 1 0.5\n2 2 1\n"), "promises 3 entries and has 2"),
        (MTX.format("real general", 1, "1 1 0.5\n2 2 1\n"), "promises 1 entries and has 2"),
        (MTX.format("real general", 2, "1 1 0.5\n2 x 1\n"), "not every line has 3 numbers"),
        (MTX.format("real general", 2, "1 1 0.5\n2 2\n"), "not every line has 3 numbers"),
        (MTX.format("real general", 2, "1 1 0.5\n4 2 1\n"), "a row is beyond its 3 rows"),
        (MTX.format("real general", 2, "1 1 0.5\n1 0 1\n"), "a column is beyond its 2 columns"),
        (MTX.format("real general", 2, "1.5 1 0.5\n2 2 1\n"), "should be whole"),
        (MTX.format("real general", 2, "nan 1 0.5\n2 2 1\n"), "should be whole"),
        (MTX.format("integer general", 2, "1 1 0.5\n2 2 1\n"), "should be whole"),
        (MTX.format("integer general", 1, "1 1 9007199254740993\n"), "should be whole"),
        (MTX.format("real symmetric", 1, "1 1 0.5\n"), "one half of a symmetric matrix"),
    ],
)
def test_a_broken_matrix_market_file_is_refused(tmp_path, text, says):
    (tmp_path / "x.mtx").write_text(text)
    with pytest.raises(FileError, match=says):
        gnomon.source(tmp_path / "x.mtx")


@pytest.mark.parametrize("sizes", ["900000000000000 2", "2 900000000000000"])
def test_a_size_that_no_memory_holds_is_refused(tmp_path, sizes):
    (tmp_path / "x.mtx").write_text(MTX.format("real general", 1, "1 1 2\n").replace("3 2", sizes))
    with pytest.raises((TooLargeError, FileError)):
        read(tmp_path / "x.mtx")
    with pytest.raises((TooLargeError, FileError)):
        gnomon.source(tmp_path / "x.mtx")


def test_patterns_repeated_entries_and_a_last_line_without_newline(tmp_path):
    text = MTX.format("pattern general", 3, "1 1\n2 2\n1 1")
    (tmp_path / "x.mtx").write_text(text)
    source = gnomon.source(tmp_path / "x.mtx")
    np.testing.assert_array_equal(
        source.read(source.partitions[0]).toarray(), read(tmp_path / "x.mtx").X.toarray()
    )


def test_what_no_part_can_be_read_of_is_refused(tmp_path):
    sp.save_npz(tmp_path / "x.npz", sp.bsr_array(counts()))
    with pytest.raises(FileError, match="in blocks \\(BSR\\), which is not read in parts"):
        gnomon.source(tmp_path / "x.npz")
    sp.save_npz(tmp_path / "y.npz", counts())
    with pytest.raises(OptionError, match="missing values are NaN"):
        gnomon.source(tmp_path / "y.npz", na="-1")
    with np.load(tmp_path / "y.npz") as there:
        parts = {**there, "indices": np.where(np.arange(counts().nnz) == 5, 99, there["indices"])}
    np.savez(tmp_path / "z.npz", **parts)
    with pytest.raises(FileError, match="a column is beyond its 40 columns"):
        gnomon.source(tmp_path / "z.npz")
