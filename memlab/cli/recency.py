"""`memlab eval --recency`: what the recency boost gains and costs on a dated set."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memlab.evaluation.recency_study import RecencyStudy


def study_of(
    folder: Path, profile_name: str, measure: str, *, split: str | None, cache: Path | None, encoder: Any, policy: Any
) -> RecencyStudy:
    """Build or open the store of a set, and measure.

    Parameters
    ----------
    folder : Path
        In BEIR's layout; or ``temporal``, the dated set that comes with memlab.
    profile_name : str
        See :data:`memlab.retrieval.profiles.PROFILES`.
    measure : str
    split, cache, encoder, policy
        See :func:`~memlab.evaluation.folders.read_folder` and :func:`~memlab.evaluation.cache.build_store`.
    """
    from memlab.evaluation.cache import build_store
    from memlab.evaluation.folders import read_folder
    from memlab.evaluation.recency import measure_recency
    from memlab.retrieval.profiles import profile
    from memlab.sample_data import sample_folder

    labelled = read_folder(sample_folder(str(folder)), split)
    with build_store(labelled, cache, encoder, policy) as store:
        return measure_recency(profile(profile_name, store), labelled.queries, labelled.qrels, measure=measure)


def print_study(study: RecencyStudy) -> None:
    """The table, a line a setting."""
    from memlab.cli.screen import console, plain

    out = console()
    for line in repr(study).splitlines():
        out.print(plain(line), no_wrap=True, crop=False, overflow="ignore", soft_wrap=True)


def study_json(study: RecencyStudy, profile_name: str) -> dict[str, Any]:
    """The same figures for programs; ``null`` where there is no interval."""
    best = study.best()
    return {
        "measure": study.measure,
        "profile": profile_name,
        "gaining": study.gaining,
        "kinds": {
            kind: {"queries": len(query_ids), "topics": study.topics_of(kind)}
            for kind, query_ids in study.kinds.items()
        },
        "settings": [
            {
                **_setting(one.ranker),
                "gain": one.gain,
                "cost": one.cost,
                "kinds": {
                    kind: {
                        name: None if math.isnan(value) else value
                        for name, value in vars(study.effects[place, kind]).items()
                    }
                    for kind in study.kinds
                },
            }
            for place, one in enumerate(study.settings)
        ],
        "best": {**_setting(best.ranker), "gain": best.gain, "cost": best.cost},
        "notes": list(study.notes),
        "interrupted": study.interrupted,
    }


def _setting(ranker: Any) -> dict[str, float | None]:
    if ranker is None:
        return {"half_life_days": None, "strength": 0.0}
    return {"half_life_days": ranker.half_life_days, "strength": ranker.strength}
