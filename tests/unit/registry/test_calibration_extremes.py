"""The formulae at their ends, against independent ways to the same number: brute force, fifty digits, other libraries."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats

from registry.calibration.ability import ability
from registry.calibration.intervals import jeffreys, wilson
from registry.calibration.items import rest_score_correlations
from registry.calibration.pass_at_k import pass_at_k, pass_hat_k
from registry.calibration.rasch import Responses, fit_rasch, log_posterior
from registry.calibration.rising import Rising
from registry.saturation.eprocess import e_bh
from registry.saturation.posterior import Beta, group_value, interval, learnability, regions

mpmath.mp.dps = 60
BETAS = [(0.15, 0.23), (1e-3, 1e-3), (32.15, 0.23), (0.15, 32.23), (1e6 + 0.15, 0.23), (5e5, 5e5), (1e-3, 1e6)]


def tail(beta, x):
    return mpmath.betainc(beta.alpha, beta.beta, 0, x, regularized=True)


@pytest.mark.parametrize(("alpha", "beta"), [*BETAS[:4], (500.15, 0.23), (250.0, 260.0)])
def test_regions_agree_with_sixty_digits(alpha, beta):
    found = regions(Beta(alpha, beta))
    below, upto = tail(Beta(alpha, beta), mpmath.mpf("0.1")), tail(Beta(alpha, beta), mpmath.mpf("0.9"))
    assert (found.low, found.mid, found.high) == pytest.approx(
        (float(below), float(upto - below), float(1 - upto)), abs=1e-9
    )


@pytest.mark.parametrize(("alpha", "beta"), BETAS)
def test_an_interval_leaves_a_twentieth_on_either_side(alpha, beta):
    low, high = interval(Beta(alpha, beta))
    below, above = (special.betainc(alpha, beta, low), special.betaincc(alpha, beta, high))
    # At the very ends doubles run out: there is no number between the quantile and 0 or 1.
    assert below == pytest.approx(0.05, abs=1e-9) or low < 1e-300
    assert above == pytest.approx(0.05, abs=1e-9) or high > 1 - 1e-9


@pytest.mark.parametrize(("alpha", "beta"), BETAS)
@pytest.mark.parametrize("group", [1, 2, 8, 64, 1_000])
def test_the_value_of_a_group_agrees_with_sixty_digits(alpha, beta, group):
    a, b = mpmath.mpf(alpha), mpmath.mpf(beta)
    exact = 1 - (mpmath.beta(a + group, b) + mpmath.beta(a, b + group)) / mpmath.beta(a, b)
    assert group_value(Beta(alpha, beta), group) == pytest.approx(float(exact), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("alpha", "beta"), BETAS)
def test_a_group_of_two_is_worth_twice_the_learnability(alpha, beta):
    assert group_value(Beta(alpha, beta), 2) == pytest.approx(2 * learnability(Beta(alpha, beta)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 10**6), (10**6, 10**6), (1, 10**6), (500_000, 10**6)])
@pytest.mark.parametrize("conf", [0.5, 0.9, 0.95, 0.999])
def test_intervals_agree_with_another_library(k, n, conf):
    theirs = stats.binomtest(k, n).proportion_ci(confidence_level=conf, method="wilson")
    assert wilson(k, n, conf=conf) == pytest.approx((theirs.low, theirs.high), rel=1e-9, abs=1e-9)
    tails = (1 - conf) / 2, (1 + conf) / 2
    assert jeffreys(k, n, conf=conf) == pytest.approx(stats.beta.ppf(tails, k + 0.5, n - k + 0.5), rel=1e-7, abs=1e-9)


@given(st.integers(1, 12), st.data())
@settings(max_examples=60, deadline=None)
def test_pass_at_k_counts_subsets(n, data):
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    hypergeometric = stats.hypergeom(n, c, k)
    assert float(pass_at_k(n, c, k)) == pytest.approx(1 - hypergeometric.pmf(0), abs=1e-12)
    assert float(pass_hat_k(n, c, k)) == pytest.approx(hypergeometric.pmf(k) if c >= k else 0.0, abs=1e-12)


def test_pass_at_k_of_very_many_attempts_is_still_exact():
    n = 20_000
    assert 1 - pass_at_k(n, 1, n // 2) == Fraction(1, 2)
    assert pass_hat_k(n, n, n // 2) == 1


@given(st.lists(st.sampled_from([0.0, 1.0, 19.0, 20.0, 40.0, 60.0, 1e9, math.inf]), max_size=12))
def test_e_bh_agrees_with_its_definition(e_values):
    best = 0
    for k in range(1, len(e_values) + 1):
        if sorted(e_values, reverse=True)[k - 1] >= len(e_values) / (k * 0.05) * (1 - 1e-12):
            best = k
    retired = e_bh(e_values)
    assert len(retired) == best
    assert sorted((e_values[i] for i in retired), reverse=True) == sorted(e_values, reverse=True)[:best]


# What m and the counts may be: from trials that always agree to independent ones, from one trial to a million.
BASES = [1e-9, 1e-3, 0.5, 1.0, 31.9, 32.1, 1e3, 1e6, 4.8e8, 1e15]
COUNTS = [1, 2, 7, 8, 9, 16, 63, 64, 65, 66, 1_000, 1_000_000]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("count", [*COUNTS, 0.5, 12.7])
def test_rising_factorials_agree_with_sixty_digits(base, count):
    rising = Rising.of(np.array([float(count)]))
    log, first = rising.log_and_slope(np.array([base]))
    again, second = rising.slopes(np.array([base]))
    a, k = mpmath.mpf(base), mpmath.mpf(count)
    assert log[0] == pytest.approx(float(mpmath.loggamma(a + k) - mpmath.loggamma(a)), rel=1e-12, abs=1e-12)
    assert first[0] == again[0] == pytest.approx(float(mpmath.psi(0, a + k) - mpmath.psi(0, a)), rel=1e-11)
    assert second[0] == pytest.approx(float(mpmath.psi(1, a + k) - mpmath.psi(1, a)), rel=1e-10)


def test_no_count_has_an_empty_product():
    log, first = Rising.of(np.array([0.0])).log_and_slope(np.array([3.0]))
    assert (log[0], first[0]) == (0.0, 0.0)


@pytest.mark.parametrize("log_m", [-8.0, -1.0, 0.0, 3.0, 12.0])
@pytest.mark.parametrize("n", [1, 5, 64, 65, 900])
def test_the_likelihood_is_the_beta_binomial(n, log_m):
    rng = np.random.default_rng(n)
    theta, b = rng.normal(0, 2, 3), rng.normal(0, 2, 4)
    trials = np.full((3, 4), n)
    passes = rng.integers(0, n + 1, (3, 4))
    found = log_posterior(Responses.of(passes.tolist(), trials.tolist()), theta, b, log_m)
    pi, m = special.expit(theta[:, None] - b[None, :]), math.exp(log_m)
    theirs = stats.betabinom(trials, m * pi, m * (1 - pi)).logpmf(passes).sum()
    assert found.log_lik == pytest.approx(theirs, rel=1e-9, abs=1e-7)


@pytest.mark.parametrize("log_m", [-8.0, 0.0, 5.0, 12.0])
def test_the_gradient_is_the_slope_of_the_value(log_m):
    rng = np.random.default_rng(8)
    responses = table(rng, 3, 4, 90)
    x = np.concatenate([rng.normal(0, 2, 7), [log_m]])

    def value(y):
        return log_posterior(responses, y[:3], y[3:7], float(y[7])).log_post

    numeric = optimize.approx_fprime(x, value, 1e-6)
    assert log_posterior(responses, x[:3], x[3:7], float(x[7])).grad == pytest.approx(numeric, rel=1e-3, abs=2e-3)


def table(rng, models, tasks, trials, sd=1.5):
    pi = special.expit(rng.normal(0, sd, (models, 1)) - rng.normal(0, sd, (1, tasks)))
    n = np.full((models, tasks), trials)
    return Responses.of(rng.binomial(n, pi).tolist(), n.tolist())


def grid(passes, trials):
    return Responses.of(passes, trials)


EXTREME = {
    "one policy, one task": grid([[1]], [[4]]),
    "one policy": grid([[0, 3, 8]], [[8, 8, 8]]),
    "one task": grid([[0], [3], [8]], [[8], [8], [8]]),
    "all pass": grid([[32] * 4] * 3, [[32] * 4] * 3),
    "none passes": grid([[0] * 4] * 3, [[32] * 4] * 3),
    "all pass, a million trials": grid([[10**6] * 3] * 2, [[10**6] * 3] * 2),
    "half pass, a million trials": grid([[5 * 10**5] * 3] * 2, [[10**6] * 3] * 2),
    "ties": grid([[2, 2, 2]] * 3, [[4, 4, 4]] * 3),
    "a task that able models fail": grid([[8, 8, 0], [4, 4, 4], [0, 0, 8]], [[8] * 3] * 3),
    "two islands": grid([[3, 1, 0, 0], [2, 4, 0, 0], [0, 0, 5, 1]], [[5, 5, 0, 0], [5, 5, 0, 0], [0, 0, 5, 5]]),
    "a model without trials": grid([[3, 1], [0, 0]], [[5, 5], [0, 0]]),
    "a task without trials": grid([[3, 0], [1, 0]], [[5, 0], [5, 0]]),
    "single trials": grid([[1, 0, 1], [0, 0, 1]], [[1, 1, 1], [1, 1, 1]]),
    "all or nothing": grid([[500, 0], [0, 500]], [[500, 500], [500, 500]]),
    "exactly as a Rasch model says": grid([[500, 731], [269, 500]], [[1_000, 1_000], [1_000, 1_000]]),
    "very uneven trials": grid([[1, 900_000], [0, 64]], [[1, 10**6], [1, 65]]),
}


def brute_force(responses, starts=8):
    """The best of several first-order searches from far apart."""
    models, tasks = responses.trials.shape
    rng = np.random.default_rng(0)

    def objective(x):
        found = log_posterior(responses, x[:models], x[models:-1], float(x[-1]))
        return -found.log_post, -found.grad

    best = -math.inf
    for start in range(starts):
        x0 = np.zeros(models + tasks + 1) if start == 0 else rng.normal(0, 2, models + tasks + 1)
        found = optimize.minimize(objective, x0, jac=True, method="L-BFGS-B", options={"maxiter": 3_000, "ftol": 1e-14})
        best = max(best, -float(found.fun))
    return best


@pytest.mark.parametrize("responses", EXTREME.values(), ids=EXTREME)
def test_no_search_from_elsewhere_finds_a_higher_posterior(responses):
    fit = fit_rasch(responses)
    assert fit.log_post >= brute_force(responses) - 1e-6


@pytest.mark.parametrize("responses", EXTREME.values(), ids=EXTREME)
def test_standard_errors_are_those_of_the_curvature(responses):
    fit = fit_rasch(responses)
    models = len(responses.trials)
    x = np.concatenate([fit.raw.theta, fit.raw.b, [fit.raw.log_m]])

    def gradient(y):
        return log_posterior(responses, y[:models], y[models:-1], float(y[-1])).grad

    step = 1e-5
    hessian = np.array([(gradient(x + step * e) - gradient(x - step * e)) / (2 * step) for e in np.eye(len(x))])
    se = np.sqrt(np.diag(np.linalg.inv(-(hessian + hessian.T) / 2)))
    found = np.concatenate([fit.se_raw.theta, fit.se_raw.b, [fit.se_raw.log_m]])
    assert found == pytest.approx(se, rel=1e-3)


@pytest.mark.parametrize("seed", range(12))
def test_many_trials_without_over_dispersion_are_fitted(seed):
    """Cells that are all but binomial draw m to large values, where products of a whole cell leave a double's range."""
    rng = np.random.default_rng(seed)
    responses = table(rng, 5, 6, int(rng.choice([20, 64, 200, 1_000])), sd=3.0)
    fit = fit_rasch(responses)
    assert np.isfinite(fit.se.theta).all()
    assert np.abs(log_posterior(responses, fit.raw.theta, fit.raw.b, fit.raw.log_m).grad).max() < 1e-4
    assert fit.log_post >= brute_force(responses, starts=3) - 1e-6


