"""Labelling: which memories a person is asked about, in which order, and the file that the judgments go to.

Candidates are pooled: the first of every channel's list, so that no channel decides alone what is judged (Spärck Jones
and van Rijsbergen, 1975; TREC does the same over systems). They are shuffled by a seed and shown without ranks or
scores, so that the present order does not suggest the answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memlab.checks import whole
from memlab.errors import InvalidValue, UnknownMemory
from memlab.evaluation.judgments import Qrels
from memlab.evaluation.labelfile import Judgment, LabelFile
from memlab.evaluation.queries import LabelledQuery, queries_of
from memlab.timestamps import format_time, utc_now

if TYPE_CHECKING:
    import os

    import pandas as pd

    from memlab.retrieval import HybridRetriever

YES_NO = ("not relevant", "relevant")
_NAMED = {1: YES_NO, 2: ("not relevant", "partly relevant", "fully relevant")}


class Progress(NamedTuple):
    """How far labelling is.

    Attributes
    ----------
    finished, queries : int
        Queries of which the whole pool is judged; all queries.
    judged, relevant : int
        Judgments of these queries; those of relevance 1 or more.
    """

    finished: int
    queries: int
    judged: int
    relevant: int


@dataclass(frozen=True)
class QueryState:
    """Where one query stands: ``judged`` and ``relevant`` count its judgments."""

    query: LabelledQuery
    judged: int
    relevant: int
    finished: bool


def grade_names(grades: int | Sequence[str]) -> tuple[str, ...]:
    """The names of the grades, from 0 up.

    Parameters
    ----------
    grades : int or sequence of str
        The highest grade, 1 to 9 (1 is yes or no), or a name for each grade from 0 up.

    Raises
    ------
    InvalidValue
        If there are fewer than two, more than ten, or a name is blank or there twice.
    """
    if isinstance(grades, str) or not isinstance(grades, Sequence):
        highest = whole(grades, "grades", least=1, most=9)
        return _NAMED.get(highest) or ("not relevant", *(f"grade {at}" for at in range(1, highest + 1)))
    names = tuple(grades)
    blank = any(not isinstance(name, str) or not name.strip() for name in names)
    if blank or not 2 <= len(names) <= 10 or len(set(names)) < len(names):
        raise InvalidValue(f"grades: expected the highest grade, or two to ten different names; found {grades!r}")
    return names


def pool(retriever: HybridRetriever, query: LabelledQuery, depth: int) -> tuple[str, ...]:
    """Ids of the first ``depth`` memories of every channel's list, together, ordered by id."""
    found = retriever.replace(depth=depth).gather(query.text, filters=query.filters)
    return tuple(sorted({hit.memory_id for result in found.results for hit in result.hits}))


def shuffled(memory_ids: Sequence[str], query_id: str, seed: int) -> tuple[str, ...]:
    """Ids in an order that says nothing: by a hash of seed, query and id, so that a new one moves no other."""

    def key(memory_id: str) -> bytes:
        return hashlib.sha256(json.dumps([seed, query_id, memory_id]).encode()).digest()

    return tuple(sorted(memory_ids, key=key))


