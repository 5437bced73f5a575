import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn import decomposition

from gnomon import PCA, component_panel
from gnomon.data import samples
from gnomon.errors import DataWarning, ParameterError, ParameterTypeError, UnavailableError
from gnomon.pca.rank import RULES, Request, Spectrum
from gnomon.pca.rules import (
    broken_stick,
    gavish_donoho,
    kaiser,
    median_threshold,
    mle,
    optimal_threshold,
    parallel,
    parallel_bars,
    parallel_draws,
)

SHAPES = [(400, 30), (60, 300), (20_000, 40), (80, 80)]
PLANTED = 3


def spectrum_of(X, **changes):
    """The spectrum of a table, by NumPy alone."""
    n, d = X.shape
    variances = X.var(axis=0, ddof=1)
    singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    values = singular**2 / (n - 1)
    known = Spectrum(values, float(variances.sum()), n, d, whole=True, variances=variances)
    return replace(known, **changes)


def flat(values, **changes):
    """A made-up spectrum of a table with many rows."""
    values = np.asarray(values, dtype=np.float64)
    d = values.size
    return replace(Spectrum(values, float(values.sum()), 50 * d, d, whole=True), **changes)


def planted(n, d, rank=PLANTED, noise=1.0, above=3.0):
    """`rank` directions, each well above the noise that is equal in all cells."""
    random = np.random.default_rng(0)
    U = np.linalg.qr(random.standard_normal((n, rank)))[0]
    V = np.linalg.qr(random.standard_normal((d, rank)))[0]
    strength = above * (np.sqrt(n) + np.sqrt(d)) * np.linspace(2, 1, rank)
    table = (U * strength) @ V.T + random.standard_normal((n, d))
    return noise * table + 5


# -- Minka ------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["covariance", "svd", "gram"])
@pytest.mark.parametrize("name", ["iris", "wine", "breast-cancer", "digits"])
def test_mle_is_scikit_learns(name, solver):
    X = samples.load(name).X
    X = X[:, X.std(axis=0) > 0]  # digits has three constant pixels
    theirs = decomposition.PCA("mle", svd_solver="full").fit(X).n_components_
    assert PCA("mle", solver=solver).fit(X).n_components_ == theirs


@pytest.mark.parametrize("seed", range(6))
def test_mle_is_scikit_learns_where_the_answer_is_not_obvious(seed):
    random = np.random.default_rng(seed)
    X = random.standard_normal((60, 15)) * np.geomspace(4, 1, 15)
    theirs = decomposition.PCA("mle", svd_solver="full").fit(X).n_components_
    assert 1 <= theirs < 14  # the tables above all have 1 less than their columns
    assert mle(spectrum_of(X)) == theirs


def test_mle_needs_more_rows_than_columns():
    X = np.random.default_rng(0).standard_normal((20, 20))
    with pytest.raises(UnavailableError, match="more rows than columns; the table has 20 rows"):
        PCA("mle").fit(X)


def test_mle_keeps_every_direction_with_variance_where_others_have_none():
    X = samples.load("digits").X  # three of its 64 columns are constant
    assert PCA("mle").fit(X).n_components_ == decomposition.PCA("mle").fit(X).n_components_ == 61
    X = np.random.default_rng(0).standard_normal((90, 4))
    assert PCA("mle").fit(np.column_stack([X, X @ [1.0, 2.0, -1.0, 0.5]])).n_components_ == 4


def test_mle_needs_eigenvalues_that_differ():
    with pytest.raises(UnavailableError, match="numbers 2 and 3 are equal"):
        mle(flat([4, 2, 2, 1]))


def test_mle_of_one_column_is_one():
    assert mle(flat([2.0])) == 1


# -- Horn -------------------------------------------------------------------------------------


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_parallel_finds_the_planted_rank(n, d, standardize):
    X = planted(n, d)
    assert PCA("parallel", standardize=standardize).fit(X).n_components_ == PLANTED


@pytest.mark.parametrize(("n", "d"), [(30, 6), (8, 20)])
def test_parallel_is_fooled_by_independent_columns_one_time_in_twenty(n, d):
    random = np.random.default_rng(1)
    spread = np.geomspace(1, 3, d)
    fooled = [
        parallel(spectrum_of(random.standard_normal((n, d)) * spread, seed=i)) > 0
        for i in range(200)
    ]
    # 5 % of 200 with a standard deviation of 1.5 %; comparing with the mean would give 40 %.
    assert 0.01 <= np.mean(fooled) <= 0.10


