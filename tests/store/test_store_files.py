"""Paths and files: used or refused, never replaced by another, and left as they were."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from sqlite_utils import Database

from memlab.encoders import HashingEncoder
from memlab.errors import (
    InvalidValue,
    MemlabError,
    NotAStore,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreTooNew,
)
from memlab.store import MemoryStore, schema
from memlab.store.schema import SCHEMA_VERSION
from tests.store.helpers import assert_sound, dump, raw_connection

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX permissions and processes")


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# -- what is no store -------------------------------------------------------------------------------------------------


def test_a_directory(tmp_path):
    with pytest.raises(NotAStore, match="directory"):
        MemoryStore(tmp_path, None)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder(tmp_path):
    with pytest.raises(NotAStore, match="does not exist"):
        MemoryStore(tmp_path / "no" / "memory.db", None)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError):
        MemoryStore(tmp_path / "file" / "memory.db", None)


@pytest.mark.parametrize("path", ["", ":memory:", "a\x00b", None, 5, b"bytes.db", "~no-such-user-here/x.db"])
def test_no_paths(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValue, match="path"):
        MemoryStore(path, None)
    assert list(tmp_path.iterdir()) == []


def test_names_that_no_file_can_have(tmp_path):
    for name in ("x" * 300, "\ud800.db"):
        with pytest.raises(MemlabError):
            MemoryStore(tmp_path / name, None)
    assert list(tmp_path.iterdir()) == []


@posix
def test_devices_and_pipes(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/null", tmp_path / "pipe"):
        with pytest.raises(NotAStore, match="pipe"):
            MemoryStore(path, None)


@posix
def test_a_link_that_leads_nowhere_is_not_followed_elsewhere(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "gone.db")
    with pytest.raises(StoreError):
        MemoryStore(tmp_path / "link.db", None)
    assert not (tmp_path / "gone.db").exists()


@posix
def test_a_link_to_a_store_is_that_store(make_store, tmp_path):
    store = make_store()
    store.remember("a")
    (tmp_path / "link.db").symlink_to(store.path)
    assert len(make_store("link.db")) == 1
    make_store("link.db").remember("b")
    assert len(store) == 2


FOREIGN = {
    "text": b"dear diary, today I wrote no database at all\n" * 100,
    "short text": b"x",
    "almost SQLite": b"SQLite format 2\x00" + b"\x00" * 4080,
    "random": np.random.default_rng(1).bytes(8192),
    "a part of the magic": b"SQLite form",
}


@pytest.mark.parametrize("what", FOREIGN)
@pytest.mark.parametrize("read_only", [False, True])
def test_other_files(tmp_path, what, read_only):
    (tmp_path / "file.db").write_bytes(FOREIGN[what])
    with pytest.raises(NotAStore, match="not SQLite"):
        MemoryStore(tmp_path / "file.db", None, read_only=read_only)
    assert content_of(tmp_path) == {"file.db": FOREIGN[what]}


def test_magic_and_then_noise(tmp_path):
    data = b"SQLite format 3\x00" + np.random.default_rng(2).bytes(8192)
    (tmp_path / "file.db").write_bytes(data)
    with pytest.raises(StoreDamaged):
        MemoryStore(tmp_path / "file.db", None)
    assert content_of(tmp_path) == {"file.db": data}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("CREATE TABLE t (x); INSERT INTO t VALUES (1)", "another SQLite database"),
        ("CREATE TABLE memories (id TEXT, content TEXT)", "memlab import"),
        ("PRAGMA user_version = 5", "another SQLite database"),
        ("PRAGMA application_id = 77", "another SQLite database"),
        ("CREATE VIEW v AS SELECT 1; CREATE TABLE t (x)", "another SQLite database"),
    ],
)
def test_another_database(tmp_path, script, message, journal, read_only):
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.executescript(script)
    connection.close()
    before = content_of(tmp_path)
    with pytest.raises(NotAStore, match=message):
        MemoryStore(path, None, read_only=read_only)
    assert content_of(tmp_path) == before


def test_another_database_with_the_log_of_a_killed_program(tmp_path):
    source, path = tmp_path / "source.db", tmp_path / "other.db"
    connection = sqlite3.connect(source, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (x)")
    for suffix in ("", "-wal"):
        shutil.copy(f"{source}{suffix}", f"{path}{suffix}")
    connection.close()
    before = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    assert before[1]
    with pytest.raises(NotAStore):
        MemoryStore(path, None)
    gc.collect()
    assert (path.read_bytes(), Path(f"{path}-wal").read_bytes()) == before


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_store(make_store, tmp_path, read_only):
    store = make_store()
    store.remember("a")
    store.close()
    connection = sqlite3.connect(store.path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    before = content_of(tmp_path)
    with pytest.raises(StoreTooNew, match=rf"version {SCHEMA_VERSION + 1}.*upgrade"):
        make_store(read_only=read_only)
    assert content_of(tmp_path) == before


# -- damage -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def closed(make_store) -> Path:
    """A store of some hundred pages, closed."""
    store = make_store()
    store.remember_many([f"memory {i} " + "word " * 40 for i in range(300)])
    store.close()
    return store.path


def use(path: Path) -> None:
    with MemoryStore(path, HashingEncoder(64)) as store:
        store.find()
        store.vectors()
        report = store.check()
        if not report.ok:
            raise StoreDamaged("check found it")


@pytest.mark.parametrize("keep", [17, 100, 4096, 5000, 40_000, 0.5, 0.9])
def test_a_truncated_store(closed, keep):
    size = closed.stat().st_size
    os.truncate(closed, keep if keep > 1 else int(size * keep) // 4096 * 4096)
    before = closed.read_bytes()
    with pytest.raises((StoreDamaged, StoreError)):
        use(closed)
    assert closed.read_bytes() == before


@pytest.mark.parametrize("seed", range(5))
def test_a_store_with_pages_of_noise(closed, seed):
    rng = np.random.default_rng(seed)
    data = bytearray(closed.read_bytes())
    for page in rng.choice(np.arange(2, len(data) // 4096), 40, replace=False):
        data[page * 4096 : (page + 1) * 4096] = rng.bytes(4096)
    closed.write_bytes(data)
    with pytest.raises(StoreDamaged):
        use(closed)
    assert closed.read_bytes() == bytes(data)


def test_a_store_without_its_tables(closed):
    connection = sqlite3.connect(closed)
    connection.execute("DROP TABLE memory_search")
    connection.close()
    before = closed.read_bytes()
    with pytest.raises(StoreDamaged, match="tables are missing"):
        MemoryStore(closed, None)
    assert closed.read_bytes() == before


def test_an_empty_file_becomes_a_store(tmp_path):
    (tmp_path / "empty.db").touch()
    with pytest.raises(NotAStore, match="empty"):
        MemoryStore(tmp_path / "empty.db", None, read_only=True)
    with MemoryStore(tmp_path / "empty.db", None) as store:
        store.remember("a")
        assert store.check().ok


def test_a_missing_file_is_not_made_to_be_read(tmp_path):
    with pytest.raises(NotAStore, match="no such file"):
        MemoryStore(tmp_path / "none.db", None, read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_in_the_middle_of_making_leaves_no_half_store(tmp_path, monkeypatch):
    from memlab.store import schema

    broken = "CREATE TRIGGER broken AFTER INSERT ON none BEGIN SELECT 1; END;\n"
    monkeypatch.setitem(schema.STEPS, "m001_foundation", schema.STEPS["m001_foundation"] + broken)
    with pytest.raises(StoreError, match="none"):
        MemoryStore(tmp_path / "a.db", None)
    monkeypatch.undo()
    with MemoryStore(tmp_path / "a.db", None) as store:
        store.remember("a")
        assert store.check().ok


# -- names and places -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "a b.db",
        "a#b.db",
        "a?mode=memory",
        "100%.db",
        "a%20b.db",
        "ñandú 日本.db",
        "a&b=c;d.db",
        "'q'.db",
        "file:x.db",
        "-x",
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="Windows allows few of these names")
def test_odd_names(tmp_path, name):
    folder = tmp_path / f"in {name}"
    folder.mkdir()
    with MemoryStore(folder / name, HashingEncoder(8)) as store:
        store.remember("kept")
        assert store.path == folder / name
        store.backup(folder / f"{name} copy")
    assert sorted(path.name for path in folder.iterdir()) == sorted([name, f"{name} copy"])
    with MemoryStore(str(folder / name), None, read_only=True) as store:
        assert len(store) == 1
    with MemoryStore(folder / f"{name} copy", None) as store:
        assert len(store) == 1


def test_a_relative_path_stays_where_it_was(tmp_path, monkeypatch):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    store = MemoryStore("memory.db", None)
    monkeypatch.chdir(tmp_path / "two")
    store.remember("a")
    result = []
    thread = threading.Thread(target=lambda: result.append(len(store)))
    thread.start()
    thread.join()
    store.close()
    assert result == [1]
    assert list((tmp_path / "two").iterdir()) == []


def test_home_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    with MemoryStore("~/memory.db", None) as store:
        assert store.path == tmp_path / "memory.db"


@posix
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_the_owner_may_read(tmp_path, umask):
    before = os.umask(umask)
    try:
        store = MemoryStore(tmp_path / "memory.db", HashingEncoder(8))
        store.remember("secret")
        for suffix in ("", "-wal", "-shm"):
            assert mode(tmp_path / f"memory.db{suffix}") == 0o600, suffix
        assert mode(store.backup(tmp_path / "copy.db")) == 0o600
        store.close()
        assert mode(tmp_path / "memory.db") == 0o600
    finally:
        os.umask(before)


# -- permissions, as somebody else than root --------------------------------------------------------------------------

AS_NOBODY = """
import os, sys
from pathlib import Path
from memlab.encoders import HashingEncoder
from memlab.errors import *
from memlab.store import MemoryStore
import sqlite_utils, sqlite_utils.migrations, tempfile

