import json

import numpy as np
import pytest

from gnomon.numeric.certificate import LAPACK_THRESHOLD, Measured, certify, inseparable_groups

EPS = np.finfo(np.float64).eps


def make(variances, spectrum=None, *, residuals=None, formation=0.0, components=None, **options):
    """A certificate of `variances`, the first of `spectrum`; all others are 0."""
    variances = np.asarray(variances, float)
    k = variances.size
    components = np.eye(k, max(k, 6)) if components is None else components
    after = 0.0 if spectrum is None or len(spectrum) == k else float(spectrum[k])
    following = after if k < components.shape[1] else -np.inf
    residuals = np.zeros(k) if residuals is None else np.asarray(residuals, float)
    given = {"solver": "covariance", "whole": True, "passes": 1, "tol": 1e-5}
    return certify(
        components=components,
        measured=Measured(variances, residuals, formation, following),
        **{**given, **options},
    )


def test_residuals_and_formation_are_relative_to_the_largest_variance():
    certificate = make([8.0, 4.0], [8.0, 4.0, 1.0], residuals=[8e-9, 4e-9], formation=8e-12)
    np.testing.assert_allclose(certificate.residuals, [1e-9, 5e-10])
    assert certificate.formation_error == 1e-12


def test_units_of_rounding_are_those_of_lapacks_tests():
    bent = np.eye(2, 6)
    bent[1, 0] = 12 * EPS
    certificate = make([2.0, 1.0], residuals=[0.0, 2 * 6 * EPS], components=bent)
    assert certificate.residual_in_roundings == pytest.approx(1.0)
    assert certificate.orthogonality == pytest.approx(12 * EPS)
    assert certificate.orthogonality_in_roundings == pytest.approx(2.0)
    assert certificate.threshold == LAPACK_THRESHOLD["eigen"] == 60
    assert make([2.0, 1.0], solver="svd").threshold == 35


def test_a_component_that_is_no_unit_vector_shows_as_loss_of_orthogonality():
    assert make([1.0], components=np.array([[1.01, 0.0]])).orthogonality == pytest.approx(0.0201)


def test_the_angle_is_bounded_by_the_error_over_what_the_gap_leaves():
    certificate = make(
        [9.0, 4.0, 3.0], [9.0, 4.0, 3.0, 1.0], residuals=[0.03, 0.01, 0.02], formation=0.01
    )
    other = np.sqrt(0.03**2 + 0.01**2 + 0.02**2) + 0.01  # what the other eigenvalues can be off
    expected = np.arcsin([0.04 / (5 - other), 0.02 / (1 - other), 0.03 / (1 - other)])
    np.testing.assert_allclose(certificate.angle_bounds, expected)


def test_an_unconverged_neighbour_narrows_the_gap():
    alone = make([4.0, 3.0], [4.0, 3.0, 1.0], residuals=[1e-6, 0.0]).angle_bounds[0]
    beside = make([4.0, 3.0], [4.0, 3.0, 1.0], residuals=[1e-6, 0.5]).angle_bounds[0]
    assert alone == pytest.approx(1e-6, rel=1e-5)
    assert beside == pytest.approx(2e-6, rel=1e-5)


def test_the_first_component_not_kept_is_a_neighbour_too():
    near = make([9.0, 4.0], [9.0, 4.0, 3.99], residuals=[1e-3, 1e-3])
    far = make([9.0, 4.0], [9.0, 4.0, 0.0], residuals=[1e-3, 1e-3])
    assert near.angle_bounds[1] == pytest.approx(np.arcsin(1e-3 / 0.01))
    assert far.angle_bounds[1] == pytest.approx(np.arcsin(1e-3 / 4))
    assert near.angle_bounds[0] == far.angle_bounds[0]


