"""`gnomon map cells.h5ad`: files that anndata wrote, and files that must be refused."""

import json
import warnings

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from commands import gnomon

import gnomon as gnomon_package
from gnomon import PCA
from gnomon.data import open as opening
from gnomon.data.open import open_table
from gnomon.data.read import read
from gnomon.data.refusals import FileError, OptionError
from gnomon.errors import DataWarning
from gnomon.pipeline.flow import run

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import anndata


def cells(kind="csr", n=90, d=30, seed=0):
    rng = np.random.default_rng(seed)
    X = np.log1p(rng.poisson(0.4 + 3 * np.eye(d)[np.arange(n) % 3], size=(n, d)) / 1.5)
    X = X.astype(np.float32)
    found = anndata.AnnData(X if kind == "dense" else sp.csr_matrix(X).asformat(kind))
    found.obs_names = [f"cell{i}" for i in range(n)]
    found.var_names = [f"gene{j}" for j in range(d)]
    names = np.array(["T", "B", "NK"])[np.arange(n) % 3]
    found.obs["kind"] = names
    found.obs["kind"] = found.obs["kind"].astype("category")
    found.obs["depth"] = rng.random(n) * 1e4
    found.layers["twice"] = 2 * found.X
    found.obsm["X_pca"] = rng.standard_normal((n, 5))
    return found


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "cells.h5ad"
    cells().write_h5ad(path)
    return path


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
def test_the_matrix_is_the_one_that_anndata_reads(tmp_path, kind):
    cells(kind).write_h5ad(tmp_path / "c.h5ad")
    theirs = anndata.read_h5ad(tmp_path / "c.h5ad")
    table = read(tmp_path / "c.h5ad")
    assert sp.issparse(table.X) == (kind != "dense")
    ours = table.X.toarray() if kind != "dense" else table.X
    other = theirs.X.toarray() if kind != "dense" else theirs.X
    np.testing.assert_array_equal(ours, other)
    assert table.columns == tuple(theirs.var_names)
    assert table.ids.tolist() == theirs.obs_names.tolist()
    assert table.label_name == "kind"
    assert table.labels.tolist() == theirs.obs["kind"].tolist()
    (depth,) = (values for name, values in table.others if name == "depth")
    np.testing.assert_allclose(depth, theirs.obs["depth"])
    assert any("CSC" in note for note in table.notes) == (kind == "csc")


def test_a_layer_or_a_representation_is_used_where_it_is_named(file):
    theirs = anndata.read_h5ad(file)
    np.testing.assert_array_equal(read(file, layer="twice").X.toarray(), 2 * theirs.X.toarray())
    table = read(file, use_rep="X_pca")
    np.testing.assert_array_equal(table.X, theirs.obsm["X_pca"])
    assert table.columns[0] == "pca_1"
    np.testing.assert_array_equal(read(file, use_rep="pca").X, table.X)
    with pytest.raises(OptionError, match='"twice"'):
        read(file, layer="counts")
    with pytest.raises(OptionError, match='"X_pca"'):
        read(file, use_rep="X_scvi")


def test_highly_variable_genes_are_used_and_said(tmp_path):
    adata = cells()
    adata.var["highly_variable"] = np.arange(30) % 2 == 0
    adata.write_h5ad(tmp_path / "c.h5ad")
    table = read(tmp_path / "c.h5ad")
    assert table.columns == tuple(adata.var_names[::2])
    np.testing.assert_array_equal(table.X.toarray(), adata.X[:, ::2].toarray())
    assert any("15 of 30 genes" in note for note in table.notes)


def test_all_genes_are_used_where_features_say_so(tmp_path):
    write_old(tmp_path / "c.h5ad")
    assert len(read(tmp_path / "c.h5ad", use_rep="X").columns) == 40
    for how in (read, lambda path, **options: open_table(path, in_blocks=True, **options)):
        table = how(tmp_path / "c.h5ad", use_rep="X", features="*")
        assert table.columns == tuple(f"gene{j}" for j in range(60))


