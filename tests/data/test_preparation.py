import json

import numpy as np
import pytest

from gnomon.cli.failures import sentence
from gnomon.data import samples
from gnomon.data.missing import learn_filling
from gnomon.data.preparation import Preparation, prepare
from gnomon.data.refusals import FileError, GapError
from gnomon.data.scale import FOLD, Scale, choose_scale, unit_of
from gnomon.data.spread import measure_spread
from gnomon.data.table import Places, Table, table_of_sample
from gnomon.errors import DataError, MissingValueError, ParameterError
from gnomon.pca import PCA

rng = np.random.default_rng(0)
NOISE = rng.standard_normal((200, 4))


@pytest.mark.parametrize("asked", [True, False])
def test_what_was_asked_for_is_done(asked):
    for table in (NOISE, NOISE * [1, 1, 1, 1e6]):
        chosen = choose_scale(table, asked)
        assert chosen.standardize is asked
        assert chosen.why == "as asked"


def test_columns_of_like_spread_are_left_alone():
    chosen = choose_scale(NOISE * [1, 2, 4, 8])
    assert not chosen.standardize
    assert chosen.why == "the columns' spreads are within 10-fold of each other"


def test_columns_of_unlike_spread_are_standardised_and_the_fold_is_told():
    columns = NOISE / NOISE.std(axis=0) * [1, 1, 1, 250]
    chosen = choose_scale(columns)
    assert chosen.standardize
    assert chosen.why == "the columns' spreads differ 250-fold"


def test_the_line_is_drawn_at_ten_fold():
    even = NOISE / NOISE.std(axis=0)
    assert not choose_scale(even * [1, 1, 1, 0.999 * FOLD]).standardize
    assert choose_scale(even * [1, 1, 1, 1.001 * FOLD]).standardize


def test_where_the_columns_stand_does_not_matter():
    assert not choose_scale(NOISE + np.array([0, 1e3, -1e6, 1e8])).standardize


def test_a_column_of_few_that_counts_little_is_named_where_columns_are_left_as_they_are():
    X = np.random.default_rng(0).normal(size=(300, 4)) * [7, 7, 5, 1.4]
    chosen = choose_scale(X, names=["rain", "high", "low", "wind"])
    assert not chosen.standardize
    assert "; wind (1." in chosen.why
    assert "counts little by variance: standardising weighs all columns alike" in chosen.why
    assert "counts little" not in choose_scale(X[:, :3], names=["rain", "high", "low"]).why
    assert "counts little" not in choose_scale(X, names=[f"{j} (mm)" for j in range(4)]).why


def test_pixels_share_a_unit_although_some_hardly_vary():
    pixels = rng.integers(0, 17, (300, 6)).astype(float)
    pixels[0] = 16
    pixels[:, 5] = 0
    pixels[3, 5] = 1
    chosen = choose_scale(pixels)
    assert not chosen.standardize
    assert chosen.why == "all columns are whole numbers from 0 to 16"


def test_whole_numbers_on_different_scales_do_not_share_a_unit():
    counts = np.column_stack(
        [rng.integers(0, 5, 300), rng.integers(0, 90, 300), rng.integers(0, 2000, 300)]
    ).astype(float)
    assert choose_scale(counts).standardize


def test_fractions_do_not_share_a_unit_because_their_largest_values_do():
    table = rng.uniform(0, 1, (30_000, 4))
    table[0] = 1.0
    table[1:, 3] *= 1e-3
    assert choose_scale(table).standardize


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_constant_columns_have_no_say(value):
    table = np.column_stack([NOISE, np.full(200, value)])
    assert not choose_scale(table).standardize
    assert not choose_scale(np.full((5, 3), value)).standardize


@pytest.mark.parametrize(
    ("name", "standardize"),
    [
        ("digits", False),
        ("iris", False),
        ("house-prices", False),
        ("wine", True),
        ("breast-cancer", True),
    ],
)
def test_every_sample_gets_the_scale_a_reader_would_choose(name, standardize):
    assert choose_scale(samples.load(name).X).standardize is standardize


def test_units_are_undone_but_not_invented():
    # The same table in other units has the same spreads after standardising.
    table = NOISE * [1, 1, 1, 50]
    assert choose_scale(table).standardize
    assert not choose_scale(table / table.std(axis=0)).standardize


def test_the_column_that_spreads_most_is_named():
    columns = NOISE / NOISE.std(axis=0) * [1, 1, 250, 1]
    chosen = choose_scale(columns, names=["a", "b", "mass", "d"])
    assert chosen.why == "the columns' spreads differ 250-fold (mass)"
    evil = choose_scale(columns, names=["a", "b", "x\n\x1b[31m", "d"])
    assert evil.why == 'the columns\' spreads differ 250-fold ("x\\n\\x1b[31m")'


