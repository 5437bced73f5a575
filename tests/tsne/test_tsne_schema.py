import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from models.same import assert_same, there_and_back
from sklearn.metrics import pairwise_distances

from gnomon import PCA, TSNE
from gnomon.errors import ModelFileError, UnavailableError
from gnomon.tsne.tsne_schema import FormerMap

RNG = np.random.default_rng(0)
CENTRES = RNG.standard_normal((4, 6)) * 4
X = CENTRES[np.arange(90) % 4] + RNG.standard_normal((90, 6))
NEW = CENTRES[np.arange(11) % 4] + RNG.standard_normal((11, 6))
WIDE = np.hstack([X, 0.1 * RNG.standard_normal((90, 110))])
P = np.exp(-(pairwise_distances(X) ** 2) / 8)

QUICK = {"perplexity": 8, "max_iter": 120}


def quick(**parameters):
    return TSNE(**{**QUICK, **parameters})


class StopAt:
    """A callback that ends the run early."""

    def __init__(self, iteration):
        self.iteration = iteration

    def setup(self, estimator, context): ...
    def teardown(self, estimator, context): ...
    def on_fit_task_begin(self, estimator, context): ...
    def on_fit_task_end(self, estimator, context, *, metadata=None, **_):
        return bool(metadata) and metadata["iteration"] >= self.iteration


def without_callbacks(tsne):
    vars(tsne).pop("_skl_callbacks", None)
    return tsne


# model, and new rows to be placed on it (None where it cannot place any)
MODELS = {
    "plain": lambda: (quick().fit(X), NEW),
    "float32 rows": lambda: (quick().fit(X.astype("f4")), NEW.astype("f4")),
    "one dimension": lambda: (quick(n_components=1).fit(X), NEW),
    "three dimensions": lambda: (quick(n_components=3).fit(X), NEW),
    "exact": lambda: (quick(method="exact").fit(X), NEW),
    "all threads but one": lambda: (quick(n_jobs=-2).fit(X), NEW),
    "fractions as weights": lambda: (quick().fit(X, sample_weight=1.0 + np.arange(90) / 90), NEW),
    "weights": lambda: (quick().fit(X, sample_weight=1.0 + np.arange(90) % 3), NEW),
    "cosine": lambda: (quick(metric="cosine").fit(X), NEW),
    "manhattan": lambda: (quick(metric="manhattan").fit(X), NEW),
    "seuclidean": lambda: (
        quick(metric="seuclidean", metric_params={"V": X.var(axis=0)}).fit(X),
        NEW,
    ),
    "uniform": lambda: (quick(affinity="uniform").fit(X), NEW),
    "multiscale": lambda: (quick(affinity="multiscale", perplexity=[5, 12]).fit(X), NEW),
    "heavier tails": lambda: (quick(dof=0.6).fit(X), NEW),
    "reduced": lambda: (quick(pca=3).fit(X), NEW),
    "wide": lambda: (quick().fit(WIDE), WIDE[:9] + 0.01),
    "sparse": lambda: (
        quick().fit(sp.csr_array(np.where(WIDE > 1, WIDE, 0))),
        sp.csr_array(WIDE[:9]),
    ),
    "distances": lambda: (
        quick(metric="precomputed", init="random").fit(pairwise_distances(X)),
        pairwise_distances(NEW, X),
    ),
    "affinities": lambda: (quick(affinity="precomputed", init="random").fit(P), None),
    "given start": lambda: (quick(init=X[:, :2]).fit(X), NEW),
    "dataframe": lambda: (
        quick().fit(pd.DataFrame(X, index=[f"row {i}" for i in range(90)], columns=list("abcdef"))),
        pd.DataFrame(NEW, columns=list("abcdef")),
    ),
    "dates as ids": lambda: (quick().fit(X, ids=np.arange(90).astype("datetime64[D]")), NEW),
    "numbers as ids": lambda: (quick().fit(X, ids=np.arange(90)), NEW),
    "ids with a gap": lambda: (quick().fit(X, ids=np.r_[np.nan, np.arange(89.0)]), NEW),
    "interrupted": lambda: (without_callbacks(quick().set_callbacks(StopAt(57)).fit(X)), NEW),
    "resumed": lambda: (quick(max_iter=50).fit(X).resume(40), NEW),
    "a mesh": lambda: (quick(max_iter=200, method="mesh").fit(many()), many()[:20] + 0.1),
}


