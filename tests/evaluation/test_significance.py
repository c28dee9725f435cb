from __future__ import annotations

import itertools
import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InvalidValue, MissingDependency
from memlab.evaluation.significance import bootstrap_interval, holm, paired_interval, paired_permutation

stats = pytest.importorskip("scipy.stats")
RECIPROCAL = np.array([0, 1 / 10, 1 / 7, 1 / 5, 1 / 4, 1 / 3, 1 / 2, 1])
RECIPROCAL_P = np.array([0.25, 0.03, 0.03, 0.04, 0.05, 0.07, 0.13, 0.40])


# -- the permutation test ----------------------------------------------------------------------------------------------


def test_p_values_are_uniform_where_nothing_differs() -> None:
    rng = np.random.default_rng(11)
    ps = np.array([paired_permutation(rng.beta(0.4, 1, 40), rng.beta(0.4, 1, 40), 500, seed=i) for i in range(500)])
    assert stats.kstest(ps, "uniform").pvalue > 0.05
    for level in (0.01, 0.05, 0.1, 0.5):  # within three standard errors
        assert abs(np.mean(ps <= level) - level) < 3 * math.sqrt(level * (1 - level) / len(ps))


@pytest.mark.parametrize("values", [(0.0, 1.0), (0.0, 0.5, 1.0)])
@pytest.mark.parametrize("n", [10, 30, 200])
def test_ties_make_the_test_careful_never_rash(values: tuple[float, ...], n: int) -> None:
    rng = np.random.default_rng(n)
    weights = np.array([0.15, 0.85]) if len(values) == 2 else np.array([0.1, 0.1, 0.8])
    ps = []
    for seed in range(250):
        a, b = rng.choice(values, (2, n), p=weights)
        ps.append(paired_permutation(a, b, 500, seed))
    for level in (0.01, 0.05, 0.1, 0.3):
        assert np.mean(np.array(ps) <= level) <= level + 2.5 * math.sqrt(level * (1 - level) / len(ps))


def test_it_finds_what_is_there() -> None:
    rng = np.random.default_rng(3)
    base = rng.beta(2, 2, 150)
    better = np.clip(base + rng.normal(0.05, 0.1, 150), 0, 1)
    assert paired_permutation(better, base) < 0.001


def by_hand(differences: list[float]) -> float:
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
            for signs in itertools.product((1, -1), repeat=len(differences))]  # fmt: skip
    return float(np.mean([s >= abs(sum(differences)) - 1e-9 for s in sums]))


@given(st.lists(st.sampled_from([-1.0, -0.63, -0.5, 0.0, 0.1, 0.37, 0.5, 1.0]), min_size=1, max_size=9))
def test_few_pairs_are_enumerated(differences: list[float]) -> None:
    zeros = [0.0] * 20  # pairs that do not differ have no say
    p = paired_permutation([*differences, *zeros], [0.0] * (len(differences) + 20), resamples=100)
    assert p == pytest.approx(by_hand(differences), abs=1e-12)


def test_exact_values_agree_with_scipy() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.random(11), rng.random(11)
    theirs = stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True
    )
    assert paired_permutation(a, b) == pytest.approx(theirs.pvalue, abs=1e-12)


def test_drawn_signs_agree_with_the_enumeration() -> None:
    rng = np.random.default_rng(6)
    for differences in (
        rng.normal(0.3, 1, 15),
        np.repeat([0.5, 0.3, -0.2], 5),
        np.r_[rng.normal(0.3, 1, 10), [0.5] * 6],
    ):
        exact = by_hand(differences.tolist())
        drawn = paired_permutation(differences, np.zeros(len(differences)), resamples=20_000)
        assert drawn == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 20_000))


def test_zeros_and_ones_give_mcnemars_exact_test() -> None:
    a = np.r_[np.ones(14), np.zeros(5), np.ones(60)]
    b = np.r_[np.zeros(14), np.ones(5), np.ones(60)]
    assert paired_permutation(a, b) == pytest.approx(stats.binomtest(14, 19).pvalue)


