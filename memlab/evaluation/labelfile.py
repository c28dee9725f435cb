"""The file that a labelling session writes: judgments that evaluation reads, whole after every mark."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memlab.cached import write_whole
from memlab.errors import FormatError, InvalidValue
from memlab.evaluation.judgments import Qrels, check_no_space
from memlab.evaluation.queries import LabelledQuery, queries_of
from memlab.evaluation.wording import some

_HEAD = ("query-id", "corpus-id", "score", "by", "at")
_PART = "\t\n\r"


@dataclass(frozen=True)
class Judgment:
    """A relevance, who gave it (empty where nobody said) and when, as the store writes times."""

    relevance: int
    by: str = ""
    at: str = ""


Judgments = dict[str, dict[str, Judgment]]
"""Query id to memory id to judgment."""


class LabelFile:
    """A qrels file, BEIR's form for a ``.tsv`` and TREC's for any other name, and the queries added beside it.

    Parameters
    ----------
    path : Path
        Need not exist, unlike its folder.

    Raises
    ------
    InvalidValue
        If its folder does not exist, or it is a folder itself.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser()
        if not self.path.parent.is_dir():
            raise InvalidValue(f"path: the folder {self.path.parent} does not exist; make it first")
        if self.path.is_dir():
            raise InvalidValue(f"path: {self.path} is a folder; add a file name, such as {self.path / 'qrels.tsv'}")
        self.beir = self.path.suffix == ".tsv"
        self._seen: bytes | None = None

    @property
    def queries_path(self) -> Path:
        """Where added queries go: ``qrels.queries.jsonl`` beside ``qrels.tsv``."""
        return self.path.with_suffix(".queries.jsonl")

    def read(self) -> tuple[Judgments, tuple[LabelledQuery, ...]]:
        """The judgments and the added queries that are there.

        Raises
        ------
        FormatError, InvalidValue
            If a file is not what it should be; the message names the line.
        """
        self._seen = self._content()
        added = queries_of(self.queries_path) if self.queries_path.exists() else ()
        if self._seen is None or not any(line.strip() for line in self._seen.splitlines()[self.beir :]):
            return {}, added
        found = Qrels.of(self.path)
        notes = self._notes(self._seen.decode("utf-8-sig")) if self.beir else {}
        judgments = {
            query_id: {
                memory_id: Judgment(relevance, *notes.get((query_id, memory_id), ("", "")))
                for memory_id, relevance in by_memory.items()
            }
            for query_id, by_memory in found.judgments.items()
        }
        return judgments, added

    def _content(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FormatError(f"{self.path}: the judgments cannot be read: {error.strerror}") from error

    def _notes(self, text: str) -> dict[tuple[str, str], tuple[str, str]]:
        """Who judged what when, where the file says so."""
        head, *rows = [line.split("\t") for line in text.split("\n") if line.strip()]
        if not set(_HEAD) <= set(head):
            return {}
        places = [head.index(name) for name in ("query-id", "corpus-id", "by", "at")]
        cells = ([row[at].strip() if at < len(row) else "" for at in places] for row in rows)
        return {(query_id, memory_id): (by, at) for query_id, memory_id, by, at in cells}

    def write(self, judgments: Mapping[str, Mapping[str, Judgment]]) -> None:
        """Write all judgments; the file is whole at every moment.

        Raises
        ------
        InvalidValue
            If somebody else has changed the file since it was read, an id cannot stand in it, or the disk refuses.
        """
        rows = [(query, memory, one) for query, by_memory in judgments.items() for memory, one in by_memory.items()]
        names = [name for row in rows for name in row[:2]]
        if self.beir:
            bad = dict.fromkeys(name for name in names if name != name.strip() or any(char in name for char in _PART))
            if bad:
                raise InvalidValue(
                    f"a .tsv separates by tabs and lines, which these ids contain: {some(map(repr, bad))}; rename them"
                )
            lines = ["\t".join(_HEAD), *(f"{q}\t{m}\t{one.relevance}\t{one.by}\t{one.at}" for q, m, one in rows)]
        else:
            check_no_space(names)
            lines = [f"{query} 0 {memory} {one.relevance}" for query, memory, one in rows]
        if self._content() != self._seen:
            raise InvalidValue(
                f"{self.path}: somebody else has changed the file since it was read, and would lose that; open it "
                "again with memlab.label, or give another path"
            )
        content = "".join(f"{line}\n" for line in lines).encode()
        _replace(self.path, content)
        self._seen = content

    def write_queries(self, queries: Sequence[LabelledQuery]) -> None:
        """Write the added queries as BEIR's ``queries.jsonl``."""
        lines = [json.dumps({"_id": query.query_id, "text": query.text}, ensure_ascii=False) for query in queries]
        _replace(self.queries_path, "".join(f"{line}\n" for line in lines).encode())


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole, with the mode that it had or that a new one gets."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask()
        write_whole(path, content)
        os.chmod(path, mode)
    except OSError as error:
        raise InvalidValue(f"{path}: cannot be written: {error.strerror}; the judgment was not taken") from error


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current