def expect(error, call):
    try:
        call()
    except error as found:
        return str(found)
    raise SystemExit(f"no {error.__name__}")

folder = Path(sys.argv[1])
# Whatever is imported late is imported now: the folder of the project may be closed to others.
with MemoryStore(folder / "warm.db", HashingEncoder(8)) as warm:
    warm.remember("one")
if os.getuid() == 0:
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, 65534, 65534)
    os.setgid(65534)
    os.setuid(65534)
"""


def as_nobody(script: str) -> None:
    """Run a script with ``folder`` as a user whom permissions bind; everything is imported before that."""
    # Not tmp_path: its parents are closed to other users.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY + script, folder], capture_output=True, text=True, timeout=120, check=False
        )
    assert done.returncode == 0, done.stderr


@posix
def test_a_file_that_cannot_be_written():
    as_nobody("""
path = folder / "memory.db"
with MemoryStore(path, HashingEncoder(8)) as store:
    store.remember("kept")
path.chmod(0o400)
before = path.read_bytes()
assert "read_only" in expect(StoreReadOnly, lambda: MemoryStore(path))
with MemoryStore(path, read_only=True) as store:
    assert len(store) == 1
    expect(StoreReadOnly, lambda: store.remember("no"))
assert path.read_bytes() == before
path.chmod(0)
expect(StoreError, lambda: MemoryStore(path))
expect(StoreError, lambda: MemoryStore(path, read_only=True))
""")


@posix
def test_a_folder_that_cannot_be_written():
    as_nobody("""
