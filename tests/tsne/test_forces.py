import numpy as np
import pytest
from tsne.problems import COPIES, MASS, ROWS, WEIGHTS, affinities, gradient

from gnomon import samples
from gnomon.neighbors.search import find_neighbors
from gnomon.tsne import forces
from gnomon.tsne.affinities import gaussian_rows, joint
from gnomon.tsne.convolve import kernel_width, padded_nodes
from gnomon.tsne.forces import AllPairs, OverMesh, node_spacing
from gnomon.tsne.reference import field, kl_divergence, kl_gradient

rng = np.random.default_rng(1)
DIMENSIONS = [1, 2, 3]
DOF = [0.3, 1.0, 2.5, 10.0]
P = affinities("gaussian", ROWS)
DIGITS = samples.load("digits").X[:1200]
P_DIGITS = joint(gaussian_rows(find_neighbors(DIGITS, 60), 20))


def over_mesh(P, dimensions, dof, tolerance, weights=None):
    """Forces with the spacing that the estimator takes for a tolerance."""
    spacing = node_spacing(tolerance, dof)
    return OverMesh(P, dimensions, dof, spacing, weights=weights, always_mesh=True)


def kl(forces, Y):
    return forces.kl(Y, gradient(forces, Y)[1])


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("dof", DOF)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_exact_gradient_is_the_finite_difference_of_kl(dimensions, dof, weighted):
    weights = WEIGHTS if weighted else None
    forces = AllPairs(affinities("gaussian", ROWS, weights), dof, weights=weights)
    Y = rng.standard_normal((40, dimensions))
    slopes, step = gradient(forces, Y)[0], 1e-5
    for i, c in [(0, 0), (7, dimensions - 1), (39, 0), (23, dimensions - 1)]:
        up, down = Y.copy(), Y.copy()
        up[i, c] += step
        down[i, c] -= step
        slope = (kl(forces, up) - kl(forces, down)) / (2 * step)
        copies = WEIGHTS[i] if weighted else 1  # which all move together
        # P is float32: it sums to 1 up to 1e-7, and KL takes it as if it did
        assert abs(slope - copies * slopes[i, c]) < 1e-7


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("dof", DOF)
def test_all_pairs_agree_with_the_formula(dimensions, dof):
    Y = rng.standard_normal((40, dimensions)) * 3
    forces = AllPairs(P, dof)
    slopes, total = gradient(forces, Y)
    # the same sums in another order
    np.testing.assert_allclose(slopes, kl_gradient(P, Y, dof), atol=1e-15)
    assert abs(total / field(Y, dof)[0].sum() - 1) < 1e-14
    assert abs(kl(forces, Y) - kl_divergence(P, Y, dof)) < 1e-6  # P sums to 1 up to 1e-7


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("dof", DOF)
@pytest.mark.parametrize("weighted", [False, True])
def test_exact_forces_sum_to_nothing_and_kl_is_not_negative(dimensions, dof, weighted):
    weights = WEIGHTS if weighted else None
    forces = AllPairs(affinities("gaussian", ROWS, weights), dof, weights=weights)
    for size in (1e-4, 1.0, 100.0):
        Y = rng.standard_normal((40, dimensions)) * size
        slopes = gradient(forces, Y)[0]
        masses = np.ones(40) if weights is None else weights
        assert np.abs(masses @ slopes).max() < 1e-14 * np.abs(slopes).sum() + 1e-18
        assert kl(forces, Y) > 0


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("dof", [0.1, 0.3, 1.0, 10.0])
@pytest.mark.parametrize("tolerance", [0.1, 0.035, 0.004])
def test_the_mesh_is_exact_within_its_tolerance(dimensions, dof, tolerance):
    """On maps with groups, as they are, and on small ones, where the mesh is finer.

    In a map far smaller than the kernel the field is flat, and float32 shows its slope to a few
    percent at best; the points hardly push each other there.
    """
    groups = rng.standard_normal((10, dimensions)).repeat(120, axis=0)
    noise = rng.standard_normal((1200, dimensions))
    for size in (1e-4, 2.0) if dimensions == 3 else (1e-4, 2.0, 12.0):
        Y = (size * (groups + 0.2 * noise)).astype(np.float32)
        forces = over_mesh(P_DIGITS, dimensions, dof, tolerance)
        low, high = Y.min(axis=0).astype(float), Y.max(axis=0).astype(float)
        if forces.mesh_for(high - low).spacing > forces.spacing:
            continue  # coarser than asked for, which the certificate says
        slopes, total, phi = forces.push(Y, low, high)
        exact, push = field(Y, dof)
        expected = -(dof + 1) / dof * push
        away = np.linalg.norm(slopes - expected) / np.linalg.norm(expected)
        assert away < (tolerance if size > 0.1 else max(tolerance, 0.06)), size
        assert abs(total / exact.sum() - 1) < tolerance / 4
        np.testing.assert_allclose(phi.sum(dtype=float), total)


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("dof", [1.0, 2.5])
def test_the_whole_gradient_over_the_mesh_is_near_the_exact_one(dimensions, dof):
    Y = (rng.standard_normal((1200, dimensions)) * 3).astype(np.float32)
    forces = over_mesh(P_DIGITS, dimensions, dof, 0.004)
    assert isinstance(forces, OverMesh)
    slopes = gradient(forces, Y)[0]
    expected = kl_gradient(P_DIGITS, Y, dof)
    # the pull has no error but rounding, and the push the tolerance
    assert np.linalg.norm(slopes - expected) < 0.004 * np.linalg.norm(expected)
    assert abs(kl(forces, Y) - kl_divergence(P_DIGITS, Y, dof)) < 1e-3


