"""The Rasch model, ability, intervals and item flags, against brute force and against each other."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats

from envsdk.conformance.run import Case, SkipCaseError, read_cases
from envsdk.errors import UsageError
from registry.calibration.ability import ability, predicted
from registry.calibration.arrow import Arrow
from registry.calibration.intervals import jeffreys, wilson
from registry.calibration.items import rest_score_correlations
from registry.calibration.pass_at_k import pass_at_k, pass_hat_k
from registry.calibration.plots import difficulty_plot, information_plot
from registry.calibration.rasch import Responses, fit_rasch, log_posterior
from registry.calibration.report import report_fit
from registry.calibration.responses import ResponseTable, read_responses
from registry.calibration.rising import Rising
from registry.conformance import KINDS, judge

CASES = Path(__file__).parents[2] / "conformance" / "cases" / "numeric"


def responses(seed, models=6, tasks=9, trials=5, m=2.0):
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(0, 1, models), rng.normal(0, 1.5, tasks)
    pi = special.expit(theta[:, None] - b[None, :])
    rates = rng.beta(m * pi, m * (1 - pi))
    n = rng.integers(0, trials + 1, (models, tasks)).astype(float)
    return Responses(rng.binomial(n.astype(int), rates).astype(float), n), theta, b


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_gradient_is_that_of_the_value(seed):
    table, theta, b = responses(seed)
    x = np.concatenate([theta, b, [0.3]])

    def value(point):
        return log_posterior(table, point[:6], point[6:-1], point[-1]).log_post

    found = log_posterior(table, theta, b, 0.3).grad
    np.testing.assert_allclose(found, optimize.approx_fprime(x, value, 1e-6), atol=2e-3)


def test_the_likelihood_is_the_beta_binomials():
    table, theta, b = responses(1)
    pi = special.expit(theta[:, None] - b[None, :])
    m = math.exp(0.4)
    wanted = stats.betabinom.logpmf(table.passes, table.trials, m * pi, m * (1 - pi)).sum()
    assert log_posterior(table, theta, b, 0.4).log_lik == pytest.approx(wanted, abs=1e-8)


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_a_fit_is_a_maximum(seed):
    table, _, _ = responses(seed)
    assume(table.trials.any())
    fit = fit_rasch(table)
    grad = log_posterior(table, fit.raw.theta, fit.raw.b, fit.raw.log_m).grad
    assert np.abs(grad).max() < 1e-4
    assert fit.theta.mean() == pytest.approx(0.0, abs=1e-9)


def test_standard_errors_are_those_of_the_dense_matrix():
    table, _, _ = responses(3, models=4, tasks=7)
    fit = fit_rasch(table, panel=[0, 2])
    x = np.concatenate([fit.raw.theta, fit.raw.b, [fit.raw.log_m]])

    def grad(point):
        return log_posterior(table, point[:4], point[4:-1], point[-1]).grad

    steps = np.eye(len(x)) * 1e-5
    hessian = np.array([(grad(x + step) - grad(x - step)) / 2e-5 for step in steps])
    covariance = np.linalg.inv(-(hessian + hessian.T) / 2)
    shift = np.eye(len(x))
    shift[:-1, [0, 2]] -= 0.5
    shifted = shift @ covariance @ shift.T
    np.testing.assert_allclose(np.concatenate([fit.se.theta, fit.se.b]), np.sqrt(np.diag(shifted))[:-1], rtol=1e-4)
    np.testing.assert_allclose(fit.se_raw.b, np.sqrt(np.diag(covariance))[4:-1], rtol=1e-4)


@pytest.mark.parametrize("shape", [(2, 40), (40, 2), (7, 7), (1, 1)])
def test_wide_and_tall_tables_are_solved_alike(shape):
    rng = np.random.default_rng(5)
    models, tasks = shape
    cross = -rng.random(shape)
    theta, b = -cross.sum(axis=1) + 1, -cross.sum(axis=0) + 1
    borders = rng.normal(size=models) / 9, rng.normal(size=tasks) / 9
    arrow = Arrow.of(
        theta_diagonal=theta, b_diagonal=b, cross=cross, theta_border=borders[0], b_border=borders[1], corner=9.0
    )
    dense = np.block(
        [
            [np.diag(theta), cross, borders[0][:, None]],
            [cross.T, np.diag(b), borders[1][:, None]],
            [borders[0][None, :], borders[1][None, :], np.array([[9.0]])],
        ]
    )
    vector = rng.normal(size=len(dense))
    np.testing.assert_allclose(arrow.solve(vector), np.linalg.solve(dense, vector))
    np.testing.assert_allclose(arrow.inverse_diagonal(), np.diag(np.linalg.inv(dense)))


@given(
    st.lists(st.tuples(st.floats(1e-6, 50), st.sampled_from([0.0, 1.0, 2.0, 7.0, 64.0, 65.0, 300.0, 2.5])), max_size=12)
)
def test_products_of_factors_are_differences_of_gamma_functions(cells):
    base, counts = (np.array([cell[part] for cell in cells], dtype=float) for part in (0, 1))
    rising = Rising.of(counts)
    log, slope = rising.log_and_slope(base)
    first, second = rising.slopes(base)
    top = base + counts
    np.testing.assert_allclose(log, special.gammaln(top) - special.gammaln(base), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(slope, special.psi(top) - special.psi(base), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(first, slope, rtol=1e-12)
    np.testing.assert_allclose(second, special.polygamma(1, top) - special.polygamma(1, base), rtol=1e-8, atol=1e-9)


def test_difficulty_and_ability_come_back_from_simulated_trials():
    table, theta, b = responses(11, models=30, tasks=60, trials=12, m=4.0)
    fit = fit_rasch(table)
    assert np.corrcoef(fit.b, b)[0, 1] > 0.9
    assert np.corrcoef(fit.theta, theta)[0, 1] > 0.9
    z = (fit.b - (b - theta.mean())) / fit.se.b
    assert 0.6 < z.std() < 1.5


def test_ability_is_the_fits_with_difficulty_held():
    table, _, _ = responses(12, models=8, tasks=20, trials=8)
    fit = fit_rasch(table)
    found = ability(fit.raw.b, table.passes[0], table.trials[0], log_m=fit.raw.log_m)
    assert found.theta == pytest.approx(fit.raw.theta[0], abs=1e-6)


@pytest.mark.parametrize("passes", [0, 40])
def test_ability_stays_finite_where_all_or_nothing_passes(passes):
    found = ability([0.0] * 40, [passes / 40] * 40, [1] * 40, log_m=0.0)
    assert abs(found.theta) < 10
    assert 0 < found.se < 2


def test_ability_refuses_impossible_counts():
    with pytest.raises(ValueError, match="at most trials"):
        ability([0.0], [2], [1], log_m=0.0)


def test_predictions_fall_with_difficulty():
    rates = predicted(0.3, [-2.0, 0.0, 2.0])
    assert rates == sorted(rates, reverse=True)


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_intervals_agree_with_scipy_and_hold_the_share(k, more, conf):
    n = k + more
    low, high = wilson(k, n, conf=conf)
    assert 0.0 <= low <= high <= 1.0
    if n:
        wanted = stats.binomtest(k, n).proportion_ci(conf, method="wilson")
        assert (low, high) == pytest.approx((wanted.low, wanted.high), abs=1e-9)
        assert low - 1e-12 <= k / n <= high + 1e-12
    left, right = jeffreys(k, n, conf=conf)
    assert 0.0 < left < right < 1.0


@pytest.mark.parametrize("interval", [wilson, jeffreys])
def test_more_passes_than_trials_is_no_interval(interval):
    with pytest.raises(ValueError, match="no count"):
        interval(3, 2)


@pytest.mark.parametrize(("n", "c"), [(n, c) for n in range(1, 7) for c in range(n + 1)])
def test_pass_at_k_counts_subsets(n, c):
    attempts = [True] * c + [False] * (n - c)
    for k in range(1, n + 1):
        subsets = list(combinations(attempts, k))
        assert pass_at_k(n, c, k) == Fraction(sum(any(one) for one in subsets), len(subsets))
        assert pass_hat_k(n, c, k) == Fraction(sum(all(one) for one in subsets), len(subsets))


def test_a_task_that_able_models_fail_is_flagged(tmp_path):
    path = tmp_path / "responses.csv"
    rows = ["model,task,trials,passes"]
    for rank in range(8):
        rows += [f"m{rank},t{task},10,{min(10, rank + task)}" for task in range(4)] + [f"m{rank},odd,10,{9 - rank}"]
    path.write_text("\n".join(rows))
    report = report_fit(read_responses(path))
    assert [(flag.task, flag.flag) for flag in report.flags] == [("odd", "negative_rest_score")]
    assert all(item.low < item.difficulty < item.high for item in report.items)
    for plot in (difficulty_plot(report), information_plot(report)):
        assert plot.startswith("<svg")
        assert plot.count("<title>") > 1


def test_a_correlation_that_cannot_be_told_is_not_a_number():
    table = Responses(np.array([[1.0, 0.0], [1.0, 1.0]]), np.ones((2, 2)))
    assert np.isnan(rest_score_correlations(table)).all()


def test_two_models_are_flagged_as_too_few(tmp_path):
    path = tmp_path / "responses.csv"
    path.write_text("model,task,trials,passes\na,t,5,1\nb,t,5,4\n")
    assert [flag.flag for flag in report_fit(read_responses(path)).flags] == ["no_overlap"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model,task,trials\na,t,5\n", "no column 'passes'"),
        ("model,task,trials,passes\n", "no rows"),
        ("model,task,trials,passes\na,t,5,6\n", "line 2"),
        ("model,task,trials,passes\na,t,5,x\n", "line 2"),
        ("model,task,trials,passes\na,t,5,1\na,u,nan,1\n", "line 3"),
        ("model,task,trials,passes\na,t,5\n", "line 2"),
    ],
)
def test_a_table_with_a_fault_names_its_line(tmp_path, text, said):
    path = tmp_path / "responses.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=said) as caught:
        read_responses(path)
    assert caught.value.code == "bad_responses"


def test_rows_of_one_cell_add_up(tmp_path):
    path = tmp_path / "responses.csv"
    path.write_text("model,task,trials,passes\na,t,5,1\na,t,3,2\n")
    table = read_responses(path).responses
    assert (table.passes.tolist(), table.trials.tolist()) == ([[3.0]], [[8.0]])


@pytest.mark.parametrize("table", [([[1, 2], [3]], [[1, 2], [3]]), ([[2]], [[1]]), ([], []), ([[math.nan]], [[1]])])
def test_what_is_no_table_of_counts_is_refused(table):
    with pytest.raises(UsageError) as caught:
        Responses.of(*table)
    assert caught.value.code == "bad_responses"


def test_a_table_without_a_trial_is_refused():
    with pytest.raises(UsageError) as caught:
        report_fit(ResponseTable(("a",), ("t",), Responses.of([[0]], [[0]])))
    assert caught.value.code == "no_trials"


def test_a_fit_without_a_trial_is_the_prior():
    fit = fit_rasch(Responses.of([[0, 0], [0, 0]], [[0, 0], [0, 0]]))
    assert fit.raw.theta.tolist() == fit.raw.b.tolist() == [0.0, 0.0]
    assert (fit.m, fit.se_raw.theta.tolist(), fit.se_raw.log_m) == (1.0, [2.0, 2.0], 2.0)


CALIBRATION = [case for case in read_cases(CASES) if case.kind == "calibration"]


@pytest.mark.parametrize("case", CALIBRATION, ids=lambda case: case.id)
def test_the_numeric_cases(case):
    KINDS["calibration"](case)


def changed(case, **body):
    return Case(case.kind, case.id, {**case.body, **body}, case.head, case.path)


def test_the_judge_fails_a_wrong_answer():
    for case in CALIBRATION:
        expect = case.body.get("expect")
        if expect is None:
            continue
        wrong = json.loads(
            json.dumps(expect), parse_int=lambda text: int(text) + 1, parse_float=lambda t: float(t) + 0.01
        )
        if wrong == expect:
            continue
        with pytest.raises(AssertionError):
            judge(changed(case, expect=wrong))


def test_the_judge_skips_what_it_does_not_know():
    for body in ({"kind": "new_kind"}, {"kind": "beta_posterior", "new_option": 1}):
        with pytest.raises(SkipCaseError):
            judge(changed(CALIBRATION[0], **body))
