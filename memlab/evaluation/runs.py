"""Runs: ranked memories for many queries, in TREC's sense of the word."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memlab.errors import FormatError, InvalidValue
from memlab.evaluation.judgments import check_no_space
from memlab.evaluation.measures import Ranking
from memlab.evaluation.wording import check_columns, checked_id, counted

if TYPE_CHECKING:
    import pandas as pd

_EXPECTED = (
    "a Run, {query_id: {memory_id: score}}, a DataFrame with query_id, memory_id and score, or the path of a TREC run "
    "file (six columns: query, Q0, document, rank, score, name)"
)
Row = tuple[str, object, object, object]
"""Where it stands, query id, memory id, score."""


@dataclass(frozen=True)
class Run:
    """Ranked memories for many queries; make one with :meth:`of`.

    Attributes
    ----------
    rankings : mapping of str to (sequence of (str, float))
        Query id to memory ids with scores, best first.
    name : str
    notes : tuple of str
        What was odd in the source, counted; ties above all.
    """

    rankings: Mapping[str, Ranking]
    name: str = ""
    notes: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, source: Any, name: str | None = None) -> Run:
        """A run from whatever holds one. Ties in score are broken by memory id, and counted in a note.

        Parameters
        ----------
        source : Run, mapping, DataFrame, str or Path
            ``{query_id: {memory_id: score}}``; a frame with ``query_id, memory_id, score``; a TREC run file. Order and
            ranks given beside the scores do not count, as in trec_eval.
        name : str, optional
            What to call it; a file's own name by default.

        Raises
        ------
        InvalidValue
            If it is something else or empty, a score is NaN or infinite, or a memory occurs twice in a query.
        FormatError
            If a file cannot be read; the message names the line.
        """
        if isinstance(source, Run):
            return source if name is None else cls(source.rankings, name, source.notes)
        if isinstance(source, (str, os.PathLike)):
            path = Path(source)
            return _checked(_file_rows(path), str(path), path.stem if name is None else name)
        if isinstance(source, Mapping):
            return _checked(_mapping_rows(source), "run", name or "")
        if hasattr(source, "columns") and hasattr(source, "itertuples"):
            return _checked(_frame_rows(source), "run", name or "")
        raise InvalidValue(f"run: expected {_EXPECTED}; found {type(source).__name__}")

    @property
    def frame(self) -> pd.DataFrame:
        """One row a hit: ``query_id`` (str), ``memory_id`` (str), ``rank`` (int, from 1), ``score`` (float)."""
        import pandas as pd

        rows = [
            (query_id, memory_id, rank, score)
            for query_id, ranking in self.rankings.items()
            for rank, (memory_id, score) in enumerate(ranking, 1)
        ]
        return pd.DataFrame(rows, columns=["query_id", "memory_id", "rank", "score"])

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The queries, those without hits too."""
        return tuple(self.rankings)

    def top(self, query_id: str, limit: int = 5) -> tuple[str, ...]:
        """The first memories of a query; none if the run has nothing for it."""
        return tuple(memory_id for memory_id, _ in self.rankings.get(query_id, ())[:limit])

    def write_trec(self, path: str | os.PathLike[str]) -> Path:
        """Write a TREC run file. Raises :class:`InvalidValue` if an id or the name has white space.

        The scores written are those of the run where they order it as it is ordered; a query in which memories tie
        gets scores by rank instead, because trec_eval would break the ties in another order.
        """
        name = self.name or "memlab"
        check_no_space([name, *self.rankings, *(memory_id for rows in self.rankings.values() for memory_id, _ in rows)])
        lines = []
        for query_id, ranking in self.rankings.items():
            singles = np.array([score for _, score in ranking], np.float32)  # what trec_eval reads
            strict = bool((singles[:-1] > singles[1:]).all())
            for rank, (memory_id, score) in enumerate(ranking, 1):
                lines.append(f"{query_id} Q0 {memory_id} {rank} {float(score) if strict else float(-rank)!r} {name}\n")
        target = Path(path)
        target.write_text("".join(lines), encoding="utf-8")
        return target

    def __len__(self) -> int:
        """Queries, not hits."""
        return len(self.rankings)

    def __repr__(self) -> str:
        hits = sum(map(len, self.rankings.values()))
        notes = "".join(f"\nnote: {note}" for note in self.notes)
        return f"<Run {self.name or 'without a name'}: {hits:,} hits for {len(self):,} queries>{notes}"


def _checked(rows: Iterable[Row], source: str, name: str) -> Run:
    scores: dict[str, dict[str, float]] = {}
    bad: list[str] = []
    twice: list[str] = []
    for where, query, memory, value in rows:
        query_id = checked_id(query, "query_id", where)
        of_query = scores.setdefault(query_id, {})
        if memory is _NOTHING:
            continue
        memory_id = checked_id(memory, "memory_id", where)
        score = _score(value)
        if not math.isfinite(score):
            bad.append(f"{where}: {query_id} {memory_id} {value!r}")
        if memory_id in of_query:
            twice.append(f"{where}: {query_id} {memory_id}")
        of_query[memory_id] = score
    if bad:
        raise InvalidValue(f"{source}: expected finite scores, found {counted(bad, 'other one', 'others')}")
    if twice:
        raise InvalidValue(f"{source}: a memory may occur once a query, found again: {counted(twice, 'row')}")
    if not scores:
        raise InvalidValue(f"{source}: expected ranked memories, found none; a run is {_EXPECTED}")
    rankings = {
        query_id: tuple(sorted(of_query.items(), key=lambda item: (-item[1], item[0])))
        for query_id, of_query in scores.items()
    }
    tied = [query_id for query_id, ranking in rankings.items() if len({score for _, score in ranking}) < len(ranking)]
    notes = (f"memories tie in {counted(tied, 'query', 'queries')}; ties were broken by memory id",) if tied else ()
    return Run(rankings, name, notes)


_NOTHING = object()


def _score(value: object) -> float:
    try:
        return math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan


def _mapping_rows(source: Mapping[Any, Any]) -> Iterator[Row]:
    for query, of_query in source.items():
        where = f"run[{query!r}]"
        if not isinstance(of_query, Mapping):
            raise InvalidValue(f"{where}: expected {{memory_id: score}}, found {type(of_query).__name__}")
        yield where, query, _NOTHING, 0.0
        for memory, score in of_query.items():
            yield where, query, memory, score


def _frame_rows(frame: Any) -> Iterator[Row]:
    names = ("query_id", "memory_id", "score")
    have = [str(name) for name in frame.columns]
    if missing := [name for name in names if name not in have]:
        raise InvalidValue(
            f"run: expected the columns {', '.join(names)}; found no {' or '.join(missing)} among "
            f"{', '.join(map(repr, have))}"
        )
    check_columns(have, names, "run")
    for place, row in enumerate(zip(*(frame[name] for name in names), strict=True)):
        yield (f"row {place}", *row)


def _file_rows(path: Path) -> Iterator[Row]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                parts = line.split()
                if parts and len(parts) != 6:
                    raise FormatError(
                        f"{path}, line {number}: expected six columns (query, Q0, document, rank, score, name), "
                        f"found {line.strip()[:80]!r}"
                    )
                if parts:
                    yield f"line {number}", parts[0], parts[2], parts[4]
    except OSError as error:
        raise FormatError(f"{path}: the run cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: expected UTF-8 text: {error}") from error