@pytest.mark.parametrize("kind", ["gaussian", "uniform", "multiscale"])
@pytest.mark.parametrize("dof", [1.0, 3.0])
@pytest.mark.parametrize("path", ["exact", "direct", "mesh"])
def test_weights_are_copies(kind, dof, path):
    """Z, gradient and KL at given places, against each row repeated as often as its weight."""
    light = affinities(kind, ROWS, WEIGHTS)
    full = affinities(kind, ROWS[COPIES])
    places = rng.standard_normal((40, 2)) * 4
    if path == "exact":
        few, tolerance = AllPairs(light, dof, weights=WEIGHTS), 1e-6  # P is float32
    elif path == "direct":  # a mesh as fine as this costs more than 40² pairs
        few, tolerance = OverMesh(light, 2, dof, 1e-3, weights=WEIGHTS), 1e-5  # float32 throughout
        assert few.mesh_for(np.full(2, 10.0)) is None
    else:  # the mesh's own error, of a push that the pull cancels in part
        few, tolerance = over_mesh(light, 2, dof, 0.002, weights=WEIGHTS), 0.004
    places = places.astype(few.dtype)
    many = AllPairs(full, dof)
    slopes, total = gradient(few, places)
    expected, expected_total = gradient(many, places[COPIES])
    size = np.linalg.norm(expected)
    assert np.linalg.norm(slopes[COPIES] - expected) < tolerance * size
    assert abs(total / expected_total - 1) < tolerance
    assert abs(kl(few, places) - kl(many, places[COPIES])) < tolerance


def test_weights_of_one_are_no_weights():
    Y = rng.standard_normal((40, 2))
    ones = np.ones(40)
    plain, weighted = (
        AllPairs(P, 1.0),
        AllPairs(affinities("gaussian", ROWS, ones), 1.0, weights=ones),
    )
    np.testing.assert_allclose(gradient(weighted, Y)[0], gradient(plain, Y)[0], atol=1e-9)
    assert abs(kl(weighted, Y) - kl(plain, Y)) < 1e-7


@pytest.mark.parametrize(
    "make", [AllPairs, lambda P, dof, weights: OverMesh(P, 2, dof, 0.5, weights=weights)]
)
def test_renumbered_points_have_the_same_forces(make):
    Y = (rng.standard_normal((40, 2)) * 3).astype(np.float32)
    forces = make(affinities("gaussian", ROWS, WEIGHTS), 2.0, weights=WEIGHTS)
    order = rng.permutation(40)
    before, total = gradient(forces, Y)
    after, new_total = gradient(forces.reordered(order), Y[order])
    np.testing.assert_allclose(after, before[order], atol=1e-7)  # float32 sums in another order
    assert abs(new_total / total - 1) < 1e-6
    assert abs(kl(forces.reordered(order), Y[order]) - kl(forces, Y)) < 1e-6


def test_renumbering_twice_has_the_bits_of_renumbering_once():
    """What makes a continued run the same as a whole one."""
    Y = (rng.standard_normal((1200, 2)) * 3).astype(np.float32)
    first, second = rng.permutation(1200), rng.permutation(1200)
    forces = OverMesh(P_DIGITS, 2, 1.0, 0.5)
    twice = forces.reordered(first).reordered(second).attraction.pull(Y)
    once = forces.reordered(first[second]).attraction.pull(Y)
    assert np.array_equal(twice[0], once[0])
    assert np.array_equal(twice[1], once[1])