def test_names_with_different_units_are_standardised():
    names = ["bill_length_mm", "body_mass_g", "depth_mm", "other"]
    chosen = choose_scale(NOISE, names=names)
    assert chosen == Scale(True, "the columns have different units (mm, g)")
    assert not choose_scale(NOISE, names=["a_mm", "b_mm", "c (mm)", "d [mm]"]).standardize
    assert not choose_scale(NOISE, names=["a_mm", "b_kg", "c", "d", "e"]).standardize
    assert not choose_scale(NOISE, names=["t_min", "t_max", "x_a", "x_s"]).standardize


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("sepal length (cm)", "cm"),
        ("speed [m/s]", "m/s"),
        ("body_mass_g", "g"),
        ("share_%", "%"),
        ("House area (100 m²)", None),
        ("t_min", None),
        ("time (min)", "min"),
        ("mm", None),
        ("", None),
        ("temperature (°C)", "°C"),
        ("Weight_KG", "KG"),
    ],
)
def test_a_unit_is_read_from_the_end_of_a_name(name, unit):
    assert unit_of(name) == unit


# --- a table made ready -------------------------------------------------------------------------


def table(X, **fields):
    X = np.asarray(X)
    fields.setdefault("columns", tuple("abcdefgh"[: X.shape[1]]))
    return Table(name="t.csv", X=X, n_columns=X.shape[1], places=Places(first=2), **fields)


def holed(n=60, d=6, rank=2, share=0.1, seed=0):
    """A table of low rank, the same with gaps, and where they are."""
    draw = np.random.default_rng(seed)
    whole = draw.standard_normal((n, rank)) @ draw.standard_normal((rank, d)) + 5
    whole += 0.01 * draw.standard_normal((n, d))
    gaps = draw.random((n, d)) < share
    gaps[:, 0] = False
    return whole, np.where(gaps, np.nan, whole), gaps


def test_a_table_without_gaps_on_one_scale_is_not_copied():
    ready = prepare(table(NOISE))
    assert ready.X is ready.table.X
    assert ready.X is prepare(table(NOISE)).table.X or np.shares_memory(ready.X, NOISE)
    assert ready.kept is None
    assert str(ready.preparation) == (
        "preparation of 4 columns\n"
        "  scale  none: the columns' spreads are within 10-fold of each other"
    )


def test_a_gap_is_refused_with_its_line_and_the_ways_out():
    X = NOISE.copy()
    X[3, 1] = X[7, 2] = np.nan
    with pytest.raises(GapError) as info:
        prepare(table(X))
    problem = 't.csv: 2 missing values in 2 columns: "b" 1, "c" 1 (first: line 5, column "b").'
    ways = 'Use missing="drop", missing="mean", or missing="em".'
    assert str(info.value) == f"{problem} {ways}"
    assert sentence(info.value) == (
        f"{problem} Use --missing drop, --missing mean, or --missing em."
    )
    assert isinstance(info.value, MissingValueError)


def test_rows_with_gaps_are_dropped_with_their_labels_and_ids():
    X = NOISE.copy()
    X[[3, 7], 1] = np.nan
    names = np.array([f"r{i}" for i in range(200)], dtype=object)
    ready = prepare(table(X, ids=names, labels=names), missing="drop")
    keep = [i for i in range(200) if i not in (3, 7)]
    np.testing.assert_array_equal(ready.X, NOISE[keep])
    assert list(ready.table.ids) == [f"r{i}" for i in keep]
    assert list(ready.table.labels) == list(ready.table.ids)
    assert ready.kept.tolist() == keep
    assert ready.table.places.of(3) == "line 6"
    assert ready.preparation.lines()[0] == ("missing", "2 rows dropped (1 %)")


def test_if_every_row_has_a_gap_dropping_is_refused():
    X = np.where(np.eye(4, dtype=bool), np.nan, 1.0)
    with pytest.raises(GapError) as info:
        prepare(table(X), missing="drop")
    assert str(info.value) == (
        't.csv: 4 missing values in 4 columns: "a" 1, "b" 1, "c" 1, "d" 1 (first: line 2, column '
        '"a"). Use missing="mean". Every row has one.'
    )


def test_means_are_those_of_the_known_values():
    X = np.array([[1.0, 10], [np.nan, 20], [3, np.nan]])
    ready = prepare(table(X), missing="mean", scale="none")
    np.testing.assert_array_equal(ready.X, [[1, 10], [2, 20], [3, 15]])
    assert np.isnan(X[1, 0])
    assert ready.preparation.lines()[0] == (
        "missing",
        "2 values filled in with the means of their columns",
    )


