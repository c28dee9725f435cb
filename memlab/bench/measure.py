"""The measurements: each a step that adds figures, in an order that lets an interrupted run keep the cheap ones."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from memlab.bench.cold import cold_start
from memlab.bench.keyword_quality import exhaustive
from memlab.bench.reference import Worker
from memlab.bench.subject import NameOnly, Subject
from memlab.bench.timing import BLOCK, Figure, Spread, blocks, milliseconds, rate
from memlab.encoders.base import Encoder
from memlab.errors import MemlabError
from memlab.retrieval import HybridRetriever, KeywordChannel, StemChannel, VectorChannel
from memlab.retrieval.channels import Channel, ChannelResult, PassageChannel, Query, timed
from memlab.store import MemoryStore

Say = Callable[[str], None]
_Item = TypeVar("_Item")
TEN = 10
_RUNS = 200  # most runs of one measurement
_WARM = 5
_REPEATS = 10
_MEASUREMENTS = 8  # that take questions from the deal
_BULK = 96  # notes encoded at once
_COLD = 5
_LEAST_RATES = 2
_TIE = 1e-6  # cosines nearer to each other than this: float32 cannot tell which is larger
_SCAN = "numpy float32 product and argpartition, one thread"
_OR = "all words joined by OR, ordered by rank"
_NAIVE = "SentenceTransformer.encode, float32 matrix and plain OR"
_ENCODE = "SentenceTransformer.encode"


@dataclass
class StoreFigures:
    """What was measured on one store.

    Attributes
    ----------
    name : str
    memories : int
    synthetic : bool
    encoder : str or None
    megabytes : float
        Size of the file.
    figures : list of Figure
    notes : list of str
        What could not be measured, and why.
    interrupted : bool
    """

    name: str
    memories: int
    synthetic: bool
    encoder: str | None
    megabytes: float
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False

    def of(self, key: str) -> Figure | None:
        """One figure, if it was measured."""
        return next((figure for figure in self.figures if figure.key == key), None)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {**vars(self), "figures": [figure.as_dict() for figure in self.figures]}


def measure(
    subject: Subject,
    *,
    seconds: float = 2.0,
    references: bool = True,
    encoding: bool = True,
    say: Say = lambda step: None,
) -> StoreFigures:
    """Measure a store.

    Every query is asked once: nothing is answered by what an earlier run left behind, except the pages that SQLite and
    the system keep, which some queries before each measurement warm up. A reference runs in turn with what it is
    compared to, ten queries each, on the same queries.

    Parameters
    ----------
    subject : Subject
    seconds : float
        For each measurement and its reference; of 5 runs at least and 200 at most.
    references : bool
        Whether to measure what memlab is compared with.
    encoding : bool
        Whether to measure the encoder.
    say : callable, optional
        Told what is being measured.

    Returns
    -------
    StoreFigures
        ``interrupted`` if Ctrl-C was pressed; what was measured until then is there.
    """
    store = subject.store
    found = StoreFigures(
        name=subject.name,
        memories=len(store),
        synthetic=subject.synthetic,
        encoder=store.encoder_stamp.name if store.encoder_stamp else None,
        megabytes=store.path.stat().st_size / 1e6,
        notes=subject.notes,
    )
    run = _Run(subject, found, seconds, references, say)
    steps: list[tuple[str, Callable[[], None]]] = [
        ("vector channel", run.vectors),
        ("first answers", run.first_keywords),
        ("keyword channel", run.keywords),
        ("recall, query vector given", run.recall_given),
        ("opening", run.opening),
        ("storing ready vectors", run.ingest),
    ]
    if encoding:
        steps += [
            ("recall from text", run.recall_text),
            ("cold start", run.cold),
            ("encoding", run.encode),
            ("storing texts", run.ingest_texts),
        ]
    try:
        for label, step in steps:
            say(label)
            try:
                step()
            except MemlabError as error:
                found.notes.append(f"{label}: {str(error).splitlines()[0]}")
    except KeyboardInterrupt:
        found.interrupted = True
    finally:
        run.close()
    return found


class _Run:
    def __init__(self, subject: Subject, found: StoreFigures, seconds: float, references: bool, say: Say) -> None:
        self.subject, self.store, self.found = subject, subject.store, found
        self.seconds, self.say = seconds, say
        self.references = references
        self.retriever = HybridRetriever(subject.store, limit=TEN)
        self._plain: Worker | None = None
        self._naive: Worker | None = None
        self._no_naive = ""

    # -- what it is compared with ------------------------------------------------------------------------------------

    def plain(self) -> Worker | None:
        """The one-thread scan and plain OR, started when first asked for."""
        if self.references and self._plain is None:
            self._plain = Worker(self.store.path, one_thread=True)
            self._plain.ask("load", [()])
        return self._plain

    def naive(self) -> Worker | None:
        """The naive way, where the store's encoder is a model that lies in a folder and its package is there."""
        folder = _folder(self.subject.encoder)
        if not self.references or folder is None or self._no_naive:
            return None
        if self._naive is None:
            worker = Worker(self.store.path, folder)
            try:
                worker.ask("load_model", [()])
                worker.ask("load", [()])
                worker.ask("whole", [("a first text, to warm up", TEN)])
            except MemlabError as error:
                worker.close()
                self._no_naive = str(error).splitlines()[0]
                self.found.notes.append(f"not compared with SentenceTransformer.encode: {self._no_naive}")
                return None
            self._naive = worker
        return self._naive

    def close(self) -> None:
        for worker in (self._plain, self._naive):
            if worker is not None:
                worker.close()

    def add(self, key: str, label: str, unit: str, values: Sequence[float], **more: Any) -> None:
        """Keep a figure, if there are values for it."""
        if values:
            theirs = more.pop("reference", ())
            reference = Spread.of(theirs) if theirs else None
            self.found.figures.append(Figure(key, label, unit, Spread.of(values), reference=reference, **more))

    def questions(self) -> tuple[list[Query], list[Query]]:
        """Fresh questions for one measurement: some to warm up with, and those that count."""
        deal = self.subject.questions
        return _apart(deal.take(min(_RUNS, max(BLOCK, len(deal.items) // _MEASUREMENTS))))

    # -- channels ----------------------------------------------------------------------------------------------------

    def search(self, channel: Channel, query: Query, depth: int = TEN) -> ChannelResult:
        """One channel's answer, timed by itself."""
        with self.store.view() as view:
            return timed(channel, query, view, depth, frozenset())

    def vectors(self) -> None:
        """The vector channel against the exact scan; the passage channel."""
        warm, asked = self.questions()
        if not asked or asked[0].vector is None:
            return
        channel, plain = VectorChannel(), self.plain()
        for query in warm:
            self.search(channel, query)
        if plain:
            plain.ask("scan", [(query.vector, TEN) for query in warm])
        spent: list[float] = []
        theirs: list[float] = []
        kept: list[float] = []
        for block in blocks(asked, self.seconds):
            results = [self.search(channel, query) for query in block]
            spent += [result.milliseconds for result in results]
            if plain:
                times, found = plain.ask("scan", [(query.vector, TEN) for query in block])
                theirs += times
                asked_and_found = zip(block, results, found, strict=True)
                kept += [self._near_enough(query, result, numbers) for query, result, numbers in asked_and_found]
        self.add(
            "vector",
            "vector channel, best ten",
            "ms",
            spent,
            against=_SCAN,
            reference=theirs,
            kept=_mean(kept),
            kept_of="the exact ten",
        )
        with self.store.view() as view:
            several = len(view.snapshot.several_passages)
        if several:
            times = [self.search(PassageChannel(), query).milliseconds for query in asked[:50]]
            self.add("passage", "passage channel, best ten", "ms", times)

    def _near_enough(self, query: Query, result: ChannelResult, exact: Sequence[int]) -> float:
        """How much of the exact ten a ten has; memories that tie with the last are worth as much as it is."""
        with self.store.view() as view:
            scores = VectorChannel().score(query, view, exact)
        least = min((score for score, _ in scores.values()), default=1.0) - _TIE
        near = sum(hit.raw_score >= least for hit in result.hits)
        return min(1.0, near / len(exact)) if exact else 1.0

    def first_keywords(self) -> None:
        """The keyword channel's answers until it has the postings in memory, which it makes beside them."""
        _, asked = self.questions()
        spent: list[float] = []
        for ((number, query),) in blocks(list(enumerate(asked * _REPEATS)), 4 * self.seconds, size=1):
            with self.store.view() as view:
                if view.lookup().quick:
                    break
            result = self.search(StemChannel(), query)
            if number < len(asked):  # asked again they only take the postings further
                spent.append(result.milliseconds)
        self.add("keyword_first", "keyword channel (stems), first answers", "ms", spent)

    def keywords(self) -> None:
        """Both keyword channels against plain OR, and against themselves without their shortcut."""
        plain = self.plain()
        for key, label, channel in (
            ("keyword", "keyword channel (stems), best ten", StemChannel()),
            ("keyword_words", "keyword channel (words), best ten", KeywordChannel()),
        ):
            warm, asked = self.questions()
            for query in warm:
                self.search(channel, query)
            if plain:
                plain.ask("words", [(query.text, TEN) for query in warm])
            spent: list[float] = []
            theirs: list[float] = []
            kept: list[float] = []
            answered: list[tuple[Query, ChannelResult]] = []
            whole = exhaustive(channel)
            for block in blocks(asked, self.seconds):
                results = [self.search(channel, query) for query in block]
                spent += [result.milliseconds for result in results]
                if plain:
                    theirs += plain.ask("words", [(query.text, TEN) for query in block])[0]
                answered += zip(block, results, strict=True)
            if whole is not None:
                for ((query, result),) in blocks(answered, self.seconds, size=1):
                    kept.append(_share(result, self.search(whole, query)))
            self.add(
                key,
                label,
                "ms",
                spent,
                against=_OR,
                reference=theirs,
                kept=_mean(kept),
                kept_of="its ten when every match is scored",
            )

    # -- recall ------------------------------------------------------------------------------------------------------

    def recall_given(self) -> None:
        """The whole recall but for the encoder, unfiltered and filtered, and what comes after the channels."""
        for key, label, filters in self._filters():
            warm, asked = self.questions()
            for query in warm:
                self._given(query, filters)
            spent: list[float] = []
            after: list[float] = []
            for block in blocks(asked, self.seconds):
                for query in block:
                    started = perf_counter()
                    timings = self._given(query, filters)
                    spent.append(1000 * (perf_counter() - started))
                    after.append(sum(timings.get(stage, 0.0) for stage in ("facts", "look up", "rank", "fetch")))
            self.add(key, label, "ms", spent)
            if not filters:
                self.add("after", "after the channels: scores, fusion, ranks, contents", "ms", after)

    def _filters(self) -> Iterator[tuple[str, str, dict[str, str]]]:
        yield "recall_vector", "recall, query vector given, ten hits", {}
        if self.subject.filtered is None:
            self.found.notes.append("no filter was measured: all memories have one project and one category")
        else:
            name, value, share = self.subject.filtered
            yield "recall_filtered", f"the same, filtered to {100 * share:.0f} % by {name}", {name: value}

    def _given(self, query: Query, filters: dict[str, str]) -> dict[str, float]:
        candidates = self.retriever.gather(
            query.text, query_vector=query.vector, made_by=query.made_by, filters=filters or None
        )
        return dict(self.retriever.rank(candidates).trace.timings)

    def recall_text(self) -> None:
        """Text in, hits out."""
        if self.subject.encoder is None:
            return
        naive = self.naive()
        warm, asked = _apart(self.subject.fresh.take(max(BLOCK, min(_RUNS, self.subject.fresh.left // 2))))
        for text in warm:
            self.retriever.recall(text)
        spent: list[float] = []
        theirs: list[float] = []
        for block in blocks(asked, self.seconds):
            spent += [milliseconds(self.retriever.recall, text) for text in block]
            if naive:
                theirs += naive.ask("whole", [(text, TEN) for text in block])[0]
        self.add("recall", "recall from text, ten hits", "ms", spent, against=_NAIVE, reference=theirs)

    # -- opening -----------------------------------------------------------------------------------------------------

    def opening(self) -> None:
        """Opening in this process, and in a new one without an encoder."""
        asked = self.subject.questions.take(_COLD)
        spent = []
        for query in asked:
            started = perf_counter()
            with MemoryStore(self.store.path, None, read_only=True) as store:
                retriever = HybridRetriever(store)
                retriever.rank(retriever.gather(query.text, query_vector=query.vector))
                spent.append(1000 * (perf_counter() - started))
            if sum(spent) > 2000 * self.seconds:
                break
        self.add("open", "open and first answer, query vector given", "ms", spent)
        if self.found.encoder is not None and asked:
            self._cold("cold_vector", "new process to first answer, query vector given", "vector", asked[0].text)

    def cold(self) -> None:
        """A new process to its first answer from text, against the naive way."""
        if self.subject.encoder is not None:
            self._cold("cold", "new process to first answer, from text", "memlab", "why do webhooks fail")

    def _cold(self, key: str, label: str, way: str, text: str) -> None:
        folder = _folder(self.subject.encoder) if self.references and not self._no_naive else None
        cold_start(self.store.path, text, way)  # warms the system's caches
        ours: list[dict[str, Any]] = []
        theirs: list[dict[str, Any]] = []
        ends = perf_counter() + 2 * self.seconds
        while len(ours) < _COLD and (not ours or perf_counter() < ends):
            ours.append(cold_start(self.store.path, text, way))
            if way == "memlab" and folder is not None and len(theirs) < 2:
                self.say("cold start of the reference")
                theirs.append(cold_start(self.store.path, text, "naive", folder))
        reference = {"against": _NAIVE, "reference": [one["ms"] for one in theirs]} if theirs else {}
        self.add(key, label, "ms", [one["ms"] for one in ours], **reference)
        if way == "memlab":
            self.add("import", "of that, importing memlab", "ms", [one["import_ms"] for one in ours])
        reference["reference"] = [one["resident_mb"] for one in theirs if one["resident_mb"] is not None]
        held = [one["resident_mb"] for one in ours if one["resident_mb"] is not None]
        given = ", query vector given" if way == "vector" else ""
        self.add(
            f"memory{'_vector' if given else ''}", f"resident after the first answer{given}", "MB", held, **reference
        )

    # -- storing -----------------------------------------------------------------------------------------------------

    def ingest(self) -> None:
        """Rows a second with ready vectors, into a store of its own."""
        made_by = self.store.encoder_stamp
        if made_by is None or not self.subject.records:
            return
        rates: list[float] = []
        ends = perf_counter() + self.seconds
        while len(rates) < _LEAST_RATES or (perf_counter() < ends and len(rates) < _COLD):
            with _new_store(NameOnly(made_by)) as store:
                rates.append(
                    rate(store.remember_many, self.subject.records, vectors=self.subject.matrix, progress=False)
                )
        self.add("ingest", f"storing with ready vectors, {len(self.subject.records):,} at once", "rows/s", rates)

    def encode(self) -> None:
        """One query, and notes in bulk, against ``SentenceTransformer.encode``."""
        encoder, naive = self.subject.encoder, self.naive()
        if encoder is None:
            return
        warm, texts = _apart(self.subject.fresh.take(_RUNS))
        for text in warm:
            encoder.encode_queries([text])
        spent: list[float] = []
        theirs: list[float] = []
        alike: list[float] = []
        for block in blocks(texts, self.seconds):
            vectors = []
            for text in block:
                started = perf_counter()
                vectors.append(encoder.encode_queries([text])[0])
                spent.append(1000 * (perf_counter() - started))
            if naive:
                times, found = naive.ask("encode", [([text],) for text in block])
                theirs += times
                alike += [float(ours @ other[0]) for ours, other in zip(vectors, found, strict=True)]
        more = {"kept": min(alike), "kept_of": "cosine with the reference's vector, the least"} if alike else {}
        self.add("encode", "encoding one query", "ms", spent, against=_ENCODE, reference=theirs, **more)
        rates: list[float] = []
        reference: list[float] = []
        ends = perf_counter() + 2 * self.seconds
        while len(rates) < _LEAST_RATES or (perf_counter() < ends and len(rates) < _COLD):
            notes = self.subject.texts.take(_BULK)
            if len(notes) < min(_BULK, len(self.subject.texts.items)):
                break
            rates.append(rate(encoder.encode_documents, notes))
            if naive:
                reference.append(1000 * len(notes) / naive.ask("encode", [(notes,)])[0][0])
        self.add("encode_bulk", f"encoding {_BULK} notes", "notes/s", rates, against=_ENCODE, reference=reference)

    def ingest_texts(self) -> None:
        """Rows a second from text, against the encoder alone."""
        encoder = self.subject.encoder
        if encoder is None:
            return
        rates: list[float] = []
        alone: list[float] = []
        for _ in range(_LEAST_RATES):
            both = self.subject.texts.take(2 * _BULK)
            notes, others = both[: len(both) // 2], both[len(both) // 2 :]
            if not notes:
                return
            with _new_store(encoder) as store:
                rates.append(rate(store.remember_many, notes, progress=False))
            alone.append(rate(encoder.encode_documents, others))
        self.add(
            "ingest_text",
            "storing from text",
            "rows/s",
            rates,
            against="the encoder alone, other texts",
            reference=alone,
        )


@contextmanager
def _new_store(encoder: Encoder) -> Iterator[MemoryStore]:
    """An empty store that goes when it was measured."""
    with (
        tempfile.TemporaryDirectory(prefix="memlab-bench-", ignore_cleanup_errors=True) as folder,
        MemoryStore(Path(folder) / "store.db", encoder) as store,
    ):
        yield store


def _folder(encoder: Encoder | None) -> Path | None:
    """Where a model's weights lie, if the encoder is a model."""
    try:
        path = getattr(getattr(encoder, "folder", None), "path", None)
    except MemlabError:
        return None
    return path if isinstance(path, Path) and os.path.isdir(path) else None


def _apart(items: list[_Item]) -> tuple[list[_Item], list[_Item]]:
    """The first ones to warm up with, and the others."""
    count = min(_WARM, len(items) // 2)
    return items[:count], items[count:]


def _share(result: ChannelResult, right: ChannelResult) -> float:
    """How much of the right ten is in a channel's ten."""
    wanted = [hit.number for hit in right.hits]
    if not wanted:
        return 1.0
    return len({hit.number for hit in result.hits} & set(wanted)) / len(wanted)


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