def test_parallel_compares_with_the_columns_own_variances():
    X = np.random.default_rng(2).standard_normal((500, 8)) * np.arange(1, 9)
    spectrum = spectrum_of(X)
    assert parallel(spectrum) == 0
    assert parallel(replace(spectrum, variances=None)) > 1
    assert PCA("parallel").fit(X).n_components_ == 1


def test_parallel_leaves_constant_columns_out():
    X = planted(200, 10)
    with_constants = np.column_stack([X, np.zeros((200, 4000))])
    assert parallel(spectrum_of(with_constants)) == PLANTED
    assert parallel_draws(spectrum_of(with_constants)) == 100


def test_parallel_stops_at_the_first_failure():
    X = np.random.default_rng(3).standard_normal((300, 6))
    spectrum = spectrum_of(X)
    values = np.array([3.0, 1.0, 1.0, 1.0, 1.0, 1.0]) * spectrum.total / 8
    assert parallel(replace(spectrum, values=values)) == 1  # the last are above the null's last


def test_parallel_draws_follow_the_seed():
    spectrum = spectrum_of(planted(40, 30))
    bars = parallel_bars(replace(spectrum, seed=7))
    np.testing.assert_array_equal(bars, parallel_bars(replace(spectrum, seed=7)))
    np.testing.assert_array_equal(
        bars, parallel_bars(replace(spectrum, seed=np.random.default_rng(7)))
    )
    other = parallel_bars(replace(spectrum, seed=8))
    assert (bars != other).all()
    np.testing.assert_allclose(bars, other, rtol=0.1)


def test_parallel_bars_are_those_of_drawn_tables():
    random = np.random.default_rng(10)
    for n, d in ((12, 10), (9, 20)):
        spread = np.geomspace(1, 2, d)
        null = []
        for _ in range(400):
            Z = random.standard_normal((n, d))
            Z = (Z - Z.mean(axis=0)) / Z.std(axis=0, ddof=1) * spread
            null.append(np.linalg.svd(Z, compute_uv=False)[: min(n - 1, d)] ** 2 / (n - 1))
        blank = Spectrum(np.ones(1), 1.0, n, d, whole=True, variances=spread**2)
        bars = np.mean([parallel_bars(replace(blank, seed=i)) for i in range(4)], axis=0)
        # Percentiles of 400 draws: a few per cent, more for the smallest eigenvalues.
        np.testing.assert_allclose(bars, np.percentile(null, 95, axis=0), rtol=0.15)


def test_parallel_draws_fewer_for_large_tables():
    def draws(n, d):
        return parallel_draws(Spectrum(np.ones(1), 1.0, n, d, whole=True))

    assert draws(10**9, 100) == 100
    assert 5 < draws(10**9, 700) < 100
    assert draws(10**9, 4000) == 5
    assert draws(300, 10**6) == 5


# -- broken stick, Kaiser ---------------------------------------------------------------------


def test_pieces_of_a_broken_stick_are_those_of_the_book():
    bars = np.array([11, 5, 2]) / 18  # 0.611, 0.278, 0.111
    np.testing.assert_allclose(bars, [0.611, 0.278, 0.111], atol=5e-4)
    for i, bar in enumerate(bars):
        # Shares before the i-th are well above their bars (they need not add up to 1 here).
        for share, count in ((bar * 1.001, i + 1), (bar * 0.999, i)):
            values = np.array([*np.full(i, 0.9), share, *np.zeros(2 - i)])
            assert broken_stick(Spectrum(values, 1.0, 100, 3, whole=True)) == count


def test_the_stick_has_as_many_pieces_as_centred_rows_allow():
    values = np.array([0.7, 0.3, 0.0])  # three rows: p = 2, with pieces 0.75 and 0.25
    assert broken_stick(Spectrum(values, 1.0, 3, 50, whole=True)) == 0
    assert broken_stick(Spectrum(values, 1.0, 51, 3, whole=True)) == 2


def test_kaiser_counts_what_is_above_the_mean():
    assert kaiser(flat([4, 3, 2, 1])) == 2  # the mean is 2.5
    assert kaiser(flat([5, 2, 2, 1])) == 1
    assert kaiser(flat([2, 2, 2])) == 0


def test_kaiser_is_above_one_on_standardised_columns():
    X = samples.load("wine").X
    correlation = np.linalg.eigvalsh(np.corrcoef(X.T))
    fitted = PCA("kaiser", standardize=True).fit(X)
    assert fitted.n_components_ == (correlation > 1).sum()


