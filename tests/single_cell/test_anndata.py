"""`gnomon.anndata` with real anndata and scanpy, on the data that scanpy brings."""

import subprocess
import sys
import textwrap
import warnings
from importlib.metadata import version

import dask.array
import numpy as np
import pytest
from scipy import sparse

import gnomon
from gnomon import PCA, TSNE
from gnomon.errors import DataError, DataTypeError, DataWarning, ParameterError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of scanpy's and its libraries' own imports
    import anndata
    import scanpy as sc

    import gnomon.anndata as ga
    from gnomon.anndata.backed import as_parts


@pytest.fixture(scope="module")
def cells():
    """700 cells and 765 genes: scaled X, counts after log1p in `raw`, scanpy's PCA and UMAP."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the format of the bundled file
        return sc.datasets.pbmc68k_reduced()


@pytest.fixture
def adata(cells):
    return cells.copy()


@pytest.fixture
def bare(adata):
    """The same cells before a PCA."""
    del adata.obsm["X_pca"]
    return adata


def made(n=60, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = np.log1p(rng.poisson(2 + 3 * np.eye(d)[np.arange(n) % 3], size=(n, d)) / 1.5)
    found = anndata.AnnData(X.astype(np.float32))
    found.obs_names = [f"cell{i}" for i in range(n)]
    found.var_names = [f"gene{j}" for j in range(d)]
    found.obs["kind"] = np.array(["a", "b", "c"])[np.arange(n) % 3]
    return found


def test_components_are_scanpys_under_scanpys_keys(bare):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sc.pp.pca(bare, n_comps=20, copy=True, svd_solver="full")
    ga.pca(bare, 20)
    assert bare.obsm["X_pca"].shape == (700, 20)
    assert bare.obsm["X_pca"].dtype == np.float32
    assert bare.varm["PCs"].shape == (765, 20)
    assert (
        set(theirs.uns["pca"])
        == set(bare.uns["pca"])
        == {
            "params",
            "variance",
            "variance_ratio",
        }
    )
    for key in ("variance", "variance_ratio"):
        np.testing.assert_allclose(bare.uns["pca"][key], theirs.uns["pca"][key], rtol=1e-4)
    for ours, other in (
        (bare.varm["PCs"], theirs.varm["PCs"]),
        (bare.obsm["X_pca"], theirs.obsm["X_pca"]),
    ):
        signs = np.sign((ours * other).sum(axis=0))
        np.testing.assert_allclose(ours, other * signs, atol=2e-3 * np.abs(other).max())


def test_highly_variable_genes_are_used_unless_told_otherwise(bare):
    chosen = np.zeros(bare.n_vars, bool)
    chosen[::3] = True
    bare.var["highly_variable"] = chosen
    ga.pca(bare, 5)
    assert not bare.varm["PCs"][~chosen].any()
    assert bare.uns["pca"]["params"]["mask_var"] == "highly_variable"
    np.testing.assert_array_equal(
        bare.obsm["X_pca"], PCA(5, random_state=0).fit_transform(bare.X[:, chosen])
    )
    ga.pca(bare, 5, mask_var=None, key_added="all")
    assert bare.varm["all"][~chosen].any()
    assert bare.uns["all"]["params"]["mask_var"] is None
    ga.pca(bare, 5, mask_var=~chosen, key_added="others")
    assert not bare.varm["others"][chosen].any()


def test_the_default_number_of_components_is_scanpys(bare):
    ga.pca(bare)
    assert bare.obsm["X_pca"].shape[1] == 50
    few = made()
    ga.pca(few)
    assert few.obsm["X_pca"].shape[1] == 11


def test_components_by_another_program_are_replaced_with_a_warning(adata):
    theirs = adata.obsm["X_pca"].copy()
    ga.pca(adata, 5, key_added="own")
    np.testing.assert_array_equal(adata.obsm["X_pca"], theirs)
    with pytest.warns(
        DataWarning, match=r"obsm\['X_pca'\] was computed by another program"
    ) as said:
        ga.pca(adata, 5)
    assert said[0].message.fields["key"] == "X_pca"
    ga.pca(adata, 6)  # ours
    ga.tsne(adata)
    versions = {adata.uns[key]["params"]["gnomon"] for key in ("pca", "tsne")}
    assert versions == {version("gnomon")}


def test_a_layer_and_a_copy(adata):
    few = made()
    few.layers["double"] = 2 * few.X
    found = ga.pca(few, 3, layer="double", copy=True)
    assert "X_pca" not in few.obsm
    assert found.uns["pca"]["params"]["layer"] == "double"
    ga.pca(few, 3)
    np.testing.assert_allclose(found.obsm["X_pca"], 2 * few.obsm["X_pca"], rtol=1e-5, atol=1e-5)


def test_the_map_is_scanpys_to_draw(adata, tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    ga.tsne(adata)
    assert adata.obsm["X_tsne"].shape == (700, 2)
    assert adata.uns["tsne"]["params"]["use_rep"] == "X_pca"  # the one that was there
    expected = TSNE(random_state=0).fit(adata.obsm["X_pca"]).embedding_
    np.testing.assert_array_equal(adata.obsm["X_tsne"], expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axes = sc.pl.tsne(adata, color="bulk_labels", show=False)
    drawn = axes.collections[0].get_offsets()
    order, theirs = (np.lexsort(np.asarray(each).T) for each in (expected, drawn))
    np.testing.assert_allclose(np.asarray(drawn)[theirs], expected[order])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata.write_h5ad(tmp_path / "cells.h5ad")
        again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(again.obsm["X_tsne"], expected)
    assert again.uns["tsne"]["params"]["perplexity"] == 30


def test_the_representation_is_chosen_as_scanpy_does(adata):
    few = made()
    ga.tsne(few, perplexity=5)
    assert few.uns["tsne"]["params"]["use_rep"] == "X"
    ga.tsne(
        adata,
        3,
        use_rep="X_umap" if adata.obsm["X_umap"].shape[1] > 2 else "X_pca",
        key_added="other",
    )
    np.testing.assert_array_equal(
        adata.obsm["other"], TSNE(random_state=0).fit(adata.obsm["X_pca"][:, :3]).embedding_
    )
    del adata.obsm["X_pca"]
    with pytest.raises(ParameterError, match=r"Run gnomon.anndata.pca\(adata\) first"):
        ga.tsne(adata)
    with pytest.raises(ParameterError, match="`n_pcs` must be at most 2"):
        ga.tsne(adata, 9, use_rep="X_umap")


def test_scanpys_graph_of_neighbours_is_used_on_request(adata):
    ga.tsne(adata, neighbors_key="neighbors")
    assert adata.uns["tsne"]["params"]["neighbors_key"] == "neighbors"
    kept = gnomon.scores.recall(adata.obsm["X_pca"], adata.obsm["X_tsne"], 15)
    assert kept > 0.3  # a random map keeps 15/699 = 0.02
    with pytest.raises(ParameterError, match=r"sc\.pp\.neighbors"):
        ga.tsne(made(), neighbors_key="neighbors")


def test_raw_counts_are_warned_of():
    counts = made()
    counts.X = np.random.default_rng(0).poisson(3, size=counts.shape).astype(np.float32)
    with pytest.warns(DataWarning, match="raw counts.*sc.pp.normalize_total"):
        ga.pca(counts, 3)
    counts.X = sparse.csr_matrix(counts.X)
    with pytest.warns(DataWarning, match="raw counts"):
        ga.pca(counts, 3)


@pytest.mark.filterwarnings("ignore:X is stored by columns:gnomon.errors.DataWarning")
@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_backed_and_sparse_cells_have_the_bits_of_those_in_memory(tmp_path, kind):
    cells = made(300, 80)
    if kind != "dense":
        cells.X = getattr(sparse, f"{kind}_matrix")(cells.X)
    ga.pca(cells, 5)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with_one = ga.pca(backed.to_memory(), 5, n_jobs=1, copy=True)
    ga.pca(backed, 5, key_added="again", n_jobs=2)
    backed.file.close()
    for found in (with_one.obsm["X_pca"], backed.obsm["again"]):
        assert found.tobytes() == cells.obsm["X_pca"].tobytes()


@pytest.mark.parametrize("kind", ["csr", "csc", "dense", "dask csr", "dask dense"])
@pytest.mark.parametrize("shape", [(3000, 120), (90, 200)], ids=["tall", "wide"])
def test_matrices_outside_of_memory_are_read_in_parts_with_the_same_bits(tmp_path, kind, shape):
    """Also through genes that are chosen, and however Dask's chunks lie."""
    n, d = shape
    cells = made(n, d)
    cells.var["highly_variable"] = np.arange(d) % 3 > 0
    if "dense" not in kind:
        cells.X = getattr(sparse, f"{kind.split()[-1]}_matrix")(cells.X)
    ga.pca(cells, 10)
    if kind.startswith("dask"):
        chunks = [
            dask.array.from_array(cells.X[at : at + 777], chunks=(777, d), asarray=False)
            for at in range(0, n, 777)
        ]
        other = cells.copy()
        other.X = dask.array.concatenate(chunks)
    else:
        cells.write_h5ad(tmp_path / "cells.h5ad")
        other = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    parts = as_parts(other.X)
    assert (parts is None) == (kind == "csc")
    assert parts is None or parts.is_sparse == ("csr" in kind)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ga.pca(other, 10, key_added="again")
    assert any("CSC" in str(each.message) for each in caught) == (kind == "csc")
    assert other.obsm["again"].tobytes() == cells.obsm["X_pca"].tobytes()
    assert other.varm["again"].tobytes() == cells.varm["PCs"].tobytes()