def many():
    return np.tile(X, (40, 1)) + np.random.default_rng(1).standard_normal((3600, 6))


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_map_is_the_same_places_rows_and_goes_on_with_the_same_bits(tmp_path, name):
    tsne, new = MODELS[name]()
    loaded = there_and_back(tsne, tmp_path)
    assert_same(tsne, loaded)
    if new is not None:
        assert_same(tsne.place(new), loaded.place(new))
        assert_same(tsne.transform(new), loaded.transform(new))
    tsne.resume(60)
    loaded.resume(60)
    assert tsne.embedding_.tobytes() == loaded.embedding_.tobytes()
    assert tsne.kl_divergence_ == loaded.kl_divergence_
    assert str(tsne.certificate_) == str(loaded.certificate_)


def test_the_mesh_was_really_used():
    tsne, _ = MODELS["a mesh"]()
    assert "mesh" in tsne.certificate_.repulsion
    assert tsne._mesh_cells


def test_a_search_by_lists_is_built_again_with_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr("gnomon.neighbors.search.EXACT_UP_TO", 1000)
    rows = many()
    tsne = quick(max_iter=30, affinity="uniform").fit(rows)
    assert "lists" in tsne.certificate_.neighbors
    loaded = there_and_back(tsne, tmp_path)
    new = rows[:200] + 0.05

    def never(*_, **__):
        raise AssertionError("the lists were found anew")

    monkeypatch.setattr("gnomon.neighbors.search.find_centres", never)
    for mine, yours in zip(tsne._search.of(new, 20), loaded._search.of(new, 20), strict=True):
        assert mine.tobytes() == yours.tobytes()
    assert loaded.transform(new).tobytes() == tsne.transform(new).tobytes()


def test_the_file_holds_no_pickle(tmp_path):
    tsne, new = MODELS["plain"]()
    tsne.transform(new)  # the index and the field are there now
    tsne.save(tmp_path / "m.gnomon")
    assert b"pickle" not in (tmp_path / "m.gnomon").read_bytes()


def test_a_run_that_was_killed_goes_on_to_where_an_unbroken_one_would_be(tmp_path):
    whole = quick(max_iter=160).fit(X)
    tsne = quick(max_iter=160).set_callbacks(StopAt(43)).fit(X)
    assert tsne.n_iter_ == 43
    assert tsne.stop_reason_ == "a callback asked to stop"
    loaded = there_and_back(tsne, tmp_path)
    assert loaded.resume(160 - 43).embedding_.tobytes() == whole.embedding_.tobytes()


def test_warm_start_knows_its_data_again_after_loading(tmp_path):
    whole = quick(warm_start=True, max_iter=140).fit(X)
    loaded = there_and_back(quick(warm_start=True, max_iter=60).fit(X), tmp_path)
    before = loaded.timings_["neighbors"]
    loaded.set_params(max_iter=140).fit(X)
    assert loaded.timings_["neighbors"] == before  # it went on and did not begin anew
    assert loaded.embedding_.tobytes() == whole.embedding_.tobytes()


def test_an_aligned_map_keeps_of_the_former_one_what_aligning_needs(tmp_path):
    former = quick().fit(X[:70])
    tsne = quick(align_to=former).fit(X)
    loaded = there_and_back(tsne, tmp_path)
    assert isinstance(loaded.align_to, FormerMap)
    assert loaded.align_to.embedding_.tobytes() == former.embedding_.tobytes()
    assert_same(loaded.alignment_, tsne.alignment_)
    assert loaded.transform(NEW).tobytes() == tsne.transform(NEW).tobytes()
    assert loaded.resume(40).embedding_.tobytes() == tsne.resume(40).embedding_.tobytes()
    # the same map from the loaded parameters, and saved once more
    again = loaded.fit(X)
    assert again.embedding_.tobytes() == quick(align_to=former).fit(X).embedding_.tobytes()
    assert_same(there_and_back(again, tmp_path), again)


def test_a_new_map_is_aligned_to_a_loaded_one(tmp_path):
    former = quick().fit(X[:70], ids=np.arange(70).astype(str))
    loaded = there_and_back(former, tmp_path)
    ids = np.arange(90).astype(str)
    mine = quick(align_to=former).fit(X, ids=ids)
    yours = quick(align_to=loaded).fit(X, ids=ids)
    assert mine.embedding_.tobytes() == yours.embedding_.tobytes()