def test_rounding_does_not_lift_equal_eigenvalues_above_their_mean():
    values = 1 + np.array([3, 2, 1, 0, -6]) * np.finfo(float).eps
    assert kaiser(flat(values)) == 0


# -- Gavish and Donoho ------------------------------------------------------------------------


def test_the_optimal_threshold_has_the_papers_values():
    assert optimal_threshold(1.0) == pytest.approx(4 / np.sqrt(3), rel=1e-14)
    assert optimal_threshold(0.5) == pytest.approx(1.9786, abs=5e-5)
    assert optimal_threshold(1e-14) == pytest.approx(np.sqrt(2), rel=1e-6)


def test_the_median_threshold_has_the_papers_values():
    assert median_threshold(1.0) == pytest.approx(2.858, abs=5e-4)
    beta = np.linspace(0.05, 1, 20)
    cubic = 0.56 * beta**3 - 0.95 * beta**2 + 1.82 * beta + 1.43
    exact = np.array([median_threshold(b) for b in beta])
    # The paper: the cubic is within 0.02 for these ratios, and not the same.
    assert 0.001 < np.abs(exact - cubic).max() < 0.02


@pytest.mark.parametrize("beta", [1e-4, 0.1, 0.5, 0.9, 1.0])
def test_the_median_threshold_halves_the_marchenko_pastur_law(beta):
    a, b = (1 - np.sqrt(beta)) ** 2, (1 + np.sqrt(beta)) ** 2
    median = (optimal_threshold(beta) / median_threshold(beta)) ** 2

    def density(x):
        return np.sqrt((b - x) * (x - a)) / (2 * np.pi * beta * x)

    assert quad(density, median, b)[0] == pytest.approx(0.5, abs=1e-7)


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_gavish_donoho_finds_the_planted_rank(n, d):
    X = planted(n, d, noise=0.1)
    assert PCA("gavish-donoho").fit(X).n_components_ == PLANTED
    assert gavish_donoho(spectrum_of(X), noise_variance=0.01) == PLANTED


@pytest.mark.parametrize(("n", "d"), [(401, 100), (101, 400)])
def test_the_known_threshold_is_on_singular_values(n, d):
    tau = optimal_threshold(0.25) * np.sqrt(400) * 3.0  # noise of standard deviation 3
    for factor, count in ((1.001, 1), (0.999, 0)):
        values = np.array([(factor * tau) ** 2 / (n - 1), *np.zeros(99)])
        spectrum = Spectrum(values, 1.0, n, d, whole=True)
        assert gavish_donoho(spectrum, noise_variance=9.0) == count
        by_n = replace(spectrum, values=values * (n - 1) / n, divisor=n)
        assert gavish_donoho(by_n, noise_variance=9.0) == count


def test_the_unknown_threshold_is_on_the_median_singular_value():
    tau = median_threshold(0.25) * 1.0  # of 1, 1, 1, …
    for factor, count in ((1.001, 1), (0.999, 0)):
        values = np.array([(factor * tau) ** 2, *np.ones(99)])
        assert gavish_donoho(Spectrum(values, 1.0, 401, 100, whole=True)) == count
        # The eigenvalue that is zero by centring does not belong to the median.
        wide = np.array([(factor * tau) ** 2, *np.ones(50), *np.full(49, 0.5), 0.0])
        assert gavish_donoho(Spectrum(wide, 1.0, 101, 400, whole=True)) == count


def test_without_noise_gavish_donoho_counts_the_rank():
    random = np.random.default_rng(5)
    X = random.standard_normal((100, 4)) @ random.standard_normal((4, 20))
    assert PCA("gavish-donoho").fit(X).n_components_ == 4


def test_gavish_donoho_refuses_standardised_columns():
    with pytest.raises(UnavailableError, match="standardize=False"):
        PCA("gavish-donoho", standardize=True).fit(planted(50, 5))


# -- what a request makes of them -------------------------------------------------------------


def test_an_unknown_rule_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match="'mle', 'parallel', 'broken-stick'"):
        PCA("elbow").fit(planted(20, 5))


@pytest.mark.parametrize(
    ("fraction", "count"), [(0.4, 1), (0.7, 2), (0.9, 3), (np.nextafter(0.7, 0), 2), (0.7001, 3)]
)
def test_a_share_that_is_met_exactly_is_met(fraction, count):
    values = np.array([4.0, 3, 2, 1])
    request, known = Request.parse(fraction, 9, 4), {"total": 10.0, "n": 9, "d": 4}
    assert request.count(values, **known, whole=True, standardized=False) == count
    assert request.enough(values[:count], **known)
    assert not request.enough(values[: count - 1], **known)