def test_new_cells_outside_of_memory_are_placed_as_those_in_memory(tmp_path):
    found = ga.map(made(200, 60), 10)
    new = made(50, 60, seed=1)
    new.X = sparse.csr_matrix(new.X)
    new.write_h5ad(tmp_path / "new.h5ad")
    backed = anndata.read_h5ad(tmp_path / "new.h5ad", backed="r")
    for cells in (new, backed):
        ga.place(cells, found)
    np.testing.assert_array_equal(backed.obsm["X_tsne"], new.obsm["X_tsne"])
    with pytest.warns(DataWarning, match="whole numbers"):
        ga.pca(_counts_in(tmp_path), 5)


def _counts_in(folder):
    cells = made(60, 20)
    cells.X = sparse.csr_matrix(np.random.default_rng(0).poisson(2.0, (60, 20)).astype("f4"))
    cells.write_h5ad(folder / "counts.h5ad")
    return anndata.read_h5ad(folder / "counts.h5ad", backed="r")


@pytest.mark.parametrize("threads", [2, 4, 16])
def test_maps_have_the_same_bits_on_any_number_of_threads(threads):
    one, more = made(200, 60), made(200, 60)
    for cells, n_jobs in ((one, 1), (more, threads)):
        ga.map(cells, 10, n_jobs=n_jobs)
    assert one.obsm["X_tsne"].tobytes() == more.obsm["X_tsne"].tobytes()