def test_categories_are_groups_though_their_names_are_numbers(tmp_path):
    adata = cells()
    adata.obs["lane"] = pd.Categorical((np.arange(90) % 4).astype(str))
    adata.write_h5ad(tmp_path / "c.h5ad")
    for table in (read(tmp_path / "c.h5ad"), open_table(tmp_path / "c.h5ad", in_blocks=True)):
        left = {each.column: each.why for each in table.roles.kept_for_colour}
        assert left == {"lane": "categories", "depth": "numbers beside the table"}
        assert dict(table.others)["lane"].tolist() == adata.obs["lane"].tolist()
        assert table.words(command=True)[3][1].startswith("kept for colour: lane (")
    with pytest.raises(OptionError, match='It has "cell", "lane", "kind", "depth", "gene0"'):
        read(tmp_path / "c.h5ad", label="cell_type")


def test_raw_counts_warn(tmp_path):
    adata = cells()
    adata.X = sp.csr_matrix(np.random.default_rng(0).poisson(2.0, (90, 30)).astype(np.float32))
    adata.write_h5ad(tmp_path / "c.h5ad")
    with pytest.warns(DataWarning, match="raw counts"):
        read(tmp_path / "c.h5ad")


def test_the_command_maps_places_and_builds_the_page_again(file, tmp_path):
    for words in (
        ["map", "cells.h5ad", "--layer", "twice", "-k", "5", "-o", "out"],
        ["place", "cells.h5ad", "-m", "out", "--layer", "twice", "-o", "new.csv"],
        ["report", "out", "--force"],
        ["inspect", "cells.h5ad", "--use-rep", "X_pca"],
    ):
        done = gnomon(*words, folder=tmp_path)
        assert done.returncode == 0, (words, done.stderr)
    told = json.loads((tmp_path / "out" / "run.json").read_text())
    assert told["settings"]["layer"] == "twice"
    assert told["table"]["label"] == "kind"


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
@pytest.mark.parametrize("how", [{}, {"layer": "twice"}, {"normalize": "log1p"}], ids=str)
def test_a_file_in_parts_is_the_table_in_memory(tmp_path, kind, how):
    adata = cells(kind, n=500, d=60)
    adata.var["highly_variable"] = np.arange(60) % 3 > 0
    adata.obs["part"] = np.arange(500) % 2 == 0
    adata.write_h5ad(tmp_path / "c.h5ad")
    how = {"use_rep": "X", **how} if "layer" not in how else how
    held = read(tmp_path / "c.h5ad", **how)
    parts = open_table(tmp_path / "c.h5ad", in_blocks=True, **how)
    assert parts.in_blocks
    assert parts.columns == held.columns
    source = gnomon_package.source(tmp_path / "c.h5ad", rows=100, **how)
    assert len(source.partitions) == 5
    blocks = [source.read(partition) for partition in source.partitions]
    if kind == "dense":
        np.testing.assert_array_equal(np.concatenate(blocks), held.X)
    else:
        assert all(isinstance(block, sp.csr_array) for block in blocks)
        np.testing.assert_array_equal(sp.vstack(blocks).toarray(), held.X.toarray())
    assert list(parts.ids) == list(held.ids)
    assert list(parts.labels) == list(held.labels)
    assert [name for name, _ in parts.others] == [name for name, _ in held.others]
    assert set(held.notes) <= set(parts.notes)
    ours = PCA(3, solver="covariance").fit(parts.X).components_
    assert np.array_equal(ours, PCA(3, solver="covariance").fit(held.X).components_)


