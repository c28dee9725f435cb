"""The sample that comes with memlab: developer memories, labelled queries, and the fixed moment they speak of."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.errors import FormatError, InvalidValue
from memlab.store import AUTO, MemoryStore
from memlab.timestamps import parse_time

if TYPE_CHECKING:
    from memlab.progress import Show
    from memlab.store.encoding import EncoderChoice

NAMED_SETS = ("temporal",)
"""Sets beside the sample that come with memlab, by the names of their folders."""
SAMPLE_NOW = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)
_CARRIED = ("project", "category", "subcategory", "tags", "importance", "created_at", "source", "related_files")


@dataclass(frozen=True)
class SampleQuery:
    """A labelled query.

    Attributes
    ----------
    query_id, text : str
    tests : str
        What it tests: identifier, paraphrase, buried fact, latest decision, multilingual or filter; in
        ``data/temporal``: latest decision, old fact or either.
    filters : dict
        Arguments for :class:`memlab.Filters`; empty unless the query needs them.
    judgments : dict of str to int
        Memory id to relevance: 2 answers the query, 1 helps, 0 looks right and is not.
    note : str
        Why it is judged so.
    now : datetime or None
        The moment the query is asked at, in UTC; ``None`` where it is that of the whole sample.
    topic : str
        That of the memory which answers it best, where the memories have one: queries on one topic are not independent.
    """

    query_id: str
    text: str
    tests: str
    filters: dict[str, Any] = field(default_factory=dict)
    judgments: dict[str, int] = field(default_factory=dict)
    note: str = ""
    now: datetime | None = None
    topic: str = ""

    @property
    def relevant(self) -> set[str]:
        """Ids of the memories that answer or help."""
        return {memory_id for memory_id, relevance in self.judgments.items() if relevance > 0}


@dataclass(frozen=True)
class Sample:
    """Memories, queries and the moment that ages are counted from.

    Attributes
    ----------
    folder : Path
        Where the files lie (BEIR layout).
    records : tuple of dict
        Arguments for :meth:`MemoryStore.remember`, ``memory_id`` included.
    queries : tuple of SampleQuery
    now : datetime
        2026-09-01 12:00 UTC.
    """

    folder: Path
    records: tuple[dict[str, Any], ...]
    queries: tuple[SampleQuery, ...]
    now: datetime = SAMPLE_NOW

    def build(
        self,
        path: str | os.PathLike[str],
        encoder: EncoderChoice = AUTO,
        *,
        progress: Show = None,
        **options: Any,
    ) -> MemoryStore:
        """Make a store of the sample at ``path``, or go on with one that was begun.

        Parameters
        ----------
        path : str or Path
        encoder : Encoder, None or AUTO
            all-MiniLM-L6-v2 by default; ``None`` for keyword recall alone.
        progress : bool or callable, optional
        options
            More arguments for :class:`MemoryStore`.
        """
        store = MemoryStore(path, encoder, **options)
        try:
            store.remember_many(self.records, progress=progress)
        except BaseException:
            store.close()
            raise
        return store

    def __repr__(self) -> str:
        counts = f"{len(self.records)} memories, {len(self.queries)} labelled queries"
        return f"<Sample: {counts}, now = {self.now:%Y-%m-%d %H:%M} UTC>"


def sample(folder: str | os.PathLike[str] | None = None) -> Sample:
    """The sample that comes with memlab, another set that does, or one of your own.

    Parameters
    ----------
    folder : str or Path, optional
        ``"temporal"``, the dated set of ``data/temporal``; or a folder of the same layout: ``corpus.jsonl``,
        ``queries.jsonl``, ``qrels/test.tsv``.

    Raises
    ------
    FormatError
        If a file is missing or a line cannot be read.
    """
    place = sample_folder(folder)
    rows = list(_lines(place / "corpus.jsonl"))
    records = tuple(_record(row) for row in rows)
    topics = {row["_id"]: topic for row in rows if isinstance(topic := _metadata(row).get("topic"), str)}
    judgments: dict[str, dict[str, int]] = {}
    qrels = place / "qrels" / "test.tsv"
    try:
        with qrels.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                judgments.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise FormatError(f"{qrels}: expected the columns query-id, corpus-id and score; found {error!r}") from error
    queries = tuple(
        SampleQuery(
            query_id=row["_id"],
            text=row["text"],
            tests=_metadata(row).get("tests", ""),
            filters=_metadata(row).get("filter", {}),
            judgments=judgments.get(row["_id"], {}),
            note=_metadata(row).get("note", ""),
            now=_now(row, place / "queries.jsonl"),
            topic=topic_of(judgments.get(row["_id"], {}), topics),
        )
        for row in _lines(place / "queries.jsonl")
    )
    return Sample(place, records, queries)


def sample_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Where a set lies: the sample by default; a folder that holds one; or ``"temporal"``, which comes with memlab.

    Raises
    ------
    FormatError
        If the set that is meant comes with memlab and is missing.
    """
    if folder is None:
        return _folder()
    place = Path(folder).expanduser()
    if folder in NAMED_SETS and not (place / "corpus.jsonl").is_file():
        return _folder() / str(folder)
    return place


def topic_of(judgments: Mapping[str, int], topics: Mapping[str, str]) -> str:
    """The topic of the best relevant memory that has one, of equally good ones the first; empty if none has.

    Parameters
    ----------
    judgments : mapping of str to int
        Memory id to relevance.
    topics : mapping of str to str
        Memory id to topic.
    """
    answers = sorted((-relevance, memory_id) for memory_id, relevance in judgments.items() if relevance > 0)
    return next((topics[memory_id] for _, memory_id in answers if topics.get(memory_id)), "")


def _folder() -> Path:
    package = Path(__file__).parent
    for place in (package / "_sample", package.parent / "data"):  # a wheel; a checkout
        if (place / "corpus.jsonl").is_file():
            return place
    raise FormatError(f"the sample is missing: expected corpus.jsonl in {package / '_sample'}; install memlab again")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                row = json.loads(line)
                if (
                    not isinstance(row, dict)
                    or not isinstance(row.get("_id"), str)
                    or not isinstance(row.get("text"), str)
                ):
                    raise FormatError(f"{path}, line {number}: expected an object with _id and text")
                yield row
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise FormatError(f"{path}, line {number}: {error}") from error


def _metadata(row: dict[str, Any]) -> dict[str, Any]:
    metadata = row.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _now(row: dict[str, Any], path: Path) -> datetime | None:
    text = _metadata(row).get("now")
    try:
        return None if text is None else parse_time(text, "now")
    except InvalidValue as error:
        raise FormatError(f"{path}, query {row['_id']}: {error}") from error


def _record(row: dict[str, Any]) -> dict[str, Any]:
    title = row.get("title") or ""
    metadata = _metadata(row)
    return {
        "memory_id": row["_id"],
        "content": f"{title}\n\n{row['text']}" if title else row["text"],
        **{name: metadata[name] for name in _CARRIED if metadata.get(name) not in (None, "", [])},
    }