def test_a_map_given_as_start_is_kept_as_its_places(tmp_path):
    first = quick().fit(X)
    tsne = quick(init=first).fit(X)
    loaded = there_and_back(tsne, tmp_path)
    assert loaded.init.tobytes() == first.embedding_.tobytes()
    assert loaded.fit(X).embedding_.tobytes() == tsne.embedding_.tobytes()


def test_a_map_of_affinities_says_after_loading_that_it_cannot_place(tmp_path):
    loaded = there_and_back(MODELS["affinities"]()[0], tmp_path)
    with pytest.raises(UnavailableError, match="knows no distances"):
        loaded.transform(P)


def test_nothing_of_a_former_fit_is_in_the_file(tmp_path):
    """Distances of a table are none of a map of affinities, which has other rows."""
    tsne = quick().fit(X)
    tsne.set_params(affinity="precomputed", init="random").fit(P[:60, :60])
    assert there_and_back(tsne, tmp_path).embedding_.shape == (60, 2)


def test_a_map_whose_dimensions_were_changed_is_not_saved(tmp_path):
    tsne, _ = MODELS["plain"]()
    with pytest.raises(ValueError, match="n_components"):
        tsne.set_params(n_components=3).save(tmp_path / "m.gnomon")


def hostile(change):
    """A state that someone made by hand, checksums and all."""

    def changed(tsne):
        state = tsne._to_state()
        change(state["parameters"], state["attributes"])
        return state

    return changed


def put(attribute, part, value):
    def change(_, attributes):
        array = attributes[attribute][part].copy()
        array.flat[-1] = value
        attributes[attribute][part] = array

    return change


def set_(name, value):
    return lambda _, attributes: attributes.__setitem__(name, value)


HOSTILE = {
    "an index of P beyond its rows": put("affinities_", "indices", 10**6),
    "a negative index of P": put("affinities_", "indices", -1),
    "rows of P that end elsewhere": put("affinities_", "indptr", 10**6),
    "an order with a row twice": put("_state", "order", 0),
    "points beyond the bounds": put("_state", "high", -1e3),
    "places that are not numbers": put("_state", "Y", np.nan),
    "more dimensions than points have": lambda p, _: p.__setitem__("n_components", 3),
    "a mesh of terabytes": set_("_mesh_cells", {0.5: (10**6, 10**6)}),
    "a spacing of nothing": set_("_map", {"dof": 1.0, "spacing": 0.0}),
    "another width of the search": lambda _, a: a["_search"].update(Z=np.zeros((90, 5))),
    "other rows of the search": lambda _, a: a["_search"].update(Z=np.zeros((80, 6))),
    "no search": set_("_search", None),
    "weights below 1": set_("_sample_weight", np.zeros(90)),
    "a way to stop that is none": set_("_stop", "__class__"),
    "an attribute that is unknown": set_("transform", "x"),
    "a parameter that is unknown": lambda p, _: p.__setitem__("callback", "x"),
    "a parameter of another kind": lambda p, _: p.__setitem__("dof", "x"),
    "text for a number": set_("n_iter_", "100"),
    "another precision": lambda p, _: p.__setitem__("method", "exact"),
    "aligned to nothing": set_(
        "_shared", {"new": np.zeros(3, int), "old": np.zeros(3, int), "places": np.zeros((3, 2))}
    ),
    "no run": lambda _, a: a.pop("_state"),
    "no limits": lambda _, a: a.pop("_novelty"),
    "no typical distances": lambda _, a: a.update(_typical=None),
    "no map to place rows on": lambda _, a: a.update(_map=None),
    "residuals from nothing": lambda _, a: a["_novelty"].update(auxiliary=None),
    "residuals from other columns": lambda _, a: a["_novelty"].update(
        auxiliary=PCA(2).fit(X[:, :5])
    ),
    "residuals from what is not fitted": lambda _, a: a["_novelty"].update(
        auxiliary=PCA(2).partial_fit(X)
    ),
    "a residual that is no number": lambda _, a: a["_novelty"].update(residual_limit=np.nan),
    "residuals in units of nothing": lambda _, a: a["_novelty"].update(residual_unit=0.0),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_state_made_by_hand_is_refused_before_any_loop_trusts_it(tmp_path, monkeypatch, name):
    tsne, _ = MODELS["plain"]()
    state = hostile(HOSTILE[name])(tsne)
    monkeypatch.setattr(TSNE, "_to_state", lambda _: state)
    with pytest.raises(ModelFileError, match="is not loaded, because"):
        there_and_back(tsne, tmp_path)
