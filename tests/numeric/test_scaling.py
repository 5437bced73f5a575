import threading
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gnomon.numeric import scaling as module
from gnomon.numeric.scaling import (
    BLOCK_BYTES,
    Rows,
    Scaling,
    amplitude,
    exponent_for,
    scale_rows,
    scratch,
    working_type,
)

F4, F8 = np.dtype(np.float32), np.dtype(np.float64)
rng = np.random.default_rng(0)
X = rng.standard_normal((50, 6)) * np.geomspace(1, 10, 6) + 100


def prepared(table=X, roots=None, **parts):
    return replace(scale_rows(table).scaled(**parts), roots=roots)


def by_formula(rows):
    """((x − shift) · 2^−exponent − offset) · factor · √weight, in extended precision."""
    dense = rows.X.toarray() if sp.issparse(rows.X) else rows.X
    how = rows.scaling
    z = np.ldexp(dense.astype(np.longdouble) - how.shift.astype(np.longdouble), -how.exponent)
    z = z - (0 if how.offset is None else how.offset)
    z = z * (1 if how.factor is None else how.factor)
    return z * (1 if rows.roots is None else rows.roots[:, None])


PARTS = {
    "shift": {},
    "exponent": {"exponent": 5},
    "offset": {"offset": rng.standard_normal(6)},
    "factor": {"factor": rng.uniform(0.5, 2, 6)},
    "weights": {"roots": rng.uniform(0.5, 2, 50)},
    "all": {
        "exponent": -3,
        "offset": rng.standard_normal(6),
        "factor": rng.uniform(0.5, 2, 6),
        "roots": rng.uniform(0.5, 2, 50),
    },
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sp.csr_array])
def test_rows_and_columns_are_read_by_the_formula(parts, dtype, make):
    rows = prepared(make(X.astype(dtype)), **parts)
    expected = by_formula(rows)
    # A few roundings of the largest number.
    close = 8 * np.finfo(dtype).eps * np.abs(expected).max()
    for start, stop in ((0, 50), (7, 8), (40, 50), (3, 3)):
        part = rows.read(start, stop)
        assert part.dtype == dtype
        assert part.flags.c_contiguous
        np.testing.assert_allclose(part, expected[start:stop].astype(float), atol=close)
    for start, stop in ((0, 6), (2, 4)):
        part = rows.read_columns(start, stop)
        assert part.flags.c_contiguous
        np.testing.assert_allclose(part, expected[:, start:stop].astype(float), atol=close)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 3, 4, 5, 11])
def test_columns_are_turned_by_a_compiled_loop_into_the_same_bits(monkeypatch, columns, dtype):
    table = (rng.standard_normal((8000, columns)) * 3 + 100).astype(dtype)
    table[57, 0], table[99, -1] = np.nan, -np.inf
    turned, loop = [], module._shift_and_turn
    monkeypatch.setattr(module, "LONG_NUMBERS", 8000 * columns)
    monkeypatch.setattr(module, "_shift_and_turn", lambda *a: turned.append(1) or loop(*a))
    shift = table[0].copy()
    for stored in (np.asfortranarray(table), np.asfortranarray(np.vstack([table, table]))[:8000]):
        rows = Rows(stored, Scaling(np.dtype(dtype), shift))
        assert np.array_equal(rows.read(50, 4050), table[50:4050] - shift, equal_nan=True)
        assert len(turned) == 1
        for shorter in (replace(rows, X=stored[:-1]), replace(rows, long=False)):
            shorter.read(50, 4050)  # too few to compile for
        assert len(turned) == 1
        block = replace(rows, X=stored[50:60], long=True)  # of a long table
        assert np.array_equal(block.read(0, 10), table[50:60] - shift, equal_nan=True)
        assert len(turned) == 2
        turned.clear()
    swapped = np.asfortranarray(table).astype(table.dtype.newbyteorder())
    for other in (table, swapped, np.asfortranarray(table.astype(np.float16))):
        if columns > 1 or other.dtype != dtype:  # a single column lies both ways
            Rows(other, Scaling(np.dtype(dtype), shift), long=True).read(50, 4050)
    assert not turned


def test_a_row_has_the_same_bits_wherever_it_is_read():
    rows = prepared(**PARTS["all"])
    whole = rows.read(0, 50)
    assert np.array_equal(rows.read(13, 29), whole[13:29])
    assert np.array_equal(rows.read_columns(2, 5), whole[:, 2:5])


def test_rows_are_read_into_the_buffer_given():
    rows = prepared()
    buffer = np.full((20, 6), np.nan)
    part = rows.read(5, 17, buffer)
    assert np.shares_memory(part, buffer)
    assert part.shape == (12, 6)
    assert np.array_equal(part, rows.read(5, 17))
    assert np.isnan(buffer[12:]).all()


