"""Intervals over topics."""

from __future__ import annotations

import math

import numpy as np
import pytest

from memlab.errors import InvalidValue
from memlab.evaluation.significance import bootstrap_interval, paired_interval
from memlab.evaluation.topics import topic_difference_interval, topic_mean_interval

BOTH = (topic_mean_interval, topic_difference_interval)


def test_a_topic_of_its_own_for_every_query_is_the_usual_interval() -> None:
    values = np.random.default_rng(1).choice([-1.0, 0.0, 0.3, 1.0], 40)
    names = [f"t{i}" for i in range(40)]
    assert topic_mean_interval(values, names) == bootstrap_interval(values)
    assert topic_difference_interval(values, names) == paired_interval(values)


@pytest.mark.parametrize("interval", BOTH)
def test_queries_of_one_topic_that_agree_count_once(interval: object) -> None:
    assert callable(interval)
    rng = np.random.default_rng(2)
    of_topic = rng.choice([0.0, 0.25, 1.0], 30)
    low, high = interval(np.repeat(of_topic, 4), np.repeat([f"t{i:02}" for i in range(30)], 4).tolist())
    alone = interval(of_topic, [f"t{i:02}" for i in range(30)])
    assert (low, high) == pytest.approx(alone, abs=0.03)
    apart = interval(np.repeat(of_topic, 4), [str(i) for i in range(120)])
    assert high - low > 1.6 * (apart[1] - apart[0])


@pytest.mark.parametrize("interval", BOTH)
def test_neither_order_nor_names_matter(interval: object) -> None:
    assert callable(interval)
    rng = np.random.default_rng(3)
    values, groups = rng.random(30), rng.integers(0, 8, 30)
    first = interval(values, [f"a{g}" for g in groups])
    order = rng.permutation(30)
    assert interval(values[order], [f"z{9 - g}" for g in groups[order]]) == pytest.approx(first, abs=1e-12)


def test_what_says_nothing_about_spread() -> None:
    for interval in BOTH:
        assert all(map(math.isnan, interval([0.0, 1.0, 1.0], ["a"] * 3)))
    low, high = topic_mean_interval([1.0] * 6, ["a", "a", "b", "b", "c", "c"])
    assert (round(low, 3), high) == (0.439, 1.0)  # Wilson for 3 of 3, not 6 of 6
    assert topic_difference_interval([0.0] * 4, ["a", "a", "b", "b"]) == (0.0, 0.0)
    # One topic of ten differs: no proof of anything.
    low, high = topic_difference_interval([1.0, 1.0, *[0.0] * 18], [f"t{i // 2}" for i in range(20)])
    assert low <= 0 < high


def test_bad_input() -> None:
    with pytest.raises(InvalidValue, match="topics: expected one for each of 2 values, found 1"):
        topic_mean_interval([1, 2], ["a"])
    with pytest.raises(InvalidValue, match="finite"):
        topic_difference_interval([1, math.nan], ["a", "b"])
    with pytest.raises(InvalidValue, match="resamples"):
        topic_mean_interval([0.5, 0.1, 0.2], ["a", "b", "b"], resamples=3)
    with pytest.raises(InvalidValue, match="level"):
        topic_mean_interval([0.5, 0.1, 0.2], ["a", "b", "b"], level=2)