def test_a_file_that_does_not_fit_is_read_in_parts(file, monkeypatch):
    usual = run(file, use_rep="X", n_components=3, perplexity=10)
    monkeypatch.setattr(opening, "SMALL_BYTES", 0)
    monkeypatch.setattr(opening, "SPARSE_SHARE", 0)
    parts = run(file, use_rep="X", n_components=3, perplexity=10)
    assert parts.table.in_blocks
    assert np.array_equal(parts.pca.components_, usual.pca.components_)
    assert list(parts.table.labels) == list(usual.table.labels)


def test_new_cells_are_taken_by_the_names_of_the_models_genes(tmp_path):
    """A new file marks other genes as variable, and may hold an `X_pca` of its own."""
    old = cells(d=60)
    old.var["highly_variable"] = np.arange(60) % 2 == 0
    old.write_h5ad(tmp_path / "old.h5ad")
    new = cells(n=40, d=60, seed=1)
    new.var["highly_variable"] = np.arange(60) % 2 == 1
    new[:, ::-1].copy().write_h5ad(tmp_path / "new.h5ad")
    genes = read(tmp_path / "old.h5ad", use_rep="X").columns
    found = read(tmp_path / "new.h5ad", columns=genes)
    np.testing.assert_array_equal(found.X.toarray(), new.X[:, ::2].toarray())
    parts = open_table(tmp_path / "new.h5ad", in_blocks=True, columns=genes)
    assert parts.columns == genes
    (block,) = (parts.X.read(partition) for partition in parts.X.partitions)
    np.testing.assert_array_equal(block.toarray(), new.X[:, ::2].toarray())


def test_a_model_of_a_representation_places_cells_by_it(tmp_path):
    cells(d=60).write_h5ad(tmp_path / "old.h5ad")
    columns = read(tmp_path / "old.h5ad").columns
    assert columns[0] == "pca_1"
    new = cells(n=40, d=60, seed=1)
    new.write_h5ad(tmp_path / "new.h5ad")
    found = read(tmp_path / "new.h5ad", columns=columns)
    np.testing.assert_array_equal(found.X, new.obsm["X_pca"])


def write_old(path, d=60, n=90):
    """A file as anndata wrote it before 0.7: records, and the texts of categories in `uns`."""
    found = cells("dense", n=n, d=d)
    codes = found.obs["kind"].cat.codes.to_numpy()
    obs = np.zeros(n, [("index", "S8"), ("kind", "i1"), ("depth", "<f8"), ("lane", "<i8")])
    obs["index"], obs["kind"] = found.obs_names.to_numpy().astype("S8"), codes
    obs["depth"], obs["lane"] = found.obs["depth"], 1000 + np.arange(n)
    var = np.zeros(d, [("index", "S8"), ("kind", "i1"), ("highly_variable", "?")])
    var["index"], var["highly_variable"] = found.var_names.to_numpy().astype("S8"), True
    var["highly_variable"][::3] = False
    obsm = np.zeros(n, [("X_pca", "<f4", (5,)), ("X_umap", "<f8", (2,))])
    obsm["X_pca"] = found.obsm["X_pca"]
    obsm["X_umap"] = found.obsm["X_pca"][:, :2]
    texts = found.obs["kind"].cat.categories.to_numpy().astype("S2")
    with h5py.File(path, "w") as file:
        file["X"], file["obs"], file["var"], file["obsm"] = found.X, obs, var, obsm
        file["uns/kind_categories"] = texts
        file["uns/lane_categories"] = texts  # of a column of `var`: no numbers of `obs` fit it
        raw = sp.csr_matrix(found.X)
        for name in ("data", "indices", "indptr"):
            file[f"raw.X/{name}"] = getattr(raw, name)
        file["raw.X"].attrs["h5sparse_format"] = "csr"
        file["raw.X"].attrs["h5sparse_shape"] = raw.shape
    return found


