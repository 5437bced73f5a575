import json

import numpy as np
import pytest

from gnomon.tsne.map_certificate import MapCertificate, check_field
from gnomon.tsne.mesh import Mesh
from gnomon.tsne.reference import field

rng = np.random.default_rng(0)
Y = (rng.standard_normal((1500, 2)) * 8).astype(np.float32)


def check(phi, slopes, dof=1.0, weights=None, seed=0):
    charges = np.ones(1500) if weights is None else weights
    total = phi @ charges + charges @ (charges - 1)  # copies of a point lie on it
    return check_field(Y, slopes, total, phi, dof, weights, seed, None)


@pytest.mark.parametrize("dof", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_exact_field_has_no_error(dof, weighted):
    weights = rng.integers(1, 5, 1500).astype(float) if weighted else None
    charges = np.ones(1500) if weights is None else weights
    phi, push = field(Y, dof, charges=charges)
    found = check(phi, -(dof + 1) / dof * push, dof, weights)
    assert found.force_error < 1e-12
    assert found.sampled == 256
    expected = phi @ charges + charges @ (charges - 1)  # copies of a point lie on it
    assert abs(found.total / expected - 1) < 1e-12


def test_the_error_of_the_mesh_is_measured_on_a_sample():
    phi, slopes = Mesh(2, 1.0, 0.5).field(Y)
    push = field(Y)[1]
    truth = np.linalg.norm(slopes + 2 * push) / np.linalg.norm(2 * push)
    assert abs(check(phi, slopes).force_error / truth - 1) < 0.5  # 256 of 1,500 points


def test_a_wrong_z_is_corrected_by_the_ratio_on_the_sample():
    """An error that all points share is taken out whole; only its spread is left."""
    phi, push = field(Y)
    found = check(phi * 0.97, -2 * push)
    assert abs(found.total / phi.sum() - 1) < 1e-12
    noisy = phi * rng.normal(0.97, 0.01, 1500)
    # the spread over √256, three times
    assert abs(check(noisy, -2 * push).total / phi.sum() - 1) < 3 * 0.01 / 16


def test_a_wrong_force_shows():
    phi, push = field(Y)
    assert abs(check(phi, -2.2 * push).force_error - 0.1) < 1e-12


def test_points_in_one_place_push_nobody_and_have_no_error():
    together = np.zeros((3, 2), np.float32)
    found = check_field(together, np.zeros((3, 2)), 6.0, np.full(3, 2.0), 1.0, None, 0, None)
    assert (found.force_error, found.total) == (0, 6)


def test_a_mesh_that_shows_nothing_corrects_nothing():
    """Points so far apart that float32 has no φ."""
    apart = np.array([[0, 0], [1e20, 0], [0, 1e20]], np.float32)
    assert check_field(apart, np.zeros((3, 2)), 3.0, np.zeros(3), 1.0, None, 0, None).total == 3


def test_a_sum_over_all_pairs_needs_no_correction():
    phi, push = field(Y)
    found = check_field(Y, -2 * push, phi.sum(), None, 1.0, None, 0, None)
    assert (found.force_error < 1e-12, found.total) == (True, phi.sum())


def certificate(**changes):
    values = {
        "kl_divergence": 0.71234,
        "exact_kl": 0.69,
        "exact_kl_error": 0.012,
        "exact_kl_rows": 40,
        "force_error": 0.0123,
        "sampled": 256,
        "recall": 0.987,
        "probed": 300,
        "neighbors": "exact search",
        "repulsion": "mesh of 10 × 10 nodes, 0.5 apart",
        "coarsened": False,
        "n_iter": 750,
        "stop_reason": "reached max_iter",
        "reduced": "",
    }
    return MapCertificate(**{**values, **changes})


def test_it_reads_well_and_is_ready_for_json():
    text = str(certificate())
    assert "Map with KL = 0.7123 after 750 iterations" in text
    both = "0.7123 over the neighbours kept, 0.6900 ± 0.0120 over all pairs, from 40 sampled rows"
    assert both in text
    assert "0.012 of the exact sum, on 256 points" in text
    assert "exact search; recall 0.987 on 300 rows" in text
    assert "reached max_iter" in text
    assert "coarser" not in text
    assert json.loads(json.dumps(certificate().to_dict()))["kl_divergence"] == 0.71234


def test_kl_over_all_pairs_is_said_as_far_as_it_is_known():
    exact = certificate(exact_kl_error=0.0)
    assert exact.kl_in_words() == "0.7123 over the neighbours kept, 0.6900 over all pairs"
    assert "sampled rows" not in str(exact)
    unknown = certificate(exact_kl=None, exact_kl_error=0.0, exact_kl_rows=0)
    assert unknown.kl_in_words() == "0.7123 over the neighbours kept, not known over all pairs"
    assert certificate(exact_kl=0.71234).kl_in_words() == "0.7123 (P is complete)"
    assert json.loads(json.dumps(unknown.to_dict()))["exact_kl"] is None


def test_a_coarser_mesh_and_a_reduced_table_are_said():
    text = str(certificate(coarsened=True, reduced="784 columns to 50 by PCA"))
    assert "coarser than requested, to stay within memory" in text
    assert "784 columns to 50 by PCA" in text
