"""Judgments: which memories answer which query, and how well. A set of them is called qrels."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.errors import FormatError, InvalidValue
from memlab.evaluation.wording import check_columns, checked_id, counted, some

if TYPE_CHECKING:
    import pandas as pd

_BREAKS = re.compile(r"[\t\n\r]")
_NAMES = {
    "query_id": ("query_id", "query-id", "qid"),
    "memory_id": ("memory_id", "corpus-id", "doc_id", "docno"),
    "relevance": ("relevance", "score", "rel"),
}
_EXPECTED = (
    "a Qrels, {query_id: {memory_id: relevance}}, {query_id: [memory_id, ...]}, a DataFrame with query_id, memory_id "
    "and relevance (or BEIR's query-id, corpus-id and score), or the path of a BEIR .tsv or TREC file"
)
Row = tuple[str, object, object, object]
"""Where it stands, query id, memory id, relevance."""


@dataclass(frozen=True)
class Qrels:
    """A set of judgments; make one with :meth:`of`.

    Attributes
    ----------
    judgments : mapping of str to (mapping of str to int)
        Query id to memory id to relevance: 0 is "judged, not relevant", larger is better.
    notes : tuple of str
        What was odd in the source and could be put right, counted.
    """

    judgments: Mapping[str, Mapping[str, int]]
    notes: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, source: Any) -> Qrels:
        """Judgments from whatever holds them.

        Parameters
        ----------
        source : Qrels, mapping, DataFrame, str or Path
            ``{query_id: {memory_id: relevance}}``; ``{query_id: [memory_id, ...]}``, each of relevance 1; a frame with
            ``query_id, memory_id, relevance`` or BEIR's ``query-id, corpus-id, score``; a BEIR ``.tsv`` or a TREC file
            (four columns: query, iteration, document, relevance), told apart by their first line.

        Raises
        ------
        InvalidValue
            If it is something else, empty, contradicts itself, or a relevance is no whole number of 0 or more.
        FormatError
            If a file cannot be read; the message names the line.
        """
        if isinstance(source, Qrels):
            return source
        if isinstance(source, (str, os.PathLike)):
            return _checked(_file_rows(Path(source)), str(source))
        if isinstance(source, Mapping):
            return _checked(_mapping_rows(source), "qrels")
        if hasattr(source, "columns") and hasattr(source, "itertuples"):
            return _checked(_frame_rows(source), "qrels")
        raise InvalidValue(f"qrels: expected {_EXPECTED}; found {type(source).__name__}")

    @property
    def frame(self) -> pd.DataFrame:
        """One row a judgment: ``query_id`` (str), ``memory_id`` (str), ``relevance`` (int)."""
        import pandas as pd

        rows = [(query, memory, rel) for query, by in self.judgments.items() for memory, rel in by.items()]
        return pd.DataFrame(rows, columns=["query_id", "memory_id", "relevance"])

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The judged queries, in the order of the source."""
        return tuple(self.judgments)

    def as_dict(self) -> dict[str, dict[str, int]]:
        """A copy as plain dicts: query id to memory id to relevance."""
        return {query_id: dict(by_memory) for query_id, by_memory in self.judgments.items()}

    def relevant(self, query_id: str) -> set[str]:
        """Ids of the memories of relevance 1 or more; none for a query without judgments."""
        return {memory_id for memory_id, relevance in self.judgments.get(query_id, {}).items() if relevance > 0}

    def restricted(self, query_ids: Iterable[str]) -> Qrels:
        """The judgments of these queries alone, in their order."""
        return Qrels({name: self.judgments[name] for name in query_ids if name in self.judgments}, self.notes)

    def write_beir(self, path: str | os.PathLike[str]) -> Path:
        """Write a BEIR .tsv: ``query-id``, ``corpus-id``, ``score``, with a header.

        Raises :class:`InvalidValue` if an id has a tab or a line break, or begins or ends with white space.
        """
        target = Path(path)
        rows = [(query, memory, rel) for query, by in self.judgments.items() for memory, rel in by.items()]
        bad = dict.fromkeys(name for row in rows for name in row[:2] if name != name.strip() or _BREAKS.search(name))
        if bad:
            raise InvalidValue(
                f"a BEIR .tsv separates by tabs and lines, which these ids contain: {some(map(repr, bad))}; rename them"
            )
        lines = ["query-id\tcorpus-id\tscore\n", *(f"{query}\t{memory}\t{rel}\n" for query, memory, rel in rows)]
        target.write_text("".join(lines), encoding="utf-8", newline="\n")
        return target

    def write_trec(self, path: str | os.PathLike[str]) -> Path:
        """Write TREC qrels: query, 0, memory, relevance; raises :class:`InvalidValue` if an id has white space."""
        rows = [(query, memory, rel) for query, by in self.judgments.items() for memory, rel in by.items()]
        check_no_space(name for query, memory, _ in rows for name in (query, memory))
        target = Path(path)
        target.write_text("".join(f"{query} 0 {memory} {rel}\n" for query, memory, rel in rows), encoding="utf-8")
        return target

    def __len__(self) -> int:
        """Judgments, not queries."""
        return sum(map(len, self.judgments.values()))

    def __repr__(self) -> str:
        notes = "".join(f"\nnote: {note}" for note in self.notes)
        return f"<Qrels: {len(self):,} judgments of {len(self.judgments):,} queries>{notes}"


