"""Labelled sets in folders: a corpus, queries and judgments in BEIR's layout (Thakur et al., NeurIPS 2021)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from memlab.errors import FormatError, InvalidValue
from memlab.evaluation.judgments import Qrels
from memlab.evaluation.queries import LabelledQuery, json_lines, moment, queries_of
from memlab.evaluation.wording import checked_id, counted, some
from memlab.interchange.json_text import json_text
from memlab.sample_data import Sample, topic_of
from memlab.timestamps import format_time

_BESIDE = ("project", "category", "tags")
_IN_METADATA = ("subcategory", "importance", "source", "related_files")
_DEFAULT_SPLITS = ("test", "dev")


@dataclass(frozen=True, repr=False)
class LabelledSet:
    """Memories with labelled queries.

    Attributes
    ----------
    name : str
    corpus : sequence of mapping
        Arguments for :meth:`MemoryStore.remember`, ``memory_id`` and ``content`` at least.
    queries : tuple of LabelledQuery
    qrels : Qrels
    path : Path or None
        Where it came from.
    split : str
        Which judgments these are.
    notes : tuple of str
        What was left out, counted.
    """

    name: str
    corpus: Sequence[Mapping[str, Any]]
    queries: tuple[LabelledQuery, ...]
    qrels: Qrels
    path: Path | None = None
    split: str = "test"
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        counts = f"{len(self.corpus):,} memories, {len(self.queries):,} queries, {len(self.qrels):,} judgments"
        return f"<LabelledSet {self.name}: {counts} ({self.split})>"


def read_folder(path: str | os.PathLike[str], split: str | None = None) -> LabelledSet:
    """Read ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/<split>.tsv``.

    Parameters
    ----------
    path : str or Path
        Corpus rows have ``_id``, ``text`` and optionally ``title`` (the content is both, with a space between) and
        ``created_at`` (or ``date``), ``project``, ``category``, ``tags``, there or in ``metadata``. A ``topic``
        there becomes that of the queries which the memory answers best, unless these name their own.
    split : str, optional
        The only one by default, else ``test``, else ``dev``.

    Raises
    ------
    FormatError
        If a file is missing or a line is broken; the message names it.
    InvalidValue
        If there is no such split, or an id occurs twice with different texts.
    """
    folder = Path(path).expanduser()
    _require_layout(folder)
    chosen = _split(folder / "qrels", split)
    corpus, notes, topics = _corpus(folder / "corpus.jsonl")
    queries = queries_of(folder / "queries.jsonl")
    qrels = Qrels.of(folder / "qrels" / f"{chosen}.tsv")
    if topics:
        queries = tuple(
            replace(query, topic=query.topic or topic_of(qrels.judgments.get(query.query_id, {}), topics))
            for query in queries
        )
    return LabelledSet(folder.resolve().name, corpus, queries, qrels, folder, chosen, notes)


def labelled_set_of(source: LabelledSet | Sample | str | os.PathLike[str]) -> LabelledSet:
    """A labelled set from one, from :func:`memlab.sample`, or from the path of a folder.

    Raises
    ------
    InvalidValue
        If it is something else; and what :func:`read_folder` raises.
    """
    if isinstance(source, LabelledSet):
        return source
    if isinstance(source, (str, os.PathLike)):
        return read_folder(source)
    if isinstance(source, Sample):
        queries = tuple(
            query if query.now is not None else replace(query, now=source.now) for query in queries_of(source.queries)
        )
        qrels = Qrels.of({query.query_id: query.judgments for query in source.queries if query.judgments})
        return LabelledSet(source.folder.resolve().name, source.records, queries, qrels, source.folder)
    raise InvalidValue(
        f"labelled_set: expected a LabelledSet, a memlab.sample() or a folder, found {type(source).__name__}"
    )


def _require_layout(folder: Path) -> None:
    if not folder.is_dir():
        raise FormatError(
            f"{folder}: expected a folder in BEIR layout, found {'a file' if folder.exists() else 'none'}"
        )
    for name in ("corpus.jsonl", "queries.jsonl", "qrels"):
        if not (folder / name).exists():
            raise FormatError(
                f"{folder}: expected a folder in BEIR layout (corpus.jsonl, queries.jsonl, qrels/<split>.tsv); there "
                f"is no {name}"
            )


def _split(folder: Path, wanted: str | None) -> str:
    there = sorted(file.stem for file in folder.glob("*.tsv"))
    if not there:
        raise FormatError(f"{folder}: expected judgments such as test.tsv, found no .tsv file")
    if wanted is not None:
        if wanted not in there:
            raise InvalidValue(f"split: {folder} has {', '.join(there)}; found {wanted!r}")
        return wanted
    if len(there) == 1:
        return there[0]
    for name in _DEFAULT_SPLITS:
        if name in there:
            return name
    raise InvalidValue(f"split: {folder} has several, so one must be named: {', '.join(there)}")


def _corpus(path: Path) -> tuple[tuple[dict[str, Any], ...], tuple[str, ...], dict[str, str]]:
    """Records, notes, and the topics of the memories that have one."""
    records: dict[str, dict[str, Any]] = {}
    topics: dict[str, str] = {}
    empty: list[str] = []
    repeated: list[str] = []
    contradicting: list[str] = []
    for where, row in json_lines(path, "corpus"):
        record = _record(row, where)
        memory_id = record["memory_id"]
        metadata = row.get("metadata")
        topic = row.get("topic", metadata.get("topic") if isinstance(metadata, Mapping) else None)
        if isinstance(topic, str) and topic:
            topics.setdefault(memory_id, topic)
        if not record["content"].strip():
            empty.append(memory_id)
        elif memory_id not in records:
            records[memory_id] = record
        elif records[memory_id] == record:
            repeated.append(memory_id)
        else:
            contradicting.append(f"{memory_id} in {where}")
    if contradicting:
        raise InvalidValue(f"{path}: an id may stand for one text, found others: {some(contradicting)}")
    if not records:
        raise FormatError(f"{path}: expected memories, found none")
    notes = []
    if empty:
        notes.append(f"left out, having no text: {counted(empty, 'memory', 'memories')}")
    if repeated:
        notes.append(f"left out, being there already: {counted(repeated, 'row')}")
    return tuple(records.values()), tuple(notes), topics


def _record(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    name = "_id" if "_id" in row else "memory_id"
    text = row.get("text", row.get("content"))
    if name not in row or not isinstance(text, str):
        raise FormatError(f"{where}: expected _id and text, found {', '.join(map(repr, row)) or 'none'}")
    try:
        memory_id = checked_id(row[name], name, where)
    except InvalidValue as error:
        raise FormatError(str(error)) from None
    title = row.get("title") or ""
    if not isinstance(title, str):
        raise FormatError(f"{where}: title: expected text, found {title!r}")
    metadata = row.get("metadata")
    more: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    record: dict[str, Any] = {"memory_id": memory_id, "content": f"{title} {text}" if title else text}
    for key in _BESIDE:
        if (value := row.get(key, more.get(key))) not in (None, "", []):
            record[key] = value
    for key in _IN_METADATA:
        if (value := more.get(key)) not in (None, "", []):
            record[key] = value
    when = next((value for key in ("created_at", "date") if (value := row.get(key, more.get(key)))), None)
    if when is not None:
        try:
            record["created_at"] = format_time(moment(when, f"{where}: created_at"))
        except InvalidValue as error:
            raise FormatError(str(error)) from None
    return record


def write_folder(labelled: LabelledSet, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a labelled set so that :func:`read_folder` reads the same.

    Parameters
    ----------
    labelled : LabelledSet
    path : str or Path
        The folder; made if it is not there.
    overwrite : bool
        Replace the set that is in it.

    Raises
    ------
    InvalidValue
        If the folder holds a set already, or a record has a field that the layout has no place for.
    """
    folder = Path(path).expanduser()
    if (folder / "corpus.jsonl").exists() and not overwrite:
        raise InvalidValue(f"{folder}: holds a labelled set already; give another folder, or overwrite=True")
    corpus = [_corpus_row(record) for record in labelled.corpus]
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    _write_lines(folder / "corpus.jsonl", corpus)
    _write_lines(folder / "queries.jsonl", map(_query_row, labelled.queries))
    labelled.qrels.write_beir(folder / "qrels" / f"{labelled.split}.tsv")
    return folder