def test_a_share_that_is_met_to_rounding_is_met():
    values = np.full(10, 0.1)  # three of them add up to 0.30000000000000004, eight to 0.79…
    request = Request.parse(0.8, 20, 10)
    assert values[:8].cumsum()[-1] < 0.8
    assert request.count(values, total=1.0, n=20, d=10, whole=True, standardized=False) == 8
    assert request.enough(values[:8], total=1.0, n=20, d=10)


@pytest.mark.parametrize("rule", RULES)
def test_data_without_variance_give_one_component(rule):
    with pytest.warns(DataWarning, match="All rows are the same"):
        assert PCA(rule).fit(np.full((9, 4), 3.0)).n_components_ == 1


@pytest.mark.parametrize("rule", ["parallel", "broken-stick", "kaiser", "gavish-donoho"])
@pytest.mark.parametrize("shape", [(2, 1), (2, 5), (3, 2), (5, 1)])
def test_the_smallest_tables_have_an_answer(rule, shape):
    X = np.random.default_rng(6).standard_normal(shape)
    assert 1 <= PCA(rule).fit(X).n_components_ <= min(shape)


def test_leading_eigenvalues_settle_the_rules_that_stop_at_a_failure():
    values, known = np.array([6.0, 4, 0.5, 0.5, 0.5, 0.5]), {"total": 12.0, "n": 90, "d": 6}
    for rule in RULES:
        settled = [Request(rule).enough(values[:k], **known) for k in range(5)]
        expected = [False, False, False, True, True]
        assert settled == (expected if rule in ("broken-stick", "kaiser") else [False] * 5)
    count = Request("kaiser").count(values[:3], **known, whole=False, standardized=False)
    assert count == 2
    with pytest.raises(UnavailableError, match="all 2 eigenvalues known are above it"):
        Request("kaiser").count(values[:2], **known, whole=False, standardized=False)
    with pytest.raises(UnavailableError, match="Minka's choice needs the whole spectrum"):
        Request("mle").count(values[:3], **known, whole=False, standardized=False)


@pytest.mark.parametrize("rule", ["broken-stick", "kaiser"])
@pytest.mark.parametrize("solver", ["krylov", "deflation"])
def test_solvers_of_leading_components_can_use_them(rule, solver):
    X = planted(500, 450, above=12.0)
    fitted = PCA(rule, solver=solver).fit(X)
    assert fitted.n_components_ == PCA(rule, solver="svd").fit(X).n_components_ == PLANTED
    assert fitted.spectrum_.size < 450


@pytest.mark.parametrize("exponent", [-300, -3, 7, 300])
@pytest.mark.parametrize("rule", RULES)
def test_no_rule_depends_on_the_unit(rule, exponent):
    X = np.ldexp(np.round(np.ldexp(planted(120, 12, noise=0.3), 20)), -20)
    scaled = PCA(rule).fit(np.ldexp(X, exponent))
    assert scaled.n_components_ == PCA(rule).fit(X).n_components_


@pytest.mark.parametrize("rule", RULES)
def test_integer_weights_count_as_repeated_rows(rule):
    random = np.random.default_rng(8)
    X, weights = planted(90, 8), random.integers(1, 4, 90)
    weighed = PCA(rule).fit(X, sample_weight=weights)
    assert weighed.n_components_ == PCA(rule).fit(np.repeat(X, weights, axis=0)).n_components_


@pytest.mark.parametrize("rule", ["parallel", "broken-stick", "gavish-donoho", "kaiser"])
def test_weights_on_few_rows_count_as_repeated_rows(rule):
    X, weights = planted(5, 12, rank=2), np.full(5, 20)
    weighed = PCA(rule).fit(X, sample_weight=weights)
    assert weighed.n_components_ == PCA(rule).fit(np.repeat(X, weights, axis=0)).n_components_


def test_mle_of_few_rows_repeated_counts_what_they_span():
    model = PCA("mle").fit(planted(5, 12, rank=2), sample_weight=np.full(5, 20))
    assert model.n_components_ == 4


# -- the panel --------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(150, 12), (12, 150)])
def test_the_panel_says_what_each_fit_would_keep(shape):
    X = planted(*shape)
    panel = component_panel(PCA().fit(X))
    assert tuple(panel.counts) == (*RULES, "80 %", "90 %", "95 %", "99 %")
    for row in panel.rows:
        asked = float(row.rule[:2]) / 100 if row.rule.endswith("%") else row.rule
        if row.k is None:
            with pytest.raises(UnavailableError) as error:
                PCA(asked).fit(X)
            assert str(error.value) == row.unavailable
        else:
            assert row.unavailable == ""
            assert PCA(asked).fit(X).n_components_ == max(1, row.k)