def test_the_layout_before_anndata_0_7_is_read(tmp_path):
    found = write_old(tmp_path / "old.h5ad")
    table = read(tmp_path / "old.h5ad")
    np.testing.assert_array_equal(table.X, found.obsm["X_pca"].astype(np.float32))
    assert table.ids.tolist() == found.obs_names.tolist()
    assert (table.label_name, table.labels.tolist()) == ("kind", found.obs["kind"].tolist())
    others = dict(table.others)
    np.testing.assert_array_equal(others["depth"], found.obs["depth"])
    np.testing.assert_array_equal(others["lane"], 1000 + np.arange(90))
    genes = read(tmp_path / "old.h5ad", use_rep="X")
    used = np.arange(60) % 3 > 0
    np.testing.assert_array_equal(genes.X, found.X[:, used])
    assert genes.columns == tuple(found.var_names[used])
    for how in ({}, {"use_rep": "X"}, {"use_rep": "X_umap"}):
        parts = open_table(tmp_path / "old.h5ad", in_blocks=True, **how)
        assert parts.labels.tolist() == table.labels.tolist()
        blocks = [parts.X.read(partition) for partition in parts.X.partitions]
        np.testing.assert_array_equal(np.vstack(blocks), read(tmp_path / "old.h5ad", **how).X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata's, of the old layout
        theirs = anndata.read_h5ad(tmp_path / "old.h5ad")
    assert theirs.obs["kind"].tolist() == table.labels.tolist()
    done = gnomon("audit", "old.h5ad", "--map", "X_umap", folder=tmp_path)
    assert done.returncode == 0, done.stderr


def read_parts(path):
    table = open_table(path, in_blocks=True)
    return [table.X.read(partition) for partition in table.X.partitions]


def put(write):
    def make(path):
        cells().write_h5ad(path)
        with h5py.File(path, "r+") as file:
            write(file)

    return make


def _virtual(file):
    layout = h5py.VirtualLayout((3,), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "x", (3,))
    file.create_virtual_dataset("uns/made", layout)


def _plugin(file):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((4,))
    plist.set_filter(32015, h5py.h5z.FLAG_OPTIONAL)  # zstd, which is not there: stored as it is
    space = h5py.h5s.create_simple((4,))
    h5py.h5d.create(file["uns"].id, b"packed", h5py.h5t.NATIVE_DOUBLE, space, plist)


HOSTILE = {
    "external link": (
        put(lambda f: f.__setitem__("uns/x", h5py.ExternalLink("/etc/passwd", "/"))),
        "another file",
    ),
    "soft link": (put(lambda f: f.__setitem__("uns/x", h5py.SoftLink("/X"))), "soft link"),
    "external storage": (
        put(lambda f: f.create_dataset("uns/x", (4,), "u1", external=[("/etc/passwd", 0, 4)])),
        "stored in another file",
    ),
    "virtual": (put(_virtual), "virtual dataset"),
    "plugin": (put(_plugin), "plugin"),
    "no X": (put(lambda f: f.__delitem__("X")), "has no X"),
    "no obs": (put(lambda f: f.__delitem__("obs")), "no AnnData file"),
    "obs that is a list": (
        put(lambda f: (f.__delitem__("obs"), f.__setitem__("obs", np.arange(90)))),
        "has no index",
    ),
    "indices out of range": (
        put(lambda f: f["X/indices"].__setitem__(0, 999)),
        "broken sparse matrix",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_or_broken_file_is_refused_with_one_sentence(tmp_path, what):
    make, words = HOSTILE[what]
    make(tmp_path / "c.h5ad")
    with pytest.raises(FileError, match=words):
        read(tmp_path / "c.h5ad")
    with pytest.raises(FileError, match=words):
        read_parts(tmp_path / "c.h5ad")
    done = gnomon("map", "c.h5ad", folder=tmp_path)
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "c_map" / "run.json").exists()


def test_strings_in_x_are_refused(tmp_path):
    cells().write_h5ad(tmp_path / "c.h5ad")
    with h5py.File(tmp_path / "c.h5ad", "r+") as file:
        del file["X"]
        file["X"] = np.array([[b"a", b"b"]] * 90)
    with pytest.raises(FileError, match="no table of numbers"):
        read(tmp_path / "c.h5ad")


@pytest.mark.parametrize("share", [0.02, 0.5, 0.95])
def test_a_truncated_file_is_refused(file, share):
    octets = file.read_bytes()
    file.write_bytes(octets[: int(share * len(octets))])
    with pytest.raises(FileError, match=r"truncated or damaged|crashes|no AnnData"):
        read(file)


def test_other_hdf5_files_say_what_helps(tmp_path):
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["x"] = np.ones(3)
    with pytest.raises(FileError, match=r"ends in \.h5ad"):
        read(tmp_path / "c.h5")


def test_scanpys_representation_is_used_of_many_genes_and_x_where_it_is_asked_for(tmp_path):
    adata = cells(d=60)
    adata.write_h5ad(tmp_path / "c.h5ad")
    usual = read(tmp_path / "c.h5ad")
    np.testing.assert_array_equal(usual.X, adata.obsm["X_pca"])
    assert any("X_pca" in note for note in usual.notes)
    plain = read(tmp_path / "c.h5ad", use_rep="X")
    np.testing.assert_array_equal(plain.X.toarray(), adata.X.toarray())
    done = gnomon("reduce", "c.h5ad", "-k", "3", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["table"]["features"][0] == "gene0"


@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_counts_are_normalised_as_scanpy_does(tmp_path, kind):
    import scanpy as sc

    adata = cells(kind)
    counts = np.random.default_rng(0).poisson(2.0, (90, 30)).astype(np.float32)
    counts[3] = 0  # a cell without counts
    adata.X = counts if kind == "dense" else sp.csr_matrix(counts)
    adata.write_h5ad(tmp_path / "c.h5ad")
    with pytest.warns(DataWarning, match="--normalize log1p"):
        read(tmp_path / "c.h5ad")
    mine = read(tmp_path / "c.h5ad", normalize="log1p").X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sc.pp.normalize_total(adata, target_sum=1e4)
        sc.pp.log1p(adata)
    theirs = adata.X if kind == "dense" else adata.X.toarray()
    np.testing.assert_allclose(mine if kind == "dense" else mine.toarray(), theirs, rtol=1e-5)
    with pytest.raises(OptionError, match="normalize must be log1p"):
        read(tmp_path / "c.h5ad", normalize="sqrt")


def test_a_map_of_scanpys_components_says_so_and_what_they_hold(tmp_path):
    adata = cells(d=60)
    adata.obsm["X_pca"] *= 30.0 ** -np.arange(5)
    adata.uns["pca"] = {"variance_ratio": np.array([0.3, 0.1, 0.05, 0.03, 0.02])}
    adata.write_h5ad(tmp_path / "c.h5ad")
    done = gnomon("map", "c.h5ad", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert "Read c.h5ad: 90 cells × 60 genes" in said
    assert "Features 5 principal components (pca_1 … pca_5)" in said
    assert "5 principal components, which hold 50 % of the variance of the genes" in said
    assert "Scale none: principal components" in said
    assert "PCA 5 principal components, taken from the file" in said
    assert "of the variance " not in said.partition("PCA")[2]
    blocks = open_table(tmp_path / "c.h5ad", in_blocks=True)
    assert blocks.title() == "c.h5ad: 90 cells × 60 genes"


def test_a_map_within_the_file_is_audited(tmp_path):
    adata = cells(d=60)
    adata.obsm["X_umap"] = np.ascontiguousarray(adata.obsm["X_pca"][:, :2])
    adata.write_h5ad(tmp_path / "c.h5ad")
    done = gnomon("audit", "c.h5ad", "--map", "X_umap", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["map"]["columns"] == ["umap_1", "umap_2"]
    assert found["table"]["features"][0] == "pca_1"
    assert (tmp_path / "c_audit" / "report.html").exists()
