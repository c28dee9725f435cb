"""Labelled queries: the texts that are searched for, each with the moment and the filters that belong to it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from memlab.errors import FormatError, InvalidValue
from memlab.evaluation.wording import check_columns, checked_id, some
from memlab.store.filters import Filters
from memlab.timestamps import parse_day_or_time

_EXPECTED = (
    "{query_id: text}, a list of LabelledQuery, SampleQuery or dicts with query_id (or _id) and text, a DataFrame with "
    "these columns, or the path of a queries.jsonl"
)


@dataclass(frozen=True)
class LabelledQuery:
    """A query with an id that judgments refer to.

    Attributes
    ----------
    query_id, text : str
    now : datetime or None
        The moment as of which recency is measured for this query; the evaluation's own where it is ``None``.
    filters : Filters
        Conditions on the memories that take part.
    tests : str
        What kind of query it is, for figures by kind; empty where nobody said.
    topic : str
        What it shares with the queries that it is not independent of; empty where nobody said.
    """

    query_id: str
    text: str
    now: datetime | None = None
    filters: Filters = field(default_factory=Filters)
    tests: str = ""
    topic: str = ""


def queries_of(source: Any) -> tuple[LabelledQuery, ...]:
    """Labelled queries from whatever holds them.

    Parameters
    ----------
    source : mapping, iterable, DataFrame, str or Path
        ``{query_id: text}``; :class:`LabelledQuery` or :class:`memlab.sample_data.SampleQuery` objects, or dicts with
        ``query_id`` (or ``_id``) and ``text`` and optionally ``now`` (or ``date``), ``filters``, ``tests`` and
        ``topic``; a frame with these columns; a BEIR ``queries.jsonl``.

    Returns
    -------
    tuple of LabelledQuery

    Raises
    ------
    InvalidValue
        If it is something else or empty, a query id occurs twice, a text is blank, a moment or a filter is unknown.
    FormatError
        If a line of a file is broken; the message names it.
    """
    if isinstance(source, (str, os.PathLike)):
        return _distinct(_of_file(Path(source)), str(source))
    if isinstance(source, Mapping):
        rows = [(f"queries[{key!r}]", {"query_id": key, "text": text}) for key, text in source.items()]
        return _distinct(((where, _query(row, where)) for where, row in rows), "queries")
    if hasattr(source, "columns") and hasattr(source, "to_dict"):
        names = [str(name) for name in source.columns]
        check_columns(names, dict.fromkeys(names), "queries")
        records = [
            {str(name): value for name, value in row.items() if not _missing(value)}
            for row in source.to_dict("records")
        ]
        return _distinct(((f"row {i}", _query(row, f"row {i}")) for i, row in enumerate(records)), "queries")
    if isinstance(source, Iterable) and not isinstance(source, bytes):
        return _distinct(((f"query {i}", _any(item, f"query {i}")) for i, item in enumerate(source)), "queries")
    raise InvalidValue(f"queries: expected {_EXPECTED}; found {type(source).__name__}")


def moment(value: object, where: str) -> datetime:
    """A time with a zone, or a day alone: its beginning in UTC; raises :class:`InvalidValue`."""
    return parse_day_or_time(value.strip() if isinstance(value, str) else value, where)  # type: ignore[arg-type]


def _missing(value: object) -> bool:
    return value is None or (not isinstance(value, (str, Mapping, Filters)) and bool(value != value))


def _any(item: object, where: str) -> LabelledQuery:
    if isinstance(item, LabelledQuery):
        return item
    if isinstance(item, Mapping):
        return _query(item, where)
    if hasattr(item, "query_id") and hasattr(item, "text"):
        row = {name: getattr(item, name, None) for name in ("query_id", "text", "filters", "now", "tests", "topic")}
        return _query(row, where)
    raise InvalidValue(f"{where}: expected {_EXPECTED}; found {type(item).__name__}")


def _query(row: Mapping[str, Any], where: str) -> LabelledQuery:
    """One query out of a mapping; a moment and filters may lie in ``metadata`` too, as the sample has them."""
    name = "query_id" if "query_id" in row else "_id"
    if name not in row or "text" not in row:
        raise InvalidValue(f"{where}: expected query_id (or _id) and text, found {', '.join(map(repr, row)) or 'none'}")
    query_id = checked_id(row[name], name, where)
    text = row["text"]
    if not isinstance(text, str) or not text.strip():
        raise InvalidValue(f"{where}: query {query_id}: expected a text that is not blank, found {text!r}")
    metadata = row.get("metadata")
    more = metadata if isinstance(metadata, Mapping) else {}
    now = next((value for key in ("now", "date") if not _missing(value := row.get(key, more.get(key)))), None)
    wanted = next((value for key in ("filters", "filter") if (value := row.get(key, more.get(key)))), None)
    if wanted is not None and not isinstance(wanted, (Mapping, Filters)):
        raise InvalidValue(f"{where}: query {query_id}: filters: expected a mapping, found {wanted!r}")
    try:
        filters = Filters.of(wanted)
    except InvalidValue as error:
        raise InvalidValue(f"{where}: query {query_id}: {error}") from None
    words = {}
    for key in ("tests", "topic"):
        said = row.get(key, more.get(key))
        words[key] = "" if _missing(said) else said
        if not isinstance(words[key], str):
            raise InvalidValue(f"{where}: query {query_id}: {key}: expected text, found {said!r}")
    asked = None if now is None else moment(now, f"{where}: query {query_id}: now")
    return LabelledQuery(query_id, text, asked, filters, **words)


def _of_file(path: Path) -> Iterator[tuple[str, LabelledQuery]]:
    for where, row in json_lines(path, "queries"):
        try:
            yield where, _query(row, where)
        except InvalidValue as error:
            raise FormatError(str(error)) from None


def json_lines(path: Path, what: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a JSON Lines file, each with its place; blank lines are passed over.

    Raises
    ------
    FormatError
        If the file cannot be read, or a line is no JSON object.
    """
    number = 0
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise FormatError(f"{path}, line {number}: expected a JSON object, found {line.strip()[:60]!r}")
                yield f"{path}, line {number}", row
    except OSError as error:
        raise FormatError(f"{path}: the {what} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}, after line {number}: expected UTF-8 text: {error}") from error
    except json.JSONDecodeError as error:
        raise FormatError(f"{path}, line {number}: expected a JSON object: {error}") from error


def _distinct(rows: Iterable[tuple[str, LabelledQuery]], source: str) -> tuple[LabelledQuery, ...]:
    seen: dict[str, str] = {}
    queries: list[LabelledQuery] = []
    twice: list[str] = []
    for where, query in rows:
        if query.query_id in seen:
            twice.append(f"{query.query_id}: {seen[query.query_id]} and {where}")
        seen.setdefault(query.query_id, where)
        queries.append(query)
    if twice:
        raise InvalidValue(f"{source}: a query id may occur once, found twice: {some(twice)}")
    if not queries:
        raise InvalidValue(f"{source}: expected queries, found none; queries are {_EXPECTED}")
    return tuple(queries)
