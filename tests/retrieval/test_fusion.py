"""Fusion against sums worked out by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import RRF, ConvexFusion, ScoreFusion
from memlab.errors import InvalidValue
from memlab.retrieval.fusion import fused, silent


@dataclass(frozen=True)
class Row:
    memory_id: str
    rank: int | None
    raw_score: float


def rows(**ranked: tuple[int | None, float]) -> list[Row]:
    return [Row(name, rank, score) for name, (rank, score) in ranked.items()]


def test_rrf_is_one_over_k_plus_rank_with_ranks_from_one() -> None:
    lists = {"keyword": rows(a=(1, 9.0), b=(2, 3.0)), "vector": rows(b=(1, 0.8), c=(2, 0.5))}
    given_to = RRF().contributions(lists)
    assert given_to == {
        "a": {"keyword": 1 / 61},
        "b": {"keyword": 1 / 62, "vector": 1 / 61},
        "c": {"vector": 1 / 62},
    }
    # 1/62 + 1/61 = 123/3782, up to the rounding of the two terms
    assert fused(given_to["b"].values()) == pytest.approx(float(Fraction(123, 3782)), rel=1e-15)


def test_rrf_weights_and_k() -> None:
    lists = {"keyword": rows(a=(1, 9.0)), "vector": rows(a=(4, 0.5), b=(1, 0.6))}
    given_to = RRF(k=2, weights={"keyword": 1.5, "vector": 0.0}).contributions(lists)
    assert given_to == {"a": {"keyword": 0.5}}  # 1.5 / (2 + 1); a channel without weight brings nothing in


def test_vector_and_passage_have_one_vote_together() -> None:
    lists = {
        "keyword": rows(a=(3, 1.0)),
        "vector": rows(a=(10, 0.4), b=(1, 0.7), c=(5, 0.5)),
        "passage": rows(a=(2, 0.6), b=(3, 0.5), c=(5, 0.5)),
    }
    given_to = RRF().contributions(lists)
    assert given_to["a"] == {"keyword": 1 / 63, "vector": 0.0, "passage": 1 / 62}
    assert given_to["b"] == {"vector": 1 / 61, "passage": 0.0}
    assert given_to["c"] == {"vector": 1 / 65, "passage": 0.0}  # equal: the first of the group
    every = RRF(one_vote=()).contributions(lists)
    assert every["a"] == {"keyword": 1 / 63, "vector": 1 / 70, "passage": 1 / 62}


def test_convex_by_hand() -> None:
    lists = {"keyword": rows(a=(1, 8.0), b=(2, 5.0), c=(3, 2.0)), "vector": rows(c=(1, 0.9), a=(2, 0.5))}
    given_to = ConvexFusion({"keyword": 0.7, "vector": 0.3}).contributions(lists)
    assert given_to["a"] == {"keyword": pytest.approx(0.7), "vector": 0.0}
    assert given_to["b"] == {"keyword": pytest.approx(0.35)}
    assert given_to["c"] == {"keyword": 0.0, "vector": pytest.approx(0.3)}


def test_convex_scales_weights_over_the_channels_that_have_a_list() -> None:
    given_to = ConvexFusion({"keyword": 3, "vector": 1}).contributions({"keyword": rows(a=(1, 4.0)), "vector": []})
    assert given_to == {"a": {"keyword": 1.0}}  # a list of equal scores gives the whole weight


def test_convex_puts_vector_and_passage_on_one_scale() -> None:
    lists = {"vector": rows(a=(1, 0.9), b=(2, 0.1)), "passage": rows(b=(2, 0.5))}
    given_to = ConvexFusion().contributions(lists)
    assert given_to["a"] == {"vector": 1.0}
    assert given_to["b"] == {"vector": 0.0, "passage": pytest.approx(0.5)}  # (0.5 - 0.1) / (0.9 - 0.1)


@pytest.mark.parametrize("k", [-1, math.nan, math.inf, "60", True])
def test_bad_k(k: object) -> None:
    with pytest.raises(InvalidValue, match="k: expected a number"):
        RRF(k=k)  # type: ignore[arg-type]


def test_scores_by_hand() -> None:
    lists = {
        "keyword": rows(a=(1, 8.0), b=(2, 6.0), c=(None, 2.0)),
        "vector": rows(c=(1, 0.75), a=(2, 0.5), b=(None, -0.25)),
        "passage": rows(a=(5, 0.625)),
    }
    given_to = ScoreFusion({"keyword": 0.5, "vector": 0.5, "passage": 0.5}).contributions(lists)
    assert given_to == {
        "a": {"keyword": 0.5, "vector": 0.0, "passage": 0.3125},  # the passage is nearer than the whole: it counts
        "b": {"keyword": 0.375, "vector": 0.0},  # 6 / 8 of the best keyword score; a cosine below 0 counts as 0
        "c": {"keyword": 0.125, "vector": 0.375},  # beyond the depth of the keywords, and scored all the same
    }


def test_scores_say_how_they_came_about() -> None:
    lists = {"keyword": rows(a=(1, 8.0), b=(2, 6.0)), "vector": rows(a=(1, 0.75))}
    say = ScoreFusion({"keyword": 0.4, "vector": 0.6}).formulas(lists)
    assert say("keyword", lists["keyword"][1]) == "0.4 x 6 / 8"
    assert say("vector", lists["vector"][0]) == "0.6 x 0.75"


def test_scores_need_no_best_one_above_zero() -> None:
    assert ScoreFusion({"keyword": 1}).contributions({"keyword": rows(a=(1, 0.0)), "vector": []}) == {
        "a": {"keyword": 0.0}
    }
    assert ScoreFusion({"keyword": 0.0, "vector": 1.0}).contributions({"keyword": rows(a=(1, 9.0))}) == {}


def test_only_a_fusion_of_scores_counts_what_lies_beyond_the_depth() -> None:
    lists = {"keyword": rows(a=(1, 8.0), b=(None, 6.0)), "vector": rows(b=(1, 0.75), a=(None, 0.5))}
    assert RRF().contributions(lists) == {"a": {"keyword": 1 / 61}, "b": {"vector": 1 / 61}}
    assert ConvexFusion().contributions(lists) == {"a": {"keyword": 0.5}, "b": {"vector": 0.5}}
    assert [fusion.complete for fusion in (RRF, ConvexFusion, ScoreFusion)] == [False, False, True]


@pytest.mark.parametrize("weight", [-0.1, math.nan, math.inf, "1", True])
@pytest.mark.parametrize("kind", [RRF, ConvexFusion, ScoreFusion])
def test_bad_weights(kind: type, weight: object) -> None:
    with pytest.raises(InvalidValue, match="keyword"):
        kind(weights={"keyword": weight})
    with pytest.raises(InvalidValue, match=r"weights: expected \{channel: weight\}"):
        kind(weights="keyword")


def test_bad_groups() -> None:
    with pytest.raises(InvalidValue, match="one_vote"):
        RRF(one_vote=("vector", "passage"))  # type: ignore[arg-type]


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=6), st.randoms())
def test_the_sum_does_not_depend_on_the_order(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert fused(values) == fused(shuffled)


def test_settings_read_well() -> None:
    assert repr(RRF()) == "RRF(k=60)"
    assert repr(RRF(k=2, weights={"keyword": 1.5}, one_vote=())) == "RRF(k=2, weights={'keyword': 1.5}, one_vote=())"
    assert repr(ConvexFusion()) == "ConvexFusion()"


def test_formulas_can_be_worked_out_again() -> None:
    lists = {"keyword": rows(a=(1, 8.0), b=(2, 5.0), c=(3, 2.0)), "vector": rows(c=(1, 0.9), a=(2, 0.5))}
    scores = ScoreFusion({"keyword": 0.3, "vector": 0.7})
    for fusion in (RRF(k=7, weights={"keyword": 3}), ConvexFusion({"keyword": 3, "vector": 1}), scores):
        say = fusion.formulas(lists)
        given_to = fusion.contributions(lists)
        for channel, listed in lists.items():
            for row in listed:
                figures = say(channel, row).replace(" x ", " * ")
                assert eval(figures) == pytest.approx(given_to[row.memory_id][channel], rel=1e-3), figures


def test_a_lowest_score_is_counted_as_nothing_and_a_silent_vote_is_not_counted() -> None:
    assert silent({"vector": 0.2, "passage": 0.0}, (("vector", "passage"),)) == {"passage"}
    assert silent({"vector": 0.0, "passage": 0.0}, (("vector", "passage"),)) == {"passage"}
    assert silent({"vector": 0.0, "keyword": 0.5}, (("vector", "passage"),)) == set()


@pytest.mark.parametrize("huge", [10**400, 1e308])
def test_huge_numbers_are_refused(huge: float) -> None:
    for make in (lambda: RRF(k=huge), lambda: RRF(weights={"a": huge}), lambda: ConvexFusion({"a": huge, "b": huge})):
        with pytest.raises(InvalidValue, match="expected a number"):
            make()