def test_p_is_never_zero_and_one_if_nothing_differs() -> None:
    assert paired_permutation(np.linspace(1, 2, 100), np.zeros(100), resamples=100) == pytest.approx(1 / 101)
    assert paired_permutation([0.3, 0.5], [0.3, 0.5 + 1e-12]) == 1.0
    assert paired_permutation([1.0], [0.0]) == 1.0


def test_which_is_first_does_not_matter_and_seeds_settle_all() -> None:
    rng = np.random.default_rng(8)
    a, b = rng.random((2, 60))
    assert paired_permutation(a, b, 2000, seed=4) == paired_permutation(b, a, 2000, seed=4)
    assert paired_permutation(a, b, 2000, seed=4) != paired_permutation(a, b, 2000, seed=5)
    order = rng.permutation(60)
    assert bootstrap_interval(a, seed=2) == bootstrap_interval(a[order], seed=2) != bootstrap_interval(a, seed=3)
    assert paired_interval(a - b, seed=2) == paired_interval((a - b)[order], seed=2)


# -- intervals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [30, 200])
def test_intervals_of_zeros_and_ones_cover(n: int) -> None:
    """Exact, over all that can be found: Wilson's interval stays within 0.92 and 0.98."""
    ends = np.array([bootstrap_interval(np.r_[np.ones(k), np.zeros(n - k)]) for k in range(n + 1)])
    covers = []
    for share in np.arange(0.05, 0.951, 0.05):
        inside = (ends[:, 0] <= share) & (share <= ends[:, 1])
        covers.append(float(stats.binom.pmf(np.arange(n + 1), n, share)[inside].sum()))
    assert min(covers) >= 0.92
    assert max(covers) <= 0.98
    assert np.mean(covers) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("n", [30, 200])
@pytest.mark.parametrize("shape", ["reciprocal ranks", "high", "low"])
def test_intervals_of_skewed_values_cover(shape: str, n: int) -> None:
    """95 % within three and a half points: 300 samples have a standard error of 1.3."""
    rng = np.random.default_rng(n)
    draw, true = {
        "reciprocal ranks": (lambda: rng.choice(RECIPROCAL, n, p=RECIPROCAL_P), float(RECIPROCAL @ RECIPROCAL_P)),
        "high": (lambda: rng.beta(5, 0.5, n), 5 / 5.5),
        "low": (lambda: rng.beta(0.3, 1, n), 0.3 / 1.3),
    }[shape]
    ends = np.array([bootstrap_interval(draw(), resamples=600, seed=i) for i in range(300)])
    assert np.mean((ends[:, 0] <= true) & (true <= ends[:, 1])) == pytest.approx(0.95, abs=0.035)


@pytest.mark.parametrize("n", [30, 150])
@pytest.mark.parametrize(
    ("values", "shares"),
    [
        ((-1, 0, 1), (0.03, 0.90, 0.07)),
        ((-1, 0, 1), (0.10, 0.70, 0.20)),
        ((-1, -0.37, 0, 0.13, 0.37, 0.63, 1), (0.02, 0.03, 0.80, 0.05, 0.04, 0.03, 0.03)),
    ],
)
def test_intervals_of_differences_cover(values: tuple[float, ...], shares: tuple[float, ...], n: int) -> None:
    """At least 92 %, also with few pairs that differ."""
    rng = np.random.default_rng(n)
    samples, true = rng.choice(values, (300, n), p=shares), float(np.dot(values, shares))
    ends = np.array([paired_interval(row, resamples=600, seed=i) for i, row in enumerate(samples)])
    assert 0.92 <= np.mean((ends[:, 0] <= true) & (true <= ends[:, 1])) <= 0.99


def test_interval_and_test_agree_on_few_differences() -> None:
    for wins in range(1, 12):
        differences = np.r_[np.ones(wins), np.zeros(40 - wins)]
        p = paired_permutation(differences, np.zeros(40))
        low, high = paired_interval(differences)
        assert low <= wins / 40 <= high
        if p > 0.1:
            assert low <= 0
        if p < 0.02:
            assert low > 0