def _corpus_row(record: Mapping[str, Any]) -> dict[str, Any]:
    known = ("memory_id", "content", "created_at", *_BESIDE, *_IN_METADATA)
    if strange := [name for name in record if name not in known]:
        raise InvalidValue(
            f"corpus: {record.get('memory_id')}: there is no place for {some(strange)}; a record may have "
            f"{', '.join(known)}"
        )
    row: dict[str, Any] = {"_id": record["memory_id"], "title": "", "text": record["content"]}
    if record.get("created_at") is not None:
        row["created_at"] = format_time(moment(record["created_at"], f"corpus: {record['memory_id']}: created_at"))
    row |= {name: _plain(record[name]) for name in _BESIDE if record.get(name) is not None}
    if more := {name: _plain(record[name]) for name in _IN_METADATA if record.get(name) is not None}:
        row["metadata"] = more
    return row


def _query_row(query: LabelledQuery) -> dict[str, Any]:
    row: dict[str, Any] = {"_id": query.query_id, "text": query.text}
    if query.now is not None:
        row["now"] = format_time(query.now)
    if query.filters:
        row["filters"] = {name: _plain(value) for name, value in query.filters.given().items()}
    row |= {name: said for name in ("tests", "topic") if (said := getattr(query, name))}
    return row


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_time(value)
    return list(value) if isinstance(value, (tuple, set, frozenset)) else value


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json_text(dict(row)) + "\n" for row in rows)
    part.replace(path)


def content_key(labelled: LabelledSet) -> str:
    """All of the corpus as one text, the same for the same records in the same order."""
    return json.dumps([dict(record) for record in labelled.corpus], sort_keys=True, default=str, ensure_ascii=False)