def test_the_users_table_is_never_written_to():
    table = X.copy()
    rows = prepared(table, **PARTS["all"])
    rows.read(0, 50)[:] = 0
    rows.read_columns(0, 6)[:] = 0
    assert np.array_equal(table, X)


@pytest.mark.parametrize(
    ("dtype", "work"),
    [
        ("f2", F4),
        ("f4", F4),
        (">f4", F4),
        ("f8", F8),
        ("i1", F8),
        ("u1", F8),
        ("i8", F8),
        ("longdouble", F8),
    ],
)
def test_floats_up_to_four_bytes_are_worked_on_in_float32_all_others_in_float64(dtype, work):
    assert working_type(X.astype(dtype).dtype) == work
    assert scale_rows(X.astype(dtype)).read(0, 3).dtype == work


def test_the_shift_is_near_the_mean_of_evenly_spaced_rows():
    table = np.vstack([np.zeros((1024, 3)), rng.standard_normal((9000, 3)) + 1e4])
    assert np.abs(scale_rows(table).scaling.shift / table.mean(axis=0) - 1).max() < 1e-2
    assert scale_rows(table).scaling.shift.dtype == np.float64
    assert scale_rows(table.astype("f4")).scaling.shift.dtype == np.float32


def test_the_mean_of_the_largest_numbers_there_are_is_a_number():
    table = np.full((50, 2), np.finfo(float).max) * rng.uniform(0.5, 1, (50, 2))
    assert np.isfinite(scale_rows(table).scaling.shift).all()
    assert np.abs(scale_rows(table).read(0, 50)).max() <= 1


def test_rows_of_weight_zero_do_not_move_the_shift():
    table = np.vstack([X, np.full((50, 6), 1e9)])
    weights = np.r_[np.ones(50), np.zeros(50)]
    assert np.array_equal(
        scale_rows(table, weights=weights).scaling.shift, scale_rows(X).scaling.shift
    )


def test_the_shift_does_not_depend_on_how_the_table_lies_in_memory():
    expected = scale_rows(X).scaling.shift
    strided = np.repeat(X, 2, axis=1)[:, ::2]
    for table in (np.asfortranarray(X), strided, X.astype(">f8")):
        assert np.array_equal(scale_rows(table).scaling.shift, expected)


def test_differences_of_long_integers_are_exact():
    small = rng.integers(-1000, 1000, (40, 3))
    for table in (small + 2**60, (small + 1000).astype(np.uint64) + np.uint64(2**63)):
        rows = scale_rows(table)
        assert rows.scaling.shift.dtype == table.dtype
        read = rows.read(0, 40)
        assert np.array_equal(read - read[0], (small - small[0]).astype(float))
        assert np.abs(read).max() < 4000


def test_floats_keep_their_fraction_beside_a_shift_of_long_integers():
    rows = Rows(np.array([[2.0**60, 5.5]]), Scaling(F8, np.array([2**60 - 256, 3])))
    assert rows.read(0, 1).tolist() == [[256.0, 2.5]]


def test_integers_too_far_apart_for_their_difference_are_read_as_floats():
    ends = np.iinfo(np.int64)
    table = np.array([[ends.min], [ends.max], [ends.max]])
    rows = scale_rows(table)
    assert rows.scaling.shift.dtype == np.float64
    np.testing.assert_allclose(rows.scaling.shift, 2.0**63 / 3, rtol=1e-12)
    np.testing.assert_allclose(rows.read(0, 3)[:, 0], np.array([-4, 2, 2]) * 2.0**63 / 3)


def test_short_integers_do_not_wrap_around():
    table = np.array([[0, 255], [255, 0], [1, 2]], np.uint8)
    rows = scale_rows(table)
    np.testing.assert_allclose(rows.read(0, 3) + rows.scaling.shift, table, atol=1e-12)


def test_float32_rows_of_a_model_fitted_in_float64_keep_the_difference():
    table = (X * 1e-3 + 1e4).astype(np.float32)
    shift = table.astype(float).mean(axis=0)  # not a float32 number
    rows = Rows(table, Scaling(F4, shift))
    exact = table.astype(float) - shift
    np.testing.assert_allclose(rows.read(0, 50), exact, rtol=1e-6, atol=1e-12)


# Around a large mean the shift alone, in float32, leaves an offset that float32 cannot add to it.
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("dtype", "exponent"), [("f4", 0), ("f8", 0), ("f8", 700), ("f8", -700)])
def test_about_the_rounded_mean_rows_lie_off_by_what_is_told(weighted, scaled, dtype, exponent):
    table = np.ldexp((X + 1e3 / 3).astype(dtype), exponent)
    rows = scale_rows(table)
    wide = np.ldexp(table.astype(np.longdouble), -rows.scaling.exponent)
    offset = (
        np.asarray(wide.mean(axis=0) - np.ldexp(rows.scaling.shift, -rows.scaling.exponent), float)
        + 1e-3
    )
    factor = rng.uniform(0.5, 2, 6) if scaled else None
    roots = rng.uniform(0.5, 2, 50) if weighted else None
    centred = replace(rows.scaled(offset=offset, factor=factor), roots=roots)
    scaling, delta = centred.scaling.about_rounded_mean()
    assert scaling.offset is None
    assert scaling.shift.dtype == rows.work
    rounded = replace(centred, scaling=scaling)
    true = by_formula(centred)
    w = np.ones(50) if roots is None else roots
    gap = by_formula(rounded) - true - np.outer(w, delta)
    # Known far better than the working type can say.
    assert np.abs(gap).max() < 1e-12
    if dtype == "f4":
        assert 0 < np.abs(delta).max() < 1e-3


