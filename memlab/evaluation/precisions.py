"""Vectors of fewer bits: what rounding the vectors of a store to half precision or to bytes does to what is found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from memlab.encoders.base import FloatMatrix
from memlab.errors import InvalidValue
from memlab.evaluation.compare import compare
from memlab.evaluation.comparison import Comparison
from memlab.evaluation.gathering import DEFAULT_LIMIT
from memlab.evaluation.measures import DEFAULT_MEASURES, needed_depth, parse_measures
from memlab.evaluation.significance import bootstrap_interval
from memlab.progress import Show
from memlab.retrieval.channels import ChannelHit, ChannelResult, Query
from memlab.retrieval.fusion import RRF
from memlab.retrieval.retriever import HybridRetriever
from memlab.store import MemoryStore
from memlab.store.index import Block, Snapshot, nearest
from memlab.store.reading import ReadView

if TYPE_CHECKING:
    import pandas as pd

FULL = "float32"
PRECISIONS = (FULL, "float16", "int8")
TOP = 10
"""How many of float32's first memories are looked for again."""


def rounded(vectors: FloatMatrix, precision: str) -> FloatMatrix:
    """Vectors as they come back from storage of another precision.

    ``float16`` rounds each component to the nearest half-precision number (IEEE 754 binary16). ``int8`` keeps one scale
    a vector, ``s = max(abs(v)) / 127``, and whole numbers from -127 to 127, ``q = round(v / s)`` (halves to even),
    which stand for ``s * q``: symmetric quantization, no offset. Lengths are not made 1 again.

    Parameters
    ----------
    vectors : ndarray of float32, shape (n, dimension)
    precision : {"float32", "float16", "int8"}

    Returns
    -------
    ndarray of float32, shape (n, dimension)

    Raises
    ------
    InvalidValue
        If the precision is another one.
    """
    check_precision(precision)
    if precision == "float16":
        return vectors.astype(np.float16).astype(np.float32)
    if precision == "int8":
        scale = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0) / np.float32(127)
        scale[scale == 0] = 1.0
        whole = np.rint(vectors / scale).clip(-127, 127).astype(np.int8)
        return np.asarray(whole * scale, np.float32)
    return vectors


def bytes_a_vector(dimension: int, precision: str) -> int:
    """Bytes that a vector takes: 4 a component, 2, or 1 and 4 more for the scale; raises :class:`InvalidValue`."""
    check_precision(precision)
    return {"float32": 4 * dimension, "float16": 2 * dimension, "int8": dimension + 4}[precision]


def check_precision(precision: object) -> str:
    """The precision, if it is one; raises :class:`InvalidValue` otherwise."""
    if precision not in PRECISIONS:
        raise InvalidValue(f"precisions: expected names of {', '.join(PRECISIONS)}; found {precision!r}")
    return str(precision)


@dataclass(frozen=True)
class RoundedVectorChannel:
    """The vector channel over document vectors that were rounded; the query's vector stays as it is.

    Every rounded vector is compared, in float64. Ties break by memory id.

    Parameters
    ----------
    precision : {"float32", "float16", "int8"}
        See :func:`rounded`. With ``float32`` it answers as :class:`memlab.VectorChannel` does.
    """

    precision: str = FULL
    name: ClassVar[str] = "vector"
    needs_vector: ClassVar[bool] = True
    looks_at_found: ClassVar[bool] = False
    _last: list[tuple[Snapshot, Block]] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_precision(self.precision)

    def search(self, query: Query, view: ReadView, depth: int, found: frozenset[int]) -> ChannelResult:
        """See :class:`~memlab.retrieval.channels.base.Channel`."""
        if query.vector is None:
            return ChannelResult(self.name, note=query.note, ran=False)
        hits = tuple(
            ChannelHit(number, memory_id, rank, cosine)
            for rank, (memory_id, number, cosine) in enumerate(self._best(query.vector, view, depth), 1)
        )
        return ChannelResult(self.name, hits, "" if hits else "no memory has a vector to compare")

    def score(self, query: Query, view: ReadView, numbers: Sequence[int]) -> dict[int, tuple[float, int | None]]:
        """See :class:`~memlab.retrieval.channels.base.Channel`."""
        if query.vector is None or not numbers:
            return {}
        block = self._block(view)
        rows = np.flatnonzero(block.alive & np.isin(block.owners, np.array(numbers, np.int64)))
        cosines = block.exact(query.vector, rows).tolist()
        return {number: (cosine, None) for number, cosine in zip(block.owners[rows].tolist(), cosines, strict=True)}

    def locate(self, query: Query, view: ReadView, number: int, found: frozenset[int]) -> tuple[int, float] | str:
        """See :class:`~memlab.retrieval.channels.base.Channel`."""
        if query.vector is None:
            return query.note
        every = self._best(query.vector, view, len(view.snapshot.documents.owners))
        for rank, (_, own, cosine) in enumerate(every, 1):
            if own == number:
                return rank, cosine
        return "it has no vector that may take part"

    def _best(self, vector: FloatMatrix, view: ReadView, depth: int) -> list[tuple[str, int, float]]:
        """The nearest memories: id, number and cosine, by cosine and then id."""
        block = self._block(view)
        numbers, _, cosines = nearest(block, vector, depth, block.rows(view.allowed()))
        ids = view.ids(numbers.tolist())
        rows = [
            (ids[number], number, cosine)
            for number, cosine in zip(numbers.tolist(), cosines.tolist(), strict=True)
            if number in ids
        ]
        return sorted(rows, key=lambda row: (-row[2], row[0]))[:depth]

    def _block(self, view: ReadView) -> Block:
        """The rounded vectors of a view's snapshot, made once for all queries."""
        if not self._last or self._last[0][0] is not view.snapshot:
            owners, labels, matrix = view.documents.matrix()
            block = Block.build(owners, labels, rounded(matrix, self.precision))
            self._last[:] = [(view.snapshot, block)]
        return self._last[0][1]


