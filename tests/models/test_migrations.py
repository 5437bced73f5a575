import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gnomon import PCA, load, samples
from gnomon.errors import ModelFileError
from gnomon.models.document import AFTER, ZEROS, write_document
from gnomon.models.fields import UnfitError
from gnomon.models.file import save
from gnomon.models.migrations import MIGRATIONS, VERSION

REFERENCES = Path(__file__).parents[1] / "references"


def test_a_file_of_format_0_becomes_a_model_of_today(tmp_path):
    pca = load(REFERENCES / "pca_format_0.gnomon")
    X = samples.load("house-prices").X  # price and area are equal: one component holds all
    assert isinstance(pca, PCA)
    # rounding of a sum of two numbers below 10
    np.testing.assert_allclose(np.abs(pca.components_), np.full((1, 2), 0.5**0.5), atol=1e-15)
    np.testing.assert_allclose(pca.inverse_transform(pca.transform(X)), X, atol=1e-14)
    assert pca.partial_fit(X).n_samples_ == 10
    save(pca, tmp_path / "today.gnomon")
    assert load(tmp_path / "today.gnomon").transform(X).tobytes() == pca.transform(X).tobytes()


def test_a_map_of_format_1_still_places_new_rows(tmp_path):
    """Its search said one thing more than searches do today."""
    tsne = load(REFERENCES / "tsne_format_1.gnomon")
    X = samples.load("iris").X
    assert np.array_equal(tsne.transform(X[:60:5]), tsne.embedding_)  # its own rows
    assert np.isfinite(tsne.resume(5).transform(X[1:4])).all()
    save(tsne, tmp_path / "today.gnomon")
    assert load(tmp_path / "today.gnomon").transform(X).tobytes() == tsne.transform(X).tobytes()
    parts = {"too_near": True, "models": [{"few_probes": 4, "too_near": False}]}
    today = {"too_near": True, "models": [{"few_probes": 4}]}  # a name that a user may have given
    assert MIGRATIONS[1]({"content": parts}) == {"content": today, "version": 2}


def test_a_map_of_a_draft_of_format_3_places_rows_as_it_did(tmp_path):
    """It held a whole PCA for its residuals, of which the components are enough."""
    tsne = load(REFERENCES / "tsne_format_3.gnomon")
    X = samples.load("iris").X
    mapped, new = X[:60:5], X[1:140:7]
    placed = tsne.place(new)
    assert np.array_equal(tsne.transform(mapped), tsne.embedding_)
    expected = np.sqrt(PCA(0.98).fit(mapped).prediction_error(new)) / tsne._novelty.residual_unit
    np.testing.assert_allclose(placed.residual, expected, rtol=1e-12)
    save(tsne, tmp_path / "today.gnomon")
    today = load(tmp_path / "today.gnomon").place(new)
    assert today.residual.tobytes() == placed.residual.tobytes()
    assert today.positions.tobytes() == placed.positions.tobytes()


def test_maps_of_format_3_had_a_regressor_beside_the_rows_compared():
    compared = {"rows": 1, "entropy": 2, "change": 3, "share": 0.5}
    named = {"last": 1, "rows": 2}  # names that a user may have given
    old = {"content": [{"_truncation": {**compared, "last": 4}}, named]}
    new = {"content": [{"_truncation": compared}, named], "version": 4}
    assert MIGRATIONS[3](old) == new
    schedule = {"anneal_iter": 1, "early_exaggeration": 2, "usual_iter": 3}
    stages = {"exaggeration_stages": None, "momentum_stages": None}
    assert MIGRATIONS[3]({"_schedule": schedule})["_schedule"] == {**schedule, **stages}


def test_a_map_of_format_2_goes_on_by_distances_alone():
    """It knew one limit, and nothing of residuals."""
    tsne = load(REFERENCES / "first_edition" / "tsne.gnomon")
    X = samples.load("iris").X
    placed = tsne.place(np.vstack([X, X[:2] + 50]))
    assert np.isnan(placed.residual).all()
    assert placed.residual_limit is None
    assert placed.why[-2:].tolist() == ["near nothing"] * 2
    with zipfile.ZipFile(REFERENCES / "first_edition" / "tsne.gnomon") as archive:
        document = json.loads(archive.read("model.json"))
    limit = document["content"]["state"]["attributes"]["_ratio_limit"]
    assert placed.distance_limit == limit
    parts = {"_ratio_limit": 2.0, "maps": [{"_typical": 1, "_ratio_limit": 3.0}]}
    assert MIGRATIONS[2]({"content": parts})["content"] == {
        "_ratio_limit": 2.0,  # a name that a user may have given
        "maps": [
            {
                "_typical": 1,
                "_novelty": {
                    "distance_limit": 3.0,
                    "residual_limit": None,
                    "residual_unit": 1.0,
                    "auxiliary": None,
                },
            }
        ],
    }