def test_the_panel_shows_when_nothing_stands_out():
    X = np.random.default_rng(9).standard_normal((200, 10))
    counts = component_panel(PCA().fit(X)).counts
    assert counts["parallel"] == counts["gavish-donoho"] == counts["broken-stick"] == 0


def test_the_panel_prints_as_a_table():
    panel = component_panel(PCA(standardize=True).fit(samples.load("wine").X))
    title, *lines = str(panel).splitlines()
    assert title == "How many components of 178 rows × 13 columns"
    assert len(lines) == 9
    ends = {
        line.index(number, 2 + 13) + len(number)
        for line, number in zip(
            lines, ["–" if k is None else str(k) for k in panel.counts.values()], strict=True
        )
    }
    assert len(ends) == 1  # the numbers are aligned
    assert "95th percentile of 100 draws" in lines[1]
    assert "standardising makes it unequal" in lines[3]
    html = panel._repr_html_()
    assert html.count("<tr>") == 9
    assert "broken-stick" in html


def test_the_panel_is_ready_for_json():
    panel = component_panel(PCA().fit(samples.load("digits").X[:40]))
    back = json.loads(json.dumps(panel.to_dict()))
    assert back["n_samples"] == 40
    assert [row["rule"] for row in back["rows"]] == list(panel.counts)
    assert [row["k"] for row in back["rows"]] == list(panel.counts.values())
    assert back["rows"][0]["k"] is None
    assert "40 rows and 64 columns" in back["rows"][0]["unavailable"]


def test_after_krylov_the_panel_says_what_needs_the_whole_spectrum():
    X = planted(300, 80, above=6.0)
    panel = component_panel(PCA(5, solver="krylov").fit(X))
    whole = component_panel(PCA(5, solver="svd").fit(X))
    reasons = {row.rule: row.unavailable for row in panel.rows}
    for rule in ("mle", "parallel", "gavish-donoho"):
        assert panel.counts[rule] is None
        assert "needs the whole spectrum" in reasons[rule]
    for rule in ("broken-stick", "kaiser", "80 %"):
        assert panel.counts[rule] == whole.counts[rule]
    assert panel.counts["99 %"] is None
    assert reasons["99 %"].startswith("The 5 components known hold 8")


def test_after_krylov_the_panel_knows_what_the_fit_was_asked_for():
    X = planted(300, 80)
    fitted = PCA("kaiser", solver="krylov").fit(X)
    assert component_panel(fitted).counts["kaiser"] == PLANTED
    few = component_panel(PCA(2, solver="krylov").fit(X))
    assert few.counts["kaiser"] is None  # both known are above: there may be more


@pytest.mark.parametrize("exponent", [0, 300])
@pytest.mark.parametrize("ddof", [0, 1])
def test_the_panel_takes_the_noise_if_it_is_known(ddof, exponent):
    X = np.ldexp(planted(300, 80, noise=0.5), exponent)
    model = PCA(6, solver="krylov", ddof=ddof).fit(X)
    counts = component_panel(model, noise_variance=np.ldexp(0.25, 2 * exponent)).counts
    assert counts["gavish-donoho"] == PLANTED  # and the whole spectrum is not needed
    loud = component_panel(model, noise_variance=np.ldexp(25.0, 2 * exponent)).counts
    assert loud["gavish-donoho"] == 0


@pytest.mark.parametrize(("noise", "error"), [(0.0, ParameterError), ("1", ParameterTypeError)])
def test_the_noise_must_be_a_positive_number(noise, error):
    with pytest.raises(error, match="noise_variance"):
        component_panel(PCA().fit(planted(20, 5)), noise_variance=noise)


def test_the_panel_of_constant_data_says_so():
    with pytest.warns(DataWarning):
        model = PCA().fit(np.ones((6, 3)))
    panel = component_panel(model)
    assert set(panel.counts.values()) == {None}
    assert {row.unavailable[:21] for row in panel.rows} == {"All rows are the same"}


def test_the_panel_works_after_partial_fit_and_leaves_generators_alone():
    X = planted(100, 8)
    streamed = PCA().partial_fit(X[:60]).partial_fit(X[60:])
    assert component_panel(streamed).counts == component_panel(PCA().fit(X)).counts
    model = PCA(random_state=np.random.default_rng(3)).fit(X)
    state = model.random_state.bit_generator.state
    component_panel(model)
    assert model.random_state.bit_generator.state == state