@dataclass(frozen=True, repr=False)
class PrecisionComparison:
    """Precisions of a store's vectors side by side; :func:`compare_precisions` makes it.

    Attributes
    ----------
    comparison : Comparison
        The precisions as systems, float32 the baseline.
    vector_bytes : mapping of str to int
        By precision: size of the document vectors.
    memories : int
        Document vectors.
    top : int
        How many of float32's first memories are looked for again.
    """

    comparison: Comparison
    vector_bytes: Mapping[str, int]
    memories: int
    top: int = TOP

    def kept_shares(self, precision: str) -> npt.NDArray[np.float64]:
        """Share of float32's first memories that are among the first of ``precision`` too, for each query in order.

        Returns
        -------
        ndarray of float64, shape (n,)
            Queries that float32 finds nothing for are left out.
        """
        if precision not in self.comparison.systems:
            raise InvalidValue(f"expected one of {', '.join(self.comparison.systems)}; found {precision!r}")
        full, other = (self.comparison.evaluations[name].run for name in (FULL, precision))
        shares = []
        for query in self.comparison.queries:
            first = set(full.top(query.query_id, self.top))
            if first:
                shares.append(len(first & set(other.top(query.query_id, self.top))) / len(first))
        return np.array(shares)

    def kept(self, precision: str) -> float:
        """The mean of :meth:`kept_shares`; NaN if no query finds anything."""
        shares = self.kept_shares(precision)
        return float(shares.mean()) if len(shares) else float("nan")

    def kept_interval(self, precision: str) -> tuple[float, float]:
        """The 95 % interval of :meth:`kept`."""
        shares = self.kept_shares(precision)
        return bootstrap_interval(shares) if len(shares) else (float("nan"), float("nan"))

    @property
    def table(self) -> pd.DataFrame:
        """One row a precision.

        Returns
        -------
        DataFrame
            ``precision``; the mean of every measure under its name, its 95 % interval and the p-value against float32
            after Holm under the name with `` low``, `` high`` and `` p`` after it; ``vector_bytes``; ``kept, kept_low,
            kept_high``.
        """
        import pandas as pd

        rows = [
            {
                "precision": name,
                **measure_columns(self.comparison, name),
                "vector_bytes": self.vector_bytes[name],
                "kept": self.kept(name),
                **dict(zip(("kept_low", "kept_high"), self.kept_interval(name), strict=True)),
            }
            for name in self.comparison.systems
        ]
        return pd.DataFrame(rows)

    def plot(self, measure: Any = None) -> Any:
        """The differences from float32 with their intervals, as a matplotlib figure."""
        return self.comparison.plot(measure)

    def __repr__(self) -> str:
        from memlab.evaluation.study_tables import precisions_figures

        return precisions_figures(self).text()

    def _repr_html_(self) -> str:
        from memlab.evaluation.study_tables import precisions_figures

        return precisions_figures(self).html()


def measure_columns(comparison: Comparison, name: str) -> dict[str, float]:
    """Mean, interval and corrected p-value of every measure of one system, as columns of a wide table."""
    columns: dict[str, float] = {}
    for measure in comparison.measures:
        evaluation, against = comparison.evaluations[name], comparison.differences.get((name, measure))
        low, high = evaluation.intervals[measure]
        columns |= {measure: evaluation.mean(measure), f"{measure} low": low, f"{measure} high": high}
        columns[f"{measure} p"] = float("nan") if against is None else against.p_holm
    return columns


def compare_precisions(
    store: MemoryStore,
    queries: Any,
    qrels: Any,
    precisions: Iterable[str] = PRECISIONS,
    *,
    measures: str | Iterable[Any] = DEFAULT_MEASURES,
    now: datetime | str | None = None,
    progress: Show = None,
) -> PrecisionComparison:
    """Compare what the document vectors find when they are kept in fewer bits.

    The vectors are rounded in memory, see :func:`rounded`; the store stays as it is. Every scan is exact: what differs
    is due to the rounding alone. Passages do not take part.

    Parameters
    ----------
    store : MemoryStore
    queries, qrels, measures
        See :func:`~memlab.evaluation.evaluate.evaluate`.
    precisions : iterable of {"float32", "float16", "int8"}
        float32 always takes part: the others are compared with it.
    now, progress
        See :func:`~memlab.evaluation.evaluate.evaluate`.

    Returns
    -------
    PrecisionComparison

    Raises
    ------
    InvalidValue
        If a precision is another one, or there is none beside float32.
    EncoderUnavailable
        If the store has no vectors, or its encoder cannot be had.
    """
    given = [precisions] if isinstance(precisions, str) else precisions
    names = list(dict.fromkeys([FULL, *map(check_precision, given)]))
    if len(names) < 2:
        raise InvalidValue(f"precisions: expected one or more of {', '.join(PRECISIONS[1:])}, found none")
    chosen = parse_measures(measures)
    depth = max(TOP, needed_depth(chosen, DEFAULT_LIMIT))
    systems = {
        name: HybridRetriever(store, channels=(RoundedVectorChannel(name),), fusion=RRF(), recency=None, depth=depth)
        for name in names
    }
    comparison = compare(systems, queries, qrels, chosen, limit=depth, now=now, progress=progress)
    with store.view() as view:
        vectors, dimension = len(view.documents), view.snapshot.dimension
    sizes = {name: vectors * bytes_a_vector(dimension, name) for name in names}
    return PrecisionComparison(comparison, sizes, vectors)