@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize("unit", [1.0, 1e150, 1e-150])
def test_em_finds_what_the_other_values_foretell(scale, unit):
    whole, X, gaps = holed()
    ready = prepare(table(X * unit), missing="em", scale=scale)
    filled = ready.preparation.undo(ready.X) / unit
    # Noise 0.01 a cell, carried through 2 components known from at least 2 of the others.
    assert np.abs(filled - whole)[gaps].max() < 0.15
    np.testing.assert_allclose(filled[~gaps], whole[~gaps], rtol=1e-12)
    assert "filled in from 2 components; converged" in ready.preparation.lines()[0][1]
    mean = prepare(table(X * unit), missing="mean", scale=scale)
    worse = mean.preparation.undo(mean.X) / unit
    assert np.abs(filled - whole)[gaps].std() < 0.1 * np.abs(worse - whole)[gaps].std()


def test_em_drops_rows_without_any_value():
    _, X, _ = holed()
    without = prepare(table(np.delete(X, 4, axis=0)), missing="em")
    X[4] = np.nan
    ready = prepare(table(X), missing="em")
    np.testing.assert_array_equal(ready.X, without.X)
    np.testing.assert_array_equal(ready.kept, np.delete(np.arange(len(X)), 4))
    assert ready.preparation.lines()[0][1].endswith("; 1 row without any value dropped")
    # A table in blocks keeps its rows, and learns from all of them.
    with pytest.raises(GapError) as info:
        learn_filling(table(X), measure_spread(X), standardize=False)
    assert str(info.value) == (
        "t.csv: line 6 has no value in any feature, so there is nothing to estimate its values "
        'from. Use missing="drop", or missing="mean". Or remove that row.'
    )


@pytest.mark.parametrize("missing", ["mean", "em", "drop"])
def test_a_column_without_values_is_refused(missing):
    X = NOISE.copy()
    X[:, 2] = np.nan
    with pytest.raises(FileError) as info:
        prepare(table(X), missing=missing)
    assert str(info.value) == 't.csv: column "c" has no values. Use drop="c".'


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinite_value_is_refused_with_its_line(value):
    X = NOISE.copy()
    X[9, 3] = value
    with pytest.raises(FileError) as info:
        prepare(table(X), missing="mean")
    assert str(info.value) == (
        f't.csv: column "d" holds an infinite value at line 11. Use na="{value}", or drop="d".'
    )


@pytest.mark.parametrize(("option", "value"), [("missing", "fill"), ("scale", True)])
def test_options_outside_their_choices_are_refused(option, value):
    with pytest.raises(ParameterError, match=f"`{option}` must be one of"):
        prepare(table(NOISE), **{option: value})


@pytest.mark.parametrize("kind", ["f8", "f4", "i4", "u1"])
def test_standard_columns_have_mean_0_and_spread_1(kind):
    X = (rng.uniform(0, 200, (500, 3)) * [1, 0.5, 0.02]).astype(kind)
    ready = prepare(table(X), scale="standard")
    assert ready.X.dtype == (np.float32 if kind == "f4" else np.float64)
    # float32 rounds each number by 6e-8 of itself
    np.testing.assert_allclose(ready.X.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(ready.X.std(axis=0, ddof=1), 1, rtol=1e-6)


def test_it_is_the_standardising_of_pca():
    X = samples.load("wine").X
    ready = prepare(table_of_sample(samples.load("wine")))
    assert ready.preparation.scale == "standard"
    ours = PCA(3).fit(ready.X)
    theirs = PCA(3, standardize=True).fit(X)
    np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_, rtol=1e-10)