def check_no_space(names: Iterable[str]) -> None:
    """Raise :class:`InvalidValue` if one of these ids cannot stand in a TREC file."""
    bad = list(dict.fromkeys(name for name in names if name.split() != [name]))
    if bad:
        raise InvalidValue(
            f"a TREC file separates by white space, which these ids contain: {some(map(repr, bad))}; "
            "write the judgments with write_beir instead, or rename them"
        )


def _checked(rows: Iterable[Row], source: str) -> Qrels:
    judgments: dict[str, dict[str, int]] = {}
    first: dict[tuple[str, str], str] = {}
    repeated: list[str] = []
    contradicting: list[str] = []
    negative: list[str] = []
    for where, query, memory, value in rows:
        query_id, memory_id = checked_id(query, "query_id", where), checked_id(memory, "memory_id", where)
        relevance = _relevance(value, where)
        if relevance < 0:
            negative.append(f"{where}: {query_id} {memory_id} {relevance}")
            continue
        known = judgments.setdefault(query_id, {}).get(memory_id)
        key = (query_id, memory_id)
        if known is None:
            judgments[query_id][memory_id], first[key] = relevance, where
        elif known == relevance:
            repeated.append(where)
        else:
            said = f"{query_id} {memory_id} is {known} in {first[key]} and {relevance} in {where}"
            contradicting.append(said)
    if negative:
        raise InvalidValue(
            f"{source}: expected relevances of 0 or more, found {counted(negative, 'negative one')}; write 0 for "
            '"judged, not relevant", or leave the row out'
        )
    if contradicting:
        raise InvalidValue(
            f"{source}: {counted(contradicting, 'judgment contradicts an earlier one', 'judgments contradict others')};"
            " keep one of each"
        )
    if not any(judgments.values()):
        raise InvalidValue(f"{source}: expected judgments, found none; qrels are {_EXPECTED}")
    notes = (f"{source}: left out as said before: {counted(repeated, 'row')}",) if repeated else ()
    return Qrels({query: by for query, by in judgments.items() if by}, notes)


def _relevance(value: object, where: str) -> int:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = 0.5
    if not abs(number) < 1e9 or number != int(number):
        raise InvalidValue(f"{where}: relevance: expected a whole number of 0 or more, found {value!r}")
    return int(number)


def _mapping_rows(source: Mapping[Any, Any]) -> Iterator[Row]:
    for query, judged in source.items():
        where = f"qrels[{query!r}]"
        if isinstance(judged, Mapping):
            for memory, relevance in judged.items():
                yield f"{where}[{memory!r}]", query, memory, relevance
        elif isinstance(judged, Iterable) and not isinstance(judged, (str, bytes)):
            for memory in judged:
                yield where, query, memory, 1
        else:
            raise InvalidValue(
                f"{where}: expected {{memory_id: relevance}} or a list of memory ids, found {judged!r}"
                + (f"; for one memory write [{judged!r}]" if isinstance(judged, str) else "")
            )


def _columns(have: list[str], source: str) -> list[str]:
    chosen = []
    for name, others in _NAMES.items():
        found = [other for other in others if other in have]
        if not found:
            raise InvalidValue(
                f"{source}: expected the columns query_id, memory_id and relevance (or query-id, corpus-id and "
                f"score), found no {name} among {', '.join(map(repr, have))}"
            )
        chosen.append(found[0])
    check_columns(have, chosen, source)
    return chosen


def _frame_rows(frame: Any) -> Iterator[Row]:
    columns = [frame[name] for name in _columns([str(name) for name in frame.columns], "qrels")]
    for place, (query, memory, relevance) in enumerate(zip(*columns, strict=True)):
        yield f"row {place}", query, memory, relevance


def _file_rows(path: Path) -> Iterator[Row]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            lines = [line.removesuffix("\n") for line in file]
    except OSError as error:
        raise FormatError(f"{path}: the judgments cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: expected UTF-8 text: {error}") from error
    head = next((line for line in lines if line.strip()), "")
    if set(head.split("\t")) & {name for names in _NAMES.values() for name in names}:
        # BEIR's files are not quoted: a quotation mark is a part of an id.
        table = [(number, line.split("\t")) for number, line in enumerate(lines, 1) if line.strip()]
        first, header = table[0]
        places = [header.index(name) for name in _columns(header, f"{path}, line {first}")]
        for number, cells in table[1:]:
            where = f"{path.name}, line {number}"
            if len(cells) <= max(places):
                raise FormatError(f"{where}: expected {len(header)} columns separated by tabs, found {cells!r}")
            yield (where, *(cells[place].strip() for place in places))  # type: ignore[misc]
        return
    for number, line in enumerate(lines, 1):
        parts = line.split()
        if parts and len(parts) != 4:
            raise FormatError(
                f"{path}, line {number}: expected a BEIR .tsv (a header with query-id, corpus-id and score, separated "
                f"by tabs) or TREC qrels (four columns: query, iteration, document, relevance), found {line[:80]!r}"
            )
        if parts:
            yield f"{path.name}, line {number}", parts[0], parts[2], parts[3]