def test_columns_beyond_the_known_spectrum_have_no_variance():
    wide, square = (
        make([9.0, 1e-3], residuals=[1e-4] * 2, components=np.eye(2, d)) for d in (6, 2)
    )
    assert wide.angle_bounds[1] == pytest.approx(np.arcsin(1e-4 / 1e-3))
    assert square.angle_bounds[1] == pytest.approx(1e-4 / 9, rel=1e-3)


def test_singular_values_tell_apart_what_variances_cannot():
    variances = np.array([1.0, 1e-12, 1e-18])
    lost = Measured(variances, np.full(3, 1e-16), 1e-15, -np.inf)
    clear = Measured(np.sqrt(variances), np.full(3, 1e-16), 1e-15, -1e-9)
    given = {"solver": "svd", "components": np.eye(3), "whole": True, "passes": 1, "tol": 1e-5}
    plain, both = certify(measured=lost, **given), certify(measured=lost, singular=clear, **given)
    assert plain.angle_bounds[1] > 1e-4
    assert plain.angle_bounds[2] > 1e-4
    assert both.angle_bounds[1] == pytest.approx(1.1e-9, rel=0.1)
    assert both.angle_bounds[2] == pytest.approx(5.5e-7, rel=0.1)
    assert both.angle_bounds[0] <= plain.angle_bounds[0]


def test_a_tied_group_has_a_bound_on_its_space():
    certificate = make(
        [9.0, 3.0, 3.0], [9.0, 3.0, 3.0, 1.0], residuals=[0.0, 3e-6, 4e-6], formation=1e-6
    )
    assert certificate.inseparable == ((2, 3),)
    # the norm of both residuals and the formation, over the distance to the last variance
    assert certificate.space_bounds == pytest.approx([6e-6 / 2], rel=1e-5)
    assert (certificate.angle_bounds[1:] == np.pi / 2).all()
    assert "within 0.00017°" in str(certificate)


def test_a_group_that_was_not_kept_as_a_whole_has_no_bound():
    certificate = make([9.0, 3.0], [9.0, 3.0, 3.0], residuals=[1e-6] * 2)
    assert certificate.inseparable == ((2, 3),)
    assert certificate.space_bounds == (np.pi / 2,)


def test_vectors_turned_within_a_group_have_the_residuals_that_are_measured():
    rng = np.random.default_rng(0)
    frame = np.linalg.qr(rng.standard_normal((6, 6)))[0].T
    values = np.array([5.0, 3.0, 2.99, 2.98, 1.0, 0.5])
    A = (frame.T * values) @ frame
    noise = 1e-3 * rng.standard_normal((6, 6))
    before = np.linalg.qr((frame + noise).T)[0].T[:4]
    residuals = np.linalg.norm(before @ A - values[:4, None] * before, axis=1)
    c, s = np.cos(0.7), np.sin(0.7)
    after = before.copy()
    after[1:3] = np.array([[c, s], [-s, c]]) @ before[1:3]
    told = Measured(values[:4], residuals, 0.0, 1.0).turned(before, after, ((2, 3),)).residuals
    true = np.linalg.norm(after @ A - values[:4, None] * after, axis=1)
    assert (true <= told * (1 + 1e-12)).all()
    assert (told <= 2 * true).all()
    assert told[0] == residuals[0]


def test_an_error_of_half_the_gap_allows_any_angle():
    certificate = make([2.0, 1.0], residuals=[0.5, 5.0], components=np.eye(2))
    np.testing.assert_allclose(certificate.angle_bounds, np.pi / 2)
    assert "any angle" in str(certificate)


@pytest.mark.parametrize("error", [1e-6, 1e-3, 0.1])
def test_the_bound_holds_for_matrices_that_are_off_by_a_known_error(error):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        frame = np.linalg.qr(rng.standard_normal((8, 8)))[0]
        values = np.sort(rng.uniform(0, 10, 8))[::-1]
        noise = rng.standard_normal((8, 8))
        noise = error * (noise + noise.T) / np.linalg.norm(noise + noise.T, 2)
        found, V = np.linalg.eigh((frame * values) @ frame.T + noise)
        found, V = found[::-1], V[:, ::-1]
        certificate = make(found[:4], found, components=V[:, :4].T, formation=error)
        along = (frame[:, :4] * V[:, :4]).sum(axis=0)
        sine = np.linalg.norm(V[:, :4] - frame[:, :4] * along, axis=0)
        assert (np.arcsin(np.minimum(1, sine)) <= certificate.angle_bounds + 1e-12).all()