def test_new_cells_are_placed_on_the_map_by_the_names_of_their_genes(bare):
    old, new = bare[:600].copy(), bare[600:].copy()
    found = ga.map(old, 20)
    assert old.obs["tsne_trust"].between(0, 1).all()
    turned = new[:, ::-1].copy()
    ga.place(turned, found)
    ga.place(new, found)
    np.testing.assert_allclose(turned.obsm["X_tsne"], new.obsm["X_tsne"], atol=1e-3)
    assert new.obs["tsne_unusual"].dtype == bool
    same = old[:5].copy()
    ga.place(same, found)
    away = np.linalg.norm(same.obsm["X_tsne"] - old.obsm["X_tsne"][:5], axis=1)
    assert np.median(away) < 0.05 * np.ptp(old.obsm["X_tsne"])
    with pytest.raises(DataError, match="lack 3 of the 309 genes"):
        ga.place(new[:, 5:].copy(), found)
    with pytest.raises(DataError, match=r"what gnomon\.anndata\.map returns"):
        ga.place(new, old)


def test_pages_are_coloured_by_obs(bare):
    found = ga.map(bare, 10)
    page = found.report(color=["bulk_labels", "n_genes"], title="Cells")
    assert page.content.ids[1][0] == bare.obs_names[0]
    assert [name for name, _ in page.content.labels] == ["bulk_labels", "n_genes"]
    judged = ga.report(bare, "umap", color="bulk_labels")
    assert "The map was given" in judged.html
    assert judged.content.audit is not None
    np.testing.assert_array_equal(judged.content.Y, bare.obsm["X_umap"])
    unasked = ga.report(bare, "X_tsne")
    assert unasked.content.labels[0][0] == "bulk_labels"
    with pytest.raises(DataError, match="`color` 'nothing' is no column"):
        found.report(color="nothing")
    with pytest.raises(ParameterError, match="`basis` must be a key"):
        ga.report(bare, "X_nothing")


def test_every_anndata_has_the_methods():
    cells = made()
    cells.gnomon.pca(5)
    cells.gnomon.tsne(perplexity=5)
    found = cells.gnomon.map(5)
    new = made(seed=1)
    new.gnomon.place(found)
    assert new.obsm["X_tsne"].shape == (60, 2)
    assert "<!doctype html>" in cells.gnomon.report().html
    assert cells.copy().gnomon.pca(3, copy=True).obsm["X_pca"].shape == (60, 3)


def test_estimators_say_what_to_write_for_an_anndata():
    cells = made()
    for fit in (PCA().fit, TSNE().fit, lambda X: gnomon.report(X), gnomon.audit):
        with pytest.raises(
            (DataTypeError, TypeError), match=r"gnomon.anndata.pca\(adata\)|missing"
        ):
            fit(cells)


@pytest.mark.parametrize(
    ("change", "how", "error", "message"),
    [
        ({}, {"layer": "nothing"}, ParameterError, "`layer` must be one of"),
        ({}, {"mask_var": "nothing"}, ParameterError, "`mask_var` must name a column"),
        ({}, {"mask_var": [True]}, ParameterError, "`mask_var` must hold True or False"),
        ({}, {"mask_var": np.zeros(12, bool)}, ParameterError, "choose at least one gene"),
        ({}, {"n_comps": 99}, ParameterError, "n_components"),
        ({"X": None}, {}, DataError, "The AnnData has no X"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(change, how, error, message):
    cells = made()
    if "X" in change:
        cells = anndata.AnnData(obs=cells.obs, var=cells.var)
    with pytest.raises(error, match=message):
        ga.pca(cells, **how)


def test_missing_numbers_and_words_are_refused():
    cells = made()
    cells.X[3, 4] = np.nan
    with pytest.raises(DataError, match="row 3"):
        ga.pca(cells, 3)


def test_without_anndata_the_way_out_is_said():
    code = """
        import sys
        sys.modules["anndata"] = None
        import gnomon
        try:
            gnomon.anndata
        except ImportError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert "pip install 'gnomon[anndata]'" in done.stdout
