import numpy as np
import pytest
from scipy.interpolate import BSpline

from gnomon.tsne import convolve
from gnomon.tsne.convolve import COARSER, MASK, REACH, WIDTH, Convolution, padded_nodes
from gnomon.tsne.mesh import Mesh
from gnomon.tsne.reference import field

rng = np.random.default_rng(0)
# In 3-D a smaller map: both have more nodes than one part would be quicker for.
WIDE = {2: (rng.standard_normal((900, 2)) * 20), 3: (rng.standard_normal((900, 3)) * 4)}
WIDE = {d: Y.astype(np.float32) for d, Y in WIDE.items()}


def in_parts(monkeypatch, least):
    monkeypatch.setattr(convolve, "LEAST_NODES", least)


def force_error(Y, dof, spacing):
    mesh = Mesh(Y.shape[1], dof, spacing * convolve.kernel_width(dof))
    phi, gradient = mesh.field(Y)
    exact, push = field(Y, dof)
    force = -dof / (dof + 1) * gradient
    two = mesh.convolution.far is not None
    total = abs(phi.sum(dtype=float) / exact.sum() - 1)
    return two, total, np.linalg.norm(force - push) / np.linalg.norm(push)


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("dof", [0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("spacing", [0.5, 0.35])
def test_two_parts_are_as_exact_as_the_whole(monkeypatch, dimensions, dof, spacing):
    in_parts(monkeypatch, 1)
    two, total, force = force_error(WIDE[dimensions], dof, spacing)
    assert two
    in_parts(monkeypatch, 10**9)
    two, whole_total, whole_force = force_error(WIDE[dimensions], dof, spacing)
    assert not two
    assert force < 1.1 * whole_force
    assert total < whole_total + 2e-4


@pytest.mark.parametrize("dof", [0.5, 1.0, 3.0])
def test_near_and_far_add_up_to_the_kernel_and_the_near_part_ends(dof):
    spacing = 0.5 * convolve.kernel_width(dof)
    border = dof / (2 * (WIDTH * spacing) ** 2)
    u = 1 + (np.arange(3 * REACH) * spacing) ** 2 / dof
    near, far = convolve._near(dof, border, u), convolve._far(dof, border, u)
    np.testing.assert_allclose(near + far, u ** (-(dof + 1) / 2), rtol=1e-14)
    assert near[0] > 0.5
    assert (near[REACH:] < 5e-3 * far[REACH:]).all()


def test_a_wide_spline_is_a_sum_of_narrow_ones():
    """Why the coarse mesh costs nothing at the points."""
    narrow = BSpline.basis_element(np.arange(-2.0, 3.0), extrapolate=False)
    x = np.linspace(-7.9, 7.9, 400)
    values = sum(
        weight * np.nan_to_num(narrow(x - at))
        for at, weight in zip(range(-6, 7), MASK, strict=True)
    )
    np.testing.assert_allclose(values, np.nan_to_num(narrow(x / COARSER)), atol=1e-6)


@pytest.mark.parametrize("cells", [(190, 170), (40, 30, 33)])
def test_the_way_to_the_coarse_mesh_and_back_are_each_others_transpose(cells):
    part = Convolution(cells, 1.0, 0.5)
    inside = tuple(slice(0, count) for count in part.cells)
    charges, potential = np.zeros(part.shape, "f4"), np.zeros(part.shape, "f4")
    charges[inside] = rng.random(part.cells)
    coarse = rng.random(part.far.shape).astype("f4")
    gathered = part._to_coarse(charges)
    part._add_from_coarse(coarse, potential)
    there = np.vdot(gathered, coarse).astype(float)
    back = np.vdot(charges[inside], potential[inside]).astype(float)
    assert abs(there / back - 1) < 1e-5
    # every charge arrives whole
    assert abs(gathered.sum(dtype=float) / charges.sum(dtype=float) - 1) < 1e-5


def test_a_mesh_has_its_own_size_again_on_either_side_of_the_border():
    """A restored run must go on in the same parts: 158 × 158 nodes are too few, 160 × 160 not."""
    for count in range(140, 175):
        part = Convolution((count, count), 1.0, 0.5)
        again = Convolution(part.cells, 1.0, 0.5)
        assert again.cells == part.cells
        assert (again.far is None) == (part.far is None)


def test_meshes_that_are_small_or_fine_or_lines_have_one_part():
    assert Convolution((300, 300), 1.0, 0.5).far is not None
    for cells, spacing in (((50, 50), 0.5), ((300, 300), 0.2), ((30_000,), 0.5), ((9000, 10), 0.5)):
        assert Convolution(cells, 1.0, spacing).far is None


@pytest.mark.parametrize("cells", [(400, 350), (60, 60, 60), (80, 80)])
def test_nodes_are_counted_as_they_are_transformed(cells):
    part = Convolution(cells, 1.0, 0.5)
    parts = [part.near] + ([part.far] if part.far is not None else [])
    counted = sum(np.prod(each.padded) for each in parts)
    assert 0.9 < padded_nodes(part.cells, 1.0, 0.5) / counted < 1.1


def test_memory_kept_for_the_next_potential_is_given_back():
    part = Convolution((200, 200), 1.0, 0.5)
    charges = np.zeros(part.shape, "f4")
    charges[100, 100] = 1
    first = part.potential(charges.copy())
    assert part.near.half is not None
    part.release()
    assert part.near.half is None
    assert part.far.half is None
    assert np.array_equal(part.potential(charges), first)


@pytest.mark.parametrize(("dimensions", "span"), [(2, 150.0), (3, 30.0)])
def test_a_lone_point_feels_next_to_nothing_of_itself(monkeypatch, dimensions, span):
    """In one part nothing but rounding; of the coarse mesh a trace is left."""
    corners = np.array([np.zeros(dimensions), np.full(dimensions, span)])  # without charge
    charges = np.array([0, 0, 1], np.float32)
    for least, most in ((1, 4e-4), (10**9, 1e-6)):
        in_parts(monkeypatch, least)
        mesh = Mesh(dimensions, 1.0, 0.5)
        for place in rng.random((20, dimensions)) * 4 + span / 2:
            phi, gradient = mesh.field(np.vstack([corners, place]).astype(np.float32), charges)
            assert np.abs(gradient[2]).max() < most
            assert abs(phi[2]) < 3 * most