def test_the_interval_is_near_the_one_of_scipy() -> None:
    values = np.random.default_rng(1).beta(2, 3, 400)
    theirs = stats.bootstrap((values,), np.mean, method="percentile", rng=0).confidence_interval
    assert bootstrap_interval(values) == pytest.approx((theirs.low, theirs.high), abs=0.002)


def test_few_distinct_values_are_drawn_by_count_with_the_same_result() -> None:
    values = np.random.default_rng(2).choice(RECIPROCAL, 100, p=RECIPROCAL_P)
    noise = np.linspace(0, 1e-7, 100)  # the same values, all distinct
    assert bootstrap_interval(values) == pytest.approx(bootstrap_interval(values + noise), abs=0.006)


def test_wilson_by_hand() -> None:
    assert bootstrap_interval([1] * 9 + [0]) == pytest.approx((0.5958, 0.9821), abs=1e-4)
    low, high = bootstrap_interval(np.ones(30, bool))
    assert (round(low, 4), high) == (0.8865, 1.0)
    assert bootstrap_interval(np.zeros(30))[0] == 0.0


def test_a_higher_level_is_wider() -> None:
    values = np.random.default_rng(9).random(50)
    for function in (bootstrap_interval, paired_interval):
        (low, high), (wide_low, wide_high) = function(values, 0.8), function(values, 0.99)
        assert wide_low < low < values.mean() < high < wide_high


@pytest.mark.parametrize("function", [bootstrap_interval, paired_interval])
def test_little_data(function) -> None:
    assert all(math.isnan(end) for end in function([0.4]))
    assert function([0.0] * 5)[0] == 0.0
    assert paired_interval([0.0, 1e-12, -1e-12]) == (0.0, 0.0)
    assert bootstrap_interval([0.25, 0.25, 0.25]) == (0.25, 0.25)
    for bad, said in (([], "at least one"), ([0.1, math.nan, math.inf], "nan at position 1 and 1 more")):
        with pytest.raises(InvalidValue, match=said):
            function(bad)
    with pytest.raises(InvalidValue, match="expected numbers"):
        function(["a"])
    with pytest.raises(InvalidValue, match="one row"):
        function([[1.0, 2.0]])
    for level in (0, 1, 95, True):
        with pytest.raises(InvalidValue, match="between 0 and 1"):
            function([0.1, 0.2], level=level)


def test_pairs_must_be_pairs() -> None:
    with pytest.raises(InvalidValue, match="found 2 and 3"):
        paired_permutation([1, 2], [1, 2, 3])
    with pytest.raises(InvalidValue, match="b: expected finite"):
        paired_permutation([1, 2], [1, math.nan])
    with pytest.raises(InvalidValue, match="at least one"):
        paired_permutation([], [])


def test_without_scipy_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(MissingDependency, match=r'pip install "memlab\[eval\]"'):
        bootstrap_interval([0.1, 0.2, 0.4])


# -- Holm --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_ps", "expected"),
    [
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),  # x4, x3, x2, x1 from the smallest on, never falling
        ([0.02, 0.02, 0.02], [0.06, 0.06, 0.06]),
        ([0.6, 0.5], [1.0, 1.0]),
        ([0.03], [0.03]),
        ([], []),
        ([0.01, math.nan, 0.04], [0.02, math.nan, 0.04]),
    ],
)
def test_holm_by_hand(given_ps: list[float], expected: list[float]) -> None:
    assert holm(given_ps).tolist() == pytest.approx(expected, nan_ok=True)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_never_lowers(ps: list[float]) -> None:
    raised = holm(ps)
    assert ((raised >= np.array(ps)) & (raised <= 1)).all()
    assert (np.diff(raised[np.argsort(ps, kind="stable")]) >= 0).all()
    assert (raised <= np.minimum(1, len(ps) * np.array(ps))).all()  # never above Bonferroni's


def test_holm_refuses_what_is_no_probability() -> None:
    bad: Any
    for bad in ([1.2], [-0.1], [[0.1]]):
        with pytest.raises(InvalidValue, match="from 0 to 1"):
            holm(bad)
