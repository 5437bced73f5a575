"""Nothing inside depends on how the user has configured scikit-learn."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context

import gnomon
from gnomon import PCA, TSNE, Procrustes, charts, samples, scores
from gnomon.errors import GnomonWarning

QUICK = {"perplexity": 5, "max_iter": 30}


def tables():
    """A narrow table, a wide one that t-SNE reduces first, and both as sparse tables."""
    rng = np.random.default_rng(0)
    narrow, wide = rng.normal(size=(40, 5)), rng.normal(size=(40, 120))
    return narrow, wide, sp.csr_array(np.where(wide > 1, wide, 0.0))


def surface(folder):
    """Every public function and method that computes something, as plain arrays by name."""
    narrow, wide, sparse = tables()
    moved = narrow @ np.linalg.qr(narrow[:5])[0] + 1
    pca, frame = PCA(3).fit(narrow), Procrustes().fit(narrow, moved)
    tsne = TSNE(**QUICK).fit(narrow)
    wide_map = TSNE(**QUICK).fit(wide)
    again = TSNE(**QUICK, align_to=tsne).fit(narrow[:30])
    page = gnomon.report(narrow, pca=pca, tsne=tsne, stability=2)
    wide_page = gnomon.report(wide, pca=PCA(3).fit(wide), tsne=wide_map)
    found = gnomon.run(samples.load("iris"), perplexity=5, seed=0)
    aligned = gnomon.align(narrow, moved)
    transfer = gnomon.align_subspaces(PCA(2).fit(narrow), PCA(2).fit(moved))
    yield "scores", pca.transform(narrow)
    yield "restored", pca.inverse_transform(pca.transform(narrow))
    yield "residuals", pca.residuals(narrow)
    yield "contributions", pca.contributions(narrow)
    yield "limit", pca.prediction_error_limit(0.05)
    yield "moved", frame.transform(narrow)
    yield "moved back", frame.inverse_transform(frame.transform(narrow))
    yield "map", tsne.embedding_
    yield "map, returned", TSNE(**QUICK).fit_transform(narrow)
    yield "map of a wide table", wide_map.embedding_
    yield "map of a sparse table", TSNE(**QUICK).fit(sparse).embedding_
    yield "map of scores", TSNE(**QUICK, pca=pca).fit(narrow).embedding_
    yield "map by cosine", TSNE(**QUICK, metric="cosine").fit(narrow).embedding_
    yield "map over a map", again.embedding_
    yield "places", wide_map.transform(wide[:4])
    yield "places of a sparse table", wide_map.place(wide[:4]).positions
    yield "run", found.components
    yield "run's map", found.tsne.embedding_
    yield "aligned", aligned.aligned
    yield "subspaces", transfer.transform(narrow)
    yield "stability", gnomon.stability(TSNE(**QUICK), narrow, runs=2).mean
    yield "consensus", gnomon.consensus([narrow, moved]).mean
    yield "trust", scores.trustworthiness(narrow, tsne.embedding_)
    yield "pages", [len(str(page)) > 0, len(str(wide_page)) > 0]
    yield "biplot", [len(charts.biplot(pca, narrow).svg)]
    pca.save(folder / "pca.gnomon")
    yield "loaded", gnomon.load(folder / "pca.gnomon").transform(narrow)


def computed(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GnomonWarning)  # small tables and short descents
        return dict(surface(folder))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return computed(tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_results_have_the_same_bits_when_transformers_return_data_frames(tmp_path, output, plain):
    with config_context(transform_output=output):
        framed = computed(tmp_path)
    assert plain.keys() == framed.keys()
    for name, expected in plain.items():
        assert np.array_equal(np.asarray(framed[name]), np.asarray(expected)), name


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_a_pca_that_was_set_to_return_data_frames_can_reduce_a_map(output):
    narrow, *_ = tables()
    framed = PCA(3).fit(narrow).set_output(transform=output)
    expected = TSNE(**QUICK, pca=PCA(3).fit(narrow)).fit(narrow).embedding_
    assert np.array_equal(TSNE(**QUICK, pca=framed).fit(narrow).embedding_, expected)