def test_islands_that_share_nothing_keep_the_prior_between_them():
    fit = fit_rasch(EXTREME["two islands"])
    alone = fit_rasch(grid([[5, 1]], [[5, 5]]))
    assert fit.raw.theta[2] - fit.raw.b[2] > 0 > fit.raw.theta[2] - fit.raw.b[3]
    assert fit.se_raw.theta[2] <= 2.0
    assert alone.se_raw.theta[0] <= 2.0


def test_equal_rows_and_columns_get_equal_estimates():
    fit = fit_rasch(EXTREME["ties"])
    assert np.ptp(fit.theta) == pytest.approx(0.0, abs=1e-6)
    assert np.ptp(fit.b) == pytest.approx(0.0, abs=1e-6)


def test_a_task_that_able_models_fail_has_negative_discrimination():
    assert rest_score_correlations(EXTREME["a task that able models fail"])[2] < 0


@pytest.mark.parametrize("panel", [None, [0], [0, 1]])
def test_the_panel_is_the_zero_of_the_scale(panel):
    fit = fit_rasch(EXTREME["a task that able models fail"], panel=panel)
    chosen = fit.theta if panel is None else fit.theta[panel]
    assert chosen.mean() == pytest.approx(0.0, abs=1e-9)


ABILITIES = {
    "no episode": ([0.0, 1.0], [0, 0], [0, 0]),
    "one pass": ([0.0], [1], [1]),
    "all pass": ([-2.0, 0.0, 2.0], [40, 40, 40], [40, 40, 40]),
    "none passes, easy tasks": ([-9.0, -9.0], [0, 0], [100, 100]),
    "a million trials": ([0.5], [250_000], [10**6]),
    "against the grain": ([-3.0, 3.0], [0, 8], [8, 8]),
}


@pytest.mark.parametrize("log_m", [-4.0, 0.0, 4.0, 10.0])
@pytest.mark.parametrize(("b", "k", "n"), ABILITIES.values(), ids=ABILITIES)
def test_ability_is_the_highest_point_of_a_fine_grid(b, k, n, log_m):
    found = ability(b, k, n, log_m=log_m)
    m = math.exp(log_m)

    def value(theta):
        pi = special.expit(theta - np.array(b))
        a, c = m * pi, m * special.expit(np.array(b) - theta)
        likelihood = special.betaln(a + k, c + np.array(n) - k) - special.betaln(a, c)
        return float(likelihood.sum() - theta * theta / 8.0)

    grid_points = np.linspace(-12, 12, 4_801)
    values = [value(theta) for theta in grid_points]
    assert value(found.theta) >= max(values) - 1e-6
    step = 1e-3
    bend = (value(found.theta + step) - 2 * value(found.theta) + value(found.theta - step)) / step**2
    assert found.se == pytest.approx(1.0 / math.sqrt(-bend), rel=2e-2)
