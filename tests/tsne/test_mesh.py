import numpy as np
import pytest

from gnomon.tsne.mesh import Mesh
from gnomon.tsne.reference import field

rng = np.random.default_rng(0)
# In 3-D a smaller map, or the mesh would be large.
POINTS = {
    d: (rng.standard_normal((900, d)) * (8 if d < 3 else 3)).astype(np.float32) for d in (1, 2, 3)
}


def errors(Y, dof, spacing):
    """Relative errors of Z, of φ and of the force."""
    phi, gradient = Mesh(Y.shape[1], dof, spacing * np.sqrt(2 * dof / (dof + 1))).field(Y)
    exact, push = field(Y, dof)
    force = -dof / (dof + 1) * gradient
    return (
        abs(phi.sum(dtype=float) / exact.sum() - 1),
        np.linalg.norm(phi - exact) / np.linalg.norm(exact),
        np.linalg.norm(force - push) / np.linalg.norm(push),
    )


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("dof", [0.5, 1.0, 3.0, 10.0])
def test_the_mesh_agrees_with_the_exact_field(dimensions, dof):
    total, phi, force = errors(POINTS[dimensions], dof, 0.5)
    assert total < 2e-4
    assert phi < 3e-3
    assert force < 5e-2


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_the_error_falls_about_fourfold_with_a_finer_mesh(dimensions):
    coarse, fine = (errors(POINTS[dimensions], 1.0, h)[2] for h in (0.5, 0.35))
    assert 2.5 < coarse / fine < 8


def test_a_point_does_not_feel_itself():
    """Without the correction a lone pair has φ off by its own charge and a force from itself."""
    Y = np.array([[0.13, 0.41], [30.0, 20.0]], np.float32)
    phi, gradient = Mesh(2, 1.0, 0.5).field(Y)
    exact, push = field(Y)
    np.testing.assert_allclose(phi, exact, atol=1e-5)
    np.testing.assert_allclose(-gradient / 2, push, atol=1e-5)


def test_forces_sum_to_nearly_nothing():
    gradient = Mesh(2, 1.0, 0.35).field(POINTS[2])[1]
    assert np.abs(gradient.sum(axis=0)).max() < 1e-3 * np.abs(gradient).sum()


def test_a_shifted_map_has_the_same_field_and_a_grown_one_a_larger_mesh():
    mesh = Mesh(2, 1.0, 0.35)
    phi = mesh.field(POINTS[2])[0]
    cells = mesh.cells
    np.testing.assert_allclose(mesh.field(POINTS[2] + np.float32(5))[0], phi, rtol=1e-3)
    assert mesh.cells == cells
    np.testing.assert_allclose(
        mesh.field(POINTS[2] * 2)[0], field(POINTS[2] * 2)[0], rtol=2e-2, atol=1e-3
    )
    assert all(new > old for new, old in zip(mesh.cells, cells, strict=True))


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_do_not_change_the_bits(dimensions, n_jobs):
    Y = np.tile(POINTS[dimensions], (20, 1))  # more than one block
    Y += rng.standard_normal(Y.shape).astype(np.float32) / 4
    one, many = Mesh(dimensions, n_jobs=1).field(Y), Mesh(dimensions, n_jobs=n_jobs).field(Y)
    assert np.array_equal(one[0], many[0])
    assert np.array_equal(one[1], many[1])


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_charges_of_any_size_have_the_error_of_charges_of_one(dimensions):
    Y = POINTS[dimensions]
    charges = rng.uniform(1, 50, 900)
    phi, gradient = Mesh(dimensions, 1.0, 0.35).field(Y, charges.astype(np.float32))
    exact, push = field(Y, charges=charges)
    assert np.linalg.norm(phi - exact) < 3e-3 * np.linalg.norm(exact)
    assert np.linalg.norm(gradient / -2 - push) < 2e-2 * np.linalg.norm(push)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_points_in_one_place_push_each_other_nowhere(dimensions):
    """Each of 50 adds 1 to the field of the others, wherever between the nodes they lie."""
    phi, gradient = Mesh(dimensions, 1.0, 0.25).field(np.full((50, dimensions), 0.3, np.float32))
    np.testing.assert_allclose(phi, 49, rtol=5e-3)
    assert np.abs(gradient).max() < 0.05 * 49  # what is left of the mesh, for 49 neighbours at 0


def test_no_point_is_outside_of_its_mesh_however_it_is_rounded():
    """Far from zero, where float32 has few digits, and on the nodes themselves."""
    for shift in (0.0, 1e3, 1e5):
        Y = (np.linspace(0, 20, 41)[:, None] + [shift, -shift]).astype(np.float32)
        phi = Mesh(2, 1.0, 0.5).field(Y)[0]
        np.testing.assert_allclose(phi, field(Y)[0], rtol=2e-2)


def test_a_mesh_resized_to_its_own_size_has_the_same_bits():
    mesh, other = Mesh(2, 2.0, 0.5), Mesh(2, 2.0, 0.5)
    gradient = mesh.field(POINTS[2])[1]
    other.resize(mesh.cells)
    assert other.cells == mesh.cells
    assert np.array_equal(other.field(POINTS[2])[1], gradient)