@pytest.mark.parametrize(("residual", "converged"), [(3.9e-6, True), (4.1e-6, False)])
def test_converged_means_every_residual_below_tol_of_the_largest_variance(residual, converged):
    assert make([4.0, 1.0], residuals=[0.0, residual], tol=1e-6).converged is converged


def test_all_zero_variances_give_numbers_not_nan():
    certificate = make([0.0, 0.0])
    for name in ("residuals", "angle_bounds"):
        assert np.isfinite(getattr(certificate, name)).all()
    assert certificate.inseparable == ()
    assert "nan" not in str(certificate)


GROUPS = [
    ("far apart", [5, 4, 3], [0.01] * 3, ()),
    ("a pair", [5, 3, 3, 1], [0.01] * 4, ((2, 3),)),
    ("within ten errors", [5, 3, 2.95, 1], [0.01] * 4, ((2, 3),)),
    ("just beyond ten errors", [5, 3, 2.89, 1], [0.01] * 4, ()),
    ("a chain", [5, 3, 2.95, 2.9, 1], [0.01] * 5, ((2, 3, 4),)),
    ("two groups", [5, 5, 3, 1, 1], [0.01] * 5, ((1, 2), (4, 5))),
    ("the larger of two errors counts", [5, 4.5], [0.001, 0.1], ((1, 2),)),
    ("zeros are not tied", [5, 0, 0, 0], [0.01] * 4, ()),
    ("noise below the error is not tied", [5, 0.05, 0.04], [0.01] * 3, ()),
    ("one alone", [5], [0.01], ()),
    ("none", [], [], ()),
]


@pytest.mark.parametrize(
    ("values", "errors", "groups"), [g[1:] for g in GROUPS], ids=[g[0] for g in GROUPS]
)
def test_components_closer_than_their_errors_are_grouped(values, errors, groups):
    assert inseparable_groups(np.array(values, float), np.array(errors), len(values)) == groups


def test_a_tie_with_the_first_component_not_kept_is_named_with_its_number():
    spectrum = np.array([5.0, 3.0, 3.0, 3.0, 1.0])
    assert inseparable_groups(spectrum, np.full(2, 0.01), 2) == ((2, 3),)


def test_a_converged_fit_says_how_exact_it_is():
    told = make([4.0, 1.0], residuals=[4e-9, 4e-8], formation=4e-8)
    assert told.title().startswith("PCA by covariance: ")
    assert "2.0e-08 of the first variance" in told.title()


def test_a_fit_that_did_not_converge_says_so_first():
    told = make([4.0, 1.0], residuals=[0.0, 1e-3], tol=1e-6, solver="krylov")
    assert told.title() == "PCA by krylov: not converged to 1e-06"


def test_lines_say_what_is_not_separable_and_what_is_assumed():
    text = str(make([9.0, 3.0, 3.0], residuals=[1e-3] * 3, whole=False, passes=7))
    assert "components 2 and 3: only the space they span is determined" in text
    assert "no larger eigenvalue was missed" in text
    assert "7 over the table" in text
    text = str(make([9.0, 3.0, 3.0, 3.0], residuals=[1e-3] * 4))
    assert "components 2 to 4: only the space they span is determined" in text
    assert "assuming" not in text


def test_a_certificate_goes_into_json():
    record = json.loads(json.dumps(make([9.0, 3.0, 3.0], residuals=[1e-6] * 3).to_dict()))
    assert record["inseparable"] == [[2, 3]]
    assert record["converged"] is True
    assert len(record["residuals"]) == len(record["angle_bounds"]) == 3