def test_maps_of_format_2_do_not_know_kl_over_all_pairs():
    tsne = load(REFERENCES / "first_edition" / "tsne.gnomon")
    assert tsne.certificate_.exact_kl is None
    assert tsne.resume(5).certificate_.exact_kl is None
    assert "not known over all pairs" in str(tsne.certificate_)


def test_certificates_of_format_2_bound_no_space_and_say_nothing_of_gaps():
    pca = load(REFERENCES / "first_edition" / "pca.gnomon")
    assert pca.certificate_.space_bounds == ()
    assert pca.certificate_.missing_angles is None
    assert "within" in str(pca.certificate_)
    old = {"angle_bounds": 0, "formation_error": 0, "inseparable": {"$tuple": [1, 2]}}
    new = {**old, "space_bounds": {"$tuple": [np.pi / 2] * 2}, "missing_angles": None}
    assert MIGRATIONS[2]({"content": [old]}) == {"content": [new], "version": 3}


def test_there_is_a_way_from_every_format_to_todays():
    assert sorted(MIGRATIONS) == list(range(VERSION))


def signed(document):
    """`model.json` with whatever is in `document`, and the right checksum."""
    text = ("{\n" + json.dumps(document)[1:-1] + ',\n"checksum": "').encode() + ZEROS + AFTER
    end = len(text) - len(AFTER)
    return text[: end - 64] + hashlib.sha256(text).hexdigest().encode() + AFTER


def read(document):
    from gnomon.models.document import read_document

    return read_document(signed(document), b"")


GOOD = json.loads(write_document({"a": 1}, b""))
del GOOD["checksum"]


def test_the_helper_of_these_tests_signs_rightly():
    assert read(GOOD) == {"a": 1}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"version": VERSION + 1, "gnomon": "9.9"},
            rf"format {VERSION + 1} \(gnomon 9\.9\).*up to {VERSION}",
        ),
        ({"version": 10**30}, "format 10"),
        ({"version": -1}, "no version"),
        ({"version": True}, "no version"),
        ({"version": "1"}, "no version"),
        ({"version": None}, "no version"),
        ({"format": "another"}, "another format"),
        ({"members": {}}, "damaged"),
        ({"members": {"arrays.safetensors": {"bytes": 0, "sha256": "0" * 64}}}, "damaged"),
        ({"version": 0, "class": "PCA"}, ""),
    ],
)
def test_documents_of_another_kind_are_refused(change, why):
    if change.get("version") == 0:
        assert read({**GOOD, **change})["$model"] == "PCA"  # migrated; its state is judged later
        return
    with pytest.raises(UnfitError, match=why):
        read({**GOOD, **change})


def test_a_newer_format_says_what_to_do(tmp_path):
    from gnomon.models.archive import write_archive

    write_archive(tmp_path / "m", signed({**GOOD, "version": VERSION + 1}), b"")
    with pytest.raises(ModelFileError, match=rf"formats up to {VERSION}\. Update gnomon\.$"):
        load(tmp_path / "m")


@pytest.mark.parametrize(
    "text", ["[]", "1", '{"format": NaN', "{" * 5000, "[" * 100_000, '{"a": 1' + "0" * 5000 + "}"]
)
def test_text_that_is_no_document_is_refused(text):
    from gnomon.models.document import read_document

    body = text.encode() + b' "checksum": "' + ZEROS + AFTER
    end = len(body) - len(AFTER)
    body = body[: end - 64] + hashlib.sha256(body).hexdigest().encode() + AFTER
    with pytest.raises(UnfitError, match="cannot be read"):
        read_document(body, b"")


def test_a_document_too_short_for_a_checksum_is_refused():
    from gnomon.models.document import read_document

    for length in (0, 1, 4, 64, 68):
        with pytest.raises(UnfitError, match="damaged"):
            read_document(b"x" * length, b"")


def test_a_file_that_holds_neither_models_nor_parts_is_refused(tmp_path):
    from gnomon.models.archive import write_archive
    from gnomon.models.file import _serialised, read_model

    arrays = _serialised({})
    write_archive(tmp_path / "m", write_document([1, 2], arrays), arrays)
    with pytest.raises(ModelFileError, match="neither a model nor parts"):
        read_model(io.BytesIO((tmp_path / "m").read_bytes()), "m")