place = folder / "closed"
place.mkdir()
path = place / "memory.db"
with MemoryStore(path, HashingEncoder(8)) as store:
    made = store.remember("kept words")
place.chmod(0o500)
before = path.read_bytes()
with MemoryStore(path, read_only=True) as store:
    assert store.get(made.memory_id).content == "kept words"
    assert len(store.vectors()[0]) == 1
    assert store.check().ok
    expect(StoreReadOnly, lambda: store.remember("no"))
expect(StoreReadOnly, lambda: MemoryStore(place / "new.db"))
store = MemoryStore(folder / "other.db", HashingEncoder(8))
expect(StoreError, lambda: store.backup(place / "copy.db"))
assert [p.name for p in place.iterdir()] == ["memory.db"]
assert path.read_bytes() == before
expect(StoreError, lambda: MemoryStore(path))
place.chmod(0)
expect(StoreError, lambda: MemoryStore(path))
expect(StoreError, lambda: MemoryStore(path, read_only=True))
place.chmod(0o700)
with MemoryStore(path, HashingEncoder(8)) as store:
    store.remember("and on")
""")


# -- a full disk ------------------------------------------------------------------------------------------------------


def fill(store: MemoryStore) -> None:
    """Let SQLite find no page more than there are."""
    connection = store.db.conn
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")


def test_a_full_disk_undoes_the_write_and_nothing_else(make_store):
    store = make_store()
    store.remember_many([f"memory {i}" for i in range(50)], resume_key="r")
    made = store.find(limit=1)[0].memory_id
    store.db.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    fill(store)
    before = dump(store.path)
    big = "word " * 20_000
    for write in (
        lambda: store.remember(big),
        lambda: store.remember_many([big, "small"]),
        lambda: store.update(made, content=big),
        lambda: store.reembed(HashingEncoder(4096)),
    ):
        with pytest.raises(StoreFull, match="disk is full"):
            write()
    after = dump(store.path)
    # Staged vectors are work in hand, not a change of the store.
    for table in ("staged_vectors", "staged_passages", "store_settings"):
        before.pop(table), after.pop(table)
    assert after == before
    assert_sound(store)
    store.db.conn.execute("PRAGMA max_page_count = 1000000")
    assert not store.remember(big).pending
    assert_sound(store)


def test_a_full_disk_in_mid_bulk_keeps_whole_batches(make_store):
    store = make_store()
    fill(store)
    records = [f"memory {i} " + "word " * 100 for i in range(400)]
    store.db.conn.execute(f"PRAGMA max_page_count = {store.db.conn.execute('PRAGMA page_count').fetchone()[0] + 60}")
    with pytest.raises(StoreFull):
        store.remember_many(records, batch_size=10, resume_key="r")
    stored = len(store)
    assert 0 < stored < 400
    assert stored % 10 == 0
    assert_sound(store)
    store.db.conn.execute("PRAGMA max_page_count = 1000000")
    assert store.remember_many(records, batch_size=10, resume_key="r").existing == stored
    assert len(store) == 400
    assert_sound(store)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 2 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True, text=True, check=False
    ) if shutil.which("mount") else None  # fmt: skip
    if done is None or done.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip() if done else 'no mount'}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_truly_full_disk(small_disk, tmp_path):
    with MemoryStore(small_disk / "memory.db", HashingEncoder(64)) as store:
        ids = list(store.remember_many([f"memory {i}" for i in range(20)]).memory_ids)

        def fill_up():
            for i in range(1000):
                ids.extend(store.remember_many([f"more {i} {n} " + "word " * 200 for n in range(10)]).memory_ids)

        with pytest.raises(StoreError):  # StoreFull, or an I/O error where the shared memory of the log finds no room
            fill_up()
        assert sorted(memory.memory_id for memory in store.find()) == sorted(ids)
        assert store.check().ok
        copy = store.backup(tmp_path / "copy.db")
        with pytest.raises(StoreError):
            store.backup(small_disk / "copy.db")
        assert not [path.name for path in small_disk.iterdir() if "copy" in path.name]
    with MemoryStore(copy, HashingEncoder(64)) as saved:
        assert len(saved) == len(ids)
        saved.remember("there is room here")
        assert_sound(saved)


def test_no_room_for_a_new_store(small_disk):
    (small_disk / "filler").write_bytes(b"x" * (2 * 1024 * 1024 - 8192))
    with pytest.raises(StoreError):
        MemoryStore(small_disk / "memory.db", None)
    (small_disk / "filler").unlink()
    with MemoryStore(small_disk / "memory.db", None) as store:
        store.remember("a")
        assert store.check().ok


# -- backup -----------------------------------------------------------------------------------------------------------


def test_a_backup_is_a_store(make_store, tmp_path):
    store = make_store()
    made = store.remember("a", idempotency_key="k")
    store.update(made.memory_id, content="b")
    copy = store.backup(tmp_path / "copy.db")
    assert copy == tmp_path / "copy.db"
    assert dump(copy) == dump(store.path)
    store.remember("later")
    again = make_store("copy.db")
    assert len(again) == 1
    again.remember("in the copy")
    assert_sound(again)
    assert len(store) == 2


def test_backups_that_are_refused(make_store, tmp_path):
    store = make_store()
    (tmp_path / "there.db").write_text("mine")
    for path, message in [
        (tmp_path, "directory"),
        (tmp_path / "no" / "copy.db", "does not exist"),
        (store.path, "the store itself"),
        (tmp_path / "there.db", "overwrite"),
    ]:
        with pytest.raises(InvalidValue, match=message):
            store.backup(path)
    with pytest.raises(InvalidValue, match="the store itself"):
        store.backup(store.path, overwrite=True)
    assert (tmp_path / "there.db").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir() if "memory" not in path.name) == ["there.db"]
    store.backup(tmp_path / "there.db", overwrite=True)
    assert len(make_store("there.db")) == 0


def test_a_backup_over_a_store_whose_log_was_left_behind(make_store, tmp_path):
    old = make_store("old.db")
    old.db.conn.execute("PRAGMA wal_autocheckpoint = 0")
    old.remember_many([f"old memory {i}" for i in range(50)])
    for suffix in ("", "-wal"):
        shutil.copy(f"{old.path}{suffix}", f"{tmp_path / 'copy.db'}{suffix}")
    assert (tmp_path / "copy.db-wal").stat().st_size > 0
    store = make_store()
    store.remember_many([f"new memory {i}" for i in range(5)])
    store.backup(tmp_path / "copy.db", overwrite=True)
    copy = make_store("copy.db")
    assert sorted(memory.content for memory in copy.find()) == [f"new memory {i}" for i in range(5)]
    assert_sound(copy)


def test_a_backup_of_a_store_opened_read_only(make_store, tmp_path):
    make_store().remember("a")
    make_store(read_only=True).backup(tmp_path / "copy.db")
    assert len(make_store("copy.db")) == 1


# -- closing ----------------------------------------------------------------------------------------------------------


def test_use_after_close(make_store):
    store = make_store()
    made = store.remember("a").memory_id
    store.close()
    store.close()
    for use_it in (
        lambda: store.get(made),
        lambda: store.remember("b"),
        lambda: store.remember_many(["b"]),
        lambda: store.update(made, content="c"),
        lambda: store.find(),
        lambda: store.memories(),
        lambda: store.vectors(),
        lambda: store.stats(),
        lambda: store.check(),
        lambda: len(store),
        lambda: store.touch(made),
        lambda: store.purge(),
        lambda: store.db,
        lambda: store.encoder_stamp,
        lambda: store.backup("x.db"),
        lambda: made in store,
    ):
        with pytest.raises(StoreClosed, match="open it again"):
            use_it()
    assert "closed" in repr(store)


def test_closing_leaves_one_file(make_store, tmp_path):
    store = make_store()
    store.remember("a")
    thread = threading.Thread(target=store.find)
    thread.start()
    thread.join()
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["memory.db"]


def test_close_from_another_thread_while_it_is_used(make_store):
    store = make_store()
    store.remember_many([f"memory {i}" for i in range(200)])
    started, outcome = threading.Barrier(4), []

    def work():
        store.find(limit=1)
        started.wait()
        try:
            while True:
                store.find()
                store.vectors()
        except BaseException as error:
            outcome.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    started.wait()
    store.close()
    for thread in threads:
        thread.join(30)
    assert [type(error) for error in outcome] == [StoreClosed] * 3
    with MemoryStore(store.path, None) as again:
        assert again.check().ok


def test_connections_of_ended_threads_are_closed(make_store):
    store = make_store()

    def look():
        store.find()

    for _ in range(20):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    gc.collect()
    assert len(store._file._open) <= 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("parent_closes", [False, True])
def test_a_fork_uses_a_connection_of_its_own(make_store, parent_closes):
    store = make_store()
    store.remember("from the parent", memory_id="m-0")
    store.vectors()
    # The child says when it is there, and is told to begin after the parent has closed the file, and its log with it.
    (there, say_there), (begun, say_begin) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(say_begin)
            os.write(say_there, b"x")
            if os.read(begun, 1):
                for i in range(20):
                    store.remember(f"from the child {i}", memory_id=f"m-c{i}")
                with store.view() as view:  # one commit: the parent may be writing
                    ok = len(view.snapshot.documents) == view.searched
                ok = ok and store.check().ok
                if parent_closes:
                    store.close()
                status = 0 if ok else 2
        finally:
            os._exit(status)
    try:
        os.read(there, 1)
        if parent_closes:
            store.close()
            assert not Path(f"{store.path}-wal").exists()
        os.write(say_begin, b"x")
        if not parent_closes:
            for i in range(20):
                store.remember(f"from the parent {i}", memory_id=f"m-p{i}")
    finally:
        for end in (there, say_there, begun, say_begin):
            os.close(end)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    after = make_store()
    assert len(after) == (21 if parent_closes else 41)
    assert_sound(after)


def test_other_databases_stay_usable_beside_a_raw_connection(make_store):
    store = make_store()
    raw = raw_connection(store.path)
    raw.execute("INSERT INTO memories (id, content) VALUES ('m-raw', 'x')")
    store.close()
    assert raw.execute("SELECT count(*) FROM memories").fetchone() == (1,)
    raw.close()


def test_a_new_file_is_made_as_the_migrations_would_make_it(tmp_path):
    def schema_of(path):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()
            return rows, [row[1:3] for row in connection.execute("SELECT * FROM _sqlite_migrations ORDER BY id")]

    MemoryStore(tmp_path / "made.db", None).close()
    with contextlib.closing(sqlite3.connect(tmp_path / "migrated.db", isolation_level=None)) as connection:
        schema.migrations().apply(Database(connection, recursive_triggers=False, execute_plugins=False))
    with contextlib.closing(sqlite3.connect(tmp_path / "made.db")) as connection:
        assert schema.migrations().pending(Database(connection, execute_plugins=False)) == []
    assert schema_of(tmp_path / "made.db") == schema_of(tmp_path / "migrated.db")


def test_making_a_store_imports_no_pandas(tmp_path):
    script = (
        "import sys; from memlab.store import MemoryStore\n"
        f"MemoryStore({str(tmp_path / 'memory.db')!r}).close()\n"
        "sys.exit('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2], timeout=60)
    assert done.returncode == 0
