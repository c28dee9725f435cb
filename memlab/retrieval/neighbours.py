"""The memories whose vectors are nearest to a memory's own."""

from __future__ import annotations

import numpy as np

from memlab.store.reading import ReadView
from memlab.store.vectorfile import DOCUMENTS, number_list, pieces, select_vectors


def neighbours(view: ReadView, memory_id: str, count: int = 5) -> list[tuple[str, float]]:
    """The nearest other memories by cosine of the document vectors, nearest first; ties by id.

    Parameters
    ----------
    view : ReadView
        Its filters say who may be a neighbour.
    memory_id : str
    count : int

    Returns
    -------
    list of (str, float)
        Empty if the memory has no vector, or is not there any more.
    """
    number = view.number(memory_id)
    if number is None or view.encoder is None or count < 1:
        return []
    among, dimension = number_list(np.array([number])), view.snapshot.dimension
    rows = select_vectors(view.connection, DOCUMENTS, view.snapshot.encoder_id, dimension, among=among)
    own = next((piece.matrix[0] for piece in pieces(rows, dimension) if len(piece.owners)), None)
    if own is None:
        return []
    owners, _, cosines = view.documents.nearest(own, count + 1, view.documents.part(view.allowed()))
    ids = view.ids(owners.tolist())
    found = [
        (-cosine, ids[owner])
        for owner, cosine in zip(owners.tolist(), cosines.tolist(), strict=True)
        if owner != number and owner in ids
    ]
    return [(other, -negative) for negative, other in sorted(found)[:count]]
