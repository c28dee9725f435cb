"""Where a recall lands in a picture: the query, the memories that its channels found, and what passages add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memlab.errors import EncoderError
from memlab.projection.projecting import Projection
from memlab.projection.space import VectorSpace
from memlab.retrieval import Recall
from memlab.store import StoredPassage
from memlab.store.blocks import FloatArray

if TYPE_CHECKING:
    import pandas as pd

FINAL = "hits"
"""The name under which the final order stands among the channels' lists."""
_MOST = 10  # of a channel's list


@dataclass(frozen=True)
class Landing:
    """A recall in a picture.

    Attributes
    ----------
    query : str
    place : tuple of float or None
        Where the query lies; ``None`` without a vector.
    note : str
        Why it has no place, or which hits have none.
    frame : DataFrame
        ``list, memory_id, rank, x, y``: ``list`` is ``hits`` for the final order, or a channel. Without those that have
        no place in the picture.
    """

    query: str
    place: tuple[float, float] | None
    note: str
    frame: pd.DataFrame


def land(projection: Projection, recall: Recall, *, space: VectorSpace | None = None, most: int = _MOST) -> Landing:
    """Find where a recall's query and the first ``most`` of each of its lists lie."""
    import pandas as pd

    trace = recall.trace
    lists = {FINAL: [(hit.rank, hit.memory_id) for hit in recall.hits]}
    for result in trace.channels:
        lists[result.channel] = [(hit.rank, hit.memory_id) for hit in result.hits[:most] if hit.rank is not None]
    rows = [(name, memory_id, rank) for name, found in lists.items() for rank, memory_id in found]
    frame = pd.DataFrame(rows, columns=["list", "memory_id", "rank"])
    frame[["x", "y"]] = projection.of(frame["memory_id"].tolist())
    without = int(frame.loc[frame["list"] == FINAL, "x"].isna().sum())
    note = f"{without} of the hits have no vector, and so no place here." if without else ""
    place = None
    try:
        vector, made_by = projection.store.encode_query_stamped(trace.query)
        own = projection.store.encoder_stamp
        if own is not None and own.compatible(made_by) and len(projection):
            x, y = projection.place(vector, space)[0].tolist()
            place = (x, y)
    except EncoderError as error:
        note = f"The query has no place here: {error}"
    return Landing(trace.query, place, note, frame.dropna(subset=["x", "y"]).reset_index(drop=True))


def passages(
    projection: Projection, memory_id: str, *, space: VectorSpace | None = None
) -> tuple[list[StoredPassage], FloatArray]:
    """The passages of a memory and where their vectors lie, float64, shape (n, 2).

    A memory that fits the encoder is its own passage and lies where it does.

    Raises
    ------
    UnknownMemory
        If there is none with this id.
    """
    found = projection.store.passages(memory_id)
    if len(found) < 2:
        return found, projection.of([memory_id])
    with projection.store.view() as view:
        number = view.number(memory_id)
        owners, labels, matrix = view.passages.matrix()
    rows = np.flatnonzero(owners == number)
    rows = rows[np.argsort(labels[rows])]
    known = {int(label): at for at, label in zip(rows.tolist(), labels[rows].tolist(), strict=True)}
    found = [passage for passage in found if passage.position in known]
    vectors = matrix[[known[passage.position] for passage in found]]
    return found, projection.place(vectors, space) if len(vectors) else np.empty((0, 2))