@pytest.mark.parametrize("dof", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_both_kinds_of_forces_have_the_same_degrees(dof, weighted):
    weights = WEIGHTS if weighted else None
    light = affinities("gaussian", ROWS, weights)
    Y = (rng.standard_normal((40, 2)) * 2).astype(np.float32)
    exact = AllPairs(light, dof, weights=weights).at(Y, *bounds(Y))[1]
    single = OverMesh(light, 2, dof, 0.5, weights=weights).at(Y, *bounds(Y))[1]
    np.testing.assert_allclose(single, exact, rtol=1e-5)  # float32


def test_refined_forces_are_those_of_the_whole_p_and_the_finer_mesh(monkeypatch):
    monkeypatch.setattr(forces, "CUT_FROM", 1200)
    rough = OverMesh(P_DIGITS, 2, 1.0, 0.5, always_mesh=True, rough=True)
    fine = OverMesh(P_DIGITS, 2, 1.0, 0.5, always_mesh=True)
    order, Y = rng.permutation(1200), (rng.standard_normal((1200, 2)) * 30).astype(np.float32)
    refined = rough.reordered(order).refined(order)
    here, there = refined.at(Y, *bounds(Y)), fine.reordered(order).at(Y, *bounds(Y))
    for got, wanted in zip(here, there, strict=True):
        assert np.array_equal(got, wanted)
    assert rough.attraction.values.size < 0.6 * fine.attraction.values.size
    assert rough.mesh_for(np.array([200.0, 200.0])).spacing == 0.5 * forces.ROUGH


@pytest.mark.parametrize("branch_of", ["apart", "refined"])
@pytest.mark.parametrize("rough", [False, True])
def test_meshes_of_a_branch_grow_without_those_of_the_trunk(rough, branch_of):
    trunk = OverMesh(P_DIGITS, 2, 1.0, 0.5, always_mesh=True, rough=rough)
    Y = (rng.standard_normal((1200, 2)) * 6).astype(np.float32)
    before = trunk.push(Y, *bounds(Y))[0]
    cells = {spacing: mesh.cells for spacing, mesh in trunk.meshes.items()}
    branch = trunk.apart() if branch_of == "apart" else trunk.refined(np.arange(1200))
    for size in (1.5, 10.0, 0.01):
        branch.push(Y * np.float32(size), *bounds(Y * np.float32(size)))
    assert len(branch.meshes) > len(trunk.meshes)
    assert {spacing: mesh.cells for spacing, mesh in trunk.meshes.items()} == cells
    assert np.array_equal(trunk.push(Y, *bounds(Y))[0], before)


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_do_not_change_the_bits_of_all_pairs(n_jobs):
    Y = rng.standard_normal((1200, 2))
    one, many = (AllPairs(P_DIGITS, 1.0, n_jobs=jobs) for jobs in (1, n_jobs))
    assert np.array_equal(gradient(one, Y)[0], gradient(many, Y)[0])
    assert kl(one, Y) == kl(many, Y)


def test_few_points_are_summed_directly_and_many_over_the_mesh():
    few, many = OverMesh(P, 2, 1.0, 0.5), OverMesh(P, 2, 1.0, 0.5)
    assert few.mesh_for(np.array([50.0, 50.0])) is None
    many.charges = np.ones(100_000, np.float32)
    assert many.mesh_for(np.array([200.0, 200.0])).spacing == 0.5


def test_small_maps_get_a_finer_mesh_and_maps_too_large_for_memory_a_coarser_one():
    forces = OverMesh(P_DIGITS, 2, 1.0, 0.5, most_nodes=200_000, always_mesh=True)
    spacings = [forces.mesh_for(np.full(2, span)).spacing for span in (1.0, 10.0, 50.0, 1000.0)]
    assert spacings == sorted(spacings)
    assert spacings[0] < 0.5 < spacings[-1]
    nodes = padded_nodes([1000 / spacings[-1] + 7] * 2, 1.0, spacings[-1])
    assert nodes < 1.1 * 200_000  # up to the rounding to whole nodes


def test_meshes_come_back_with_the_sizes_they_had():
    """They depend on how the map grew, and the last bits of the field on them."""
    grown, fresh = (OverMesh(P_DIGITS, 2, 1.0, 0.5, always_mesh=True) for _ in range(2))
    Y = (rng.standard_normal((1200, 2)) * 6).astype(np.float32)
    for size in (0.9, 1.0, 0.97):
        slopes = grown.push(Y * np.float32(size), *bounds(Y * np.float32(size)))[0]
    fresh.restore({spacing: mesh.cells for spacing, mesh in grown.meshes.items()})
    Y = Y * np.float32(0.97)
    assert np.array_equal(fresh.push(Y, *bounds(Y))[0], slopes)
    assert [m.cells for m in fresh.meshes.values()] == [m.cells for m in grown.meshes.values()]


def bounds(Y):
    return Y.min(axis=0).astype(float), Y.max(axis=0).astype(float)


def test_the_kernel_is_as_wide_as_its_curvature_says():
    """K ≈ 1 − d/width² near 0: d/dd (1 + d/α)^(−(α+1)/2) = −(α+1)/2α."""
    assert kernel_width(1.0) == 1.0
    for dof in DOF:
        assert abs(kernel_width(dof) ** -2 - (dof + 1) / (2 * dof)) < 1e-12


def test_the_copies_are_counted_right_in_these_tests():
    assert len(COPIES) == MASS > 80