def test_integers_need_no_rounded_mean():
    rows = scale_rows(rng.integers(0, 9, (20, 3)) + 2**60).scaled(offset=np.full(3, 0.25))
    same, delta = rows.scaling.about_rounded_mean()
    assert same is rows.scaling
    assert (delta == 0).all()


@pytest.mark.parametrize("work", [F4, F8])
def test_ordinary_numbers_need_no_exponent(work):
    for largest in (1e-9, 1.0, 1e9):
        assert exponent_for(largest, work) == 0
    for nothing in (0.0, np.inf, np.nan):
        assert exponent_for(nothing, work) == 0


@pytest.mark.parametrize(
    ("largest", "work"),
    [(1e200, F8), (1e-200, F8), (1e308, F8), (5e-324, F8), (1e20, F4), (1e-20, F4), (3e38, F4)],
)
def test_an_exponent_brings_the_largest_number_near_one(largest, work):
    scaled = np.ldexp(largest, -exponent_for(largest, work))
    assert 0.5 <= scaled < 1


@pytest.mark.parametrize("power", [-1000, -500, 500, 1000])
def test_extreme_tables_are_read_in_units_of_a_power_of_two(power):
    plain, extreme = scale_rows(X - 100), scale_rows(np.ldexp(X - 100, power))
    assert extreme.scaling.exponent != 0
    assert np.abs(extreme.read(0, 50)).max() <= 1
    unit = power - extreme.scaling.exponent
    assert np.array_equal(extreme.read(0, 50), np.ldexp(plain.read(0, 50), unit))


def test_amplitude_is_the_largest_distance_from_the_shift_and_ignores_scaling():
    table = X.copy()
    table[31, 2] = 1e6
    rows = prepared(table, **PARTS["all"])
    true = np.abs(table - rows.scaling.shift).max()
    assert amplitude(rows, n_jobs=2) == true
    assert amplitude(replace(rows, X=table[:0]), n_jobs=1) == 0.0


def test_blocks_stay_in_the_cache_and_are_never_tiny():
    for shape in ((10**6, 10), (10**6, 1000), (10**6, 10**5)):
        rows = Rows(np.broadcast_to(np.float64(0), shape), Scaling(F8, np.zeros(shape[1])))
        step = rows.scaling.block_rows()
        assert 32 <= step <= 4096
        assert step == 32 or step * shape[1] * 8 <= BLOCK_BYTES
        assert rows.range_rows(4096) % step == 0
        assert rows.range_rows(4096) <= max(4096, step)
    wide = Rows(np.broadcast_to(np.float32(0), (300, 10**6)), Scaling(F4, np.zeros(10**6, "f4")))
    assert wide.block_columns() * 300 * 4 <= BLOCK_BYTES
    assert wide.shape == (300, 10**6)


def test_a_thread_gets_the_same_scratch_again_and_each_slot_its_own():
    first = scratch((10, 20), F8)
    again = scratch((10, 20), F8)
    other = scratch((10, 20), F8, slot=1)
    smaller = scratch((5, 8), F4)
    assert np.shares_memory(first, again)
    assert np.shares_memory(first, smaller)
    assert not np.shares_memory(first, other)
    assert (smaller.shape, smaller.dtype) == ((5, 8), F4)
    assert first.flags.c_contiguous


def test_scratch_grows_when_more_is_asked_for():
    small = scratch((2, 2), F8)
    large = scratch((300, 300), F8)
    assert large.shape == (300, 300)
    large[:] = 1.0
    assert np.shares_memory(scratch((2, 2), F8), large)
    assert small.shape == (2, 2)


def test_another_thread_has_scratch_of_its_own():
    mine = scratch((10, 20), F8)
    found = []
    thread = threading.Thread(target=lambda: found.append(scratch((10, 20), F8)))
    thread.start()
    thread.join()
    assert not np.shares_memory(mine, found[0])


def test_very_large_scratch_is_not_kept():
    rows = 4 * BLOCK_BYTES // 8000 + 1
    large = scratch((rows, 1000), F8, slot=7)
    assert large.nbytes > 4 * BLOCK_BYTES
    assert not np.shares_memory(large, scratch((rows, 1000), F8, slot=7))