class LabellingSession:
    """Goes through queries, takes judgments and writes each at once.

    A query is finished when its whole pool is judged, so a session that is opened on the same file goes on at the
    first query that is not. Judgments of other queries that the file holds stay in it.

    Parameters
    ----------
    retriever : HybridRetriever
        Whose channels make the pools.
    queries : mapping, iterable, DataFrame, str or Path
        As for :func:`memlab.evaluation.queries.queries_of`.
    path : str or Path, optional
        A ``.tsv`` becomes BEIR's form, with who judged when in two further columns; anything else TREC's. Without a
        path, judgments are kept here alone.
    grades : int or sequence of str
        See :func:`grade_names`.
    depth : int
        Of each channel's list.
    seed : int
        Of the order in which candidates are shown.
    by : str
        Who judges.
    clock : callable
        Gives the present as an aware datetime.

    Raises
    ------
    InvalidValue
        If a setting is none, or the file has a relevance above the highest grade.
    FormatError
        If the file cannot be read.
    """

    def __init__(
        self,
        retriever: HybridRetriever,
        queries: Any,
        path: str | os.PathLike[str] | None = None,
        *,
        grades: int | Sequence[str] = 1,
        depth: int = 10,
        seed: int = 0,
        by: str = "",
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        from memlab.retrieval import HybridRetriever

        if not isinstance(retriever, HybridRetriever):
            raise InvalidValue(f"retriever: expected a HybridRetriever, found {type(retriever).__name__}")
        if not isinstance(by, str):
            raise InvalidValue(f"by: expected text, found {type(by).__name__}")
        self.retriever = retriever
        self.grades = grade_names(grades)
        self.depth = whole(depth, "depth", least=1)
        self.seed = whole(seed, "seed", least=0)
        self.by = " ".join(by.split())
        self._clock = clock
        self._file = None if path is None else LabelFile(Path(path))
        given = queries_of(queries)
        self._judgments: dict[str, dict[str, Judgment]] = {}
        added: tuple[LabelledQuery, ...] = ()
        if self._file is not None:
            self._judgments, added = self._file.read()
        known = {query.query_id for query in given}
        self._added = [query for query in added if query.query_id not in known]
        self._queries = [*given, *self._added]
        self._pools: dict[str, tuple[str, ...]] = {}
        highest = len(self.grades) - 1
        for query in self._queries:
            for memory_id, judgment in self._judgments.get(query.query_id, {}).items():
                if judgment.relevance > highest:
                    raise InvalidValue(
                        f"{path}: {query.query_id} {memory_id} has the relevance {judgment.relevance}, and grades go "
                        f"up to {highest} here; give grades={judgment.relevance} or more"
                    )

    # -- what there is -----------------------------------------------------------------------------------------------

    @property
    def path(self) -> Path | None:
        """The file that judgments go to."""
        return None if self._file is None else self._file.path

    @property
    def queries(self) -> tuple[LabelledQuery, ...]:
        """All queries, those added here last."""
        return tuple(self._queries)

    def query(self, query_id: str) -> LabelledQuery:
        """One query; raises :class:`InvalidValue` if there is none with this id."""
        for query in self._queries:
            if query.query_id == query_id:
                return query
        raise InvalidValue(f"query_id: {query_id!r} is none of the {len(self._queries)} queries that are labelled here")

    def candidates(self, query_id: str) -> tuple[str, ...]:
        """Ids of the memories to judge for a query, shuffled: its pool, and what was judged for it already."""
        names = dict.fromkeys([*self._pool(query_id), *self._judgments.get(query_id, {})])
        return shuffled(self._live(names), query_id, self.seed)

    def _pool(self, query_id: str) -> tuple[str, ...]:
        query = self.query(query_id)
        if query_id not in self._pools:
            self._pools[query_id] = pool(self.retriever, query, self.depth)
        return self._pools[query_id]

    def _live(self, memory_ids: Iterable[str]) -> list[str]:
        """Those that are not in the trash by now."""
        return [one.memory_id for one in self.retriever.store.get_many(memory_ids) if one.trashed_at is None]

    def grade(self, query_id: str, memory_id: str) -> int | None:
        """The relevance that a memory was given; ``None`` if it was not judged."""
        judgment = self._judgments.get(query_id, {}).get(memory_id)
        return None if judgment is None else judgment.relevance

    def finished(self, query_id: str) -> bool:
        """Whether the whole pool of a query is judged; one for which nothing was found is."""
        judged = self._judgments.get(query_id, {})
        left = [memory_id for memory_id in self._pool(query_id) if memory_id not in judged]
        return not (left and self._live(left))

    def state(self, query_id: str) -> QueryState:
        """Where a query stands."""
        query = self.query(query_id)
        judged = self._judgments.get(query_id, {})
        relevant = sum(judgment.relevance > 0 for judgment in judged.values())
        # Without a judgment and without a look it cannot be finished: no need to search.
        done = bool(judged or query_id in self._pools) and self.finished(query_id)
        return QueryState(query, len(judged), relevant, done)

    def first_unfinished(self) -> str | None:
        """The id of the first query that is not finished."""
        return next((query.query_id for query in self._queries if not self.finished(query.query_id)), None)

    def after(self, query_id: str) -> str | None:
        """The next query that is not finished, from the beginning again after the last; ``None`` if all are."""
        names = [query.query_id for query in self._queries]
        at = names.index(self.query(query_id).query_id)
        return next((name for name in [*names[at + 1 :], *names[: at + 1]] if not self.finished(name)), None)

    @property
    def progress(self) -> Progress:
        """How far it is."""
        states = [self.state(query.query_id) for query in self._queries]
        return Progress(
            sum(state.finished for state in states),
            len(states),
            sum(state.judged for state in states),
            sum(state.relevant for state in states),
        )

    @property
    def qrels(self) -> Qrels:
        """The judgments so far, as evaluation takes them; empty before the first."""
        return Qrels(
            {
                query_id: {name: judgment.relevance for name, judgment in by_memory.items()}
                for query_id, by_memory in self._judgments.items()
                if by_memory
            }
        )

    @property
    def frame(self) -> pd.DataFrame:
        """One row a judgment.

        Returns
        -------
        DataFrame
            ``query_id, query, memory_id, relevance, grade, by, at``; ``query`` and ``grade`` are missing for
            judgments of queries that are not labelled here.
        """
        import pandas as pd

        texts = {query.query_id: query.text for query in self._queries}
        rows = [
            (
                query_id,
                texts.get(query_id),
                memory_id,
                judgment.relevance,
                self.grades[judgment.relevance] if query_id in texts else None,
                judgment.by,
                judgment.at or None,
            )
            for query_id, by_memory in self._judgments.items()
            for memory_id, judgment in by_memory.items()
        ]
        frame = pd.DataFrame(rows, columns=["query_id", "query", "memory_id", "relevance", "grade", "by", "at"])
        frame["at"] = pd.to_datetime(frame["at"], utc=True)
        return frame

    # -- judging -----------------------------------------------------------------------------------------------------

    def mark(self, query_id: str, memory_id: str, relevance: int | None) -> None:
        """Judge one memory for a query, or with ``None`` take its judgment back; written at once.

        Raises
        ------
        InvalidValue
            If there is no such query or grade, or somebody else has changed the file.
        UnknownMemory
            If no memory has this id.
        """
        self.query(query_id)
        if relevance is not None:
            relevance = whole(relevance, "relevance", least=0, most=len(self.grades) - 1)
            if memory_id not in self.retriever.store:
                raise UnknownMemory(f"no memory has the id {memory_id!r}; it cannot be judged")
        self._change(query_id, {memory_id: relevance})

    def finish(self, query_id: str) -> None:
        """Judge what is left of a query's pool "not relevant"."""
        left = [name for name in self.candidates(query_id) if self.grade(query_id, name) is None]
        self._change(query_id, dict.fromkeys(left, 0))

    def none_relevant(self, query_id: str) -> None:
        """Judge all candidates of a query "not relevant", whatever was said before."""
        self._change(query_id, dict.fromkeys(self.candidates(query_id), 0))

    def clear(self, query_id: str) -> None:
        """Take all judgments of a query back."""
        self.query(query_id)
        self._change(query_id, dict.fromkeys(self._judgments.get(query_id, {})))

    def add_query(self, text: str, query_id: str | None = None) -> str:
        """Add a query, and with a file to the ``.queries.jsonl`` beside it; its id.

        Raises
        ------
        InvalidValue
            If the text is blank, or the id is another query's.
        """
        names = {query.query_id for query in self._queries}
        if query_id is None:
            query_id = next(name for at in range(1, len(names) + 2) if (name := f"added-{at}") not in names)
        elif query_id in names:
            raise InvalidValue(f"query_id: {query_id!r} is another query's; give another id")
        (query,) = queries_of([{"query_id": query_id, "text": text}])
        query = replace(query, text=" ".join(query.text.split()))
        if self._file is not None:
            self._file.write_queries([*self._added, query])
        self._added.append(query)
        self._queries.append(query)
        return query.query_id

    def _change(self, query_id: str, marks: Mapping[str, int | None]) -> None:
        now = format_time(self._clock())
        changed = dict(self._judgments.get(query_id, {}))
        for memory_id, relevance in marks.items():
            if relevance is None:
                changed.pop(memory_id, None)
            else:
                changed[memory_id] = Judgment(relevance, self.by, now)
        judgments = {**self._judgments, query_id: changed}
        if self._file is not None:
            self._file.write(judgments)  # before it is taken over: what cannot be written did not happen
        self._judgments = judgments


__all__ = ["YES_NO", "LabellingSession", "Progress", "QueryState", "grade_names", "pool", "shuffled"]
