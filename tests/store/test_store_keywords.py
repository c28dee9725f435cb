"""The search indexes in memory against FTS5's own, over random stores, writes and filters."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab import Filters, MemoryStore
from memlab.retrieval import StemChannel
from memlab.retrieval.channels import ChannelHit, Query
from memlab.store import keywords, postings, schema
from memlab.store.analysis import analyse
from memlab.store.keywords import InMemory
from memlab.store.lookup import InFile
from memlab.store.reading import ReadView
from memlab.store.words import BORDER, cut, plain_words

NOW = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)
NOTHING: frozenset[int] = frozenset()
MANY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = (
    "retry",
    "Retries",
    "getUserName",
    "user",
    "name",
    "cache",
    "the",
    "don't",
    "ADR-016",
    "snake_case",
    "a.b",
    "数据库",
    "データ",
    "naïve",
    "ÉCOLE",
    "école",
    "straße",
    "İstanbul",
    "e\u0301t\u0301e",
    "v2",
    "x\x01y",
    "one\x00two",
    "\u200bzero",
    "हिन्दी",
)
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
CHANGES = st.sampled_from(["new", "other's", "text", "text without a vector", "project", "trash", "restore", "purge"])


def label(text: str) -> str:
    """A text without the NUL that only contents may have."""
    return text.replace("\x00", "-")


def hold(store: MemoryStore) -> None:
    """Make the index in memory, as recalls would."""
    with store.view() as view:
        for _ in range(500 if view.searched else 0):
            view.hold_postings(1.0)
            if isinstance(view.lookup(), InMemory):
                return
        assert not view.searched


def fresh(path: Path) -> MemoryStore:
    for old in path.glob("*.db*"):
        old.unlink()
    store = MemoryStore(path / "a.db", None, clock=lambda: NOW)
    store._file.connection().execute("PRAGMA synchronous = OFF")  # nobody cuts the power
    return store


def answers(store: MemoryStore, text: str, filters: Filters, channel: StemChannel, held: bool) -> tuple[object, ...]:
    """What the channel says of a query, from memory or from the file."""
    with store.view(filters) as view:
        if held:
            assert isinstance(view.lookup(), InMemory)
        else:
            view.index = None
        found = channel.search(Query(text), view, 5, NOTHING)
        numbers = [number for (number,) in view.connection.execute("SELECT number FROM memory_numbers")]
        scores = channel.score(Query(text), view, numbers)
        return found.hits, found.note, scores, [channel.locate(Query(text), view, n, NOTHING) for n in numbers]


def hits(store: MemoryStore, text: str, held: bool) -> tuple[ChannelHit, ...]:
    with store.view() as view:
        if held:
            assert isinstance(view.lookup(), InMemory)
        else:
            view.index = None
        return StemChannel().search(Query(text), view, 50, NOTHING).hits


@MANY
@given(st.lists(st.text(max_size=40), min_size=1, max_size=6))
def test_words_are_those_of_fts5(texts: list[str]) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = 'unicode61 remove_diacritics 2')")
        connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab (t, instance)")
        connection.executemany("INSERT INTO t (rowid, x) VALUES (?, ?)", enumerate(texts))
        for at, text in enumerate(texts):
            rows = connection.execute('SELECT term FROM v WHERE doc = ? ORDER BY "offset"', (at,))
            assert list(cut(text)) == [term for (term,) in rows]
        plain = [text for text in texts if text.isascii()]
        bordered = plain_words(plain)
        groups = [list(group) for border, group in itertools.groupby(bordered, BORDER.__eq__) if not border]
        assert groups == [list(cut(text)) for text in plain if cut(text)]
        assert bordered.count(BORDER) == max(0, len(plain) - 1)


@pytest.mark.parametrize("text", ["a" * 5000, "é" * 40_000, "x1" * 20_000])
def test_a_very_long_word_is_cut_as_fts5_cuts_it(tmp_path: Path, text: str) -> None:
    with fresh(tmp_path) as store:
        store.remember_many([text, "another"], progress=False)
        hold(store)
        for query in (text, text[:900], "another"):
            assert answers(store, query, Filters(), StemChannel(), True) == answers(
                store, query, Filters(), StemChannel(), False
            )


@MANY
@given(contents=st.lists(SENTENCES, min_size=1, max_size=20), project=SENTENCES, most=st.sampled_from([1, 3, 100]))
def test_memory_says_what_the_file_says(tmp_path: Path, contents: list[str], project: str, most: int) -> None:
    with fresh(tmp_path) as store:
        store.remember_many(
            [
                {
                    "content": c,
                    "memory_id": f"m{i:02}",
                    "project": label(project) if i % 3 == 0 else None,
                    "tags": ["t 1", label(c)],
                }
                for i, c in enumerate(contents)
            ],
            progress=False,
        )
        store.forget("m00")
        hold(store)
        if len(contents) == 1:
            return
        with store.view() as view:
            mine, theirs = view.lookup(), InFile(view.connection, {})
            assert isinstance(mine, InMemory)
            assert (mine.total, mine.mean) == (theirs.total, theirs.mean)
            tokens = sorted({token for word in WORDS for token in analyse(word)})
            everyone = mine.numbers(np.arange(mine.total))
            assert mine.places(everyone).tolist() == list(range(mine.total))

            def same(ours: np.ndarray | None, of_file: np.ndarray | None) -> None:
                assert (ours is None) == (of_file is None)
                if ours is not None and of_file is not None:
                    assert mine.numbers(ours).tolist() == theirs.numbers(of_file).tolist()

            for token in tokens:
                ours, count = mine.with_token(token, most)
                of_file, their_count = theirs.with_token(token, most)
                same(ours, of_file)
                assert count == their_count
                same(mine.every_with(token), theirs.every_with(token))
                same(mine.with_one_of(token, tokens[:3]), theirs.with_one_of(token, tokens[:3]))
            for first, second in itertools.product(tokens[:12], tokens):
                same(mine.with_pair(first, second), theirs.with_pair(first, second))
            for word in (*WORDS, *(word.lower() for word in WORDS), "retry user", "nothing", "--", ""):
                if "\x00" not in word:
                    same(mine.with_word(word, most), theirs.with_word(word, most))
            places, lengths, counts = mine.counts(tokens, [], mine.places(everyone))
            _, their_lengths, their_counts = theirs.counts(tokens, [None] * len(tokens), everyone)
            assert lengths.tolist() == their_lengths.tolist() == mine.lengths(places).tolist()
            assert counts.tolist() == their_counts.tolist()
            assert theirs.lengths(everyone).tolist() == lengths.tolist()


def change(store: MemoryStore, what: str, text: str, at: int) -> None:
    """One write of some kind."""
    ids = [memory.memory_id for memory in store.find(trashed=None)]
    memory_id = ids[at % len(ids)] if ids else None
    if what == "new" or memory_id is None:
        store.remember(text)
    elif what == "other's":
        with MemoryStore(store.path, None, clock=lambda: NOW) as other:
            other.remember(text, project=label(text))
    elif what == "text without a vector":
        store.db.execute("UPDATE memories SET content = ? WHERE id = ?", [text, memory_id])
    elif what == "text" and store.get(memory_id).trashed_at is None:
        store.update(memory_id, content=text)
    elif what == "project":
        with closing(sqlite3.connect(store.path, isolation_level=None)) as foreign:
            foreign.execute("UPDATE memories SET project = ?, tags = '[\"p\"]' WHERE id = ?", [label(text), memory_id])
    elif what == "trash":
        store.forget(memory_id)
    elif what == "restore":
        store.restore(memory_id)
    elif store.get(memory_id).trashed_at is not None:
        store.purge([memory_id])


@MANY
@given(
    contents=st.lists(SENTENCES, min_size=2, max_size=12),
    writes=st.lists(st.tuples(CHANGES, SENTENCES, st.integers(0, 20)), min_size=1, max_size=8),
    text=SENTENCES,
    common=st.sampled_from([1, 3, 5000]),
    candidates=st.sampled_from([2, 100]),
)
def test_the_channel_says_the_same_after_every_write(
    tmp_path: Path, contents: list[str], writes: list[tuple[str, str, int]], text: str, common: int, candidates: int
) -> None:
    channel = StemChannel(common=common, candidates=candidates)
    with fresh(tmp_path) as store:
        store.remember_many(contents, progress=False)
        for what, words, at in writes:
            hold(store)
            before = len(store)
            change(store, what, words, at)
            with store.view() as view:  # it followed, but from or to nothing
                assert isinstance(view.lookup(), InMemory) == (before > 0 and len(store) > 0)
            for filters in (Filters(), Filters(project=("p", label(words)))):
                with store.view(filters) as view:
                    stale = channel.search(Query(text), view, 5, NOTHING)
                assert stale.hits == answers(store, text, filters, channel, False)[0]
            if len(store):
                hold(store)
                for filters in (Filters(), Filters(project=("p", label(words)))):
                    assert answers(store, text, filters, channel, True) == answers(store, text, filters, channel, False)


def test_it_is_made_beside_the_answers_and_not_for_the_first(tmp_path: Path) -> None:
    with fresh(tmp_path) as store:
        store.remember_many([f"retry number {i}" for i in range(2000)], progress=False)
        kinds = []
        for _ in range(200):
            with store.view() as view:
                kinds.append(isinstance(view.lookup(), InMemory))
                StemChannel().search(Query("which retry"), view, 5, NOTHING)
        assert not kinds[0]
        assert kinds[-1]
        assert kinds == sorted(kinds)
        assert store._keywords.builds == 1


def test_many_small_writes_are_followed(tmp_path: Path) -> None:
    channel = StemChannel()
    with fresh(tmp_path) as store:
        store.remember_many([f"retry number {i}" for i in range(300)], progress=False)
        hold(store)
        for i in range(60):
            store.remember(f"retry jitter number {i} of {'many ' * (i % 3)}", memory_id=f"m-{i}")
            if i % 3 == 0:
                store.update(f"m-{i}", content=f"number jitter {i}")
            if i % 7 == 0:
                store.forget(f"m-{i}")
            for text in ("jitter number 7", "many retry"):
                assert hits(store, text, True) == hits(store, text, False)
        assert store._keywords.builds == 1
        held = store._keywords._held
        assert held is not None
        assert len(held.parts) <= 8
        store.change_category("note", "other")  # of all of them
        with store.view() as view:
            assert len(channel.search(Query("other"), view, 500, NOTHING).hits) == len(store)


def test_writes_while_it_is_made_are_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keywords, "_LEAST", 0)
    with fresh(tmp_path) as store:
        store.remember_many([f"retry number {i}" for i in range(1000)], progress=False)
        for i in range(1000):
            with store.view() as view:
                view.hold_postings(0)
                if isinstance(view.lookup(), InMemory):
                    assert i > 3
                    break
            if i < 3:
                store.remember(f"jitter {i}")
                store.update(store.find(limit=None)[-1].memory_id, content=f"jitter of old {i}")
        for text in ("jitter", "retry number 7", "old"):
            assert hits(store, text, True) == hits(store, text, False)


@pytest.mark.parametrize("table", ["memory_terms", "memory_search"])
def test_a_change_that_is_in_no_log_gives_it_up(tmp_path: Path, table: str) -> None:
    with fresh(tmp_path) as store:
        store.remember_many(["retry one", "retry two", "retry three"], progress=False)
        hold(store)
        store.db.execute(f"DELETE FROM {table} WHERE rowid = 2")
        with store.view() as view:
            assert isinstance(view.lookup(), InFile)
        assert answers(store, "retry", Filters(), StemChannel(), False) == answers(
            store, "retry", Filters(), StemChannel(), False
        )


def test_more_changes_than_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keywords, "_MOST_CHANGED", 4)
    with fresh(tmp_path) as store:
        store.remember_many([f"retry {i}" for i in range(9)], progress=False)
        hold(store)
        store.remember_many([f"retry {i}" for i in range(3)], progress=False)
        assert answers(store, "retry 1", Filters(), StemChannel(), True)[0]
        store.remember_many([f"retry {i}" for i in range(5)], progress=False)
        with store.view() as view:
            assert isinstance(view.lookup(), InFile)
        hold(store)
        assert store._keywords.builds == 2


def test_a_store_that_is_written_to_all_the_time_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "LABELS_LOGGED_SINCE", schema.SCHEMA_VERSION + 1)  # as in a file that cannot be written
    monkeypatch.setattr(keywords, "_LEAST", 0)
    begun = []
    with fresh(tmp_path) as store:
        store.remember_many([f"retry number {i}" for i in range(3000)], progress=False)
        for i in range(20):
            store.update(store.find(limit=1)[0].memory_id, content=f"retry {i}")
            for _ in range(2):
                with store.view() as view:
                    view.hold_postings(0)
                    builder = store._keywords._builder
                    begun.append(builder is not None and len(builder) > 0)
        assert begun[:2] == [False, True]
        assert not any(begun[2:])  # where nothing would come of it
        hold(store)  # until it is left in peace
        assert store._keywords.builds == 1


def test_a_large_store_goes_on_asking_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keywords, "MOST", 3)
    with fresh(tmp_path) as store:
        store.remember_many(["retry"] * 4, progress=False)
        with store.view() as view:
            for _ in range(3):
                view.hold_postings(1)
            assert isinstance(view.lookup(), InFile)
        store.forget(store.find(limit=1)[0].memory_id)
        hold(store)
        with store.view() as view:
            assert isinstance(view.lookup(), InMemory)


def test_text_that_is_no_utf8_leaves_it_to_the_file(tmp_path: Path) -> None:
    with fresh(tmp_path) as store:
        store.remember_many(["retry one", "retry two"], progress=False)
        store.db.execute("UPDATE memories SET content = CAST(x'726574727920ff' AS TEXT) WHERE content = 'retry two'")
        with store.view() as view:
            for _ in range(3):
                view.hold_postings(1)
            assert isinstance(view.lookup(), InFile)
            assert len(StemChannel().search(Query("retry"), view, 5, NOTHING).hits) == 2


def test_what_may_be_rolled_back_is_not_kept(tmp_path: Path) -> None:
    with fresh(tmp_path) as store:
        store.remember_many(["retry one", "retry two"], progress=False)
        hold(store)
        store.db.conn.execute("BEGIN IMMEDIATE")
        store.db.execute("DELETE FROM memories WHERE content = 'retry two'")

        def found(view: ReadView) -> int:
            return len(StemChannel().search(Query("retry"), view, 5, NOTHING).hits)

        with store.view() as view:
            view.hold_postings(1)
            assert isinstance(view.lookup(), InFile)
            assert found(view) == 1
        store.db.conn.execute("ROLLBACK")
        with store.view() as view:
            assert isinstance(view.lookup(), InMemory)
            assert found(view) == 2


@pytest.mark.parametrize("number", [2**40, 2**62, -7])
def test_a_number_far_away_takes_no_memory(tmp_path: Path, number: int) -> None:
    with fresh(tmp_path) as store:
        store.remember_many(["retry one", "retry two jitter", "others"], progress=False)
        store.db.execute("UPDATE memory_numbers SET number = ? WHERE number = 2", [number])
        store.db.execute("UPDATE memory_search SET rowid = ? WHERE rowid = 2", [number])
        store.db.execute("UPDATE memory_terms SET rowid = ? WHERE rowid = 2", [number])
        first = answers(store, "retry jitter", Filters(), StemChannel(), False)
        assert [hit.number for hit in first[0]] == [number, 1]  # type: ignore[attr-defined]
        if number > 0:
            hold(store)
            assert answers(store, "retry jitter", Filters(), StemChannel(), True) == first


def test_postings_are_asked_for_nothing_once_they_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fresh(tmp_path) as store:
        store.remember_many(["retry one", "retry two jitter", "others"], progress=False)
        hold(store)
        for name in ("numbers_with", "numbers_with_one_of", "texts", "lengths", "frequency", "size"):
            monkeypatch.setattr(postings, name, None)
        with store.view() as view:
            found = StemChannel().search(Query("which retry has jitter"), view, 5, NOTHING)
        assert [hit.number for hit in found.hits] == [2, 1]
