"""The keyword channels: bm25 over words as they stand, and over stems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from memlab import checks
from memlab.errors import InvalidValue
from memlab.retrieval.channels.base import ChannelHit, ChannelResult, Query, Scores, nothing
from memlab.retrieval.terms import JOINERS, Terms, terms
from memlab.store.reading import SEARCH_COLUMNS, ReadView


@dataclass(frozen=True)
class KeywordChannel:
    """FTS5 with bm25 (Robertson et al., 1994; k1 = 1.2, b = 0.75 in SQLite).

    Parameters
    ----------
    weights : mapping of str to float, optional
        bm25 weights of the columns content, category, project, tags and files; 1 by default.
    max_terms : int
        Most terms of a query that are looked for, 1 to 200.
    joiners : str
        Characters that hold two words of a query together, so that they are looked for as a phrase. By default all that
        identifiers are made with, as in ``bytes.hex`` and ``ADR-016``.

    Raises
    ------
    InvalidValue
        If a column is unknown, or a number outside its bounds.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    max_terms: int = 32
    joiners: str = JOINERS
    name: ClassVar[str] = "keyword"
    needs_vector: ClassVar[bool] = False
    looks_at_found: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Mapping):
            raise InvalidValue(f"weights: expected {{column: weight}}, found {self.weights!r:.80}")
        for column in self.weights:
            if column not in SEARCH_COLUMNS:
                raise InvalidValue(f"weights: {column!r} is no searched column; these are {', '.join(SEARCH_COLUMNS)}")
        weights = {column: checks.number(weight, f"weights: {column}") for column, weight in self.weights.items()}
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "max_terms", checks.whole(self.max_terms, "max_terms", least=1, most=200))
        if not isinstance(self.joiners, str):
            raise InvalidValue(f"joiners: expected characters, found {self.joiners!r}")

    def _wanted(self, query: Query) -> Terms:
        return terms(query.text, limit=self.max_terms, joiners=self.joiners)

    def search(self, query: Query, view: ReadView, depth: int, found: frozenset[int]) -> ChannelResult:
        """See :class:`Channel`."""
        wanted = self._wanted(query)
        if not wanted.used:
            return ChannelResult(self.name, note="the query has no letters or digits to look for", terms=wanted)
        rows = view.keyword(wanted.match, depth, self.weights)
        hits = tuple(ChannelHit(row.number, row.memory_id, rank, row.score) for rank, row in enumerate(rows, 1))
        return ChannelResult(self.name, hits, "" if hits else nothing(view, "has any of the terms"), terms=wanted)

    def score(self, query: Query, view: ReadView, numbers: Sequence[int]) -> Scores:
        """See :class:`Channel`."""
        wanted = self._wanted(query)
        if not wanted.used or not numbers:
            return {}
        rows = view.keyword(wanted.match, len(numbers), self.weights, among=numbers)
        return {row.number: (row.score, None) for row in rows}

    def locate(self, query: Query, view: ReadView, number: int, found: frozenset[int]) -> tuple[int, float] | str:
        """See :class:`Channel`."""
        wanted = self._wanted(query)
        if not wanted.used:
            return "the query has no letters or digits to look for"
        own = view.keyword(wanted.match, 1, self.weights, only=number)
        if not own:
            return "it has none of the terms " + ", ".join(wanted.used)
        # Everything at or above its score, in the same order as the search.
        depth = 64
        while True:
            rows = view.keyword(wanted.match, depth, self.weights)
            for rank, row in enumerate(rows, 1):
                if row.number == number:
                    return rank, row.score
            if len(rows) < depth:
                return "it is not among the memories that match"  # pragma: no cover - `own` says it is
            depth *= 4