def test_a_constant_column_is_left_at_0():
    X = np.column_stack([NOISE, np.full(200, 0.1)])
    ready = prepare(table(X), scale="standard")
    np.testing.assert_allclose(ready.X[:, 4], 0, atol=1e-15)
    np.testing.assert_allclose(ready.preparation.undo(ready.X), X, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("missing", ["error", "drop", "mean", "em"])
@pytest.mark.parametrize("scale", ["none", "standard"])
def test_the_way_back_gives_the_numbers_of_the_file(missing, scale):
    whole, X, _ = holed()
    given = whole if missing == "error" else X
    ready = prepare(table(given * [1, 2, 3, 4, 5, 6]), missing=missing, scale=scale)
    np.testing.assert_allclose(ready.preparation.undo(ready.X), ready.table.X, rtol=1e-11)


@pytest.mark.parametrize("missing", ["drop", "mean", "em"])
def test_new_rows_get_what_the_first_ones_got(missing):
    _, X, _ = holed()
    X = X * [1, 10, 100, 1e3, 1e4, 1e5]
    first = prepare(table(X), missing=missing, scale="standard")
    again = first.preparation.apply(table(X[:20]))
    n = len(again.X)
    # em: the closed form of a row, and the values at which its iterations came to rest
    np.testing.assert_allclose(again.X, first.X[:n], rtol=1e-12, atol=1e-12)
    one = first.preparation.apply(table(again.table.X[5:6]))
    np.testing.assert_array_equal(one.X, again.X[5:6])


def test_new_rows_are_found_by_name_in_any_order():
    made = prepare(table(NOISE * [1, 20, 300, 1])).preparation
    turned = table(NOISE[:, ::-1] * [1, 300, 20, 1], columns=("d", "c", "b", "a"))
    np.testing.assert_array_equal(
        made.apply(turned).X, made.apply(table(NOISE * [1, 20, 300, 1])).X
    )
    wide = table(np.column_stack([np.zeros(200), NOISE]), columns=("z", "a", "b", "c", "d"))
    assert made.apply(wide).table.columns == ("a", "b", "c", "d")
    unnamed = table(NOISE, columns=("column 1", "column 2", "column 3", "column 4"), named=False)
    assert made.apply(unnamed).table.columns == ("a", "b", "c", "d")


def test_new_rows_that_lack_a_column_are_refused():
    made = prepare(table(NOISE)).preparation
    with pytest.raises(FileError) as info:
        made.apply(table(NOISE[:, :3]))
    assert str(info.value) == (
        't.csv lacks 1 of the 4 columns of the model: "d". Columns are found by their names, in '
        "any order."
    )


def test_new_gaps_and_infinities_are_refused_where_the_model_cannot_fill_them():
    X = NOISE.copy()
    X[2, 0] = np.nan
    with pytest.raises(
        GapError, match=r'1 missing value \(first: line 4, column "a"\)\. Use missing'
    ):
        prepare(table(NOISE)).preparation.apply(table(X))
    with pytest.raises(GapError, match=r"The model has seen no gaps: drop those rows\."):
        prepare(table(NOISE), missing="em").preparation.apply(table(X))
    X[2, 0] = np.inf
    with pytest.raises(FileError, match="infinite value at line 4"):
        prepare(table(NOISE)).preparation.apply(table(X))


def test_numbers_of_another_width_have_no_way_back():
    with pytest.raises(DataError, match=r"Z must have 4 columns, as the table had; its shape is"):
        prepare(table(NOISE)).preparation.undo(np.zeros((2, 3)))


@pytest.mark.parametrize("missing", ["drop", "mean", "em"])
def test_a_preparation_comes_back_from_json_and_arrays(missing):
    _, X, _ = holed()
    made = prepare(table(X * [1, 10, 100, 1e3, 1e4, 1e5]), missing=missing).preparation
    plain = json.loads(json.dumps(made.to_dict()))
    again = Preparation.restore(plain, made.arrays())
    assert again.to_dict() == made.to_dict()
    assert str(again) == str(made)
    new = table(X[:10])
    np.testing.assert_array_equal(again.apply(new).X, made.apply(new).X)


def test_a_damaged_preparation_is_refused():
    _, X, _ = holed()
    made = prepare(table(X), missing="em").preparation
    plain, arrays = made.to_dict(), made.arrays()
    broken = [
        ({**plain, "missing": "guess"}, arrays),
        ({**plain, "scale": 3}, arrays),
        ({**plain, "columns": ["a"]}, arrays),
        ({**plain, "columns": None}, arrays),
        ({**plain, "columns": [1, 2, 3, 4, 5, 6]}, arrays),
        ({**plain, "more": 1}, arrays),
        ({k: v for k, v in plain.items() if k != "why"}, arrays),
        (plain, {k: v for k, v in arrays.items() if k != "mean"}),
        (plain, {k: v for k, v in arrays.items() if k != "em_penalty"}),
        (plain, {**arrays, "std": np.zeros(6)}),
        (plain, {**arrays, "mean": np.full(6, np.nan)}),
        (plain, {**arrays, "em_components": arrays["em_components"].T}),
        (plain, {**arrays, "em_unit": np.ones(5)}),
    ]
    for parts in broken:
        with pytest.raises(DataError, match="The preparation stored in the model is damaged"):
            Preparation.restore(*parts)


def test_em_fills_as_pca_does():
    _, X, _ = holed()
    ready = prepare(table(X), missing="em", scale="none")
    pca = PCA(missing="em", random_state=0).fit(X)
    # With all components the way back is the row itself, filled in. The two are fitted to the same
    # numbers up to a shift and a power of two, and differ by rounding.
    np.testing.assert_allclose(ready.X, pca.inverse_transform(pca.transform(X)), atol=1e-10)


def test_em_without_noise_fills_a_new_row_of_no_values_with_the_means():
    whole = np.outer(np.arange(1.0, 9), [1, 2, 4, 8])
    X = whole.copy()
    X[3, 2] = np.nan
    made = prepare(table(X), missing="em", scale="none").preparation
    np.testing.assert_allclose(made.apply(table(X)).X, whole, rtol=1e-4)
    filled = made.apply(table(np.full((1, 4), np.nan))).X
    np.testing.assert_allclose(filled[0], whole.mean(axis=0), rtol=1e-4)
